//! Items of work: counted, listed, looked at, retried, skipped, cancelled.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::item::Action;
use domain::{ItemId, ItemState};
use engine::items;
use serde::{Deserialize, Serialize};
use store::queue::Page;
use utoipa::{IntoParams, ToSchema};

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Queues {
    queues: Vec<Queue>,
}

#[derive(Serialize, ToSchema)]
pub struct Queue {
    lane: String,
    /// Items of each state. Up to 1,000 are counted; a larger number means at least 1,000.
    waiting: i64,
    working: i64,
    failed: i64,
    parked: i64,
    dead: i64,
    skipped: i64,
    cancelled: i64,
    /// The time at which the longest waiting item was or will be due.
    oldest_due: Option<DateTime<Utc>>,
}

#[derive(Serialize, ToSchema)]
pub struct Items {
    items: Vec<Item>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Item {
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
    /// The time at which it is next due; for a held item, the end of its lease. None: it waits for an event or a person.
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
pub struct Acted {
    /// The id it had.
    id: String,
    /// Its state now.
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

/// Counts the items of each lane by state.
#[utoipa::path(get, path = "/api/v1/queues", tag = "queues", responses((status = 200, body = Queues)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Queues>, ApiError> {
    Ok(Json(items::counts(&app.env, &caller).await?.into()))
}

/// Items of a lane: parked ones first, then the others, each newest first.
#[utoipa::path(get, path = "/api/v1/queues/{lane}/items", tag = "queues",
    params(("lane" = String, Path, description = "The name of the lane", example = "remember_activity"), ItemsQuery),
    responses((status = 200, body = Items), (status = 404, body = Problem)))]
pub(crate) async fn items(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(lane): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Json<Items>, ApiError> {
    let page = Page { state: query.state, before: query.before, limit: query.limit.unwrap_or(50).clamp(1, 200) };
    Ok(Json(items::list(&app.env, &caller, items::lane(&lane)?, page).await?.into()))
}

/// One item.
#[utoipa::path(get, path = "/api/v1/queues/{lane}/items/{id}", tag = "queues",
    params(("lane" = String, Path, description = "The name of the lane", example = "remember_activity"), ("id" = String, Path, description = "The id of the item", example = "12")),
    responses((status = 200, body = Item), (status = 404, body = Problem)))]
pub(crate) async fn item(
    State(app): State<App>,
    Reading(caller): Reading,
    Path((lane, id)): Path<(String, String)>,
) -> Result<Json<Item>, ApiError> {
    Ok(Json(items::get(&app.env, &caller, items::lane(&lane)?, find_id(&id)?).await?.into()))
}

/// Retries, skips or cancels an item.
#[utoipa::path(post, path = "/api/v1/queues/{lane}/items/{id}/{action}", tag = "queues",
    params(("lane" = String, Path, description = "The name of the lane", example = "remember_activity"), ("id" = String, Path, description = "The id of the item", example = "12"), ("action" = String, Path, description = "retry, skip or cancel", example = "retry")),
    responses((status = 200, body = Acted), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "Its state does not allow it, or it moved on meanwhile")))]
pub(crate) async fn act(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((lane, id, action)): Path<(String, String, Action)>,
) -> Result<Json<Acted>, ApiError> {
    let acted = items::act(&app.env, &caller, items::lane(&lane)?, find_id(&id)?, action).await?;
    Ok(Json(Acted::new(id, acted)))
}

pub(crate) fn find_id(text: &str) -> Result<ItemId, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound("item"))
}

impl Acted {
    /// `id`: the one that the item had.
    pub fn new(id: String, items::Acted { state, item }: items::Acted) -> Self {
        Self { id, state, item: item.map(Item::from) }
    }
}

impl From<Vec<store::queue::Counts>> for Queues {
    fn from(counts: Vec<store::queue::Counts>) -> Self {
        Self { queues: counts.into_iter().map(Queue::from).collect() }
    }
}

/// Makes the answer of a page and of the item after which the next page begins.
impl From<(Vec<store::queue::Item>, Option<String>)> for Items {
    fn from((items, next_before): (Vec<store::queue::Item>, Option<String>)) -> Self {
        Self { items: items.into_iter().map(Item::from).collect(), next_before }
    }
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
