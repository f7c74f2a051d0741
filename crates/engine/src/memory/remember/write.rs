//! Writes a plan in the caller's transaction, after comparing everything again under lock.

use domain::text::Chunk;
use domain::{ActivityId, ChunkId, DocumentStatus, DocumentType, Fault, Notice, Op, Record};
use store::Tx;
use store::memory::documents::Same;
use store::memory::{Moved, NewChunk, Seen, Stored, chunks, documents, mentions, removed};
use uuid::Uuid;

use super::Change;
use super::plan::{Plan, Step};
use super::vectors::Vectors;
use crate::lanes::embed::Embed;
use crate::lanes::queue_of;
use crate::lanes::read_file::ReadFile;

/// The number of rows that one statement writes: a large file is written in slices, as each statement has its time limit.
const SLICE: usize = 2_000;

/// Whether a plan was written. If it was not, the transaction must be rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    All,
    /// Somebody else wrote one of the documents since the plan was made.
    DocumentsChanged,
    /// The tenant's searches use another model now, or its memory moves to another one, or its texts have another language.
    ModelChanged,
}

/// Writes everything. `also` are vectors of the model that the memory moves to.
pub(super) async fn write(
    tx: &mut Tx,
    plan: &Plan<'_>,
    vectors: &Vectors<'_>,
    also: Option<&Vectors<'_>>,
) -> Result<Written, Fault> {
    if store::memory::hold_pointer(tx, plan.tenant_id).await? != plan.pointer {
        return Ok(Written::ModelChanged);
    }
    if let Some(langs) = &plan.new_langs {
        store::memory::ensure_tenant(tx, plan.tenant_id, plan.table.model(), langs).await?;
        // Somebody else may have written the tenant's first documents meanwhile, with vectors of another model.
        let is_first = plan.pointer.model.is_none();
        if is_first
            && store::memory::hold_pointer(tx, plan.tenant_id).await?.model.as_deref() != Some(plan.table.model())
        {
            return Ok(Written::ModelChanged);
        }
    }
    if !insert_new(tx, plan, vectors).await? || !lock_unchanged(tx, plan).await? {
        return Ok(Written::DocumentsChanged);
    }
    let touched = update(tx, plan, vectors).await?;
    write_chunks(tx, plan, vectors, also).await?;
    replace_mentions(tx, plan, &touched).await?;
    let pending: Vec<Embed> =
        plan.steps.iter().filter(|step| step.is_pending(vectors)).map(|step| Embed { document_id: step.id }).collect();
    if !pending.is_empty() {
        queue_of::<Embed>().send(tx, plan.tenant_id, &pending).await?;
    }
    let unread: Vec<ReadFile> =
        plan.steps.iter().filter(|step| is_unread(step)).map(|step| ReadFile { document_id: step.id }).collect();
    if !unread.is_empty() {
        queue_of::<ReadFile>().send(tx, plan.tenant_id, &unread).await?;
    }
    // After the documents, as in lane `embed`: two transactions never wait for each other in a ring.
    vectors.settle(tx, &plan.spent(vectors)).await?;
    if let Some(also) = also {
        also.settle(tx, &also.spent()).await?;
    }
    let is_written = |step: &&Step| !matches!(step.change, Change::Unchanged | Change::Superseded | Change::KeptOut);
    let written = plan.steps.iter().filter(is_written).map(|step| step.id.0);
    let changed: Vec<Uuid> = written.chain(touched).collect();
    tx.notify_all(Notice::documents(plan.tenant_id, &changed, Op::Update));
    Ok(Written::All)
}

/// Whether a document has a file that nobody has been asked to read.
fn is_unread(step: &Step<'_>) -> bool {
    let record = &step.normal.record;
    let is_new = matches!(step.change, Change::Created | Change::Updated);
    is_new && record.status == DocumentStatus::Pending && record.blob_key.is_some()
}

/// Inserts new documents; `false` when somebody else inserted one of them first.
async fn insert_new(tx: &mut Tx, plan: &Plan<'_>, vectors: &Vectors<'_>) -> Result<bool, Fault> {
    let new: Vec<Stored> =
        plan.steps.iter().filter(|step| step.seen.is_none()).map(|step| stored(plan, step, vectors)).collect();
    Ok(new.is_empty() || documents::insert(tx, plan.tenant_id, &new).await?.len() == new.len())
}

/// Locks the stored documents; `false` when one is no longer as the plan saw it.
async fn lock_unchanged(tx: &mut Tx, plan: &Plan<'_>) -> Result<bool, Fault> {
    let old: Vec<&Seen> = plan.steps.iter().filter_map(|step| step.seen.as_ref()).collect();
    if old.is_empty() {
        return Ok(true);
    }
    let ids: Vec<Uuid> = old.iter().map(|seen| seen.id).collect();
    let now = documents::lock(tx, plan.tenant_id, &ids).await?;
    Ok(old.iter().all(|seen| now.contains(seen)))
}

/// Updates stored documents. Returns those with the same text whose payload, version or times moved.
async fn update(tx: &mut Tx, plan: &Plan<'_>, vectors: &Vectors<'_>) -> Result<Vec<Uuid>, Fault> {
    let is_same = |step: &&Step| step.change == Change::Unchanged;
    let same = plan.steps.iter().filter(is_same);
    let same: Vec<Same> =
        same.map(|step| Same { id: step.id.0, record: &step.normal.record, version: step.version }).collect();
    let touched = if same.is_empty() { Vec::new() } else { documents::touch(tx, plan.tenant_id, &same).await? };
    // What became of an activity's contact counts for its tombstone too, and for those of its files: they are forgotten with that contact and no other.
    let is_kept_out = |step: &&Step| step.change == Change::KeptOut && !step.normal.record.is_deleted;
    let is_of_activity = |step: &&Step| {
        let record = &step.normal.record;
        matches!(record.document_type, DocumentType::Activity(_)) || ActivityId::of_file(&record.external_id).is_some()
    };
    let kept_out = plan.steps.iter().filter(is_kept_out).filter(is_of_activity);
    let kept_out: Vec<(Uuid, Option<i64>)> = kept_out.map(|step| (step.id.0, step.normal.record.contact_id)).collect();
    if !kept_out.is_empty() {
        removed::set_contacts(tx, plan.tenant_id, &kept_out).await?;
    }
    let changed: Vec<Stored> =
        plan.steps.iter().filter(|step| step.is_rewritten()).map(|step| stored(plan, step, vectors)).collect();
    if !changed.is_empty() {
        documents::update(tx, plan.tenant_id, &changed).await?;
    }
    Ok(touched)
}

async fn write_chunks(
    tx: &mut Tx,
    plan: &Plan<'_>,
    vectors: &Vectors<'_>,
    also: Option<&Vectors<'_>>,
) -> Result<(), Fault> {
    let (mut new, mut moved, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let mut made: Vec<(Uuid, Uuid, &[f32])> = Vec::new();
    let mut made_also = Vec::new();
    for step in &plan.steps {
        gone.extend(&step.gone);
        let (document_id, title, lang) = (step.id, step.normal.title.as_deref(), step.lang);
        for (ordinal, ((chunk, kept), place)) in step.chunks.iter().zip(&step.kept).zip(&step.places).enumerate() {
            let place = place.map(|page| (page.number, page.label.as_deref()));
            let id = match kept {
                Some(kept) => {
                    moved.push(Moved { id: kept.id, ordinal, title, lang, place });
                    kept.id
                }
                None => {
                    let (id, Chunk { text, hash, occurrence }) = (ChunkId::new(), chunk);
                    let occurrence = *occurrence;
                    new.push(NewChunk { id, document_id, ordinal, title, lang, text, hash, occurrence, place });
                    let vector = also.and_then(|also| also.get(chunk));
                    made_also.extend(vector.map(|vector| (id.0, document_id.0, vector)));
                    id.0
                }
            };
            let has_vector = kept.as_ref().is_some_and(|kept| kept.has_vector);
            made.extend(vectors.get(chunk).filter(|_| !has_vector).map(|vector| (id, document_id.0, vector)));
        }
    }
    if !gone.is_empty() {
        chunks::remove(tx, plan.tenant_id, &gone).await?;
    }
    if !moved.is_empty() {
        chunks::move_kept(tx, plan.tenant_id, &moved).await?;
    }
    for slice in new.chunks(SLICE) {
        chunks::insert(tx, plan.tenant_id, slice).await?;
    }
    // In the order of their ids, as a move inserts them: two transactions never wait for each other in a ring.
    made.sort_unstable_by_key(|(id, ..)| *id);
    chunks::insert_vectors(tx, plan.tenant_id, plan.table, &made).await?;
    if let Some(table) = plan.also {
        chunks::insert_vectors(tx, plan.tenant_id, table, &made_also).await?;
    }
    Ok(())
}

/// Replaces what the written documents mention, and marks the clients concerned.
async fn replace_mentions(tx: &mut Tx, plan: &Plan<'_>, touched: &[Uuid]) -> Result<(), Fault> {
    let is_written = |step: &&Step| match step.change {
        Change::Unchanged => touched.contains(&step.id.0),
        Change::Superseded | Change::KeptOut => false,
        Change::Created | Change::Updated | Change::Deleted => true,
    };
    let records = plan.steps.iter().filter(is_written).map(|step| &step.normal.record);
    let mentioning: Vec<&Record> = records.filter(|record| record.mentions.is_some()).collect();
    if !mentioning.is_empty() {
        mentions::replace(tx, plan.tenant_id, &mentioning).await?;
    }
    Ok(())
}

fn stored<'s>(plan: &'s Plan<'_>, step: &'s Step<'_>, vectors: &Vectors<'_>) -> Stored<'s> {
    let has_vectors = !step.is_pending(vectors) && !step.chunks.is_empty();
    Stored {
        id: step.id,
        record: &step.normal.record,
        version: step.version,
        title: step.normal.title.as_deref(),
        text: &step.normal.text,
        lang: step.lang,
        content_sha256: &step.normal.sha256,
        n_chunks: step.chunks.len(),
        embedding_model: has_vectors.then(|| plan.table.model()),
    }
}
