//! One item: everything about it, and what may be done to it.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::item::Action;
use domain::shown::{clipped, number, plural, shown_lines};
use domain::{ItemState, Scope};
use engine::work::LaneEntry;
use engine::{ActError, items};
use serde::Deserialize;
use store::queue::Item;

use super::flash::flashes;
use super::lane::{Button, actions};
use super::layout::Layout;
use super::signin::safe_next;
use super::text::{Badge, When};
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::api::queues::find_id;
use crate::app::App;

#[derive(Template)]
#[template(path = "item.html")]
struct ItemPage {
    layout: Layout,
    lane: &'static str,
    id: String,
    badge: Badge,
    flash: &'static str,
    story: String,
    facts: Vec<Fact>,
    reason: String,
    error: String,
    message: String,
    actions: Vec<Button>,
    csrf: String,
    here: String,
}

struct Fact {
    label: &'static str,
    text: String,
    times: Vec<When>,
}

#[derive(Deserialize)]
pub(crate) struct ItemQuery {
    #[serde(default)]
    done: Flash,
}

#[derive(Deserialize)]
pub(crate) struct ActForm {
    #[serde(default)]
    back: String,
}

flashes! {
    Flash {
        Retried = "retried": "The item is due now and will be taken by the next free worker.",
        Skipped = "skipped": "The item was skipped. Retry brings it back.",
        Cancelled = "cancelled": "The item was cancelled. Retry brings it back.",
        Moved = "moved": "The item had moved on meanwhile, so nothing was changed. This is how it is now.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path((lane, id)): Path<(String, String)>,
    Query(query): Query<ItemQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let lane = items::lane(&lane)?;
    let item = items::get(&app.env, &visitor, lane, find_id(&id)?).await?;
    let now = app.env.clock.now();
    html(&ItemPage {
        layout: Layout::new(&visitor, now, format!("{} · {}", item.id, lane.name), "/system/queues"),
        lane: lane.name,
        badge: Badge(item.state.as_str()),
        flash: query.done.in_words(),
        story: story(&item),
        facts: facts(&item, lane, now),
        reason: shown_lines(item.reason.as_deref().unwrap_or_default()),
        error: shown_lines(item.error.as_deref().unwrap_or_default()),
        message: shown_lines(&serde_json::to_string_pretty(&item.message).unwrap_or_default()),
        actions: if visitor.may(Scope::Write) { actions(&item) } else { Vec::new() },
        csrf: visitor.csrf(),
        here: format!("/system/queues/{}/items/{}", lane.name, item.id),
        id: item.id,
    })
}

/// Does what the button says and returns to where it was pressed.
pub(crate) async fn act(
    State(app): State<App>,
    Path((lane, id, action)): Path<(String, String, Action)>,
    Posted { caller, form }: Posted<ActForm>,
) -> Result<impl IntoResponse, ApiError> {
    caller.need(Scope::Write)?;
    let lane = items::lane(&lane)?;
    let done = items::act(&app.env, &caller, lane, find_id(&id)?, action).await;
    let (flash, is_gone) = match done {
        Ok(acted) => {
            let flash = match action {
                Action::Retry => Flash::Retried,
                Action::Skip => Flash::Skipped,
                Action::Cancel => Flash::Cancelled,
            };
            (flash, acted.item.is_none())
        }
        Err(ActError::NotFound(_)) => (Flash::Moved, true),
        Err(ActError::Conflict(_)) => (Flash::Moved, false),
        Err(error) => return Err(error.into()),
    };
    let list = format!("/system/queues/{}", lane.name);
    let item_page = format!("{list}/items/{id}");
    let back = match safe_next(&form.back) {
        "/" => list,
        back if is_gone && back == item_page => list, // a replay goes on under another id
        back => back.to_owned(),
    };
    Ok(flash.back(&back))
}

/// The item's state as a sentence, with what comes next.
fn story(item: &Item) -> String {
    let attempts = plural(item.attempts.into(), "attempt", "attempts");
    match item.state {
        ItemState::Waiting => "Waits for a free worker.".into(),
        ItemState::Working => {
            let by = item.held_by.as_deref().map_or_else(|| "a worker".to_owned(), |by| clipped(by, 80));
            format!("{by} works on it. If that worker falls silent, another takes it over when the lease ends.")
        }
        ItemState::Failed => {
            format!("Failed after {attempts}; it will be retried automatically, or at once with Retry.")
        }
        ItemState::Parked if item.due_at.is_some() => {
            "Left its queue to wait; it comes back automatically when its time has come.".into()
        }
        ItemState::Parked => "Left its queue until what it waits for happens, or you press Retry.".into(),
        ItemState::Dead => {
            format!("Given up after {attempts}. Read why, then retry it, or skip it if it need not be done.")
        }
        ItemState::Skipped => "Need not be done. Retry brings it back as a new message.".into(),
        ItemState::Cancelled => "Was stopped. Retry brings it back as a new message.".into(),
    }
}

fn facts(item: &Item, lane: &LaneEntry, now: DateTime<Utc>) -> Vec<Fact> {
    let text = |label, text: String| Some(Fact { label, text, times: Vec::new() });
    let time = |label, at: Option<DateTime<Utc>>| {
        at.map(|at| Fact { label, text: String::new(), times: vec![When::new(at, now)] })
    };
    let due = match item.state {
        ItemState::Working => time("Lease ends", item.due_at),
        ItemState::Waiting | ItemState::Failed | ItemState::Parked => time("Due", item.due_at),
        _ => None,
    };
    let held = item.held_by.as_deref().filter(|_| item.state == ItemState::Working).map(|by| Fact {
        label: "Taken by",
        text: clipped(by, 120),
        times: item.held_since.map(|since| When::new(since, now)).into_iter().collect(),
    });
    let waits = match item.waits {
        0 => None,
        waits => text("Waits", format!("{}, which cost no attempt", number(waits.into()))),
    };
    [
        time("Arrived", Some(item.enqueued_at)),
        text("Attempts", format!("{} of {}", number(item.attempts.into()), lane.max_attempts)),
        waits,
        held,
        due,
        time("Last failure", item.error_at),
        time("Ended", item.ended_at),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use engine::lanes;

    use super::*;

    fn item(state: ItemState) -> Item {
        let at = DateTime::UNIX_EPOCH;
        Item {
            id: "m7".into(),
            lane: "upkeep".into(),
            state,
            attempts: 1,
            waits: 0,
            enqueued_at: at,
            due_at: Some(at),
            held_by: Some("box:7\u{202e}".into()),
            held_since: Some(at),
            error: None,
            error_at: None,
            reason: None,
            ended_at: None,
            message: serde_json::Value::Null,
        }
    }

    #[test]
    fn every_state_is_told_with_what_comes_next() {
        for (state, says) in [
            (ItemState::Waiting, "Waits for a free worker."),
            (ItemState::Working, "box:7⟨U+202E⟩ works on it."),
            (ItemState::Failed, "Failed after 1 attempt; it will be retried automatically"),
            (ItemState::Parked, "comes back automatically"),
            (ItemState::Dead, "Given up after 1 attempt."),
            (ItemState::Skipped, "Need not be done."),
            (ItemState::Cancelled, "Was stopped."),
        ] {
            assert!(story(&item(state)).contains(says), "{state}: {}", story(&item(state)));
        }
        let parked = Item { due_at: None, ..item(ItemState::Parked) };
        assert!(story(&parked).contains("until what it waits for happens"), "{}", story(&parked));
        let nameless = Item { held_by: None, ..item(ItemState::Working) };
        assert!(story(&nameless).starts_with("a worker works on it."), "{}", story(&nameless));
    }

    #[test]
    fn facts_are_those_of_the_state() {
        let labels = |item: &Item| -> Vec<&str> {
            facts(item, &lanes::ALL[0], DateTime::UNIX_EPOCH).iter().map(|fact| fact.label).collect()
        };
        assert_eq!(labels(&item(ItemState::Waiting)), ["Arrived", "Attempts", "Due"]);
        assert_eq!(labels(&item(ItemState::Working)), ["Arrived", "Attempts", "Taken by", "Lease ends"]);
        assert_eq!(labels(&item(ItemState::Dead)), ["Arrived", "Attempts"], "nobody holds a dead item");
        let at = Some(DateTime::UNIX_EPOCH);
        let failed = Item { waits: 2, error_at: at, ended_at: at, ..item(ItemState::Failed) };
        assert_eq!(labels(&failed), ["Arrived", "Attempts", "Waits", "Due", "Last failure", "Ended"]);
    }
}
