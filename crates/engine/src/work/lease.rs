//! The right to do one item, and the transaction its effect happens in.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use domain::{Fault, TenantId};
use store::Tx;
use store::crash::{self, Point};
use store::queue::{Claimed, Queue, Receipt};

use super::Outcome;
use super::runtime::DB_LIMIT;
use crate::Env;

#[derive(Clone)]
pub struct Lease {
    queue: Queue,
    receipt: Receipt,
    tenant_id: Option<TenantId>,
    attempt: Arc<AtomicI32>,
    lease_secs: u32,
    is_in_effect: Arc<AtomicBool>,
    is_finished: Arc<AtomicBool>,
}

impl Lease {
    pub(super) fn new(queue: &Queue, claimed: &Claimed, lease_secs: u32) -> Self {
        let tenant = claimed.message.get("tenant_id").and_then(|id| id.as_str()).and_then(|id| id.parse().ok());
        Self {
            queue: queue.clone(),
            receipt: claimed.receipt(),
            tenant_id: tenant,
            attempt: Arc::new(claimed.attempt().into()),
            lease_secs,
            is_in_effect: Arc::default(),
            is_finished: Arc::default(),
        }
    }

    pub fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// The number of this attempt, from 1, counted since the last committed step.
    pub fn attempt(&self) -> i32 {
        self.attempt.load(Ordering::Acquire)
    }

    /// The tenant of the item. An item that names none is malformed for a lane that needs one.
    pub fn tenant_id(&self) -> Result<TenantId, Fault> {
        self.tenant_id.ok_or_else(|| Fault::Malformed { what: "the message names no tenant".into() })
    }

    /// Opens the effect's transaction: its first statement deletes the message, if it is still ours. The row's lock keeps
    /// everyone else away until the commit.
    pub async fn begin(&self, env: &Env) -> Result<Effect<'_>, Fault> {
        self.open(env, Kind::Last).await
    }

    /// Opens a transaction for a part of the effect: its first statement extends the lease, if it is still ours. What it commits is
    /// progress, so attempts are counted from here on anew.
    pub async fn begin_step(&self, env: &Env) -> Result<Effect<'_>, Fault> {
        self.open(env, Kind::Step).await
    }

    /// Opens a transaction for notes about the item: its first statement locks the message, if it is still ours. No progress: attempts
    /// are counted on.
    pub async fn begin_note(&self, env: &Env) -> Result<Effect<'_>, Fault> {
        self.open(env, Kind::Note).await
    }

    async fn open(&self, env: &Env, kind: Kind) -> Result<Effect<'_>, Fault> {
        let in_effect = InEffect::begin(&self.is_in_effect);
        let opened = store::within(DB_LIMIT, async {
            let mut tx = env.db.begin().await?;
            crash::at(Point::EffectBegun)?;
            let is_ours = match kind {
                Kind::Last => self.queue.finish(&mut tx, self.receipt).await?,
                Kind::Step => self.queue.advance(&mut tx, env.clock.sql(), self.receipt, self.lease_secs).await?,
                Kind::Note => self.queue.lock(&mut tx, self.receipt).await?,
            };
            Ok((tx, is_ours))
        });
        let (tx, is_ours) = opened.await?;
        if !is_ours {
            return Err(Fault::Stale);
        }
        crash::at(Point::EffectFenced)?;
        Ok(Effect { tx, lease: self, kind, _in_effect: in_effect })
    }

    /// Whether the task may be stopped when another worker has the item: not while a commit may be under way, nor after the last one.
    pub(super) fn is_stoppable(&self) -> bool {
        !self.is_in_effect.load(Ordering::Acquire) && !self.is_finished()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }
}

/// An open effect. Dropped, it never happened and the item is still waiting.
pub struct Effect<'a> {
    tx: Tx,
    lease: &'a Lease,
    kind: Kind,
    _in_effect: InEffect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The message goes with it.
    Last,
    /// The item goes on, and has got on.
    Step,
    /// The item is where it was.
    Note,
}

/// Set while an effect is open, however it ends.
struct InEffect(Arc<AtomicBool>);

impl InEffect {
    fn begin(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag.clone())
    }
}

impl Drop for InEffect {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Effect<'_> {
    /// Commits effect and acknowledgement together. An error may mean that only the answer was lost: the next claim finds the message
    /// gone or there, and either is right.
    pub async fn commit(self) -> Result<Outcome, Fault> {
        crash::at(Point::EffectBeforeCommit)?;
        self.tx.commit().await?;
        crash::at(Point::EffectAfterCommit)?;
        if self.kind == Kind::Step {
            self.lease.attempt.store(1, Ordering::Release); // as in the row
        }
        self.lease.is_finished.store(self.kind == Kind::Last, Ordering::Release);
        Ok(Outcome::Done)
    }
}

impl AsMut<Tx> for Effect<'_> {
    fn as_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}

impl Deref for Effect<'_> {
    type Target = Tx;
    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for Effect<'_> {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_that_was_given_up_is_no_longer_open() {
        let flag = Arc::default();
        let open = InEffect::begin(&flag);
        assert!(flag.load(Ordering::Acquire));
        drop(open);
        assert!(!flag.load(Ordering::Acquire));
    }
}
