//! Jobs: every run of work on a source, watched, stopped and tried again.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{JobId, JobKind, JobStatus, SourceId};
use engine::pull::words;
use engine::{Env, jobs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::jobs::Filter;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use super::search::SourceRef;
use super::sources::{InWords, Spend};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Jobs {
    jobs: Vec<Job>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub struct Job {
    id: Uuid,
    source: SourceRef,
    /// full, delta, push or backfill.
    #[schema(value_type = String, example = "delta")]
    kind: JobKind,
    /// pending, running, completed, failed, paused or cancelled.
    #[schema(value_type = String, example = "running")]
    status: JobStatus,
    /// `schedule`, `connect`, `person` (on the command line), or the name of whose key it was.
    requested_by: String,
    /// The current step, or the reason for waiting, in words.
    step: Option<String>,
    /// A note for a person, such as that a first sync was capped.
    note: Option<String>,
    items_processed: i64,
    /// Records that could not be read.
    records_failed: i64,
    /// The same and the attempts that failed.
    items_failed: i64,
    /// Null while nobody knows.
    items_total: Option<i64>,
    created: i64,
    updated: i64,
    unchanged: i64,
    deleted: i64,
    /// Records that were left out because a person deleted their documents.
    kept_out: i64,
    /// The reason why it failed: a code.
    error_message: Option<String>,
    /// The same in words, with what to do.
    trouble: Option<InWords>,
    /// The latest troubles, the newest last: `{at, kind, what}`.
    #[schema(value_type = Vec<Object>)]
    error_details: Value,
    /// Attempts that were used up.
    error_count: i32,
    spend: Spend,
    last_heartbeat: Option<DateTime<Utc>>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl Job {
    pub fn new(env: &Env, job: store::jobs::Job) -> Self {
        let who = env.providers.label(&job.source_provider);
        Self {
            trouble: words::of_job(who, &job).map(InWords::from),
            spend: store::jobs::Spend::from(&job).into(),
            records_failed: words::records_failed(&job),
            id: job.id,
            source: SourceRef { id: job.source_id, name: job.source_name },
            kind: job.kind,
            status: job.status,
            requested_by: job.requested_by,
            step: job.step,
            note: job.note,
            items_processed: job.items_processed,
            items_failed: job.items_failed,
            items_total: job.items_total,
            created: job.n_created,
            updated: job.n_updated,
            unchanged: job.n_unchanged,
            deleted: job.n_deleted,
            kept_out: job.n_kept_out,
            error_message: job.error_message,
            error_details: job.error_details,
            error_count: job.error_count,
            last_heartbeat: job.last_heartbeat,
            started_at: job.started_at,
            finished_at: job.finished_at,
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct JobsQuery {
    /// Only jobs of this source.
    #[serde(default, deserialize_with = "blank_is_none")]
    source: Option<Uuid>,
    /// Only jobs in this status.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    status: Option<JobStatus>,
    /// Only older ones than this: `next_before` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// The tenant's jobs, the newest first.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs", params(JobsQuery), responses((status = 200, body = Jobs)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<JobsQuery>,
) -> Result<Json<Jobs>, ApiError> {
    let filter = Filter {
        only: None,
        source_id: query.source.map(SourceId),
        status: query.status,
        before: query.before.map(JobId),
        limit: query.limit.unwrap_or(50).clamp(1, 200),
    };
    let (jobs, next_before) = jobs::list(&app.env, &caller, filter).await?;
    Ok(Json(Jobs::new(&app.env, jobs, next_before)))
}

impl Jobs {
    /// Makes the answer of a page and of the job before which the next page begins.
    pub fn new(env: &Env, jobs: Vec<store::jobs::Job>, next_before: Option<Uuid>) -> Self {
        Self { jobs: jobs.into_iter().map(|job| Job::new(env, job)).collect(), next_before }
    }
}

/// One job.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Job), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<Job>, ApiError> {
    Ok(Json(Job::new(&app.env, jobs::get(&app.env, &caller, JobId(id)).await?)))
}

/// Continues a failed or cancelled job where it stopped.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/retry", tag = "jobs", params(("id" = Uuid, Path)),
    responses((status = 202, body = Job), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It is not over, another one is under way, or the source is not synced now")))]
pub(crate) async fn retry(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<(StatusCode, Json<Job>), ApiError> {
    jobs::retry(&app.env, &caller, JobId(id)).await?;
    Ok((StatusCode::ACCEPTED, Json(Job::new(&app.env, jobs::get(&app.env, &caller, JobId(id)).await?))))
}

/// Cancels a job. Its documents stay; the next sync starts anew.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Job), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is over")))]
pub(crate) async fn cancel(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<Json<Job>, ApiError> {
    jobs::cancel(&app.env, &caller, JobId(id)).await?;
    Ok(Json(Job::new(&app.env, jobs::get(&app.env, &caller, JobId(id)).await?)))
}
