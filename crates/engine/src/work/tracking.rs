//! The worker's life as others see it: registered at start, a heartbeat each interval, a goodbye at the end.

use std::sync::Arc;
use std::time::Duration;

use domain::WorkerId;
use store::workers::life::Life;
use store::workers::{self, Identity};

use super::counters::{Beats, LaneCounters};
use super::{Registered, Stop, life};
use crate::Env;
use crate::env::host;

const DB_LIMIT: Duration = Duration::from_secs(10);

/// Until `drained`: a stopping worker is alive while it drains, and says so.
pub(super) async fn run(
    env: Env,
    lanes: Vec<Arc<LaneCounters>>,
    beats: Arc<Beats>,
    role: String,
    registered: Registered,
    drained: Stop,
) {
    let interval = Duration::from_secs(env.config.worker_heartbeat_secs);
    let mut life = Life::new(&env.name);
    let id = register(&env, &mut life, interval, &role, &drained).await;
    registered.done();
    let Some(id) = id else { return };
    tracing::info!(worker.id = %id, "worker {id} is running {} lanes", lanes.len());
    let beats = async {
        loop {
            beat(&env, id, &lanes, &beats, false).await;
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = drained.stopped() => return beat(&env, id, &lanes, &beats, true).await,
            }
        }
    };
    tokio::select! { () = beats => {} () = life::keep(&env, &mut life, &lanes) => {} }
}

/// Registers, however long the database takes to come. None: it ended before, or this database tracks nobody.
async fn register(env: &Env, life: &mut Life, interval: Duration, role: &str, drained: &Stop) -> Option<WorkerId> {
    let mut is_told = false;
    loop {
        let started = store::within(DB_LIMIT, async {
            let mut conn = env.db.acquire().await?;
            if !workers::is_tracked(&mut conn).await? {
                return Ok(None);
            }
            life.look(&env.db).await?; // the lock first: without it others would find this worker dead
            let (host, pid) = (host(), i32::try_from(std::process::id()).unwrap_or(0));
            let identity = Identity { name: &env.name, host: &host, pid, role };
            workers::start(&mut conn, env!("CARGO_PKG_VERSION"), interval, identity).await.map(Some)
        });
        let started = tokio::select! { started = started => started, () = drained.stopped() => return None };
        match started {
            Ok(None) => {
                tracing::info!("this database has no worker tracking; working without");
                return None;
            }
            Ok(Some(id)) => return Some(id),
            Err(error) if !std::mem::replace(&mut is_told, true) => {
                tracing::warn!(error = ?error, "the worker cannot register and claims nothing yet, will keep trying");
            }
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
