//! A tenant's channels: listed, made (secrets shown once), closed, opened, deleted.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{ChannelId, Secret};
use serde::{Deserialize, Serialize};
use store::channels::{NewChannel, Provider};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, Managing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::{App, DB_LIMIT};

#[derive(Serialize, ToSchema)]
pub(crate) struct Channels {
    channels: Vec<Channel>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Channel {
    id: Uuid,
    #[schema(example = "generic")]
    provider: String,
    name: String,
    is_active: bool,
    /// Verified requests a minute; null: no limit.
    max_per_minute: Option<i32>,
    created_at: DateTime<Utc>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddChannel {
    /// Who sends here.
    #[schema(example = "web shop")]
    name: String,
    /// Whose webhooks: generic.
    #[schema(example = "generic")]
    #[serde(default = "generic")]
    provider: String,
    /// Verified requests a minute, 100 when left out; null: no limit.
    #[serde(default = "hundred")]
    max_per_minute: Option<i32>,
    /// What the sender signs with, when it has one already: at least 24 characters.
    #[schema(value_type = Option<String>)]
    webhook_secret: Option<Secret>,
}

fn generic() -> String {
    Provider::Generic.as_str().to_owned()
}

/// Senders of generic webhooks honour Retry-After, so a limit loses nothing.
fn hundred() -> Option<i32> {
    Some(100)
}

#[derive(Serialize, ToSchema)]
pub(crate) struct MadeChannel {
    id: Uuid,
    name: String,
    /// Where to send. Whoever knows it still has to sign, but keep it private.
    url: String,
    /// For senders that send a key: `Authorization: Bearer ak_live_…`. Not shown again here.
    #[schema(example = "ak_live_…")]
    bearer: String,
    /// For senders that sign: HMAC-SHA256 of the body, in `X-Webhook-Signature: sha256=<hex>`. Not shown again here.
    webhook_secret: String,
    max_per_minute: Option<i32>,
}

/// The tenant's channels, without what opens them.
#[utoipa::path(get, path = "/api/v1/channels", tag = "channels", responses((status = 200, body = Channels), (status = 403, body = Problem)))]
pub(crate) async fn list(State(app): State<App>, Managing(caller): Managing) -> Result<Json<Channels>, ApiError> {
    let channels = store::within(DB_LIMIT, async {
        let mut conn = app.env.db.acquire().await?;
        store::channels::list(&mut conn, caller.tenant_id).await
    });
    let channels = channels.await?.into_iter().map(|channel| Channel {
        id: channel.id,
        provider: channel.provider_code,
        name: channel.name,
        is_active: channel.is_active,
        max_per_minute: channel.max_per_minute,
        created_at: channel.created_at,
    });
    Ok(Json(Channels { channels: channels.collect() }))
}

/// Makes a channel. Its secrets are in this answer.
#[utoipa::path(post, path = "/api/v1/channels", tag = "channels", request_body = AddChannel,
    responses((status = 201, body = MadeChannel), (status = 400, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Managing(caller): Managing,
    extract::Json(new): extract::Json<AddChannel>,
) -> Result<(StatusCode, Json<MadeChannel>), ApiError> {
    let malformed = |what: String| ApiError::Malformed(StatusCode::BAD_REQUEST, what);
    let name = new.name.trim();
    if !(1..=100).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        return Err(malformed("a channel's name has 1 to 100 characters".into()));
    }
    if new.max_per_minute.is_some_and(|most| most < 1) {
        return Err(malformed("max_per_minute is at least 1, or null for no limit".into()));
    }
    let secret_chars = new.webhook_secret.as_ref().map(|secret| secret.reveal().chars().count());
    if secret_chars.is_some_and(|n| n < store::channels::SECRET_CHARS) {
        return Err(malformed(format!("a webhook secret has at least {} characters", store::channels::SECRET_CHARS)));
    }
    let provider = new.provider.parse().map_err(|error: store::Error| malformed(error.to_string()))?;
    let made = store::within(DB_LIMIT, async {
        let mut tx = app.env.db.begin().await?;
        let new = NewChannel { provider, name, max_per_minute: new.max_per_minute, webhook_secret: new.webhook_secret };
        let made = store::channels::create(&mut tx, &app.env.vault, caller.tenant_id, new).await?;
        tx.commit().await?;
        Ok(made)
    });
    let (id, secrets) = made.await?;
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was made by key {}", caller.key_id);
    let made = MadeChannel {
        id: id.0,
        name: name.to_owned(),
        url: format!("{}/ingest/{}", app.env.config.base_url(), secrets.ingestion_key.reveal()),
        bearer: secrets.bearer.reveal().to_owned(),
        webhook_secret: secrets.webhook_secret.reveal().to_owned(),
        max_per_minute: new.max_per_minute,
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// Deletes a channel. Its activities, and what was remembered of them, stay.
#[utoipa::path(delete, path = "/api/v1/channels/{id}", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    let id = ChannelId(id);
    let deleted = store::within(DB_LIMIT, async {
        let mut tx = app.env.db.begin().await?;
        let deleted = store::channels::delete(&mut tx, &app.env.vault, caller.tenant_id, id).await?;
        tx.commit().await?;
        Ok(deleted)
    });
    if !deleted.await? {
        return Err(ApiError::NotFound("channel"));
    }
    app.intake.forget(id);
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was deleted by key {}", caller.key_id);
    Ok(StatusCode::NO_CONTENT)
}

/// Opens a channel again.
#[utoipa::path(post, path = "/api/v1/channels/{id}/enable", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn enable(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    set_active(&app, &caller, ChannelId(id), true).await
}

/// Closes a channel: its senders are refused from within five seconds on.
#[utoipa::path(post, path = "/api/v1/channels/{id}/disable", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn disable(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    set_active(&app, &caller, ChannelId(id), false).await
}

async fn set_active(app: &App, caller: &Caller, id: ChannelId, is_active: bool) -> Result<StatusCode, ApiError> {
    let changed = store::within(DB_LIMIT, async {
        let mut conn = app.env.db.acquire().await?;
        store::channels::set_active(&mut conn, &app.env.vault, caller.tenant_id, id, is_active).await
    });
    if !changed.await? {
        return Err(ApiError::NotFound("channel"));
    }
    app.intake.forget(id);
    let done = if is_active { "enabled" } else { "disabled" };
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was {done} by key {}", caller.key_id);
    Ok(StatusCode::NO_CONTENT)
}
