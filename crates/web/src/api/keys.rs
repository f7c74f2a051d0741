//! A tenant's keys: listed, made (shown once), revoked.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{KeyId, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::Managing;
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub(crate) struct Keys {
    keys: Vec<Key>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Key {
    id: Uuid,
    name: String,
    scopes: Vec<String>,
    /// Whose key it is.
    person: Option<String>,
    created_at: DateTime<Utc>,
    last_used_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKey {
    /// Where it is used: one key per device.
    #[schema(example = "front desk")]
    name: String,
    /// read, write, agent, service.
    #[schema(value_type = Vec<String>, example = json!(["read"]))]
    scopes: Vec<Scope>,
    /// Whose key it is, by e-mail address; an agent's key needs one.
    person: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct MadeKey {
    id: Uuid,
    name: String,
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
    /// The key itself. Nobody can show it again.
    #[schema(example = "trb_…")]
    key: String,
}

/// The tenant's keys, without their secrets.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", responses((status = 200, body = Keys), (status = 403, body = Problem)))]
pub(crate) async fn list(State(app): State<App>, Managing(caller): Managing) -> Result<Json<Keys>, ApiError> {
    let keys = app.env.db.session(async |conn| store::keys::list(conn, caller.tenant_id).await).await?;
    let keys = keys.into_iter().map(|key| Key {
        id: key.id,
        name: key.name,
        scopes: key.scopes,
        person: key.person,
        created_at: key.created_at,
        last_used_at: key.last_used_at,
        revoked_at: key.revoked_at,
    });
    Ok(Json(Keys { keys: keys.collect() }))
}

/// Makes a key. Its secret is in this answer and nowhere else.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = NewKey,
    responses((status = 201, body = MadeKey), (status = 400, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Managing(caller): Managing,
    extract::Json(new): extract::Json<NewKey>,
) -> Result<(StatusCode, Json<MadeKey>), ApiError> {
    let malformed = |what: &str| Err(ApiError::Malformed(StatusCode::BAD_REQUEST, what.into()));
    let name = new.name.trim();
    if !(1..=100).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        return malformed("a key's name has 1 to 100 characters");
    }
    if new.scopes.is_empty() {
        return malformed("a key needs at least one scope: read, write, agent or service");
    }
    let person = new.person.as_deref().map(str::trim);
    if person.is_some_and(|email| !email.contains('@') || email.len() > 254 || email.chars().any(char::is_control)) {
        return malformed("a person is named by an e-mail address");
    }
    let made = app.env.db.write(async |tx| {
        let person_id = match person {
            Some(email) => Some(store::people::ensure(tx, caller.tenant_id, email).await?),
            None => None,
        };
        store::keys::create(tx, caller.tenant_id, person_id, name, &new.scopes).await
    });
    let (id, secret) = made.await?;
    tracing::info!(key.id = %id, tenant.id = %caller.tenant_id, "key {id} was made by key {}", caller.key_id);
    let made = MadeKey { id: id.0, name: name.to_owned(), scopes: new.scopes, key: secret.reveal().to_owned() };
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
    let revoked = app.env.db.session(async |conn| store::keys::revoke(conn, caller.tenant_id, KeyId(id)).await).await?;
    if !revoked {
        return Err(ApiError::NotFound("key"));
    }
    app.callers.forget(KeyId(id));
    tracing::info!(key.id = %id, tenant.id = %caller.tenant_id, "key {id} was revoked by key {}", caller.key_id);
    Ok(StatusCode::NO_CONTENT)
}
