//! The acts on a mailbox that its page offers: count its days, fetch what differs, choose its places, switch its rules, let in what they left out.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use chrono::NaiveDate;
use domain::mail::Place;
use domain::mail::rules::Conditions;
use domain::{Scope, SourceId};
use engine::ActError;
use engine::failures::Again;
use engine::mail::left_out::{self, LetInAll};
use engine::mail::rules::{self, Change};
use engine::mail::{check, settings};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use uuid::Uuid;

use super::Posted;
use super::source::Flash;
use super::sources::HERE;
use crate::api::error::ApiError;
use crate::api::extract::{Path, blank_is_none};
use crate::app::App;

#[derive(Deserialize)]
pub(crate) struct ChecksForm {
    action: String,
    /// None: every day that differs, or yesterday and today.
    #[serde(default, deserialize_with = "blank_is_none")]
    day: Option<NaiveDate>,
}

/// Counts days again, or fetches the messages that differ.
pub(crate) async fn checks(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<ChecksForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (id, env) = (SourceId(id), &app.env);
    let done = match (form.action.as_str(), form.day) {
        ("count", day) => check::ask(env, &caller, id, day.as_slice()).await.map(|_| Flash::Counting),
        ("fetch", Some(day)) => check::fetch_missing(env, &caller, id, day).await.map(|again| match again {
            Again::Unknown | Again::Nameless => Flash::Moved,
            _ => Flash::Fetching,
        }),
        ("fetch", None) => check::fetch_all_missing(env, &caller, id).await.map(|n| match n {
            0 => Flash::Moved,
            _ => Flash::Fetching,
        }),
        _ => return Err(ApiError::NotFound("page")),
    };
    back(id, done)
}

#[derive(Deserialize)]
pub(crate) struct PlacesForm {
    #[serde(default)]
    inbox: Option<String>,
    #[serde(default)]
    other: Option<String>,
    #[serde(default)]
    sent: Option<String>,
    #[serde(default)]
    drafts: Option<String>,
    #[serde(default)]
    spam: Option<String>,
    #[serde(default)]
    deleted: Option<String>,
}

/// Changes which places are read.
pub(crate) async fn places(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<PlacesForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let id = SourceId(id);
    settings::get(&app.env, &caller, id).await?;
    let chosen = [
        (Place::Inbox, form.inbox),
        (Place::Other, form.other),
        (Place::Sent, form.sent),
        (Place::Drafts, form.drafts),
        (Place::Spam, form.spam),
        (Place::Deleted, form.deleted),
    ];
    let chosen: Vec<Place> = chosen.into_iter().filter_map(|(place, is_chosen)| is_chosen.map(|_| place)).collect();
    if chosen.is_empty() {
        return Ok(Flash::NoPlace.back(&format!("{HERE}/{id}")));
    }
    back(id, settings::set(&app.env, &caller, id, &chosen).await.map(|_| Flash::Places))
}

#[derive(Deserialize)]
pub(crate) struct RuleForm {
    #[serde(default)]
    action: String,
    #[serde(default)]
    name: String,
    #[serde(flatten)]
    typed: Typed,
}

/// The conditions of a rule, as a person types them.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Typed {
    /// Addresses, domains or patterns, with commas or spaces between them.
    #[serde(default)]
    pub senders: String,
    /// Words of subjects, with commas between them.
    #[serde(default)]
    pub subjects: String,
    /// Also messages with files.
    #[serde(default)]
    pub files: Option<String>,
}

/// Switches a rule, adds one of the mailbox's own, or removes one.
pub(crate) async fn rules(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<RuleForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (id, env) = (SourceId(id), &app.env);
    let switch = |is_on| Change { is_on: Some(is_on), conditions: None };
    let done = match form.action.as_str() {
        "on" => rules::set(env, &caller, id, &form.name, switch(true)).await.map(|()| Flash::RuleOn),
        "off" => rules::set(env, &caller, id, &form.name, switch(false)).await.map(|()| Flash::RuleOff),
        "remove" => rules::remove(env, &caller, id, &form.name).await.map(|()| Flash::RuleRemoved),
        "try" | "add" => {
            let here = format!("{HERE}/{id}");
            let name = form.name.trim();
            let Some(conditions) = form.typed.conditions().filter(|_| !name.is_empty()) else {
                return Ok(Flash::NoRule.back(&format!("{here}#rules")));
            };
            if rules::list(env, &caller, id).await?.iter().any(|line| line.rule.name == name) {
                return Ok(Flash::RuleExists.back(&format!("{here}#rules")));
            }
            if form.action == "try" {
                return Ok((StatusCode::SEE_OTHER, [(LOCATION, form.typed.tried_at(&here, name))]).into_response());
            }
            let new = Change { is_on: Some(true), conditions: Some(conditions) };
            rules::set(env, &caller, id, &form.name, new).await.map(|()| Flash::RuleAdded)
        }
        _ => return Err(ApiError::NotFound("page")),
    };
    match done {
        Err(ActError::Invalid(_)) => Ok(Flash::NoRule.back(&format!("{HERE}/{id}#rules"))),
        done => back(id, done),
    }
}

impl Typed {
    /// The page that tells what such a rule would have done.
    fn tried_at(&self, here: &str, name: &str) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let files = self.files.as_ref().map(|_| "&files=1").unwrap_or_default();
        let (name, senders, subjects) = (encoded(name), encoded(&self.senders), encoded(&self.subjects));
        format!("{here}?preview={name}&senders={senders}&subjects={subjects}{files}#new-rule")
    }

    /// The conditions that were typed. None: neither a sender nor a subject, which would leave everything out.
    pub fn conditions(&self) -> Option<Conditions> {
        let senders: Vec<String> = self
            .senders
            .split([',', ';', ' ', '\n'])
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect();
        let subjects: Vec<String> = self
            .subjects
            .split([',', ';', '\n'])
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect();
        let has_files = self.files.is_none().then_some(false);
        (!senders.is_empty() || !subjects.is_empty()).then(|| Conditions {
            senders,
            subjects,
            has_files,
            ..Conditions::default()
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct LetInForm {
    #[serde(default, deserialize_with = "blank_is_none")]
    message_id: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    reason: Option<String>,
}

/// Lets in a message that was left out, or everything that one rule left out.
pub(crate) async fn let_in(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<LetInForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (id, env) = (SourceId(id), &app.env);
    let done = match (form.message_id, form.reason) {
        (Some(message), _) => left_out::let_in(env, &caller, id, &message).await.map(|()| Flash::LetIn),
        (None, Some(reason)) => left_out::let_in_all(env, &caller, id, &reason).await.map(|all| match all {
            LetInAll { asked: 1, left: 0 } => Flash::LetIn,
            LetInAll { left: 0, .. } => Flash::LetInAll,
            LetInAll { .. } => Flash::LetInSome,
        }),
        (None, None) => return Err(ApiError::NotFound("page")),
    };
    back(id, done)
}

/// Back to the page of the source, which says what was done.
fn back(id: SourceId, done: Result<Flash, ActError>) -> Result<Response, ApiError> {
    let here = format!("{HERE}/{id}");
    match done {
        Ok(flash) => Ok(flash.back(&format!("{here}{}", flash.part().unwrap_or_default()))),
        Err(ActError::Conflict(_)) => Ok(Flash::NotNow.back(&here)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_would_leave_everything_out_is_none() {
        let form =
            |senders: &str, subjects: &str| Typed { senders: senders.into(), subjects: subjects.into(), files: None };
        assert_eq!(form(" , ", "\n").conditions(), None);
        let conditions = form("shop.example, no-reply@*", "Weekly report, Digest").conditions().expect("conditions");
        assert_eq!(conditions.senders, ["shop.example", "no-reply@*"]);
        assert_eq!(conditions.subjects, ["Weekly report", "Digest"]);
        assert_eq!(conditions.has_files, Some(false));
    }
}
