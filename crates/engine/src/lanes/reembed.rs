//! Moves a tenant's memory to another model. Every chunk gets a vector of it, bite by bite, while searches go on with the old model; then one commit
//! switches them, and the old vectors go. A move that was cancelled goes the other way: its vectors are removed.
//!
//! `memory::moves` begins and cancels moves, and says how far they are.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use domain::{DocumentId, Fault, TenantId};
use serde::{Deserialize, Serialize};
use store::crash::{self, Point};
use store::memory::VectorTable;
use store::memory::moves::{self, Move, State};
use store::spend::{self, Spent};
use uuid::Uuid;

use super::embed::{Embed, NOT_HERE, OTHERS_CALLS, until_next_month};
use super::queue_of;
use crate::Env;
use crate::memory::embed::Embedded;
use crate::memory::moves::changed;
use crate::memory::{Reservation, codes, reserve, told};
use crate::work::{Effect, Lane, Lease, Outcome};

/// The number of chunks in a bite. A worker that is killed loses the vectors of one bite.
const BITE: i64 = 128;
const LABELS: i64 = 500;
const REMOVED: i64 = 5_000;
/// A move works for so long before that of another tenant has its turn.
const TURN: Duration = Duration::from_secs(30);
const NEXT: &str = "others have their turn";
/// How long a switch waits when others write to the memory all the time.
const WRITERS: Duration = Duration::from_secs(2);

/// The model is the one that the memory moves to. A message of a move that is over does nothing.
#[derive(Serialize, Deserialize)]
pub struct Reembed {
    pub model: String,
}

impl Lane for Reembed {
    const NAME: &'static str = "reembed";
    const IS_LONG: bool = true;
    /// One at a time: embedders on this machine have the cores for one, and live documents go first.
    const SLOTS: Option<u32> = Some(1);
    /// About two days: an embedder may be away for a weekend.
    const MAX_ATTEMPTS: i32 = 300;
    const MAX_RUN: Duration = Duration::from_secs(12 * 3_600);

    /// Safe to repeat: each commit writes vectors, or removes some, and the place that the move has reached.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let (tenant_id, table) = (lease.tenant_id()?, VectorTable::new(&self.model)?);
        let mover = Mover { env, lease, tenant_id, table };
        let moved = mover.run().await;
        let why = match &moved {
            Ok(Outcome::Snooze(_, why)) if *why != NEXT => Some((*why).to_owned()),
            Err(fault) if !matches!(fault, Fault::Stale) => Some(fault.in_words()),
            _ => None,
        };
        if let Some(why) = why {
            mover.note(&why).await;
        }
        moved
    }
}

struct Mover<'a> {
    env: &'a Env,
    lease: &'a Lease,
    tenant_id: TenantId,
    /// The table of the model that the memory moves to.
    table: VectorTable,
}

impl Mover<'_> {
    async fn run(&self) -> Result<Outcome, Fault> {
        let begun = Instant::now();
        loop {
            let mut conn = self.env.db.acquire().await?;
            let under_way = moves::get(&mut conn, self.tenant_id).await?;
            drop(conn);
            let Some(now) = under_way.filter(|now| now.to_model == self.table.model()) else {
                return Ok(Outcome::Done);
            };
            let ended = match now.state {
                State::Embedding => self.bite(&now).await?,
                State::Indexing => self.switch(&now).await?,
                State::Tidying => self.tidy(&now, &self.table, &VectorTable::new(&now.from_model)?).await?,
                State::Cancelling => self.tidy(&now, &VectorTable::new(&now.from_model)?, &self.table).await?,
            };
            if let Some(outcome) = ended {
                return Ok(outcome);
            }
            if begun.elapsed() > TURN {
                return Ok(Outcome::Snooze(Duration::ZERO, NEXT));
            }
        }
    }

    /// Embeds the next chunks that lack a vector, and commits these with the place that the move has reached.
    async fn bite(&self, now: &Move) -> Result<Option<Outcome>, Fault> {
        let (env, begun) = (self.env, Instant::now());
        let Some(embedder) = env.embedders.of_model(self.table.model()) else {
            let why = "the settings of this worker describe no embedder of the model that the memory moves to";
            return Ok(Some(Outcome::Snooze(NOT_HERE, why)));
        };
        let mut conn = env.db.acquire().await?;
        let lacking = moves::lacking(&mut conn, self.tenant_id, &self.table, now.after, BITE).await?;
        drop(conn);
        let Some(last) = lacking.last().map(|chunk| chunk.id) else { return self.end_pass(now).await };
        // A text that several chunks have is embedded once.
        let mut texts: Vec<&str> = lacking.iter().map(|chunk| chunk.text.as_str()).collect();
        texts.sort_unstable();
        texts.dedup();
        let n_bytes = texts.iter().map(|text| text.len()).sum();
        let reservation = match reserve(env, embedder, self.tenant_id, n_bytes).await? {
            Reservation::Free => None,
            Reservation::Held(id) => Some(id),
            Reservation::Busy => return Ok(Some(Outcome::Snooze(OTHERS_CALLS, "budget: others' calls are under way"))),
            Reservation::Spent => {
                let until_then = until_next_month(env.clock.now());
                return Ok(Some(Outcome::Snooze(until_then, "budget: what vectors may cost this month is spent")));
            }
        };
        let answered = embedder.embed_documents(&texts).await;
        told(env, embedder, &answered).await;
        let Embedded { vectors, spent, fault } = answered?;
        crash::at(Point::ReembedMade)?;
        let of_text: HashMap<&str, &[f32]> = texts.iter().copied().zip(vectors.iter().map(Vec::as_slice)).collect();
        let made: Vec<(Uuid, &[f32])> =
            lacking.iter().filter_map(|chunk| Some((chunk.id, *of_text.get(chunk.text.as_str())?))).collect();
        // A part of the vectors is progress. The rest is looked for again.
        let after = if fault.is_none() { Some(last) } else { now.after };
        let mut step = self.lease.begin_step(env).await?;
        if self.is_still(&mut step, now).await? {
            moves::insert(&mut step, self.tenant_id, &self.table, &made).await?;
            let per_second = made.len() as f64 / begun.elapsed().as_secs_f64().max(0.001);
            moves::advance(&mut step, env.clock.sql(), self.tenant_id, after, made.len(), &spent, per_second).await?;
        }
        if embedder.is_service() && spent.calls > 0 {
            let (at, model) = (env.clock.sql(), self.table.model());
            let n_documents = lacking.iter().filter(|chunk| chunk.is_first).count();
            let spent = Spent { documents: i64::try_from(n_documents).unwrap_or(i64::MAX), ..spent };
            spend::settle(&mut step, at, self.tenant_id, model, reservation.as_slice(), &spent).await?;
        }
        crash::at(Point::ReembedBeforeCommit)?;
        step.commit().await?;
        crash::at(Point::ReembedAfterCommit)?;
        fault.map_or(Ok(None), Err)
    }

    /// No chunk after this place lacks a vector. Only a pass over all of them that finds none leads on: some may have come meanwhile.
    async fn end_pass(&self, now: &Move) -> Result<Option<Outcome>, Fault> {
        let (state, n_left) = match now.after {
            Some(_) => (State::Embedding, None),
            None => (State::Indexing, Some(0)),
        };
        let mut step = self.lease.begin_step(self.env).await?;
        if self.is_still(&mut step, now).await? {
            moves::enter(&mut step, self.env.clock.sql(), self.tenant_id, state, n_left).await?;
        }
        step.commit().await?;
        Ok(None)
    }

    /// Makes the codes of the new vectors, and then switches the memory's searches. Writers are kept away while it looks whether a chunk lacks a vector.
    async fn switch(&self, now: &Move) -> Result<Option<Outcome>, Fault> {
        let (env, at) = (self.env, self.env.clock.sql());
        let mut conn = env.db.acquire().await?;
        let n_fresh = store::memory::codes::n_fresh(&mut conn, self.tenant_id, &self.table).await?;
        drop(conn);
        if n_fresh >= store::memory::codes::FRESH {
            codes::flush(env, self.tenant_id, &self.table, n_fresh).await?;
        }
        let mut step = self.lease.begin_step(env).await?;
        if !self.is_still(&mut step, now).await? {
            return Ok(None);
        }
        if !moves::free_pointer(&mut step, self.tenant_id).await? {
            return Ok(Some(Outcome::Snooze(WRITERS, "others write to this memory all the time")));
        }
        if moves::lacks(&mut step, self.tenant_id, &self.table).await? {
            moves::enter(&mut step, at, self.tenant_id, State::Embedding, None).await?;
            step.commit().await?;
            return Ok(None);
        }
        moves::switch(&mut step, at, self.tenant_id).await?;
        step.notify(changed(self.tenant_id));
        crash::at(Point::ReembedBeforeSwitch)?;
        step.commit().await?;
        crash::at(Point::ReembedSwitched)?;
        let (id, from, to, n) = (self.tenant_id, &now.from_model, &now.to_model, now.n_embedded);
        tracing::info!(tenant.id = %id, "the searches of tenant {id} have switched from {from} to {to}; {n} chunks were embedded");
        Ok(None)
    }

    /// Labels the documents with the model that stays, and removes the vectors of the other. A document that lacks a vector is embedded like one that
    /// has just come.
    async fn tidy(&self, now: &Move, keep: &VectorTable, other: &VectorTable) -> Result<Option<Outcome>, Fault> {
        let (env, at, id) = (self.env, self.env.clock.sql(), self.tenant_id);
        let mut step = self.lease.begin_step(env).await?;
        if !self.is_still(&mut step, now).await? {
            return Ok(None);
        }
        let labelled = moves::label(&mut step, id, keep, now.after, LABELS).await?;
        if let Some(last) = labelled.last() {
            moves::labelled(&mut step, at, id, last.id).await?;
            let pending: Vec<Embed> = labelled
                .iter()
                .filter(|document| document.is_pending)
                .map(|document| Embed { document_id: DocumentId(document.id) })
                .collect();
            queue_of::<Embed>().send(&mut step, id, &pending).await?;
            crash::at(Point::ReembedTidied)?;
            step.commit().await?;
            return Ok(None);
        }
        store::memory::codes::remove(&mut step, id, other).await?;
        if moves::remove(&mut step, id, other, REMOVED).await? > 0 {
            crash::at(Point::ReembedTidied)?;
            step.commit().await?;
            return Ok(None);
        }
        drop(step);
        let mut last = self.lease.begin(env).await?;
        if !self.is_still(&mut last, now).await? {
            return Ok(None);
        }
        store::memory::codes::remove(&mut last, id, other).await?; // some may have been made meanwhile
        moves::end(&mut last, id).await?;
        last.notify(changed(id));
        let ended = last.commit().await?;
        let model = keep.model();
        tracing::info!(tenant.id = %id, "the memory of tenant {id} has only vectors of {model} now");
        Ok(Some(ended))
    }

    /// Whether the move is still as it was read: a person may have cancelled it. Locks it until the step ends.
    async fn is_still(&self, step: &mut Effect<'_>, now: &Move) -> Result<bool, Fault> {
        let locked = moves::lock(step, self.tenant_id).await?;
        Ok(locked.is_some_and(|locked| locked.to_model == now.to_model && locked.state == now.state))
    }

    /// Writes down why the move does not go on. If that is not possible, the item's own reason is all there is.
    async fn note(&self, why: &str) {
        let noted = async {
            let mut note = self.lease.begin_note(self.env).await?;
            moves::wait(&mut note, self.tenant_id, why).await?;
            note.commit().await
        };
        if let Err(fault) = noted.await {
            tracing::debug!("why a move waits could not be written down: {}", fault.in_words());
        }
    }
}
