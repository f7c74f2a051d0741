//! `search_memory` over MCP beside the same search over the API, on the same data, one after the other; and many clients at once.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use domain::{DocumentType, Record, Scope, Secret};
use engine::bench::{Case, Round};
use engine::memory;
use serde_json::json;
use store::{keys, sources};
use tokio::task::JoinSet;

use super::client::Client;
use super::pull::resident_mib;
use super::scratch::Scratch;

#[derive(clap::Args)]
pub struct Args {
    /// The number of documents that are searched.
    #[arg(long, default_value_t = 2_000)]
    documents: usize,
    /// The number of searches of each kind.
    #[arg(long, default_value_t = 1_000)]
    searches: usize,
    /// The number of clients that ask at once.
    #[arg(long, default_value_t = 200)]
    clients: usize,
}

const BATCH: usize = 100;
/// Searches of each of many clients.
const OF_CLIENT: usize = 10;
const WORDS: [&str; 16] = [
    "invoice", "delivery", "late", "garden", "fence", "quote", "roof", "payment", "Friday", "truck", "gravel", "hedge",
    "permit", "winter", "contract", "pump",
];

pub async fn run(scratch: &Scratch, args: &Args) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about a minute");
    fill(scratch, args.documents).await?;
    let mut conn = scratch.env.db.acquire().await?;
    let (_, key) = keys::create(&mut conn, scratch.tenant_id, None, "bench", &[Scope::Read]).await?;
    drop(conn);
    let serving = scratch.serve().await?;
    let to = serving.address;
    // Turn by turn, so that whatever else the machine does is met by both.
    let (mut api, mut mcp) = (Client::connect(to).await?, Client::connect(to).await?);
    let (mut api_ms, mut mcp_ms) = (Vec::new(), Vec::new());
    for nth in 0..args.searches {
        let text = question(nth);
        api_ms.push(timed(&mut api, &by_api(to, &key, &text)).await?);
        mcp_ms.push(timed(&mut mcp, &by_mcp(to, &key, &text)).await?);
    }
    let round =
        |times_ms: Vec<f64>| Round { rate: 1_000.0 * times_ms.len() as f64 / times_ms.iter().sum::<f64>(), times_ms };
    let (api, mcp) = (round(api_ms), round(mcp_ms));
    let p50 = |round: &Round| {
        let mut times = round.times_ms.clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let mut beside = Case::new(
        format!(
            "search_memory over MCP, beside GET /api/v1/search ({} documents, one connection each)",
            args.documents
        ),
        "searches/s",
        &mcp,
        api.rate,
    );
    beside.note = format!("p50 {:.2} ms over MCP, {:.2} ms over the API", p50(&mcp), p50(&api));
    // Twice: what a crowd leaves behind would be left once more.
    let mut mib = vec![resident_mib()];
    many(to, &key, args.clients).await?;
    mib.push(resident_mib());
    let crowd = many(to, &key, args.clients).await?;
    mib.push(resident_mib());
    serving.stop().await?;
    let mut at_once = Case::new(
        format!(
            "search_memory of {} clients at once, each with a connection of its own, beside one client",
            args.clients
        ),
        "searches/s",
        &crowd,
        mcp.rate,
    );
    at_once.note = format!(
        "{} searches, none of them refused; resident memory {:.0} MiB before, {:.0} after, {:.0} after once more (with the clients)",
        2 * args.clients * OF_CLIENT,
        mib[0],
        mib[1],
        mib[2]
    );
    Ok(vec![beside, at_once])
}

async fn fill(scratch: &Scratch, n: usize) -> anyhow::Result<()> {
    let env = &scratch.env;
    let mut conn = env.db.acquire().await?;
    let source_id = sources::ensure_manual(&mut conn, scratch.tenant_id).await?;
    drop(conn);
    let record = |nth: usize| {
        let text: Vec<&str> = (0..120).map(|word| WORDS[(nth * 7 + word * (1 + nth % 5)) % WORDS.len()]).collect();
        let text = format!("Note {nth}. {}", text.join(" "));
        Record {
            title: Some(format!("Note {nth}")),
            ..Record::new(source_id, format!("bench:{nth}"), DocumentType::Note, text)
        }
    };
    for batch in (0..n).map(record).collect::<Vec<_>>().chunks(BATCH) {
        let begin = || async { Ok(env.db.begin().await?) };
        let remembered = memory::remember(env, scratch.tenant_id, batch.to_vec(), begin).await;
        let (tx, _) = remembered.map_err(|fault| anyhow::anyhow!(fault.in_words()))?;
        tx.commit().await?;
    }
    Ok(())
}

fn question(nth: usize) -> String {
    format!("{} {} {}", WORDS[nth % 16], WORDS[(nth / 16 + 3) % 16], nth % 100)
}

fn by_api(to: SocketAddr, key: &Secret, text: &str) -> Vec<u8> {
    let text = text.replace(' ', "+");
    format!("GET /api/v1/search?q={text}&k=8 HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {}\r\n\r\n", key.reveal())
        .into()
}

fn by_mcp(to: SocketAddr, key: &Secret, text: &str) -> Vec<u8> {
    let params = json!({ "name": "search_memory", "arguments": { "query": text } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n{body}",
        key.reveal(),
        body.len()
    )
    .into()
}

async fn timed(client: &mut Client, request: &[u8]) -> anyhow::Result<f64> {
    let begun = Instant::now();
    let answer = client.ask(request).await?;
    let is_error = answer.body.windows(14).any(|part| part == b"\"isError\":true");
    let said = || String::from_utf8_lossy(answer.body).into_owned();
    ensure!(answer.status == 200 && !is_error, "it was refused ({}): {}", answer.status, said());
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}

async fn many(to: SocketAddr, key: &Secret, clients: usize) -> anyhow::Result<Round> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for of in 0..clients {
        let key = key.clone();
        tasks.spawn(async move {
            let mut client = Client::connect(to).await?;
            let mut times_ms = Vec::new();
            for nth in 0..OF_CLIENT {
                times_ms.push(timed(&mut client, &by_mcp(to, &key, &question(of * OF_CLIENT + nth))).await?);
            }
            anyhow::Ok(times_ms)
        });
    }
    let mut times_ms = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times_ms.extend(ended.context("a client")??);
    }
    Ok(Round { rate: times_ms.len() as f64 / begun.elapsed().as_secs_f64(), times_ms })
}
