//! Tenants, for the operator of the installation.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::TenantId;
use engine::tenants;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::Operating;
use super::error::{ApiError, Problem};
use super::extract::Path;
use super::forget::Forgotten;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Tenants {
    tenants: Vec<Tenant>,
}

#[derive(Serialize, ToSchema)]
pub struct Tenant {
    id: Uuid,
    name: String,
    /// It operates the installation.
    is_operator: bool,
    created_at: DateTime<Utc>,
    /// Since when it is being forgotten.
    forgetting_at: Option<DateTime<Utc>>,
}

/// Every tenant, the oldest first.
#[utoipa::path(get, path = "/api/v1/tenants", tag = "tenants", responses((status = 200, body = Tenants), (status = 404, body = Problem)))]
pub(crate) async fn list(State(app): State<App>, _: Operating) -> Result<Json<Tenants>, ApiError> {
    let tenant = |store::tenants::Tenant { id, name, is_operator, created_at, forgetting_at }| Tenant {
        id,
        name,
        is_operator,
        created_at,
        forgetting_at,
    };
    Ok(Json(Tenants { tenants: tenants::list(&app.env).await?.into_iter().map(tenant).collect() }))
}

/// Counts what would go with a tenant. Nothing is removed.
#[utoipa::path(get, path = "/api/v1/tenants/{id}/forget", tag = "tenants", params(("id" = Uuid, Path)),
    responses((status = 200, body = Forgotten), (status = 404, body = Problem)))]
pub(crate) async fn count(
    State(app): State<App>,
    _: Operating,
    Path(id): Path<Uuid>,
) -> Result<Json<Forgotten>, ApiError> {
    Ok(Json(tenants::count(&app.env, TenantId(id)).await?.into()))
}

/// Forgets a tenant: everything that it has. Its keys are refused and its channels are unknown at once; the rest goes step by step.
#[utoipa::path(delete, path = "/api/v1/tenants/{id}", tag = "tenants", params(("id" = Uuid, Path)),
    responses((status = 202, body = Forgotten, description = "All of this is being removed"), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It operates the installation")))]
pub(crate) async fn forget(
    State(app): State<App>,
    Operating(caller): Operating,
    Path(id): Path<Uuid>,
) -> Result<(StatusCode, Json<Forgotten>), ApiError> {
    let counted = tenants::forget(&app.env, &caller, TenantId(id)).await?;
    Ok((StatusCode::ACCEPTED, Json(counted.into())))
}
