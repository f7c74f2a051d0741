//! Conversations of mailboxes, as lists of documents show them. Nothing is stored of a conversation but its messages.

use domain::SourceId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::memory::Listed;

/// Lists the caller's Gmail conversations, each as its newest message: the last stored first, before the message `before`.
pub async fn list(
    conn: &mut PgConnection,
    source_id: Option<SourceId>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Listed>> {
    Ok(sqlx::query_as(include_str!("../sql/threads_list.sql"))
        .bind(source_id.map(|id| id.0))
        .bind(before)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}
