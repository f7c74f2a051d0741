//! A tenant's keys: listed, made (shown once), revoked.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{KeyId, Scope};
use engine::keys;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::Managing;
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Keys {
    keys: Vec<Key>,
}

#[derive(Serialize, ToSchema)]
pub struct Key {
    id: Uuid,
    name: String,
    scopes: Vec<String>,
    /// The owner of the key.
    person: Option<String>,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKey {
    /// The device that uses it; each has its own key.
    #[schema(example = "front desk")]
    name: String,
    /// read, write, agent, service.
    #[schema(value_type = Vec<String>, example = json!(["read"]))]
    scopes: Vec<Scope>,
    /// The owner's e-mail address; an agent's key needs one.
    person: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct MadeKey {
    id: Uuid,
    name: String,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    /// The key itself. Nobody can show it again.
    #[schema(example = "trb_…")]
    key: String,
}

impl From<Vec<store::keys::Key>> for Keys {
    fn from(keys: Vec<store::keys::Key>) -> Self {
        Self { keys: keys.into_iter().map(Key::from).collect() }
    }
}

impl From<store::keys::Key> for Key {
    fn from(key: store::keys::Key) -> Self {
        Self {
            id: key.id,
            name: key.name,
            scopes: key.scopes,
            person: key.person,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// The tenant's keys, without their secrets.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", responses((status = 200, body = Keys), (status = 403, body = Problem)))]
pub(crate) async fn list(State(app): State<App>, Managing(caller): Managing) -> Result<Json<Keys>, ApiError> {
    Ok(Json(keys::list(&app.env, &caller).await?.into()))
}

/// Creates a key. Its secret is only in this answer.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = NewKey,
    responses((status = 201, body = MadeKey), (status = 400, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Managing(caller): Managing,
    extract::Json(new): extract::Json<NewKey>,
) -> Result<(StatusCode, Json<MadeKey>), ApiError> {
    let NewKey { name, scopes, person } = new;
    let wanted = keys::NewKey { name: &name, scopes: &scopes, person: person.as_deref() };
    let keys::MadeKey { id, name, secret } = keys::create(&app.env, &caller, &wanted).await?;
    let made = MadeKey { id: id.0, name, scopes, key: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Revokes a key; servers that know it refuse it within five seconds.
#[utoipa::path(delete, path = "/api/v1/keys/{id}", tag = "keys", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    keys::revoke(&app.env, &caller, KeyId(id)).await?;
    app.callers.forget(KeyId(id));
    Ok(StatusCode::NO_CONTENT)
}
