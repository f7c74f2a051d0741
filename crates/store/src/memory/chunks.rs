//! Chunks and their vectors. A chunk is identified by (document, hash, occurrence): one that only moved keeps its row and its vector.

use domain::{ChunkId, DocumentId, TenantId};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{HalfVec, VectorTable};
use crate::Result;

/// A stored chunk.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Kept {
    pub id: Uuid,
    pub document_id: Uuid,
    pub hash: Vec<u8>,
    pub occurrence: i32,
    pub has_vector: bool,
}

/// A chunk to be written.
#[derive(Clone, Debug)]
pub struct NewChunk<'a> {
    pub id: ChunkId,
    pub document_id: DocumentId,
    pub ordinal: usize,
    pub title: Option<&'a str>,
    pub lang: &'a str,
    pub text: &'a str,
    pub hash: &'a [u8; 32],
    pub occurrence: i32,
    /// The page on which it stands, and the page's own name.
    pub place: Option<(i32, Option<&'a str>)>,
}

/// Reads the chunks of documents, and which of them have a vector in this table.
pub async fn of_documents(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    documents: &[Uuid],
) -> Result<Vec<Kept>> {
    let sql = table.on(include_str!("../sql/chunks_of_documents.sql"));
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(documents).fetch_all(conn).await?)
}

/// Inserts new chunks.
pub async fn insert(conn: &mut PgConnection, tenant_id: TenantId, chunks: &[NewChunk<'_>]) -> Result<()> {
    let ordinal = |chunk: &NewChunk<'_>| i32::try_from(chunk.ordinal).unwrap_or(i32::MAX);
    sqlx::query(include_str!("../sql/chunks_insert.sql"))
        .bind(tenant_id.0)
        .bind(chunks.iter().map(|chunk| chunk.id.0).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.document_id.0).collect::<Vec<_>>())
        .bind(chunks.iter().map(ordinal).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.title).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.lang).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.text).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.hash.as_slice()).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.occurrence).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.place.map(|(page, _)| page)).collect::<Vec<_>>())
        .bind(chunks.iter().map(|chunk| chunk.place.and_then(|(_, label)| label)).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes chunks, and with them their vectors.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, chunks: &[Uuid]) -> Result<()> {
    sqlx::query("delete from public.document_chunks where tenant_id = $1 and id = any($2)")
        .bind(tenant_id.0)
        .bind(chunks)
        .execute(conn)
        .await?;
    Ok(())
}

/// A kept chunk with its present position, title, language and page.
#[derive(Clone, Debug)]
pub struct Moved<'a> {
    pub id: Uuid,
    pub ordinal: usize,
    pub title: Option<&'a str>,
    pub lang: &'a str,
    pub place: Option<(i32, Option<&'a str>)>,
}

/// Writes the present position, title, language and page of kept chunks; touches only rows that differ.
pub async fn move_kept(conn: &mut PgConnection, tenant_id: TenantId, kept: &[Moved<'_>]) -> Result<()> {
    sqlx::query(include_str!("../sql/chunks_move.sql"))
        .bind(tenant_id.0)
        .bind(kept.iter().map(|chunk| chunk.id).collect::<Vec<_>>())
        .bind(kept.iter().map(|chunk| i32::try_from(chunk.ordinal).unwrap_or(i32::MAX)).collect::<Vec<_>>())
        .bind(kept.iter().map(|chunk| chunk.title).collect::<Vec<_>>())
        .bind(kept.iter().map(|chunk| chunk.lang).collect::<Vec<_>>())
        .bind(kept.iter().map(|chunk| chunk.place.map(|(page, _)| page)).collect::<Vec<_>>())
        .bind(kept.iter().map(|chunk| chunk.place.and_then(|(_, label)| label)).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

/// The most numbers that one statement adds to a table of vectors. Behind an index a vector of 1,536 numbers takes 15 ms on an idle machine
/// and five times that on a busy one, and a statement ends after 30 s.
const NUMBERS: usize = 100_000;

/// The number of vectors of so many dimensions that one statement adds.
pub(super) fn per_statement(dim: usize) -> usize {
    (NUMBERS / dim.max(1)).max(1)
}

/// Inserts vectors, given as (chunk, document, vector). One that is there already stays. A statement writes some of them, so that it
/// stays far from its limit.
pub async fn insert_vectors(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    vectors: &[(Uuid, Uuid, &[f32])],
) -> Result<()> {
    let Some((.., first)) = vectors.first() else { return Ok(()) };
    for some in vectors.chunks(per_statement(first.len())) {
        sqlx::query(table.on(include_str!("../sql/vectors_insert.sql")))
            .bind(tenant_id.0)
            .bind(some.iter().map(|(chunk, ..)| *chunk).collect::<Vec<_>>())
            .bind(some.iter().map(|(_, document, _)| *document).collect::<Vec<_>>())
            .bind(some.iter().map(|(.., vector)| HalfVec::new(vector)).collect::<Vec<_>>())
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}

/// Reads the first `limit` chunks of a document that have no vector in this table, as (id, text).
pub async fn without_vectors(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    table: &VectorTable,
    document_id: DocumentId,
    limit: usize,
) -> Result<Vec<(Uuid, String)>> {
    let sql = table.on("select c.id, c.text from public.document_chunks c
         where c.tenant_id = $1 and c.document_id = $2
             and not exists (select from {v} v where v.tenant_id = c.tenant_id and v.chunk_id = c.id)
         order by c.ordinal limit $3");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(document_id.0).bind(limit).fetch_all(conn).await?)
}

/// A chunk as the document's page shows it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Chunk {
    pub id: Uuid,
    pub ordinal: i32,
    pub text: String,
    pub n_lexemes: i32,
}

/// Lists the first chunks of one of the caller's documents, in order.
pub async fn list(conn: &mut PgConnection, document_id: Uuid, limit: i64) -> Result<Vec<Chunk>> {
    Ok(sqlx::query_as(
        "select id, ordinal, text, length(memory.words(title, lang, text)) as n_lexemes from public.document_chunks
         where document_id = $1 order by ordinal limit $2",
    )
    .bind(document_id)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}
