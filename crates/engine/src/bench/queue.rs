//! Compares the lane runtime with pgmq's own read and delete.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use store::{Db, bench};

use super::{Case, ROUNDS, Round, median};
use crate::database::Database;
use crate::work::{Lane, LaneEntry, Lease, Outcome, Runtime};
use crate::{Config, Env};

const MESSAGES: i64 = 40_000;
const BATCH: u32 = 50;
const CONNECTIONS: usize = 4;
const BYSTANDERS: i64 = 100_000;
const QUEUE: &str = "bench_queue";

/// A lane that does nothing, so that only the runtime is measured: claim, fence, outcome per item, acknowledgement.
#[derive(Serialize, Deserialize)]
struct Nothing {}

impl Lane for Nothing {
    const NAME: &'static str = QUEUE;
    const BATCH: u32 = BATCH;

    async fn run(self, _: &Env, _: &Lease) -> Result<Outcome, domain::Fault> {
        Ok(Outcome::Done)
    }
}

static LANES: [LaneEntry; 1] = [LaneEntry::of::<Nothing>()];

/// Compares the lane runtime with pgmq's own read and delete, with the same batch size and connections. Then measures the runtime
/// with many rows that are not due.
pub async fn queue(database: &Database, config: &Config) -> anyhow::Result<Vec<Case>> {
    let mut admin = bench::administrator(&database.admin).await?;
    let db = Db::lazy(&database.login, u32::try_from(CONNECTIONS)?, Duration::from_secs(10));
    let env = Env { db, ..database.env(config)? };
    let lane = &LANES[0];
    let (mut ours, mut limit, mut crowded) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (rounds, is_ours, bystanders) in
            [(&mut limit, false, 0), (&mut ours, true, 0), (&mut crowded, true, BYSTANDERS)]
        {
            bench::fresh_queue(&mut admin, QUEUE).await?;
            if bystanders > 0 {
                bench::fill(&mut admin, lane.queue(), bystanders, 86_400.0).await?;
            }
            bench::fill(&mut admin, lane.queue(), MESSAGES, -1.0).await?;
            rounds.push(drain(&env, is_ours).await?);
        }
    }
    bench::drop_queue(&mut admin, QUEUE).await?;
    let at = format!("n={BATCH}, {CONNECTIONS} connections");
    let (ours, limit, crowded) = (median(ours), median(limit), median(crowded));
    Ok(vec![
        Case::new(format!("claim and finish, beside pgmq.read + pgmq.delete ({at})"), "items/s", &ours, limit.rate),
        Case::new(
            format!("the same with {BYSTANDERS} delayed rows, beside without ({at})"),
            "items/s",
            &crowded,
            ours.rate,
        ),
    ])
}

async fn drain(env: &Env, is_ours: bool) -> anyhow::Result<Round> {
    let runtime = Arc::new(Runtime::new(env.clone(), &LANES, &[]));
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (env, runtime) = (env.clone(), runtime.clone());
        tasks.spawn(async move {
            let mut batches_ms = Vec::new();
            let mut time = |took: Duration| batches_ms.push(took.as_secs_f64() * 1_000.0);
            let mut moved = 0;
            if is_ours {
                moved = runtime.run_due_timed(&mut time).await?;
            } else {
                let mut conn = env.db.acquire().await?;
                loop {
                    let begun = Instant::now();
                    match bench::pgmq_round(&mut conn, LANES[0].queue(), i32::try_from(BATCH).unwrap_or(i32::MAX))
                        .await?
                    {
                        0 => break,
                        n => moved += n,
                    }
                    time(begun.elapsed());
                }
            }
            Ok::<_, store::Error>((moved, batches_ms))
        });
    }
    let (mut moved, mut batches_ms) = (0, Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (n, times) = done??;
        moved += n;
        batches_ms.extend(times);
    }
    let rate = moved as f64 / begun.elapsed().as_secs_f64();
    anyhow::ensure!(i64::try_from(moved)? == MESSAGES, "the queue held {MESSAGES} messages and {moved} were moved");
    Ok(Round { rate, times_ms: batches_ms })
}
