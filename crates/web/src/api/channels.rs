//! Channels over the API. `engine::channels` does the work; pages call the functions here too, which add what only a server does: it forgets
//! what it knew of a changed channel.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{ChannelId, PersonId, Secret};
use engine::channels::{self, NewChannel, Opened, Refused, Rotation};
use engine::intake::providers;
use serde::{Deserialize, Serialize};
use store::channels::{ChannelChange, Settings};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, Managing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

/// The channels of a tenant.
#[derive(Serialize, ToSchema)]
pub struct Channels {
    pub channels: Vec<Channel>,
}

/// A channel, without its secrets.
#[derive(Serialize, ToSchema)]
pub struct Channel {
    id: Uuid,
    #[schema(example = "generic")]
    provider: String,
    name: String,
    is_active: bool,
    /// Verified requests a minute; null: no limit.
    max_per_minute: Option<i32>,
    /// The owner of its activities; null: they are everyone's.
    person_id: Option<i64>,
    auto_create_contacts: bool,
    settings: ChannelSettings,
    /// Of a channel on a mailbox: the source whose letters are its events. Such a channel has no URL and no secrets.
    source_id: Option<Uuid>,
    /// Of a channel on a mailbox: the letters that are its events.
    query: Option<String>,
    created_at: DateTime<Utc>,
}

/// Settings of verification by address, for providers with known addresses.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelSettings {
    /// Whether the address, or user and password, must be right. Without, the URL alone is the secret.
    #[serde(default = "yes")]
    pub require_ip: bool,
    /// Networks that its requests come from; left out: those that the provider publishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranges: Option<Vec<String>>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddChannel {
    /// The name of the sender. No other channel has it.
    #[schema(example = "web shop")]
    pub name: String,
    /// The sender's provider; `generic` for any that signs.
    #[schema(example = "generic")]
    #[serde(default = "default_provider")]
    pub provider: String,
    /// Verified requests a minute; null: no limit. Left out: as is usual for the provider (100 for generic).
    #[serde(default, deserialize_with = "given")]
    pub max_per_minute: Option<Option<i32>>,
    /// The secret that the sender signs with, at least 24 characters, if it has its own.
    #[schema(value_type = Option<String>)]
    #[serde(alias = "auth_token", alias = "webhook_secret")]
    pub secret: Option<Secret>,
    /// The owner of its activities; left out: they are everyone's.
    pub person_id: Option<i64>,
    /// Makes a contact of every unknown address.
    #[serde(default)]
    pub auto_create_contacts: bool,
    #[serde(default)]
    pub settings: Option<ChannelSettings>,
}

/// Tells a field that is null from one that is left out.
fn given<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

fn default_provider() -> String {
    providers::DEFAULT.to_owned()
}

/// A channel with its secrets.
#[derive(Serialize, ToSchema)]
pub struct MadeChannel {
    pub id: Uuid,
    #[schema(example = "generic")]
    provider: &'static str,
    name: String,
    /// The URL for its events. Keep it private.
    pub url: String,
    /// The secrets for its sender, by name; only in this answer. Generic: `bearer`, to be sent as `Authorization: Bearer ak_live_…`, and
    /// `webhook_secret`, which signs the body (HMAC-SHA256, in `X-Webhook-Signature: sha256=<hex>`, or Standard Webhooks).
    #[serde(flatten)]
    secrets: BTreeMap<&'static str, String>,
    max_per_minute: Option<i32>,
}

impl From<Opened> for MadeChannel {
    fn from(opened: Opened) -> Self {
        let shown = opened.spec.shown(&opened.secrets.proofs);
        Self {
            id: opened.id.0,
            provider: opened.spec.code,
            name: opened.name,
            url: opened.url,
            secrets: shown.map(|(proof, secret)| (proof.name, secret.reveal().to_owned())).collect(),
            max_per_minute: opened.max_per_minute,
        }
    }
}

/// The tenant's channels, without their secrets.
#[utoipa::path(get, path = "/api/v1/channels", tag = "channels", responses((status = 200, body = Channels), (status = 403, body = Problem)))]
pub(crate) async fn list(State(app): State<App>, Managing(caller): Managing) -> Result<Json<Channels>, ApiError> {
    Ok(Json(channels::list(&app.env, &caller).await?.into()))
}

impl From<Vec<store::channels::Channel>> for Channels {
    fn from(channels: Vec<store::channels::Channel>) -> Self {
        Self { channels: channels.into_iter().map(Channel::from).collect() }
    }
}

impl From<store::channels::Channel> for Channel {
    fn from(channel: store::channels::Channel) -> Self {
        let Settings { require_ip, ranges, source_id, query } = channel.settings;
        Self {
            id: channel.id,
            provider: channel.provider_code,
            name: channel.name,
            is_active: channel.is_active,
            max_per_minute: channel.max_per_minute,
            person_id: channel.person_id,
            auto_create_contacts: channel.auto_create_contacts,
            settings: ChannelSettings { require_ip, ranges },
            source_id,
            query,
            created_at: channel.created_at,
        }
    }
}

/// Adds a channel. Its secrets are in this answer.
#[utoipa::path(post, path = "/api/v1/channels", tag = "channels", request_body = AddChannel,
    responses((status = 201, body = MadeChannel), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 409, body = Problem, description = "A channel has that name already")))]
pub(crate) async fn create(
    State(app): State<App>,
    Managing(caller): Managing,
    extract::Json(new): extract::Json<AddChannel>,
) -> Result<(StatusCode, Json<MadeChannel>), ApiError> {
    Ok((StatusCode::CREATED, Json(add(&app, &caller, new).await?)))
}

impl From<ChannelSettings> for Settings {
    fn from(ChannelSettings { require_ip, ranges }: ChannelSettings) -> Self {
        Self { require_ip, ranges, ..Self::default() }
    }
}

pub(crate) async fn add(app: &App, caller: &Caller, new: AddChannel) -> Result<MadeChannel, ApiError> {
    let new = NewChannel {
        name: new.name,
        provider: new.provider,
        max_per_minute: new.max_per_minute,
        secret: new.secret,
        person_id: new.person_id.map(PersonId),
        auto_create_contacts: new.auto_create_contacts,
        settings: new.settings.map(Settings::from).unwrap_or_default(),
    };
    let made = channels::add(&app.env, caller, new).await?;
    Ok(made.into())
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeChannel {
    /// A name that no other channel has.
    #[schema(example = "web shop")]
    pub name: Option<String>,
    /// Verified requests a minute; null: no limit.
    #[serde(default, deserialize_with = "given")]
    pub max_per_minute: Option<Option<i32>>,
    /// The owner of its events from now on; null: they are everyone's.
    #[serde(default, deserialize_with = "given")]
    pub person_id: Option<Option<i64>>,
    pub auto_create_contacts: Option<bool>,
    pub settings: Option<ChannelSettings>,
    /// Of a channel on a mailbox: the letters that are its events from now on, in the words of Gmail's search.
    #[schema(example = "in:inbox subject:order")]
    pub query: Option<String>,
}

/// Changes the name, the owner, the limit, the settings or the query of a channel.
#[utoipa::path(patch, path = "/api/v1/channels/{id}", tag = "channels", params(("id" = Uuid, Path)), request_body = ChangeChannel,
    responses((status = 204), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "A channel has that name already")))]
pub(crate) async fn change(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
    extract::Json(change): extract::Json<ChangeChannel>,
) -> Result<StatusCode, ApiError> {
    let change = ChannelChange {
        name: change.name,
        max_per_minute: change.max_per_minute,
        person_id: change.person_id.map(|owner| owner.map(PersonId)),
        auto_create_contacts: change.auto_create_contacts,
        settings: change.settings.map(Settings::from),
        query: change.query,
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
    channels::change(&app.env, caller, id, change).await?;
    app.intake.forget(id); // a change counts at once in this process
    Ok(())
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateChannel {
    /// The sender's own new secret.
    #[schema(value_type = Option<String>)]
    pub secret: Option<Secret>,
    /// Also makes a new URL; the old one is refused at once.
    #[serde(default)]
    pub url: bool,
    /// The number of hours that the old secrets stay valid; default 24.
    pub keep_hours: Option<u32>,
}

/// Makes new secrets for a channel. The old ones stay valid for another day, unless told otherwise.
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
    let rotation = Rotation { secret: rotate.secret, is_url_too: rotate.url, keep_hours: rotate.keep_hours };
    let rotated = channels::rotate(&app.env, caller, id, rotation).await?;
    app.intake.forget(id); // a change counts at once in this process
    Ok(rotated.into())
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
    let sent = channels::send_test(&app.env, &app.intake, &caller, ChannelId(id)).await??;
    Ok(Json(Tested { id: sent.0 }))
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Refusals {
    refusals: Vec<RefusedOne>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RefusedOne {
    /// The status that the sender was answered with.
    status: i32,
    /// The reason, for the channel's owner alone.
    reason: String,
    /// The remedy; null: none is known.
    #[schema(example = "Copy the bearer key from the webhook's page again. It begins with ak_live_.")]
    todo: Option<&'static str>,
    address: Option<String>,
    /// The number of times within one second.
    n: i32,
    created_at: DateTime<Utc>,
}

/// The newest 200 refusals of the last 30 days, with the reason and never with the body.
#[utoipa::path(get, path = "/api/v1/channels/{id}/refusals", tag = "channels", params(("id" = Uuid, Path)),
    responses((status = 200, body = Refusals), (status = 404, body = Problem)))]
pub(crate) async fn refusals(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
) -> Result<Json<Refusals>, ApiError> {
    let refusals = channels::refusals(&app.env, &caller, ChannelId(id), 200).await?;
    let refusals = refusals.into_iter().map(|Refused { refusal, todo }| RefusedOne {
        status: refusal.status,
        reason: refusal.reason,
        todo,
        address: refusal.address,
        n: refusal.n,
        created_at: refusal.created_at,
    });
    Ok(Json(Refusals { refusals: refusals.collect() }))
}

/// Deletes a channel. Its activities and documents stay.
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
    channels::delete(&app.env, caller, id).await?;
    app.intake.forget(id); // a change counts at once in this process
    Ok(())
}

/// Enables a channel again.
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

/// Disables a channel: its senders are refused after five seconds at most.
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
    channels::set_active(&app.env, caller, id, is_active).await?;
    app.intake.forget(id); // a change counts at once in this process
    Ok(())
}
