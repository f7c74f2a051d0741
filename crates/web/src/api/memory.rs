//! The model that a memory's vectors are of, its move to another one, and the language of its texts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use engine::Env;
use engine::memory::{languages, moves};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Memories {
    /// The caller's; all of them for the operator of the installation.
    memories: Vec<Memory>,
    /// The model that `EMBEDDER` names.
    configured: String,
    /// All models that the settings describe an embedder of. A memory can move to any of them.
    askable: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Memory {
    tenant_id: Uuid,
    tenant: String,
    /// The model that searches use.
    model: String,
    /// Whether the settings describe an embedder of that model. If not, searches go by keyword.
    is_askable: bool,
    /// A person chose the model, so that a changed `EMBEDDER` does not move this memory.
    is_chosen: bool,
    /// When searches switched to that model, if the memory has moved.
    moved_at: Option<DateTime<Utc>>,
    moving: Option<Moving>,
    /// The language of its texts, or `auto`: it is detected text by text.
    #[schema(example = "auto")]
    language: String,
    /// Documents that were remembered before the language was set still get it.
    is_relabelled: bool,
}

/// A move to another model. Searches use the old one until it switches.
#[derive(Serialize, ToSchema)]
pub struct Moving {
    from: String,
    to: String,
    /// embedding, indexing (every chunk is embedded, and searches are about to switch), tidying or cancelling.
    #[schema(example = "embedding")]
    state: &'static str,
    asked_by: String,
    chunks_embedded: i64,
    /// About so many still lack a vector of the new model.
    chunks_left: i64,
    chunks_per_second: Option<f64>,
    seconds_left: Option<i64>,
    tokens: i64,
    /// Millionths of a dollar, so far.
    cost_micros: i64,
    /// The cost of all of it, as estimated at the beginning.
    estimated_cost_micros: i64,
    /// Why it does not go on at the moment.
    waits_for: Option<String>,
    begun_at: DateTime<Utc>,
    progressed_at: DateTime<Utc>,
}

/// The size and price of a move.
#[derive(Serialize, ToSchema)]
pub struct MoveEstimate {
    from: String,
    to: String,
    /// Chunks that have no vector of the new model yet.
    chunks: i64,
    /// About so many.
    tokens: i64,
    /// Millionths of a dollar, about; 0 if the price is not known, or if it costs nothing.
    cost_micros: i64,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EstimateQuery {
    /// The model to move to. Default: the one that `EMBEDDER` names.
    #[serde(default, deserialize_with = "blank_is_none")]
    to: Option<String>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeginMove {
    /// The model to move to. Default: the one that `EMBEDDER` names.
    to: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetLanguage {
    /// A language that PostgreSQL has rules for, such as english or german; `simple` for none; `auto` to have it detected text by text.
    #[schema(example = "german")]
    language: String,
}

/// Shows which model a memory's searches use, and how far a move to another one is.
#[utoipa::path(get, path = "/api/v1/memory", tag = "memory", responses((status = 200, body = Memories)))]
pub(crate) async fn show(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Memories>, ApiError> {
    Ok(Json(Memories::new(&app.env, moves::status(&app.env, &caller).await?)))
}

/// Estimates what it costs to move the memory to another model. Nothing is begun.
#[utoipa::path(get, path = "/api/v1/memory/reembed", tag = "memory", params(EstimateQuery),
    responses((status = 200, body = MoveEstimate), (status = 400, body = Problem, description = "No embedder has that model"),
        (status = 404, body = Problem, description = "Nothing has been remembered yet")))]
pub(crate) async fn estimate(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<EstimateQuery>,
) -> Result<Json<MoveEstimate>, ApiError> {
    Ok(Json(moves::estimate(&app.env, &caller, query.to.as_deref()).await?.into()))
}

/// Begins to move the memory to another model, in the background. Searches go on with the old one and then switch.
#[utoipa::path(post, path = "/api/v1/memory/reembed", tag = "memory", request_body = Option<BeginMove>,
    responses((status = 202, body = MoveEstimate), (status = 400, body = Problem, description = "No embedder has that model"),
        (status = 404, body = Problem, description = "Nothing has been remembered yet"),
        (status = 409, body = Problem, description = "It has that model, or it moves already")))]
pub(crate) async fn begin(
    State(app): State<App>,
    Writing(caller): Writing,
    body: Option<extract::Json<BeginMove>>,
) -> Result<(StatusCode, Json<MoveEstimate>), ApiError> {
    let to = body.and_then(|extract::Json(body)| body.to);
    Ok((StatusCode::ACCEPTED, Json(moves::begin(&app.env, &caller, to.as_deref()).await?.into())))
}

/// Cancels a move. The memory stays with the model that it has, and the new vectors are removed.
#[utoipa::path(delete, path = "/api/v1/memory/reembed", tag = "memory",
    responses((status = 202, body = Memories), (status = 404, body = Problem, description = "It does not move"),
        (status = 409, body = Problem, description = "Searches have switched already")))]
pub(crate) async fn cancel(
    State(app): State<App>,
    Writing(caller): Writing,
) -> Result<(StatusCode, Json<Memories>), ApiError> {
    moves::cancel(&app.env, &caller).await?;
    Ok((StatusCode::ACCEPTED, Json(Memories::new(&app.env, moves::status(&app.env, &caller).await?))))
}

/// Fixes the language of the memory's texts, or has it detected again. What was remembered before gets it in the background.
#[utoipa::path(put, path = "/api/v1/memory/language", tag = "memory", request_body = SetLanguage,
    responses((status = 202, body = Memories), (status = 400, body = Problem, description = "There is no such language"),
        (status = 409, body = Problem, description = "The memory is being written without a pause")))]
pub(crate) async fn set_language(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(body): extract::Json<SetLanguage>,
) -> Result<(StatusCode, Json<Memories>), ApiError> {
    languages::set(&app.env, &caller, &body.language).await?;
    Ok((StatusCode::ACCEPTED, Json(Memories::new(&app.env, moves::status(&app.env, &caller).await?))))
}

impl Memories {
    pub fn new(env: &Env, memories: Vec<moves::Status>) -> Self {
        Self {
            memories: memories.into_iter().map(Memory::from).collect(),
            configured: env.embedders.configured().model().name.clone(),
            askable: env.embedders.models().map(str::to_owned).collect(),
        }
    }
}

impl From<moves::Status> for Memory {
    fn from(status: moves::Status) -> Self {
        let moves::Status { placed, can_be_asked, moving, .. } = status;
        Self {
            tenant_id: placed.tenant_id,
            tenant: placed.tenant,
            model: placed.model,
            is_askable: can_be_asked,
            is_chosen: placed.is_chosen,
            moved_at: placed.moved_at,
            moving: moving.map(Moving::from),
            language: placed.lang.unwrap_or_else(|| languages::AUTO.to_owned()),
            is_relabelled: placed.is_relabelled,
        }
    }
}

impl From<store::memory::moves::Move> for Moving {
    fn from(moving: store::memory::moves::Move) -> Self {
        Self {
            seconds_left: moves::secs_left(&moving),
            from: moving.from_model,
            to: moving.to_model,
            state: moving.state.as_str(),
            asked_by: moving.asked_by,
            chunks_embedded: moving.n_embedded,
            chunks_left: moving.n_left,
            chunks_per_second: moving.rate,
            tokens: moving.tokens,
            cost_micros: moving.cost_micros,
            estimated_cost_micros: moving.estimated_micros,
            waits_for: moving.waits_for,
            begun_at: moving.begun_at,
            progressed_at: moving.progressed_at,
        }
    }
}

impl From<moves::Estimate> for MoveEstimate {
    fn from(estimate: moves::Estimate) -> Self {
        let moves::Estimate { from, to, chunks, tokens, cost_micros } = estimate;
        Self { from, to, chunks, tokens, cost_micros }
    }
}
