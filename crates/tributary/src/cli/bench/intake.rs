//! Signed events of every provider over HTTP, matched to their contact, beside pgbench: the same row into the same tables, indexes and
//! triggers, one commit each.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use chrono::{DateTime, Utc};
use domain::{Caller, TenantId};
use engine::bench::{Case, ROUNDS, Round, median};
use engine::channels::{self, NewChannel, Opened};
use engine::intake::ChannelSpec;
use engine::intake::providers::{LoadSpec, Sending, Sign};
use store::contacts::NewContact;
use tokio::process::Command;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::client::Client;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// The length of each round, in seconds.
    #[arg(long, default_value_t = 20)]
    secs: u64,
    /// Connections, of ours and of pgbench.
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about {} seconds", 2 * 3 * ROUNDS as u64 * args.secs);
    seed_contacts(scratch).await?;
    let serving = scratch.serve().await?;
    let mut cases = Vec::new();
    for spec in scratch.env.channel_providers.all() {
        if let Some(load) = &spec.load {
            cases.push(measure(scratch, args, serving.address, spec, load).await?);
        }
    }
    serving.stop().await?;
    Ok(cases)
}

/// People to be matched among, the senders of our events too.
async fn seed_contacts(scratch: &Scratch) -> anyhow::Result<()> {
    let mut tx = scratch.env.db.begin().await?;
    store::bench::fill_contacts(&mut tx, scratch.tenant_id, 10_000).await?;
    for (email, phone_number) in [(Some("ann@acme.example"), None), (None, Some("+14158675309"))] {
        let new = NewContact {
            email: email.map(Into::into),
            phone_number: phone_number.map(Into::into),
            ..NewContact::default()
        };
        store::contacts::create(&mut tx, scratch.tenant_id, &new).await?;
    }
    Ok(tx.commit().await?)
}

async fn measure(
    scratch: &Scratch,
    args: &Args,
    to: SocketAddr,
    spec: &'static ChannelSpec,
    events: &'static LoadSpec,
) -> anyhow::Result<Case> {
    let kind = Arc::new(Kind::new(scratch, scratch.tenant_id, spec, events).await?);
    let mut first = Client::connect(to).await?;
    let answer = first.ask(&kind.request(Uuid::now_v7())?).await?;
    ensure!((200..=202).contains(&answer.status), "the first event was answered {}", answer.status);
    let script = pgbench_script(scratch).await?;

    let (mut ours, mut limit, mut acknowledged) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        limit.push(pgbench(scratch, &script, args).await?);
        let (round, ids) = load(to, args, &kind).await?;
        ours.push(round);
        acknowledged.extend(ids);
    }
    let n = acknowledged.len();
    let mut conn = scratch.env.db.acquire().await?;
    let found = store::bench::count_activities(&mut conn, &acknowledged).await?;
    ensure!(found == i64::try_from(n)?, "{n} events were acknowledged and {found} are there");
    let commit = store::bench::setting(&mut conn, "synchronous_commit").await?;
    let fsync = store::bench::setting(&mut conn, "fsync").await?;
    let (ours, limit) = (median(ours), median(limit));
    let case = format!(
        "{} events over HTTP, matched to a contact, {} connections, beside pgbench -M prepared",
        spec.code, args.connections
    );
    let mut case = Case::new(case, "events/s", &ours, limit.rate);
    case.note = format!("every one of {n} acknowledged events was found; synchronous_commit {commit}, fsync {fsync}");
    Ok(case)
}

/// A provider's request, made once. Of each event only the id changes, and the signature where it depends on the id.
pub(super) struct Kind {
    channel: Opened,
    url: String,
    now: DateTime<Utc>,
    request: Vec<u8>,
    /// The positions of the id in the request.
    ids_at: Vec<usize>,
    body_at: usize,
    signature: Option<Signature>,
}

struct Signature {
    at: usize,
    make: Sign,
}

/// Stands for the id in the request that is made once.
const NO_ID: &str = "0123456789abcdef0123456789abcdef";

impl Kind {
    pub(super) async fn new(
        scratch: &Scratch,
        tenant_id: TenantId,
        spec: &'static ChannelSpec,
        events: &'static LoadSpec,
    ) -> anyhow::Result<Self> {
        let new = NewChannel {
            name: format!("bench {}", uuid::Uuid::now_v7()),
            provider: spec.code.into(),
            max_per_minute: Some(None),
            secret: spec.needs_secret().then(|| store::keys::new_secret("")),
            auto_create_contacts: true,
            ..NewChannel::default()
        };
        let channel = channels::add(&scratch.env, &Caller::local("bench", tenant_id, false), new).await?;
        let target = format!("/ingest/{}", channel.secrets.ingestion_key.reveal());
        let url = format!("{}{target}", scratch.env.config.base_url());
        let now = scratch.env.clock.now();
        let sending = Sending { secrets: &channel.secrets, url: &url, now, id: NO_ID };
        let (headers, body) = (events.make)(&sending).context("the channel has no secret to sign with")?;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("POST {target} HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        let request = format!("{head}{body}");
        let ids_at: Vec<usize> = request.match_indices(NO_ID).map(|(at, _)| at).collect();
        ensure!(!ids_at.is_empty(), "the request holds no id");
        let signature = match events.signature {
            Some((header, make)) => {
                let name = format!("{header}: ");
                let at = head.find(&name).context("the request has no signature")? + name.len();
                Some(Signature { at, make })
            }
            None => None,
        };
        Ok(Self { url, now, request: request.into_bytes(), ids_at, body_at: head.len(), signature, channel })
    }

    pub(super) fn request(&self, id: Uuid) -> anyhow::Result<Vec<u8>> {
        let mut request = self.request.clone();
        self.write(&mut request, id)?;
        Ok(request)
    }

    /// The path of its channel, with the key.
    pub(super) fn target(&self) -> String {
        format!("/ingest/{}", self.channel.secrets.ingestion_key.reveal())
    }

    /// Makes the next event of the last one's request.
    pub(super) fn write(&self, request: &mut [u8], id: Uuid) -> anyhow::Result<()> {
        let mut text = [0; 32];
        let text = &*id.simple().encode_lower(&mut text);
        for at in &self.ids_at {
            request[*at..*at + text.len()].copy_from_slice(text.as_bytes());
        }
        if let Some(signature) = &self.signature {
            let sending = Sending { secrets: &self.channel.secrets, url: &self.url, now: self.now, id: text };
            let made = (signature.make)(&sending, &request[self.body_at..]).context("a signature")?;
            request[signature.at..signature.at + made.len()].copy_from_slice(made.as_bytes());
        }
        Ok(())
    }
}

/// Sends on so many connections, on each the next event when the last was answered.
async fn load(to: SocketAddr, args: &Args, kind: &Arc<Kind>) -> anyhow::Result<(Round, Vec<Uuid>)> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(args.secs);
    let mut clients = JoinSet::new();
    for _ in 0..args.connections {
        let (mut client, kind) = (Client::connect(to).await?, kind.clone());
        clients.spawn(async move {
            let (mut times_ms, mut ids, mut request) = (Vec::new(), Vec::new(), kind.request.clone());
            while Instant::now() < until {
                kind.write(&mut request, Uuid::now_v7())?;
                let asked = Instant::now();
                let answer = client.ask(&request).await?;
                if !(200..=202).contains(&answer.status) {
                    bail!("an event was answered {}: {}", answer.status, String::from_utf8_lossy(answer.body));
                }
                times_ms.push(asked.elapsed().as_secs_f64() * 1_000.0);
                ids.push(id_of(answer.body)?);
            }
            Ok((times_ms, ids))
        });
    }
    let (mut times_ms, mut ids) = (Vec::new(), Vec::new());
    while let Some(done) = clients.join_next().await {
        let (times, found) = done??;
        times_ms.extend(times);
        ids.extend(found);
    }
    Ok((Round { rate: ids.len() as f64 / begun.elapsed().as_secs_f64(), times_ms }, ids))
}

/// `{"success":true,"id":"<uuid>"}`, without parsing all of it: the client shares the cores with what it measures.
fn id_of(body: &[u8]) -> anyhow::Result<Uuid> {
    let text = std::str::from_utf8(body)?;
    let at = text.find("\"id\":\"").context("an answer without an id")? + 6;
    Ok(Uuid::parse_str(text.get(at..at + 36).context("an answer without a whole id")?)?)
}

/// One statement, one round trip, one commit: the best a single-row writer can do. The row is one that we wrote.
async fn pgbench_script(scratch: &Scratch) -> anyhow::Result<tempfile::Script> {
    let mut conn = scratch.env.db.acquire().await?;
    tempfile::Script::new(&store::bench::same_activity_again(&mut conn, scratch.tenant_id).await?)
}

async fn pgbench(scratch: &Scratch, script: &tempfile::Script, args: &Args) -> anyhow::Result<Round> {
    let program = scratch.env.config.pg_bin_dir.join("pgbench");
    let mut command = Command::new(&program);
    command.args(["-n", "-M", "prepared", "-j", "2", "-c", &args.connections.to_string()]);
    command.args(["-T", &args.secs.to_string(), "-f"]).arg(script.path());
    command
        .env("PGDATABASE", scratch.login.uri().reveal())
        .env("PGOPTIONS", "-c role=service_role")
        .stdin(Stdio::null());
    let output = command.output().await.with_context(|| format!("{} cannot be run", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "pgbench failed: {}", String::from_utf8_lossy(&output.stderr));
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    Ok(Round { rate: rate.context("pgbench told no rate")?, times_ms: Vec::new() })
}

mod tempfile {
    //! A script that only its owner can read, gone with its value.

    use std::path::{Path, PathBuf};

    pub struct Script(PathBuf);

    impl Script {
        pub fn new(text: &str) -> anyhow::Result<Self> {
            let path = std::env::temp_dir().join(format!("tributary-bench-{}.sql", uuid::Uuid::now_v7().simple()));
            std::fs::write(&path, text)?;
            Ok(Self(path))
        }

        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Script {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}
