//! Documents that a person deleted. A mark on the tombstone keeps them deleted when their source sends them again.

use chrono::{DateTime, Utc};
use domain::{DocumentId, DocumentType, SourceId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Marks a tombstone: a person deleted the document. `false`: it was marked before, or it is not deleted.
pub async fn mark(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: DocumentId,
    by: &str,
) -> Result<bool> {
    let marked = sqlx::query(
        "update public.source_documents set removed_at = coalesce($4, now()), removed_by = $3
         where tenant_id = $1 and id = $2 and deleted_at is not null and removed_at is null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(by)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(marked.rows_affected() == 1)
}

/// Ends that a document is kept out, and returns its source and its name there. None: nobody had deleted it.
pub async fn unmark(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: DocumentId,
) -> Result<Option<(SourceId, String)>> {
    let unmarked: Option<(Uuid, String)> = sqlx::query_as(
        "update public.source_documents set removed_at = null, removed_by = null
         where tenant_id = $1 and id = $2 and removed_at is not null returning source_id, external_id",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(conn)
    .await?;
    Ok(unmarked.map(|(source_id, external_id)| (SourceId(source_id), external_id)))
}

/// Ends that the files of a letter are kept out, which were deleted with it.
pub async fn unmark_files(conn: &mut PgConnection, tenant_id: TenantId, letter: DocumentId) -> Result<()> {
    sqlx::query(
        "update public.source_documents f set removed_at = null, removed_by = null from public.source_documents m
         where m.tenant_id = $1 and m.id = $2 and f.tenant_id = $1 and f.source_id = m.source_id and f.thread_id = m.thread_id
             and f.removed_at is not null and starts_with(f.external_id, 'attachment:' || substr(m.external_id, length('message:') + 1) || '/')",
    )
    .bind(tenant_id.0)
    .bind(letter.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends that the files of an activity are kept out, which were deleted with its document.
pub async fn unmark_attached(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    names: &[String],
) -> Result<()> {
    sqlx::query(
        "update public.source_documents d set removed_at = null, removed_by = null
         where d.source_id = $2 and d.external_id = any($3) and (d.tenant_id = $1) is true and d.removed_at is not null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(names)
    .execute(conn)
    .await?;
    Ok(())
}

/// Of these names, those whose documents a person deleted.
pub async fn kept_out(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    names: &[String],
) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select external_id from public.source_documents
         where source_id = $2 and external_id = any($3) and (tenant_id = $1) is true and removed_at is not null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(names)
    .fetch_all(conn)
    .await?)
}

/// Gives tombstones of activities and of their files the contacts that the activities have now.
pub async fn set_contacts(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    documents: &[(Uuid, Option<i64>)],
) -> Result<()> {
    let (ids, contacts): (Vec<Uuid>, Vec<Option<i64>>) = documents.iter().copied().unzip();
    sqlx::query(
        "update public.source_documents d set contact_id = r.contact_id from unnest($2::uuid[], $3::int8[]) r (id, contact_id)
         where d.tenant_id = $1 and d.id = r.id and d.removed_at is not null and d.contact_id is distinct from r.contact_id",
    )
    .bind(tenant_id.0)
    .bind(ids)
    .bind(contacts)
    .execute(conn)
    .await?;
    Ok(())
}

/// A document that a person deleted: all that is left of it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Removed {
    pub id: Uuid,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub removed_at: DateTime<Utc>,
    pub removed_by: String,
    /// When it was made at its source, such as when a letter came in.
    pub made_at: Option<DateTime<Utc>>,
}

/// Lists the caller's documents that a person deleted, the latest first.
pub async fn list(conn: &mut PgConnection, limit: i64) -> Result<Vec<Removed>> {
    Ok(sqlx::query_as(
        "select d.id, d.source_id, s.name as source_name, d.external_id, d.document_type, d.removed_at, d.removed_by, d.source_created_at as made_at
         from public.source_documents d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id
         where d.removed_at is not null order by d.removed_at desc, d.id desc limit $1",
    )
    .bind(limit)
    .fetch_all(conn)
    .await?)
}
