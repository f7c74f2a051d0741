//! Background upkeep for search: counts, and the removal of what earlier releases kept.

use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Db, Result, indexes};

/// A tenant and its counts.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Maintained {
    pub tenant_id: Uuid,
    pub model: String,
    pub n_chunks: i64,
    pub index_name: Option<String>,
}

/// Counts the chunks and documents of every tenant whose documents have changed.
pub async fn count(conn: &mut PgConnection) -> Result<Vec<Maintained>> {
    Ok(sqlx::query_as(include_str!("../sql/memory_count.sql")).fetch_all(conn).await?)
}

/// Drops the indexes over a tenant's vectors, which searches used before there were codes. Blocks nobody, and is safe to repeat.
pub async fn drop_indexes(db: &Db, tenant_id: TenantId) -> Result<()> {
    let mut conn = db.acquire().await?;
    let names: Vec<String> = sqlx::query_scalar(
        "select relname::text from pg_class where relnamespace = 'memory'::regnamespace and relkind = 'i' and relname like 'vectors\\_%\\_' || $1",
    )
    .bind(tenant_id.0.simple().to_string())
    .fetch_all(&mut *conn)
    .await?;
    drop(conn);
    for name in names {
        indexes::drop(db, "memory", &name).await?;
    }
    let mut conn = db.acquire().await?;
    let sql = "update memory.tenants set index_name = null where tenant_id = $1 and index_name is not null";
    sqlx::query(sql).bind(tenant_id.0).execute(&mut *conn).await?;
    Ok(())
}
