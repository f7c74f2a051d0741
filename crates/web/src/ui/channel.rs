//! One channel: its secrets, its newest events, and what it refused and why.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{capitalised, clipped, number};
use domain::{ChannelId, PersonId, Scope, Secret};
use engine::ActError;
use engine::channels::Opened;
use engine::intake::ChannelSpec;
use engine::intake::providers::{ProofSpec, explain};
use engine::pull::guide::{Gives, Mark};
use engine::setup;
use serde::Deserialize;
use store::activities::{self, Filter, Wanted};
use store::channels::{self, ChannelChange, Refusal, Settings};
use store::people;
use uuid::Uuid;

use super::activities::Row;
use super::channels::{Flash, HERE, Owner, given, owners, state};
use super::layout::Layout;
use super::mail_channel;
use super::text::{Badge, When, with_code};
use super::walk::{Check, Shown, StepView, Told, masked, steps};
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
    mark: Mark,
    /// The URL and the secrets, for people who manage the channel.
    secrets: Vec<Shown>,
    /// Some of them are masked.
    has_masked: bool,
    /// A command that sends a test event. Only beside secrets that are shown.
    command: Option<String>,
    /// How far the set-up is.
    checks: Vec<Check>,
    /// Nothing has arrived yet.
    is_waiting: bool,
    /// The last refusal, if nothing arrived after it.
    refused: Vec<RefusalRow>,
    /// The known sender that it was added for; empty: none.
    sender: &'static str,
    newest: When,
    steps: Vec<StepView>,
    /// Known senders, each with its own steps.
    senders: Vec<SenderSteps>,
    retiring: Vec<When>,
    auto_create: bool,
    require_ip: bool,
    ranges: String,
    rows: Vec<Row>,
    refusals: Vec<RefusalRow>,
    csrf: String,
}

/// A known sender and the steps there.
struct SenderSteps {
    label: &'static str,
    /// The channel was added for it.
    is_chosen: bool,
    steps: Vec<StepView>,
}

struct RefusalRow {
    at: When,
    n: String,
    status: i32,
    reason: String,
    /// The remedy; empty: none is known.
    todo: Told,
    address: String,
}

#[derive(Deserialize)]
pub(crate) struct ChannelQuery {
    #[serde(default)]
    done: Flash,
    /// The known sender that it was added for.
    #[serde(default)]
    sender: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<ChannelQuery>,
) -> Result<Response, ApiError> {
    let standing = engine::mail::channel::get(&app.env, &visitor, ChannelId(id)).await?;
    if standing.is_on_mailbox() {
        return mail_channel::page(&app, &visitor, standing, query.done).await;
    }
    page(&app, &visitor, ChannelId(id), &query, false).await
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

/// The page with its secrets, for one look. The log names who took it.
pub(crate) async fn reveal(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Query(query): Query<ChannelQuery>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Service)?;
    page(&app, &Visitor(caller), ChannelId(id), &query, true).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    id: ChannelId,
    query: &ChannelQuery,
    is_revealed: bool,
) -> Result<Response, ApiError> {
    let tenant_id = visitor.tenant_id;
    let may_manage = visitor.may(Scope::Service);
    let loaded = app.env.db.session(async |conn| {
        let Some(channel) = channels::get(conn, tenant_id, id).await? else { return Ok(None) };
        let wanted =
            Wanted { filter: Filter { channel_id: Some(id), ..Filter::default() }, limit: EVENTS, ..Wanted::default() };
        let events = activities::list(conn, tenant_id, wanted).await?;
        let refusals = match may_manage {
            true => channels::refusals(conn, tenant_id, id, REFUSALS).await?,
            false => Vec::new(),
        };
        let people = people::list(conn, tenant_id).await?;
        Ok(Some((channel, events, refusals, people)))
    });
    let (channel, events, refusals, people) = loaded.await?.ok_or(ApiError::NotFound("channel"))?;
    let now = app.env.clock.now();
    let spec = app.env.channel_providers.find(&channel.provider_code).map_err(ActError::from)?;
    let opened = match may_manage {
        true => Some(engine::channels::open(&app.env, visitor, id).await?),
        false => None,
    };
    if is_revealed {
        engine::channels::log_shown(visitor, id);
    }
    let secrets = opened.as_ref().map_or_else(Vec::new, |opened| shown(opened, is_revealed));
    let values = |gives| opened.as_ref().map_or_else(Vec::new, |opened| of_step(opened, gives, is_revealed));
    let owners = owners(&people, channel.person_id);
    let retiring = opened.as_ref().and_then(|opened| opened.secrets.retiring.as_ref());
    let retiring = retiring.filter(|retiring| retiring.until > now);
    let newest = events.iter().map(|activity| activity.created_at).max();
    let page = ChannelPage {
        layout: Layout::new(visitor, now, format!("{} · Webhooks", clipped(&channel.name, 60)), HERE),
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
        mark: spec.guide.mark,
        has_masked: secrets.iter().any(|shown| shown.is_masked),
        secrets,
        command: opened
            .as_ref()
            .filter(|_| is_revealed)
            .and_then(|opened| engine::channels::test_command(&app.env, opened)),
        checks: vec![setup::address(&app.env.config).into()],
        is_waiting: newest.is_none(),
        refused: refusals
            .iter()
            .take(1)
            .filter(|refusal| newest.is_none_or(|at| refusal.created_at > at))
            .map(|refusal| RefusalRow::new(spec, refusal, now))
            .collect(),
        sender: spec.guide.sender(&query.sender).map_or("", |sender| sender.code),
        newest: When::maybe(newest, now),
        steps: steps(spec.guide.steps, values),
        senders: spec
            .guide
            .senders
            .iter()
            .map(|sender| SenderSteps {
                label: sender.label,
                is_chosen: sender.code == query.sender,
                steps: steps(sender.steps, values),
            })
            .collect(),
        retiring: retiring.map(|retiring| When::new(retiring.until, now)).into_iter().collect(),
        auto_create: channel.auto_create_contacts,
        require_ip: channel.settings.require_ip,
        ranges: channel.settings.ranges.unwrap_or_default().join(", "),
        rows: events.iter().map(|activity| Row::new(activity, now)).collect(),
        refusals: refusals.iter().map(|refusal| RefusalRow::new(spec, refusal, now)).collect(),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// The URL and the secrets of a channel. A URL that holds a secret is masked like one.
fn shown(opened: &Opened, is_revealed: bool) -> Vec<Shown> {
    let proofs = &opened.secrets.proofs;
    let mut all = vec![url(opened, is_revealed)];
    all.extend(opened.spec.shown(proofs).map(|(proof, secret)| of_secret(proof, secret, is_revealed)));
    // Only their ids: a shared key is removed by its id.
    all.extend(proofs.shared_keys.keys().map(|id| Shown::plain("Shared key", id.as_str())));
    all
}

/// The values that a step at the sender needs.
fn of_step(opened: &Opened, gives: Gives, is_revealed: bool) -> Vec<Shown> {
    match gives {
        Gives::WebhookUrl => vec![url(opened, is_revealed)],
        Gives::Secret(name) => {
            let named = opened.spec.shown(&opened.secrets.proofs).filter(|(proof, _)| proof.name == name);
            named.map(|(proof, secret)| of_secret(proof, secret, is_revealed)).collect()
        }
        Gives::Nothing | Gives::RedirectUrl | Gives::Scopes | Gives::Settings => Vec::new(),
    }
}

fn of_secret(proof: &ProofSpec, secret: &Secret, is_revealed: bool) -> Shown {
    let value = if is_revealed { secret.reveal().to_owned() } else { masked(secret.reveal()) };
    Shown { label: capitalised(proof.label), value, is_masked: !is_revealed }
}

fn url(opened: &Opened, is_revealed: bool) -> Shown {
    let Opened { url, spec, secrets, .. } = opened;
    let held = spec.proofs.iter().filter_map(|proof| secrets.proofs.get(proof.name));
    let held = held.map(Secret::reveal).find(|secret| url.contains(*secret)).filter(|_| !is_revealed);
    let label = "Webhook URL".to_owned();
    match held {
        Some(secret) => {
            let key = secrets.ingestion_key.reveal();
            let value = url.replace(secret, &masked("")).replace(key, &masked(key));
            Shown { label, value, is_masked: true }
        }
        None => Shown::plain(label, url.as_str()),
    }
}

impl RefusalRow {
    fn new(spec: &ChannelSpec, refusal: &Refusal, now: DateTime<Utc>) -> Self {
        let advice = explain(spec, &refusal.reason);
        Self {
            todo: advice.map(|advice| with_code(advice.todo)).unwrap_or_default(),
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
    /// Only on the page of a channel on a mailbox.
    query: Option<String>,
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
            Some(Settings { require_ip: form.require_ip.is_some(), ranges, ..Settings::default() })
        }
        None => None,
    };
    let change = ChannelChange {
        person_id: form.person_id.as_deref().map(owner).transpose()?,
        name: Some(form.name),
        max_per_minute: Some(form.max_per_minute),
        auto_create_contacts: Some(form.auto_create_contacts.is_some()),
        settings,
        query: form.query,
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
