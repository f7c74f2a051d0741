//! One channel: what opens it, what came, what was refused and why.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, number};
use domain::{ChannelId, Scope};
use serde::Deserialize;
use store::activities::{self, Of, Wanted};
use store::channels::{self, ChannelChange, Provider, Refusal};
use uuid::Uuid;

use super::activities::Row;
use super::channels::{Flash, HERE, given, kind, state};
use super::layout::Layout;
use super::text::{Badge, When};
use super::{Posted, Visitor, html};
use crate::api::channels::{ChannelSettings, RotateChannel, change_to, checked_limit, checked_settings, rotate_now};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

const EVENTS: i64 = 20;
const REFUSALS: i64 = 50;

#[derive(Template)]
#[template(path = "channel.html")]
struct ChannelPage {
    layout: Layout,
    flash: &'static str,
    href: String,
    name: String,
    /// As it is, for its field.
    raw_name: String,
    kind: &'static str,
    badge: Badge,
    is_active: bool,
    is_postmark: bool,
    is_twilio: bool,
    limit: String,
    /// For its field.
    most: String,
    made: When,
    may_manage: bool,
    /// Label and secret, for who manages it.
    secrets: Vec<(&'static str, String)>,
    retiring: Vec<When>,
    auto_create: bool,
    require_ip: bool,
    ranges: String,
    rows: Vec<Row>,
    refusals: Vec<RefusalRow>,
    csrf: String,
}

struct RefusalRow {
    at: When,
    n: String,
    status: i32,
    reason: String,
    address: String,
}

#[derive(Deserialize)]
pub(crate) struct ChannelQuery {
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<ChannelQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let (id, tenant_id) = (ChannelId(id), visitor.tenant_id);
    let may_manage = visitor.may(Scope::Service);
    let loaded = app.env.db.session(async |conn| {
        let Some(channel) = channels::get(conn, tenant_id, id).await? else { return Ok(None) };
        let secrets = match may_manage {
            true => channels::secrets(conn, &app.env.vault, tenant_id, id).await?,
            false => None,
        };
        let wanted = Wanted { of: Of::Channel(id), before: None, limit: EVENTS };
        let events = activities::list(conn, tenant_id, wanted).await?;
        let refusals = match may_manage {
            true => channels::refusals(conn, tenant_id, id, REFUSALS).await?,
            false => Vec::new(),
        };
        Ok(Some((channel, secrets, events, refusals)))
    });
    let (channel, secrets, events, refusals) = loaded.await?.ok_or(ApiError::NotFound("channel"))?;
    let (now, provider) = (app.env.clock.now(), channel.provider_code.parse::<Provider>()?);
    let mut shown = Vec::new();
    if let Some(secrets) = &secrets {
        shown.push(("Webhook URL", engine::intake::url(&app.env.config.base_url(), provider, secrets)));
        for (label, secret) in
            [("Bearer key", &secrets.proofs.bearer), ("Webhook secret", &secrets.proofs.webhook_secret)]
        {
            shown.extend(secret.as_ref().map(|secret| (label, secret.reveal().to_owned())));
        }
        // Their ids alone: by them they are removed.
        shown.extend(secrets.proofs.shared_keys.keys().map(|id| ("Shared key", id.clone())));
    }
    let retiring =
        secrets.as_ref().and_then(|secrets| secrets.retiring.as_ref()).filter(|retiring| retiring.until > now);
    html(&ChannelPage {
        layout: Layout::new(&visitor, now, format!("{} · Channels", clipped(&channel.name, 60)), HERE),
        flash: query.done.in_words(),
        href: format!("{HERE}/{id}"),
        name: clipped(&channel.name, 100),
        raw_name: channel.name.clone(),
        kind: kind(&channel.provider_code),
        badge: state(channel.is_active),
        is_active: channel.is_active,
        is_postmark: provider == Provider::Postmark,
        is_twilio: provider == Provider::Twilio,
        limit: channel
            .max_per_minute
            .map_or("any number of requests".into(), |most| format!("{} requests a minute", number(most.into()))),
        most: channel.max_per_minute.map(|most| most.to_string()).unwrap_or_default(),
        made: When::new(channel.created_at, now),
        may_manage,
        secrets: shown,
        retiring: retiring.map(|retiring| When::new(retiring.until, now)).into_iter().collect(),
        auto_create: channel.auto_create_contacts,
        require_ip: channel.settings.require_ip,
        ranges: channel.settings.ranges.unwrap_or_default().join(", "),
        rows: events.iter().map(|activity| Row::new(activity, now)).collect(),
        refusals: refusals.iter().map(|refusal| RefusalRow::new(refusal, now)).collect(),
        csrf: visitor.csrf(),
    })
}

impl RefusalRow {
    fn new(refusal: &Refusal, now: DateTime<Utc>) -> Self {
        Self {
            at: When::new(refusal.created_at, now),
            n: if refusal.n > 1 { format!("{}×", number(refusal.n.into())) } else { String::new() },
            status: refusal.status,
            reason: clipped(&refusal.reason, 300),
            address: clipped(refusal.address.as_deref().unwrap_or_default(), 60),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct ChangeForm {
    name: String,
    /// Empty: no limit.
    #[serde(default, deserialize_with = "blank_is_none")]
    max_per_minute: Option<i32>,
    auto_create_contacts: Option<String>,
    require_ip: Option<String>,
    /// Only on Postmark's page.
    ranges: Option<String>,
}

pub(crate) async fn change(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<ChangeForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let settings = match form.ranges {
        Some(text) => {
            let ranges: Vec<String> =
                text.split([',', ' ', '\n', '\r']).filter(|range| !range.is_empty()).map(str::to_owned).collect();
            let ranges = (!ranges.is_empty()).then_some(ranges);
            Some(checked_settings(Some(ChannelSettings { require_ip: form.require_ip.is_some(), ranges }))?)
        }
        None => None,
    };
    let change = ChannelChange {
        name: Some(form.name),
        max_per_minute: Some(checked_limit(form.max_per_minute)?),
        auto_create_contacts: Some(form.auto_create_contacts.is_some()),
        settings,
    };
    change_to(&app, &caller, ChannelId(id), change).await?;
    Ok(Flash::Saved.back(&format!("{HERE}/{id}")))
}

#[derive(Deserialize)]
pub(crate) struct RotateForm {
    #[serde(default)]
    secret: String,
    url: Option<String>,
}

pub(crate) async fn rotate(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<RotateForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let rotation = RotateChannel { secret: given(form.secret), url: form.url.is_some(), keep_hours: None };
    rotate_now(&app, &caller, ChannelId(id), rotation).await?;
    Ok(Flash::Rotated.back(&format!("{HERE}/{id}")))
}
