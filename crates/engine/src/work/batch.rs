//! Runs a batch: decides which items run now, settles each by how it ended, and writes that down.

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
/// The time in which a stopping process stores results and waits for tasks that do not yield.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The pause before a suspect that found another one running is tried again.
const SUSPECTS_PAUSE: Duration = Duration::from_millis(250);

/// The result of a batch.
pub(super) struct Ran {
    /// It held an item whose holder died.
    pub met_suspect: bool,
    /// The session that acknowledged it, for the next claim: a session less to fetch and check.
    pub spare: Option<Connection>,
}

/// Claimed items, by what is done with each.
struct Sorted {
    /// Out of attempts.
    dead: Vec<Claimed>,
    run: Vec<Claimed>,
    /// Handed back at once, without costing an attempt.
    back: Vec<Claimed>,
    /// `run` is one item whose holder died: it may be what killed it.
    is_suspect: bool,
}

/// An item whose holder died or hung is a suspect. It runs alone and the rest of its batch is handed back, so that poison buries only
/// itself. Items that failed in an orderly way are no suspects. Lanes with long items are exempt: a suspect that runs for hours would
/// keep the suspects of all lanes waiting.
fn sort(claimed: Vec<Claimed>, max_attempts: i32, is_long: bool) -> Sorted {
    let (mut run, dead): (Vec<_>, Vec<_>) = claimed.into_iter().partition(|item| item.attempt() <= max_attempts);
    match run.iter().position(|item| item.lapses > 0) {
        Some(at) if !is_long => {
            let suspect = run.swap_remove(at);
            Sorted { dead, run: vec![suspect], back: run, is_suspect: true }
        }
        _ => Sorted { dead, run, back: Vec::new(), is_suspect: false },
    }
}

/// Runs what was claimed and settles each item. A suspect runs while no other suspect does in this process.
pub(super) async fn run_batch(runtime: &Runtime, lane: &Arc<LaneCounters>, claimed: Vec<Claimed>) -> Ran {
    lane.hold(claimed.iter().map(Claimed::receipt)); // all of it, from the first moment: settling some may take long
    let Sorted { dead, mut run, back, is_suspect } = sort(claimed, lane.entry.max_attempts, lane.entry.is_long);
    for item in dead {
        settle_dead(runtime, lane, item.receipt(), &given_up(&item)).await;
    }
    if runtime.stop.is_stopping() {
        run.extend(back);
        hand_back_all(runtime, lane, run, "handed back by a worker that was stopping").await;
        return Ran { met_suspect: false, spare: None };
    }
    hand_back_all(runtime, lane, back, "made room for an item that runs alone").await;
    let mut turn = None;
    if is_suspect {
        turn = runtime.suspects.try_lock().ok();
        if turn.is_none() {
            let later: Vec<_> = run.drain(..).map(|item| (item.receipt(), SUSPECTS_PAUSE)).collect();
            hand_back(runtime, lane, &later, "waits its turn: another item whose worker died is being tried").await;
        }
    }
    let spare = if run.is_empty() { None } else { run_together(runtime, lane, run).await };
    drop(turn);
    // Pages of this process see the change at once; those of others at their next look.
    runtime.env.db.bus().publish_here(Notice::lane(None, lane.entry.name, Op::Delete));
    Ran { met_suspect: is_suspect, spare }
}

/// The reason given for an item that became a dead letter after its last attempt.
fn given_up(item: &Claimed) -> String {
    let attempts = item.attempt() - 1;
    match item.lapses {
        0 => format!("given up after {attempts} attempts"),
        n => format!("given up after {attempts} attempts: {n} workers died or went silent while holding it"),
    }
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

/// Settles one item by how it ended. Items that were done without an effect of their own are collected in `done` and acknowledged
/// together; items that were stopped are collected in `back`.
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
    let verdict = verdict(&fault, attempt, receipt.read_ct, lane.entry.max_attempts, &mut rand::rng());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(msg_id: i64, attempt: i32, lapses: i32) -> Claimed {
        let (enqueued_at, message) = (chrono::DateTime::UNIX_EPOCH, serde_json::Value::Null);
        Claimed { msg_id, read_ct: attempt + 2, waits: 2, lapses, enqueued_at, message }
    }

    #[test]
    fn only_items_whose_holder_died_run_alone_and_not_in_long_lanes() {
        // (attempt, lapses) of each claimed item; then what is dead, run and handed back, by position.
        type Row = (&'static [(i32, i32)], bool, &'static [i64], &'static [i64], &'static [i64], bool);
        let rows: [Row; 7] = [
            (&[], false, &[], &[], &[], false),
            (&[(1, 0), (1, 0)], false, &[], &[0, 1], &[], false),
            (&[(1, 0), (5, 0)], false, &[], &[0, 1], &[], false), // failed in an orderly way
            (&[(1, 0), (2, 1), (1, 0)], false, &[], &[1], &[0, 2], true),
            (&[(2, 1), (3, 2)], false, &[], &[0], &[1], true),
            (&[(9, 3), (1, 0)], false, &[0], &[1], &[], false), // out of attempts: it runs no more
            (&[(2, 1)], true, &[], &[0], &[], false),
        ];
        for (items, is_long, dead, run, back, is_suspect) in rows {
            let list = items.iter().zip(0..).map(|((attempt, lapses), id)| claimed(id, *attempt, *lapses)).collect();
            let sorted = sort(list, 8, is_long);
            let ids = |items: &[Claimed]| items.iter().map(|item| item.msg_id).collect::<Vec<_>>();
            assert_eq!(
                (ids(&sorted.dead), ids(&sorted.run), ids(&sorted.back), sorted.is_suspect),
                (dead.to_vec(), run.to_vec(), back.to_vec(), is_suspect),
                "{items:?}, long: {is_long}"
            );
        }
    }

    #[test]
    fn a_dead_letter_says_whether_its_workers_died() {
        assert_eq!(given_up(&claimed(1, 9, 0)), "given up after 8 attempts");
        let died = "given up after 8 attempts: 3 workers died or went silent while holding it";
        assert_eq!(given_up(&claimed(1, 9, 3)), died);
    }
}
