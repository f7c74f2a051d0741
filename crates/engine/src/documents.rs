//! Documents as people look at them: a page of them, and one with its chunks.

use std::collections::HashSet;

use domain::{Caller, DocumentId};
use store::memory::documents::Wanted;
use store::memory::{Document, Listed, VectorTable, chunks, documents};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// A page of the tenant's documents, the newest first, and the one before which the next page begins.
pub async fn list(env: &Env, caller: &Caller, wanted: Wanted<'_>) -> Result<(Vec<Listed>, Option<Uuid>), ActError> {
    let listed = env.db.read(caller, async |tx| documents::list(tx, wanted).await).await?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= wanted.limit);
    let next_before = listed.last().filter(|_| is_full).map(|last| last.id);
    Ok((listed, next_before))
}

/// A document with its first chunks.
#[derive(Clone, Debug)]
pub struct WholeDocument {
    pub document: Document,
    pub chunks: Vec<Chunk>,
    /// The number of its chunks that have their vectors.
    pub n_embedded: usize,
}

#[derive(Clone, Debug)]
pub struct Chunk {
    pub id: Uuid,
    pub ordinal: i32,
    pub text: String,
    /// It can be found by its meaning.
    pub has_vector: bool,
}

/// One of the caller's documents, with at most so many of its chunks.
pub async fn whole(env: &Env, caller: &Caller, id: DocumentId, most_chunks: i64) -> Result<WholeDocument, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(document) = documents::get(tx, id.0).await? else { return Ok(None) };
        Ok(Some((document, chunks::list(tx, id.0, most_chunks).await?)))
    });
    let (document, listed) = loaded.await?.or_missing("document")?;
    let with_vector = if document.is_pending() { with_vectors(env, caller, id).await? } else { HashSet::new() };
    let is_whole = document.embedding_model.is_some();
    let chunks = listed.into_iter().map(|chunk| Chunk {
        has_vector: is_whole || with_vector.contains(&chunk.id),
        id: chunk.id,
        ordinal: chunk.ordinal,
        text: chunk.text,
    });
    let n_chunks = usize::try_from(document.n_chunks).unwrap_or(0);
    let n_embedded = if is_whole { n_chunks } else { with_vector.len() };
    Ok(WholeDocument { chunks: chunks.collect(), n_embedded, document })
}

/// The chunks of a document that have their vectors, while others wait for theirs. Vectors are the service's own tables; the caller's own
/// transaction has shown that the document is its tenant's.
async fn with_vectors(env: &Env, caller: &Caller, id: DocumentId) -> store::Result<HashSet<Uuid>> {
    let kept = env.db.session(async |conn| {
        let memory = store::memory::tenant(conn, caller.tenant_id).await?;
        let table = VectorTable::new(&env.embedders.for_tenant(memory.model.as_deref()).model().name)?;
        if !memory.has_table(&table) {
            return Ok(Vec::new());
        }
        chunks::of_documents(conn, caller.tenant_id, &table, &[id.0]).await
    });
    Ok(kept.await?.into_iter().filter(|chunk| chunk.has_vector).map(|chunk| chunk.id).collect())
}
