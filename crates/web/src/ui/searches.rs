//! Saved searches: saving one, opening it, and what is done to it. They are listed on the Search page.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveTime, Utc};
use domain::Scope;
use engine::ActError;
use engine::searches::{self, Asked};
use serde::Deserialize;
use store::memory::{Mode, Sort};
use uuid::Uuid;

use super::flash::flashes;
use super::search::address;
use super::{Posted, Visitor};
use crate::api::error::ApiError;
use crate::api::extract::{Path, blank_is_none};
use crate::api::search::{Moment, SearchQuery};
use crate::app::App;

const HERE: &str = "/search";

flashes! {
    Flash {
        Saved = "saved": "The search is saved. It is listed on this page, with the number of new hits.",
        Seen = "seen": "What you have seen is marked. Only what was stored later is new.",
        Removed = "removed": "The saved search is removed.",
        Taken = "taken": "It was not saved. Choose a name of 1 to 100 characters that no other saved search has; if 100 are saved, remove one first.",
    }
}

#[derive(Deserialize)]
pub(crate) struct SaveForm {
    #[serde(default)]
    name: String,
    #[serde(flatten)]
    query: SearchQuery,
}

pub(crate) async fn save(
    State(app): State<App>,
    Posted { caller, form }: Posted<SaveForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let back = address(&form.query);
    match searches::save(&app.env, &caller, &form.name, form.query.asked()).await {
        Ok(_) => Ok(Flash::Saved.back(HERE)),
        Err(ActError::Invalid(_) | ActError::Conflict(_)) => Ok(Flash::Taken.back(&back)),
        Err(error) => Err(error.into()),
    }
}

/// Leads to the hits, the newest first.
pub(crate) async fn open(State(app): State<App>, visitor: Visitor, Path(id): Path<Uuid>) -> Result<Response, ApiError> {
    let search = searches::get(&app.env, &visitor, id).await?;
    let to = format!("{}&saved={id}", address(&query(search.asked)));
    Ok((StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response())
}

#[derive(Deserialize)]
pub(crate) struct ActForm {
    /// The time of the hits that were seen.
    #[serde(default, deserialize_with = "blank_is_none")]
    until: Option<DateTime<Utc>>,
}

pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, String)>,
    Posted { caller, form }: Posted<ActForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    match action.as_str() {
        "seen" => {
            searches::see(&app.env, &caller, id, form.until).await?;
            Ok(Flash::Seen.back(HERE))
        }
        "remove" => {
            searches::remove(&app.env, &caller, id).await?;
            Ok(Flash::Removed.back(HERE))
        }
        _ => Err(ApiError::NotFound("page")),
    }
}

/// Whether a time is that of a day, as a person enters one.
fn is_midnight(at: &DateTime<Utc>) -> bool {
    at.time() == NaiveTime::MIN
}

/// The search as its address has it.
fn query(Asked { text, mode, filters }: Asked) -> SearchQuery {
    SearchQuery {
        q: text,
        mode: (mode != Mode::Hybrid).then_some(mode),
        source: filters.source,
        r#type: filters.r#type,
        since: filters.since.map(|at| if is_midnight(&at) { Moment::Day(at.date_naive()) } else { Moment::At(at) }),
        until: filters.until.map(|at| match at.date_naive().pred_opt() {
            Some(day) if is_midnight(&at) => Moment::Day(day), // until a day is until its end
            _ => Moment::At(at),
        }),
        contact: filters.contact,
        client: filters.client,
        person: filters.person,
        channel: filters.channel,
        sort: Some(Sort::Date),
        ..SearchQuery::default()
    }
}
