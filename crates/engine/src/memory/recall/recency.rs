//! A small part of the score for newer documents: among about equally good ones the newer goes first, and a clear order stays. Pure.

use chrono::{DateTime, Utc};

/// The most that a document gets for being new. Scores that differ by more keep their order.
pub(super) const MOST: f64 = 0.02;
/// After so many days it is half of that.
const HALF_LIFE_DAYS: f64 = 90.0;

/// The part of the score of a document from the time `at`. It falls with age from [`MOST`] to nothing.
pub(super) fn part(at: DateTime<Utc>, now: DateTime<Utc>) -> f64 {
    let days = (now - at).num_seconds().max(0) as f64 / 86_400.0;
    MOST * (-days / HALF_LIFE_DAYS).exp2()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn the_newer_of_two_equals_goes_first_and_a_clear_order_stays() {
        let now: DateTime<Utc> = "2026-11-17T12:00:00Z".parse().expect("a time");
        let ago = |days: i64| now - TimeDelta::days(days);
        for (days, expected) in [(0, 0.02), (90, 0.01), (180, 0.005), (-30, 0.02)] {
            assert!((part(ago(days), now) - expected).abs() < 1e-9, "{days} days ago");
        }
        assert!(part(ago(36_500), now) >= 0.0 && part(ago(36_500), now) < 1e-9);
        for (what, first, second) in [
            ("equally good: the newer", (0.5, 1), (0.5, 400)),
            ("about equally good: the newer", (0.5, 1), (0.51, 400)),
            ("clearly better, and old", (0.53, 4_000), (0.5, 0)),
            ("both old: the better", (0.51, 4_000), (0.5, 3_000)),
        ] {
            let score = |(score, days): (f64, i64)| score + part(ago(days), now);
            assert!(score(first) > score(second), "{what}");
        }
    }
}
