//! Things that were or are being forgotten: how far it is, who asked for it and when.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::shown::clipped;
use engine::forgetting;
use serde::Deserialize;
use store::forgotten::Line;

use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

pub(super) const HERE: &str = "/settings/forgotten";

flashes! {
    Flash {
        Asked = "asked": "It is being forgotten: what belongs to it goes step by step, and then the thing itself.",
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

#[derive(Template)]
#[template(path = "forgotten.html")]
struct ForgottenPage {
    layout: Layout,
    flash: &'static str,
    rows: Vec<Row>,
}

struct Row {
    id: String,
    what: String,
    /// `gone`, or how much of it is.
    progress: String,
    by: String,
    asked: When,
    done: When,
    is_done: bool,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let now = app.env.clock.now();
    let row = |line: &Line| Row {
        id: line.id.to_string(),
        what: clipped(&line.what, 100),
        progress: forgetting::progress(line),
        by: clipped(&line.by, 60),
        asked: When::new(line.asked_at, now),
        done: When::maybe(line.done_at, now),
        is_done: line.done_at.is_some(),
    };
    html(&ForgottenPage {
        layout: Layout::new(&visitor, now, "Forgotten", HERE),
        flash: query.done.in_words(),
        rows: forgetting::list(&app.env, &visitor).await?.iter().map(row).collect(),
    })
}
