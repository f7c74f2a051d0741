//! Settings → Channels: one card per door, and the dialog that adds one.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::shown::{clipped, plural};
use domain::{ChannelId, Scope, Secret};
use serde::Deserialize;
use store::channels::{self, Channel, Provider, Secrets};
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::Badge;
use super::{Posted, Visitor, html};
use crate::api::channels::{AddChannel, add, remove, set_active};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

pub(super) const HERE: &str = "/settings/channels";

#[derive(Template)]
#[template(path = "channels.html")]
struct ChannelsPage {
    layout: Layout,
    flash: &'static str,
    cards: Vec<Card>,
    may_manage: bool,
    is_adding: bool,
    trouble: String,
    /// What was typed into the dialog.
    typed: Typed,
    csrf: String,
}

#[derive(Default)]
struct Typed {
    name: String,
    provider: String,
    is_auto: bool,
}

struct Card {
    href: String,
    name: String,
    kind: &'static str,
    badge: Badge,
    is_active: bool,
    made: String,
    refused: String,
    url: String,
}

/// What its owner calls a provider.
pub(super) fn kind(code: &str) -> &'static str {
    match code.parse() {
        Ok(Provider::Twilio) => "Twilio",
        Ok(Provider::Postmark) => "Postmark",
        Ok(Provider::Generic) => "Generic webhook",
        Err(_) => "Other",
    }
}

pub(super) fn state(is_active: bool) -> Badge {
    Badge(if is_active { "active" } else { "inactive" })
}

#[derive(Deserialize)]
pub(crate) struct ChannelsQuery {
    /// The dialog is open, for who has no script.
    add: Option<String>,
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Enabled = "enabled": "The channel takes webhooks again.",
        Disabled = "disabled": "The channel refuses webhooks until you enable it.",
        Deleted = "deleted": "The channel was deleted. What it brought stays.",
        Added = "added": "The channel is ready. Copy its URL to where the events come from, or send a test event.",
        Saved = "saved": "Saved.",
        Rotated = "rotated": "There are new secrets. The old ones are good for another day; an old URL is closed at once.",
        Tested = "tested": "A test event, signed as its provider would sign it, came through. It is the newest below.",
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
            // The URL is half of what opens a channel: for who manages it alone.
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
        Ok((all, refusing))
    });
    let (all, refusing) = loaded.await?;
    let base_url = app.env.config.base_url();
    let card = |(channel, secrets): &(Channel, Option<Secrets>)| {
        let refused = refusing.iter().find(|refusing| refusing.channel_id == channel.id);
        let url = secrets.as_ref().zip(channel.provider_code.parse().ok());
        Card {
            href: format!("{HERE}/{}", channel.id),
            name: clipped(&channel.name, 100),
            kind: kind(&channel.provider_code),
            badge: state(channel.is_active),
            is_active: channel.is_active,
            made: channel.created_at.format("%-d %B %Y").to_string(),
            refused: refused
                .map(|refused| format!("{} in the last ten minutes", plural(refused.n, "refusal", "refusals")))
                .unwrap_or_default(),
            url: url.map(|(secrets, provider)| engine::intake::url(&base_url, provider, secrets)).unwrap_or_default(),
        }
    };
    let page = ChannelsPage {
        layout: Layout::new(visitor, app.env.clock.now(), "Channels", HERE),
        flash: flash.in_words(),
        cards: all.iter().map(card).collect(),
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
    auto_create_contacts: Option<String>,
}

/// Adds a channel; with something wrong about it, the dialog comes back with what was typed, but for the secret.
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
        person_id: None,
        auto_create_contacts: is_auto,
        settings: None,
    };
    match add(&app, &caller, new).await {
        Ok(made) => Ok(Flash::Added.back(&format!("{HERE}/{}", made.id))),
        Err(ApiError::Malformed(status, what)) => {
            let typed = Typed { name: clipped(&form.name, 100), provider: form.provider, is_auto };
            let visitor = Visitor(caller);
            let mut response = page(&app, &visitor, Flash::Nothing, true, what, typed).await?;
            *response.status_mut() = status;
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

/// An empty field says nothing.
pub(super) fn given(secret: String) -> Option<Secret> {
    (!secret.trim().is_empty()).then(|| Secret::new(secret))
}

#[derive(Deserialize)]
pub(crate) struct ActForm {
    /// Pressed on the channel's own page.
    here: Option<String>,
}

/// enable, disable or delete.
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
            let sent = crate::api::channels::send_test(&app, &caller, id).await;
            let flash = match sent {
                Ok(_) => Flash::Tested,
                Err(ApiError::Conflict(_)) => Flash::Refused,
                Err(error) => return Err(error),
            };
            Ok(flash.back(&format!("{HERE}/{id}")))
        }
        _ => Err(ApiError::NotFound("page")),
    }
}
