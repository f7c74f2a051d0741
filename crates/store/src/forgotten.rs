//! Forgetting a source: its rows are counted first and removed in steps. A row without content records what was removed, when and by whom.

use chrono::{DateTime, Utc};
use domain::{SourceId, TenantId};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// The numbers of rows that a source has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct Counted {
    pub documents: i64,
    pub chunks: i64,
    pub clients: i64,
    pub jobs: i64,
}

pub async fn count(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Counted> {
    Ok(sqlx::query_as(
        "select count(*) as documents, coalesce(sum(n_chunks), 0)::bigint as chunks,
             (select count(*) from public.client_intelligence c where c.tenant_id = $1 and c.source_id = $2) as clients,
             (select count(*) from public.sync_jobs j where j.tenant_id = $1 and j.source_id = $2) as jobs
         from public.source_documents where tenant_id = $1 and source_id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .fetch_one(conn)
    .await?)
}

/// Inserts the row that will record what was removed.
pub async fn begin(conn: &mut PgConnection, tenant_id: TenantId, what: &str, by: &str) -> Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query("insert into public.forgotten (id, tenant_id, what, by) values ($1, $2, $3, $4)")
        .bind(id)
        .bind(tenant_id.0)
        .bind(what)
        .bind(by)
        .execute(conn)
        .await?;
    Ok(id)
}

/// Returns the tenant's sources that are being forgotten now.
pub async fn under_way(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "select (message ->> 'source_id')::uuid from pgmq.q_forget where message ->> 'tenant_id' = $1",
    )
    .bind(tenant_id.to_string())
    .fetch_all(conn)
    .await?)
}

/// Removes up to `limit` documents of a source, with everything that belongs to them. Returns how many.
pub async fn remove_documents(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    limit: i64,
) -> Result<u64> {
    let gone = sqlx::query(
        "delete from public.source_documents where tenant_id = $1 and id in (
             select id from public.source_documents where tenant_id = $1 and source_id = $2 order by id limit $3)",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(limit)
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}

/// Adds to the recorded numbers.
pub async fn note(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, kind: &str, n: u64) -> Result<()> {
    sqlx::query(
        "update public.forgotten set removed = removed || jsonb_build_object($3::text, coalesce((removed ->> $3)::bigint, 0) + $4)
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id)
    .bind(kind)
    .bind(i64::try_from(n).unwrap_or(i64::MAX))
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes the source itself and everything that still references it: jobs, failures, tokens, clients, alerts, archived and parked
/// messages.
pub async fn remove_source(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    id: Uuid,
) -> Result<()> {
    let counted = count(conn, tenant_id, source_id).await?;
    note(conn, tenant_id, id, "clients", u64::try_from(counted.clients).unwrap_or(0)).await?;
    note(conn, tenant_id, id, "jobs", u64::try_from(counted.jobs).unwrap_or(0)).await?;
    for table in ["pgmq.q_ingestion_queue", "pgmq.a_ingestion_queue", "pgmq.a_client_facts", "pgmq.q_client_facts"] {
        let sql = format!("delete from {table} where message @> $1");
        let named = json!({ "tenant_id": tenant_id.0, "source_id": source_id.0 });
        sqlx::query(sqlx::AssertSqlSafe(sql)).bind(named).execute(&mut *conn).await?;
    }
    sqlx::query("delete from tributary.parked where tenant_id = $1 and message ->> 'source_id' = $2")
        .bind(tenant_id.0)
        .bind(source_id.to_string())
        .execute(&mut *conn)
        .await?;
    sqlx::query("delete from tributary.gates where key like '%' || $1 || '%'")
        .bind(source_id.to_string())
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "delete from tributary.alerts where tenant_id = $1 and (subject = $3
             or subject in (select id::text from public.sync_jobs where tenant_id = $1 and source_id = $2))",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(source_id.to_string())
    .execute(&mut *conn)
    .await?;
    sqlx::query("delete from public.connected_sources where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .execute(&mut *conn)
        .await?;
    sqlx::query("update public.forgotten set done_at = coalesce($3, now()) where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}
