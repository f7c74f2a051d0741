//! Background upkeep for search: counts, and the index over a large tenant's vectors.

use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use super::VectorTable;
use crate::{Db, Result, indexes};

/// A tenant with up to so many chunks is searched exactly; an index would only cost recall.
pub const EXACT_CHUNKS: i64 = 10_000;
/// A tenant and its counts.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Maintained {
    pub tenant_id: Uuid,
    pub model: String,
    pub n_chunks: i64,
    pub index_name: Option<String>,
}

impl Maintained {
    /// Whether it is large enough for an index and has none.
    pub fn wants_index(&self) -> bool {
        self.n_chunks > EXACT_CHUNKS && self.index_name.is_none()
    }
}

/// Counts the chunks and documents of every tenant whose documents have changed.
pub async fn count(conn: &mut PgConnection) -> Result<Vec<Maintained>> {
    Ok(sqlx::query_as(include_str!("../sql/memory_count.sql")).fetch_all(conn).await?)
}

/// The name of the index over a tenant's vectors.
pub fn index_name(table: &VectorTable, tenant_id: TenantId) -> String {
    format!("vectors_{}_{}", table.model().chars().take(20).collect::<String>(), tenant_id.0.simple())
}

/// Builds a tenant's own index over its vectors without blocking writers. Safe to repeat.
pub async fn build_index(db: &Db, tenant_id: TenantId, table: &VectorTable) -> Result<()> {
    let mut conn = db.acquire().await?;
    let schema: String = sqlx::query_scalar(
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'",
    )
    .fetch_one(&mut *conn)
    .await?;
    drop(conn);
    // Denser than pgvector's default: over 100,000 chunks that finds 97 of the nearest hundred, where the default finds 93.
    let on = format!(
        "memory.vectors_{} using hnsw (embedding {schema}.halfvec_ip_ops) with (m = 24, ef_construction = 200) where tenant_id = '{tenant_id}'",
        table.model()
    );
    indexes::build(db, "memory", &index_name(table, tenant_id), &on).await
}

/// Whether a tenant has more chunks than are searched exactly.
pub async fn is_large(conn: &mut PgConnection, tenant_id: TenantId) -> Result<bool> {
    let sql = "select count(*) > $2 from (select from public.document_chunks where tenant_id = $1 limit $2 + 1) few";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(EXACT_CHUNKS).fetch_one(conn).await?)
}

/// Drops the index over a tenant's vectors of one model, if there is one. Blocks nobody, and is safe to repeat.
pub async fn drop_index(db: &Db, tenant_id: TenantId, table: &VectorTable) -> Result<()> {
    let name = index_name(table, tenant_id);
    let mut conn = db.acquire().await?;
    let sql = "select to_regclass('memory.' || $1) is not null";
    let is_there: bool = sqlx::query_scalar(sql).bind(&name).fetch_one(&mut *conn).await?;
    std::mem::drop(conn);
    if is_there { indexes::drop(db, "memory", &name).await } else { Ok(()) }
}

/// Drops the indexes over a tenant's vectors, when the tenant is forgotten. Blocks nobody, and is safe to repeat.
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
    Ok(())
}

/// Makes the tenant's searches use its index.
pub async fn use_index(conn: &mut PgConnection, tenant_id: TenantId, table: &VectorTable) -> Result<()> {
    sqlx::query("update memory.tenants set index_name = $2 where tenant_id = $1 and model = $3")
        .bind(tenant_id.0)
        .bind(index_name(table, tenant_id))
        .bind(table.model())
        .execute(conn)
        .await?;
    Ok(())
}
