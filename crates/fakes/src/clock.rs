//! Time as the providers have it: this machine's, unless a test is ahead of it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

#[derive(Default)]
pub(crate) struct Clock {
    ahead_ms: AtomicI64,
    last_stamp_ms: AtomicI64,
}

impl Clock {
    /// Whole milliseconds, as in every answer, and never before a change that was made.
    pub fn now(&self) -> DateTime<Utc> {
        let now_ms = Utc::now().timestamp_millis() + self.ahead_ms.load(Ordering::Relaxed);
        at_ms(now_ms.max(self.last_stamp_ms.load(Ordering::Relaxed)))
    }

    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// A time that no other change has and that is later than all before it, or a test could not tell an order from a tie. It is taken while
    /// the records are locked, so that no answer has a later time than a change that it lacks.
    pub fn stamp(&self) -> DateTime<Utc> {
        let now_ms = self.now().timestamp_millis();
        let next = |last_ms: i64| Some(now_ms.max(last_ms + 1));
        let last_ms = self.last_stamp_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
        at_ms(now_ms.max(last_ms + 1))
    }
}

pub(crate) fn at_ms(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

/// A time as most providers write it: `2026-11-01T10:00:00.000Z`.
pub(crate) fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

pub(crate) fn parse_iso(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc())
}
