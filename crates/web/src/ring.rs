//! A ring buffer of the latest entries for many readers. Each reader has only a position, so a slow one costs nothing: when the ring has
//! moved past its position, it learns that it missed some.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The largest number of entries read at once.
const BATCH: usize = 512;

/// A ring whose entries are numbered from 1.
pub(crate) struct Ring<T> {
    kept: Mutex<Kept<T>>,
    /// The number of the newest entry. Readers wait on it.
    latest: watch::Sender<u64>,
    weigh: fn(&T) -> usize,
    most: usize,
}

struct Kept<T> {
    items: VecDeque<T>,
    weight: usize,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Since<T> {
    /// Entries with their numbers, oldest first; empty if there is nothing new.
    New(Vec<(u64, T)>),
    /// Some entries were missed; this is the newest number.
    Missed(u64),
}

impl<T: Clone> Ring<T> {
    /// Creates a ring for entries of at most this total weight.
    pub fn new(most: usize, weigh: fn(&T) -> usize) -> Self {
        let kept = Mutex::new(Kept { items: VecDeque::new(), weight: 0 });
        Self { kept, latest: watch::Sender::new(0), weigh, most }
    }

    pub fn latest(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    pub fn push(&self, item: T) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.weight += (self.weigh)(&item);
        kept.items.push_back(item);
        while kept.weight > self.most
            && let Some(gone) = kept.items.pop_front()
        {
            kept.weight -= (self.weigh)(&gone);
        }
        self.latest.send_modify(|latest| *latest += 1);
    }

    /// Returns the entries after number `seen`, up to the limit.
    pub fn since(&self, seen: u64) -> Since<T> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = *self.latest.borrow();
        let first = latest - kept.items.len() as u64 + 1;
        if seen > latest || seen + 1 < first {
            return Since::Missed(latest);
        }
        let skip = usize::try_from(seen + 1 - first).unwrap_or(usize::MAX);
        Since::New((seen + 1..).zip(kept.items.iter().skip(skip).cloned()).take(BATCH).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_resumes_where_it_was_or_is_told_that_it_missed_some() {
        let ring = Ring::new(1_000, |_| 1);
        assert_eq!(ring.since(0), Since::New(vec![]));
        assert_eq!(ring.since(1), Since::Missed(0), "a number nobody has given yet");
        for n in 1..=1_010 {
            ring.push(n);
        }
        assert_eq!(ring.since(1_010), Since::New(vec![]));
        assert_eq!(ring.since(1_009), Since::New(vec![(1_010, 1_010)]));
        assert_eq!(ring.since(9), Since::Missed(1_010), "number 10 is gone");
        let Since::New(oldest) = ring.since(10) else { panic!("number 11 is still there") };
        assert_eq!((oldest.len(), oldest[0]), (BATCH, (11, 11)));
    }

    #[test]
    fn what_is_heavy_pushes_out_more() {
        let ring = Ring::new(10, |weight: &usize| *weight);
        for weight in [3, 3, 3, 8] {
            ring.push(weight);
        }
        assert_eq!(ring.since(2), Since::Missed(4));
        assert_eq!(ring.since(3), Since::New(vec![(4, 8)]));
        ring.push(11);
        assert_eq!(ring.since(4), Since::Missed(5), "too heavy to be kept at all");
        assert_eq!(ring.since(5), Since::New(vec![]));
    }
}
