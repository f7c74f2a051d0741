//! Files that are read: what was read of their bytes, page by page, and the documents that have these bytes.

pub mod all_fields;
pub mod fields;
pub mod previews;
pub mod progress;
pub mod steps;

use chrono::{DateTime, Utc};
use domain::reading::{FileKind, LinePlace, Page, ReadBy, Unreadable};
use domain::{BlobKey, DocumentId, DocumentStatus, DocumentType, Record, SourceId, TenantId, words};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::Result;

words! {
    /// How far a file is read.
    FileState {
        Reading = "reading",
        /// Letters in its pictures, or its speech, are still to be recognised.
        Recognising = "recognising",
        Read = "read",
        Refused = "refused",
    }
}

/// A file as it was read, or is being read.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct File {
    /// The reading that these pages are of. A file that is asked for again gets another one.
    pub reading_id: Uuid,
    pub reader_version: i32,
    #[sqlx(try_from = "String")]
    pub state: FileState,
    pub kind: Option<String>,
    pub title: Option<String>,
    pub n_pages: Option<i32>,
    pub is_cut: bool,
    pub refusal: Option<String>,
    pub detail: Option<String>,
    pub language: Option<String>,
    /// The length of a recording.
    pub seconds: Option<i32>,
}

impl File {
    pub fn kind(&self) -> Option<FileKind> {
        self.kind.as_deref()?.parse().ok()
    }

    pub fn refusal(&self) -> Option<Unreadable> {
        self.refusal.as_deref()?.parse().ok()
    }
}

/// A document whose file is to be read.
#[derive(Clone, Debug)]
pub struct Awaited {
    pub id: DocumentId,
    pub key: BlobKey,
    /// The size of its bytes; none: the blob store knows nothing of them.
    pub bytes: Option<u64>,
    pub status: DocumentStatus,
    pub updated_at: DateTime<Utc>,
    /// As it is stored, without text.
    pub record: Record,
}

#[derive(sqlx::FromRow)]
struct AwaitedRow {
    source_id: Uuid,
    external_id: String,
    #[sqlx(try_from = "String")]
    document_type: DocumentType,
    title: Option<String>,
    raw_payload: Option<Value>,
    blob_key: String,
    source_version: Option<i64>,
    thread_id: Option<String>,
    contact_id: Option<i64>,
    source_metadata: Value,
    source_created_at: Option<DateTime<Utc>>,
    source_updated_at: Option<DateTime<Utc>>,
    #[sqlx(try_from = "String")]
    status: DocumentStatus,
    updated_at: DateTime<Utc>,
    bytes: Option<i64>,
}

/// Reads a document that has a file; none when it is gone, deleted, or has no file.
pub async fn awaited(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId) -> Result<Option<Awaited>> {
    let row: Option<AwaitedRow> = sqlx::query_as(include_str!("../sql/file_awaited.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .fetch_optional(conn)
        .await?;
    Ok(row.and_then(|row| {
        let record = Record {
            title: row.title,
            raw_payload: row.raw_payload,
            blob_key: Some(row.blob_key.clone()),
            source_version: row.source_version,
            thread_id: row.thread_id,
            contact_id: row.contact_id,
            source_metadata: row.source_metadata,
            source_created_at: row.source_created_at,
            source_updated_at: row.source_updated_at,
            status: row.status,
            ..Record::new(SourceId(row.source_id), row.external_id, row.document_type, "")
        };
        Some(Awaited {
            id,
            key: row.blob_key.parse().ok()?,
            bytes: row.bytes.and_then(|bytes| u64::try_from(bytes).ok()),
            status: row.status,
            updated_at: row.updated_at,
            record,
        })
    }))
}

/// Sets how far a document's file is read. Returns when that was; none: the document changed since `seen`, is deleted, or gone.
pub async fn set_status(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: DocumentId,
    seen: DateTime<Utc>,
    status: DocumentStatus,
) -> Result<Option<DateTime<Utc>>> {
    Ok(sqlx::query_scalar(
        "update public.source_documents set status = $4, skip_reason = null,
             updated_at = case when status = $4 then updated_at else greatest(now(), updated_at + interval '1 microsecond') end
         where tenant_id = $1 and id = $2 and updated_at = $3 and deleted_at is null returning updated_at",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(seen)
    .bind(status.as_str())
    .fetch_optional(conn)
    .await?)
}

/// Locks a document that is as it was `seen`. `false`: it is not.
pub async fn hold(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId, seen: DateTime<Utc>) -> Result<bool> {
    let held: Option<Uuid> = sqlx::query_scalar(
        "select id from public.source_documents where tenant_id = $1 and id = $2 and updated_at = $3 and deleted_at is null for update",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(seen)
    .fetch_optional(conn)
    .await?;
    Ok(held.is_some())
}

/// Whether a document still wants the text of these bytes. It can be deleted only after the transaction then, so that what was read goes with it.
pub async fn is_wanted(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId, key: &BlobKey) -> Result<bool> {
    let wanted: Option<Uuid> = sqlx::query_scalar(
        "select id from public.source_documents where tenant_id = $1 and id = $2 and blob_key = $3 and deleted_at is null for share",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(key.to_string())
    .fetch_optional(conn)
    .await?;
    Ok(wanted.is_some())
}

/// Opens the file of these bytes, and returns what is known of it. What was read of it stays.
pub async fn open(conn: &mut PgConnection, tenant_id: TenantId, key: &BlobKey, version: i32) -> Result<File> {
    Ok(sqlx::query_as(
        "insert into public.files as f (tenant_id, sha256, reader_version, reading_id) values ($1, $2, $3, $4)
         on conflict (tenant_id, sha256) do update set updated_at = f.updated_at
         returning reading_id, reader_version, state, kind, title, n_pages, is_cut, refusal, detail, language, seconds",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(version)
    .bind(Uuid::now_v7())
    .fetch_one(conn)
    .await?)
}

/// Locks a file whose reading is still this one, and returns what is known of it. None: somebody has asked for it again, or it is gone.
pub async fn hold_reading(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key: &BlobKey,
    reading_id: Uuid,
) -> Result<Option<File>> {
    Ok(sqlx::query_as(
        "select reading_id, reader_version, state, kind, title, n_pages, is_cut, refusal, detail, language, seconds from public.files
         where tenant_id = $1 and sha256 = $2 and reading_id = $3 for update",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(reading_id)
    .fetch_optional(conn)
    .await?)
}

/// Reads what is known of a file of the caller's.
pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, key: &str) -> Result<Option<File>> {
    Ok(sqlx::query_as(
        "select reading_id, reader_version, state, kind, title, n_pages, is_cut, refusal, detail, language, seconds from public.files
         where tenant_id = $1 and sha256 = $2",
    )
    .bind(tenant_id.0)
    .bind(key)
    .fetch_optional(conn)
    .await?)
}

/// Keeps what a file's head says.
pub async fn head(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key: &BlobKey,
    kind: FileKind,
    title: Option<&str>,
    n_pages: Option<u32>,
    seconds: Option<u32>,
) -> Result<()> {
    sqlx::query(
        "update public.files set kind = $3, title = left($4, 300), n_pages = $5, seconds = $6, updated_at = now() where tenant_id = $1 and sha256 = $2",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(kind.as_str())
    .bind(title)
    .bind(n_pages.map(|n| i32::try_from(n).unwrap_or(i32::MAX)))
    .bind(seconds.map(|n| i32::try_from(n).unwrap_or(i32::MAX)))
    .execute(conn)
    .await?;
    Ok(())
}

/// Adds to the time that a recording took to hear.
pub async fn heard_for(conn: &mut PgConnection, tenant_id: TenantId, key: &BlobKey, ms: i64) -> Result<()> {
    sqlx::query("update public.files set heard_ms = coalesce(heard_ms, 0) + $3 where tenant_id = $1 and sha256 = $2")
        .bind(tenant_id.0)
        .bind(key.to_string())
        .bind(ms)
        .execute(conn)
        .await?;
    Ok(())
}

/// How fast recordings are heard here, whoever they belong to.
#[derive(Clone, Copy, Debug, PartialEq, sqlx::FromRow)]
pub struct Speed {
    /// The last recordings, by which it is told.
    pub n: i64,
    /// Their length, as a multiple of the time that they took.
    pub times: Option<f64>,
}

/// Tells it by the last 20 recordings.
pub async fn speed(conn: &mut PgConnection) -> Result<Speed> {
    Ok(sqlx::query_as(
        "select count(*) as n, sum(seconds)::float8 * 1000 / sum(heard_ms)::float8 as times
         from (select seconds, heard_ms from public.files where state = 'read' and heard_ms > 0 and seconds > 0
               order by updated_at desc limit 20) f",
    )
    .fetch_one(conn)
    .await?)
}

/// Keeps pages. One that is there already is replaced: its picture was read meanwhile.
pub async fn keep(conn: &mut PgConnection, tenant_id: TenantId, key: &BlobKey, pages: &[Page]) -> Result<()> {
    let number = |page: &Page| i32::try_from(page.number).unwrap_or(i32::MAX);
    sqlx::query(include_str!("../sql/file_pages_keep.sql"))
        .bind(tenant_id.0)
        .bind(key.to_string())
        .bind(pages.iter().map(number).collect::<Vec<_>>())
        .bind(pages.iter().map(|page| page.label.as_deref()).collect::<Vec<_>>())
        .bind(pages.iter().map(|page| page.text.as_str()).collect::<Vec<_>>())
        .bind(pages.iter().map(|page| page.read_by.as_str()).collect::<Vec<_>>())
        .bind(pages.iter().map(|page| page.confidence).collect::<Vec<_>>())
        .bind(pages.iter().map(|page| page.trouble.map(Unreadable::as_str)).collect::<Vec<_>>())
        .bind(pages.iter().map(|page| page.aspect.filter(|aspect| aspect.is_finite())).collect::<Vec<_>>())
        .bind(
            pages.iter().map(|page| (!page.lines.is_empty()).then(|| LinePlace::pack(&page.lines))).collect::<Vec<_>>(),
        )
        .execute(conn)
        .await?;
    Ok(())
}

/// The end of reading a file, or of a part of it.
#[derive(Clone, Debug)]
pub struct Ended {
    pub state: FileState,
    pub is_cut: bool,
    pub refusal: Option<Unreadable>,
    pub detail: Option<String>,
    pub language: Option<String>,
    /// The length of a recording that was heard.
    pub seconds: Option<u32>,
}

/// Forgets the pages of a file, before they are read in another way.
pub async fn forget_pages(conn: &mut PgConnection, tenant_id: TenantId, key: &BlobKey) -> Result<()> {
    sqlx::query("delete from public.file_pages where tenant_id = $1 and sha256 = $2")
        .bind(tenant_id.0)
        .bind(key.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

/// Keeps how reading a file ended.
pub async fn end(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key: &BlobKey,
    version: i32,
    ended: &Ended,
) -> Result<()> {
    sqlx::query(
        "update public.files set state = $3, reader_version = $4, is_cut = $5, refusal = $6, detail = left($7, 300), language = left($8, 40),
             seconds = coalesce($9, seconds), updated_at = now() where tenant_id = $1 and sha256 = $2",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(ended.state.as_str())
    .bind(version)
    .bind(ended.is_cut)
    .bind(ended.refusal.map(Unreadable::as_str))
    .bind(ended.detail.as_deref())
    .bind(ended.language.as_deref())
    .bind(ended.seconds.map(|n| i32::try_from(n).unwrap_or(i32::MAX)))
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets what was read of a file, so that it is read again.
pub async fn forget(conn: &mut PgConnection, tenant_id: TenantId, key: &str) -> Result<()> {
    sqlx::query("delete from public.files where tenant_id = $1 and sha256 = $2")
        .bind(tenant_id.0)
        .bind(key)
        .execute(conn)
        .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct PageRow {
    number: i32,
    label: Option<String>,
    text: String,
    #[sqlx(try_from = "String")]
    read_by: ReadBy,
    confidence: Option<f32>,
    trouble: Option<String>,
    aspect: Option<f32>,
    line_places: Option<Vec<u8>>,
}

/// Reads the pages of a file after page `after`, at most `limit`.
pub async fn pages(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key: &str,
    after: i32,
    limit: i64,
) -> Result<Vec<Page>> {
    let rows: Vec<PageRow> = sqlx::query_as(
        "select number, label, text, read_by, confidence, trouble, aspect, line_places from public.file_pages
         where tenant_id = $1 and sha256 = $2 and number > $3 order by number limit $4",
    )
    .bind(tenant_id.0)
    .bind(key)
    .bind(after)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    let page = |row: PageRow| Page {
        number: u32::try_from(row.number).unwrap_or_default(),
        label: row.label,
        text: row.text,
        read_by: row.read_by,
        confidence: row.confidence,
        trouble: row.trouble.and_then(|why| why.parse().ok()),
        aspect: row.aspect,
        lines: row.line_places.map(|packed| LinePlace::unpack(&packed)).unwrap_or_default(),
    };
    Ok(rows.into_iter().map(page).collect())
}

/// Lists the numbers of the pages that need no reading any more: those without a trouble.
pub async fn settled(conn: &mut PgConnection, tenant_id: TenantId, key: &BlobKey) -> Result<Vec<i32>> {
    Ok(sqlx::query_scalar(
        "select number from public.file_pages where tenant_id = $1 and sha256 = $2 and trouble is null order by number",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .fetch_all(conn)
    .await?)
}

/// The number of the pages of a file that are kept.
pub async fn count_pages(conn: &mut PgConnection, tenant_id: TenantId, key: &str) -> Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from public.file_pages where tenant_id = $1 and sha256 = $2")
        .bind(tenant_id.0)
        .bind(key)
        .fetch_one(conn)
        .await?)
}

/// Lists documents of all tenants whose file is being read, of which nothing was heard for `secs`, and which no message speaks of.
pub async fn lost(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    secs: f64,
    limit: i64,
) -> Result<Vec<(Uuid, Uuid)>> {
    Ok(sqlx::query_as(include_str!("../sql/files_lost.sql")).bind(at).bind(secs).bind(limit).fetch_all(conn).await?)
}

/// Counts the caller's files by how far they are read.
pub async fn by_status(conn: &mut PgConnection) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "select status, count(*) from public.source_documents where blob_key is not null and deleted_at is null group by status order by status",
    )
    .fetch_all(conn)
    .await?)
}

/// Makes documents wait for a step of their file again. Returns those that do; one that is deleted does not.
pub async fn await_again(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    ids: &[Uuid],
    status: DocumentStatus,
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "update public.source_documents set status = $3, skip_reason = null, updated_at = greatest(now(), updated_at + interval '1 microsecond')
         where tenant_id = $1 and id = any($2) and blob_key is not null and deleted_at is null returning id",
    )
    .bind(tenant_id.0)
    .bind(ids)
    .bind(status.as_str())
    .fetch_all(conn)
    .await?)
}

/// Gives documents the names that their files have now. Returns those whose text is made again with it; their files are not read again.
pub async fn rename(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    named: &[(String, String)],
) -> Result<Vec<Uuid>> {
    let (names, titles): (Vec<&str>, Vec<&str>) =
        named.iter().map(|(name, title)| (name.as_str(), title.as_str())).unzip();
    let renamed: Vec<(Uuid, String)> = sqlx::query_as(
        "update public.source_documents d set title = r.title, status = case when d.status = 'completed' then 'extracting' else d.status end,
             updated_at = greatest(now(), d.updated_at + interval '1 microsecond')
         from unnest($3::text[], $4::text[]) r (external_id, title)
         where d.source_id = $2 and d.external_id = r.external_id and (d.tenant_id = $1) is true and d.deleted_at is null
             and d.blob_key is not null and d.title is distinct from r.title
         returning d.id, d.status",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(names)
    .bind(titles)
    .fetch_all(conn)
    .await?;
    let is_told_again = |status: &str| status == DocumentStatus::Extracting.as_str();
    Ok(renamed.into_iter().filter(|(_, status)| is_told_again(status)).map(|(id, _)| id).collect())
}

/// The caller's documents whose file was read or refused, of a source or of all, as a condition on rows `d` and `f`.
const READ: &str = "from public.source_documents d
    join public.files f on f.tenant_id = d.tenant_id and f.sha256 = d.blob_key
    where d.blob_key is not null and d.deleted_at is null and d.status in ('completed', 'skipped', 'failed')
        and ($1::uuid is null or d.source_id = $1)";

/// Counts them, and their pages.
pub async fn count_read(conn: &mut PgConnection, source_id: Option<SourceId>) -> Result<(i64, i64)> {
    let sql = format!("select count(*), coalesce(sum(greatest(f.n_pages, 1)), 0)::int8 {READ}");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(source_id.map(|id| id.0)).fetch_one(conn).await?)
}

/// Documents of which a model would be asked for the fields.
#[derive(Clone, Copy, Debug, Default, sqlx::FromRow)]
pub struct Papers {
    pub n: i64,
    /// The bytes of their texts; of one text at most so many as a model is shown.
    pub bytes: i64,
    /// Those of which this model was asked before, and what that cost.
    pub n_asked: i64,
    pub cost_micros: i64,
}

/// Counts those of them that are papers, and what this model cost for their fields.
pub async fn count_papers(
    conn: &mut PgConnection,
    source_id: Option<SourceId>,
    model: &str,
    most_bytes: i64,
) -> Result<Papers> {
    let sql = format!(
        "select count(*) as n, coalesce(sum(r.bytes), 0)::int8 as bytes, count(r.cost) as n_asked, coalesce(sum(r.cost), 0)::int8 as cost_micros
         from (select least(octet_length(d.text), $3) as bytes,
                   (select s.cost_micros from public.document_steps s where s.tenant_id = d.tenant_id and s.document_id = d.id
                        and s.step = 'extract' and s.done_by = $2 and s.cost_micros > 0) as cost
               {READ} and exists (select from public.document_fields p
                   where p.tenant_id = d.tenant_id and p.document_id = d.id and p.name = 'paper')) r"
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql))
        .bind(source_id.map(|id| id.0))
        .bind(model)
        .bind(most_bytes)
        .fetch_one(conn)
        .await?)
}

/// Lists those that have one of the next `limit` bytes after these, with the names of their bytes. Documents with the same bytes are listed together.
pub async fn read_after(
    conn: &mut PgConnection,
    source_id: Option<SourceId>,
    after: Option<&str>,
    limit: i64,
) -> Result<Vec<(Uuid, String)>> {
    let sql = format!(
        "with next as (select distinct d.blob_key {READ} and ($2::text is null or d.blob_key > $2) order by d.blob_key limit $3)
         select d.id, d.blob_key {READ} and d.blob_key in (select blob_key from next) order by d.blob_key, d.id"
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql))
        .bind(source_id.map(|id| id.0))
        .bind(after)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}
