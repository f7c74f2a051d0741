//! Activities on pages: a row in a list, and one with everything it carries.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::activity::SKIPPED;
use domain::shown::{bytes, clipped, shown_lines};
use domain::{ActivityId, ActivityType, ContactId, Direction, ProcessingStatus, Scope};
use engine::files::attached;
use engine::{ActError, activities};
use futures_util::TryStreamExt as _;
use serde::Deserialize;
use serde_json::Value;
use store::activities::{Activity, Attached, Position};
use store::memory::documents;
use uuid::Uuid;

use super::card::Card;
use super::document::{MOST_TEXT_CHARS, cut};
use super::flash::flashes;
use super::lane::Button;
use super::layout::Layout;
use super::signin::safe_next;
use super::text::{Badge, When};
use super::{Posted, Visitor, chosen, html, message};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::api::recordings;
use crate::app::App;
use crate::edge::FILE_POLICY;

/// One line of a list.
pub(super) struct Row {
    pub id: String,
    pub href: String,
    pub badge: Badge,
    pub title: String,
    pub party: String,
    pub at: When,
}

impl Row {
    pub fn new(activity: &Activity, now: DateTime<Utc>) -> Self {
        Self {
            id: activity.id.to_string(),
            href: format!("/activities/{}", activity.id),
            badge: badge(activity),
            title: title(activity),
            party: clipped(activity.party().unwrap_or("no address"), 60),
            at: When::new(activity.created_at, now),
        }
    }
}

pub(super) fn badge(activity: &Activity) -> Badge {
    let kind = activity.metadata.get("error").and_then(|error| error.get("type")?.as_str());
    Badge(match activity.processing_status {
        ProcessingStatus::Raw => "waiting",
        ProcessingStatus::Processing => "working",
        ProcessingStatus::Completed => "completed",
        ProcessingStatus::Failed if activity.is_dead => "dead",
        ProcessingStatus::Failed if kind == Some(SKIPPED) => "skipped",
        ProcessingStatus::Failed => "failed",
    })
}

pub(super) fn title(activity: &Activity) -> String {
    let said = |name: &str| activity.raw_data.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    // A recording's address says nothing to people.
    let content = if said("source_type") == "url" { "a recording" } else { said("content") };
    let words = [said("subject"), content].into_iter().find(|text| !text.is_empty()).unwrap_or("no words");
    clipped(&format!("{}: {words}", kind(activity.r#type)), 120)
}

pub(super) fn kind(r#type: ActivityType) -> &'static str {
    match r#type {
        ActivityType::Email => "E-mail",
        ActivityType::Call => "Call",
        ActivityType::Sms => "SMS",
        ActivityType::Whatsapp => "WhatsApp",
        ActivityType::Meeting => "Meeting",
        ActivityType::Note => "Note",
        ActivityType::Task => "Task",
        ActivityType::Other => "Event",
    }
}

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityPage {
    layout: Layout,
    flash: &'static str,
    /// The page to which an action returns.
    here: String,
    title: String,
    card: Card,
    facts: Vec<(&'static str, String)>,
    document: Vec<String>,
    content_title: &'static str,
    content: String,
    attachments: Vec<File>,
    metadata: String,
    /// It has no contact, and the visitor may say whose it is.
    may_link: bool,
    /// It carries an address, of which a contact can be made.
    has_party: bool,
    /// Contacts that the field offers.
    offered: Vec<String>,
    may_act: bool,
    csrf: String,
}

struct File {
    href: String,
    name: String,
    note: String,
    /// The page of its document.
    document: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    pub done: Flash,
    #[serde(default, deserialize_with = "blank_is_none")]
    pub before: Option<Position>,
}

flashes! {
    Flash {
        Added = "added": "Added. Search finds it within a second.",
        Retried = "retried": "It waits for an agent again.",
        Skipped = "skipped": "It was skipped. Retry brings it back.",
        Moved = "moved": "It had moved on meanwhile, so nothing was changed. This is how it is now.",
        Linked = "linked": "Linked, with all events from that sender.",
        LinkedOne = "linked-one": "Linked.",
        Unknown = "unknown": "No contact matches, or more than one does. Choose one from the list.",
        NoAddress = "no-address": "No contact can be made of this address. Choose one from the list.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let loaded = app.env.db.read(&visitor, async |tx| {
        let Some(activity) = store::activities::get(tx, visitor.tenant_id, ActivityId(id)).await? else {
            return Ok(None);
        };
        let contact = match activity.contact_id {
            Some(id) => store::contacts::get(tx, visitor.tenant_id, ContactId(id)).await?,
            None => None,
        };
        let document = documents::of_activity(tx, visitor.tenant_id, ActivityId(id)).await?;
        let files = store::activities::attached(tx, visitor.tenant_id, ActivityId(id)).await?;
        Ok(Some((activity, contact, document, files)))
    });
    let (activity, contact, document, files) = loaded.await?.ok_or(ApiError::NotFound("activity"))?;
    let overview = engine::waiting::overview(&app.env, &visitor).await?;
    let now = app.env.clock.now();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut card = Card::new(&activity, contact.as_ref(), &overview, now);
    card.is_listed = false; // all of it is here
    if activity.processed_data.as_ref().is_none_or(|done| text(done, "summary").trim().is_empty()) {
        card.line.clear(); // the content stands below
    }
    let may_link = contact.is_none() && visitor.may(Scope::Write) && !visitor.csrf().is_empty();
    let offered = if may_link { chosen::offers(&app, &visitor).await? } else { Vec::new() };
    if matches!(activity.processing_status, ProcessingStatus::Raw | ProcessingStatus::Processing) {
        card.actions.push(Button { label: "Skip", href: format!("{}/skip", card.href) });
    }
    let file = |(nth, one): (usize, &Attached)| {
        let kind = clipped(one.file.content_type.as_deref().unwrap_or("no type given"), 80);
        let state = match (attached::left_out(&one.file), one.status()) {
            (Some(why), _) => message::left_out(why),
            (None, Some(status)) => message::read_state(status),
            (None, None) => "",
        };
        let note = [kind, bytes(one.file.bytes.unsigned_abs()), state.to_owned()];
        File {
            href: format!("/activities/{id}/attachments/{nth}"),
            name: clipped(attached::title(&one.file), 120),
            note: note.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "),
            document: one.document_id.map(|id| format!("/documents/{id}")),
        }
    };
    let mut facts = vec![("Kind", kind(activity.r#type).to_owned())];
    if card.written_by.is_empty() {
        let direction = if activity.direction == Direction::Outbound { "Sent" } else { "Received" };
        facts.push(("Direction", direction.to_owned()));
    }
    for (label, name) in [("From", "from"), ("To", "to")] {
        let value =
            activity.metadata.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        facts.extend(value.map(|value| (label, clipped(&value, 200))));
    }
    html(&ActivityPage {
        layout: Layout::new(&visitor, now, title(&activity), "/inbox"),
        flash: query.done.in_words(),
        here: card.href.clone(),
        title: title(&activity),
        card,
        facts,
        document: document.map(|id| format!("/documents/{id}")).into_iter().collect(),
        content_title: if text(&activity.raw_data, "source_type") == "url" { "Location" } else { "Content" },
        content: shown_lines(&cut(&text(&activity.raw_data, "content"), MOST_TEXT_CHARS)),
        attachments: files.iter().enumerate().map(file).collect(),
        metadata: shown_lines(&cut(
            &serde_json::to_string_pretty(&activity.metadata).unwrap_or_default(),
            MOST_TEXT_CHARS,
        )),
        may_link,
        has_party: activity.party().is_some(),
        offered,
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    })
}

/// A file that came with an event, to be saved: a browser must not make a page of it.
pub(crate) async fn attachment(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, nth)): Path<(Uuid, usize)>,
) -> Result<impl IntoResponse, ApiError> {
    let (id, tenant_id) = (ActivityId(id), visitor.tenant_id);
    let files = app.env.db.read(&visitor, async |tx| store::activities::attachments(tx, tenant_id, id).await).await?;
    let file = files.get(nth).ok_or(ApiError::NotFound("file"))?;
    let key = file.blob_key.parse().map_err(|_| ApiError::NotFound("file"))?;
    let (_, pieces) = app.env.blobs.get_stream(visitor.tenant_id, &key).await?.ok_or(ApiError::NotFound("file"))?;
    // Letters and digits of its name: what is left cannot end the header's quotes.
    let name: String =
        file.name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_SECURITY_POLICY, FILE_POLICY.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", name.trim_start_matches('.'))),
        (CONTENT_LENGTH, file.bytes.to_string()),
    ];
    Ok((headers, Body::from_stream(pieces.map_err(std::io::Error::other))))
}

/// The recording of a call, for the player on its page.
pub(crate) async fn recording(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    recordings::serve(&app, &visitor, ActivityId(id), &headers).await
}

#[derive(Deserialize)]
pub(crate) struct ActForm {
    /// The page on which it was pressed.
    #[serde(default)]
    back: String,
}

/// retry or skip.
pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, String)>,
    Posted { caller, form }: Posted<ActForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let here = format!("/activities/{id}");
    let (done, flash) = match action.as_str() {
        "retry" => (activities::retry(&app.env, &caller, ActivityId(id)).await, Flash::Retried),
        "skip" => (activities::skip(&app.env, &caller, ActivityId(id)).await, Flash::Skipped),
        _ => return Err(ApiError::NotFound("page")),
    };
    let flash = match done {
        Ok(()) => flash,
        Err(ActError::Conflict(_) | ActError::NotFound(_)) => Flash::Moved,
        Err(error) => return Err(error.into()),
    };
    Ok(flash.back(match safe_next(&form.back) {
        "/" => &here,
        back => back,
    }))
}
