//! Dead letters: activities that failed for good, listed and replayed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use engine::activities;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::activities::Activity;
use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct DeadLetters {
    dead_letters: Vec<DeadLetter>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct DeadLetter {
    /// The reason why it was given up.
    reason: String,
    buried_at: DateTime<Utc>,
    /// The activity as lists show it: texts are cut.
    activity: Activity,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeadLettersQuery {
    /// Only what was buried before this one: `next_before` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<i64>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// Activities that failed for good and wait for a person, the latest first.
#[utoipa::path(get, path = "/api/v1/dead-letters", tag = "activities", params(DeadLettersQuery),
    responses((status = 200, body = DeadLetters)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<DeadLettersQuery>,
) -> Result<Json<DeadLetters>, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let (listed, next_before) = activities::dead_letters(&app.env, &caller, query.before, limit).await?;
    let letter = |letter: store::dead_letters::DeadLetter| DeadLetter {
        reason: letter.reason,
        buried_at: letter.buried_at,
        activity: letter.activity.into(),
    };
    Ok(Json(DeadLetters { dead_letters: listed.into_iter().map(letter).collect(), next_before }))
}

/// Replays a dead letter: its activity is processed again, as if it had never failed.
#[utoipa::path(post, path = "/api/v1/dead-letters/{activity_id}/replay", tag = "activities", params(("activity_id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn replay(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(activity_id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    match activities::replay(&app.env, &caller, &[activity_id]).await? {
        0 => Err(ApiError::NotFound("dead letter")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}
