//! Queues: how many items are where, per lane.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::ItemState;
use domain::shown::counted;
use engine::items;
use store::queue::{Counts, MOST_COUNTED};

use super::layout::Layout;
use super::text::When;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    layout: Layout,
    lanes: Vec<LaneRow>,
}

/// A lane in a table; Home has the same.
pub(super) struct LaneRow {
    pub lane: String,
    pub href: String,
    pub cells: Vec<Cell>,
    pub oldest_due: When,
}

pub(super) struct Cell {
    pub label: &'static str,
    pub href: String,
    pub count: String,
    pub tone: &'static str,
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<impl IntoResponse, ApiError> {
    let now = app.env.clock.now();
    let lanes = items::counts(&app.env, &visitor).await?.iter().map(|counts| LaneRow::new(counts, now)).collect();
    html(&QueuesPage { layout: Layout::new(&visitor, now, "Queues", "/queues"), lanes })
}

impl LaneRow {
    pub fn new(counts: &Counts, now: DateTime<Utc>) -> Self {
        let href = format!("/queues/{}", counts.lane);
        let shown = [
            ("Waiting", ItemState::Waiting, ""),
            ("Working", ItemState::Working, ""),
            ("Failed", ItemState::Failed, "warn"),
            ("Parked", ItemState::Parked, ""),
            ("Dead", ItemState::Dead, "bad"),
        ];
        let cells = shown.map(|(label, state, tone)| Cell {
            label,
            href: format!("{href}?state={state}"),
            count: counted(counts.of(state), MOST_COUNTED),
            tone: if counts.of(state) == 0 { "zero" } else { tone },
        });
        Self { lane: counts.lane.clone(), href, cells: cells.into(), oldest_due: When::maybe(counts.oldest_due, now) }
    }
}
