//! Signed-in browsers and unused links: those of everybody for an owner, else one's own.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::clipped;
use engine::sessions::{self, Session};
use serde::Deserialize;
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::api::sessions::end;
use crate::app::App;

pub(super) const HERE: &str = "/settings/sessions";

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    layout: Layout,
    flash: &'static str,
    sessions: Vec<Row>,
    /// Where a person makes a link for another device of theirs.
    own_page: Option<String>,
    csrf: String,
}

pub(super) struct Row {
    pub id: String,
    pub whose: String,
    pub device: String,
    pub address: String,
    pub used: When,
    pub began: When,
    pub ends: When,
    pub is_current: bool,
    pub is_link: bool,
}

impl Row {
    pub fn new(session: &Session, now: DateTime<Utc>) -> Self {
        Self {
            id: session.id.to_string(),
            whose: clipped(&session.whose(), 80),
            device: match (session.is_link, &session.device) {
                (true, _) => "a link that was not used yet".to_owned(),
                (false, Some(device)) => clipped(device, 60),
                (false, None) => "an unknown browser".to_owned(),
            },
            address: clipped(session.address.as_deref().unwrap_or_default(), 60),
            used: When::maybe(session.last_used_at, now),
            began: When::new(session.created_at, now),
            ends: When::new(session.expires_at, now),
            is_current: session.is_current,
            is_link: session.is_link,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Ended = "ended": "Ended. That browser has to sign in again.",
        Gone = "gone": "It had ended already.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let now = app.env.clock.now();
    let listed = sessions::list(&app.env, &visitor, visitor.session(), None).await?;
    let own = visitor.person_id.filter(|_| visitor.is_signed_in);
    html(&SessionsPage {
        layout: Layout::new(&visitor, now, "Sessions", HERE),
        flash: query.done.in_words(),
        sessions: listed.iter().map(|session| Row::new(session, now)).collect(),
        own_page: own.map(|id| format!("{}/{id}", super::people::HERE)),
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn end_one(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(domain::Scope::Read)?;
    match end(&app, &caller, id).await {
        Ok(()) => Ok(Flash::Ended.back(HERE)),
        Err(ApiError::NotFound(_)) => Ok(Flash::Gone.back(HERE)),
        Err(error) => Err(error),
    }
}
