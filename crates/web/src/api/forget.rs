//! How a source is let go: disconnected, and with what it brought or without.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use domain::SourceId;
use engine::pull::connect;
use serde::{Deserialize, Serialize};
use store::forgotten::Counted;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::Writing;
use super::error::{ApiError, Problem};
use super::extract::{Path, Query};
use crate::app::App;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// Also removes everything that came from it, for good. Default false: it is kept.
    #[serde(default)]
    forget: bool,
}

/// What is being removed.
#[derive(Serialize, ToSchema)]
pub(crate) struct Forgotten {
    documents: i64,
    /// The pieces they are found by.
    chunks: i64,
    clients: i64,
    jobs: i64,
}

impl From<Counted> for Forgotten {
    fn from(Counted { documents, chunks, clients, jobs }: Counted) -> Self {
        Self { documents, chunks, clients, jobs }
    }
}

/// Disconnects a source: its tokens are removed at once and nothing more is read. With `forget`, everything that came from it goes too.
#[utoipa::path(delete, path = "/api/v1/sources/{id}", tag = "sources", params(("id" = Uuid, Path), DeleteQuery),
    responses((status = 204, description = "Disconnected; what it brought is kept"),
        (status = 202, body = Forgotten, description = "Disconnected; all of this is being removed"), (status = 404, body = Problem)))]
pub(crate) async fn delete(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    Query(query): Query<DeleteQuery>,
) -> Result<Response, ApiError> {
    Ok(match let_go(&app, &caller, SourceId(id), query.forget).await? {
        Some(counted) => (StatusCode::ACCEPTED, Json(Forgotten::from(counted))).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Disconnects a source; with what will go where it is forgotten too.
pub(crate) async fn let_go(
    app: &App,
    caller: &domain::Caller,
    id: SourceId,
    is_forgotten: bool,
) -> Result<Option<Counted>, ApiError> {
    let tenant_id = caller.tenant_id;
    let counted = match is_forgotten {
        true => connect::forget(&app.env, tenant_id, id, &caller.key_name).await?.map(Some),
        false => connect::disconnect(&app.env, tenant_id, id).await?.then_some(None),
    };
    let counted = counted.ok_or(ApiError::NotFound("source"))?;
    let done = if is_forgotten { "is being forgotten" } else { "was disconnected" };
    tracing::info!(source.id = %id, tenant.id = %tenant_id, "source {id} {done}, as key {} asked", caller.key_id);
    Ok(counted)
}
