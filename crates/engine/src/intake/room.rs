//! The waiting room: events that are accepted and not yet durable. It is bounded in rows and bytes; room is reserved before a body is read,
//! so that nothing is read which cannot be kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use store::activities::{Arrival, Stored};
use tokio::sync::{Notify, oneshot};

const MOST_ROWS: usize = 2_048;
const MOST_BYTES: usize = 64 << 20;
/// Largest group of one transaction.
const GROUP_ROWS: usize = 256;
const GROUP_BYTES: usize = 4 << 20;

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
    waiting: Mutex<VecDeque<Waiting>>,
    came: Notify,
    /// Sessions that wait for work.
    idle: AtomicUsize,
    rows: AtomicUsize,
    bytes: AtomicUsize,
}

/// Room for one event, until dropped.
pub(super) struct Reservation {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// Reserves room for one event of this size. None: there is none.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        // Counted first, so that two requests at once do not both get the last room.
        let rows = self.rows.fetch_add(1, Relaxed);
        let held = self.bytes.fetch_add(bytes, Relaxed);
        let reservation = Reservation { room: self.clone(), bytes };
        (rows < MOST_ROWS && held + bytes <= MOST_BYTES).then_some(reservation)
    }

    pub fn is_full(&self) -> bool {
        self.rows.load(Relaxed) >= MOST_ROWS || self.bytes.load(Relaxed) >= MOST_BYTES
    }

    pub fn join(&self, waiting: Waiting) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(waiting);
        self.came.notify_one();
    }

    /// Takes the next group, at once if there is one. What waits is shared with a session that is idle, so that one writes while the
    /// other's commit reaches the disk.
    pub async fn take(&self) -> Vec<Waiting> {
        loop {
            let group = self.take_now();
            if !group.is_empty() {
                return group;
            }
            let idle = Idle::new(&self.idle);
            self.came.notified().await;
            drop(idle);
        }
    }

    fn take_now(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let share = waiting.len().div_ceil(1 + self.idle.load(Relaxed)).min(GROUP_ROWS);
        let mut group = Vec::with_capacity(share);
        let mut bytes = 0;
        while let Some(next) = waiting.front() {
            if !group.is_empty() && (group.len() >= share || bytes + next.reservation.bytes > GROUP_BYTES) {
                self.came.notify_one(); // the other session may take the rest
                break;
            }
            bytes += next.reservation.bytes;
            group.extend(waiting.pop_front().filter(|next| !next.is_given_up()));
        }
        group
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
    /// Grows to this size, if it is smaller. False: the room is over its limit.
    pub fn grow(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            self.resize(bytes);
        }
        self.room.bytes.load(Relaxed) <= MOST_BYTES
    }

    /// Changes to this size.
    pub fn resize(&mut self, bytes: usize) {
        self.room.bytes.fetch_add(bytes, Relaxed);
        self.room.bytes.fetch_sub(std::mem::replace(&mut self.bytes, bytes), Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.room.rows.fetch_sub(1, Relaxed);
        self.room.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_room_takes_nobody_until_somebody_leaves() {
        let room = Arc::new(Room::default());
        let mut places: Vec<Reservation> = (0..MOST_ROWS).map_while(|_| room.reserve(1)).collect();
        assert_eq!(places.len(), MOST_ROWS);
        assert!(room.is_full() && room.reserve(0).is_none());
        places.pop();
        assert!(!room.is_full());
        let rest = MOST_BYTES - places.len();
        assert!(room.reserve(rest + 1).is_none());
        let mut large = room.reserve(rest).expect("just fits");
        assert!(room.is_full());
        places.pop();
        large.resize(10);
        assert!(room.reserve(rest - 10).is_some());
        drop((places, large));
        assert_eq!((room.rows.load(Relaxed), room.bytes.load(Relaxed)), (0, 0));
    }
}
