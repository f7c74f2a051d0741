//! Home: what is wrong and what to do first, then what arrives and what runs.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::shown::{clipped, counted, interval, number, shown};
use engine::health::Overview;
use engine::memory::moves::{self, Status};
use engine::sources::{Watched, watch};
use engine::{lanes, workers};
use store::alerts::Finding;
use store::queue::MOST_COUNTED;
use store::schedules::Schedule;
use store::workers::Health;

use super::flow::{self, FlowPart};
use super::layout::Layout;
use super::queues::LaneRow;
use super::sources::{self, EventRow, SourceCard};
use super::text::{When, with_code};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

/// The number of latest events of sources that are shown.
const EVENTS: i64 = 8;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: Layout,
    findings: Vec<FindingRow>,
    flow: FlowPart,
    sources: Vec<SourceCard>,
    /// The latest events of sources.
    events: Vec<EventRow>,
    tiles: Vec<Tile>,
    lanes: Vec<LaneRow>,
    /// The operator's; empty for others.
    schedules: Vec<ScheduleRow>,
    is_operator: bool,
    /// The providers that can be connected, in words.
    providers: String,
}

struct FindingRow {
    what: String,
    /// The action to take, in parts; true for a part that a person types.
    todo: Vec<(bool, String)>,
    /// Links to where it is done; none when that is not on a page.
    links: Vec<(String, String)>,
}

pub(super) struct Tile {
    pub href: String,
    pub label: &'static str,
    pub value: String,
    pub note: String,
    /// Draws the eye when it should.
    pub tone: &'static str,
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
    let overview = engine::health::overview(&app.env, &visitor).await?;
    let schedules = if visitor.operates() { workers::schedules(&app.env).await? } else { Vec::new() };
    let flow = flow::load(&app, &visitor).await?;
    let watched = watch(&app.env, &visitor, None).await?;
    let events = async |tx: &mut store::Tx| store::sources::events(tx, visitor.tenant_id, None, EVENTS).await;
    let events = app.env.db.read(&visitor, events).await?;
    let memory = moves::own(&app.env, &visitor).await?;
    let now = app.env.clock.now();
    html(&HomePage {
        layout: Layout::new(&visitor, now, "Home", "/"),
        findings: overview.findings.iter().map(|finding| FindingRow::new(finding, &watched)).collect(),
        flow,
        sources: watched.iter().map(|watched| SourceCard::new(&app, watched, now)).collect(),
        events: events.iter().map(|event| EventRow::new(event, now)).collect(),
        tiles: tiles(&overview, memory.as_ref(), visitor.operates()),
        lanes: overview.queues.iter().map(|counts| LaneRow::new(counts, now)).collect(),
        schedules: schedules.iter().map(|schedule| ScheduleRow::new(schedule, now)).collect(),
        is_operator: visitor.operates(),
        providers: sources::providers(&app),
    })
}

impl FindingRow {
    /// An alert names no source, since a name may be somebody's address; this page does.
    fn new(finding: &Finding, watched: &[Watched]) -> Self {
        let is_meant = |watched: &&Watched| watched.source.id.to_string() == finding.subject;
        let source = watched.iter().find(is_meant).map(|watched| clipped(&watched.source.name, 100));
        let link = match finding.kind {
            "dead_letters" => Some(("/dead-letters".to_owned(), "Dead letters")),
            "dead_items" => Some((format!("/queues/{}?state=dead", finding.subject), "Show them")),
            "worker_dead" | "worker_stalled" | "no_worker" | "schedule_late" => {
                Some(("/workers".to_owned(), "Workers"))
            }
            "channel_refuses" => Some((format!("/settings/channels/{}#refusals", finding.subject), "What it refused")),
            "source_reconnect" | "source_error" => {
                Some((format!("/sources/{}", finding.subject), source.as_deref().unwrap_or("Open it")))
            }
            "sync_failed" => Some((format!("/jobs/{}", finding.subject), "Open it")),
            "memory_model" | "memory_stuck" => Some(("/sources#model".to_owned(), "Search model")),
            "provider_client" => Some(("/sources".to_owned(), "Sources")),
            "schedule_failing" => Some(("#schedules".to_owned(), "Schedules")),
            _ => None,
        };
        let mut todo = finding.todo.clone();
        if let Some(first) = todo.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let mut what = clipped(&finding.what, 400);
        if let Some(first) = what.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self {
            what,
            todo: with_code(&todo),
            links: link.into_iter().map(|(href, label)| (href, label.to_owned())).collect(),
        }
    }
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
        let value = number(i64::try_from(alive).unwrap_or(i64::MAX));
        tiles.push(Tile {
            href: "/workers".into(),
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
        tiles.push(Tile { href: "/queues".into(), label, value: counted(n, MOST_COUNTED), note: note.into(), tone });
    }
    if let Some(moving) = memory.and_then(|status| status.moving.as_ref()) {
        let value = moves::percent(moving).map_or_else(|| moving.state.to_string(), |percent| format!("{percent}%"));
        let tone = if moving.waits_for.is_some() { "warn" } else { "" };
        tiles.push(Tile {
            href: "/sources#model".into(),
            label: "Memory moves",
            value,
            note: moves::in_words(moving),
            tone,
        });
    }
    tiles
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_leads_to_where_it_is_dealt_with() {
        let finding =
            |kind| Finding { kind, subject: "upkeep".into(), what: "2 items".into(), todo: "open Queues".into() };
        let row = FindingRow::new(&finding("dead_items"), &[]);
        assert_eq!(row.links, [("/queues/upkeep?state=dead".to_owned(), "Show them".to_owned())]);
        assert_eq!(row.todo, [(false, "Open Queues".to_owned())]);
        let typed = Finding { todo: "run `tributary up`".into(), ..finding("no_worker") };
        assert_eq!(FindingRow::new(&typed, &[]).todo, [(false, "Run ".to_owned()), (true, "tributary up".to_owned())]);
        assert_eq!(
            FindingRow::new(&finding("source_reconnect"), &[]).links,
            [("/sources/upkeep".to_owned(), "Open it".to_owned())]
        );
        assert!(FindingRow::new(&finding("long_transaction"), &[]).links.is_empty());
    }

    #[test]
    fn words_that_start_with_no_letter_stay() {
        let odd = Finding { kind: "x", subject: String::new(), what: "é".into(), todo: String::new() };
        assert_eq!(FindingRow::new(&odd, &[]).what, "é");
    }
}
