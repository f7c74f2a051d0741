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
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Failures {
    failures: Vec<Failure>,
    /// The total number, including skipped ones.
    total: i64,
}

/// A record that could not be read.
#[derive(Serialize, ToSchema)]
pub struct Failure {
    #[schema(example = "contact:51")]
    external_id: String,
    job_id: Option<Uuid>,
    reason: String,
    /// The received record, as far as it is JSON. Somebody else wrote it.
    payload: Option<Value>,
    /// The number of times it failed.
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

/// Makes the answer of the latest failures and their total number.
impl From<(Vec<store::failures::Failure>, i64)> for Failures {
    fn from((failures, total): (Vec<store::failures::Failure>, i64)) -> Self {
        Self { failures: failures.into_iter().map(Failure::from).collect(), total }
    }
}

/// A job that reads records again.
#[derive(Serialize, ToSchema)]
pub struct RetryAsked {
    pub job_id: Uuid,
    /// False: this job was under way already, and the records are read after it.
    pub is_new: bool,
    /// Records that are too many for one job. Ask again once it has ended.
    pub left_out: usize,
}

impl RetryAsked {
    /// None: nothing is read again.
    pub fn of(again: Again) -> Option<Self> {
        match again {
            Again::Started { job_id, left_out, .. } => Some(Self { job_id: job_id.0, is_new: true, left_out }),
            Again::Running { job_id, left_out } => Some(Self { job_id: job_id.0, is_new: false, left_out }),
            Again::Unknown | Again::Nameless => None,
        }
    }
}

/// Retries the latest 500 records that could not be read and were not skipped, in one job.
#[utoipa::path(post, path = "/api/v1/sources/{id}/failures/retry", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 202, body = RetryAsked), (status = 404, body = Problem, description = "There is nothing to read again"),
        (status = 409, body = Problem, description = "The source is not synced now, or nothing of it has an id")))]
pub(crate) async fn retry_all(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
) -> Result<(StatusCode, Json<RetryAsked>), ApiError> {
    begun(failures::retry_all(&app.env, &caller, SourceId(id)).await?)
}

/// Retries a record that could not be read, in a job of its own. A skipped record that can be read now is no longer skipped.
#[utoipa::path(post, path = "/api/v1/sources/{id}/failures/{external_id}/retry", tag = "sources",
    params(("id" = Uuid, Path), ("external_id" = String, Path, description = "The id of the record at the provider", example = "contact/51")),
    responses((status = 202, body = RetryAsked), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "The source is not synced now, or the record has no id")))]
pub(crate) async fn retry(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, external_id)): Path<(Uuid, String)>,
) -> Result<(StatusCode, Json<RetryAsked>), ApiError> {
    begun(failures::retry(&app.env, &caller, SourceId(id), &external_id).await?)
}

fn begun(again: Again) -> Result<(StatusCode, Json<RetryAsked>), ApiError> {
    match RetryAsked::of(again) {
        Some(asked) => Ok((StatusCode::ACCEPTED, Json(asked))),
        None if again == Again::Nameless => {
            Err(ApiError::Conflict("it has no id: the next full sync tries it again".into()))
        }
        None => Err(ApiError::NotFound("record")),
    }
}

/// Skips a record that could not be read. It no longer counts as open.
#[utoipa::path(post, path = "/api/v1/sources/{id}/failures/{external_id}/skip", tag = "sources",
    params(("id" = Uuid, Path), ("external_id" = String, Path, description = "The id of the record at the provider", example = "contact/51")),
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
        assert_eq!(status(Again::Started { job_id: JobId::new(), n: 3, left_out: 0 }), 202);
        assert_eq!(status(Again::Running { job_id: JobId::new(), left_out: 4 }), 202);
        assert_eq!(status(Again::Nameless), 409);
        assert_eq!(status(Again::Unknown), 404);
    }
}
