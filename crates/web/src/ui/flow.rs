//! The flow of events on Home: a chart, today's numbers, and the newest items with their state.

use chrono::{DateTime, Utc};
use domain::shown::clipped;
use domain::{Caller, DocumentType, ProcessingStatus};
use engine::pull::words::facts::document_type;
use engine::sources::Names;
use store::activities::{self, Flow, Unremembered};
use store::memory::{Listed, Totals, documents};
use store::queue::MOST_COUNTED;

use super::chart::{Chart, Span};
use super::home::Tile;
use super::text::{Badge, Figure, When};
use crate::app::App;

const NEWEST: i64 = 8;

pub(super) struct FlowPart {
    pub chart: Chart,
    pub tiles: Vec<Tile>,
    pub newest: Vec<NewestRow>,
    /// Some event has come in.
    pub has_any: bool,
    pub documents: i64,
}

pub(super) struct NewestRow {
    pub badge: Badge,
    /// Something is still to be done about it: its state is shown.
    pub is_open: bool,
    pub title: String,
    pub href: String,
    pub kind: String,
    pub source: String,
    pub at: When,
    /// The time by which the list is sorted.
    time: DateTime<Utc>,
}

pub(super) async fn load(app: &App, caller: &Caller, span: Span) -> store::Result<FlowPart> {
    let (at, now) = (app.env.clock.sql(), app.env.clock.now());
    let loaded = app.env.db.read(caller, async |tx| {
        let (length, n) = span.buckets();
        let buckets = activities::count_per_bucket(tx, at, caller.tenant_id, length, n).await?;
        let flow = activities::flow(tx, at, caller.tenant_id).await?;
        let totals = documents::totals(tx).await?;
        let remembered = documents::newest(tx, NEWEST).await?;
        let on_the_way = activities::unremembered(tx, caller.tenant_id, NEWEST).await?;
        Ok((buckets, flow, totals, remembered, on_the_way, store::sources::all(tx).await?))
    });
    let (buckets, flow, totals, mut remembered, on_the_way, sources) = loaded.await?;
    let names = Names::new(&app.env, &sources);
    remembered.iter_mut().for_each(|listed| names.tell_apart(listed.source_id, &mut listed.source_name));
    let mut newest: Vec<NewestRow> = remembered.iter().map(|listed| NewestRow::remembered(listed, now)).collect();
    newest.extend(on_the_way.iter().map(|activity| NewestRow::on_the_way(activity, now)));
    newest.sort_by_key(|row| std::cmp::Reverse(row.time));
    newest.truncate(usize::try_from(NEWEST).unwrap_or(usize::MAX));
    Ok(FlowPart {
        chart: Chart::new(&buckets, span),
        tiles: tiles(flow, totals),
        newest,
        has_any: flow.has_any,
        documents: totals.documents,
    })
}

fn tiles(flow: Flow, totals: Totals) -> Vec<Tile> {
    let tile = |label, n: i64, note: &str, href: &str, tone| Tile {
        href: href.into(),
        label,
        value: Figure::counted(n, MOST_COUNTED),
        note: note.into(),
        tone: if n > 0 { tone } else { "" },
    };
    let events = |n: i64| if n == 1 { "event" } else { "events" };
    let remembered = |note| tile("Remembered", totals.documents, note, "/documents", "");
    vec![
        tile("Arrived today", flow.today, &format!("{} since midnight UTC", events(flow.today)), "/inbox", ""),
        tile("Waiting", flow.waiting, "for an agent", "/system/agents", ""),
        tile("Failed", flow.failed, &format!("{} given up", events(flow.failed)), "/system/dead-letters", "bad"),
        match totals.documents {
            1 => remembered("document"),
            n if totals.is_of_last_count() => {
                Tile { value: Figure::new(n), ..remembered("documents at the last count") }
            }
            _ => remembered("documents"),
        },
        tile("Waiting for vectors", totals.pending, "found only by keyword", "/system/queues/embed", "warn"),
    ]
}

impl NewestRow {
    pub fn remembered(listed: &Listed, now: DateTime<Utc>) -> Self {
        let title = listed.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        Self {
            badge: Badge(if listed.is_pending() { "pending" } else { "remembered" }),
            is_open: listed.is_pending(),
            title: clipped(title.unwrap_or(listed.text.trim()), 120),
            href: format!("/documents/{}", listed.id),
            kind: clipped(&document_type(&listed.document_type), 60),
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
            is_open: true,
            title: clipped(&title, 120),
            href: format!("/activities/{}", activity.id),
            kind: document_type(&DocumentType::Activity(activity.r#type)),
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
    fn what_was_not_counted_to_the_end_is_at_least_so_many() {
        let flow = Flow { today: 1_000, waiting: 999, ..Flow::default() };
        let shown = |documents| -> Vec<(String, String)> {
            let tiles = tiles(flow, Totals { documents, pending: 1_000 });
            tiles.into_iter().map(|tile| (tile.value.words, tile.note)).collect()
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
}
