//! Where documents come from (table `connected_sources`).

use chrono::{DateTime, Utc};
use domain::{SourceId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Source {
    pub id: Uuid,
    pub provider: String,
    pub name: String,
    pub created_at: DateTime<Utc>,
}

/// The tenant's own door for files and notes, made on first use.
pub async fn ensure_manual(conn: &mut PgConnection, tenant_id: TenantId) -> Result<SourceId> {
    let known = "select id from public.connected_sources where tenant_id = $1 and provider = 'manual'";
    if let Some(id) = sqlx::query_scalar(known).bind(tenant_id.0).fetch_optional(&mut *conn).await? {
        return Ok(SourceId(id));
    }
    sqlx::query(
        "insert into public.connected_sources (id, tenant_id, provider, name) values ($1, $2, 'manual', 'Files and notes') on conflict do nothing",
    )
    .bind(SourceId::new().0)
    .bind(tenant_id.0)
    .execute(&mut *conn)
    .await?;
    Ok(SourceId(sqlx::query_scalar(known).bind(tenant_id.0).fetch_one(conn).await?))
}

/// The caller's sources, by its own transaction's row security.
pub async fn list(conn: &mut PgConnection) -> Result<Vec<Source>> {
    Ok(sqlx::query_as("select id, provider, name, created_at from public.connected_sources order by created_at")
        .fetch_all(conn)
        .await?)
}
