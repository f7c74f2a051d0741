//! Schedules: any worker takes what is due. Taking a row, moving it to its next tick and sending its message are one commit, so a
//! tick fires once, whoever dies.

use std::time::Duration;

use domain::Fault;
use serde_json::json;
use store::crash::{self, Point};
use store::queue::Queue;
use store::{schedules, tenants};

use super::Stop;
use super::runtime::DB_LIMIT;
use crate::{Env, lanes};

const POLL: Duration = Duration::from_secs(1);

pub(super) async fn run(env: Env, stop: Stop) {
    let mut is_ensured = false;
    while !stop.is_stopping() {
        if !is_ensured {
            is_ensured = store::within(DB_LIMIT, ensure(&env)).await.is_ok();
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

/// The rows of this binary's schedules. Rows it does not know belong to a newer one and are left alone.
async fn ensure(env: &Env) -> store::Result<()> {
    let mut tx = env.db.begin().await?;
    for schedule in lanes::SCHEDULES {
        let message = json!({ "task": schedule.name });
        schedules::ensure(&mut tx, env.clock.sql(), schedule.name, schedule.lane, schedule.every, &message).await?;
    }
    tx.commit().await
}

/// Fires one due schedule; `false` when none is due. One whose message cannot be sent is moved on with its error, so that it does
/// not keep the others waiting.
async fn fire_one(env: &Env) -> store::Result<bool> {
    let mut tx = env.db.begin().await?;
    let Some(due) = schedules::take_due(&mut tx, env.clock.sql()).await? else { return Ok(false) };
    let operator = tenants::ensure_operator(&mut tx).await?;
    let sent = match Queue::new(&due.lane) {
        Ok(queue) => queue.send(&mut tx, operator, &[due.message]).await,
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
