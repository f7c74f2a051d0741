//! Records that could not be read (table `sync_failures`). Syncs add and remove them, and people retry or skip them.

use chrono::{DateTime, Utc};
use domain::{JobId, SourceId, TenantId};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A record that could not be read.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Failure {
    pub external_id: String,
    pub job_id: Option<Uuid>,
    pub reason: String,
    pub payload: Option<Value>,
    pub n_failed: i32,
    pub failed_at: DateTime<Utc>,
    pub skipped_at: Option<DateTime<Utc>>,
}

/// Records failures. A record that a person skipped stays skipped.
pub async fn note(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    job_id: JobId,
    failures: &[(String, String, Value)],
) -> Result<()> {
    let column = |nth: fn(&(String, String, Value)) -> &str| failures.iter().map(nth).collect::<Vec<&str>>();
    let payloads: Vec<&Value> = failures.iter().map(|(_, _, payload)| payload).collect();
    sqlx::query(
        "insert into public.sync_failures (tenant_id, source_id, external_id, job_id, reason, payload, failed_at)
         select $1, $2, f.external_id, $3, f.reason, f.payload, coalesce($7, now())
         from (select distinct on (external_id) * from unnest($4::text[], $5::text[], $6::jsonb[]) f (external_id, reason, payload)) f
         on conflict (tenant_id, source_id, external_id) do update set job_id = excluded.job_id, reason = excluded.reason,
             payload = excluded.payload, n_failed = sync_failures.n_failed + 1, failed_at = excluded.failed_at",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(job_id.0)
    .bind(column(|(id, _, _)| id))
    .bind(column(|(_, reason, _)| reason))
    .bind(payloads)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes failures whose records were read after all, or are gone.
pub async fn clear(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[&str],
) -> Result<()> {
    sqlx::query("delete from public.sync_failures where tenant_id = $1 and source_id = $2 and external_id = any($3)")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(external_ids)
        .execute(conn)
        .await?;
    Ok(())
}

/// Skips a record: it no longer counts, until a later sync can read it.
pub async fn skip(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    external_id: &str,
) -> Result<bool> {
    let skipped = sqlx::query(
        "update public.sync_failures set skipped_at = coalesce($4, now())
         where tenant_id = $1 and source_id = $2 and external_id = $3 and skipped_at is null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_id)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(skipped.rows_affected() == 1)
}

/// Lists failures, newest first, skipped ones last.
pub async fn list(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    limit: i64,
) -> Result<Vec<Failure>> {
    Ok(sqlx::query_as(
        "select external_id, job_id, reason, payload, n_failed, failed_at, skipped_at from public.sync_failures
         where tenant_id = $1 and source_id = $2 order by skipped_at nulls first, failed_at desc, external_id limit $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Whether this record is among the failures.
pub async fn exists(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_id: &str,
) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "select exists (select from public.sync_failures where tenant_id = $1 and source_id = $2 and external_id = $3)",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_id)
    .fetch_one(conn)
    .await?)
}

/// Counts failures, including skipped ones.
pub async fn count(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from public.sync_failures where tenant_id = $1 and source_id = $2")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .fetch_one(conn)
        .await?)
}

/// Returns the names of failures that are not skipped, newest first.
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
