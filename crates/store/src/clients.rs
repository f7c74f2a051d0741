//! Clients: their facts (table `client_intelligence`), and marks on those whose facts must be derived again.

use chrono::{DateTime, NaiveDate, Utc};
use domain::document::{self, CLIENT_PREFIX, CONTACT};
use domain::{ClientId, DocumentType, SourceId, TenantId};
use serde::Serialize;
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
    let marked = sqlx::query(include_str!("sql/clients_mark_outdated.sql")).bind(words).bind(today).execute(conn);
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
    Ok(sqlx::query_as(include_str!("sql/clients_told.sql"))
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
    pub document_id: Option<Uuid>,
}

/// Writes derived facts where they differ; returns how many rows.
pub async fn upsert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    derived: &[Derived],
) -> Result<u64> {
    let ids: Vec<Uuid> = derived.iter().map(|_| ClientId::new().0).collect();
    let written = sqlx::query(include_str!("sql/clients_upsert.sql"))
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
        .execute(conn)
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

/// A client as its page and the API show it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Client {
    pub id: Uuid,
    pub source_id: Option<Uuid>,
    pub source_name: Option<String>,
    pub source_provider: Option<String>,
    pub external_id: Option<String>,
    pub client_name: String,
    pub industry: Option<String>,
    pub summary: Option<String>,
    pub key_facts: Value,
    pub evidence: Value,
    pub document_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The number of matching clients with this name.
    pub n_alike: i64,
    /// The title of its own record: the person, where the client is named after a company.
    pub record_title: Option<String>,
}

impl Client {
    /// The kind of the record that it is made of. None: a person wrote it.
    pub fn record_kind(&self) -> Option<&str> {
        self.external_id.as_deref().map(|id| document::record_kind(id).unwrap_or_default())
    }

    /// Whether it is a person at a client.
    pub fn is_contact(&self) -> bool {
        self.record_kind() == Some(CONTACT)
    }
}

/// Selects the clients of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    pub only: Option<ClientId>,
    /// Part of the name, in any case.
    pub named: Option<&'a str>,
    /// Exactly this name, in any case.
    pub alike: Option<&'a str>,
    /// Only one of each name.
    pub is_grouped: bool,
    pub limit: i64,
}

/// Lists the caller's clients by name. Row security of the transaction decides which those are.
pub async fn list(conn: &mut PgConnection, filter: Filter<'_>) -> Result<Vec<Client>> {
    Ok(sqlx::query_as(include_str!("sql/clients_list.sql"))
        .bind(filter.only.map(|id| id.0))
        .bind(filter.named)
        .bind(filter.alike)
        .bind(filter.limit)
        .bind(filter.is_grouped)
        .bind(CONTACT)
        .fetch_all(conn)
        .await?)
}

/// A document that a fact cites.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Cited {
    pub id: Uuid,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub title: Option<String>,
    pub source_updated_at: Option<DateTime<Utc>>,
}

/// Reads documents by id, as row security of the transaction allows.
pub async fn cited(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Cited>> {
    Ok(sqlx::query_as(
        "select id, external_id, document_type, title, source_updated_at from public.source_documents
         where id = any($1) and deleted_at is null order by source_updated_at desc nulls last, external_id",
    )
    .bind(ids)
    .fetch_all(conn)
    .await?)
}

/// Finds the clients of documents, as (document, client): a document may be a client's own text, or the record that the client is made
/// of. Row security of the transaction applies.
pub async fn of_documents(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<(Uuid, Uuid)>> {
    Ok(sqlx::query_as(
        "select d.id, c.id from public.source_documents d
         join public.client_intelligence c on c.source_id = d.source_id
             and c.external_id = case d.document_type when $2 then substr(d.external_id, length($3) + 1) else d.external_id end
         where d.id = any($1)",
    )
    .bind(ids)
    .bind(DocumentType::Client.to_string())
    .bind(CLIENT_PREFIX)
    .fetch_all(conn)
    .await?)
}
