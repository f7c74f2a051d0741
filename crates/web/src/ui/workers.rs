//! Workers: who lives, what each holds, and who gets nowhere.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, interval, number, shown};
use store::workers::{Health, LaneState, Worker};

use super::layout::Layout;
use super::text::{Badge, When};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

/// Those that stopped or died are history; the newest are enough.
const MOST_GONE: usize = 20;

#[derive(Template)]
#[template(path = "workers.html")]
struct WorkersPage {
    layout: Layout,
    is_operator: bool,
    running: Vec<WorkerCard>,
    gone: Vec<WorkerCard>,
}

struct WorkerCard {
    badge: Badge,
    name: String,
    role: String,
    version: String,
    started: When,
    last_heartbeat: When,
    every: String,
    done: String,
    errors: String,
    per_minute: String,
    stalled_because: String,
    last_error: String,
    last_error_at: When,
    lanes: Vec<LaneLine>,
}

struct LaneLine {
    lane: String,
    holding: String,
    done: String,
    failed: String,
    waited: String,
    stale: String,
    progressed: When,
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    let now = app.env.clock.now();
    let layout = Layout::new(&visitor, now, "Workers", "/system/workers");
    if !visitor.operates() {
        let page = WorkersPage { layout, is_operator: false, running: Vec::new(), gone: Vec::new() };
        return Ok((StatusCode::FORBIDDEN, html(&page)?).into_response());
    }
    let (running, gone): (Vec<_>, Vec<_>) = engine::workers::list(&app.env)
        .await?
        .into_iter()
        .partition(|(worker, _)| !matches!(worker.health(), Health::Dead | Health::Stopped));
    let cards = |workers: Vec<(Worker, Vec<LaneState>)>, most: usize| {
        workers.iter().take(most).map(|(worker, lanes)| WorkerCard::new(worker, lanes, now)).collect()
    };
    let (running, gone) = (cards(running, usize::MAX), cards(gone, MOST_GONE));
    Ok(html(&WorkersPage { layout, is_operator: true, running, gone })?.into_response())
}

impl WorkerCard {
    fn new(worker: &Worker, lanes: &[LaneState], now: DateTime<Utc>) -> Self {
        let name = match (&worker.host, worker.pid) {
            (Some(host), Some(pid)) => format!("{}:{pid}", shown(host)),
            _ => worker.id.to_string(),
        };
        Self {
            badge: Badge(worker.health().as_str()),
            name,
            role: shown(worker.role.as_deref().unwrap_or("another program's worker")),
            version: shown(&worker.version),
            started: When::new(worker.started, now),
            last_heartbeat: When::new(worker.last_heartbeat, now),
            every: interval(worker.interval_secs as i64),
            done: number(worker.success_count),
            errors: number(worker.error_count),
            per_minute: format!("{:.1}", worker.per_minute()),
            stalled_because: shown(worker.stalled_because.as_deref().unwrap_or_default()),
            last_error: clipped(worker.last_error_message.as_deref().unwrap_or_default(), 400),
            last_error_at: When::maybe(worker.last_error_at, now),
            lanes: lanes.iter().map(|lane| LaneLine::new(lane, now)).collect(),
        }
    }
}

impl LaneLine {
    fn new(lane: &LaneState, now: DateTime<Utc>) -> Self {
        Self {
            lane: shown(&lane.lane),
            holding: number(lane.holding.into()),
            done: number(lane.done),
            failed: number(lane.failed),
            waited: number(lane.waited),
            stale: number(lane.stale),
            progressed: When::new(lane.progressed_at, now),
        }
    }
}
