//! Background upkeep for search: counts, rarities of terms, and the index over a large tenant's vectors.

use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use super::VectorTable;
use crate::{Db, Result, indexes};

/// A tenant with up to so many chunks is searched exactly; an index would only cost recall.
pub const EXACT_CHUNKS: i64 = 10_000;
/// How many chunks the rarity of terms is estimated from.
const SAMPLE: i64 = 20_000;
/// How many lexemes are kept per tenant; all others count as rare.
const LEXEMES: i64 = 50_000;

/// A tenant and the state of its estimates.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Maintained {
    pub tenant_id: Uuid,
    pub model: String,
    pub n_chunks: i64,
    pub index_name: Option<String>,
    pub stats_chunks: i64,
}

impl Maintained {
    /// Whether its number of chunks has changed by a fifth since its terms were counted.
    pub fn wants_stats(&self) -> bool {
        (self.n_chunks - self.stats_chunks).abs() * 5 > self.stats_chunks
    }

    /// Whether it is large enough for an index and has none.
    pub fn wants_index(&self) -> bool {
        self.n_chunks > EXACT_CHUNKS && self.index_name.is_none()
    }
}

/// Counts the chunks of every tenant.
pub async fn count(conn: &mut PgConnection) -> Result<Vec<Maintained>> {
    Ok(sqlx::query_as(include_str!("../sql/memory_count.sql")).fetch_all(conn).await?)
}

/// Estimates from a sample in how many chunks each lexeme of a tenant occurs. Hashes are evenly spread, so a slice of them is a fair sample.
pub async fn renew_stats(conn: &mut PgConnection, tenant: &Maintained) -> Result<()> {
    let share = (SAMPLE as f64 / tenant.n_chunks.max(1) as f64).min(1.0);
    let slice = format!("{:08x}", (share * f64::from(u32::MAX)) as u32);
    // `ts_stat` takes its query as text; nothing in it comes from outside.
    let sample = format!(
        "select tsv from public.document_chunks where tenant_id = '{}' and hash <= '\\x{slice}ff'",
        tenant.tenant_id
    );
    sqlx::query(include_str!("../sql/memory_renew_stats.sql"))
        .bind(tenant.tenant_id)
        .bind(sample)
        .bind(1.0 / share)
        .bind(LEXEMES)
        .bind(tenant.n_chunks)
        .execute(conn)
        .await?;
    Ok(())
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
