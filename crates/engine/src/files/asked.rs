//! Requests of people: a file read once more, a step done again for a whole source, and what was read of a document's file.

use domain::reading::{Page, Step};
use domain::{Caller, DocumentId, DocumentStatus, Notice, Op, SourceId};
use store::files::fields::{self, FieldRow};
use store::files::steps::{self, StepRow};
use store::files::{self, File};
use store::memory::{Document, documents};
use uuid::Uuid;

use super::model;
use crate::act::OrMissing as _;
use crate::lanes::queue_of;
use crate::lanes::read_file::ReadFile;
use crate::{ActError, Env};

/// The files that one commit asks for again, each with all documents that have its bytes: what was read of them is forgotten for all at once.
const BITE: i64 = 500;

/// The reading of a document's file: how far that is, its steps, and the fields of its paper.
#[derive(Clone, Debug)]
pub struct Told {
    /// None: nobody has begun to read it.
    pub file: Option<File>,
    /// The number of its pages that are kept.
    pub n_pages: i64,
    pub steps: Vec<StepRow>,
    pub fields: Vec<FieldRow>,
}

/// Reads what is known of a document's file. None: it has no file.
pub async fn told(env: &Env, caller: &Caller, document: &Document) -> Result<Option<Told>, ActError> {
    let Some(key) = document.blob_key.as_deref().filter(|_| document.deleted_at.is_none()) else { return Ok(None) };
    let (tenant_id, id) = (caller.tenant_id, DocumentId(document.id));
    let loaded = env.db.read(caller, async |tx| {
        Ok(Told {
            file: files::get(tx, tenant_id, key).await?,
            n_pages: files::count_pages(tx, tenant_id, key).await?,
            steps: steps::list(tx, tenant_id, id).await?,
            fields: fields::list(tx, tenant_id, id).await?,
        })
    });
    Ok(Some(loaded.await?).filter(|told| told.file.is_some() || document.status != DocumentStatus::Completed))
}

/// Reads the pages of a document's file after page `after`, at most `limit`.
pub async fn pages(env: &Env, caller: &Caller, id: DocumentId, after: i32, limit: i64) -> Result<Vec<Page>, ActError> {
    let loaded = env.db.read(caller, async |tx| {
        let Some(document) = documents::get(tx, id.0).await? else { return Ok(None) };
        let key = document.blob_key.filter(|_| document.deleted_at.is_none()).unwrap_or_default();
        files::pages(tx, caller.tenant_id, &key, after, limit).await.map(Some)
    });
    loaded.await?.or_missing("document")
}

/// Has a document's file read again from this step on. Asked twice, it is done once.
pub async fn again(env: &Env, caller: &Caller, id: DocumentId, from: Step) -> Result<(), ActError> {
    let document = env.db.read(caller, async |tx| documents::get(tx, id.0).await).await?.or_missing("document")?;
    let key = document.blob_key.filter(|_| document.deleted_at.is_none());
    let key = key.ok_or_else(|| ActError::conflict("this document has no file to read"))?;
    env.db.write(async |tx| -> Result<(), ActError> { ask(tx, caller, &[(id.0, key.clone())], from).await }).await
}

/// Writes that files are read again from this step on, and sends the messages. What this step and those after it have made is forgotten.
pub(super) async fn ask(
    tx: &mut store::Tx,
    caller: &Caller,
    some: &[(Uuid, String)],
    from: Step,
) -> Result<(), ActError> {
    let tenant_id = caller.tenant_id;
    let (status, steps): (_, &[Step]) = match from {
        Step::Classify | Step::Transcribe => (DocumentStatus::Pending, &Step::ALL),
        Step::Extract => (DocumentStatus::Extracting, &[Step::Extract]),
    };
    let ids: Vec<Uuid> = some.iter().map(|(id, _)| *id).collect();
    // Documents are locked before their files, as readers do.
    let asked = files::await_again(tx, tenant_id, &ids, status).await?;
    for (id, key) in some {
        if from != Step::Extract {
            files::forget(tx, tenant_id, key).await?;
        }
        steps::forget(tx, tenant_id, DocumentId(*id), steps).await?;
    }
    send(tx, caller, &asked).await
}

/// Has the texts of documents made again of what is known.
pub(super) async fn tell_again(tx: &mut store::Tx, caller: &Caller, id: DocumentId) -> Result<(), ActError> {
    let asked = files::await_again(tx, caller.tenant_id, &[id.0], DocumentStatus::Extracting).await?;
    send(tx, caller, &asked).await
}

async fn send(tx: &mut store::Tx, caller: &Caller, ids: &[Uuid]) -> Result<(), ActError> {
    let messages: Vec<ReadFile> = ids.iter().map(|id| ReadFile { document_id: DocumentId(*id) }).collect();
    queue_of::<ReadFile>().send(tx, caller.tenant_id, &messages).await?;
    tx.notify_all(Notice::documents(caller.tenant_id, ids, Op::Update));
    Ok(())
}

/// The extent of a step for many documents, counted before it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    pub documents: i64,
    pub pages: i64,
    /// None: it all runs on this machine, which costs nothing.
    pub asking: Option<Asking>,
}

/// A language model that will be asked for the fields of papers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    pub model: String,
    pub papers: i64,
    /// In millionths of a US dollar.
    pub cost_micros: i64,
    /// It is what papers have cost so far; else it is worked out from their length and the model's price.
    pub is_as_before: bool,
}

/// Counts the documents of a source, or of all, whose file would be read again.
pub async fn estimate(env: &Env, caller: &Caller, source_id: Option<SourceId>) -> Result<Estimate, ActError> {
    let (documents, pages) = env.db.read(caller, async |tx| files::count_read(tx, source_id).await).await?;
    let Some(model) = model::name(env)? else { return Ok(Estimate { documents, pages, asking: None }) };
    let most = i64::try_from(model::MOST_BYTES).unwrap_or(i64::MAX);
    let papers = env.db.read(caller, async |tx| files::count_papers(tx, source_id, &model, most).await).await?;
    let is_as_before = papers.n_asked > 0;
    let cost_micros = match is_as_before {
        true => (papers.cost_micros as f64 / papers.n_asked as f64 * papers.n as f64).ceil() as i64,
        false => model::price(env, &model, papers),
    };
    let asking = Some(Asking { papers: papers.n, cost_micros, is_as_before, model });
    Ok(Estimate { documents, pages, asking })
}

/// Has the files of a source, or of all, read again from this step on, some in each commit. Returns how many.
pub async fn again_all(env: &Env, caller: &Caller, source_id: Option<SourceId>, from: Step) -> Result<usize, ActError> {
    let (mut after, mut n) = (None::<String>, 0);
    loop {
        let read = env.db.read(caller, async |tx| files::read_after(tx, source_id, after.as_deref(), BITE).await);
        let some = read.await?;
        let Some((_, last)) = some.last() else { return Ok(n) };
        after = Some(last.clone());
        n += some.len();
        env.db.write(async |tx| -> Result<(), ActError> { ask(tx, caller, &some, from).await }).await?;
    }
}
