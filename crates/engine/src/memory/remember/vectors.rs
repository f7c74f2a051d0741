//! The vectors of a batch, by the hash of what they were made of: a batch that is planned again, or holds a text twice, pays once.

use std::collections::{HashMap, HashSet};

use domain::text::Chunk;
use domain::{Fault, TenantId};
use store::Tx;
use store::spend::{self, Spent};
use uuid::Uuid;

use crate::Env;
use crate::memory::embed::Embedder;
use crate::memory::{Reservation, reserve, told};

/// Vectors of one model, by the hash of their text.
pub(super) type ByHash = HashMap<[u8; 32], Vec<f32>>;

pub(super) struct Vectors<'a> {
    env: &'a Env,
    tenant_id: TenantId,
    embedder: &'a Embedder,
    by_hash: ByHash,
    spent: Spent,
    reservations: Vec<Uuid>,
}

impl<'a> Vectors<'a> {
    /// Begins with the vectors that were `made` before by an embedder of the same model, if there are any.
    pub fn new(env: &'a Env, tenant_id: TenantId, embedder: &'a Embedder, made: &mut HashMap<String, ByHash>) -> Self {
        let by_hash = made.remove(&embedder.model().name).unwrap_or_default();
        let (spent, reservations) = (Spent::default(), Vec::new());
        Self { env, tenant_id, embedder, by_hash, spent, reservations }
    }

    /// The name of the model, and all vectors that there are.
    pub fn into_made(self) -> (String, ByHash) {
        (self.embedder.model().name.clone(), self.by_hash)
    }

    pub fn get(&self, chunk: &Chunk) -> Option<&[f32]> {
        self.by_hash.get(&chunk.hash).map(Vec::as_slice)
    }

    /// The cost of the vectors so far. Documents are counted where they are written.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Embeds the chunks that have no vector yet. Where the embedder is away or wrong, or the month's money is spent, or there are more
    /// than are worth waiting for, vectors stay missing: that is no fault of the batch, and lane `embed` makes them.
    pub async fn fill(&mut self, wanted: impl Iterator<Item = &Chunk>) -> Result<(), Fault> {
        let mut known = HashSet::new();
        let missing: Vec<&Chunk> =
            wanted.filter(|chunk| !self.by_hash.contains_key(&chunk.hash) && known.insert(chunk.hash)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if missing.len() > self.embedder.most_at_once() {
            tracing::debug!("{} texts get their vectors in the background", missing.len());
            return Ok(());
        }
        let texts: Vec<&str> = missing.iter().map(|chunk| chunk.text.as_str()).collect();
        let n_bytes = texts.iter().map(|text| text.len()).sum();
        match reserve(self.env, self.embedder, self.tenant_id, n_bytes).await {
            Err(blocked @ Fault::Blocked { .. }) => {
                postponed(texts.len(), &blocked.in_words());
                return Ok(());
            }
            Err(fault) => return Err(fault),
            Ok(Reservation::Free) => {}
            Ok(Reservation::Held(id)) => self.reservations.push(id),
            Ok(Reservation::Busy) => {
                postponed(texts.len(), "others' calls may use up what is left of this month's money");
                return Ok(());
            }
            Ok(Reservation::Spent) => {
                postponed(texts.len(), "what they may cost this month is spent");
                return Ok(());
            }
        }
        let answered = self.embedder.embed_documents(&texts).await;
        told(self.env, self.embedder, &answered).await;
        match answered {
            Ok(embedded) => {
                let n_missing = texts.len() - embedded.vectors.len();
                self.by_hash.extend(missing.iter().map(|chunk| chunk.hash).zip(embedded.vectors));
                self.spent += embedded.spent;
                if let Some(fault) = embedded.fault {
                    postponed(n_missing, &fault.in_words());
                }
            }
            Err(fault) => postponed(texts.len(), &fault.in_words()),
        }
        Ok(())
    }

    /// Adds what a service's vectors cost to the ledger, in the transaction that writes them.
    pub async fn settle(&self, tx: &mut Tx, spent: &Spent) -> Result<(), Fault> {
        if self.is_paid() {
            let (at, model) = (self.env.clock.sql(), &self.embedder.model().name);
            spend::settle(tx, at, self.tenant_id, model, &self.reservations, spent).await?;
        }
        Ok(())
    }

    /// Adds the cost of a batch that failed after it was embedded: the service is paid all the same.
    pub async fn settle_unwritten(&self) {
        if !self.is_paid() {
            return;
        }
        let (at, model) = (self.env.clock.sql(), &self.embedder.model().name);
        let settled = async {
            let mut conn = self.env.db.acquire().await?;
            spend::settle(&mut conn, at, self.tenant_id, model, &self.reservations, &self.spent).await
        };
        if let Err(error) = settled.await {
            tracing::warn!(error = ?error, "the cost of vectors that were not kept could not be written down");
        }
    }

    fn is_paid(&self) -> bool {
        self.embedder.is_service() && self.spent.calls > 0
    }
}

fn postponed(n: usize, why: &str) {
    tracing::warn!("{n} texts wait for their vectors: {why}");
    metrics::counter!("tributary_embed_postponed_total").increment(n as u64);
}
