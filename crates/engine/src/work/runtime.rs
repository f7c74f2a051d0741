//! The runtime: claims, runs, keeps hold, settles. One per process, for all lanes.
//!
//! Polling is the truth and waking is a hint: an idle lane looks every second, or at once when a notice names it. A process
//! whose database goes away keeps trying and loses nothing: what it held is claimed again when its lease ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::fault::{Verdict, verdict};
use domain::{Fault, ItemState, Notice, Op};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use store::crash::{self, Point};
use store::queue::{Claimed, Receipt, Settlement};
use tokio::sync::{broadcast, watch};
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument as _;

use super::counters::{Beats, Ended, Held, LaneCounters};
use super::{LaneEntry, Lease, Outcome, scheduler, tracking};
use crate::Env;

const POLL: Duration = Duration::from_secs(1);
/// Longer waits leave the queue (`parked`).
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// One call to the database, connection included. Longer than a server's restart, shorter than any lease.
const DB_LIMIT: Duration = Duration::from_secs(15);

/// Asks everything that listens to stop: no new claims, then a drain.
#[derive(Clone)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stop {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn stopped(&self) {
        let mut seen = self.0.subscribe();
        let _ = seen.wait_for(|stopping| *stopping).await;
    }
}

pub struct Runtime {
    env: Env,
    lanes: Vec<Arc<LaneCounters>>,
    beats: Arc<Beats>,
    /// How this process is called in `headers.by`: worker id once tracked, else host and pid.
    name: String,
}

impl Runtime {
    pub fn new(env: Env, lanes: &'static [LaneEntry]) -> Self {
        let name = format!("{}:{}", tracking::host(), std::process::id());
        Self { env, lanes: lanes.iter().map(LaneCounters::new).collect(), beats: Arc::default(), name }
    }

    /// Runs every lane, the schedules and the heartbeat until told to stop, then drains: what is in hand is finished, or handed
    /// back when the grace is over. `role` is what the Workers page calls this process.
    pub async fn run(self, role: &str, stop: Stop) {
        let this = Arc::new(self);
        let drained = Stop::default();
        let tracked =
            tracking::run(this.env.clone(), this.lanes.clone(), this.beats.clone(), role.to_owned(), drained.clone());
        let tracking = tokio::spawn(tracked);
        let mut background = JoinSet::new();
        background.spawn(store::notices::relay(this.env.db.clone()));
        background.spawn(scheduler::run(this.env.clone(), stop.clone()));
        for lane in &this.lanes {
            background.spawn(keep_leases(this.env.clone(), lane.clone()));
        }
        let mut loops = JoinSet::new();
        for lane in &this.lanes {
            for _ in 0..this.env.config.lane_slots {
                loops.spawn(lane_loop(this.clone(), lane.clone(), stop.clone()));
            }
        }
        while loops.join_next().await.is_some() {}
        background.abort_all(); // leases and notices were kept up to here, while draining
        drained.stop();
        let _ = tracking.await; // says goodbye with the last counts
    }

    /// Works off everything that is due now, in this task; returns how many items were settled. For tests and one-off commands.
    pub async fn run_due(&self) -> store::Result<usize> {
        let mut settled = 0;
        loop {
            let before = settled;
            settled += self.run_once().await?;
            if settled == before {
                return Ok(settled);
            }
        }
    }

    /// One batch of each lane; returns how many items were settled.
    pub async fn run_once(&self) -> store::Result<usize> {
        let mut settled = 0;
        for lane in &self.lanes {
            let claimed = claim(&self.env, lane, lane.entry.batch, &self.name).await?;
            settled += claimed.len();
            run_batch(self, lane, claimed, &Stop::default()).await;
        }
        Ok(settled)
    }
}

/// One slot of a lane: claim, run, settle, until told to stop.
async fn lane_loop(runtime: Arc<Runtime>, lane: Arc<LaneCounters>, stop: Stop) {
    let mut wake = runtime.env.db.bus().subscribe();
    let mut limit = lane.entry.batch;
    let mut troubles = 0_u32;
    while !stop.is_stopping() {
        match claim(&runtime.env, &lane, limit, &runtime.name).await {
            Ok(claimed) if claimed.is_empty() => {
                (troubles, limit) = (0, lane.entry.batch);
                tokio::select! {
                    () = tokio::time::sleep(POLL) => {}
                    () = woken(&mut wake, lane.entry.name) => {}
                    () = stop.stopped() => {}
                }
            }
            Ok(claimed) => {
                troubles = 0;
                // While items on their second attempt come up, one is claimed at a time: each has to run alone anyway.
                limit = if run_batch(&runtime, &lane, claimed, &stop).await { 1 } else { lane.entry.batch };
            }
            Err(error) => {
                troubles += 1;
                if troubles == 1 {
                    tracing::warn!(lane = lane.entry.name, error = ?error, "lane {} cannot claim, will keep trying", lane.entry.name);
                }
                let pause = Duration::from_millis(250 << troubles.min(4));
                tokio::select! { () = tokio::time::sleep(pause) => {} () = stop.stopped() => {} }
            }
        }
    }
}

/// Ends when a notice says that this lane has work, or that something was missed.
async fn woken(wake: &mut broadcast::Receiver<Notice>, lane: &str) {
    loop {
        match wake.recv().await {
            Ok(notice) if notice.op == Op::Resync && notice.kind == "*" => return,
            Ok(notice) if notice.kind.strip_prefix("lane:") == Some(lane) && notice.op != Op::Delete => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

async fn claim(env: &Env, lane: &LaneCounters, limit: u32, by: &str) -> store::Result<Vec<Claimed>> {
    let claimed = store::within(DB_LIMIT, async {
        let mut conn = env.db.acquire().await?;
        lane.entry.queue().claim(&mut conn, env.clock.sql(), limit, lane.entry.lease_secs, by).await
    });
    let claimed = claimed.await?;
    lane.looked(claimed.len());
    crash::at(Point::ClaimAfter)?;
    Ok(claimed)
}

/// Runs what was claimed and settles each. Returns whether it met an item on its second attempt or later: that one ran alone, and
/// the rest of the batch was handed back, so that poison buries only itself.
async fn run_batch(runtime: &Runtime, lane: &Arc<LaneCounters>, claimed: Vec<Claimed>, stop: &Stop) -> bool {
    let (mut batch, dead): (Vec<_>, Vec<_>) =
        claimed.into_iter().partition(|item| item.attempt() <= lane.entry.max_attempts);
    for item in dead {
        let reason = format!("given up: {} workers died or went silent while holding it", item.attempt() - 1);
        settle_dead(runtime, lane, item.receipt(), &reason).await;
    }
    let retried = batch.iter().position(|item| item.attempt() > 1);
    if let Some(at) = retried {
        let alone = batch.swap_remove(at);
        let back: Vec<_> = batch.drain(..).map(|item| (item.receipt(), Duration::ZERO)).collect();
        hand_back(runtime, lane, &back, "made room for an item that runs alone").await;
        batch.push(alone);
    }
    if !batch.is_empty() {
        run_together(runtime, lane, batch, stop).await;
    }
    // Pages of this process see the change at once; those of others at their next look.
    runtime.env.db.bus().publish_here(Notice::lane(None, lane.entry.name, Op::Delete));
    retried.is_some()
}

async fn run_together(runtime: &Runtime, lane: &Arc<LaneCounters>, batch: Vec<Claimed>, stop: &Stop) {
    let mut running = FuturesUnordered::new();
    for item in batch {
        let lease = Lease::new(lane.entry.queue(), &item);
        let receipt = lease.receipt();
        lane.held().insert(receipt, Held { task: None, since: Instant::now() });
        let span =
            tracing::info_span!("lane", lane = lane.entry.name, item = receipt.msg_id, attempt = lease.attempt());
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
        if let Some(held) = lane.held().get_mut(&receipt) {
            held.task = Some(task.abort_handle());
        }
        running.push(async move { (lease, task.await) });
    }
    let grace = async {
        stop.stopped().await;
        if crash::at(Point::DrainBegun).is_ok() {
            tokio::time::sleep(Duration::from_secs(runtime.env.config.drain_secs)).await;
        }
    };
    tokio::pin!(grace);
    let mut done = Vec::new();
    loop {
        tokio::select! {
            next = running.next() => match next {
                None => break,
                Some((lease, ended)) => settle_one(runtime, lane, &lease, ended, &mut done).await,
            },
            () = &mut grace => {
                // Out of patience: stop what still runs; each then ends as cancelled and is handed back.
                for held in lane.held().values() {
                    if let Some(task) = &held.task { task.abort(); }
                }
                while let Some((lease, ended)) = running.next().await {
                    settle_one(runtime, lane, &lease, ended, &mut done).await;
                }
                break;
            }
        }
    }
    finish_all(runtime, lane, &done).await;
}

/// Writes down how one item ended. What was done without an effect of its own is collected and acknowledged together.
async fn settle_one(
    runtime: &Runtime,
    lane: &Arc<LaneCounters>,
    lease: &Lease,
    ended: Result<Result<Outcome, Fault>, JoinError>,
    done: &mut Vec<Receipt>,
) {
    let receipt = lease.receipt();
    let ended = match ended {
        Ok(ended) => ended,
        Err(stopped) if stopped.is_cancelled() => {
            // Aborted: by the drain, or by the heartbeat because the lease was lost; then handing back changes nothing.
            hand_back(runtime, lane, &[(receipt, Duration::ZERO)], "handed back by a worker that was stopping").await;
            lane.held().remove(&receipt);
            return;
        }
        Err(panicked) => Err(Fault::Transient(anyhow::anyhow!("the lane panicked: {}", panic_message(panicked)))),
    };
    match ended {
        Ok(Outcome::Done) if lease.is_finished() => {
            lane.count(&runtime.beats, Ended::Done, None);
            lane.held().remove(&receipt);
        }
        Ok(Outcome::Done) => done.push(receipt), // still held: its lease is kept until it is acknowledged
        Ok(Outcome::Snooze(delay, reason)) => {
            wait_or_park(runtime, lane, receipt, delay, reason).await;
            lane.held().remove(&receipt);
        }
        Ok(Outcome::Cancel(reason)) => {
            settle(runtime, lane, Settlement::Bury(receipt, ItemState::Skipped, reason), Ended::Cancelled, None).await;
            lane.held().remove(&receipt);
        }
        Err(fault) => {
            settle_fault(runtime, lane, lease, fault).await;
            lane.held().remove(&receipt);
        }
    }
}

async fn settle_fault(runtime: &Runtime, lane: &Arc<LaneCounters>, lease: &Lease, fault: Fault) {
    let receipt = lease.receipt();
    let words = fault.in_words();
    let verdict = verdict(&fault, lease.attempt(), lane.entry.max_attempts, &mut rand::rng());
    match verdict {
        Verdict::Drop => lane.count(&runtime.beats, Ended::Stale, None),
        Verdict::Wait(delay) => wait_or_park(runtime, lane, receipt, delay, &words).await,
        Verdict::Retry(delay) => {
            tracing::warn!(
                lane = lane.entry.name,
                item = receipt.msg_id,
                attempt = lease.attempt(),
                "item failed, will retry: {words}"
            );
            settle(runtime, lane, Settlement::Fail(receipt, delay, &words), Ended::Failed, Some(&words)).await;
        }
        Verdict::Park => {
            settle(runtime, lane, Settlement::Park(receipt, &words, None), Ended::Parked, Some(&words)).await
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
    let until = runtime.env.clock.now() + chrono::TimeDelta::from_std(delay).unwrap_or(chrono::TimeDelta::days(1));
    settle(runtime, lane, Settlement::Park(receipt, reason, Some(until)), Ended::Parked, None).await;
}

async fn hand_back(runtime: &Runtime, lane: &LaneCounters, back: &[(Receipt, Duration)], reason: &str) {
    if !back.is_empty() {
        settle(runtime, lane, Settlement::Wait(back, reason), Ended::Waited, None).await;
    }
}

async fn finish_all(runtime: &Runtime, lane: &LaneCounters, done: &[Receipt]) {
    if !done.is_empty() {
        settle(runtime, lane, Settlement::Finish(done), Ended::Done, None).await;
    }
    let mut held = lane.held();
    for receipt in done {
        held.remove(receipt);
    }
}

/// Writes one settlement down and counts it. Tried again while the lease can still be ours, because the server may be restarting;
/// repeating is safe, because a settlement names its receipts and a second run finds nothing to change. A receipt that was worthless
/// counts as stale.
async fn settle(runtime: &Runtime, lane: &LaneCounters, settlement: Settlement<'_>, ended: Ended, error: Option<&str>) {
    let deadline = Instant::now() + Duration::from_secs(u64::from(lane.entry.lease_secs));
    let settled = loop {
        let tried = store::within(DB_LIMIT, async {
            crash::at(Point::SettleBefore)?;
            let mut conn = runtime.env.db.acquire().await?;
            let ours = lane.entry.queue().settle(&mut conn, runtime.env.clock.sql(), &settlement).await?;
            crash::at(Point::SettleAfter)?;
            Ok(ours)
        });
        match tried.await {
            Err(trouble) if trouble.is_passing() && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(200)).await
            }
            settled => break settled,
        }
    };
    match settled {
        Ok(ours) => {
            for nth in 0..settlement.receipts() {
                if nth < ours {
                    lane.count(&runtime.beats, ended, error)
                } else {
                    lane.count(&runtime.beats, Ended::Stale, None)
                }
            }
        }
        // Unknown, so nothing is counted: it was recorded, or the item is claimed again when its lease ends.
        Err(trouble) => tracing::warn!(lane = lane.entry.name, error = ?trouble, "an outcome could not be recorded"),
    }
}

/// Keeps the leases of what this process holds, while it lives and its items have not hung. An item that is lost is stopped.
async fn keep_leases(env: Env, lane: Arc<LaneCounters>) {
    let every = Duration::from_secs_f64((f64::from(lane.entry.lease_secs) / 3.0).max(0.2));
    loop {
        tokio::time::sleep(every).await;
        let hung = lane.entry.max_run + Duration::from_secs(5);
        let receipts: Vec<Receipt> =
            lane.held().iter().filter(|(_, held)| held.since.elapsed() < hung).map(|(receipt, _)| *receipt).collect();
        if receipts.is_empty() {
            continue;
        }
        let extended = store::within(DB_LIMIT.min(every), async {
            let mut conn = env.db.acquire().await?;
            lane.entry.queue().extend(&mut conn, env.clock.sql(), &receipts, lane.entry.lease_secs).await
        });
        match extended.await {
            Ok(lost) => {
                for receipt in lost {
                    if let Some(task) = lane.held().get(&receipt).and_then(|held| held.task.as_ref()) {
                        tracing::info!(
                            lane = lane.entry.name,
                            item = receipt.msg_id,
                            "an item was taken from us; its task is stopped"
                        );
                        task.abort();
                    }
                }
            }
            Err(error) => tracing::debug!(lane = lane.entry.name, error = ?error, "leases were not extended this time"),
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
