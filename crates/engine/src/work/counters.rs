//! A worker's counters: per lane for pages and metrics, and since the last heartbeat for tracking.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use store::queue::Receipt;
use store::workers::{Beat, LaneBeat};
use tokio::task::AbortHandle;

use super::{LaneEntry, Lease};

/// The end of one item, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    Failed,
    Waited,
    Dead,
    Cancelled,
    Parked,
    Stale,
}

impl Ended {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Waited => "waited",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Parked => "parked",
            Self::Stale => "stale",
        }
    }
}

/// An item in hand.
pub(super) struct Held {
    pub since: Instant,
    task: Option<(AbortHandle, Lease)>,
}

impl Held {
    /// Its task, unless that has opened its effect: then the fence decides, and stopping it could only spoil a commit.
    pub fn stoppable(&self) -> Option<&AbortHandle> {
        self.task.as_ref().filter(|(_, lease)| lease.is_stoppable()).map(|(task, _)| task)
    }
}

pub(super) struct LaneCounters {
    pub entry: &'static LaneEntry,
    held: Mutex<HashMap<Receipt, Held>>,
    /// Milliseconds after `born`: ages, not times, go to the database, so that two machines' clocks are never compared.
    progressed_ms: AtomicU64,
    looked_ms: AtomicU64,
    born: Instant,
    done: AtomicI64,
    failed: AtomicI64,
    waited: AtomicI64,
    stale: AtomicI64,
}

/// Counted since the last heartbeat; a heartbeat that failed puts its counts back.
#[derive(Default)]
pub(super) struct Beats(Mutex<Beat>);

impl Beats {
    pub fn take(&self) -> Beat {
        std::mem::take(&mut *lock(&self.0))
    }

    pub fn put_back(&self, beat: Beat) {
        let mut now = lock(&self.0);
        now.successes += beat.successes;
        now.errors += beat.errors;
        now.last_error = now.last_error.take().or(beat.last_error);
    }

    fn count(&self, ended: Ended, error: Option<&str>) {
        let mut now = lock(&self.0);
        match ended {
            Ended::Done | Ended::Cancelled => now.successes += 1,
            Ended::Failed | Ended::Dead => now.errors += 1,
            Ended::Waited | Ended::Parked | Ended::Stale => {}
        }
        if let Some(error) = error {
            now.last_error = Some(error.chars().take(1_000).collect());
        }
    }
}

impl LaneCounters {
    pub fn new(entry: &'static LaneEntry) -> Arc<Self> {
        Arc::new(Self {
            entry,
            held: Mutex::default(),
            progressed_ms: 0.into(),
            looked_ms: 0.into(),
            born: Instant::now(),
            done: 0.into(),
            failed: 0.into(),
            waited: 0.into(),
            stale: 0.into(),
        })
    }

    /// A claim was answered; taking something is progress too, or the first item after a quiet hour would look stuck.
    pub fn looked(&self, found: usize) {
        self.looked_ms.store(self.age_ms(), Relaxed);
        if found > 0 {
            self.progressed_ms.store(self.age_ms(), Relaxed);
        }
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub fn held(&self) -> MutexGuard<'_, HashMap<Receipt, Held>> {
        lock(&self.held)
    }

    pub fn hold(&self, receipts: impl Iterator<Item = Receipt>) {
        let since = Instant::now();
        self.held().extend(receipts.map(|receipt| (receipt, Held { since, task: None })));
    }

    pub fn running(&self, lease: &Lease, task: AbortHandle) {
        self.held().insert(lease.receipt(), Held { since: Instant::now(), task: Some((task, lease.clone())) });
    }

    pub fn release(&self, receipts: impl IntoIterator<Item = Receipt>) {
        let mut held = self.held();
        for receipt in receipts {
            held.remove(&receipt);
        }
    }

    pub fn count(&self, beats: &Beats, ended: Ended, error: Option<&str>) {
        metrics::counter!("tributary_items_total", "lane" => self.entry.name, "outcome" => ended.as_str()).increment(1);
        self.progressed_ms.store(self.age_ms(), Relaxed);
        let counter = match ended {
            Ended::Done | Ended::Cancelled => &self.done,
            Ended::Failed | Ended::Dead => &self.failed,
            Ended::Waited | Ended::Parked => &self.waited,
            Ended::Stale => &self.stale,
        };
        counter.fetch_add(1, Relaxed);
        beats.count(ended, error);
    }

    pub fn beat(&self) -> LaneBeat {
        let secs_ago = |ms: &AtomicU64| self.age_ms().saturating_sub(ms.load(Relaxed)) as f64 / 1_000.0;
        LaneBeat {
            lane: self.entry.name,
            lease_secs: i32::try_from(self.entry.lease_secs).unwrap_or(i32::MAX),
            holding: i32::try_from(self.held().len()).unwrap_or(i32::MAX),
            progressed_secs_ago: secs_ago(&self.progressed_ms),
            claimed_secs_ago: secs_ago(&self.looked_ms),
            done: self.done.load(Relaxed),
            failed: self.failed.load(Relaxed),
            waited: self.waited.load(Relaxed),
            stale: self.stale.load(Relaxed),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_heartbeat_loses_no_count() {
        let beats = Beats::default();
        beats.count(Ended::Done, None);
        beats.count(Ended::Failed, Some("first"));
        let sent = beats.take();
        beats.count(Ended::Done, None);
        beats.put_back(sent);
        assert_eq!(beats.take(), Beat { successes: 2, errors: 1, last_error: Some("first".into()) });
    }

    #[test]
    fn a_newer_error_is_not_overwritten_by_one_put_back() {
        let beats = Beats::default();
        beats.count(Ended::Failed, Some("old"));
        let sent = beats.take();
        beats.count(Ended::Failed, Some("new"));
        beats.put_back(sent);
        assert_eq!(beats.take(), Beat { successes: 0, errors: 2, last_error: Some("new".into()) });
    }
}
