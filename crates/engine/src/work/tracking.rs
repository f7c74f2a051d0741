//! The worker's life as others see it: registered at start, a heartbeat each interval, a goodbye at the end.

use std::sync::Arc;
use std::time::Duration;

use domain::WorkerId;
use store::workers;

use super::Stop;
use super::counters::{Beats, LaneCounters};
use crate::Env;

const DB_LIMIT: Duration = Duration::from_secs(10);

/// Until `drained`: a stopping worker is alive while it drains, and says so.
pub(super) async fn run(env: Env, lanes: Vec<Arc<LaneCounters>>, beats: Arc<Beats>, role: String, drained: Stop) {
    let interval = Duration::from_secs(env.config.worker_heartbeat_secs);
    let Some(id) = register(&env, interval, &role, &drained).await else { return };
    tracing::info!(worker.id = %id, "worker {id} is running {} lanes", lanes.len());
    loop {
        beat(&env, id, &lanes, &beats, false).await;
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = drained.stopped() => return beat(&env, id, &lanes, &beats, true).await,
        }
    }
}

/// Registers, however long the database takes to come. None: it ended before, or this database tracks nobody.
async fn register(env: &Env, interval: Duration, role: &str, drained: &Stop) -> Option<WorkerId> {
    loop {
        let started = store::within(DB_LIMIT, async {
            let mut conn = env.db.acquire().await?;
            if !workers::is_tracked(&mut conn).await? {
                return Ok(None);
            }
            let pid = i32::try_from(std::process::id()).unwrap_or(0);
            workers::start(&mut conn, env!("CARGO_PKG_VERSION"), interval, &host(), pid, role).await.map(Some)
        });
        match started.await {
            Ok(None) => {
                tracing::info!("this database has no worker tracking; working without");
                return None;
            }
            Ok(Some(id)) => return Some(id),
            Err(error) => tracing::debug!(error = ?error, "the worker could not register yet"),
        }
        tokio::select! { () = tokio::time::sleep(Duration::from_secs(1)) => {} () = drained.stopped() => return None }
    }
}

async fn beat(env: &Env, id: WorkerId, lanes: &[Arc<LaneCounters>], beats: &Beats, is_last: bool) {
    let beat = beats.take();
    let states: Vec<_> = lanes.iter().map(|lane| lane.beat()).collect();
    let sent = store::within(DB_LIMIT, async {
        // One transaction, so that a beat counts once or not at all. Its answer can be lost: then it counts twice, and a rate on a
        // page is off by one batch.
        let mut tx = env.db.begin().await?;
        workers::heartbeat(&mut tx, id, &beat, &states, is_last).await?;
        tx.commit().await
    });
    if let Err(error) = sent.await {
        tracing::debug!(error = ?error, "a heartbeat was not heard");
        beats.put_back(beat);
    }
}

pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
