//! Assistants, and what programs asked over MCP.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::KeyId;
use engine::assistants;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::Reading;
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Assistants {
    assistants: Vec<Assistant>,
}

/// A program that a person let in.
#[derive(Serialize, ToSchema)]
pub struct Assistant {
    id: Uuid,
    /// As the program calls itself.
    #[schema(example = "Claude")]
    name: String,
    /// The place to which the person went back.
    #[schema(example = "claude.ai")]
    redirect_host: String,
    /// The person who let it in. Null: somebody with a key that is no person's.
    person: Option<String>,
    /// read, write, agent; no further than the person's role.
    #[schema(example = json!(["read"]))]
    scopes: Vec<String>,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    /// person, client (the program gave its access back) or reuse (a code or token was shown twice).
    revoked_by: Option<String>,
    /// How often it called which tool in the last 30 days.
    asked: Vec<AskedOf>,
}

#[derive(Serialize, ToSchema)]
pub struct AskedOf {
    #[schema(example = "search_memory")]
    tool: String,
    calls: i64,
}

impl From<Vec<store::assistants::Assistant>> for Assistants {
    fn from(listed: Vec<store::assistants::Assistant>) -> Self {
        let assistant = |one: store::assistants::Assistant| Assistant {
            person: one.whose(),
            asked: one.asked().iter().map(|asked| AskedOf { tool: asked.tool.clone(), calls: asked.n }).collect(),
            id: one.id,
            name: one.client_name,
            redirect_host: one.redirect_host,
            scopes: one.scopes,
            created_at: one.created_at,
            last_used_at: one.last_used_at,
            revoked_at: one.revoked_at,
            revoked_by: one.revoked_by,
        };
        Self { assistants: listed.into_iter().map(assistant).collect() }
    }
}

/// Programs that were let in by OAuth: the tenant's for an owner, else those that the caller's person let in.
#[utoipa::path(get, path = "/api/v1/assistants", tag = "assistants", responses((status = 200, body = Assistants)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Assistants>, ApiError> {
    Ok(Json(assistants::list(&app.env, &caller).await?.into()))
}

/// Revokes an assistant. Its tokens are refused within five seconds.
#[utoipa::path(delete, path = "/api/v1/assistants/{id}", tag = "assistants", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    let key_id = assistants::revoke(&app.env, &caller, id).await?;
    app.callers.forget(key_id);
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CallsQuery {
    /// Only calls of this key, or of the assistant with this key.
    #[serde(default, deserialize_with = "blank_is_none")]
    key: Option<Uuid>,
    /// Only calls before this one: `next_before` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct Calls {
    calls: Vec<Call>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<Uuid>,
}

/// A call of a tool.
#[derive(Serialize, ToSchema)]
pub struct Call {
    id: Uuid,
    key_id: Uuid,
    /// The name of the key, or of the assistant.
    who: String,
    #[schema(example = "search_memory")]
    tool: String,
    /// ok, refused (the caller can mend it) or failed.
    #[schema(example = "ok")]
    outcome: String,
    duration_ms: i32,
    /// The number of things found, where something was looked for.
    hits: Option<i32>,
    /// Only where the operator keeps them (`MCP_KEEP_ARGUMENTS`).
    #[schema(value_type = Option<Object>)]
    arguments: Option<Value>,
    at: DateTime<Utc>,
}

/// Calls of tools over MCP, the latest first: the tenant's for an owner, else those of the person's own keys and assistants.
#[utoipa::path(get, path = "/api/v1/mcp-calls", tag = "assistants", params(CallsQuery), responses((status = 200, body = Calls)))]
pub(crate) async fn calls(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<CallsQuery>,
) -> Result<Json<Calls>, ApiError> {
    let (key_id, limit) = (query.key.map(KeyId), query.limit.unwrap_or(50).clamp(1, 200));
    let (listed, next_before) = assistants::called(&app.env, &caller, key_id, query.before, limit).await?;
    let call = |call: store::assistants::calls::Call| Call {
        id: call.id,
        key_id: call.key_id,
        who: call.who,
        tool: call.tool,
        outcome: call.outcome,
        duration_ms: call.duration_ms,
        hits: call.n_hits,
        arguments: call.arguments,
        at: call.at,
    };
    Ok(Json(Calls { calls: listed.into_iter().map(call).collect(), next_before }))
}
