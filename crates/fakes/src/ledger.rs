//! Every request, its account and its outcome: the oracle that tests compare the engine with. It holds no token, code or secret.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use crate::lock;

/// The number of requests that are kept. A demonstration may run for weeks, so older ones are only counted.
const KEPT: usize = 50_000;

/// One request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: DateTime<Utc>,
    pub method: String,
    /// The path. For an MCP request the method and the tool follow, as in `/mcp/{provider}/tools/call/{tool}`.
    pub path: String,
    /// The query, without secret values.
    pub query: String,
    /// The account of its token, if we ever issued that token.
    pub account: Option<String>,
    /// `None` while there is no answer, and if the connection was closed without one.
    pub status: Option<u16>,
}

#[derive(Default)]
pub(crate) struct Ledger {
    book: Mutex<Book>,
    n_arrived: watch::Sender<u64>,
}

#[derive(Default)]
struct Book {
    seen: VecDeque<Seen>,
    n_forgotten: u64,
    counts: BTreeMap<String, u64>,
}

impl Ledger {
    /// Adds a request and returns its number, for recording the answer.
    pub fn note(&self, seen: Seen) -> u64 {
        let mut book = lock(&self.book);
        *book.counts.entry(seen.path.clone()).or_default() += 1;
        book.seen.push_back(seen);
        if book.seen.len() > KEPT {
            book.seen.pop_front();
            book.n_forgotten += 1;
        }
        let n_arrived = book.n_forgotten + book.seen.len() as u64;
        drop(book);
        self.n_arrived.send_replace(n_arrived);
        n_arrived - 1
    }

    pub fn answered(&self, number: u64, status: u16) {
        let mut book = lock(&self.book);
        let index = number.checked_sub(book.n_forgotten).and_then(|index| usize::try_from(index).ok());
        if let Some(seen) = index.and_then(|index| book.seen.get_mut(index)) {
            seen.status = Some(status);
        }
    }

    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.book).seen.iter().cloned().collect()
    }

    pub fn count(&self, prefix: &str) -> u64 {
        let book = lock(&self.book);
        let from_prefix = book.counts.range(prefix.to_owned()..);
        from_prefix.take_while(|(path, _)| path.starts_with(prefix)).map(|(_, count)| count).sum()
    }

    pub async fn wait_for(&self, prefix: &str, n_requests: u64) {
        let mut arrivals = self.n_arrived.subscribe();
        let _ = arrivals.wait_for(|_| self.count(prefix) >= n_requests).await;
    }

    pub fn clear(&self) {
        *lock(&self.book) = Book::default();
    }
}
