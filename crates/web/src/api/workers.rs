//! Workers, for the operator of the installation.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use engine::workers;
use serde::Serialize;
use store::workers::LaneState;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::Operating;
use super::error::{ApiError, Problem};
use super::extract::Path;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Workers {
    workers: Vec<Worker>,
}

#[derive(Serialize, ToSchema)]
pub struct Worker {
    id: Uuid,
    /// alive, late, stalled, dead or stopped.
    #[schema(example = "alive")]
    health: &'static str,
    /// Why it counts as stalled.
    stalled_because: Option<String>,
    host: Option<String>,
    pid: Option<i32>,
    role: Option<String>,
    version: String,
    started: DateTime<Utc>,
    last_heartbeat: DateTime<Utc>,
    interval_secs: f64,
    silent_secs: f64,
    stopped_at: Option<DateTime<Utc>>,
    heartbeat_count: i64,
    success_count: i64,
    error_count: i64,
    per_minute: f64,
    last_error_at: Option<DateTime<Utc>>,
    last_error_message: Option<String>,
    lanes: Vec<WorkerLane>,
}

#[derive(Serialize, ToSchema)]
pub struct WorkerLane {
    lane: String,
    lease_secs: i32,
    holding: i32,
    progressed_at: DateTime<Utc>,
    claimed_at: DateTime<Utc>,
    done: i64,
    failed: i64,
    waited: i64,
    stale: i64,
}

/// Every worker that was heard of, the liveliest first.
#[utoipa::path(get, path = "/api/v1/workers", tag = "workers",
    responses((status = 200, body = Workers), (status = 404, body = Problem, description = "Not the operator's key")))]
pub(crate) async fn list(State(app): State<App>, _: Operating) -> Result<Json<Workers>, ApiError> {
    Ok(Json(workers::list(&app.env).await?.into()))
}

/// One worker.
#[utoipa::path(get, path = "/api/v1/workers/{id}", tag = "workers", params(("id" = Uuid, Path)),
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(crate) async fn one(State(app): State<App>, _: Operating, Path(id): Path<Uuid>) -> Result<Json<Worker>, ApiError> {
    let found = workers::list(&app.env).await?.into_iter().find(|(worker, _)| worker.id == id);
    Ok(Json(found.ok_or(ApiError::NotFound("worker"))?.into()))
}

impl From<Vec<(store::workers::Worker, Vec<LaneState>)>> for Workers {
    fn from(workers: Vec<(store::workers::Worker, Vec<LaneState>)>) -> Self {
        Self { workers: workers.into_iter().map(Worker::from).collect() }
    }
}

impl From<(store::workers::Worker, Vec<LaneState>)> for Worker {
    fn from((worker, lanes): (store::workers::Worker, Vec<LaneState>)) -> Self {
        Self {
            id: worker.id,
            health: worker.health().as_str(),
            per_minute: worker.per_minute(),
            stalled_because: worker.stalled_because,
            host: worker.host,
            pid: worker.pid,
            role: worker.role,
            version: worker.version,
            started: worker.started,
            last_heartbeat: worker.last_heartbeat,
            interval_secs: worker.interval_secs,
            silent_secs: worker.silent_secs,
            stopped_at: worker.stopped_at,
            heartbeat_count: worker.heartbeat_count,
            success_count: worker.success_count,
            error_count: worker.error_count,
            last_error_at: worker.last_error_at,
            last_error_message: worker.last_error_message,
            lanes: lanes.into_iter().map(WorkerLane::from).collect(),
        }
    }
}

impl From<LaneState> for WorkerLane {
    fn from(lane: LaneState) -> Self {
        let LaneState { lane, lease_secs, holding, progressed_at, claimed_at, done, failed, waited, stale } = lane;
        Self { lane, lease_secs, holding, progressed_at, claimed_at, done, failed, waited, stale }
    }
}
