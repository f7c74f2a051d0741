//! Dead letters: activities that failed for good, listed and replayed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use store::dead_letters;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::activities::Activity;
use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub(crate) struct DeadLetters {
    dead_letters: Vec<DeadLetter>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct DeadLetter {
    /// Why it was given up.
    reason: String,
    buried_at: DateTime<Utc>,
    /// As lists show it: texts are cut.
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

/// Activities that failed for good and wait for a person, those buried last first.
#[utoipa::path(get, path = "/api/v1/dead-letters", tag = "activities", params(DeadLettersQuery),
    responses((status = 200, body = DeadLetters)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<DeadLettersQuery>,
) -> Result<Json<DeadLetters>, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let (listed, next_before) = load_list(&app, &caller, query.before, limit).await?;
    let letter = |letter: dead_letters::DeadLetter| DeadLetter {
        reason: letter.reason,
        buried_at: letter.buried_at,
        activity: letter.activity.into(),
    };
    Ok(Json(DeadLetters { dead_letters: listed.into_iter().map(letter).collect(), next_before }))
}

/// A page of dead letters, and where the next one begins.
pub(crate) async fn load_list(
    app: &App,
    caller: &domain::Caller,
    before: Option<i64>,
    limit: i64,
) -> Result<(Vec<dead_letters::DeadLetter>, Option<i64>), ApiError> {
    let listed =
        app.env.db.read(caller, async |tx| dead_letters::list(tx, caller.tenant_id, before, limit).await).await?;
    let next_before = listed.last().filter(|_| listed.len() as i64 == limit).map(|last| last.letter_id);
    Ok((listed, next_before))
}

/// Has a dead letter's activity processed again, as if it had never failed.
#[utoipa::path(post, path = "/api/v1/dead-letters/{activity_id}/replay", tag = "activities", params(("activity_id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn replay(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(activity_id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    match replay_all(&app, &caller, &[activity_id]).await? {
        0 => Err(ApiError::NotFound("dead letter")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Those of them that are dead letters; returns how many were.
pub(crate) async fn replay_all(app: &App, caller: &domain::Caller, ids: &[Uuid]) -> Result<usize, ApiError> {
    Ok(engine::activities::replay(&app.env, caller.tenant_id, ids).await?)
}
