//! Activities: kinds, states, and the rules by which they are claimed, given back, retried and given up.
//!
//! Each rule is stated here once. The SQL functions get these numbers when they are applied (`store::functions`), statements bind them, and pages
//! ask here.

use chrono::{DateTime, TimeDelta, Utc};

use crate::words;

words! {
    ActivityType {
        Email = "email",
        Call = "call",
        Sms = "sms",
        Meeting = "meeting",
        Note = "note",
        Task = "task",
        Whatsapp = "whatsapp",
        Other = "other",
    }
}

words! {
    Direction {
        Inbound = "inbound",
        Outbound = "outbound",
    }
}

words! {
    /// The four states of an activity. One that a person skipped is `failed` with the error [`SKIPPED`].
    ProcessingStatus {
        /// Waits for an agent.
        Raw = "raw",
        /// An agent has claimed it.
        Processing = "processing",
        Completed = "completed",
        Failed = "failed",
    }
}

words! {
    /// The state that a device reports.
    NodeStatus {
        Ready = "ready",
        Processing = "processing",
        Offline = "offline",
    }
}

/// The time from an activity's error to its next attempt.
pub const RETRY_AFTER: TimeDelta = TimeDelta::hours(1);
/// The number of times that a failed activity is processed again before it becomes a dead letter.
pub const MAX_RETRIES: i32 = 3;
/// The age from which on a failed activity is no longer processed again, but becomes a dead letter.
pub const RETRY_WITHIN: TimeDelta = TimeDelta::hours(24);

/// The error of an activity that a person skipped.
pub const SKIPPED: &str = "Skipped";
/// The error of an activity whose agents went silent too often.
pub const ABANDONED: &str = "Abandoned";
/// The errors that only this server writes, when a person has decided or a dead letter has been made. An agent's own error of such a type is
/// stored as [`PLAIN_ERROR`]: a word of an agent must not end an activity.
pub const OURS: [&str; 2] = [SKIPPED, ABANDONED];
/// The error of an agent that names none.
pub const PLAIN_ERROR: &str = "Error";

/// The time after which a lock that nobody renews expires (`unlock_stale_locks`).
pub const UNLOCK_AFTER: TimeDelta = TimeDelta::minutes(5);
/// The same for `reset_stale_locks`, which runs less often.
pub const RESET_AFTER: TimeDelta = TimeDelta::minutes(30);
/// The number of times that a lock is given back before the activity becomes a dead letter.
pub const MAX_RECOVERIES: i32 = 3;
/// A device that was heard within this time is online, and keeps the lock of the activity it works on.
pub const HEARD_WITHIN: TimeDelta = TimeDelta::minutes(2);
/// The age from which on anybody may claim an activity whose owner allows it (`claim_stale_activity`).
pub const STALE_AFTER: TimeDelta = TimeDelta::minutes(5);
/// An activity that has been claimed for longer than this is reported.
pub const HELD_LONG: TimeDelta = TimeDelta::hours(1);

/// The automatic outcome of a failed activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is processed again then.
    Retried(DateTime<Utc>),
    /// It becomes a dead letter then.
    GivenUp(DateTime<Utc>),
    /// It stays as it is.
    Nothing,
}

/// Says what happens by itself to an activity that failed with this error, after `retries` retries.
pub fn after_failure(
    error_type: &str,
    failed_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
    retries: i64,
) -> AfterFailure {
    // An abandoned activity is a dead letter already: `tributary.retry_activities` passes over it for its letter.
    if OURS.contains(&error_type) {
        return AfterFailure::Nothing;
    }
    let due = failed_at + RETRY_AFTER;
    if retries < MAX_RETRIES.into() && created_at > due - RETRY_WITHIN {
        AfterFailure::Retried(due)
    } else {
        AfterFailure::GivenUp(due)
    }
}

/// From when on others may claim an activity: after its owner's own threshold, and at the latest after [`STALE_AFTER`]. `None`: never.
pub fn open_to_others_at(
    created_at: DateTime<Utc>,
    stale_threshold_minutes: i32,
    allow_remote_processing: bool,
) -> Option<DateTime<Utc>> {
    let patience = TimeDelta::minutes(stale_threshold_minutes.into()).min(STALE_AFTER);
    allow_remote_processing.then_some(created_at + patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_columns() {
        assert_eq!(
            ActivityType::ALL.map(ActivityType::as_str),
            ["email", "call", "sms", "meeting", "note", "task", "whatsapp", "other"]
        );
        assert_eq!(Direction::ALL.map(Direction::as_str), ["inbound", "outbound"]);
        assert_eq!(ProcessingStatus::ALL.map(ProcessingStatus::as_str), ["raw", "processing", "completed", "failed"]);
        for odd in ["", "Email", " email", "fax"] {
            assert!(odd.parse::<ActivityType>().is_err(), "{odd:?} was taken for a type");
        }
    }

    #[test]
    fn what_failed_is_retried_an_hour_later_three_times_within_a_day() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let due = now + RETRY_AFTER;
        let cases = [
            ("LLMError", 0, 0, AfterFailure::Retried(due)),
            ("LLMError", 22, 2, AfterFailure::Retried(due)),
            ("LLMError", 1, 3, AfterFailure::GivenUp(due)),
            ("LLMError", 23, 0, AfterFailure::GivenUp(due)),
            ("", 0, 0, AfterFailure::Retried(due)),
            ("Skipped", 0, 0, AfterFailure::Nothing),
            ("Abandoned", 0, 0, AfterFailure::Nothing),
        ];
        for (error, hours, retries, expected) in cases {
            let said = after_failure(error, now, now - TimeDelta::hours(hours), retries);
            assert_eq!(said, expected, "{error:?}, {hours} h old, after {retries} retries");
        }
    }

    #[test]
    fn others_wait_for_the_owners_patience_and_five_minutes_at_most() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let cases = [
            (0, true, Some(now)),
            (2, true, Some(now + TimeDelta::minutes(2))),
            (15, true, Some(now + TimeDelta::minutes(5))),
            (0, false, None),
        ];
        for (minutes, is_allowed, expected) in cases {
            assert_eq!(open_to_others_at(now, minutes, is_allowed), expected, "{minutes} min, {is_allowed}");
        }
    }
}
