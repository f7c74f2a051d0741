//! Claims and completions in batches beside a bare SKIP LOCKED and UPDATE of the same rows; and one at a time over HTTP.

use std::time::{Duration, Instant};

use anyhow::ensure;
use domain::{Caller, Scope};
use engine::bench::{Case, ROUNDS, Round, median};
use serde_json::{Value, json};
use store::{Db, bench, claims, keys, people};
use tokio::task::JoinSet;

use super::client::Client;
use super::scratch::Scratch;

const ACTIVITIES: i64 = 20_000;
const BATCH: i32 = 50;
const CONNECTIONS: usize = 4;
const SINGLES: usize = 2_000;

pub async fn run(scratch: &Scratch) -> anyhow::Result<Vec<Case>> {
    eprintln!("measuring; about a minute");
    let mut tx = scratch.env.db.begin().await?;
    let person = people::ensure(&mut tx, scratch.tenant_id, "bench@tributary.invalid").await?;
    let (_, key) = keys::create(&mut tx, scratch.tenant_id, Some(person), "bench", &[Scope::Agent]).await?;
    tx.commit().await?;
    let mut conn = scratch.env.db.acquire().await?;
    let agent = keys::authenticate(&mut conn, &key).await?.ok_or_else(|| anyhow::anyhow!("the key is not known"))?;
    drop(conn);

    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (rounds, is_ours) in [(&mut limit, false), (&mut ours, true)] {
            fill(scratch, ACTIVITIES).await?;
            rounds.push(drain(scratch, &agent, is_ours).await?);
        }
    }
    let (ours, limit) = (median(ours), median(limit));
    let at = format!("n={BATCH}, {CONNECTIONS} connections");
    let batched = Case::new(
        format!("claim and complete in SQL, beside a bare SKIP LOCKED and UPDATE of the same rows ({at})"),
        "activities/s",
        &ours,
        limit.rate,
    );

    fill(scratch, SINGLES as i64).await?;
    let serving = scratch.serve().await?;
    let singles = over_http(&serving, key.reveal()).await?;
    serving.stop().await?;
    let mut single = Case::new(
        "claim, then complete, one at a time over HTTP on one connection, beside batches in SQL".into(),
        "activities/s",
        &singles,
        ours.rate,
    );
    single.note = "p50 and p99 are of a claim and its completion together".into();
    Ok(vec![batched, single])
}

async fn fill(scratch: &Scratch, n: i64) -> anyhow::Result<()> {
    let mut conn = scratch.env.db.acquire().await?;
    bench::fresh_activities(&mut conn, scratch.tenant_id, n).await?;
    drop(conn);
    Ok(bench::analyze(&scratch.env.db).await?)
}

async fn drain(scratch: &Scratch, agent: &Caller, is_ours: bool) -> anyhow::Result<Round> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (db, agent) = (scratch.env.db.clone(), agent.clone());
        tasks.spawn(async move {
            let (mut n, mut times_ms) = (0, Vec::new());
            loop {
                let begun = Instant::now();
                let moved = if is_ours { batch(&db, &agent).await? } else { bare(&db, &agent).await? };
                if moved == 0 {
                    return Ok::<_, store::Error>((n, times_ms));
                }
                n += moved;
                times_ms.push(ms(begun.elapsed()));
            }
        });
    }
    let (mut n, mut times_ms) = (0, Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (moved, times) = done??;
        n += moved;
        times_ms.extend(times);
    }
    ensure!(i64::try_from(n)? == ACTIVITIES, "{ACTIVITIES} activities waited and {n} were completed");
    Ok(Round { rate: n as f64 / begun.elapsed().as_secs_f64(), times_ms })
}

/// Claims and completes a batch as the built-in agent does.
async fn batch(db: &Db, agent: &Caller) -> store::Result<usize> {
    let mut tx = db.begin_as(agent).await?;
    let claimed = claims::claim(&mut tx, BATCH, &["text", "url"]).await?;
    tx.commit().await?;
    if claimed.is_empty() {
        return Ok(0);
    }
    let results: Vec<_> = claimed.into_iter().map(|claim| (claim.id, claim.lock_epoch, made())).collect();
    let mut tx = db.begin().await?;
    let completed = claims::complete(&mut tx, agent.tenant_id, agent.key_id, &results).await?;
    tx.commit().await?;
    Ok(completed.len())
}

async fn bare(db: &Db, agent: &Caller) -> store::Result<usize> {
    let mut tx = db.begin().await?;
    let claimed = bench::bare_claim(&mut tx, agent.tenant_id, BATCH).await?;
    tx.commit().await?;
    if claimed.is_empty() {
        return Ok(0);
    }
    let mut tx = db.begin().await?;
    let completed = bench::bare_complete(&mut tx, agent.tenant_id, &claimed, &made()).await?;
    tx.commit().await?;
    Ok(completed)
}

fn made() -> Value {
    json!({ "summary": "A question about an invoice.", "facts": ["names the amount 120 EUR"] })
}

async fn over_http(serving: &super::scratch::Serving, key: &str) -> anyhow::Result<Round> {
    let mut client = Client::connect(serving.address).await?;
    let request = |method: &str, path: &str, body: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nPrefer: return=representation\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let claim = request("POST", "/rest/v1/rpc/claim_next_pending_activity", "{}");
    let done = json!({ "processing_status": "completed", "processed_data": made() }).to_string();
    let (begun, mut times_ms) = (Instant::now(), Vec::new());
    loop {
        let started = Instant::now();
        let answer = client.ask(claim.as_bytes()).await?;
        ensure!(answer.status == 200, "a claim was answered {}", answer.status);
        let claimed: Value = serde_json::from_slice(answer.body)?;
        let Some(row) = claimed.get(0) else { break };
        let id = row["id"].as_str().unwrap_or_default();
        let path = format!("/rest/v1/activities?id=eq.{id}&lock_epoch=eq.{}&select=id", row["lock_epoch"]);
        let answer = client.ask(request("PATCH", &path, &done).as_bytes()).await?;
        ensure!(answer.status == 200, "a completion was answered {}", answer.status);
        times_ms.push(ms(started.elapsed()));
    }
    ensure!(times_ms.len() == SINGLES, "{SINGLES} activities waited and {} were completed", times_ms.len());
    Ok(Round { rate: SINGLES as f64 / begun.elapsed().as_secs_f64(), times_ms })
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
