//! Open alerts: what a person should look at, and what to do.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use engine::findings;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::Path;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Alerts {
    alerts: Vec<Alert>,
}

#[derive(Serialize, ToSchema)]
pub struct Alert {
    id: Uuid,
    #[schema(example = "dead_items")]
    kind: String,
    /// The subject of the alert: a lane, a worker, a schedule.
    subject: String,
    /// The problem, in words.
    what: String,
    /// The action to take.
    todo: String,
    since: DateTime<Utc>,
}

/// The tenant's open alerts, the oldest first. An alert closes automatically when its cause is gone.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "alerts", responses((status = 200, body = Alerts)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Alerts>, ApiError> {
    let alerts = app.env.db.read(&caller, async |tx| store::alerts::open(tx, caller.tenant_id).await).await?;
    let alerts = alerts.into_iter().map(|alert| Alert {
        id: alert.id,
        kind: alert.kind,
        subject: alert.subject,
        what: alert.what,
        todo: alert.todo,
        since: alert.since,
    });
    Ok(Json(Alerts { alerts: alerts.collect() }))
}

/// Acts on all alerts of one kind: `retry` tries again what was given up (about a thousand at a time), `dismiss` hides them on Home for a day,
/// `restore` shows them again.
#[utoipa::path(post, path = "/api/v1/alerts/{kind}/{action}", tag = "alerts",
    params(("kind" = String, Path, description = "The kind of the alerts, as the list has it", example = "dead_letters"),
        ("action" = String, Path, description = "retry, dismiss or restore", example = "dismiss")),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn act(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((kind, action)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    match action.as_str() {
        "retry" => findings::retry(&app.env, &caller, &kind).await.map(|_| ())?,
        "dismiss" => findings::dismiss(&app.env, &caller, &kind).await?,
        "restore" => findings::restore(&app.env, &caller, &kind).await?,
        _ => return Err(ApiError::NotFound("action")),
    }
    Ok(StatusCode::NO_CONTENT)
}
