//! The runtime: claims items, runs them, keeps their leases. One per process, for all lanes. `batch` runs and settles what is claimed.
//!
//! Polling is the truth and waking is a hint: an idle lane looks every second, or at once when a notice names it. A process
//! whose database goes away keeps trying and loses nothing: what it held is claimed again when its lease ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{Notice, Op};
use store::crash::{self, Point};
use store::queue::{Claimed, Receipt};
use store::{Connection, Db};
use tokio::sync::{Mutex, broadcast, watch};
use tokio::task::JoinSet;

use super::batch::run_batch;
use super::counters::{Beats, LaneCounters};
use super::{LaneEntry, Schedule, scheduler, tracking};
use crate::Env;

const POLL: Duration = Duration::from_secs(1);
/// One call to the database, connection included. Longer than a server's restart, shorter than any lease.
pub(crate) const DB_LIMIT: Duration = Duration::from_secs(15);
/// A claim takes milliseconds. When its connection went silent, the lane looks again on another one this soon.
const CLAIM_LIMIT: Duration = Duration::from_secs(6);

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

/// Whether others can find this process when it dies: it is registered as a worker, or this database tracks none. Before that it claims nothing,
/// because what it held would wait for the whole lease.
#[derive(Clone)]
pub struct Registered(watch::Sender<bool>);

impl Registered {
    fn not_yet() -> Self {
        Self(watch::Sender::new(false))
    }

    /// For a process that is no worker: nobody looks for it.
    pub fn untracked() -> Self {
        Self(watch::Sender::new(true))
    }

    pub(super) fn done(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is. `false`: told to stop before.
    pub(crate) async fn or_stopped(&self, stop: &Stop) -> bool {
        let mut seen = self.0.subscribe();
        tokio::select! {
            is_registered = async { seen.wait_for(|is_registered| *is_registered).await.is_ok() } => is_registered,
            () = stop.stopped() => false,
        }
    }
}

pub struct Runtime {
    pub(super) env: Env,
    pub(super) beats: Arc<Beats>,
    pub(super) stop: Stop,
    registered: Registered,
    /// Held while an item runs whose holder died: two suspects never run at once in a process.
    pub(super) suspects: Mutex<()>,
    lanes: Vec<Arc<LaneCounters>>,
    schedules: &'static [Schedule],
    /// Sessions for leases and heartbeats alone: a pool that work has used up must not cost a live worker its items.
    vital: Db,
}

impl Runtime {
    pub fn new(env: Env, lanes: &'static [LaneEntry], schedules: &'static [Schedule]) -> Self {
        Self {
            beats: Arc::default(),
            stop: Stop::default(),
            registered: Registered::not_yet(),
            suspects: Mutex::default(),
            lanes: lanes.iter().map(LaneCounters::new).collect(),
            schedules,
            vital: env.db.sibling(2),
            env,
        }
    }

    /// Whether [`Runtime::run`] has registered this process, for others who claim in its name.
    pub fn registered(&self) -> Registered {
        self.registered.clone()
    }

    /// Runs every lane, the schedules and the heartbeat until told to stop, then drains: items in hand are finished, or handed back
    /// when the grace is over. Nothing is claimed before the process is registered. The Workers page shows `role`.
    pub async fn run(mut self, role: &str, stop: Stop) {
        self.stop = stop;
        let this = Arc::new(self);
        let drained = Stop::default();
        let vital = Env { db: this.vital.clone(), ..this.env.clone() };
        let (lanes, beats, registered) = (this.lanes.clone(), this.beats.clone(), this.registered());
        let tracked = tracking::run(vital.clone(), lanes, beats, role.to_owned(), registered, drained.clone());
        let tracking = tokio::spawn(tracked);
        let mut background = JoinSet::new();
        background.spawn(store::notices::relay(this.env.db.clone()));
        background.spawn(scheduler::run(this.env.clone(), this.schedules, this.stop.clone()));
        for lane in &this.lanes {
            background.spawn(keep_leases(vital.clone(), lane.clone()));
        }
        let mut loops = JoinSet::new();
        for lane in &this.lanes {
            let looking = Arc::new(Mutex::new(this.env.db.bus().subscribe()));
            for _ in 0..this.env.config.lane_slots.of(lane.entry) {
                loops.spawn(lane_loop(this.clone(), lane.clone(), looking.clone()));
            }
        }
        while loops.join_next().await.is_some() {}
        background.abort_all(); // leases and notices were kept up to here, while draining
        drained.stop();
        let _ = tracking.await; // says goodbye with the last counts
    }

    /// Works off everything that is due now, in this task; returns how many items were settled. For tests and one-off commands.
    pub async fn run_due(&self) -> store::Result<usize> {
        self.run_due_timed(|_| {}).await
    }

    /// The same, telling how long each batch took from its claim to its end.
    pub async fn run_due_timed(&self, mut each_batch: impl FnMut(Duration)) -> store::Result<usize> {
        let mut settled = 0;
        loop {
            let before = settled;
            for lane in &self.lanes {
                let mut spare = None;
                loop {
                    let begun = Instant::now();
                    let claimed = claim(self, lane, lane.entry.batch, spare.take()).await?;
                    if claimed.is_empty() {
                        break;
                    }
                    settled += claimed.len();
                    spare = run_batch(self, lane, claimed).await.spare;
                    each_batch(begun.elapsed());
                }
            }
            if settled == before {
                return Ok(settled);
            }
        }
    }
}

/// One slot of a lane: claim, run, settle, until told to stop. One slot of a lane looks for work at a time (it holds `looking`), so that
/// idle slots cost nothing; when it finds some it lets the next slot look while it works.
async fn lane_loop(runtime: Arc<Runtime>, lane: Arc<LaneCounters>, looking: Arc<Mutex<broadcast::Receiver<Notice>>>) {
    let stop = runtime.stop.clone();
    if !runtime.registered.or_stopped(&stop).await {
        return;
    }
    let mut limit = lane.entry.batch;
    let mut spare = None;
    let mut troubles = 0_u32;
    let mut turn = None;
    while !stop.is_stopping() {
        if turn.is_none() {
            turn = looking.try_lock().ok();
        }
        if turn.is_none() {
            spare = None; // it may have to wait long: the session goes back to the pool
            tokio::select! { next = looking.lock() => turn = Some(next), () = stop.stopped() => return }
        }
        let Some(wake) = &mut turn else { continue };
        **wake = wake.resubscribe(); // older notices are of messages that this look will see
        match claim(&runtime, &lane, limit, spare.take()).await {
            Ok(claimed) if claimed.is_empty() => {
                (troubles, limit) = (0, lane.entry.batch);
                tokio::select! {
                    () = tokio::time::sleep(POLL) => {}
                    () = woken(wake, |notice| is_of(notice, lane.entry.name)) => {}
                    () = stop.stopped() => {}
                }
            }
            Ok(claimed) => {
                troubles = 0;
                turn = None;
                let ran = run_batch(&runtime, &lane, claimed).await;
                // While suspects come up, one item is claimed at a time: each suspect has to run alone anyway.
                limit = if ran.met_suspect { 1 } else { lane.entry.batch };
                spare = ran.spare;
            }
            Err(error) => {
                troubles += 1;
                if troubles == 1 {
                    let lane = lane.entry.name;
                    tracing::warn!(lane, error = ?error, "lane {lane} cannot claim, will keep trying");
                }
                let pause = Duration::from_millis(250 << troubles.min(4));
                tokio::select! { () = tokio::time::sleep(pause) => {} () = stop.stopped() => {} }
            }
        }
    }
}

/// Whether a notice says that this lane has work.
fn is_of(notice: &Notice, lane: &str) -> bool {
    notice.is_of_lane(lane) && notice.op != Op::Delete
}

/// Ends when a notice says that there is work, or that something was missed.
pub(crate) async fn woken(wake: &mut broadcast::Receiver<Notice>, is_work: impl Fn(&Notice) -> bool) {
    loop {
        match wake.recv().await {
            Ok(notice) if notice.op == Op::Resync && notice.kind == "*" => return,
            Ok(notice) if is_work(&notice) => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Claims up to `limit` items. `spare` is the session that acknowledged the batch before, if it is at hand.
async fn claim(
    runtime: &Runtime,
    lane: &LaneCounters,
    limit: u32,
    spare: Option<Connection>,
) -> store::Result<Vec<Claimed>> {
    let claimed = store::within(CLAIM_LIMIT, async {
        let mut conn = match spare {
            Some(conn) => conn,
            None => runtime.env.db.acquire().await?,
        };
        let (clock, lease_secs) = (runtime.env.clock.sql(), lane.entry.lease_secs);
        lane.entry.queue().claim(&mut conn, clock, limit, lease_secs, &runtime.env.name).await
    });
    let claimed = claimed.await?;
    lane.looked(claimed.len());
    if !claimed.is_empty() {
        crash::at(Point::ClaimAfter)?; // with something in hand: an empty claim is no step
    }
    Ok(claimed)
}

/// Extends the leases of the items this process holds, except of those that have hung. An item that was lost is stopped.
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
                    if let Some(task) = lane.held().get(&receipt).and_then(|held| held.stoppable()) {
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
