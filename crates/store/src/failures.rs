//! What a person wants to know of records that could not be read. Syncs write them (`jobs`).

use domain::{SourceId, TenantId};
use sqlx::PgConnection;

use crate::Result;

/// How many there are, skipped ones among them.
pub async fn count(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from public.sync_failures where tenant_id = $1 and source_id = $2")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .fetch_one(conn)
        .await?)
}

/// The names of those that nobody skipped, the latest first.
pub async fn open(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    limit: i64,
) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(include_str!("sql/failures_open.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}
