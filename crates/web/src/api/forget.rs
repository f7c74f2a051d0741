//! Disconnects a source, and with `forget` removes what it brought.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use domain::SourceId;
use engine::sources;
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
pub struct Forgotten {
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
    if query.forget {
        let counted = sources::forget(&app.env, &caller, SourceId(id)).await?;
        return Ok((StatusCode::ACCEPTED, Json(Forgotten::from(counted))).into_response());
    }
    sources::disconnect(&app.env, &caller, SourceId(id)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
