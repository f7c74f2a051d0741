//! The time from an event's arrival to its listeners, at a steady hundred a second, beside a bare NOTIFY round trip on the same server.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use domain::{Caller, Scope};
use engine::bench::{Case, quantile};
use engine::channels::{self, NewChannel};
use engine::intake::providers;
use store::{bench, keys};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::client::Client;
use super::scratch::Scratch;

const EVENTS: usize = 1_000;
const EVERY: Duration = Duration::from_millis(10);

pub async fn run(scratch: &Scratch) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about half a minute");
    let serving = scratch.serve().await?;
    let ours = heard(scratch, serving.address).await?;
    serving.stop().await?;
    let bare = bench::notify_round_trips(&scratch.env.db, EVENTS, EVERY).await?;
    let (ours, bare) = (sorted(ours), sorted(bare));
    let (p50, bare_p50) = (quantile(&ours, 0.50), quantile(&bare, 0.50));
    Ok(vec![Case {
        case:
            "a signed event over HTTP until a subscriber hears of it, at 100 a second, beside a bare NOTIFY round trip"
                .into(),
        ours: p50,
        limit: bare_p50,
        ratio: bare_p50 / p50,
        unit: "ms (p50)",
        p50_ms: p50,
        p99_ms: quantile(&ours, 0.99),
        note: format!(
            "the bare round trip: p50 {bare_p50:.2} ms, p99 {:.2} ms; ours also verifies, matches and commits the event",
            quantile(&bare, 0.99)
        ),
    }])
}

fn sorted(mut times_ms: Vec<f64>) -> Vec<f64> {
    times_ms.sort_by(f64::total_cmp);
    times_ms
}

/// From the moment each request is sent to the moment its activity is named on the event stream.
async fn heard(scratch: &Scratch, address: std::net::SocketAddr) -> anyhow::Result<Vec<f64>> {
    let mut tx = scratch.env.db.begin().await?;
    let (_, key) = keys::create(&mut tx, scratch.tenant_id, None, "bench", &[Scope::Read]).await?;
    tx.commit().await?;
    let new = NewChannel {
        name: "bench".into(),
        provider: providers::DEFAULT.into(),
        max_per_minute: Some(None),
        ..NewChannel::default()
    };
    let channel = channels::add(&scratch.env, &Caller::local("bench", scratch.tenant_id, false), new).await?;
    let bearer = channel.secrets.proofs.get("bearer").context("a generic channel has a bearer key")?;
    let body = r#"{"type":"note","content":"is it here yet?"}"#;
    let request = format!(
        "POST /ingest/{} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        channel.secrets.ingestion_key.reveal(),
        bearer.reveal(),
        body.len()
    );

    let mut stream = TcpStream::connect(address).await?;
    let open = format!("GET /api/v1/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\r\n", key.reveal());
    stream.write_all(open.as_bytes()).await?;
    let (hear, mut named) = mpsc::unbounded_channel();
    let listening = tokio::spawn(async move {
        let mut buffer = Vec::new();
        while stream.read_buf(&mut buffer).await.is_ok_and(|n| n > 0) {
            let at = Instant::now();
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&buffer.drain(..=end).collect::<Vec<_>>()).into_owned();
                let change =
                    line.strip_prefix("data: ").and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
                let id = change
                    .filter(|change| change["kind"] == "activities")
                    .and_then(|change| Some(change["id"].as_str()?.to_owned()));
                if let Some(id) = id.filter(|id| !id.is_empty()) {
                    let _ = hear.send((id, at));
                }
            }
        }
    });

    let mut client = Client::connect(address).await?;
    let mut clock = tokio::time::interval(EVERY);
    let mut sent: HashMap<String, Instant> = HashMap::new();
    for _ in 0..EVENTS {
        clock.tick().await;
        let at = Instant::now();
        let answer = client.ask(request.as_bytes()).await?;
        ensure!(answer.status == 202, "an event was answered {}", answer.status);
        let accepted: serde_json::Value = serde_json::from_slice(answer.body)?;
        sent.insert(accepted["id"].as_str().context("an id")?.to_owned(), at);
    }
    let mut times_ms = Vec::new();
    while times_ms.len() < EVENTS {
        let next = tokio::time::timeout(Duration::from_secs(10), named.recv()).await;
        let (id, at) =
            next.ok().flatten().with_context(|| format!("{} of {EVENTS} events were told", times_ms.len()))?;
        if let Some(begun) = sent.remove(&id) {
            times_ms.push((at - begun).as_secs_f64() * 1_000.0);
        }
    }
    listening.abort();
    Ok(times_ms)
}
