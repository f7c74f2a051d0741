//! Documents: what is stored of each record, written in batches.

use chrono::{DateTime, Utc};
use domain::{ActivityId, DocumentId, DocumentStatus, DocumentType, Record, SourceId, TenantId};
use serde::Serialize;
use sqlx::{PgConnection, QueryBuilder};
use uuid::Uuid;

use super::VectorTable;
use crate::Result;
use crate::queue::MOST_COUNTED;

/// The stored state of a document that a batch is about to write. It is read before the embedding, and again under lock.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Seen {
    pub id: Uuid,
    pub source_id: Uuid,
    pub external_id: String,
    pub content_sha256: Vec<u8>,
    pub embedding_model: Option<String>,
    pub source_version: Option<i64>,
    pub revision: i32,
    pub n_chunks: i32,
    pub is_deleted: bool,
    /// A person deleted it: it stays deleted until a person lets it in again.
    pub is_removed: bool,
    pub blob_key: Option<String>,
    #[sqlx(try_from = "String")]
    pub status: DocumentStatus,
}

/// A document to be written: its record and what we made of it.
#[derive(Clone, Debug)]
pub struct Stored<'a> {
    pub id: DocumentId,
    pub record: &'a Record,
    /// The newest version that came of it. The record's own may be missing, or older.
    pub version: Option<i64>,
    /// Normalised.
    pub title: Option<&'a str>,
    pub text: &'a str,
    pub lang: &'a str,
    pub content_sha256: &'a [u8; 32],
    pub n_chunks: usize,
    /// The model of its vectors once it has all of them; none while some are pending.
    pub embedding_model: Option<&'a str>,
}

/// Reads the stored state of a batch's documents, by source and external id.
pub async fn look(conn: &mut PgConnection, tenant_id: TenantId, records: &[&Record]) -> Result<Vec<Seen>> {
    let sources: Vec<Uuid> = records.iter().map(|record| record.source_id.0).collect();
    let externals: Vec<&str> = records.iter().map(|record| record.external_id.as_str()).collect();
    Ok(sqlx::query_as(include_str!("../sql/documents_look.sql"))
        .bind(tenant_id.0)
        .bind(sources)
        .bind(externals)
        .fetch_all(conn)
        .await?)
}

/// Reads the same and locks the rows, in id order, so that two batches never wait for each other in a ring.
pub async fn lock(conn: &mut PgConnection, tenant_id: TenantId, ids: &[Uuid]) -> Result<Vec<Seen>> {
    Ok(sqlx::query_as(include_str!("../sql/documents_lock.sql")).bind(tenant_id.0).bind(ids).fetch_all(conn).await?)
}

/// Inserts new documents, tombstones included, and returns the inserted ids. One that is missing was inserted by somebody else.
pub async fn insert(conn: &mut PgConnection, tenant_id: TenantId, new: &[Stored<'_>]) -> Result<Vec<Uuid>> {
    let columns = Columns::of(new);
    Ok(columns
        .bind(sqlx::query_scalar(include_str!("../sql/documents_insert.sql")).bind(tenant_id.0))
        .fetch_all(conn)
        .await?)
}

/// Overwrites changed documents.
pub async fn update(conn: &mut PgConnection, tenant_id: TenantId, changed: &[Stored<'_>]) -> Result<()> {
    let columns = Columns::of(changed);
    let updated: Vec<Uuid> = columns
        .bind(sqlx::query_scalar(include_str!("../sql/documents_update.sql")).bind(tenant_id.0))
        .fetch_all(conn)
        .await?;
    debug_assert_eq!(updated.len(), changed.len(), "documents are updated under their locks");
    Ok(())
}

/// A document whose text is unchanged, and the record that says so.
#[derive(Clone, Copy, Debug)]
pub struct Same<'a> {
    pub id: Uuid,
    pub record: &'a Record,
    /// The newest version that came of it.
    pub version: Option<i64>,
}

impl Same<'_> {
    /// The status that it gets. None: how far its file is read stays as it is.
    fn status(&self) -> Option<DocumentStatus> {
        Some(self.record.status).filter(|status| *status != DocumentStatus::Pending)
    }
}

/// Updates payload, version, status and times of documents whose text is unchanged, where these differ; returns those documents. Each comes
/// with the newest version that is known of it.
pub async fn touch(conn: &mut PgConnection, tenant_id: TenantId, same: &[Same<'_>]) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("../sql/documents_touch.sql"))
        .bind(tenant_id.0)
        .bind(same.iter().map(|same| same.id).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.record.raw_payload.clone()).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.record.source_metadata.clone()).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.version).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.record.contact_id).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.record.source_updated_at).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.record.blob_key.as_deref()).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.status().map(DocumentStatus::as_str)).collect::<Vec<_>>())
        .bind(same.iter().map(|same| same.record.skip_reason.as_deref()).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?)
}

/// The rows as one array per column, in the order of documents_insert.sql and documents_update.sql.
struct Columns<'a> {
    rows: &'a [Stored<'a>],
}

type Scalar<'q> = sqlx::query::QueryScalar<'q, sqlx::Postgres, Uuid, sqlx::postgres::PgArguments>;

impl<'a> Columns<'a> {
    fn of(rows: &'a [Stored<'a>]) -> Self {
        Self { rows }
    }

    fn each<T>(&self, of: impl Fn(&Stored<'a>) -> T) -> Vec<T> {
        self.rows.iter().map(of).collect()
    }

    fn bind<'q>(&self, query: Scalar<'q>) -> Scalar<'q>
    where
        'a: 'q,
    {
        query
            .bind(self.each(|row| row.id.0))
            .bind(self.each(|row| row.record.source_id.0))
            .bind(self.each(|row| row.record.external_id.clone()))
            .bind(self.each(|row| row.record.document_type.to_string()))
            .bind(self.each(|row| row.title.map(str::to_owned)))
            .bind(self.each(|row| row.text.to_owned()))
            .bind(self.each(|row| row.lang.to_owned()))
            .bind(self.each(|row| row.record.raw_payload.clone()))
            .bind(self.each(|row| row.record.blob_key.clone()))
            .bind(self.each(|row| row.content_sha256.to_vec()))
            .bind(self.each(|row| row.embedding_model.map(str::to_owned)))
            .bind(self.each(|row| row.version))
            .bind(self.each(|row| row.record.thread_id.clone()))
            .bind(self.each(|row| row.record.contact_id))
            .bind(self.each(|row| row.record.source_metadata.clone()))
            .bind(self.each(|row| row.record.source_created_at))
            .bind(self.each(|row| row.record.source_updated_at))
            .bind(self.each(|row| i32::try_from(row.n_chunks).unwrap_or(i32::MAX)))
            .bind(self.each(|row| row.record.is_deleted))
            .bind(self.each(|row| row.record.status.as_str()))
            .bind(self.each(|row| row.record.skip_reason.clone()))
    }
}

/// A document whose vectors are pending.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Pending {
    pub id: Uuid,
    pub content_sha256: Vec<u8>,
    pub revision: i32,
}

/// Reads a document that waits for vectors; `None` when it has them, changed, or is gone.
pub async fn pending(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId) -> Result<Option<Pending>> {
    Ok(sqlx::query_as(
        "select id, content_sha256, revision from public.source_documents
         where tenant_id = $1 and id = $2 and embedding_model is null and n_chunks > 0 and deleted_at is null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(conn)
    .await?)
}

/// Marks a document as embedded, if its text is still the one that was embedded.
pub async fn mark_embedded(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    pending: &Pending,
    table: &VectorTable,
) -> Result<bool> {
    let marked = sqlx::query(
        "update public.source_documents set embedding_model = $4, embedding_text_sha256 = content_sha256
         where tenant_id = $1 and id = $2 and revision = $3 and deleted_at is null",
    )
    .bind(tenant_id.0)
    .bind(pending.id)
    .bind(pending.revision)
    .bind(table.model())
    .execute(conn)
    .await?;
    Ok(marked.rows_affected() == 1)
}

/// A document as its page and the API show it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Document {
    pub id: Uuid,
    pub source_id: Uuid,
    pub source_name: String,
    pub source_provider: String,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub title: Option<String>,
    pub text: String,
    pub lang: String,
    pub raw_payload: Option<serde_json::Value>,
    pub blob_key: Option<String>,
    pub embedding_model: Option<String>,
    pub source_version: Option<i64>,
    #[sqlx(try_from = "String")]
    pub status: DocumentStatus,
    pub skip_reason: Option<String>,
    pub source_metadata: serde_json::Value,
    pub n_chunks: i32,
    pub revision: i32,
    pub source_created_at: Option<DateTime<Utc>>,
    pub source_updated_at: Option<DateTime<Utc>>,
    pub deleted_at: Option<DateTime<Utc>>,
    /// When a person deleted it, and who.
    pub removed_at: Option<DateTime<Utc>>,
    pub removed_by: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Document {
    /// Whether it waits for vectors; it is found by keyword meanwhile.
    pub fn is_pending(&self) -> bool {
        self.n_chunks > 0 && self.embedding_model.is_none() && self.deleted_at.is_none()
    }
}

/// Reads one of the caller's documents. Row security of the transaction decides which those are.
pub async fn get(conn: &mut PgConnection, id: Uuid) -> Result<Option<Document>> {
    Ok(sqlx::query_as(include_str!("../sql/document_get.sql")).bind(id).fetch_optional(conn).await?)
}

/// Finds the document of an activity, if it has one yet.
pub async fn of_activity(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<Uuid>> {
    Ok(sqlx::query_scalar(
        "select d.id from public.activities a
         join public.source_documents d on d.tenant_id = a.tenant_id and d.external_id = $3
             and d.source_id = coalesce((select s.id from public.connected_sources s where s.tenant_id = a.tenant_id and s.id = a.provider_id),
                 (select m.id from public.connected_sources m where m.tenant_id = a.tenant_id and m.provider = 'manual'))
         where a.tenant_id = $1 and a.id = $2 and d.deleted_at is null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(id.external_id())
    .fetch_optional(conn)
    .await?)
}

/// A stored document's name and type.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct NamedType {
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
}

/// Finds which of these documents a source has, deleted ones aside, and of what type they are.
pub async fn types_of(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[String],
) -> Result<Vec<NamedType>> {
    Ok(sqlx::query_as(
        "select external_id, document_type from public.source_documents
         where tenant_id = $1 and source_id = $2 and external_id = any($3) and deleted_at is null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_ids)
    .fetch_all(conn)
    .await?)
}

/// The stored state of a document that is a file.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredFile {
    pub external_id: String,
    /// None: its document is deleted, or has no file.
    pub blob_key: Option<String>,
    pub source_version: Option<i64>,
    /// A person deleted it, so nothing is remembered of it.
    pub is_kept_out: bool,
}

/// Finds those of these names that have a document, deleted ones too.
pub async fn files_of(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[String],
) -> Result<Vec<StoredFile>> {
    Ok(sqlx::query_as(
        "select external_id, case when deleted_at is null then blob_key end as blob_key, source_version, removed_at is not null as is_kept_out
         from public.source_documents where source_id = $2 and external_id = any($3) and (tenant_id = $1) is true",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_ids)
    .fetch_all(conn)
    .await?)
}

/// The state of a document, for those who watch what changes.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct State {
    pub id: Uuid,
    pub title: Option<String>,
    pub status: String,
    pub skip_reason: Option<String>,
    pub is_deleted: bool,
    pub updated_at: DateTime<Utc>,
}

/// Reads the state of these of the caller's documents. Those that are gone are missing.
pub async fn states(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<State>> {
    Ok(sqlx::query_as(
        "select id, title, status, skip_reason, deleted_at is not null as is_deleted, updated_at
         from public.source_documents where id = any($1)",
    )
    .bind(ids)
    .fetch_all(conn)
    .await?)
}

/// A line of a list of documents.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Listed {
    pub id: Uuid,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub title: Option<String>,
    /// The beginning of its text.
    pub text: String,
    pub n_chunks: i32,
    pub is_embedded: bool,
    #[sqlx(try_from = "String")]
    pub status: DocumentStatus,
    pub skip_reason: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Listed {
    /// Whether it waits for vectors; it is found by keyword meanwhile.
    pub fn is_pending(&self) -> bool {
        self.n_chunks > 0 && !self.is_embedded
    }
}

/// The documents that a list shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub source_id: Option<SourceId>,
    pub document_type: Option<&'a str>,
    /// With a file that is read so far.
    pub status: Option<DocumentStatus>,
    /// Older than this one. Ids are made in the order of time.
    pub before: Option<Uuid>,
    pub limit: i64,
}

impl Wanted<'_> {
    /// Adds the conditions on a row `d`.
    fn narrow(&self, sql: &mut QueryBuilder<sqlx::Postgres>) {
        sql.push(" where d.deleted_at is null");
        if let Some(id) = self.source_id {
            sql.push(" and d.source_id = ").push_bind(id.0);
        }
        if let Some(kind) = self.document_type {
            sql.push(" and d.document_type = ").push_bind(kind.to_owned());
        }
        if let Some(status) = self.status {
            sql.push(" and d.blob_key is not null and d.status = ").push_bind(status.as_str());
        }
    }
}

/// Lists the caller's documents, the newest first.
pub async fn list(conn: &mut PgConnection, wanted: Wanted<'_>) -> Result<Vec<Listed>> {
    let mut sql = QueryBuilder::new(
        "select d.id, d.source_id, s.name as source_name, d.external_id, d.document_type, d.title, left(d.text, 300) as text, d.n_chunks,
             d.embedding_model is not null as is_embedded, d.status, d.skip_reason, d.created_at, d.updated_at
         from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id",
    );
    wanted.narrow(&mut sql);
    if let Some(before) = wanted.before {
        sql.push(" and d.id < ").push_bind(before);
    }
    sql.push(" order by d.id desc limit ").push_bind(wanted.limit);
    Ok(sql.build_query_as().fetch_all(conn).await?)
}

/// Counts the documents of all pages of such a list, up to [`MOST_COUNTED`].
pub async fn count(conn: &mut PgConnection, wanted: Wanted<'_>) -> Result<i64> {
    let mut sql = QueryBuilder::new("select count(*) from (select from public.source_documents d");
    wanted.narrow(&mut sql);
    sql.push(" limit ").push_bind(MOST_COUNTED).push(") some_documents");
    Ok(sql.build_query_scalar().fetch_one(conn).await?)
}

/// Lists the caller's documents that were created or changed last.
pub async fn newest(conn: &mut PgConnection, limit: i64) -> Result<Vec<Listed>> {
    Ok(sqlx::query_as(include_str!("../sql/documents_newest.sql")).bind(limit).fetch_all(conn).await?)
}

/// Lists the documents of one of the caller's sources that were created or changed last.
pub async fn of_source(conn: &mut PgConnection, source_id: SourceId, limit: i64) -> Result<Vec<Listed>> {
    Ok(sqlx::query_as(include_str!("../sql/documents_of_source.sql"))
        .bind(source_id.0)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// Lists every type that the caller's documents have.
pub async fn types(conn: &mut PgConnection) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(include_str!("../sql/document_types.sql")).fetch_all(conn).await?)
}

/// The number of the caller's documents, and the number of those that wait for vectors. A number of [`MOST_COUNTED`] means "at least".
#[derive(Clone, Copy, Debug, Default, Serialize, sqlx::FromRow)]
pub struct Totals {
    pub documents: i64,
    pub pending: i64,
}

impl Totals {
    /// Whether the number of documents is the one of the last count, which may be some minutes old: there are too many to count them for a page.
    pub fn is_of_last_count(&self) -> bool {
        self.documents > MOST_COUNTED
    }
}

pub async fn totals(conn: &mut PgConnection) -> Result<Totals> {
    Ok(sqlx::query_as(include_str!("../sql/documents_totals.sql")).bind(MOST_COUNTED).fetch_one(conn).await?)
}
