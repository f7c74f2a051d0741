//! Connections → Webhooks: one card per channel, and what is done to them.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::shown::{clipped, plural};
use domain::{ChannelId, Scope, Secret};
use engine::ActError;
use engine::intake::providers;
use engine::mail::channel::LABEL;
use engine::pull::guide::Mark;
use serde::Deserialize;
use store::channels::{self, Channel};
use store::people::{self, Person};
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::{Badge, Form, Moment};
use super::{Posted, Visitor, html};
use crate::api::channels::{remove, set_active};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

pub(super) const HERE: &str = "/connections/webhooks";
/// The gallery, where one is added.
const ADD: &str = "/connections#add";

#[derive(Template)]
#[template(path = "channels.html")]
struct ChannelsPage {
    layout: Layout,
    flash: &'static str,
    cards: Vec<Card>,
    may_manage: bool,
    /// The providers that a person can choose, without the default.
    senders: String,
    csrf: String,
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
    /// Letters are its events.
    is_on_mailbox: bool,
    badge: Badge,
    is_active: bool,
    made: Moment,
    /// Empty: everyone's.
    owner: String,
    refused: String,
    mark: Option<Mark>,
}

/// The kind of a channel for people, and its mark. One of a newer version's provider is called by its code.
pub(super) fn kind(app: &App, channel: &Channel) -> (String, Option<Mark>) {
    if channel.settings.source_id.is_some() {
        let provider = app.env.providers.named(&channel.provider_code).ok();
        return (LABEL.to_owned(), provider.map(|provider| provider.guide.mark));
    }
    let spec = app.env.channel_providers.find(&channel.provider_code).ok();
    let label = spec.map_or(channel.provider_code.as_str(), |spec| spec.label);
    (label.to_owned(), spec.map(|spec| spec.guide.mark))
}

pub(super) fn state(is_active: bool) -> Badge {
    Badge(if is_active { "active" } else { "inactive" })
}

#[derive(Deserialize)]
pub(crate) struct ChannelsQuery {
    /// An address from before: one is added by the gallery now.
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
) -> Result<Response, ApiError> {
    if query.add.is_some() {
        return Ok(Redirect::to(ADD).into_response());
    }
    let may_manage = visitor.may(Scope::Service);
    let loaded = app.env.db.session(async |conn| {
        let refusing = match may_manage {
            true => channels::refusing(conn, app.env.clock.sql(), visitor.tenant_id, 1).await?,
            false => Vec::new(),
        };
        let people = people::list(conn, visitor.tenant_id).await?;
        Ok((channels::list(conn, visitor.tenant_id).await?, refusing, people))
    });
    let (all, refusing, people) = loaded.await?;
    let card = |channel: &Channel| {
        let refused = refusing.iter().find(|refusing| refusing.channel_id == channel.id);
        let (kind, mark) = kind(&app, channel);
        Card {
            href: format!("{HERE}/{}", channel.id),
            name: clipped(&channel.name, 100),
            kind,
            is_on_mailbox: channel.settings.source_id.is_some(),
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
            mark,
        }
    };
    let specs = app.env.channel_providers.all();
    let named = specs.iter().filter(|spec| spec.code != providers::DEFAULT).map(|spec| spec.choice.0);
    let page = ChannelsPage {
        layout: Layout::new(&visitor, app.env.clock.now(), "Webhooks", HERE),
        flash: query.done.in_words(),
        cards: all.iter().map(card).collect(),
        senders: named.collect::<Vec<_>>().join(", "),
        may_manage,
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
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
