//! One lane's items, by state.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::item::Action;
use domain::shown::{clipped, counted, number, plural};
use domain::{ItemId, ItemState, Scope};
use engine::items;
use serde::Deserialize;
use store::queue::{Counts, Item, MOST_COUNTED, Page};

use super::item::Flash;
use super::layout::Layout;
use super::text::{Badge, When};
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

const PAGE: i64 = 50;

#[derive(Template)]
#[template(path = "lane.html")]
struct LanePage {
    layout: Layout,
    lane: &'static str,
    flash: &'static str,
    tabs: Vec<Tab>,
    rows: Vec<Row>,
    empty: &'static str,
    csrf: String,
    /// The page to which an action returns.
    here: String,
    older: Option<String>,
    newest: Option<String>,
}

struct Tab {
    href: String,
    label: &'static str,
    count: String,
    is_current: bool,
}

struct Row {
    id: String,
    /// Short enough for a table.
    name: String,
    href: String,
    badge: Badge,
    enqueued: When,
    attempts: String,
    /// Says which worker holds it, or when it is due.
    turn: String,
    turn_times: Vec<When>,
    why: String,
    actions: Vec<Button>,
}

/// An act that a person may do to an item.
pub(super) struct Button {
    pub label: &'static str,
    pub href: String,
}

#[derive(Deserialize)]
pub(crate) struct LaneQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    state: Option<ItemState>,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<ItemId>,
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(name): Path<String>,
    Query(query): Query<LaneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let lane = items::lane(&name)?;
    let page = Page { state: query.state, before: query.before, limit: PAGE };
    let counts = items::counts_of(&app.env, &visitor, lane).await?;
    let (items, next) = items::list(&app.env, &visitor, lane, page).await?;
    let now = app.env.clock.now();
    let here = address(lane.name, query.state, query.before.map(|id| id.to_string()).as_deref());
    let older = next.map(|before| address(lane.name, query.state, Some(&before)));
    html(&LanePage {
        layout: Layout::new(&visitor, now, format!("{} · Queues", lane.name), "/system/queues"),
        lane: lane.name,
        flash: query.done.in_words(),
        tabs: tabs(&counts, query.state),
        rows: items.iter().map(|item| Row::new(item, visitor.may(Scope::Write), now)).collect(),
        empty: empty(query.state),
        csrf: visitor.csrf(),
        here,
        older,
        newest: query.before.map(|_| address(lane.name, query.state, None)),
    })
}

fn address(lane: &str, state: Option<ItemState>, before: Option<&str>) -> String {
    let state = state.map(|state| format!("state={state}"));
    let before = before.map(|before| format!("before={before}"));
    let query: Vec<String> = state.into_iter().chain(before).collect();
    if query.is_empty() {
        format!("/system/queues/{lane}")
    } else {
        format!("/system/queues/{lane}?{}", query.join("&"))
    }
}

fn tabs(counts: &Counts, current: Option<ItemState>) -> Vec<Tab> {
    let all = ItemState::ALL.into_iter().map(|state| counts.of(state)).sum();
    let labels = ["Waiting", "Working", "Failed", "Parked", "Dead", "Skipped", "Cancelled"];
    let tab = |label, state: Option<ItemState>, n| Tab {
        href: address(&counts.lane, state, None),
        label,
        count: counted(n, MOST_COUNTED),
        is_current: state == current,
    };
    let states = labels.into_iter().zip(ItemState::ALL).map(|(label, state)| tab(label, Some(state), counts.of(state)));
    std::iter::once(tab("All", None, all)).chain(states).collect()
}

impl Row {
    fn new(item: &Item, may_act: bool, now: DateTime<Utc>) -> Self {
        let (turn, turn_at) = match (item.state, &item.held_by) {
            (ItemState::Working, Some(by)) => (format!("taken by {}", clipped(by, 60)), item.held_since),
            (ItemState::Waiting | ItemState::Failed | ItemState::Parked, _) if item.due_at.is_some() => {
                ("due".into(), item.due_at)
            }
            (ItemState::Parked, _) => ("waits for an event".into(), None),
            (_, _) if item.ended_at.is_some() => ("ended".into(), item.ended_at),
            _ => (String::new(), None),
        };
        Self {
            id: item.id.clone(),
            name: short(&item.id),
            href: format!("/system/queues/{}/items/{}", item.lane, item.id),
            badge: Badge(item.state.as_str()),
            enqueued: When::new(item.enqueued_at, now),
            attempts: attempts(item),
            turn,
            turn_times: turn_at.map(|at| When::new(at, now)).into_iter().collect(),
            why: clipped(item.reason.as_deref().or(item.error.as_deref()).unwrap_or_default(), 240),
            actions: if may_act { actions(item) } else { Vec::new() },
        }
    }
}

/// The end of a parked item's id: its beginning is a time, and the same for all that were parked together.
fn short(id: &str) -> String {
    match id.strip_prefix('p').and_then(|uuid| uuid.rsplit('-').next()) {
        Some(end) => format!("p…{end}"),
        None => id.to_owned(),
    }
}

pub(super) fn attempts(item: &Item) -> String {
    match item.waits {
        0 => number(item.attempts.into()),
        waits => format!("{} + {}", number(item.attempts.into()), plural(waits.into(), "wait", "waits")),
    }
}

/// Only what the item's state allows.
pub(super) fn actions(item: &Item) -> Vec<Button> {
    let allowed = Action::ALL.into_iter().filter(|action| item.state.allows(*action));
    allowed
        .map(|action| Button {
            label: match action {
                Action::Retry => "Retry",
                Action::Skip => "Skip",
                Action::Cancel => "Cancel",
            },
            href: format!("/system/queues/{}/items/{}/{}", item.lane, item.id, action.as_str()),
        })
        .collect()
}

fn empty(state: Option<ItemState>) -> &'static str {
    match state {
        None => "This lane has no items. Finished items leave it; new items appear here automatically.",
        Some(ItemState::Waiting) => "Nothing waits: the workers keep up.",
        Some(ItemState::Working) => "No worker holds anything right now.",
        Some(ItemState::Failed) => "Nothing has failed.",
        Some(ItemState::Parked) => "Nothing is parked.",
        Some(ItemState::Dead) => "Nothing was given up.",
        Some(ItemState::Skipped) => "Nothing was skipped.",
        Some(ItemState::Cancelled) => "Nothing was cancelled.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_the_filter_and_drop_what_is_not_set() {
        assert_eq!(address("upkeep", None, None), "/system/queues/upkeep");
        assert_eq!(address("upkeep", Some(ItemState::Dead), None), "/system/queues/upkeep?state=dead");
        assert_eq!(address("upkeep", Some(ItemState::Dead), Some("m7")), "/system/queues/upkeep?state=dead&before=m7");
    }

    #[test]
    fn long_ids_are_shown_by_their_end() {
        assert_eq!(short("m17"), "m17");
        assert_eq!(short("p0198c7de-aaaa-7bbb-8ccc-123456789abc"), "p…123456789abc");
    }

    #[test]
    fn tabs_count_every_state_once() {
        let counts = Counts { lane: "upkeep".into(), waiting: 2, dead: 1_000, ..Counts::default() };
        let tabs = tabs(&counts, Some(ItemState::Dead));
        let counted: Vec<_> = tabs.iter().map(|tab| (tab.label, tab.count.as_str(), tab.is_current)).collect();
        assert_eq!(counted[0], ("All", "1,000+", false));
        assert_eq!(counted[5], ("Dead", "1,000+", true));
        assert_eq!(counted.len(), 8);
    }
}
