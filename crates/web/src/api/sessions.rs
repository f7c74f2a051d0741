//! Signed-in browsers, and links that were not used: listed and ended, by an owner or by the person themselves.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use engine::sessions;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, Reading};
use super::error::{ApiError, Problem};
use super::extract::Path;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Serialize, ToSchema)]
pub struct Session {
    id: Uuid,
    /// session: a browser that is signed in. link: a link that nobody has used yet.
    #[schema(example = "session")]
    kind: &'static str,
    /// The name of the person, or of the key with which the browser signed in.
    whose: String,
    person_id: Option<i64>,
    /// The browser, in a few words.
    #[schema(example = "Firefox on Linux")]
    device: Option<String>,
    /// The address of its last use.
    address: Option<String>,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    /// A person's session lasts longer with each use.
    expires_at: DateTime<Utc>,
    /// Whether it is the session that asks.
    is_current: bool,
}

impl From<Vec<sessions::Session>> for Sessions {
    fn from(sessions: Vec<sessions::Session>) -> Self {
        let session = |session: sessions::Session| Session {
            id: session.id,
            kind: if session.is_link { "link" } else { "session" },
            whose: session.whose(),
            person_id: session.person_id,
            device: session.device,
            address: session.address,
            created_at: session.created_at,
            last_used_at: session.last_used_at,
            expires_at: session.expires_at,
            is_current: session.is_current,
        };
        Self { sessions: sessions.into_iter().map(session).collect() }
    }
}

/// Signed-in browsers and unused links, the last used first: an owner sees the tenant's, everybody else their own.
#[utoipa::path(get, path = "/api/v1/sessions", tag = "sessions", responses((status = 200, body = Sessions)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Sessions>, ApiError> {
    Ok(Json(sessions::list(&app.env, &caller, caller.session(), None).await?.into()))
}

/// Ends a session, or makes a link useless: an owner any of the tenant, everybody else their own.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", tag = "sessions", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    end(&app, &caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a session; this process forgets it at once.
pub(crate) async fn end(app: &App, caller: &Caller, id: Uuid) -> Result<(), ApiError> {
    app.callers.forget(sessions::end(&app.env, caller, id).await?);
    Ok(())
}
