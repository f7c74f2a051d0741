//! Schedules: any worker takes what is due. Taking a row, moving it to its next tick and sending its message are one commit, so a
//! tick fires once, whoever dies.

use std::time::Duration;

use domain::Fault;
use serde_json::json;
use store::crash::{self, Point};
use store::queue::Queue;
use store::{schedules, tenants};

use super::{Stop, lanes};
use crate::Env;

const POLL: Duration = Duration::from_secs(1);

pub(super) async fn run(env: Env, stop: Stop) {
    let mut is_ensured = false;
    while !stop.is_stopping() {
        if !is_ensured {
            is_ensured = ensure(&env).await.is_ok();
        }
        loop {
            match fire_one(&env).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) => {
                    tracing::debug!(error = ?fault, "schedules could not be looked at");
                    break;
                }
            }
        }
        tokio::select! { () = tokio::time::sleep(POLL) => {} () = stop.stopped() => {} }
    }
}

/// The rows of this binary's schedules. Rows it does not know belong to a newer one and are left alone.
pub async fn ensure(env: &Env) -> Result<(), Fault> {
    let mut tx = env.db.begin().await?;
    for schedule in lanes::SCHEDULES {
        let message = json!({ "task": schedule.name });
        schedules::ensure(&mut tx, env.clock.sql(), schedule.name, schedule.lane, schedule.every, &message).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Fires one due schedule; `false` when none is due.
pub async fn fire_one(env: &Env) -> Result<bool, Fault> {
    let mut tx = env.db.begin().await?;
    let Some(due) = schedules::take_due(&mut tx, env.clock.sql()).await? else { return Ok(false) };
    let operator = tenants::ensure_operator(&mut tx).await?;
    Queue::new(&due.lane)?.send(&mut tx, operator, &[due.message]).await?;
    crash::at(Point::ScheduleBeforeCommit)?;
    tx.commit().await?;
    crash::at(Point::ScheduleAfterCommit)?;
    tracing::debug!(schedule = due.name, "schedule {} fired", due.name);
    Ok(true)
}
