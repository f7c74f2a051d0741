//! What happens to a batch: who runs alone, how each item ends, and how that is written down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::fault::{Verdict, verdict};
use domain::{Fault, ItemState, Notice, Op};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use store::Connection;
use store::crash::{self, Point};
use store::queue::{Claimed, Receipt, Settlement};
use tokio::task::JoinError;
use tracing::Instrument as _;

use super::counters::{Ended, LaneCounters};
use super::runtime::{DB_LIMIT, Runtime};
use super::{Lease, Outcome};

/// Longer waits leave the queue (`parked`).
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// How long a stopping process tries to write down what it knows, and waits for tasks that do not yield.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a batch leaves behind.
pub(super) struct Ran {
    /// It held an item on its second attempt or later.
    pub met_retry: bool,
    /// The session that acknowledged it, for the next claim: a session less to fetch and check.
    pub spare: Option<Connection>,
}

/// Runs what was claimed and settles each. An item on its second attempt or later runs alone, and the rest of the batch is handed
/// back, so that poison buries only itself. One whose holder died is a suspect: it runs while no other suspect does.
pub(super) async fn run_batch(runtime: &Runtime, lane: &Arc<LaneCounters>, claimed: Vec<Claimed>) -> Ran {
    lane.hold(claimed.iter().map(Claimed::receipt)); // all of it, from the first moment: settling some may take long
    let (mut batch, dead): (Vec<_>, Vec<_>) =
        claimed.into_iter().partition(|item| item.attempt() <= lane.entry.max_attempts);
    for item in dead {
        let reason = match item.lapses {
            0 => format!("given up after {} attempts", item.attempt() - 1),
            n => format!(
                "given up after {} attempts: {n} workers died or went silent while holding it",
                item.attempt() - 1
            ),
        };
        settle_dead(runtime, lane, item.receipt(), &reason).await;
    }
    if runtime.stop.is_stopping() {
        hand_back_all(runtime, lane, batch, "handed back by a worker that was stopping").await;
        return Ran { met_retry: false, spare: None };
    }
    let retried = batch.iter().position(|item| item.attempt() > 1);
    let mut turn = None;
    if let Some(at) = retried {
        let alone = batch.swap_remove(at);
        hand_back_all(runtime, lane, std::mem::take(&mut batch), "made room for an item that runs alone").await;
        turn = runtime.suspects.try_lock().ok();
        if alone.lapses > 0 && turn.is_none() {
            let later = [(alone.receipt(), Duration::from_millis(250))];
            hand_back(runtime, lane, &later, "waits its turn: another item whose worker died is being tried").await;
        } else {
            batch.push(alone);
        }
    }
    let spare = if batch.is_empty() { None } else { run_together(runtime, lane, batch).await };
    drop(turn);
    // Pages of this process see the change at once; those of others at their next look.
    runtime.env.db.bus().publish_here(Notice::lane(None, lane.entry.name, Op::Delete));
    Ran { met_retry: retried.is_some(), spare }
}

async fn run_together(runtime: &Runtime, lane: &Arc<LaneCounters>, batch: Vec<Claimed>) -> Option<Connection> {
    let mut running = FuturesUnordered::new();
    let mut tasks = Vec::new();
    for item in batch {
        let lease = Lease::new(lane.entry.queue(), &item, lane.entry.lease_secs);
        let (msg_id, attempt) = (lease.receipt().msg_id, lease.attempt());
        let span = tracing::info_span!("lane", lane = lane.entry.name, item = msg_id, attempt);
        let (env, entry, task_lease, message) = (runtime.env.clone(), lane.entry, lease.clone(), item.message);
        let task = tokio::spawn(
            async move {
                let limit = entry.max_run;
                let done = tokio::time::timeout(limit, (entry.run)(message, &env, &task_lease)).await;
                done.unwrap_or_else(|_| {
                    Err(Fault::Transient(anyhow::anyhow!("it ran longer than {} s and was stopped", limit.as_secs())))
                })
            }
            .instrument(span),
        );
        lane.running(&lease, task.abort_handle());
        tasks.push(task.abort_handle());
        running.push(async move { (lease, task.await) });
    }
    let grace = async {
        runtime.stop.stopped().await;
        if crash::at(Point::DrainBegun).is_ok() {
            tokio::time::sleep(Duration::from_secs(runtime.env.config.drain_secs)).await;
        }
    };
    tokio::pin!(grace);
    let (mut done, mut back) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            next = running.next() => match next {
                None => break,
                Some((lease, ended)) => settle_one(runtime, lane, &lease, ended, &mut done, &mut back).await,
            },
            () = &mut grace => {
                for task in &tasks {
                    task.abort();
                }
                // A task that never yields cannot be stopped; it ends with the process, and its lease by itself.
                let _ = tokio::time::timeout(LAST_WORDS, async {
                    while let Some((lease, ended)) = running.next().await {
                        settle_one(runtime, lane, &lease, ended, &mut done, &mut back).await;
                    }
                })
                .await;
                break;
            }
        }
    }
    hand_back(runtime, lane, &back, "handed back: its worker was stopping, or had lost it").await;
    if done.is_empty() { None } else { settle(runtime, lane, Settlement::Finish(&done), Ended::Done, None).await }
}

/// Writes down how one item ended. What was done without an effect of its own is collected and acknowledged together, and so is
/// what was stopped.
async fn settle_one(
    runtime: &Runtime,
    lane: &LaneCounters,
    lease: &Lease,
    ended: Result<Result<Outcome, Fault>, JoinError>,
    done: &mut Vec<Receipt>,
    back: &mut Vec<(Receipt, Duration)>,
) {
    let receipt = lease.receipt();
    let ended = match ended {
        Ok(ended) => ended,
        // By the drain, or by the heartbeat because the lease was lost; then handing back changes nothing.
        Err(stopped) if stopped.is_cancelled() => return back.push((receipt, Duration::ZERO)),
        Err(panicked) => Err(Fault::Transient(anyhow::anyhow!("the lane panicked: {}", panic_message(panicked)))),
    };
    match ended {
        Ok(Outcome::Done) if lease.is_finished() => {
            lane.release([receipt]);
            lane.count(&runtime.beats, Ended::Done, None);
        }
        Ok(Outcome::Done) => done.push(receipt), // still held: its lease is kept until it is acknowledged
        Ok(Outcome::Snooze(delay, reason)) => wait_or_park(runtime, lane, receipt, delay, reason).await,
        Ok(Outcome::Cancel(reason)) => {
            settle(runtime, lane, Settlement::Bury(receipt, ItemState::Skipped, reason), Ended::Cancelled, None).await;
        }
        Err(fault) => settle_fault(runtime, lane, lease, fault).await,
    }
}

async fn settle_fault(runtime: &Runtime, lane: &LaneCounters, lease: &Lease, fault: Fault) {
    let (receipt, attempt) = (lease.receipt(), lease.attempt());
    let words = fault.in_words();
    let verdict = verdict(&fault, attempt, lane.entry.max_attempts, &mut rand::rng());
    match verdict {
        Verdict::Drop => {
            lane.release([receipt]);
            lane.count(&runtime.beats, Ended::Stale, None);
        }
        Verdict::Wait(delay) => wait_or_park(runtime, lane, receipt, delay, &words).await,
        Verdict::Retry(delay) => {
            let (lane_name, item) = (lane.entry.name, receipt.msg_id);
            tracing::warn!(lane = lane_name, item, attempt, "item failed, will retry: {words}");
            settle(runtime, lane, Settlement::Fail(receipt, delay, &words), Ended::Failed, Some(&words)).await;
        }
        Verdict::Bury => settle_dead(runtime, lane, receipt, &words).await,
    }
}

async fn settle_dead(runtime: &Runtime, lane: &LaneCounters, receipt: Receipt, reason: &str) {
    tracing::error!(lane = lane.entry.name, item = receipt.msg_id, "item given up: {reason}");
    settle(runtime, lane, Settlement::Bury(receipt, ItemState::Dead, reason), Ended::Dead, Some(reason)).await;
}

async fn wait_or_park(runtime: &Runtime, lane: &LaneCounters, receipt: Receipt, delay: Duration, reason: &str) {
    if delay <= LONGEST_WAIT {
        return hand_back(runtime, lane, &[(receipt, delay)], reason).await;
    }
    settle(runtime, lane, Settlement::Park(receipt, reason, Some(delay)), Ended::Parked, None).await;
}

async fn hand_back_all(runtime: &Runtime, lane: &LaneCounters, batch: Vec<Claimed>, reason: &str) {
    let back: Vec<_> = batch.iter().map(|item| (item.receipt(), Duration::ZERO)).collect();
    hand_back(runtime, lane, &back, reason).await;
}

async fn hand_back(runtime: &Runtime, lane: &LaneCounters, back: &[(Receipt, Duration)], reason: &str) {
    if !back.is_empty() {
        settle(runtime, lane, Settlement::Wait(back, reason), Ended::Waited, None).await;
    }
}

/// Writes one settlement down, lets go of its items and counts them. Tried again while the lease can still be ours, because the
/// server may be restarting; repeating is safe, because a settlement names its receipts and a second run finds nothing to change.
/// A receipt that was worthless counts as stale. Returns the session it used.
async fn settle(
    runtime: &Runtime,
    lane: &LaneCounters,
    settlement: Settlement<'_>,
    ended: Ended,
    error: Option<&str>,
) -> Option<Connection> {
    let begun = Instant::now();
    let settled = loop {
        let tried = store::within(DB_LIMIT, async {
            crash::at(Point::SettleBefore)?;
            let mut conn = runtime.env.db.acquire().await?;
            let ours = lane.entry.queue().settle(&mut conn, runtime.env.clock.sql(), &settlement).await?;
            crash::at(Point::SettleAfter)?;
            Ok((ours, conn))
        });
        let lease = Duration::from_secs(u64::from(lane.entry.lease_secs));
        let patience = if runtime.stop.is_stopping() { LAST_WORDS } else { lease };
        match tried.await {
            Err(trouble) if trouble.is_passing() && begun.elapsed() < patience => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            settled => break settled,
        }
    };
    let receipts = settlement.receipts();
    lane.release(receipts.iter().copied());
    match settled {
        Ok((ours, conn)) => {
            for nth in 0..receipts.len() {
                let (ended, error) = if nth < ours { (ended, error) } else { (Ended::Stale, None) };
                lane.count(&runtime.beats, ended, error);
            }
            Some(conn)
        }
        // Unknown, so nothing is counted: it was recorded, or the item is claimed again when its lease ends.
        Err(trouble) => {
            tracing::warn!(lane = lane.entry.name, error = ?trouble, "an outcome could not be recorded");
            None
        }
    }
}

fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "without words".into()),
        Err(error) => error.to_string(),
    }
}
