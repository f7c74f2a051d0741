//! Decisions of people about clients: two records are one client, or a record is matched with nothing.

use chrono::{DateTime, Utc};
use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Decision {
    pub id: Uuid,
    /// `merge` or `split`.
    pub kind: String,
    /// The record, as [`super::ClientRecord::reference`] names it, or `contact/{id}`.
    pub record: String,
    /// The record with which it is one client.
    pub other: Option<String>,
    pub said_by: String,
    pub said_at: DateTime<Utc>,
}

/// Stores a decision. `false`: it was made before.
pub async fn insert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    (record, other): (&str, Option<&str>),
    said_by: &str,
) -> Result<bool> {
    let kind = if other.is_some() { "merge" } else { "split" };
    let inserted = sqlx::query(
        "insert into public.client_decisions (id, tenant_id, kind, record, other, said_by, said_at)
         values ($1, $2, $3, $4, $5, $6, coalesce($7, now())) on conflict do nothing",
    )
    .bind(Uuid::now_v7())
    .bind(tenant_id.0)
    .bind(kind)
    .bind(record)
    .bind(other)
    .bind(said_by)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// The decisions about these records, oldest first.
pub async fn about(conn: &mut PgConnection, references: &[String]) -> Result<Vec<Decision>> {
    Ok(sqlx::query_as(
        "select id, kind, record, other, said_by, said_at from public.client_decisions
         where record = any($1) or other = any($1) order by said_at, id",
    )
    .bind(references)
    .fetch_all(conn)
    .await?)
}

/// Removes every decision about a record or contact. `false`: there was none.
pub async fn remove_about(conn: &mut PgConnection, tenant_id: TenantId, reference: &str) -> Result<bool> {
    let sql = "delete from public.client_decisions where tenant_id = $1 and record = $2";
    Ok(sqlx::query(sql).bind(tenant_id.0).bind(reference).execute(conn).await?.rows_affected() > 0)
}

/// Removes a decision, and returns it. None: there is no such decision.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<Option<Decision>> {
    Ok(sqlx::query_as(
        "delete from public.client_decisions where tenant_id = $1 and id = $2
         returning id, kind, record, other, said_by, said_at",
    )
    .bind(tenant_id.0)
    .bind(id)
    .fetch_optional(conn)
    .await?)
}
