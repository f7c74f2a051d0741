//! A lane: a payload, a few constants, and the function that handles one item.

use std::sync::LazyLock;
use std::time::Duration;

use domain::Fault;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::queue::Queue;

use super::Lease;
use crate::Env;

/// The ways in which an item ends without a fault.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Not now: the item is tried again after this time, for this reason. Costs no attempt. An item that waits longer than an hour
    /// leaves the queue and is parked.
    Snooze(Duration, &'static str),
    /// The item need not be done.
    Cancel(&'static str),
}

/// One kind of work. `run` may be repeated at any point: it opens its effect with [`Lease::begin`], whose transaction deletes the
/// message, so that effect and acknowledgement are one commit. The doc of `run` says what else makes repeating safe.
pub trait Lane: Serialize + DeserializeOwned + Send + 'static {
    /// Stored in rows: never renamed; a new shape is a new name.
    const NAME: &'static str;
    const MAX_ATTEMPTS: i32 = 8;
    /// The time that a silent worker keeps its items. Extended while the worker lives.
    const LEASE_SECS: u32 = 60;
    /// Items claimed at once. A batch keeps its slot until its last item is settled, so lanes with slow items take few.
    const BATCH: u32 = 16;
    /// Batches that one worker runs at once, where the general setting `LANE_SLOTS` does not fit.
    const SLOTS: Option<u32> = None;
    /// Its items run for minutes or hours. They are claimed one by one, and one whose holder died does not wait for the turn of
    /// such items, nor keeps others from it.
    const IS_LONG: bool = false;
    /// An item that runs longer has hung: it is given up and counts as a failed attempt.
    const MAX_RUN: Duration = Duration::from_secs(600);

    fn run(self, env: &Env, lease: &Lease) -> impl Future<Output = Result<Outcome, Fault>> + Send;
}

type Run = for<'a> fn(serde_json::Value, &'a Env, &'a Lease) -> BoxFuture<'a, Result<Outcome, Fault>>;

/// A lane in the list, its type erased.
pub struct LaneEntry {
    pub name: &'static str,
    pub max_attempts: i32,
    pub lease_secs: u32,
    pub batch: u32,
    pub slots: Option<u32>,
    pub is_long: bool,
    pub max_run: Duration,
    pub(super) run: Run,
    queue: LazyLock<Queue, fn() -> Queue>,
}

impl LaneEntry {
    pub const fn of<L: Lane>() -> Self {
        Self {
            name: L::NAME,
            max_attempts: L::MAX_ATTEMPTS,
            lease_secs: L::LEASE_SECS,
            batch: if L::IS_LONG { 1 } else { L::BATCH },
            slots: L::SLOTS,
            is_long: L::IS_LONG,
            max_run: L::MAX_RUN,
            run: |message, env, lease| {
                Box::pin(async move {
                    let item: L = serde_json::from_value(message)
                        .map_err(|error| Fault::Malformed { what: format!("{error} (lane {})", L::NAME) })?;
                    item.run(env, lease).await
                })
            },
            queue: LazyLock::new(|| Queue::new(L::NAME).expect("a lane's name is a-z, 0-9 and _")),
        }
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }
}
