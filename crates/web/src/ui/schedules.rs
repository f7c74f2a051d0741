//! Schedules: the tasks that run by themselves, for the operator of the installation.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::shown::{clipped, interval, shown};
use engine::{lanes, workers};
use store::schedules::Schedule;

use super::layout::Layout;
use super::tenants::operating;
use super::text::When;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

#[derive(Template)]
#[template(path = "schedules.html")]
struct SchedulesPage {
    layout: Layout,
    rows: Vec<ScheduleRow>,
}

struct ScheduleRow {
    name: String,
    what: &'static str,
    every: String,
    next: When,
    last: When,
    error: String,
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<impl IntoResponse, ApiError> {
    operating(&visitor)?;
    let now = app.env.clock.now();
    html(&SchedulesPage {
        layout: Layout::new(&visitor, now, "Schedules", "/system/schedules"),
        rows: workers::schedules(&app.env).await?.iter().map(|schedule| ScheduleRow::new(schedule, now)).collect(),
    })
}

impl ScheduleRow {
    fn new(schedule: &Schedule, now: DateTime<Utc>) -> Self {
        let known = lanes::SCHEDULES.iter().find(|entry| entry.name == schedule.name);
        let error = match &schedule.last_error {
            Some(error) => clipped(error, 300),
            None => String::new(),
        };
        Self {
            name: shown(&schedule.name),
            what: known.map_or("belongs to a newer version", |entry| entry.what),
            every: interval(schedule.every_secs as i64),
            next: When::new(schedule.next_run_at, now),
            last: When::maybe(schedule.last_run_at, now),
            error,
        }
    }
}
