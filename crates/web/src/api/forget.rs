//! Forgetting over the API: what would go, the request that removes it, and how far that is.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use domain::{ContactId, Scope, SourceId};
use engine::{contacts, forgetting, sources};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::forgotten::{Counted, Line};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query};
use crate::app::App;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Also removes everything that came from it, for good. Default false: it is kept.
    #[serde(default)]
    forget: bool,
}

/// The data that goes, by kind. From 100,000 on a number means "at least".
#[derive(Serialize, ToSchema)]
pub struct Forgotten {
    activities: i64,
    /// Attachments and recordings.
    files: i64,
    documents: i64,
    /// The pieces by which documents are found: those of the first 20,000 documents. Not counted for a tenant.
    chunks: i64,
    clients: i64,
    contacts: i64,
    sources: i64,
    channels: i64,
    keys: i64,
    jobs: i64,
}

impl From<Counted> for Forgotten {
    fn from(counted: Counted) -> Self {
        let Counted { activities, files, documents, chunks, clients, contacts, sources, channels, keys, jobs } =
            counted;
        Self { activities, files, documents, chunks, clients, contacts, sources, channels, keys, jobs }
    }
}

/// Disconnects a source: its tokens are removed at once and nothing more is read. With `forget`, everything that came from it is deleted too, which
/// needs the scope `service`.
#[utoipa::path(delete, path = "/api/v1/sources/{id}", tag = "sources", params(("id" = Uuid, Path), DeleteQuery),
    responses((status = 204, description = "Disconnected; its documents are kept"),
        (status = 202, body = Forgotten, description = "Disconnected; all of this is being removed"), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    Query(query): Query<DeleteQuery>,
) -> Result<Response, ApiError> {
    if query.forget {
        caller.need(Scope::Service)?;
        let counted = sources::forget(&app.env, &caller, SourceId(id)).await?;
        return Ok((StatusCode::ACCEPTED, Json(Forgotten::from(counted))).into_response());
    }
    sources::disconnect(&app.env, &caller, SourceId(id)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Counts what would go with a contact. Nothing is removed.
#[utoipa::path(get, path = "/api/v1/contacts/{id}/forget", tag = "contacts", params(("id" = i64, Path)),
    responses((status = 200, body = Forgotten), (status = 404, body = Problem)))]
pub(crate) async fn count_contact(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<i64>,
) -> Result<Json<Forgotten>, ApiError> {
    Ok(Json(contacts::count(&app.env, &caller, ContactId(id)).await?.into()))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteContactQuery {
    /// Deletes only the contact, and keeps its activities and documents. Default false: everything that came from it is removed.
    #[serde(default)]
    keep: bool,
}

/// Forgets a contact: its activities, their files, the documents made from them, its addresses, and facts that rest on nothing else. Its name and
/// addresses go at once, the rest step by step. That needs the scope `service`. With `keep`, only the contact goes, which needs `write`.
#[utoipa::path(delete, path = "/api/v1/contacts/{id}", tag = "contacts", params(("id" = i64, Path), DeleteContactQuery),
    responses((status = 202, body = Forgotten, description = "All of this is being removed"),
        (status = 204, description = "The contact is deleted; its activities and documents are kept"), (status = 404, body = Problem),
        (status = 409, body = Problem)))]
pub(crate) async fn forget_contact(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<i64>,
    Query(query): Query<DeleteContactQuery>,
) -> Result<Response, ApiError> {
    if query.keep {
        contacts::corrected::delete(&app.env, &caller, ContactId(id)).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    caller.need(Scope::Service)?;
    let counted = contacts::forget(&app.env, &caller, ContactId(id)).await?;
    Ok((StatusCode::ACCEPTED, Json(Forgotten::from(counted))).into_response())
}

#[derive(Serialize, ToSchema)]
pub struct Records {
    forgotten: Vec<Record>,
}

/// A record of what was removed, without its content.
#[derive(Serialize, ToSchema)]
pub struct Record {
    id: Uuid,
    #[schema(example = "Contact 17")]
    what: String,
    /// The name of the key that asked for it.
    by: String,
    /// The counts when it was asked for.
    counted: Forgotten,
    /// The counts of what is gone so far, by kind.
    #[schema(value_type = Object)]
    removed: Value,
    asked_at: DateTime<Utc>,
    /// None while it is being removed.
    done_at: Option<DateTime<Utc>>,
}

impl From<Vec<Line>> for Records {
    fn from(lines: Vec<Line>) -> Self {
        let record = |Line { id, what, by, counted, removed, asked_at, done_at }| Record {
            id,
            what,
            by,
            counted: Forgotten::from(counted),
            removed,
            asked_at,
            done_at,
        };
        Self { forgotten: lines.into_iter().map(record).collect() }
    }
}

/// Things that were or are being forgotten, newest first, at most 100.
#[utoipa::path(get, path = "/api/v1/forgotten", tag = "forgotten", responses((status = 200, body = Records)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Records>, ApiError> {
    Ok(Json(forgetting::list(&app.env, &caller).await?.into()))
}
