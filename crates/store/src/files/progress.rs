//! How far files are read, for lists of documents.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// How far the file of a document is read.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Progress {
    pub id: Uuid,
    pub kind: Option<String>,
    /// As its head says.
    pub n_pages: Option<i32>,
    /// The pages that need no reading any more.
    pub n_read: i64,
    /// Its text is read; letters in its pictures, or its speech, are still to be recognised.
    pub is_recognising: bool,
}

/// Reads how far the files of these of the caller's documents are read. One that nobody has begun to read is missing.
pub async fn of(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Progress>> {
    Ok(sqlx::query_as(include_str!("../sql/files_progress.sql")).bind(ids).fetch_all(conn).await?)
}
