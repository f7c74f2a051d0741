//! The documents of letters as they are stored, and whose their addresses are.

use domain::{ContactId, DocumentType, JobId, SourceId, TenantId};
use sqlx::PgConnection;

use crate::Result;

/// A file of a letter that is a document.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredFile {
    /// The letter's name.
    pub letter: String,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
}

/// Finds the files of letters, named as their documents are, deleted ones aside. They are in the thread of their letter.
pub async fn files_of(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    letters: &[&str],
    file_type: &str,
) -> Result<Vec<StoredFile>> {
    Ok(sqlx::query_as(include_str!("../sql/letters_files.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(letters)
        .bind(file_type)
        .fetch_all(conn)
        .await?)
}

/// Finds the contacts of addresses. An address that nobody has is missing.
pub async fn contacts_of(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    addresses: &[&str],
) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "select w.address, known.contact_id from unnest($2::text[]) w (address)
         cross join lateral (select tributary.match_contact($1, w.address) as contact_id offset 0) known
         where known.contact_id is not null",
    )
    .bind(tenant_id.0)
    .bind(addresses)
    .fetch_all(conn)
    .await?)
}

/// Gives letters without a contact, and their files, the contact that has their address now, or only those of this contact.
pub async fn match_again(conn: &mut PgConnection, tenant_id: TenantId, contact_id: Option<ContactId>) -> Result<u64> {
    let matched = sqlx::query(include_str!("../sql/letters_match_again.sql"))
        .bind(tenant_id.0)
        .bind(contact_id.map(|contact| contact.0))
        .execute(conn)
        .await?;
    Ok(matched.rows_affected())
}

/// Letters that a full pass did not meet, after `after` in the order of their names: documents, and those that were left out.
pub async fn unseen(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    (source_id, job_id): (SourceId, JobId),
    message_type: &str,
    after: &str,
    limit: i64,
) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(include_str!("../sql/letters_unseen.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(job_id.0)
        .bind(message_type)
        .bind(after)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}
