//! Schedules, for the operator of the installation.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use engine::workers;
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Operating;
use super::error::{ApiError, Problem};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Schedules {
    schedules: Vec<Schedule>,
}

#[derive(Serialize, ToSchema)]
pub struct Schedule {
    name: String,
    /// The lane that gets its message.
    lane: String,
    every_secs: f64,
    next_run_at: DateTime<Utc>,
    last_run_at: Option<DateTime<Utc>>,
    /// The error of the last run; none when it went well.
    last_error: Option<String>,
    last_error_at: Option<DateTime<Utc>>,
}

/// Lists the schedules and the result of their last run.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "workers",
    responses((status = 200, body = Schedules), (status = 404, body = Problem, description = "Not the operator's key")))]
pub(crate) async fn list(State(app): State<App>, _: Operating) -> Result<Json<Schedules>, ApiError> {
    let schedules = workers::schedules(&app.env).await?.into_iter().map(Schedule::from).collect();
    Ok(Json(Schedules { schedules }))
}

impl From<store::schedules::Schedule> for Schedule {
    fn from(schedule: store::schedules::Schedule) -> Self {
        Self {
            name: schedule.name,
            lane: schedule.lane,
            every_secs: schedule.every_secs,
            next_run_at: schedule.next_run_at,
            last_run_at: schedule.last_run_at,
            last_error: schedule.last_error,
            last_error_at: schedule.last_error_at,
        }
    }
}
