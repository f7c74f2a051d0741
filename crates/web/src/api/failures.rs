//! Records of a source that could not be read: listed, read again, left out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::SourceId;
use engine::failures::{self, Again};
use engine::pull::is_named;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use super::sources::SyncAsked;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Failures {
    failures: Vec<Failure>,
    /// How many there are, skipped ones among them.
    total: i64,
}

/// A record that could not be read.
#[derive(Serialize, ToSchema)]
pub struct Failure {
    #[schema(example = "contact:51")]
    external_id: String,
    job_id: Option<Uuid>,
    reason: String,
    /// What came, as far as it is JSON. Somebody else wrote it.
    payload: Option<Value>,
    /// How often it failed.
    n_failed: i32,
    failed_at: DateTime<Utc>,
    /// Since when it is left out.
    skipped_at: Option<DateTime<Utc>>,
    /// It can be read again by itself. False: it has no id, and only the next full sync meets it again.
    is_named: bool,
}

impl From<store::failures::Failure> for Failure {
    fn from(failure: store::failures::Failure) -> Self {
        Self {
            is_named: is_named(&failure.external_id),
            external_id: failure.external_id,
            job_id: failure.job_id,
            reason: failure.reason,
            payload: failure.payload,
            n_failed: failure.n_failed,
            failed_at: failure.failed_at,
            skipped_at: failure.skipped_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FailuresQuery {
    /// At most so many, 1 to 1000. Default 200.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// Records that could not be read, the latest first, skipped ones last.
#[utoipa::path(get, path = "/api/v1/sources/{id}/failures", tag = "sources", params(("id" = Uuid, Path), FailuresQuery),
    responses((status = 200, body = Failures), (status = 404, body = Problem)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
    Query(query): Query<FailuresQuery>,
) -> Result<Json<Failures>, ApiError> {
    let limit = query.limit.unwrap_or(200).clamp(1, 1_000);
    Ok(Json(failures::list(&app.env, &caller, SourceId(id), limit).await?.into()))
}

/// Of the latest, and how many there are.
impl From<(Vec<store::failures::Failure>, i64)> for Failures {
    fn from((failures, total): (Vec<store::failures::Failure>, i64)) -> Self {
        Self { failures: failures.into_iter().map(Failure::from).collect(), total }
    }
}

/// Reads everything again that could not be read and was not skipped, by one job; the latest 500 of it.
#[utoipa::path(post, path = "/api/v1/sources/{id}/failures/retry", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 202, body = SyncAsked), (status = 404, body = Problem, description = "There is nothing to read again"),
        (status = 409, body = Problem, description = "The source is not synced now, or nothing of it has an id")))]
pub(crate) async fn retry_all(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<(StatusCode, Json<SyncAsked>), ApiError> {
    begun(failures::retry_all(&app.env, &caller, SourceId(id)).await?)
}

/// Reads a record again that could not be read, by a job of its own; also one that was skipped, which is then no longer left out if it can be read.
#[utoipa::path(post, path = "/api/v1/sources/{id}/failures/{external_id}/retry", tag = "sources",
    params(("id" = Uuid, Path), ("external_id" = String, Path)),
    responses((status = 202, body = SyncAsked), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "The source is not synced now, or the record has no id")))]
pub(crate) async fn retry(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, external_id)): Path<(Uuid, String)>,
) -> Result<(StatusCode, Json<SyncAsked>), ApiError> {
    begun(failures::retry(&app.env, &caller, SourceId(id), &external_id).await?)
}

fn begun(again: Again) -> Result<(StatusCode, Json<SyncAsked>), ApiError> {
    match again {
        Again::Started(job_id, _) => Ok((StatusCode::ACCEPTED, Json(SyncAsked { job_id: job_id.0, is_new: true }))),
        Again::Running(job_id) => Ok((StatusCode::ACCEPTED, Json(SyncAsked { job_id: job_id.0, is_new: false }))),
        Again::Nameless => Err(ApiError::Conflict("it has no id: the next full sync tries it again".into())),
        Again::Unknown => Err(ApiError::NotFound("record")),
    }
}

/// Leaves a record out that could not be read. It no longer counts as open.
#[utoipa::path(post, path = "/api/v1/sources/{id}/failures/{external_id}/skip", tag = "sources",
    params(("id" = Uuid, Path), ("external_id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn skip(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, external_id)): Path<(Uuid, String)>,
) -> Result<StatusCode, ApiError> {
    failures::skip(&app.env, &caller, SourceId(id), &external_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use domain::JobId;

    use super::*;

    #[test]
    fn why_a_record_is_not_read_again_is_told_apart() {
        let status = |again| match begun(again) {
            Ok((status, _)) => status.as_u16(),
            Err(error) => error.into_response().status().as_u16(),
        };
        assert_eq!(status(Again::Started(JobId::new(), 3)), 202);
        assert_eq!(status(Again::Running(JobId::new())), 202);
        assert_eq!(status(Again::Nameless), 409);
        assert_eq!(status(Again::Unknown), 404);
    }
}
