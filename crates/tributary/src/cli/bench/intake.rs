//! Signed events over HTTP beside pgbench: the same row into the same tables, indexes and triggers, one commit each.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use engine::bench::{Case, ROUNDS, Round, median};
use store::channels::{self, NewChannel, Provider};
use tokio::process::Command;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::client::Client;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// How long each round lasts, in seconds.
    #[arg(long, default_value_t = 20)]
    secs: u64,
    /// Connections, of ours and of pgbench.
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about {} seconds", 2 * ROUNDS as u64 * args.secs);
    let mut tx = scratch.env.db.begin().await?;
    let new = NewChannel { provider: Provider::Generic, name: "bench", max_per_minute: None, webhook_secret: None };
    let (_, secrets) = channels::create(&mut tx, &scratch.env.vault, scratch.tenant_id, new).await?;
    tx.commit().await?;
    let body = serde_json::json!({
        "type": "email", "from": "ann@acme.example", "to": "office@example.com", "subject": "Invoice INV-2041 is overdue",
        "content": "Dear all, please find attached the reminder for invoice INV-2041 over 1,200.50 EUR. It was due on the first of the month. ".repeat(3),
        "metadata": { "mailbox": "office", "message_id": "<20261115.2041@acme.example>" }
    })
    .to_string();
    let head = format!(
        "POST /ingest/{} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Webhook-Signature: {}\r\nIdempotency-Key: ",
        secrets.ingestion_key.reveal(),
        body.len(),
        engine::intake::sign(&secrets.webhook_secret, body.as_bytes()),
    );
    let serving = scratch.serve().await?;
    let request = |key: Uuid| [head.as_bytes(), key.to_string().as_bytes(), b"\r\n\r\n", body.as_bytes()].concat();
    let mut first = Client::connect(serving.address).await?;
    let answer = first.ask(&request(Uuid::now_v7())).await?;
    ensure!(answer.status == 202, "the first event was answered {}", answer.status);
    let script = pgbench_script(scratch).await?;

    let (mut ours, mut limit, mut acknowledged) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        limit.push(pgbench(scratch, &script, args).await?);
        let (round, ids) = load(serving.address, args, &request).await?;
        ours.push(round);
        acknowledged.extend(ids);
    }
    serving.stop().await?;
    let n = acknowledged.len();
    let mut conn = scratch.env.db.acquire().await?;
    let found = store::bench::count_activities(&mut conn, &acknowledged).await?;
    ensure!(found == i64::try_from(n)?, "{n} events were acknowledged and {found} are there");
    let commit = store::bench::setting(&mut conn, "synchronous_commit").await?;
    let fsync = store::bench::setting(&mut conn, "fsync").await?;
    let (ours, limit) = (median(ours), median(limit));
    let case = format!("signed events over HTTP, {} connections, beside pgbench -M prepared", args.connections);
    let mut case = Case::new(case, "events/s", &ours, limit.rate);
    case.note = format!("every one of {n} acknowledged events was found; synchronous_commit {commit}, fsync {fsync}");
    Ok(vec![case])
}

/// So many connections, each sending the next event when the last was answered.
async fn load(
    to: SocketAddr,
    args: &Args,
    request: &(impl Fn(Uuid) -> Vec<u8> + Sync),
) -> anyhow::Result<(Round, Vec<Uuid>)> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(args.secs);
    let mut clients = JoinSet::new();
    for _ in 0..args.connections {
        let mut client = Client::connect(to).await?;
        // Made once; only the event's key in it changes.
        let (mut request, key_at) =
            (request(Uuid::nil()), find(&request(Uuid::nil()), Uuid::nil().to_string().as_bytes())?);
        clients.spawn(async move {
            let (mut times_ms, mut ids) = (Vec::new(), Vec::new());
            while Instant::now() < until {
                let key = Uuid::now_v7().to_string();
                request[key_at..key_at + key.len()].copy_from_slice(key.as_bytes());
                let asked = Instant::now();
                let answer = client.ask(&request).await?;
                if answer.status != 202 {
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

fn find(hay: &[u8], needle: &[u8]) -> anyhow::Result<usize> {
    hay.windows(needle.len()).position(|window| window == needle).context("the request holds no key")
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
