//! The form for a note, a task or a meeting. Its id is made with the form, so that sending the form twice adds one.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use domain::{ActivityId, ActivityType, ClientId, ContactId, Scope};
use engine::activities::written::{self, KINDS, MOST_TEXT_CHARS, MOST_TITLE_CHARS, Written};
use engine::{ActError, clients};
use serde::Deserialize;
use uuid::Uuid;

use super::activities::{Flash, kind as kind_of};
use super::layout::Layout;
use super::{Posted, Visitor, chosen, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

/// The largest distance of a time zone from UTC, in minutes.
const MOST_OFFSET: i64 = 15 * 60;

#[derive(Template)]
#[template(path = "add.html")]
struct AddPage {
    layout: Layout,
    /// `note`, `task` or `meeting`.
    word: &'static str,
    when_label: &'static str,
    most_title: usize,
    most_text: usize,
    typed: Typed,
    trouble: String,
    offered: Vec<String>,
    csrf: String,
}

/// The fields of the form.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Typed {
    /// The id of the activity that the form adds.
    #[serde(default)]
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
    /// As the field has it, without a time zone.
    #[serde(default)]
    at: String,
    /// The minutes by which the writer's time is behind UTC at that moment; the script fills it in.
    #[serde(default)]
    offset: String,
    /// The contact, as the field offers it.
    #[serde(default)]
    contact: String,
    /// The name or the id of the client.
    #[serde(default)]
    client: String,
}

#[derive(Deserialize)]
pub(crate) struct AboutQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    contact: Option<i64>,
    #[serde(default, deserialize_with = "blank_is_none")]
    client: Option<Uuid>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(word): Path<String>,
    Query(about): Query<AboutQuery>,
) -> Result<Response, ApiError> {
    visitor.0.need(Scope::Write)?;
    let kind = kind_named(&word)?;
    let mut typed = Typed { id: ActivityId::new().to_string(), ..Typed::default() };
    if let Some(id) = about.contact {
        typed.contact = chosen::offer(&engine::contacts::get(&app.env, &visitor, ContactId(id)).await?);
    }
    if let Some(id) = about.client {
        let whole = clients::whole(&app.env, &visitor, ClientId(id)).await?;
        // By its name, if no other client has it.
        let is_only = clients::find_one(&app.env, &visitor, &whole.name).await.is_ok_and(|found| found == whole.id);
        typed.client = if is_only { whole.name } else { whole.id.to_string() };
    }
    page(&app, &visitor, kind, typed, String::new()).await
}

fn kind_named(word: &str) -> Result<ActivityType, ApiError> {
    KINDS.into_iter().find(|kind| kind.as_str() == word).ok_or(ApiError::NotFound("page"))
}

async fn page(
    app: &App,
    visitor: &Visitor,
    kind: ActivityType,
    typed: Typed,
    trouble: String,
) -> Result<Response, ApiError> {
    let title = format!("Add a {}", kind_of(kind).to_lowercase());
    let page = AddPage {
        layout: Layout::new(visitor, app.env.clock.now(), title, "/inbox"),
        word: kind.as_str(),
        when_label: if kind == ActivityType::Task { "Due" } else { "When" },
        most_title: MOST_TITLE_CHARS,
        most_text: MOST_TEXT_CHARS,
        typed,
        trouble,
        offered: chosen::offers(app, visitor).await?,
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// Adds it. What cannot be added is shown again as it was typed, with the reason.
pub(crate) async fn add(
    State(app): State<App>,
    Path(word): Path<String>,
    Posted { caller, form }: Posted<Typed>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let kind = kind_named(&word)?;
    let typed = form.clone();
    match try_add(&app, &caller, kind, form).await {
        Ok(id) => Ok(Flash::Added.back(&format!("/activities/{id}"))),
        Err(ActError::Invalid(what) | ActError::Conflict(what)) => {
            let mut response = page(&app, &Visitor(caller), kind, typed, what).await?;
            *response.status_mut() = StatusCode::BAD_REQUEST;
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}

async fn try_add(app: &App, caller: &domain::Caller, kind: ActivityType, form: Typed) -> Result<Uuid, ActError> {
    let contact_id = match form.contact.trim() {
        "" => None,
        text => {
            let unknown = || {
                ActError::Invalid("No contact matches that, or more than one does. Choose one from the list.".into())
            };
            Some(chosen::chosen(app, caller, text).await?.ok_or_else(unknown)?)
        }
    };
    let client_id = match form.client.trim() {
        "" => None,
        text => match clients::find_one(&app.env, caller, text).await {
            Ok(id) => Some(id),
            Err(ActError::NotFound(_)) => return Err(ActError::Invalid("There is no client of that name.".into())),
            Err(error) => return Err(error),
        },
    };
    let new = Written {
        id: form.id.parse().ok(),
        r#type: kind,
        title: form.title,
        text: form.text,
        at: moment(&form.at, &form.offset)?,
        contact_id,
        client_id,
    };
    Ok(written::add(&app.env, caller, new).await?.activity.id)
}

/// The moment that a field without a time zone means.
fn moment(at: &str, offset: &str) -> Result<Option<DateTime<Utc>>, ActError> {
    let at = at.trim();
    if at.is_empty() {
        return Ok(None);
    }
    let read = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]
        .into_iter()
        .find_map(|form| NaiveDateTime::parse_from_str(at, form).ok());
    let minutes: i64 = offset.trim().parse().unwrap_or(0);
    let moment = read
        .filter(|_| (-MOST_OFFSET..=MOST_OFFSET).contains(&minutes))
        .and_then(|local| local.checked_add_signed(TimeDelta::minutes(minutes)));
    moment
        .map(|moment| Some(moment.and_utc()))
        .ok_or_else(|| ActError::Invalid("Write the time as 2026-05-03 14:00.".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_writers_own() {
        let of = |at: &str, offset: &str| moment(at, offset).ok().flatten().map(|at| at.to_rfc3339());
        assert_eq!(of("2026-05-03T14:00", "-120").as_deref(), Some("2026-05-03T12:00:00+00:00"));
        assert_eq!(of("2026-05-03 14:00", "").as_deref(), Some("2026-05-03T14:00:00+00:00"));
        assert_eq!(of("2026-05-03T23:30", "480").as_deref(), Some("2026-05-04T07:30:00+00:00"));
        assert!(moment(" ", "7").is_ok_and(|at| at.is_none()));
        for (at, offset) in [("tomorrow", ""), ("2026-13-03T14:00", ""), ("2026-05-03T14:00", "901")] {
            assert!(moment(at, offset).is_err(), "{at} {offset}");
        }
    }

    #[test]
    fn only_what_people_write_has_a_form() {
        assert!(KINDS.iter().all(|kind| kind_named(kind.as_str()).is_ok()));
        for odd in ["", "call", "Note", "email"] {
            assert!(kind_named(odd).is_err(), "{odd}");
        }
    }
}
