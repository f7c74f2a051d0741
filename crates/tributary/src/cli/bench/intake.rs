//! Signed events of every provider over HTTP, matched to their contact, beside pgbench: the same row into the same tables, indexes and
//! triggers, one commit each.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Secret;
use engine::bench::{Case, ROUNDS, Round, median};
use store::channels::{self, NewChannel, Provider, Settings};
use store::contacts::NewContact;
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
    eprintln!("measuring; about {} seconds", 2 * 3 * ROUNDS as u64 * args.secs);
    seed_contacts(scratch).await?;
    let serving = scratch.serve().await?;
    let mut cases = Vec::new();
    for provider in Provider::ALL {
        cases.push(measure(scratch, args, serving.address, provider).await?);
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

async fn measure(scratch: &Scratch, args: &Args, to: SocketAddr, provider: Provider) -> anyhow::Result<Case> {
    let kind = Arc::new(Kind::new(scratch, provider).await?);
    let mut first = Client::connect(to).await?;
    let answer = first.ask(&kind.request(Uuid::now_v7())).await?;
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
        provider.as_str(),
        args.connections
    );
    let mut case = Case::new(case, "events/s", &ours, limit.rate);
    case.note = format!("every one of {n} acknowledged events was found; synchronous_commit {commit}, fsync {fsync}");
    Ok(case)
}

/// A provider's request, made once: of each event only its key changes, and Twilio's signature with it.
struct Kind {
    request: Vec<u8>,
    key_at: usize,
    twilio: Option<Signing>,
}

struct Signing {
    token: Secret,
    url: String,
    signature_at: usize,
    body_at: usize,
}

impl Kind {
    async fn new(scratch: &Scratch, provider: Provider) -> anyhow::Result<Self> {
        let mut tx = scratch.env.db.begin().await?;
        let new = NewChannel {
            provider,
            name: "bench",
            max_per_minute: None,
            person_id: None,
            auto_create_contacts: true,
            settings: Settings::default(),
            secret: (provider == Provider::Twilio).then(|| store::keys::new_secret("")),
        };
        let (_, secrets) = channels::create(&mut tx, &scratch.env.vault, scratch.tenant_id, new).await?;
        tx.commit().await?;
        let (key, target) = (Uuid::nil().simple().to_string(), format!("/ingest/{}", secrets.ingestion_key.reveal()));
        let url = format!("{}{target}", scratch.env.config.base_url());
        let text = "Dear all, please find attached the reminder for invoice INV-2041 over 1,200.50 EUR. It was due on the first of the month. ";
        let (headers, body) = match provider {
            Provider::Generic => {
                let body = serde_json::json!({
                    "type": "email", "from": "ann@acme.example", "to": "office@example.com", "subject": "Invoice INV-2041 is overdue", "content": text.repeat(3),
                    "metadata": { "mailbox": "office", "message_id": "<20261115.2041@acme.example>" }
                })
                .to_string();
                let secret = secrets.proofs.webhook_secret.as_ref().context("a secret")?;
                let signature = engine::intake::sign(secret, body.as_bytes());
                (
                    format!(
                        "Content-Type: application/json\r\nX-Webhook-Signature: {signature}\r\nIdempotency-Key: {key}\r\n"
                    ),
                    body,
                )
            }
            Provider::Twilio => {
                let body = format!(
                    "ToCountry=US&ToState=&SmsMessageSid=SM{key}&NumMedia=0&ToCity=&FromZip=94103&SmsSid=SM{key}&FromState=CA&SmsStatus=received&FromCity=SAN+FRANCISCO\
                     &Body=Can+we+move+tomorrow%27s+visit+to+three%3F+The+key+is+with+Bob.&FromCountry=US&To=%2B15005550001&ToZip=&NumSegments=1&MessageSid=SM{key}\
                     &AccountSid=AC00000000000000000000000000000000&From=%2B14158675309&ApiVersion=2010-04-01"
                );
                let signature = "A".repeat(28);
                (
                    format!(
                        "Content-Type: application/x-www-form-urlencoded\r\nAccept: application/json\r\nX-Twilio-Signature: {signature}\r\n"
                    ),
                    body,
                )
            }
            Provider::Postmark => {
                let received: Vec<_> = (0..6).map(|hop| serde_json::json!({ "Name": "Received", "Value": format!("from mx{hop}.acme.example by in.example with ESMTPS id {hop}; Sun, 15 Nov 2026 07:00:00 +0000") })).collect();
                let body = serde_json::json!({
                    "FromName": "Ann", "MessageStream": "inbound", "From": "ann@acme.example", "FromFull": { "Email": "ann@acme.example", "Name": "Ann", "MailboxHash": "" },
                    "To": "in@mail.example", "ToFull": [{ "Email": "in@mail.example", "Name": "", "MailboxHash": "" }], "Cc": "", "CcFull": [], "Bcc": "", "BccFull": [],
                    "OriginalRecipient": "in@mail.example", "Subject": "Invoice INV-2041 is overdue", "MessageID": key, "ReplyTo": "", "MailboxHash": "",
                    "Date": "Sun, 15 Nov 2026 07:00:00 +0000", "TextBody": text.repeat(3), "HtmlBody": format!("<html><body><p>{}</p></body></html>", text.repeat(3)),
                    "StrippedTextReply": "", "Tag": "", "Headers": received, "Attachments": []
                });
                let basic = STANDARD.encode(secrets.proofs.basic.as_ref().context("a password")?.reveal());
                (format!("Content-Type: application/json\r\nAuthorization: Basic {basic}\r\n"), body.to_string())
            }
        };
        let head = format!("POST {target} HTTP/1.1\r\nHost: bench\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        let request = [head.as_bytes(), body.as_bytes()].concat();
        let twilio = match secrets.proofs.auth_token {
            Some(token) => Some(Signing {
                token,
                url,
                signature_at: find(&request, b"X-Twilio-Signature: ")? + 20,
                body_at: head.len(),
            }),
            None => None,
        };
        Ok(Self { key_at: find(&request, key.as_bytes())?, request, twilio })
    }

    fn request(&self, key: Uuid) -> Vec<u8> {
        let mut request = self.request.clone();
        self.write(&mut request, key);
        request
    }

    /// Makes the next event of the last one's request.
    fn write(&self, request: &mut [u8], key: Uuid) {
        let mut text = [0; 32];
        key.simple().encode_lower(&mut text);
        match &self.twilio {
            None => request[self.key_at..self.key_at + 32].copy_from_slice(&text),
            Some(signing) => {
                // Its sid stands there three times.
                let old: [u8; 32] = request[self.key_at..self.key_at + 32].try_into().unwrap_or([0; 32]);
                let mut at = signing.body_at;
                while let Some(next) = request[at..].windows(32).position(|window| window == old) {
                    at += next;
                    request[at..at + 32].copy_from_slice(&text);
                    at += 32;
                }
                let made = engine::intake::sign_twilio(&signing.token, &signing.url, &request[signing.body_at..]);
                request[signing.signature_at..signing.signature_at + 28].copy_from_slice(made.as_bytes());
            }
        }
    }
}

/// So many connections, each sending the next event when the last was answered.
async fn load(to: SocketAddr, args: &Args, kind: &Arc<Kind>) -> anyhow::Result<(Round, Vec<Uuid>)> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(args.secs);
    let mut clients = JoinSet::new();
    for _ in 0..args.connections {
        let (mut client, kind) = (Client::connect(to).await?, kind.clone());
        clients.spawn(async move {
            let (mut times_ms, mut ids, mut request) = (Vec::new(), Vec::new(), kind.request.clone());
            while Instant::now() < until {
                kind.write(&mut request, Uuid::now_v7());
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
