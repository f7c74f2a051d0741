//! Schedules. Any worker takes what is due: taking a row, moving it to its next tick and sending its message are one commit, so that
//! a tick fires once, whichever process dies.

use std::time::Duration;

use domain::Fault;
use futures_util::future::BoxFuture;
use serde_json::json;
use store::crash::{self, Point};
use store::queue::Queue;
use store::{schedules, tenants};

use super::Stop;
use super::runtime::DB_LIMIT;
use crate::Env;

/// The lane that schedules send their ticks to.
pub const UPKEEP: &str = "upkeep";

const POLL: Duration = Duration::from_secs(1);
/// First firings are spread over this long, or over the schedule's own interval if that is shorter.
const SPREAD: Duration = Duration::from_secs(30);

/// A task that runs every so often: each tick is an item `{"task": name}` of lane [`UPKEEP`].
pub struct Schedule {
    pub name: &'static str,
    pub every: Duration,
    /// A few words for people: "removes …".
    pub what: &'static str,
    pub run: for<'a> fn(&'a Env) -> BoxFuture<'a, Result<(), Fault>>,
}

impl Schedule {
    /// The time from the creation of its row to its first run. Later ticks keep that distance from the ticks of other schedules, so they do
    /// not all fire in the same second. It depends on the name alone: a schedule that is added moves no other.
    pub fn first_after(&self) -> Duration {
        let hash = self.name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
        });
        Duration::from_secs(1 + hash % self.every.min(SPREAD).as_secs().max(1))
    }
}

pub(super) async fn run(env: Env, list: &'static [Schedule], stop: Stop) {
    let mut is_ensured = false;
    while !stop.is_stopping() {
        if !is_ensured {
            is_ensured = store::within(DB_LIMIT, ensure(&env, list)).await.is_ok();
        }
        loop {
            match store::within(DB_LIMIT, fire_one(&env)).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(error = ?error, "schedules could not be looked at");
                    break;
                }
            }
        }
        tokio::select! { () = tokio::time::sleep(POLL) => {} () = stop.stopped() => {} }
    }
}

/// Makes the rows of this binary's schedules. Rows it does not know belong to a newer one and are left alone.
async fn ensure(env: &Env, list: &[Schedule]) -> store::Result<()> {
    let mut tx = env.db.begin().await?;
    for schedule in list {
        let (message, first_after) = (json!({ "task": schedule.name }), schedule.first_after());
        let at = env.clock.sql();
        let every = env.config.schedule_every(schedule.name).unwrap_or(schedule.every);
        schedules::ensure(&mut tx, at, schedule.name, UPKEEP, every, first_after, &message).await?;
    }
    tx.commit().await
}

/// Fires one due schedule; `false` when none is due. A tick whose predecessor is still in the queue adds no second item, so that a
/// slow task takes one slot and no more. A schedule whose message cannot be sent is moved on with its error, so that it does not keep
/// the others waiting.
async fn fire_one(env: &Env) -> store::Result<bool> {
    let mut tx = env.db.begin().await?;
    let Some(due) = schedules::take_due(&mut tx, env.clock.sql()).await? else { return Ok(false) };
    let operator = tenants::ensure_operator(&mut tx).await?;
    let sent = match Queue::new(&due.lane) {
        Ok(queue) => match queue.holds(&mut tx, &due.message).await {
            Ok(true) => Ok(Vec::new()),
            Ok(false) => queue.send(&mut tx, operator, &[due.message]).await,
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        drop(tx);
        let words = format!("its message could not be sent to lane {}: {}", due.lane, Fault::from(error).in_words());
        tracing::error!(schedule = due.name, "schedule {} did not fire: {words}", due.name);
        let mut tx = env.db.begin().await?;
        schedules::pass_over(&mut tx, env.clock.sql(), &due.name, &words).await?;
        tx.commit().await?;
        return Ok(true);
    }
    crash::at(Point::ScheduleBeforeCommit)?;
    tx.commit().await?;
    crash::at(Point::ScheduleAfterCommit)?;
    tracing::debug!(schedule = due.name, "schedule {} fired", due.name);
    Ok(true)
}
