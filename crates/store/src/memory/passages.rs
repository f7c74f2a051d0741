//! Passages of documents: chunks with their neighbours, for answers.

use chrono::{DateTime, Utc};
use domain::DocumentType;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A chunk of a document that was found.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Passage {
    pub document_id: Uuid,
    pub chunk_id: Uuid,
    /// Whether it is the chunk that was found, not a neighbour of it.
    pub is_best: bool,
    pub title: Option<String>,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    pub at: DateTime<Utc>,
    pub text: String,
}

/// Reads chunks of the caller's documents, given as (document, chunk, neighbours on either side), in that order.
pub async fn passages(conn: &mut PgConnection, best: &[(Uuid, Uuid, i32)]) -> Result<Vec<Passage>> {
    if best.is_empty() {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_as(include_str!("../sql/passages.sql"))
        .bind(best.iter().map(|(document, ..)| *document).collect::<Vec<_>>())
        .bind(best.iter().map(|(_, chunk, _)| *chunk).collect::<Vec<_>>())
        .bind(best.iter().map(|(.., around)| *around).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?)
}
