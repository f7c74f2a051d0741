//! Workers, and what runs on a timer, as the operator sees them.

use store::schedules::{self, Schedule};
use store::workers::{self, LaneState, Worker};
use uuid::Uuid;

use crate::{ActError, Env, health};

/// Every worker that was heard of, the liveliest first, with its lanes.
pub async fn list(env: &Env) -> Result<Vec<(Worker, Vec<LaneState>)>, ActError> {
    let loaded = env.db.session(async |conn| {
        let listed = health::list_workers(env, conn).await?;
        let ids: Vec<Uuid> = listed.iter().map(|worker| worker.id).collect();
        let lanes = workers::lanes_of(conn, &ids).await?;
        Ok((listed, lanes))
    });
    let (listed, lanes) = loaded.await?;
    let lanes_of = |id: Uuid| lanes.iter().filter(|(of, _)| *of == id).map(|(_, lane)| lane.clone()).collect();
    Ok(listed.into_iter().map(|worker| (lanes_of(worker.id), worker)).map(|(lanes, worker)| (worker, lanes)).collect())
}

/// What runs on a timer, and how it went.
pub async fn schedules(env: &Env) -> Result<Vec<Schedule>, ActError> {
    Ok(env.db.session(async |conn| schedules::list(conn).await).await?)
}
