//! Documents as people look at them and correct them: a page of them, one with its chunks, deleted, and let in again.

use std::collections::HashSet;

use domain::shown::clipped;
use domain::text::has_nul;
use domain::{ActivityId, Caller, DocumentId, DocumentType, Record, SourceId};
use store::memory::documents::Wanted;
use store::memory::removed::{self, Removed};
use store::memory::{Document, Listed, VectorTable, chunks, documents};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::activities::remember_again;
use crate::files::attached;
use crate::mail::{letters, threads};
use crate::memory::{Change, remember};
use crate::pull::jobs;
use crate::{ActError, Env};

/// A page of the tenant's documents, the newest first, and the one before which the next page begins.
pub async fn list(env: &Env, caller: &Caller, wanted: Wanted<'_>) -> Result<(Vec<Listed>, Option<Uuid>), ActError> {
    if wanted.document_type.is_some_and(has_nul) {
        return Err(ActError::invalid("type has a NUL character"));
    }
    let listed = match wanted.document_type {
        Some(threads::TYPE) => threads::list(env, caller, wanted).await?,
        _ => env.db.read(caller, async |tx| documents::list(tx, wanted).await).await?,
    };
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

/// Deletes a document: its text, chunks and vectors go at once, and its tombstone keeps it deleted when its source sends it again. A letter or
/// an activity takes its files with it. Asked twice, it is done once.
///
/// It goes through `remember`, which locks the document, and the mark is in the same commit. So whoever remembers the document at the same time either
/// wrote before and is deleted here, or finds the mark.
pub async fn delete(env: &Env, caller: &Caller, id: DocumentId) -> Result<(), ActError> {
    let tenant_id = caller.tenant_id;
    let document = env.db.read(caller, async |tx| documents::get(tx, id.0).await).await?.or_missing("document")?;
    if document.document_type == DocumentType::Client {
        return Err(ActError::conflict(
            "this text is made from what is known about a client: correct the client instead",
        ));
    }
    if document.removed_at.is_some() {
        return Ok(());
    }
    let is_record = matches!(document.document_type, DocumentType::Record { .. });
    let (source_id, name) = (SourceId(document.source_id), document.external_id);
    let tombstone = |name: String, document_type: DocumentType| Record {
        is_deleted: true,
        // The facts that rest on it are derived again.
        mentions: is_record.then(Vec::new),
        ..Record::new(source_id, name, document_type, "")
    };
    let mut tombstones =
        letters::tombstones_of_files(env, tenant_id, source_id, &name, &document.document_type).await?;
    tombstones.extend(attached::tombstones(env, tenant_id, source_id, &name).await?);
    tombstones.push(tombstone(name, document.document_type));
    let begin = || async { Ok(env.db.begin().await?) };
    let (mut tx, batch) = remember(env, tenant_id, tombstones, begin).await.map_err(ActError::Failed)?;
    // It was forgotten meanwhile: nothing is written in its place.
    let written = batch.records.iter().find(|written| written.id == id).or_missing("document")?;
    let (at, by) = (env.clock.sql(), clipped(&caller.key_name, 60));
    let is_marked = removed::mark(&mut tx, at, tenant_id, id, &by).await?;
    (is_marked || written.change == Change::KeptOut).or_missing("document")?;
    for file in batch.records.iter().filter(|written| written.id != id) {
        removed::mark(&mut tx, at, tenant_id, file.id, &by).await?;
    }
    tx.commit().await?;
    tracing::info!(document.id = %id, tenant.id = %tenant_id, "document {id} was deleted, as key {} asked", caller.key_id);
    Ok(())
}

/// Lets a document in again that a person deleted. That of an activity or of one of its files is made anew at once, with those that went with it, and a letter
/// is asked for with its files; another one comes back when its source sends it.
pub async fn restore(env: &Env, caller: &Caller, id: DocumentId) -> Result<(), ActError> {
    let tenant_id = caller.tenant_id;
    let restored = env.db.write(async |tx| -> Result<(), ActError> {
        let (source_id, external_id) = removed::unmark(tx, tenant_id, id).await?.or_missing("deleted document")?;
        if let Some(activity) = ActivityId::of_file(&external_id)
            && !removed::kept_out(tx, tenant_id, source_id, &[activity.external_id()]).await?.is_empty()
        {
            return Err(ActError::conflict("it came with an activity whose document is deleted: let that in again"));
        }
        if external_id.starts_with(letters::PREFIX) {
            removed::unmark_files(tx, tenant_id, id).await?;
            match jobs::read_again(env, tx, tenant_id, source_id, std::slice::from_ref(&external_id), &caller.key_name)
                .await
            {
                Ok(_) | Err(store::Error::Conflict(_)) => {} // a mailbox that is paused sends it once it is read again
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(activity) = ActivityId::from_external_id(&external_id) {
            let files = store::activities::attached(tx, tenant_id, activity).await?;
            let names: Vec<String> = files.iter().map(|file| activity.file_external_id(file.ordinal)).collect();
            removed::unmark_attached(tx, tenant_id, source_id, &names).await?;
        }
        if let Some(activity) = ActivityId::from_external_id(&external_id).or(ActivityId::of_file(&external_id))
            && store::activities::get(tx, tenant_id, activity).await?.is_some()
        {
            remember_again(tx, tenant_id, &[activity.0]).await?;
        }
        Ok(())
    });
    restored.await
}

/// Lists the documents that people deleted, the latest first, at most `limit`.
pub async fn removed(env: &Env, caller: &Caller, limit: i64) -> Result<Vec<Removed>, ActError> {
    Ok(env.db.read(caller, async |tx| removed::list(tx, limit).await).await?)
}
