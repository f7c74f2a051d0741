//! What a lane is: a payload, a few constants, and what to do with one item.

use std::sync::LazyLock;
use std::time::Duration;

use domain::Fault;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::queue::Queue;

use super::Lease;
use crate::Env;

/// How an item ended well.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Not now: try again then. Costs no attempt; what waits longer than an hour leaves the queue and is parked.
    Snooze(Duration, &'static str),
    /// Need not be done.
    Cancel(&'static str),
}

/// One kind of work. `run` may be repeated at any point: it opens its effect with [`Lease::begin`], whose transaction deletes the
/// message, so that effect and acknowledgement are one commit; say in its doc what else makes repeating safe.
pub trait Lane: Serialize + DeserializeOwned + Send + 'static {
    /// Stored in rows: never renamed; a new shape is a new name.
    const NAME: &'static str;
    const MAX_ATTEMPTS: i32 = 8;
    /// How long a silent worker keeps its items. Extended while it lives.
    const LEASE_SECS: u32 = 60;
    /// Items claimed at once. A batch is settled together, so lanes with slow items take few.
    const BATCH: u32 = 16;
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
            batch: L::BATCH,
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
