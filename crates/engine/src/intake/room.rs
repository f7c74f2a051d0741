//! The waiting room: bodies that arrive, and events that are accepted and not yet durable. Room is taken as bytes arrive, not as they are
//! announced, and it is shared among channels and tenants (`shares`). Events wait in a line in which tenants take turns (`line`).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use domain::TenantId;
use store::activities::{Arrival, Stored};
use tokio::sync::{Notify, oneshot};

use super::line::Line;
use super::shares::{Amount, Owner, Shares};

/// An event that waits for the committer.
pub(super) struct Waiting {
    pub arrival: Arrival,
    pub since: Instant,
    /// Tells the sender's request how it ended. An error: the database refused this very row.
    pub answer: oneshot::Sender<store::Result<Stored>>,
    /// Makes room again when it is dropped.
    pub reservation: Reservation,
}

impl Waiting {
    /// The sender does not wait any more: it left, or was told to come again.
    pub fn is_given_up(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The waiting room of one process.
#[derive(Default)]
pub(super) struct Room {
    line: Mutex<Line<Waiting>>,
    shares: Mutex<Shares>,
    came: Notify,
    /// Sessions that wait for work.
    idle: AtomicUsize,
    /// Sessions that are connected to the database.
    connected: AtomicUsize,
}

/// Room for one request, until dropped.
pub(super) struct Reservation {
    room: Arc<Room>,
    owner: Owner,
    held: Amount,
}

/// Events that are committed together. Until it is dropped, their tenants have one group more under way.
pub(super) struct Group {
    pub events: Vec<Waiting>,
    room: Arc<Room>,
    of: Vec<TenantId>,
}

impl Room {
    /// Begins to reserve room for a request. It holds nothing yet.
    pub fn reserve(self: &Arc<Self>, owner: Owner) -> Reservation {
        Reservation { room: self.clone(), owner, held: Amount::default() }
    }

    pub fn join(&self, waiting: Waiting) {
        let Reservation { owner, held, .. } = &waiting.reservation;
        let (tenant_id, bytes) = (owner.tenant_id, held.bytes);
        self.line().push(tenant_id, bytes, waiting);
        self.came.notify_one();
    }

    /// Takes the next group, at once if there is one. What waits is shared with a session that is idle, so that one writes while the
    /// other's commit reaches the disk.
    pub async fn take(self: &Arc<Self>) -> Group {
        loop {
            let group = self.take_now();
            if !group.events.is_empty() {
                return group;
            }
            if group.of.is_empty() {
                let idle = Idle::new(&self.idle);
                self.came.notified().await;
                drop(idle);
            } // else everybody in it has given up, and the next group may be there
        }
    }

    fn take_now(self: &Arc<Self>) -> Group {
        let mut line = self.line();
        let taken = line.take(self.idle.load(Relaxed));
        if line.has_next() {
            self.came.notify_one(); // another session may take the rest
        }
        drop(line);
        let mut group = Group { events: taken.all, room: self.clone(), of: taken.of };
        group.events.retain(|waiting| !waiting.is_given_up());
        group
    }

    /// Counts a session as connected until the returned value is dropped.
    pub fn connected(self: &Arc<Self>) -> Connected {
        self.connected.fetch_add(1, Relaxed);
        Connected(self.clone())
    }

    pub fn has_connected(&self) -> bool {
        self.connected.load(Relaxed) > 0
    }

    fn line(&self) -> MutexGuard<'_, Line<Waiting>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.room.line().end(&self.of);
    }
}

/// See [`Room::connected`].
pub(super) struct Connected(Arc<Room>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Relaxed);
    }
}

/// Counts a session as idle until dropped, also when its wait is given up.
struct Idle<'a>(&'a AtomicUsize);

impl<'a> Idle<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Reservation {
    /// Holds this much instead of what it held. False: there is no room for it, and it holds what it held.
    pub fn hold(&mut self, amount: Amount) -> bool {
        let mut shares = self.room.shares.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held = shares.change(self.owner, self.held, amount);
        if is_held {
            self.held = amount;
        }
        is_held
    }

    /// Holds so many bytes, and otherwise what it held.
    pub fn hold_bytes(&mut self, bytes: usize) -> bool {
        self.hold(Amount { bytes, ..self.held })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.hold(Amount::default()); // less always fits
    }
}
