//! Queues: how many items are where, per lane.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::ItemState;
use engine::health::Overview;
use engine::memory::moves::{self, Status};
use store::queue::{Counts, MOST_COUNTED};
use store::workers::Health;

use super::home::Tile;
use super::layout::Layout;
use super::text::{Figure, When};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    layout: Layout,
    tiles: Vec<Tile>,
    lanes: Vec<LaneRow>,
}

/// A lane in a table.
pub(super) struct LaneRow {
    pub lane: String,
    pub href: String,
    pub cells: Vec<Cell>,
    pub oldest_due: When,
}

pub(super) struct Cell {
    pub label: &'static str,
    pub href: String,
    pub count: Figure,
    pub tone: &'static str,
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<impl IntoResponse, ApiError> {
    let now = app.env.clock.now();
    let overview = engine::health::overview(&app.env, &visitor).await?;
    let memory = moves::own(&app.env, &visitor).await?;
    html(&QueuesPage {
        layout: Layout::new(&visitor, now, "Queues", "/system/queues"),
        tiles: tiles(&overview, memory.as_ref(), visitor.operates()),
        lanes: overview.queues.iter().map(|counts| LaneRow::new(counts, now)).collect(),
    })
}

fn tiles(overview: &Overview, memory: Option<&Status>, operates: bool) -> Vec<Tile> {
    let mut tiles = Vec::new();
    if operates {
        let count = |health: Health| overview.workers.iter().filter(|worker| worker.health() == health).count();
        let others: Vec<String> = [Health::Late, Health::Stalled]
            .into_iter()
            .filter(|health| count(*health) > 0)
            .map(|health| format!("{} {}", count(health), health.as_str()))
            .collect();
        let (alive, is_well) = (count(Health::Alive), others.is_empty() && count(Health::Alive) > 0);
        let note = match others.as_slice() {
            [] if alive == 0 => "alive: nothing is processed".to_owned(),
            [] => "alive".to_owned(),
            others => format!("alive, {}", others.join(", ")),
        };
        let value = Figure::new(i64::try_from(alive).unwrap_or(i64::MAX));
        tiles.push(Tile {
            href: "/system/workers".into(),
            label: "Workers",
            value,
            note,
            tone: if is_well { "good" } else { "bad" },
        });
    }
    let sum = |of: fn(&store::queue::Counts) -> i64| overview.queues.iter().map(of).sum::<i64>();
    let items: [(&'static str, i64, &str, &'static str); 5] = [
        ("Waiting", sum(|c| c.waiting), "due or soon due", ""),
        ("Working", sum(|c| c.working), "claimed by a worker", ""),
        ("Failed", sum(|c| c.failed), "retried automatically", "warn"),
        ("Parked", sum(|c| c.parked), "wait for a time or an event", ""),
        ("Dead", sum(|c| c.dead), "wait for you", "bad"),
    ];
    for (label, n, note, tone) in items {
        let tone = if n > 0 { tone } else { "" };
        tiles.push(Tile {
            href: "/system/queues".into(),
            label,
            value: Figure::counted(n, MOST_COUNTED),
            note: note.into(),
            tone,
        });
    }
    if let Some(moving) = memory.and_then(|status| status.moving.as_ref()) {
        let value = moves::percent(moving).map_or_else(|| moving.state.to_string(), |percent| format!("{percent}%"));
        let value = Figure::words(value);
        let tone = if moving.waits_for.is_some() { "warn" } else { "" };
        tiles.push(Tile {
            href: "/settings/spend#model".into(),
            label: "Memory moves",
            value,
            note: moves::in_words(moving),
            tone,
        });
    }
    tiles
}

impl LaneRow {
    pub fn new(counts: &Counts, now: DateTime<Utc>) -> Self {
        let href = format!("/system/queues/{}", counts.lane);
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
            count: Figure::counted(counts.of(state), MOST_COUNTED),
            tone: if counts.of(state) == 0 { "zero" } else { tone },
        });
        Self { lane: counts.lane.clone(), href, cells: cells.into(), oldest_due: When::maybe(counts.oldest_due, now) }
    }
}
