//! One person: how they sign in, who may process their work, what belongs to them, and what happens to it when they go.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use domain::shown::clipped;
use domain::{PersonId, Scope};
use engine::people::{self, Fields};
use engine::sessions::{self, Link};
use serde::Deserialize;

use super::layout::Layout;
use super::people::{DoneQuery, Flash, HERE, roles, shares};
use super::sessions::Row;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::api::people::{change_now, invite_now, remove_now};
use crate::app::App;

#[derive(Template)]
#[template(path = "person.html")]
struct PersonPage {
    layout: Layout,
    flash: &'static str,
    href: String,
    name: String,
    shares: String,
    role: &'static str,
    roles: Vec<(&'static str, &'static str, bool)>,
    /// A link that was made just now, and when it expires. It is shown this once.
    link: Option<(String, When)>,
    /// Makes a link: for others, or for another device of one's own.
    may_invite: bool,
    is_self: bool,
    sessions: Vec<Row>,
    since: When,
    id: i64,
    /// The number of each kind that they own.
    owns: Vec<(&'static str, String)>,
    /// Sentences about what becomes of each kind when they are removed.
    fate: Vec<String>,
    /// Values of the form's fields, as they are.
    email: String,
    first_name: String,
    last_name: String,
    minutes: i32,
    most_minutes: i32,
    is_shared: bool,
    is_served: bool,
    may_manage: bool,
    csrf: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<i64>,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    page(&app, &visitor, id, query.done, None).await
}

async fn page(app: &App, visitor: &Visitor, id: i64, flash: Flash, link: Option<Link>) -> Result<Response, ApiError> {
    let person = people::get(&app.env, visitor, PersonId(id)).await?;
    // An owner sees everybody's, a person their own.
    let sessions = sessions::list(&app.env, visitor, visitor.session(), Some(PersonId(id))).await?;
    let owned = people::owned(&app.env, visitor, PersonId(id)).await?;
    let now = app.env.clock.now();
    let page = PersonPage {
        layout: Layout::new(visitor, now, format!("{} · People", clipped(&person.called(), 60)), HERE),
        flash: flash.in_words(),
        href: format!("{HERE}/{id}"),
        name: clipped(&person.called(), 100),
        shares: shares(&person),
        role: person.role.as_str(),
        roles: roles(person.role.as_str()),
        link: link.map(|link| (link.url.reveal().to_owned(), When::new(link.expires_at, now))),
        may_invite: visitor.may_invite(PersonId(id)),
        is_self: visitor.is_signed_in && visitor.person_id == Some(PersonId(id)),
        sessions: sessions.iter().map(|session| Row::new(session, now)).collect(),
        since: When::new(person.created_at, now),
        id,
        owns: people::counts(&owned),
        fate: people::fate(&owned),
        email: person.email.unwrap_or_default(),
        first_name: person.first_name.unwrap_or_default(),
        last_name: person.last_name.unwrap_or_default(),
        minutes: person.stale_threshold_minutes,
        most_minutes: people::MOST_MINUTES,
        is_shared: person.allow_remote_processing,
        is_served: person.built_in_agent,
        may_manage: visitor.may(Scope::Service),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// Makes a link and shows it, once: it is in no address.
pub(crate) async fn invite(
    State(app): State<App>,
    Path(id): Path<i64>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Read)?;
    let link = invite_now(&app, &caller, PersonId(id)).await?;
    page(&app, &Visitor(caller), id, Flash::Nothing, Some(link)).await
}

/// Reloading the page with a link must not make another one.
pub(crate) async fn again(State(app): State<App>, visitor: Visitor, Path(id): Path<i64>) -> Result<Redirect, ApiError> {
    people::get(&app.env, &visitor, PersonId(id)).await?;
    Ok(Redirect::to(&format!("{HERE}/{id}")))
}

#[derive(Deserialize)]
pub(crate) struct ChangeForm {
    #[serde(default)]
    email: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    /// The number as it was typed.
    #[serde(default)]
    stale_threshold_minutes: String,
    allow_remote_processing: Option<String>,
    built_in_agent: Option<String>,
    #[serde(default)]
    role: String,
}

pub(crate) async fn change(
    State(app): State<App>,
    Path(id): Path<i64>,
    Posted { caller, form }: Posted<ChangeForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let fields = Fields {
        email: Some(form.email),
        first_name: Some(form.first_name),
        last_name: Some(form.last_name),
        // What is no number is out of range.
        stale_threshold_minutes: Some(form.stale_threshold_minutes.trim().parse().unwrap_or(-1)),
        allow_remote_processing: Some(form.allow_remote_processing.is_some()),
        built_in_agent: Some(form.built_in_agent.is_some()),
        role: form.role.parse().ok(),
    };
    let here = format!("{HERE}/{id}");
    match change_now(&app, &caller, PersonId(id), fields).await {
        Ok(_) => Ok(Flash::Saved.back(&here)),
        Err(ApiError::Conflict(what)) if what.contains("role") => Ok(Flash::Refused.back(&here)),
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn remove(
    State(app): State<App>,
    Path(id): Path<i64>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Service)?;
    match remove_now(&app, &caller, PersonId(id)).await {
        Ok(_) => Ok(Flash::Removed.back(HERE)),
        Err(ApiError::Conflict(_)) => Ok(Flash::Refused.back(&format!("{HERE}/{id}"))),
        Err(error) => Err(error),
    }
}
