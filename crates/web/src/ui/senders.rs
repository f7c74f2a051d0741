//! Unrecognised senders: addresses that are no contact's, each with its newest event; linked to a contact, made one, or ignored. An event without an
//! address is linked on its own page.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, counted, plural};
use domain::{ActivityId, Scope};
use engine::senders::{self, Unrecognised};
use engine::{ActError, activities, contacts};
use serde::Deserialize;
use store::queue::MOST_COUNTED;
use store::senders::Ignored;
use uuid::Uuid;

use super::activities::Row;
use super::flash::flashes;
use super::layout::Layout;
use super::signin::safe_next;
use super::text::When;
use super::{Posted, Visitor, chosen, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const HERE: &str = "/inbox/unrecognised";
/// Senders on the page. Those behind them come up as these are dealt with.
const MOST: i64 = 100;

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
            n: match of.sender.n {
                MOST_COUNTED.. => format!("{} events", counted(of.sender.n, MOST_COUNTED)),
                n => plural(n, "event", "events"),
            },
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
    let now = app.env.clock.now();
    let n_listed = i64::try_from(listed.senders.len()).unwrap_or(i64::MAX);
    let ignored_row = |ignored: &Ignored| IgnoredRow {
        address: ignored.address.clone(),
        shown: clipped(&ignored.address, 80),
        by: clipped(&ignored.ignored_by, 60),
        at: When::new(ignored.created_at, now),
    };
    html(&SendersPage {
        layout: Layout::new(&visitor, now, "Unrecognised", HERE),
        flash: query.done.in_words(),
        count: match listed.n {
            n if n > n_listed => format!("The latest {n_listed} of {} senders", counted(n, MOST_COUNTED)),
            n => plural(n, "sender", "senders"),
        },
        rows: listed.senders.iter().map(|of| SenderRow::new(of, now)).collect(),
        offered: chosen::offers(&app, &visitor).await?,
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

#[derive(Deserialize)]
pub(crate) struct LinkForm {
    /// The contact as `offer` writes it; empty: a new contact of the activity's address.
    #[serde(default)]
    contact: String,
    add_address: Option<String>,
    is_new: Option<String>,
    /// The page to which it returns; empty: this one.
    #[serde(default)]
    back: String,
}

pub(crate) async fn link(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<LinkForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let id = ActivityId(id);
    let back = match safe_next(&form.back) {
        "/" => HERE,
        back => back,
    };
    let contact_id = match form.is_new {
        Some(_) => match contacts::of_activity(&app.env, &caller, id).await {
            Ok(contact_id) => Some(contact_id),
            Err(ActError::Invalid(_)) => return Ok(Flash::NoAddress.back(back)),
            Err(error) => return Err(error.into()),
        },
        None => chosen::chosen(&app, &caller, form.contact.trim()).await?,
    };
    let Some(contact_id) = contact_id else { return Ok(Flash::Unknown.back(back)) };
    let is_address_theirs = form.add_address.is_some() || form.is_new.is_some();
    match activities::link(&app.env, &caller, id, contact_id, is_address_theirs).await {
        Ok(_) if is_address_theirs => Ok(Flash::Linked.back(back)),
        Ok(_) => Ok(Flash::LinkedOne.back(back)),
        Err(ActError::NotFound(_)) => Ok(Flash::Unknown.back(back)),
        Err(error) => Err(error.into()),
    }
}
