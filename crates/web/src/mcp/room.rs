//! Room for searches. Over the API one too many is refused; a model that is refused gives up, so here it waits for its turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::KeyId;
use tokio::time::{Instant, sleep, timeout_at};

use crate::api::error::ApiError;
use crate::api::search;
use crate::app::App;
use crate::caps::OfCaller;

const MOST_WAIT: Duration = Duration::from_secs(15);
/// The first in line looks this often whether one of its key's searches, or its tenant's, has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// The waiting searches of each key stand in line: the one that came first is served first.
#[derive(Default)]
pub(super) struct Lines(Mutex<HashMap<KeyId, Weak<tokio::sync::Mutex<()>>>>);

impl Lines {
    fn of(&self, key_id: KeyId) -> Arc<tokio::sync::Mutex<()>> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&key_id).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(key_id, Arc::downgrade(&line));
        line
    }
}

/// Counts one more search, until dropped; waits while the caller has enough under way.
pub(super) async fn room(app: &App, caller: &domain::Caller) -> Result<OfCaller, ApiError> {
    let until = Instant::now() + MOST_WAIT;
    let line = app.mcp.lines.of(caller.key_id);
    let _turn = timeout_at(until, line.lock()).await;
    loop {
        match search::hold(app, caller) {
            Err(_) if Instant::now() < until => sleep(PAUSE).await,
            held_or_enough => return held_or_enough,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_line_for_as_long_as_somebody_stands_in_it() {
        let (lines, first, other) = (Lines::default(), KeyId::new(), KeyId::new());
        let line = lines.of(first);
        assert!(Arc::ptr_eq(&line, &lines.of(first)), "those of one key wait for each other");
        assert!(!Arc::ptr_eq(&line, &lines.of(other)), "those of another key do not");
        drop(line);
        lines.of(other);
        assert_eq!(lines.0.lock().unwrap().len(), 1, "a line in which nobody stands is forgotten");
    }
}
