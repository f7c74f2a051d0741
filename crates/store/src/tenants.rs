//! Tenants: each customer is a tenant, and every row belongs to one.

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
    Ok(sqlx::query_as("select id, name, is_operator, created_at from public.tenants order by created_at")
        .fetch_all(conn)
        .await?)
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
