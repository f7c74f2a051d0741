//! Items of work in the lanes' queues: counted, listed, looked at, retried, skipped, cancelled.

use domain::item::Action;
use domain::{Caller, ItemId, ItemState};
use store::queue::{Counts, Item, Page};

use crate::act::OrMissing as _;
use crate::work::LaneEntry;
use crate::{ActError, Env, lanes};

pub fn lane(name: &str) -> Result<&'static LaneEntry, ActError> {
    lanes::ALL.iter().find(|lane| lane.name == name).or_missing("lane")
}

/// Counts the items of each lane by state.
pub async fn counts(env: &Env, caller: &Caller) -> Result<Vec<Counts>, ActError> {
    let counts = env.db.session(async |conn| {
        let mut counts = Vec::new();
        for lane in &lanes::ALL {
            counts.push(lane.queue().counts(conn, env.clock.sql(), caller).await?);
        }
        Ok(counts)
    });
    Ok(counts.await?)
}

/// Counts the items of one lane by state.
pub async fn counts_of(env: &Env, caller: &Caller, lane: &LaneEntry) -> Result<Counts, ActError> {
    Ok(env.db.session(async |conn| lane.queue().counts(conn, env.clock.sql(), caller).await).await?)
}

/// A page of a lane's items, and the item after which the next page begins.
pub async fn list(
    env: &Env,
    caller: &Caller,
    lane: &LaneEntry,
    page: Page,
) -> Result<(Vec<Item>, Option<String>), ActError> {
    let items = env.db.session(async |conn| lane.queue().list(conn, env.clock.sql(), caller, page).await).await?;
    let is_full = i64::try_from(items.len()).is_ok_and(|n| n >= page.limit);
    let next_before = items.last().filter(|_| is_full).map(|item| item.id.clone());
    Ok((items, next_before))
}

pub async fn get(env: &Env, caller: &Caller, lane: &LaneEntry, id: ItemId) -> Result<Item, ActError> {
    let item = env.db.session(async |conn| lane.queue().get(conn, env.clock.sql(), caller, id).await).await?;
    item.or_missing("item")
}

/// An item after an act.
#[derive(Clone, Debug)]
pub struct Acted {
    pub state: ItemState,
    /// None when it goes on under another id: a replay is a new message.
    pub item: Option<Item>,
}

/// Retries, skips or cancels an item. A conflict: its state does not allow that, or it has moved on.
pub async fn act(env: &Env, caller: &Caller, lane: &LaneEntry, id: ItemId, action: Action) -> Result<Acted, ActError> {
    let at = env.clock.sql();
    let acted = env.db.write(async |tx| {
        lane.queue().act(tx, at, caller, id, action).await?.or_missing("item")?;
        let item = lane.queue().get(tx, at, caller, id).await?;
        Ok(Acted { state: item.as_ref().map_or(state_after(action), |item| item.state), item })
    });
    acted.await
}

/// The state of an item that an act moved to where it has no id, or another one.
fn state_after(action: Action) -> ItemState {
    match action {
        Action::Retry => ItemState::Waiting,
        Action::Skip => ItemState::Skipped,
        Action::Cancel => ItemState::Cancelled,
    }
}
