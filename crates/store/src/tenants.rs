//! Tenants: each customer is a tenant, and every row belongs to one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::TenantId;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{OnConstraint, Result};

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Tenant {
    pub id: Uuid,
    pub name: String,
    pub is_operator: bool,
    pub created_at: DateTime<Utc>,
    /// Since when it is being forgotten.
    pub forgetting_at: Option<DateTime<Utc>>,
}

/// Returns the operator's tenant, created on first use.
pub async fn ensure_operator(conn: &mut PgConnection) -> Result<TenantId> {
    sqlx::query(
        "insert into public.tenants (id, name, is_operator) values ($1, 'default', true) on conflict do nothing",
    )
    .bind(TenantId::new().0)
    .execute(&mut *conn)
    .await?;
    Ok(TenantId(sqlx::query_scalar("select id from public.tenants where is_operator").fetch_one(conn).await?))
}

pub async fn create(conn: &mut PgConnection, name: &str) -> Result<TenantId> {
    let id = TenantId::new();
    sqlx::query("insert into public.tenants (id, name) values ($1, $2)")
        .bind(id.0)
        .bind(name)
        .execute(conn)
        .await
        .on_constraint("tenants_name_key", "a tenant of that name exists already")?;
    Ok(id)
}

pub async fn list(conn: &mut PgConnection) -> Result<Vec<Tenant>> {
    Ok(sqlx::query_as(
        "select id, name, is_operator, created_at, forgetting_at from public.tenants order by created_at",
    )
    .fetch_all(conn)
    .await?)
}

/// Loads a tenant and locks it.
pub async fn lock(conn: &mut PgConnection, id: TenantId) -> Result<Option<Tenant>> {
    let sql = "select id, name, is_operator, created_at, forgetting_at from public.tenants where id = $1 for update";
    Ok(sqlx::query_as(sql).bind(id.0).fetch_optional(conn).await?)
}

/// Takes a tenant out of service before it is forgotten: its keys are refused, its channels are unknown, and its sources are not synced. The revoked
/// keys and inactive channels are for programs of an older version, which do not look at the tenant.
pub async fn begin_forgetting(conn: &mut PgConnection, at: Option<DateTime<Utc>>, id: TenantId) -> Result<()> {
    for sql in [
        "update public.tenants set forgetting_at = coalesce($2, now()) where id = $1",
        "update tributary.api_keys set revoked_at = coalesce($2, now()) where tenant_id = $1 and revoked_at is null",
        "update public.ingestion_providers set is_active = false where tenant_id = $1",
        "update public.connected_sources set next_sync_at = null where tenant_id = $1",
    ] {
        sqlx::query(sql).bind(id.0).bind(at).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Whether a tenant is there and is not being forgotten.
pub async fn is_in_service(conn: &mut PgConnection, id: TenantId) -> Result<bool> {
    let sql = "select exists (select from public.tenants where id = $1 and forgetting_at is null)";
    Ok(sqlx::query_scalar(sql).bind(id.0).fetch_one(conn).await?)
}

/// Returns for how long a tenant has been out of service, by the database's clock. None: it is in service, or gone.
pub async fn forgetting_for(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    id: TenantId,
) -> Result<Option<Duration>> {
    let secs: Option<Option<f64>> = sqlx::query_scalar(
        "select extract(epoch from coalesce($2, now()) - forgetting_at)::float8 from public.tenants where id = $1",
    )
    .bind(id.0)
    .bind(at)
    .fetch_optional(conn)
    .await?;
    Ok(secs.flatten().map(|secs| Duration::from_secs_f64(secs.max(0.0))))
}

/// Finds a tenant by name or id. `None` means the operator's.
pub async fn find(conn: &mut PgConnection, name_or_id: Option<&str>) -> Result<Option<TenantId>> {
    let id: Option<Uuid> = match name_or_id {
        None => return ensure_operator(conn).await.map(Some),
        Some(text) => {
            sqlx::query_scalar("select id from public.tenants where name = $1 or id::text = $1")
                .bind(text)
                .fetch_optional(conn)
                .await?
        }
    };
    Ok(id.map(TenantId))
}
