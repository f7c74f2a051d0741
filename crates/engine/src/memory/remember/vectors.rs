//! The vectors of a batch, by the hash of what they were made of: a batch that is planned again, or holds a text twice, pays once.

use std::collections::{HashMap, HashSet};

use domain::text::Chunk;
use domain::{Fault, TenantId};
use store::Tx;
use store::spend::{self, Spent};
use uuid::Uuid;

use crate::Env;
use crate::memory::embed::Embedder;
use crate::memory::{Reservation, reserve};

pub(super) struct Vectors<'a> {
    env: &'a Env,
    tenant_id: TenantId,
    embedder: &'a Embedder,
    by_hash: HashMap<[u8; 32], Vec<f32>>,
    spent: Spent,
    reservations: Vec<Uuid>,
}

impl<'a> Vectors<'a> {
    pub fn new(env: &'a Env, tenant_id: TenantId, embedder: &'a Embedder) -> Self {
        let (by_hash, spent, reservations) = (HashMap::new(), Spent::default(), Vec::new());
        Self { env, tenant_id, embedder, by_hash, spent, reservations }
    }

    pub fn get(&self, chunk: &Chunk) -> Option<&[f32]> {
        self.by_hash.get(&chunk.hash).map(Vec::as_slice)
    }

    /// The cost of the vectors so far. Documents are counted where they are written.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Embeds the chunks that have no vector yet. Where the embedder is away or wrong, or the month's money is spent, vectors stay
    /// missing: that is no fault of the batch.
    pub async fn fill(&mut self, wanted: impl Iterator<Item = &Chunk>) -> Result<(), Fault> {
        let mut known = HashSet::new();
        let missing: Vec<&Chunk> =
            wanted.filter(|chunk| !self.by_hash.contains_key(&chunk.hash) && known.insert(chunk.hash)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = missing.iter().map(|chunk| chunk.text.as_str()).collect();
        let n_bytes = texts.iter().map(|text| text.len()).sum();
        match reserve(self.env, self.embedder, self.tenant_id, n_bytes).await? {
            Reservation::Free => {}
            Reservation::Held(id) => self.reservations.push(id),
            Reservation::Busy => {
                postponed(texts.len(), "others' calls may use up what is left of this month's money");
                return Ok(());
            }
            Reservation::Spent => {
                postponed(texts.len(), "what they may cost this month is spent");
                return Ok(());
            }
        }
        match self.embedder.embed_documents(&texts).await {
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
