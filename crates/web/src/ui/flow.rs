//! The flow of events as Home draws it: the last hour minute by minute, today's numbers, and the newest items with their state.

use chrono::{DateTime, Utc};
use domain::shown::{clipped, counted, number, plural};
use domain::{Caller, DocumentType, ProcessingStatus};
use store::activities::{self, Flow, Unremembered};
use store::memory::{Listed, Totals, documents};
use store::queue::MOST_COUNTED;

use super::home::Tile;
use super::text::{Badge, When};
use crate::app::App;

const NEWEST: i64 = 8;
const BAR_WIDTH: usize = 10;
const CHART_HEIGHT: i64 = 80;

pub(super) struct FlowPart {
    pub chart: Chart,
    pub tiles: Vec<Tile>,
    pub newest: Vec<NewestRow>,
    /// Nothing has ever come in.
    pub is_new: bool,
}

/// Bars in the drawing's own units: a minute is ten wide.
pub(super) struct Chart {
    pub width: usize,
    pub height: i64,
    pub bars: Vec<Bar>,
    /// The chart in one sentence.
    pub summary: String,
    pub peak: String,
}

pub(super) struct Bar {
    pub x: usize,
    pub y: i64,
    pub height: i64,
    pub label: String,
}

pub(super) struct NewestRow {
    pub badge: Badge,
    pub title: String,
    pub href: String,
    pub kind: String,
    pub source: String,
    pub at: When,
    /// The time by which the list is sorted.
    time: DateTime<Utc>,
}

pub(super) async fn load(app: &App, caller: &Caller) -> store::Result<FlowPart> {
    let (at, now) = (app.env.clock.sql(), app.env.clock.now());
    let loaded = app.env.db.read(caller, async |tx| {
        let per_minute = activities::count_per_minute(tx, at, caller.tenant_id).await?;
        let flow = activities::flow(tx, at, caller.tenant_id).await?;
        let totals = documents::totals(tx).await?;
        let remembered = documents::newest(tx, NEWEST).await?;
        Ok((per_minute, flow, totals, remembered, activities::unremembered(tx, caller.tenant_id, NEWEST).await?))
    });
    let (per_minute, flow, totals, remembered, on_the_way) = loaded.await?;
    let mut newest: Vec<NewestRow> = remembered.iter().map(|listed| NewestRow::remembered(listed, now)).collect();
    newest.extend(on_the_way.iter().map(|activity| NewestRow::on_the_way(activity, now)));
    newest.sort_by_key(|row| std::cmp::Reverse(row.time));
    newest.truncate(usize::try_from(NEWEST).unwrap_or(usize::MAX));
    Ok(FlowPart {
        chart: Chart::new(&per_minute),
        tiles: tiles(flow, totals),
        newest,
        is_new: !flow.has_any && totals.documents == 0,
    })
}

fn tiles(flow: Flow, totals: Totals) -> Vec<Tile> {
    let tile = |label, n: i64, note: &str, href: &str, tone| Tile {
        href: href.into(),
        label,
        value: counted(n, MOST_COUNTED),
        note: note.into(),
        tone: if n > 0 { tone } else { "" },
    };
    let events = |n: i64| if n == 1 { "event" } else { "events" };
    let remembered = |note| tile("Remembered", totals.documents, note, "/search", "");
    vec![
        tile("Arrived today", flow.today, &format!("{} since midnight UTC", events(flow.today)), "/activities", ""),
        tile("Waiting", flow.waiting, "for an agent", "/nodes", ""),
        tile("Failed", flow.failed, &format!("{} given up", events(flow.failed)), "/dead-letters", "bad"),
        match totals.documents {
            1 => remembered("document"),
            n if totals.is_of_last_count() => Tile { value: number(n), ..remembered("documents at the last count") },
            _ => remembered("documents"),
        },
        tile("Waiting for vectors", totals.pending, "found only by keyword", "/queues/embed", "warn"),
    ]
}

impl Chart {
    /// Makes the chart of counts per minute, the oldest first. Each stops at [`MOST_COUNTED`].
    fn new(per_minute: &[i64]) -> Self {
        let most = per_minute.iter().copied().max().unwrap_or(0).max(1);
        let is_more = most >= MOST_COUNTED;
        let last = per_minute.len().saturating_sub(1);
        let bar = |(index, n): (usize, &i64)| {
            // A single event among thousands is still seen.
            let height = (n * CHART_HEIGHT / most).max(2);
            let when = match last - index {
                0 => "in this minute".to_owned(),
                minutes => format!("{minutes} min ago"),
            };
            let label = format!("{} {when}", counted(*n, MOST_COUNTED));
            Bar { x: index * BAR_WIDTH + 1, y: CHART_HEIGHT - height, height, label }
        };
        let sum: i64 = per_minute.iter().sum();
        Self {
            width: per_minute.len() * BAR_WIDTH,
            height: CHART_HEIGHT,
            bars: per_minute.iter().enumerate().filter(|(_, n)| **n > 0).map(bar).collect(),
            summary: match sum {
                0 => "Nothing arrived in the last hour".into(),
                sum if is_more => format!("{}+ events in the last hour", number(sum)),
                sum => format!("{} in the last hour", plural(sum, "event", "events")),
            },
            peak: match sum {
                0 => String::new(),
                _ if is_more => format!("{} in some minutes", counted(most, MOST_COUNTED)),
                _ => format!("at most {} a minute", number(most)),
            },
        }
    }
}

impl NewestRow {
    pub fn remembered(listed: &Listed, now: DateTime<Utc>) -> Self {
        let title = listed.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        Self {
            badge: Badge(if listed.is_pending() { "pending" } else { "remembered" }),
            title: clipped(title.unwrap_or(listed.text.trim()), 120),
            href: format!("/documents/{}", listed.id),
            kind: clipped(&listed.document_type.to_string(), 60),
            source: clipped(&listed.source_name, 60),
            at: When::new(listed.updated_at, now),
            time: listed.updated_at,
        }
    }

    fn on_the_way(activity: &Unremembered, now: DateTime<Utc>) -> Self {
        let title = match (activity.subject.trim(), activity.from.trim()) {
            ("", "") => format!("A new {}", activity.r#type),
            ("", from) => format!("{} from {from}", activity.r#type),
            (subject, _) => subject.to_owned(),
        };
        Self {
            badge: Badge(match activity.processing_status {
                ProcessingStatus::Processing => "working",
                ProcessingStatus::Failed => "dead",
                ProcessingStatus::Raw | ProcessingStatus::Completed => "waiting",
            }),
            title: clipped(&title, 120),
            href: format!("/activities/{}", activity.id),
            kind: DocumentType::Activity(activity.r#type).to_string(),
            source: clipped(&activity.source_name, 60),
            at: When::new(activity.created_at, now),
            time: activity.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_share_of_the_most() {
        let mut per_minute = vec![0; 60];
        per_minute[0] = 1;
        per_minute[58] = 900;
        per_minute[59] = 450;
        let chart = Chart::new(&per_minute);
        let drawn: Vec<_> = chart.bars.iter().map(|bar| (bar.x, bar.y, bar.height, bar.label.as_str())).collect();
        assert_eq!(
            drawn,
            [(1, 78, 2, "1 59 min ago"), (581, 0, 80, "900 1 min ago"), (591, 40, 40, "450 in this minute")]
        );
        assert_eq!(
            (chart.summary.as_str(), chart.peak.as_str()),
            ("1,351 events in the last hour", "at most 900 a minute")
        );
    }

    #[test]
    fn what_was_not_counted_to_the_end_is_at_least_so_many() {
        let chart = Chart::new(&[1, MOST_COUNTED]);
        assert_eq!(chart.bars[1].label, "1,000+ in this minute");
        assert_eq!(
            (chart.summary.as_str(), chart.peak.as_str()),
            ("1,001+ events in the last hour", "1,000+ in some minutes")
        );
        let flow = Flow { today: 1_000, waiting: 999, ..Flow::default() };
        let shown = |documents| -> Vec<(String, String)> {
            let tiles = tiles(flow, Totals { documents, pending: 1_000 });
            tiles.into_iter().map(|tile| (tile.value, tile.note)).collect()
        };
        let values: Vec<String> = shown(1_000).into_iter().map(|(value, _)| value).collect();
        assert_eq!(values, ["1,000+", "999", "0", "1,000+", "1,000+"]);
        assert_eq!(shown(12_345)[3], ("12,345".to_owned(), "documents at the last count".to_owned()));
    }

    #[test]
    fn one_is_singular() {
        let notes = |n: i64| -> Vec<String> {
            let flow = Flow { today: n, failed: n, ..Flow::default() };
            tiles(flow, Totals { documents: n, pending: 0 }).into_iter().map(|tile| tile.note).collect()
        };
        let expected =
            ["event since midnight UTC", "for an agent", "event given up", "document", "found only by keyword"];
        assert_eq!(notes(1), expected);
        assert_eq!(notes(2)[..1], ["events since midnight UTC"]);
        assert_eq!(notes(0)[2..4], ["events given up", "documents"]);
    }

    #[test]
    fn a_quiet_hour_says_so() {
        let chart = Chart::new(&[0; 60]);
        assert!(chart.bars.is_empty() && chart.peak.is_empty());
        assert_eq!((chart.width, chart.summary.as_str()), (600, "Nothing arrived in the last hour"));
        assert!(Chart::new(&[]).bars.is_empty());
    }
}
