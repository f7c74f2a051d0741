//! Settings → People: the list, and the form that adds somebody.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::shown::{clipped, interval};
use domain::{Role, Scope};
use engine::ActError;
use engine::people::{self, Fields, Person};
use serde::Deserialize;

use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

pub(super) const HERE: &str = "/settings/people";

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    layout: Layout,
    flash: &'static str,
    rows: Vec<Row>,
    may_manage: bool,
    trouble: String,
    typed: Typed,
    roles: Vec<(&'static str, &'static str, bool)>,
    csrf: String,
}

struct Row {
    href: String,
    name: String,
    email: String,
    role: &'static str,
    /// The agents that may process their activities, and from when on.
    shares: String,
    since: When,
}

/// Values that a person typed into the form.
#[derive(Default)]
struct Typed {
    email: String,
    first_name: String,
    last_name: String,
    role: String,
}

/// The roles to choose from: word, what it allows, whether it is chosen.
pub(super) fn roles(chosen: &str) -> Vec<(&'static str, &'static str, bool)> {
    Role::ALL.map(|role| (role.as_str(), role.in_words(), role.as_str() == chosen)).into()
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    pub done: Flash,
}

flashes! {
    Flash {
        Added = "added": "Added. Make an invitation below, so that they can sign in.",
        Saved = "saved": "Saved.",
        Removed = "removed": "Removed. Their work is everyone's now, their keys are refused, and their sessions have ended.",
        Refused = "refused": "Nobody removes themselves or changes their own role: somebody else has to do it.",
    }
}

/// Says in a few words who processes a person's activities.
pub(super) fn shares(person: &Person) -> String {
    let after = match person.stale_threshold_minutes {
        0 => "at once".to_owned(),
        minutes => format!("after {}", interval(i64::from(minutes) * 60)),
    };
    match (person.built_in_agent, person.allow_remote_processing) {
        (true, true) => format!("their agents and the built-in one, others {after}"),
        (true, false) => "their agents and the built-in one".into(),
        (false, true) => format!("their agents, others {after}"),
        (false, false) => "their agents alone".into(),
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    page(&app, &visitor, query.done, String::new(), Typed::default()).await
}

async fn page(app: &App, visitor: &Visitor, flash: Flash, trouble: String, typed: Typed) -> Result<Response, ApiError> {
    let now = app.env.clock.now();
    let row = |person: &Person| Row {
        href: format!("{HERE}/{}", person.id),
        name: clipped(&person.called(), 80),
        email: clipped(person.email.as_deref().unwrap_or_default(), 80),
        role: person.role.as_str(),
        shares: shares(person),
        since: When::new(person.created_at, now),
    };
    let page = PeoplePage {
        layout: Layout::new(visitor, now, "People", HERE),
        flash: flash.in_words(),
        rows: people::list(&app.env, visitor).await?.iter().map(row).collect(),
        may_manage: visitor.may(Scope::Service),
        trouble,
        roles: roles(if typed.role.is_empty() { Role::Member.as_str() } else { typed.role.as_str() }),
        typed,
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct AddForm {
    #[serde(default)]
    email: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    #[serde(default)]
    role: String,
}

/// Adds a person. Where something is wrong, the form comes back with the values that were typed.
pub(crate) async fn create(
    State(app): State<App>,
    Posted { caller, form }: Posted<AddForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let AddForm { email, first_name, last_name, role } = form;
    let fields = Fields {
        email: Some(email.clone()),
        first_name: Some(first_name.clone()),
        last_name: Some(last_name.clone()),
        role: role.parse().ok(),
        ..Fields::default()
    };
    match people::create(&app.env, &caller, fields).await {
        Ok(person) => Ok(Flash::Added.back(&format!("{HERE}/{}", person.id))),
        Err(ActError::Invalid(what) | ActError::Conflict(what)) => {
            let typed = Typed { email, first_name, last_name, role };
            let mut response = page(&app, &Visitor(caller), Flash::Nothing, what, typed).await?;
            *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}
