//! Connections → Webhooks: one card per channel, and the dialog that adds one.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::shown::{clipped, plural};
use domain::{ChannelId, Scope, Secret};
use engine::ActError;
use engine::intake::{ChannelSpec, providers};
use serde::Deserialize;
use store::channels::{self, Channel, Secrets};
use store::people::{self, Person};
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::{Badge, Form, Moment};
use super::{Posted, Visitor, html};
use crate::api::channels::{AddChannel, add, remove, set_active};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

pub(super) const HERE: &str = "/connections/webhooks";

#[derive(Template)]
#[template(path = "channels.html")]
struct ChannelsPage {
    layout: Layout,
    flash: &'static str,
    cards: Vec<Card>,
    may_manage: bool,
    is_adding: bool,
    trouble: String,
    /// The values of the dialog's fields.
    typed: Typed,
    choices: Vec<Choice>,
    secret_hint: String,
    owners: Vec<Owner>,
    /// The providers that a person can choose, without the default.
    senders: String,
    csrf: String,
}

/// Values that a person typed into the dialog.
#[derive(Default)]
struct Typed {
    name: String,
    provider: String,
    is_auto: bool,
    owner: Option<i64>,
}

/// A provider that a person can choose.
struct Choice {
    code: &'static str,
    label: &'static str,
    sends: &'static str,
    is_checked: bool,
}

/// A person who can be chosen as the owner.
pub(super) struct Owner {
    pub id: i64,
    pub name: String,
    pub is_chosen: bool,
}

/// The people of a tenant, without the built-in agent's.
pub(super) fn owners(people: &[Person], chosen: Option<i64>) -> Vec<Owner> {
    let people = people.iter().filter(|person| !person.is_built_in());
    let owner = |person: &Person| Owner {
        id: person.id,
        name: clipped(&person.called(), 80),
        is_chosen: Some(person.id) == chosen,
    };
    people.map(owner).collect()
}

struct Card {
    href: String,
    name: String,
    kind: String,
    badge: Badge,
    is_active: bool,
    made: Moment,
    /// Empty: everyone's.
    owner: String,
    refused: String,
    url: String,
    url_warning: &'static str,
}

pub(super) fn state(is_active: bool) -> Badge {
    Badge(if is_active { "active" } else { "inactive" })
}

#[derive(Deserialize)]
pub(crate) struct ChannelsQuery {
    /// Opens the dialog, for browsers without script.
    add: Option<String>,
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Enabled = "enabled": "The webhook accepts events again.",
        Disabled = "disabled": "The webhook refuses all events until you enable it.",
        Deleted = "deleted": "The webhook was deleted. Its activities stay.",
        Added = "added": "The webhook is ready. Copy its URL to the sender, or send a test event.",
        Saved = "saved": "Saved.",
        Taken = "taken": "It was not saved: another webhook has that name. Choose another one.",
        Rotated = "rotated": "The secrets were replaced. The old ones keep working for a day; an old URL stops at once.",
        Tested = "tested": "The test event came through. It is the newest below.",
        Refused = "refused": "The test event was refused. The newest refusal below says why.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ChannelsQuery>,
) -> Result<impl IntoResponse, ApiError> {
    page(&app, &visitor, query.done, query.add.is_some(), String::new(), Typed::default()).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    flash: Flash,
    is_adding: bool,
    trouble: String,
    typed: Typed,
) -> Result<Response, ApiError> {
    let may_manage = visitor.may(Scope::Service);
    let loaded = app.env.db.session(async |conn| {
        let mut all = Vec::new();
        for channel in channels::list(conn, visitor.tenant_id).await? {
            // The URL is part of the secret: only for people who manage the channel.
            let secrets = match may_manage {
                true => channels::secrets(conn, &app.env.vault, visitor.tenant_id, ChannelId(channel.id)).await?,
                false => None,
            };
            all.push((channel, secrets));
        }
        let refusing = match may_manage {
            true => channels::refusing(conn, app.env.clock.sql(), visitor.tenant_id, 1).await?,
            false => Vec::new(),
        };
        Ok((all, refusing, people::list(conn, visitor.tenant_id).await?))
    });
    let (all, refusing, people) = loaded.await?;
    let base_url = app.env.config.base_url();
    let card = |(channel, secrets): &(Channel, Option<Secrets>)| {
        let refused = refusing.iter().find(|refusing| refusing.channel_id == channel.id);
        // A channel of a newer version's provider is listed by its code.
        let spec = app.env.channel_providers.find(&channel.provider_code).ok();
        Card {
            href: format!("{HERE}/{}", channel.id),
            name: clipped(&channel.name, 100),
            kind: spec.map_or(channel.provider_code.as_str(), |spec| spec.label).to_owned(),
            badge: state(channel.is_active),
            is_active: channel.is_active,
            made: Moment { at: channel.created_at, form: Form::Day },
            owner: people
                .iter()
                .find(|person| Some(person.id) == channel.person_id)
                .map(|person| clipped(&person.called(), 80))
                .unwrap_or_default(),
            refused: refused
                .map(|refused| format!("{} in the last ten minutes", plural(refused.n, "refusal", "refusals")))
                .unwrap_or_default(),
            url: spec.zip(secrets.as_ref()).map(|(spec, secrets)| (spec.url)(&base_url, secrets)).unwrap_or_default(),
            url_warning: spec.map_or("", |spec| spec.told.url_warning),
        }
    };
    let specs = app.env.channel_providers.all();
    let is_known = specs.iter().any(|spec| spec.code == typed.provider);
    let chosen = if is_known { typed.provider.as_str() } else { providers::DEFAULT };
    let choice = |spec: &&'static ChannelSpec| {
        let (label, sends) = spec.choice;
        Choice { code: spec.code, label, sends, is_checked: spec.code == chosen }
    };
    let named = specs.iter().filter(|spec| spec.code != providers::DEFAULT).map(|spec| spec.choice.0);
    let page = ChannelsPage {
        layout: Layout::new(visitor, app.env.clock.now(), "Webhooks", HERE),
        flash: flash.in_words(),
        cards: all.iter().map(card).collect(),
        choices: specs.iter().map(choice).collect(),
        senders: named.collect::<Vec<_>>().join(", "),
        secret_hint: specs.iter().map(|spec| spec.told.secret_hint).collect::<Vec<_>>().join(" "),
        owners: owners(&people, typed.owner),
        may_manage,
        is_adding,
        trouble,
        typed,
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct AddForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    secret: String,
    /// The number of its owner; empty: its events are everyone's.
    #[serde(default, deserialize_with = "blank_is_none")]
    person_id: Option<i64>,
    auto_create_contacts: Option<String>,
}

/// Adds a channel. Where something is wrong, the dialog comes back with the values that were typed, except the secret.
pub(crate) async fn create(
    State(app): State<App>,
    Posted { caller, form }: Posted<AddForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let is_auto = form.auto_create_contacts.is_some();
    let new = AddChannel {
        name: form.name.clone(),
        provider: form.provider.clone(),
        max_per_minute: None,
        secret: given(form.secret),
        person_id: form.person_id,
        auto_create_contacts: is_auto,
        settings: None,
    };
    let (status, what) = match add(&app, &caller, new).await {
        Ok(made) => return Ok(Flash::Added.back(&format!("{HERE}/{}", made.id))),
        Err(ApiError::Malformed(status, what)) => (status, what),
        Err(ApiError::Conflict(what)) => (StatusCode::CONFLICT, what), // its name is taken
        Err(error) => return Err(error),
    };
    let typed = Typed { name: clipped(&form.name, 100), provider: form.provider, is_auto, owner: form.person_id };
    let mut response = page(&app, &Visitor(caller), Flash::Nothing, true, what, typed).await?;
    *response.status_mut() = status;
    Ok(response)
}

/// An empty field is no secret.
pub(super) fn given(secret: String) -> Option<Secret> {
    (!secret.trim().is_empty()).then(|| Secret::new(secret))
}

#[derive(Deserialize)]
pub(crate) struct ActForm {
    /// The button was on the channel's own page.
    here: Option<String>,
}

/// Enables, disables, deletes or tests a channel.
pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, String)>,
    Posted { caller, form }: Posted<ActForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let id = ChannelId(id);
    let own = if form.here.is_some() { format!("{HERE}/{id}") } else { HERE.to_owned() };
    match action.as_str() {
        "enable" | "disable" => {
            let is_active = action == "enable";
            set_active(&app, &caller, id, is_active).await?;
            Ok(if is_active { Flash::Enabled } else { Flash::Disabled }.back(&own))
        }
        "delete" => {
            remove(&app, &caller, id).await?;
            Ok(Flash::Deleted.back(HERE))
        }
        "test" => {
            let sent = engine::channels::send_test(&app.env, &app.intake, &caller, id).await;
            let flash = match sent {
                Ok(taken) => {
                    taken?;
                    Flash::Tested
                }
                Err(ActError::Conflict(_)) => Flash::Refused,
                Err(error) => return Err(error.into()),
            };
            Ok(flash.back(&format!("{HERE}/{id}")))
        }
        _ => Err(ApiError::NotFound("page")),
    }
}
