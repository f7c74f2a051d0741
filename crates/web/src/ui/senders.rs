//! Unrecognised senders: addresses that are no contact's, each with its newest event; linked to a contact, made one, or ignored.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, plural};
use domain::{ActivityId, ContactId, Scope};
use engine::senders::{self, Unrecognised};
use engine::{ActError, activities, contacts};
use serde::Deserialize;
use store::contacts::Contact;
use store::senders::Ignored;
use uuid::Uuid;

use super::activities::Row;
use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const HERE: &str = "/inbox/unrecognised";
/// Senders on the page. Those behind them come up as these are dealt with.
const MOST: i64 = 100;
/// The number of contacts that the field offers.
const OFFERED: i64 = 200;

#[derive(Template)]
#[template(path = "senders.html")]
struct SendersPage {
    layout: Layout,
    flash: &'static str,
    rows: Vec<SenderRow>,
    offered: Vec<String>,
    count: String,
    ignored: Vec<IgnoredRow>,
    may_act: bool,
    csrf: String,
}

struct SenderRow {
    /// The address as it is stored, and as it is shown.
    address: String,
    shown: String,
    n: String,
    newest: Row,
}

struct IgnoredRow {
    address: String,
    shown: String,
    by: String,
    at: When,
}

impl SenderRow {
    fn new(of: &Unrecognised, now: DateTime<Utc>) -> Self {
        Self {
            address: of.sender.address.clone(),
            shown: clipped(&of.sender.address, 80),
            n: plural(of.sender.n, "event", "events"),
            newest: Row::new(&of.newest, now),
        }
    }
}

flashes! {
    Flash {
        Linked = "linked": "Linked, with all events from that sender.",
        LinkedOne = "linked-one": "The event was linked. The address stays unrecognised.",
        Unknown = "unknown": "No contact matches, or more than one does. Choose one from the list.",
        NoAddress = "no-address": "No contact can be made of this address. Choose one from the list.",
        Ignored = "ignored": "The sender is ignored. Undo it below.",
        Restored = "restored": "The sender is listed again.",
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let listed = senders::unrecognised(&app.env, &visitor, MOST).await?;
    let ignored = senders::ignored(&app.env, &visitor, MOST).await?;
    let (known, _) = contacts::list(&app.env, &visitor, None, None, OFFERED).await?;
    let now = app.env.clock.now();
    let n = i64::try_from(listed.len()).unwrap_or(i64::MAX);
    let ignored_row = |ignored: &Ignored| IgnoredRow {
        address: ignored.address.clone(),
        shown: clipped(&ignored.address, 80),
        by: clipped(&ignored.ignored_by, 60),
        at: When::new(ignored.created_at, now),
    };
    html(&SendersPage {
        layout: Layout::new(&visitor, now, "Unrecognised", HERE),
        flash: query.done.in_words(),
        count: if n == MOST { format!("The latest {n} senders") } else { plural(n, "sender", "senders") },
        rows: listed.iter().map(|of| SenderRow::new(of, now)).collect(),
        offered: known.iter().map(offer).collect(),
        ignored: ignored.iter().map(ignored_row).collect(),
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct SenderForm {
    address: String,
}

/// Ignores a sender, or lists it again.
pub(crate) async fn act(
    State(app): State<App>,
    Path(action): Path<String>,
    Posted { caller, form }: Posted<SenderForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let flash = match action.as_str() {
        "ignore" => {
            senders::ignore(&app.env, &caller, &form.address).await?;
            Flash::Ignored
        }
        "restore" => match senders::restore(&app.env, &caller, &form.address).await {
            Ok(()) | Err(ActError::NotFound(_)) => Flash::Restored,
            Err(error) => return Err(error.into()),
        },
        _ => return Err(ApiError::NotFound("page")),
    };
    Ok(flash.back(HERE))
}

/// A contact as the field offers it; its number comes first, and is what counts.
fn offer(contact: &Contact) -> String {
    let address = contact.email.as_deref().or(contact.phone_number.as_deref()).unwrap_or_default();
    clipped(&format!("{} {} {address}", contact.id, contact.called()), 100)
}

#[derive(Deserialize)]
pub(crate) struct LinkForm {
    /// The contact as `offer` writes it; empty: a new contact of the activity's address.
    #[serde(default)]
    contact: String,
    add_address: Option<String>,
    is_new: Option<String>,
}

pub(crate) async fn link(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<LinkForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let id = ActivityId(id);
    let contact_id = match form.is_new {
        Some(_) => match contacts::of_activity(&app.env, &caller, id).await {
            Ok(contact_id) => Some(contact_id),
            Err(ActError::Invalid(_)) => return Ok(Flash::NoAddress.back(HERE)),
            Err(error) => return Err(error.into()),
        },
        None => chosen(&app, &caller, form.contact.trim()).await?,
    };
    let Some(contact_id) = contact_id else { return Ok(Flash::Unknown.back(HERE)) };
    let is_address_theirs = form.add_address.is_some() || form.is_new.is_some();
    match activities::link(&app.env, &caller, id, contact_id, is_address_theirs).await {
        Ok(_) if is_address_theirs => Ok(Flash::Linked.back(HERE)),
        Ok(_) => Ok(Flash::LinkedOne.back(HERE)),
        Err(ActError::NotFound(_)) => Ok(Flash::Unknown.back(HERE)),
        Err(error) => Err(error.into()),
    }
}

/// Finds the contact that was typed: one of those offered, by its number, or the only one that the text finds.
async fn chosen(app: &App, caller: &domain::Caller, text: &str) -> Result<Option<ContactId>, ActError> {
    let number: Option<i64> = text.split_whitespace().next().and_then(|number| number.parse().ok());
    if let Some(number) = number {
        let contact = match contacts::get(&app.env, caller, ContactId(number)).await {
            Ok(contact) => Some(contact),
            Err(ActError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        if contact.is_some_and(|contact| text == offer(&contact) || text == number.to_string()) {
            return Ok(Some(ContactId(number)));
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let (found, _) = contacts::list(&app.env, caller, Some(text), None, 2).await?;
    Ok(if let [one] = found.as_slice() { Some(ContactId(one.id)) } else { None })
}
