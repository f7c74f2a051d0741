//! Dead letters: activities that failed for good, why, and back to the agents with them.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::Scope;
use domain::shown::{clipped, number, plural};
use engine::activities;
use serde::Deserialize;
use store::dead_letters::DeadLetter;
use uuid::Uuid;

use super::activities::Row;
use super::flash::flashes;
use super::layout::Layout;
use super::signin::safe_next;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Query, blank_is_none};
use crate::app::App;

const HERE: &str = "/system/dead-letters";
const PAGE: i64 = 50;

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    layout: Layout,
    flash: &'static str,
    letters: Vec<Letter>,
    /// The ids of all shown activities, as the form sends them.
    ids: String,
    all: String,
    newest: Option<String>,
    older: Option<String>,
    /// The page to which an action returns.
    here: String,
    may_act: bool,
    csrf: String,
}

struct Letter {
    row: Row,
    buried: When,
    reason: String,
    tries: String,
}

impl Letter {
    fn new(letter: &DeadLetter, now: DateTime<Utc>) -> Self {
        Self {
            row: Row::new(&letter.activity, now),
            buried: When::new(letter.buried_at, now),
            reason: clipped(&letter.reason, 300),
            tries: number(letter.activity.tries.into()),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct LettersQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<i64>,
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Replayed = "replayed": "It waits for an agent again, as if it had never failed.",
        Moved = "moved": "It had been dealt with already, so nothing was changed.",
        // A card's Skip comes back here too.
        Skipped = "skipped": "It was skipped. Retry on its page brings it back.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<LettersQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let (listed, next) = activities::dead_letters(&app.env, &visitor, query.before, PAGE).await?;
    let now = app.env.clock.now();
    let address = |before: i64| format!("{HERE}?before={before}");
    let ids: Vec<String> = listed.iter().map(|letter| letter.activity.id.to_string()).collect();
    html(&DeadLettersPage {
        layout: Layout::new(&visitor, now, "Dead letters", HERE),
        flash: query.done.in_words(),
        letters: listed.iter().map(|letter| Letter::new(letter, now)).collect(),
        all: plural(ids.len() as i64, "activity", "activities"),
        ids: ids.join(","),
        newest: query.before.map(|_| HERE.to_owned()),
        older: next.map(address),
        here: query.before.map_or_else(|| HERE.to_owned(), address),
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct ReplayForm {
    /// The ids of activities, with commas between.
    ids: String,
    #[serde(default)]
    back: String,
}

pub(crate) async fn replay(
    State(app): State<App>,
    Posted { caller, form }: Posted<ReplayForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let ids: Vec<Uuid> = form.ids.split(',').filter_map(|id| id.parse().ok()).take(PAGE as usize).collect();
    let replayed = activities::replay(&app.env, &caller, &ids).await?;
    let back = match safe_next(&form.back) {
        "/" => HERE,
        back => back,
    };
    Ok(if replayed > 0 { Flash::Replayed } else { Flash::Moved }.back(back))
}
