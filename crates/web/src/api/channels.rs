//! A tenant's channels: listed, made (secrets shown once), changed, rotated, tested, closed, opened, deleted.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{ChannelId, PersonId, Secret};
use engine::intake::{Refusal, Visit, sample};
use serde::{Deserialize, Serialize};
use store::channels::{self, ChannelChange, NewChannel, Provider, Rotation, Secrets, Settings};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, Managing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

/// How long the secrets before a rotation are good, in hours, when nobody says otherwise.
const RETIRING_HOURS: u32 = 24;

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
    /// Whose work its events are; null: everyone's.
    person_id: Option<i64>,
    auto_create_contacts: bool,
    settings: ChannelSettings,
    created_at: DateTime<Utc>,
}

/// How a channel verifies, as far as it is no secret.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelSettings {
    /// Postmark: whether its address, or user and password, must be right. Without, the URL alone is the secret.
    #[serde(default = "yes")]
    pub require_ip: bool,
    /// Postmark: networks its requests come from; left out: those it publishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<String>>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddChannel {
    /// Who sends here.
    #[schema(example = "web shop")]
    pub name: String,
    /// Whose webhooks: generic, twilio or postmark.
    #[schema(example = "generic")]
    #[serde(default = "generic")]
    pub provider: String,
    /// Verified requests a minute; null: no limit. Left out: 100 for generic channels, no limit for others.
    #[serde(default, deserialize_with = "given")]
    pub max_per_minute: Option<Option<i32>>,
    /// What the sender signs with, at least 24 characters. Twilio: the account's primary auth token. Generic: its own secret, when it has
    /// one already.
    #[schema(value_type = Option<String>)]
    #[serde(alias = "auth_token", alias = "webhook_secret")]
    pub secret: Option<Secret>,
    /// Whose work its events are; left out: everyone's.
    pub person_id: Option<i64>,
    /// Makes a contact of every address that is not known yet.
    #[serde(default)]
    pub auto_create_contacts: bool,
    #[serde(default)]
    pub settings: Option<ChannelSettings>,
}

/// Tells a field that is null from one that is left out.
fn given<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

fn generic() -> String {
    Provider::Generic.as_str().to_owned()
}

/// A channel with what opens it.
#[derive(Serialize, ToSchema)]
pub(crate) struct MadeChannel {
    pub id: Uuid,
    name: String,
    /// Where to send. Keep it private.
    pub url: String,
    /// Generic, for senders that send a key: `Authorization: Bearer ak_live_…`. Not shown again here.
    #[schema(example = "ak_live_…")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<String>,
    /// Generic, for senders that sign: HMAC-SHA256 of the body, in `X-Webhook-Signature: sha256=<hex>`, or Standard Webhooks. Not shown
    /// again here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_secret: Option<String>,
    max_per_minute: Option<i32>,
}

/// The tenant's channels, without what opens them.
#[utoipa::path(get, path = "/api/v1/channels", tag = "channels", responses((status = 200, body = Channels), (status = 403, body = Problem)))]
pub(crate) async fn list(State(app): State<App>, Managing(caller): Managing) -> Result<Json<Channels>, ApiError> {
    let channels = app.env.db.session(async |conn| channels::list(conn, caller.tenant_id).await).await?;
    Ok(Json(Channels { channels: channels.into_iter().map(Channel::from).collect() }))
}

impl From<channels::Channel> for Channel {
    fn from(channel: channels::Channel) -> Self {
        let Settings { require_ip, ranges } = channel.settings;
        Self {
            id: channel.id,
            provider: channel.provider_code,
            name: channel.name,
            is_active: channel.is_active,
            max_per_minute: channel.max_per_minute,
            person_id: channel.person_id,
            auto_create_contacts: channel.auto_create_contacts,
            settings: ChannelSettings { require_ip, ranges },
            created_at: channel.created_at,
        }
    }
}

/// Makes a channel. Its secrets are in this answer.
#[utoipa::path(post, path = "/api/v1/channels", tag = "channels", request_body = AddChannel,
    responses((status = 201, body = MadeChannel), (status = 400, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Managing(caller): Managing,
    extract::Json(new): extract::Json<AddChannel>,
) -> Result<(StatusCode, Json<MadeChannel>), ApiError> {
    Ok((StatusCode::CREATED, Json(add(&app, &caller, new).await?)))
}

fn malformed(what: impl Into<String>) -> ApiError {
    ApiError::Malformed(StatusCode::BAD_REQUEST, what.into())
}

pub(crate) fn checked_limit(most: Option<i32>) -> Result<Option<i32>, ApiError> {
    if most.is_some_and(|most| most < 1) {
        return Err(malformed("max_per_minute is at least 1, or null for no limit"));
    }
    Ok(most)
}

pub(crate) fn checked_settings(given: Option<ChannelSettings>) -> Result<Settings, ApiError> {
    let Some(ChannelSettings { require_ip, ranges }) = given else { return Ok(Settings::default()) };
    let ranges = ranges.map(|ranges| ranges.into_iter().map(|range| range.trim().to_owned()).collect::<Vec<_>>());
    if ranges.as_ref().is_some_and(|ranges| !engine::intake::are_networks(ranges)) {
        return Err(malformed("ranges are networks such as 50.31.156.0/24"));
    }
    Ok(Settings { require_ip, ranges })
}

/// Makes a channel, for the API and the page.
pub(crate) async fn add(app: &App, caller: &Caller, new: AddChannel) -> Result<MadeChannel, ApiError> {
    let name = new.name.trim();
    let provider: Provider = new.provider.parse().map_err(|error: store::Error| malformed(error.to_string()))?;
    let max_per_minute = checked_limit(new.max_per_minute.unwrap_or(provider.usual_limit()))?;
    let settings = checked_settings(new.settings)?;
    let made = app.env.db.write(async |tx| {
        let new = NewChannel {
            provider,
            name,
            max_per_minute,
            person_id: new.person_id.map(PersonId),
            auto_create_contacts: new.auto_create_contacts,
            settings,
            secret: new.secret.map(|secret| Secret::new(secret.reveal().trim())),
        };
        channels::create(tx, &app.env.vault, caller.tenant_id, new).await
    });
    let made = made.await.map_err(|error| match error {
        store::Error::Refused { what } => malformed(what),
        error if error.code().as_deref() == Some("23503") => malformed("there is no such person"),
        other => other.into(),
    });
    let (id, secrets) = made?;
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was made by key {}", caller.key_id);
    Ok(opened(app, id, name, provider, &secrets, max_per_minute))
}

fn opened(
    app: &App,
    id: ChannelId,
    name: &str,
    provider: Provider,
    secrets: &Secrets,
    max_per_minute: Option<i32>,
) -> MadeChannel {
    let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
    MadeChannel {
        id: id.0,
        name: name.to_owned(),
        url: engine::intake::url(&app.env.config.base_url(), provider, secrets),
        bearer: text(&secrets.proofs.bearer),
        webhook_secret: text(&secrets.proofs.webhook_secret),
        max_per_minute,
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeChannel {
    pub name: Option<String>,
    /// Verified requests a minute; null: no limit.
    #[serde(default, deserialize_with = "given")]
    pub max_per_minute: Option<Option<i32>>,
    pub auto_create_contacts: Option<bool>,
    pub settings: Option<ChannelSettings>,
}

/// Changes what is no secret about a channel.
#[utoipa::path(patch, path = "/api/v1/channels/{id}", tag = "channels", params(("id" = Uuid, Path)), request_body = ChangeChannel,
    responses((status = 204), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn change(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
    extract::Json(change): extract::Json<ChangeChannel>,
) -> Result<StatusCode, ApiError> {
    let change = ChannelChange {
        name: change.name,
        max_per_minute: change.max_per_minute.map(checked_limit).transpose()?,
        auto_create_contacts: change.auto_create_contacts,
        settings: match change.settings {
            Some(settings) => Some(checked_settings(Some(settings))?),
            None => None,
        },
    };
    change_to(&app, &caller, ChannelId(id), change).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn change_to(
    app: &App,
    caller: &Caller,
    id: ChannelId,
    change: ChannelChange,
) -> Result<(), ApiError> {
    let changed = app.env.db.session(async |conn| channels::change(conn, caller.tenant_id, id, change).await);
    let changed = changed.await.map_err(|error| match error {
        store::Error::Refused { what } => malformed(what),
        other => other.into(),
    });
    if !changed? {
        return Err(ApiError::NotFound("channel"));
    }
    app.intake.forget(id);
    Ok(())
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateChannel {
    /// Twilio's new auth token, or a generic sender's own new secret.
    #[schema(value_type = Option<String>)]
    pub secret: Option<Secret>,
    /// Also a new URL; the old one is closed at once.
    #[serde(default)]
    pub url: bool,
    /// How long the old secrets are good, in hours; left out: 24.
    pub keep_hours: Option<u32>,
}

/// Makes new secrets for a channel. The old ones are good for another day, unless told otherwise.
#[utoipa::path(post, path = "/api/v1/channels/{id}/rotate", tag = "channels", params(("id" = Uuid, Path)), request_body = RotateChannel,
    responses((status = 200, body = MadeChannel), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn rotate(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
    extract::Json(rotate): extract::Json<RotateChannel>,
) -> Result<Json<MadeChannel>, ApiError> {
    Ok(Json(rotate_now(&app, &caller, ChannelId(id), rotate).await?))
}

pub(crate) async fn rotate_now(
    app: &App,
    caller: &Caller,
    id: ChannelId,
    rotate: RotateChannel,
) -> Result<MadeChannel, ApiError> {
    let keep = TimeDelta::hours(rotate.keep_hours.unwrap_or(RETIRING_HOURS).min(24 * 365).into());
    let rotated = app.env.db.write(async |tx| {
        let rotation = Rotation {
            secret: rotate.secret.map(|secret| Secret::new(secret.reveal().trim())),
            is_url_too: rotate.url,
            until: app.env.clock.now() + keep,
        };
        let channel = channels::get(tx, caller.tenant_id, id).await?;
        let secrets = channels::rotate(tx, &app.env.vault, caller.tenant_id, id, rotation).await?;
        Ok::<_, store::Error>(channel.zip(secrets))
    });
    let (channel, secrets) = rotated.await?.ok_or(ApiError::NotFound("channel"))?;
    app.intake.forget(id);
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was rotated by key {}", caller.key_id);
    Ok(opened(app, id, &channel.name, channel.provider_code.parse()?, &secrets, channel.max_per_minute))
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Tested {
    /// The activity that the test event became.
    pub id: Uuid,
}

/// Sends a test event through the channel, signed as its provider would sign it.
#[utoipa::path(post, path = "/api/v1/channels/{id}/test", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 200, body = Tested), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn test(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<Json<Tested>, ApiError> {
    Ok(Json(Tested { id: send_test(&app, &caller, ChannelId(id)).await? }))
}

/// Goes in by the same door as every webhook, and is verified like one.
pub(crate) async fn send_test(app: &App, caller: &Caller, id: ChannelId) -> Result<Uuid, ApiError> {
    let (channel, secrets) = load(app, caller, id).await?;
    let base_url = app.env.config.base_url();
    let made = sample(channel.provider_code.parse()?, &secrets, &base_url, app.env.clock.now());
    let sample = made.ok_or_else(|| ApiError::Conflict("the channel has no secret to sign with".into()))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &sample.headers {
        let value = HeaderValue::try_from(value.as_str())
            .map_err(|_| ApiError::Conflict("its secret cannot be sent".into()))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    app.intake.forget(id); // what was changed a moment ago is what is tested
    let visit = Visit {
        key: secrets.ingestion_key.reveal(),
        target: &sample.target,
        address: std::net::Ipv4Addr::LOCALHOST.into(),
        headers: &headers,
    };
    let sent = async {
        let mut knock = app.intake.knock(visit).await?;
        knock.push(sample.body).await?;
        knock.deliver(&headers).await
    };
    match sent.await {
        Ok(received) => Ok(received.id.0),
        Err(Refusal::Unverified) => Err(ApiError::Conflict("the channel refused it; its page says why".into())),
        Err(refusal) => Err(refusal.into()),
    }
}

pub(crate) async fn load(app: &App, caller: &Caller, id: ChannelId) -> Result<(channels::Channel, Secrets), ApiError> {
    let loaded = app.env.db.session(async |conn| {
        let channel = channels::get(conn, caller.tenant_id, id).await?;
        let secrets = channels::secrets(conn, &app.env.vault, caller.tenant_id, id).await?;
        Ok(channel.zip(secrets))
    });
    loaded.await?.ok_or(ApiError::NotFound("channel"))
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Refusals {
    refusals: Vec<RefusedOne>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RefusedOne {
    /// What the sender was answered.
    status: i32,
    /// Why, for the channel's owner alone.
    reason: String,
    address: Option<String>,
    /// How many alike within a second.
    n: i32,
    created_at: DateTime<Utc>,
}

/// What the channel refused within the last 30 days, and why; never what was sent. The newest 200.
#[utoipa::path(get, path = "/api/v1/channels/{id}/refusals", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 200, body = Refusals), (status = 404, body = Problem)))]
pub(crate) async fn refusals(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<Json<Refusals>, ApiError> {
    let loaded = app.env.db.session(async |conn| {
        let channel = channels::get(conn, caller.tenant_id, ChannelId(id)).await?;
        Ok((channel, channels::refusals(conn, caller.tenant_id, ChannelId(id), 200).await?))
    });
    let (Some(_), refusals) = loaded.await? else { return Err(ApiError::NotFound("channel")) };
    let refusals = refusals.into_iter().map(|refusal| RefusedOne {
        status: refusal.status,
        reason: refusal.reason,
        address: refusal.address,
        n: refusal.n,
        created_at: refusal.created_at,
    });
    Ok(Json(Refusals { refusals: refusals.collect() }))
}

/// Deletes a channel. Its activities, and what was remembered of them, stay.
#[utoipa::path(delete, path = "/api/v1/channels/{id}", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    remove(&app, &caller, ChannelId(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn remove(app: &App, caller: &Caller, id: ChannelId) -> Result<(), ApiError> {
    let deleted = app.env.db.write(async |tx| channels::delete(tx, &app.env.vault, caller.tenant_id, id).await).await?;
    if !deleted {
        return Err(ApiError::NotFound("channel"));
    }
    app.intake.forget(id);
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was deleted by key {}", caller.key_id);
    Ok(())
}

/// Opens a channel again.
#[utoipa::path(post, path = "/api/v1/channels/{id}/enable", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn enable(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    set_active(&app, &caller, ChannelId(id), true).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Closes a channel: its senders are refused from within five seconds on.
#[utoipa::path(post, path = "/api/v1/channels/{id}/disable", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn disable(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, ApiError> {
    set_active(&app, &caller, ChannelId(id), false).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn set_active(app: &App, caller: &Caller, id: ChannelId, is_active: bool) -> Result<(), ApiError> {
    let changed = app
        .env
        .db
        .session(async |conn| channels::set_active(conn, &app.env.vault, caller.tenant_id, id, is_active).await);
    if !changed.await? {
        return Err(ApiError::NotFound("channel"));
    }
    app.intake.forget(id);
    let done = if is_active { "enabled" } else { "disabled" };
    tracing::info!(channel.id = %id, tenant.id = %caller.tenant_id, "channel {id} was {done} by key {}", caller.key_id);
    Ok(())
}
