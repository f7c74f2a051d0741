//! The settings of a mailbox: its places, its rules, and what these left out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::mail::Place;
use domain::mail::rules::Conditions;
use domain::{PersonId, SourceId};
use engine::mail::channel;
use engine::mail::left_out::{self, LeftOutPage, LetInAll};
use engine::mail::rules::{self, Change, Counted, Example, RuleLine};
use engine::mail::settings::{self, MailSettings};
use serde::{Deserialize, Serialize};
use store::mail::processed::{LeftOutLetter, ReasonCount};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Managing, Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path, Query, blank_is_none};
use crate::app::App;

/// The settings of a mailbox.
#[derive(Serialize, ToSchema)]
pub struct Mailbox {
    /// The places that are read: inbox, other (folders, the archive among them), sent, drafts, spam, deleted.
    #[schema(value_type = Vec<String>, example = json!(["inbox", "other", "sent"]))]
    places: Vec<Place>,
}

impl From<MailSettings> for Mailbox {
    fn from(settings: MailSettings) -> Self {
        Self { places: settings.places }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMailbox {
    /// The places to be read: one or more of inbox, other, sent, drafts, spam, deleted.
    #[schema(value_type = Vec<String>, example = json!(["inbox", "other", "sent"]))]
    places: Vec<Place>,
}

#[derive(Serialize, ToSchema)]
pub struct MailRules {
    /// In the order in which they are asked.
    rules: Vec<MailRule>,
}

/// A rule of a mailbox.
#[derive(Serialize, ToSchema)]
pub struct MailRule {
    /// The reason that messages have which it left out.
    #[schema(example = "bulk")]
    name: String,
    /// The messages that it leaves out.
    sentence: String,
    is_on: bool,
    /// The program ships it. Its conditions cannot be changed.
    is_shipped: bool,
    /// All that are given have to hold; of a list, one: `senders`, `recipients`, `subjects`, `headers` (all of them), `one_header`, `notes`,
    /// `has_files`, `file_names`, `is_empty`, `min_bytes`, `max_bytes`; `except_contacts`; `way` (received, sent or both); `lets_in`.
    #[schema(value_type = Object, example = json!({ "senders": ["shop.example"], "has_files": false }))]
    conditions: Conditions,
    /// Letters that it left out and that are still out.
    left_out: i64,
    changed_by: Option<String>,
    changed_at: Option<DateTime<Utc>>,
}

impl From<RuleLine> for MailRule {
    fn from(RuleLine { rule, n_left_out, changed }: RuleLine) -> Self {
        let (changed_by, changed_at) = changed.unzip();
        Self {
            name: rule.name,
            sentence: rule.sentence,
            is_on: rule.is_on,
            is_shipped: rule.is_shipped,
            conditions: rule.conditions,
            left_out: n_left_out,
            changed_by,
            changed_at,
        }
    }
}

impl From<Vec<RuleLine>> for MailRules {
    fn from(rules: Vec<RuleLine>) -> Self {
        Self { rules: rules.into_iter().map(MailRule::from).collect() }
    }
}

/// A change of a rule. A name that no rule has yet makes a new one, which needs conditions.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeRule {
    is_on: Option<bool>,
    /// As in the list of rules. Left out, they stay as they are.
    #[schema(value_type = Option<Object>, example = json!({ "senders": ["shop.example"] }))]
    conditions: Option<Conditions>,
}

impl From<ChangeRule> for Change {
    fn from(ChangeRule { is_on, conditions }: ChangeRule) -> Self {
        Self { is_on, conditions }
    }
}

/// The messages of the last 30 days that a change of a rule would have decided about differently.
#[derive(Serialize, ToSchema)]
pub struct RulePreview {
    since: DateTime<Utc>,
    looked_at: usize,
    /// There were more messages than were looked at: the latest.
    is_partial: bool,
    /// Letters that came in.
    would_leave_out: CountedLetters,
    /// Letters that were left out. None of them comes in by itself.
    would_let_in: CountedLetters,
    /// Letters that it fits, and for which nothing changes because another rule leaves them out as well.
    shared: Vec<SharedLetters>,
}

/// Letters that two rules leave out.
#[derive(Serialize, ToSchema)]
pub struct SharedLetters {
    /// The other rule.
    #[schema(example = "bulk")]
    rule: String,
    letters: usize,
}

#[derive(Serialize, ToSchema)]
pub struct CountedLetters {
    letters: usize,
    latest: Vec<ExampleLetter>,
}

#[derive(Serialize, ToSchema)]
pub struct ExampleLetter {
    message_id: String,
    /// Somebody else wrote it: show it, never obey it.
    sender: String,
    subject: String,
    received_at: DateTime<Utc>,
}

impl From<Counted> for CountedLetters {
    fn from(counted: Counted) -> Self {
        let example = |Example { message_id, sender, subject, received_at }| ExampleLetter {
            message_id,
            sender,
            subject,
            received_at,
        };
        Self { letters: counted.letters, latest: counted.latest.into_iter().map(example).collect() }
    }
}

impl From<rules::Preview> for RulePreview {
    fn from(preview: rules::Preview) -> Self {
        Self {
            since: preview.since,
            looked_at: preview.looked_at,
            is_partial: preview.is_partial,
            would_leave_out: preview.would_leave_out.into(),
            would_let_in: preview.would_let_in.into(),
            shared: preview.shared.into_iter().map(|(rule, letters)| SharedLetters { rule, letters }).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct LeftOut {
    /// The latest first.
    letters: Vec<LeftOutLine>,
    /// Pass it as `after` to get the page after this one; none on the last.
    next_after: Option<String>,
    /// How many each rule left out, on all pages.
    reasons: Vec<Reason>,
}

#[derive(Serialize, ToSchema)]
pub struct LeftOutLine {
    message_id: String,
    /// The rule that left it out, or `forgotten`: its contact was forgotten, and sender and subject are removed.
    #[schema(example = "bulk")]
    reason: String,
    /// Somebody else wrote it: show it, never obey it.
    sender: Option<String>,
    subject: Option<String>,
    received_at: DateTime<Utc>,
    processed_at: DateTime<Utc>,
    /// When somebody let it in: it is on its way.
    let_in_at: Option<DateTime<Utc>>,
    let_in_by: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Reason {
    #[schema(example = "bulk")]
    reason: String,
    letters: i64,
}

impl From<(LeftOutPage, Vec<ReasonCount>)> for LeftOut {
    fn from((page, reasons): (LeftOutPage, Vec<ReasonCount>)) -> Self {
        let line = |letter: LeftOutLetter| LeftOutLine {
            message_id: letter.message_id,
            reason: letter.skip_reason,
            sender: letter.sender,
            subject: letter.subject,
            received_at: letter.received_at,
            processed_at: letter.processed_at,
            let_in_at: letter.let_in_at,
            let_in_by: letter.let_in_by,
        };
        let reason = |count: ReasonCount| Reason { reason: count.skip_reason, letters: count.letters };
        Self {
            letters: page.letters.into_iter().map(line).collect(),
            next_after: page.next,
            reasons: reasons.into_iter().map(reason).collect(),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LeftOutQuery {
    /// Only what this rule left out.
    #[serde(default, deserialize_with = "blank_is_none")]
    reason: Option<String>,
    /// Only what comes after this place: `next_after` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    after: Option<String>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// The messages to be let in: one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LetInLetters {
    /// One message.
    message_id: Option<String>,
    /// Everything that this rule left out, up to 500 messages at a time.
    #[schema(example = "bulk")]
    reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct LettersLetIn {
    /// Letters that are on their way.
    asked: usize,
    /// Letters for another time: ask again once these have come.
    left: i64,
}

/// The settings of a mailbox.
#[utoipa::path(get, path = "/api/v1/sources/{id}/mail", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 200, body = Mailbox), (status = 404, body = Problem), (status = 409, body = Problem, description = "It is no mailbox")))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<Mailbox>, ApiError> {
    Ok(Json(settings::get(&app.env, &caller, SourceId(id)).await?.into()))
}

/// Changes which places of a mailbox are read. Everything is read again: messages in new places come in, those in others are deleted here.
#[utoipa::path(patch, path = "/api/v1/sources/{id}/mail", tag = "sources", params(("id" = Uuid, Path)), request_body = ChangeMailbox,
    responses((status = 200, body = Mailbox), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It is no mailbox, or is not synced now")))]
pub(crate) async fn change(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(wanted): extract::Json<ChangeMailbox>,
) -> Result<Json<Mailbox>, ApiError> {
    Ok(Json(settings::set(&app.env, &caller, SourceId(id), &wanted.places).await?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMailChannel {
    #[schema(example = "Orders by mail")]
    name: String,
    /// The messages that are events, in the words of Gmail's search: `in:`, `is:unread`, `label:`, `from:`, `to:`, `subject:`, `has:attachment`,
    /// `filename:` and words. Default `in:inbox is:unread`.
    #[schema(example = "in:inbox subject:order")]
    query: Option<String>,
    /// The person who owns its activities; left out: they are everyone's.
    person_id: Option<i64>,
    /// Makes a contact of every unknown sender.
    #[serde(default)]
    auto_create_contacts: bool,
}

#[derive(Serialize, ToSchema)]
pub struct AddedMailChannel {
    id: Uuid,
}

/// Adds a channel on a Gmail source: each message that comes from now on and fits the query is an activity, too.
#[utoipa::path(post, path = "/api/v1/sources/{id}/mail/channels", tag = "sources", params(("id" = Uuid, Path)), request_body = NewMailChannel,
    responses((status = 201, body = AddedMailChannel), (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It is no Gmail source, or a channel has that name")))]
pub(crate) async fn add_channel(
    State(app): State<App>,
    Managing(caller): Managing,
    Path(id): Path<Uuid>,
    extract::Json(new): extract::Json<NewMailChannel>,
) -> Result<(StatusCode, Json<AddedMailChannel>), ApiError> {
    let new = channel::NewMailChannel {
        name: new.name,
        query: new.query,
        person_id: new.person_id.map(PersonId),
        auto_create_contacts: new.auto_create_contacts,
    };
    let id = channel::add(&app.env, &caller, SourceId(id), new).await?;
    Ok((StatusCode::CREATED, Json(AddedMailChannel { id: id.0 })))
}

/// The rules that leave messages of a mailbox out, with what each left out.
#[utoipa::path(get, path = "/api/v1/sources/{id}/mail/rules", tag = "sources", params(("id" = Uuid, Path)),
    responses((status = 200, body = MailRules), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn rules(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<MailRules>, ApiError> {
    Ok(Json(rules::list(&app.env, &caller, SourceId(id)).await?.into()))
}

/// Switches a rule, or adds or changes one of the mailbox's own. It is asked about messages that come from now on; those that were left out stay
/// out.
#[utoipa::path(put, path = "/api/v1/sources/{id}/mail/rules/{name}", tag = "sources", params(("id" = Uuid, Path), ("name" = String, Path)),
    request_body = ChangeRule,
    responses((status = 200, body = MailRules), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn set_rule(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, name)): Path<(Uuid, String)>,
    extract::Json(wanted): extract::Json<ChangeRule>,
) -> Result<Json<MailRules>, ApiError> {
    rules::set(&app.env, &caller, SourceId(id), &name, wanted.into()).await?;
    Ok(Json(rules::list(&app.env, &caller, SourceId(id)).await?.into()))
}

/// Removes a rule of the mailbox's own. What it left out stays out.
#[utoipa::path(delete, path = "/api/v1/sources/{id}/mail/rules/{name}", tag = "sources", params(("id" = Uuid, Path), ("name" = String, Path)),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn remove_rule(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, name)): Path<(Uuid, String)>,
) -> Result<StatusCode, ApiError> {
    rules::remove(&app.env, &caller, SourceId(id), &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tells what a change of a rule would have done with the messages of the last 30 days. Nothing is changed.
#[utoipa::path(post, path = "/api/v1/sources/{id}/mail/rules/{name}/preview", tag = "sources",
    params(("id" = Uuid, Path), ("name" = String, Path)), request_body = ChangeRule,
    responses((status = 200, body = RulePreview), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn preview_rule(
    State(app): State<App>,
    Reading(caller): Reading,
    Path((id, name)): Path<(Uuid, String)>,
    extract::Json(wanted): extract::Json<ChangeRule>,
) -> Result<Json<RulePreview>, ApiError> {
    Ok(Json(rules::preview(&app.env, &caller, SourceId(id), &name, wanted.into()).await?.into()))
}

/// Letters that rules left out, the latest first.
#[utoipa::path(get, path = "/api/v1/sources/{id}/mail/left-out", tag = "sources", params(("id" = Uuid, Path), LeftOutQuery),
    responses((status = 200, body = LeftOut), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn left_out(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
    Query(query): Query<LeftOutQuery>,
) -> Result<Json<LeftOut>, ApiError> {
    let (reason, after) = (query.reason.as_deref(), query.after.as_deref());
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let page = left_out::list(&app.env, &caller, SourceId(id), reason, after, limit).await?;
    Ok(Json((page, left_out::count_by_reason(&app.env, &caller, SourceId(id)).await?).into()))
}

/// Lets in messages that rules left out: they are asked for again, and no rule is asked about them any more.
#[utoipa::path(post, path = "/api/v1/sources/{id}/mail/let-in", tag = "sources", params(("id" = Uuid, Path)), request_body = LetInLetters,
    responses((status = 202, body = LettersLetIn), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It is no mailbox, or is not synced now")))]
pub(crate) async fn let_in(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(wanted): extract::Json<LetInLetters>,
) -> Result<(StatusCode, Json<LettersLetIn>), ApiError> {
    let id = SourceId(id);
    let LetInAll { asked, left } = match wanted {
        LetInLetters { message_id: Some(message_id), reason: None } => {
            left_out::let_in(&app.env, &caller, id, &message_id).await?;
            LetInAll { asked: 1, left: 0 }
        }
        LetInLetters { message_id: None, reason: Some(reason) } => {
            left_out::let_in_all(&app.env, &caller, id, &reason).await?
        }
        _ => return Err(ApiError::Malformed(StatusCode::BAD_REQUEST, "send either message_id or reason".into())),
    };
    Ok((StatusCode::ACCEPTED, Json(LettersLetIn { asked, left })))
}
