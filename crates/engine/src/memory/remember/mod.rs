//! The one way into memory. A batch of records goes through four steps, each in its own file:
//!
//! 1. `normal`: records get their normal form. Of several versions of one document in a batch, the newest wins.
//! 2. `plan`: one query reads what is stored. Text that changed is cut into chunks, and these are matched with the stored ones.
//! 3. `vectors`: chunks without a vector are embedded. No connection is held meanwhile.
//! 4. `write`: the caller's transaction opens, everything is compared again under lock, and written.
//!
//! Nothing is locked before step 4, so others may write the same documents meanwhile. A newer version that is stored by then is left
//! alone. A text that changed since step 2 sends the batch back there, with the vectors it has. So does a memory whose searches have switched to
//! another model since. While a memory moves to another model, new chunks get a vector of either.
//!
//! Lanes such as `remember_activity` and `ingest` call it. A search (`memory::recall`) finds what it wrote.

mod normal;
mod plan;
mod vectors;
mod write;

use std::collections::HashMap;
use std::time::Instant;

use domain::{DocumentId, DocumentStatus, Fault, Record, TenantId};
use store::Tx;
use store::crash::{self, Point};
use store::spend::Spent;

use self::normal::Normal;
use self::plan::Plan;
use self::vectors::{ByHash, Vectors};
use self::write::Written;
use super::embed::TenantEmbedder;
use crate::Env;

/// The effect of a batch on one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Created,
    Updated,
    /// The same text: at most payload and times moved.
    Unchanged,
    /// A newer version is stored, or a newer version deleted it.
    Superseded,
    Deleted,
    /// A person deleted the document: nothing was written, and it stays deleted.
    #[serde(rename = "kept_out")]
    KeptOut,
}

impl Change {
    fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Superseded => "superseded",
            Self::Deleted => "deleted",
            Self::KeptOut => "kept_out",
        }
    }
}

/// The outcome for one record.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub id: DocumentId,
    pub change: Change,
    pub n_chunks: usize,
    /// The number of its chunks that were embedded for this batch.
    pub n_embedded: usize,
    /// Some vectors are missing. The document is found by keyword, and an item in lane `embed` will make them.
    pub is_pending: bool,
    /// How far its file is read. What comes without a file is complete.
    pub status: DocumentStatus,
}

/// The outcome for a batch.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The results, in the order of the records.
    pub records: Vec<Remembered>,
    pub spent: Spent,
}

/// The number of times that a batch is planned again because others write the same documents.
const MOST_ROUNDS: usize = 5;

/// Remembers a batch in the transaction that `begin` opens, and returns that transaction still open: what the caller adds commits with
/// it, or nothing does. Safe to repeat: the same records change nothing the second time.
pub async fn remember<T, F>(
    env: &Env,
    tenant_id: TenantId,
    records: Vec<Record>,
    begin: impl Fn() -> F,
) -> Result<(T, Batch), Fault>
where
    T: AsMut<Tx>,
    F: Future<Output = Result<T, Fault>>,
{
    let begun = Instant::now();
    let records: Vec<Normal> = records.into_iter().map(Normal::of).collect();
    took("normalise", begun);
    let (mut rounds, mut made) = (0, HashMap::<String, ByHash>::new());
    loop {
        let tenant = TenantEmbedder::look(env, tenant_id).await?;
        let mut vectors = Vectors::new(env, tenant_id, &tenant.embedder, &mut made);
        let mut also = tenant.also.as_ref().map(|(embedder, _)| Vectors::new(env, tenant_id, embedder, &mut made));
        let tried = try_rounds(env, &tenant, &records, (&mut vectors, also.as_mut()), &begin, &mut rounds).await;
        let fault = match tried {
            Ok(Some(remembered)) => return Ok(remembered),
            Ok(None) => None,
            Err(fault) => Some(fault),
        };
        for unwritten in [Some(vectors), also].into_iter().flatten() {
            unwritten.settle_unwritten().await;
            made.extend([unwritten.into_made()]);
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
    }
}

/// Plans, embeds and writes until nobody else has changed the documents in between. None: the tenant has another model now.
async fn try_rounds<T, F>(
    env: &Env,
    tenant: &TenantEmbedder,
    records: &[Normal],
    (vectors, mut also): (&mut Vectors<'_>, Option<&mut Vectors<'_>>),
    begin: &impl Fn() -> F,
    rounds: &mut usize,
) -> Result<Option<(T, Batch)>, Fault>
where
    T: AsMut<Tx>,
    F: Future<Output = Result<T, Fault>>,
{
    while *rounds < MOST_ROUNDS {
        *rounds += 1;
        let plan = Plan::make(env, tenant, records).await?;
        let begun = Instant::now();
        if tenant.is_askable {
            vectors.fill(plan.chunks_without_vector()).await?;
        }
        if let Some(also) = also.as_deref_mut() {
            also.fill(plan.new_chunks()).await?;
        }
        took("embed", begun);
        crash::at(Point::RememberPrepared)?;
        let mut opened = begin().await?;
        let begun = Instant::now();
        match write::write(opened.as_mut(), &plan, vectors, also.as_deref()).await? {
            Written::All => {}
            Written::DocumentsChanged => continue,
            Written::ModelChanged => return Ok(None),
        }
        took("write", begun);
        crash::at(Point::RememberWritten)?;
        let batch = plan.outcome(records, vectors);
        for record in &batch.records {
            let change = record.change.as_str();
            metrics::counter!("tributary_documents_remembered_total", "change" => change).increment(1);
        }
        return Ok(Some((opened, batch)));
    }
    Err(Fault::Transient(anyhow::anyhow!("others keep writing the same documents")))
}

/// Records how long a step took, for `bench remember` and for tuning.
fn took(step: &'static str, since: Instant) {
    metrics::histogram!("tributary_remember_seconds", "step" => step).record(since.elapsed().as_secs_f64());
}
