//! Items of work: counted, listed, looked at, retried, skipped, cancelled.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::item::Action;
use domain::{ItemId, ItemState};
use engine::lanes;
use engine::work::LaneEntry;
use serde::{Deserialize, Serialize};
use store::queue::Page;
use utoipa::{IntoParams, ToSchema};

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub(crate) struct Queues {
    queues: Vec<Queue>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Queue {
    lane: String,
    waiting: i64,
    working: i64,
    failed: i64,
    parked: i64,
    dead: i64,
    skipped: i64,
    cancelled: i64,
    /// When the longest waiting item was or will be due.
    oldest_due: Option<DateTime<Utc>>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Items {
    items: Vec<Item>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Item {
    /// `m…` in its queue or archive, `p…` while parked.
    #[schema(example = "m17")]
    id: String,
    lane: String,
    /// waiting, working, failed, parked, dead, skipped or cancelled.
    #[schema(value_type = String, example = "waiting")]
    state: ItemState,
    attempts: i32,
    waits: i32,
    enqueued_at: DateTime<Utc>,
    /// When it is next due; for a held item, when its lease ends. None: waits for an event or a person.
    due_at: Option<DateTime<Utc>>,
    held_by: Option<String>,
    held_since: Option<DateTime<Utc>>,
    error: Option<String>,
    error_at: Option<DateTime<Utc>>,
    reason: Option<String>,
    ended_at: Option<DateTime<Utc>>,
    message: serde_json::Value,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Acted {
    /// The id it had.
    id: String,
    /// What it is now.
    #[schema(value_type = String, example = "waiting")]
    state: ItemState,
    /// None when it goes on under another id: a replay is a new message.
    item: Option<Item>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ItemsQuery {
    /// Only items in this state.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    state: Option<ItemState>,
    /// Only what comes after this item: `next_before` of the page before.
    #[param(value_type = Option<String>)]
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<ItemId>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

/// How many items are in which state, per lane.
#[utoipa::path(get, path = "/api/v1/queues", tag = "queues", responses((status = 200, body = Queues)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Queues>, ApiError> {
    let queues = app.env.db.session(async |conn| {
        let mut queues = Vec::new();
        for lane in &lanes::ALL {
            queues.push(Queue::from(lane.queue().counts(conn, app.env.clock.sql(), &caller).await?));
        }
        Ok(queues)
    });
    Ok(Json(Queues { queues: queues.await? }))
}

/// Items of a lane: parked ones first, then the others, each newest first.
#[utoipa::path(get, path = "/api/v1/queues/{lane}/items", tag = "queues",
    params(("lane" = String, Path), ItemsQuery),
    responses((status = 200, body = Items), (status = 404, body = Problem)))]
pub(crate) async fn items(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(lane): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Json<Items>, ApiError> {
    let page = Page { state: query.state, before: query.before, limit: query.limit.unwrap_or(50).clamp(1, 200) };
    let items = load_items(&app, &caller, find_lane(&lane)?, page).await?;
    let next_before = next_before(&items, page);
    Ok(Json(Items { items: items.into_iter().map(Item::from).collect(), next_before }))
}

/// One item.
#[utoipa::path(get, path = "/api/v1/queues/{lane}/items/{id}", tag = "queues",
    params(("lane" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = Item), (status = 404, body = Problem)))]
pub(crate) async fn item(
    State(app): State<App>,
    Reading(caller): Reading,
    Path((lane, id)): Path<(String, String)>,
) -> Result<Json<Item>, ApiError> {
    let item = load_item(&app, &caller, find_lane(&lane)?, find_id(&id)?).await?;
    Ok(Json(item.into()))
}

/// Retries, skips or cancels an item.
#[utoipa::path(post, path = "/api/v1/queues/{lane}/items/{id}/{action}", tag = "queues",
    params(("lane" = String, Path), ("id" = String, Path), ("action" = String, Path, description = "retry, skip or cancel")),
    responses((status = 200, body = Acted), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "Its state does not allow it, or it moved on meanwhile")))]
pub(crate) async fn act(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((lane, id, action)): Path<(String, String, Action)>,
) -> Result<Json<Acted>, ApiError> {
    let item = act_on(&app, &caller, find_lane(&lane)?, find_id(&id)?, action).await?;
    let state = match (&item, action) {
        (Some(item), _) => item.state,
        (None, Action::Retry) => ItemState::Waiting,
        (None, Action::Skip) => ItemState::Skipped,
        (None, Action::Cancel) => ItemState::Cancelled,
    };
    Ok(Json(Acted { id, state, item: item.map(Item::from) }))
}

pub(crate) fn find_lane(name: &str) -> Result<&'static LaneEntry, ApiError> {
    lanes::ALL.iter().find(|lane| lane.name == name).ok_or(ApiError::NotFound("lane"))
}

pub(crate) fn find_id(text: &str) -> Result<ItemId, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound("item"))
}

pub(crate) async fn load_items(
    app: &App,
    caller: &domain::Caller,
    lane: &LaneEntry,
    page: Page,
) -> Result<Vec<store::queue::Item>, ApiError> {
    Ok(app.env.db.session(async |conn| lane.queue().list(conn, app.env.clock.sql(), caller, page).await).await?)
}

pub(crate) async fn load_item(
    app: &App,
    caller: &domain::Caller,
    lane: &LaneEntry,
    id: ItemId,
) -> Result<store::queue::Item, ApiError> {
    let item = app.env.db.session(async |conn| lane.queue().get(conn, app.env.clock.sql(), caller, id).await).await?;
    item.ok_or(ApiError::NotFound("item"))
}

/// Does what was asked and returns the item as it is now; none when it goes on under another id.
pub(crate) async fn act_on(
    app: &App,
    caller: &domain::Caller,
    lane: &LaneEntry,
    id: ItemId,
    action: Action,
) -> Result<Option<store::queue::Item>, ApiError> {
    let at = app.env.clock.sql();
    let acted = app.env.db.write(async |tx| {
        if !lane.queue().act(tx, at, caller, id, action).await? {
            return Err(ApiError::NotFound("item"));
        }
        Ok(lane.queue().get(tx, at, caller, id).await?)
    });
    acted.await
}

/// Where the next page starts: after the last item of a full page.
pub(crate) fn next_before(items: &[store::queue::Item], page: Page) -> Option<String> {
    let is_full = i64::try_from(items.len()).is_ok_and(|n| n >= page.limit);
    items.last().filter(|_| is_full).map(|item| item.id.clone())
}

impl From<store::queue::Counts> for Queue {
    fn from(counts: store::queue::Counts) -> Self {
        let store::queue::Counts { lane, waiting, working, failed, parked, dead, skipped, cancelled, oldest_due } =
            counts;
        Self { lane, waiting, working, failed, parked, dead, skipped, cancelled, oldest_due }
    }
}

impl From<store::queue::Item> for Item {
    fn from(item: store::queue::Item) -> Self {
        Self {
            id: item.id,
            lane: item.lane,
            state: item.state,
            attempts: item.attempts,
            waits: item.waits,
            enqueued_at: item.enqueued_at,
            due_at: item.due_at.filter(|_| item.ended_at.is_none()), // what has ended is not due, whatever its row says
            held_by: item.held_by,
            held_since: item.held_since,
            error: item.error,
            error_at: item.error_at,
            reason: item.reason,
            ended_at: item.ended_at,
            message: item.message,
        }
    }
}
