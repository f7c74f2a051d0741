//! Records of clients as lane `client_facts` derives them, and marks on those whose facts must be derived again.

use chrono::{DateTime, NaiveDate, Utc};
use domain::{ClientId, SourceId, TenantId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A client that is marked. Facts derived for it are written only if it was not marked again meanwhile.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Dirty {
    pub external_id: String,
    pub marks: i64,
}

/// Lists marked clients of a source.
pub async fn dirty(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    limit: i64,
) -> Result<Vec<Dirty>> {
    Ok(sqlx::query_as(
        "select external_id, marks from tributary.dirty_clients where tenant_id = $1 and source_id = $2 order by external_id limit $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Finds sources with clients that have been marked for more than a minute: the item that should derive them was lost.
pub async fn neglected(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<Vec<(Uuid, Uuid)>> {
    Ok(sqlx::query_as(
        "select distinct tenant_id, source_id from tributary.dirty_clients where marked_at < coalesce($1, now()) - interval '1 minute'",
    )
    .bind(at)
    .fetch_all(conn)
    .await?)
}

/// Marks clients whose text is of other words than this version, or speaks of a day before `today` as one to come. Returns how many.
pub async fn mark_outdated(conn: &mut PgConnection, words: i32, today: NaiveDate) -> Result<u64> {
    let marked = sqlx::query(include_str!("../sql/clients_mark_outdated.sql")).bind(words).bind(today).execute(conn);
    Ok(marked.await?.rows_affected())
}

/// A record that a client's facts may rest on. The type stays a text: the provider's own code reads it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Told {
    pub client: String,
    pub id: Uuid,
    pub external_id: String,
    pub document_type: String,
    pub raw_payload: Option<Value>,
    pub source_updated_at: Option<DateTime<Utc>>,
}

/// Reads the clients' own records, those they mention, and those of `types` that mention them. Deleted ones are left out.
pub async fn told(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    clients: &[&str],
    types: &[&str],
) -> Result<Vec<Told>> {
    Ok(sqlx::query_as(include_str!("../sql/clients_told.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(clients)
        .bind(types)
        .fetch_all(conn)
        .await?)
}

/// Removes marks. Returns the clients that were not marked again since they were read; only those may be written.
pub async fn unmark(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    dirty: &[Dirty],
) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "with gone as (
             select c.source_id, c.external_id from tributary.dirty_clients c
             join unnest($3::text[], $4::bigint[]) d (external_id, marks) on d.external_id = c.external_id and d.marks = c.marks
             where c.tenant_id = $1 and c.source_id = $2 order by c.external_id for update of c)
         delete from tributary.dirty_clients c using gone g where c.source_id = g.source_id and c.external_id = g.external_id
         returning c.external_id",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(dirty.iter().map(|dirty| dirty.external_id.as_str()).collect::<Vec<_>>())
    .bind(dirty.iter().map(|dirty| dirty.marks).collect::<Vec<_>>())
    .fetch_all(conn)
    .await?)
}

/// Finds which of these clients have a document of their own.
pub async fn with_text(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[&str],
) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select external_id from public.client_intelligence
         where tenant_id = $1 and source_id = $2 and external_id = any($3) and document_id is not null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_ids)
    .fetch_all(conn)
    .await?)
}

/// The facts derived for one client.
#[derive(Clone, Debug)]
pub struct Derived {
    pub external_id: String,
    pub client_name: String,
    pub industry: Option<String>,
    pub summary: Option<String>,
    pub key_facts: Value,
    pub evidence: Value,
    /// By which it is matched with others ([`domain::matching::Identity`]).
    pub identity: Value,
    pub document_id: Option<Uuid>,
}

/// Writes derived facts where they differ; returns how many rows. Records whose keys differ wait to be matched.
pub async fn upsert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    derived: &[Derived],
) -> Result<u64> {
    super::matching::lock(conn, tenant_id).await?;
    let ids: Vec<Uuid> = derived.iter().map(|_| ClientId::new().0).collect();
    let written = sqlx::query(include_str!("../sql/clients_upsert.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(ids)
        .bind(derived.iter().map(|client| client.external_id.as_str()).collect::<Vec<_>>())
        .bind(derived.iter().map(|client| client.client_name.as_str()).collect::<Vec<_>>())
        .bind(derived.iter().map(|client| client.industry.as_deref()).collect::<Vec<_>>())
        .bind(derived.iter().map(|client| client.summary.as_deref()).collect::<Vec<_>>())
        .bind(derived.iter().map(|client| &client.key_facts).collect::<Vec<_>>())
        .bind(derived.iter().map(|client| &client.evidence).collect::<Vec<_>>())
        .bind(derived.iter().map(|client| client.document_id).collect::<Vec<_>>())
        .bind(at)
        .bind(derived.iter().map(|client| &client.identity).collect::<Vec<_>>())
        .execute(&mut *conn)
        .await?;
    Ok(written.rows_affected())
}

/// Removes clients whose own record is gone.
pub async fn withdraw(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[&str],
) -> Result<u64> {
    let gone = sqlx::query(
        "delete from public.client_intelligence where tenant_id = $1 and source_id = $2 and external_id = any($3)",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_ids)
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
