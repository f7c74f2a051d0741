//! One channel: its secrets, its newest events, and what it refused and why.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{capitalised, clipped, number};
use domain::{ChannelId, PersonId, Scope};
use engine::ActError;
use serde::Deserialize;
use store::activities::{self, Filter, Wanted};
use store::channels::{self, ChannelChange, Refusal, Settings};
use store::people;
use uuid::Uuid;

use super::activities::Row;
use super::channels::{Flash, HERE, Owner, given, owners, state};
use super::layout::Layout;
use super::text::{Badge, When};
use super::{Posted, Visitor, html};
use crate::api::channels::{RotateChannel, change_to, rotate_now};
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
    /// The name as it is, for its field.
    raw_name: String,
    kind: &'static str,
    badge: Badge,
    is_active: bool,
    /// The provider is known by its address.
    has_networks: bool,
    /// Label and remark of the field for a new secret.
    new_secret: Option<(&'static str, &'static str)>,
    keep_private: &'static str,
    limit: String,
    /// The limit, for its field.
    most: String,
    made: When,
    /// The name of its owner; empty: its events are everyone's.
    owner: String,
    owners: Vec<Owner>,
    may_manage: bool,
    /// Label and secret, for people who manage the channel.
    secrets: Vec<(String, String)>,
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
        let wanted =
            Wanted { filter: Filter { channel_id: Some(id), ..Filter::default() }, limit: EVENTS, ..Wanted::default() };
        let events = activities::list(conn, tenant_id, wanted).await?;
        let refusals = match may_manage {
            true => channels::refusals(conn, tenant_id, id, REFUSALS).await?,
            false => Vec::new(),
        };
        let people = people::list(conn, tenant_id).await?;
        Ok(Some((channel, secrets, events, refusals, people)))
    });
    let (channel, secrets, events, refusals, people) = loaded.await?.ok_or(ApiError::NotFound("channel"))?;
    let now = app.env.clock.now();
    let spec = app.env.channel_providers.find(&channel.provider_code).map_err(ActError::from)?;
    let mut shown = Vec::new();
    if let Some(secrets) = &secrets {
        shown.push(("Webhook URL".to_owned(), (spec.url)(&app.env.config.base_url(), secrets)));
        let named = spec.shown(&secrets.proofs);
        shown.extend(named.map(|(proof, secret)| (capitalised(proof.label), secret.reveal().to_owned())));
        // Only their ids: a shared key is removed by its id.
        shown.extend(secrets.proofs.shared_keys.keys().map(|id| ("Shared key".to_owned(), id.clone())));
    }
    let owners = owners(&people, channel.person_id);
    let retiring =
        secrets.as_ref().and_then(|secrets| secrets.retiring.as_ref()).filter(|retiring| retiring.until > now);
    html(&ChannelPage {
        layout: Layout::new(&visitor, now, format!("{} · Webhooks", clipped(&channel.name, 60)), HERE),
        flash: query.done.in_words(),
        href: format!("{HERE}/{id}"),
        name: clipped(&channel.name, 100),
        raw_name: channel.name.clone(),
        kind: spec.label,
        badge: state(channel.is_active),
        is_active: channel.is_active,
        has_networks: spec.networks.is_some(),
        new_secret: spec.told.new_secret,
        keep_private: spec.told.keep_private,
        limit: channel
            .max_per_minute
            .map_or("any number of requests".into(), |most| format!("{} requests a minute", number(most.into()))),
        most: channel.max_per_minute.map(|most| most.to_string()).unwrap_or_default(),
        made: When::new(channel.created_at, now),
        owner: owners.iter().find(|owner| owner.is_chosen).map(|owner| owner.name.clone()).unwrap_or_default(),
        owners,
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
    /// The number of its owner; empty: its events are everyone's; left out: as it was.
    person_id: Option<String>,
    auto_create_contacts: Option<String>,
    require_ip: Option<String>,
    /// Only on the page of a provider that is known by its address.
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
            Some(Settings { require_ip: form.require_ip.is_some(), ranges })
        }
        None => None,
    };
    let change = ChannelChange {
        person_id: form.person_id.as_deref().map(owner).transpose()?,
        name: Some(form.name),
        max_per_minute: Some(form.max_per_minute),
        auto_create_contacts: Some(form.auto_create_contacts.is_some()),
        settings,
    };
    let here = format!("{HERE}/{id}");
    match change_to(&app, &caller, ChannelId(id), change).await {
        Err(ApiError::Conflict(_)) => Ok(Flash::Taken.back(&here)),
        changed => changed.map(|_| Flash::Saved.back(&here)),
    }
}

/// The chosen owner.
fn owner(chosen: &str) -> Result<Option<PersonId>, ApiError> {
    match chosen {
        "" => Ok(None),
        id => id.parse().map(Some).map_err(|_| ActError::NotFound("person").into()),
    }
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
