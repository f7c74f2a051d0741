//! The ways in which an item of a lane fails, and the retry rule of every lane. (That of activities is in [`crate::activity`].)

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::text::replace_nul;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("provider asked us to wait")]
    RateLimited { retry_after: Duration },
    #[error("authorization was revoked")]
    Reauthorize,
    #[error("could not be done now")]
    Transient(#[source] anyhow::Error),
    /// Our own database is away or does not answer. The item is not at fault.
    #[error("could not be done now")]
    Away(#[source] anyhow::Error),
    /// The credentials are good, but a scope or a permission is missing. A retry changes nothing.
    #[error("{what}")]
    Refused { what: String },
    /// A service does nothing for us until a person has paid it or corrected a setting. Then the same item succeeds.
    #[error("blocked: {what}")]
    Blocked { what: String },
    #[error("payload does not parse: {what}")]
    Malformed { what: String },
    #[error("the lease was lost: somebody else has this item now")]
    Stale,
}

impl Fault {
    /// Describes the fault and its causes in one line, for a person.
    pub fn in_words(&self) -> String {
        let mut words = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            if !words.ends_with(&text) {
                words.push_str(": ");
                words.push_str(&text);
            }
            cause = error.source();
        }
        replace_nul(&words)
    }
}

/// The reaction to a fault.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try again after this time; it costs no attempt.
    Wait(Duration),
    /// Try again after this time; the attempt counts.
    Retry(Duration),
    /// Give up; a person decides.
    Bury,
    /// Do nothing: the item is no longer ours.
    Drop,
}

/// The wait of an item that a person has to help along. It is long enough for the item to be parked; upkeep sends it sooner.
const BLOCKED: Duration = Duration::from_secs(2 * 3_600);

/// A database that went away so often while one item ran is taken for the item's doing: its statements may be what ends the server's process.
/// (While there is no database at all, nothing is claimed, so an outage is one try.)
const MOST_AWAY: i32 = 30;

/// After so many tries the pause between two grows no more. An item comes within half a minute of the database's return, however often it was away.
const LONGEST_AWAY: i32 = 6;

/// `tries` are the attempts that count, this one among them, and the waits before it.
pub fn verdict(fault: &Fault, attempt: i32, tries: i32, max_attempts: i32, rng: &mut impl Rng) -> Verdict {
    match fault {
        // An outage must not fill the dead letters.
        Fault::Away(_) if tries < MOST_AWAY => Verdict::Wait(backoff(tries.min(LONGEST_AWAY), rng)),
        Fault::RateLimited { retry_after } => Verdict::Wait(polite(*retry_after, rng)),
        Fault::Blocked { .. } => Verdict::Wait(BLOCKED),
        Fault::Reauthorize | Fault::Refused { .. } | Fault::Malformed { .. } => Verdict::Bury,
        Fault::Stale => Verdict::Drop,
        Fault::Transient(_) | Fault::Away(_) if attempt >= max_attempts => Verdict::Bury,
        Fault::Transient(_) | Fault::Away(_) => Verdict::Retry(backoff(attempt, rng)),
    }
}

/// The wait that a provider asked for, at least a second, plus up to a tenth at random, so that many callers do not return at the same
/// time.
fn polite(retry_after: Duration, rng: &mut impl Rng) -> Duration {
    let floor_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX / 2).max(1_000);
    Duration::from_millis(floor_ms + rng.random_range(0..=floor_ms / 10))
}

/// 1 s, 2 s, 4 s … up to 10 minutes, each randomly between half and all of it, so that many failed items do not return at the same
/// time.
pub fn backoff(attempt: i32, rng: &mut impl Rng) -> Duration {
    let exponent = u32::try_from(attempt.clamp(1, 11)).unwrap_or(1) - 1;
    let ceiling_ms = (1_000_u64 << exponent).min(600_000);
    Duration::from_millis(rng.random_range(ceiling_ms / 2..=ceiling_ms))
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn backoff_doubles_to_ten_minutes_with_jitter() {
        let mut rng = StdRng::seed_from_u64(7);
        for (attempt, ceiling_ms) in [(1, 1_000), (2, 2_000), (5, 16_000), (10, 512_000), (11, 600_000), (99, 600_000)]
        {
            let waits: Vec<u64> = (0..50).map(|_| backoff(attempt, &mut rng).as_millis() as u64).collect();
            assert!(waits.iter().all(|ms| (ceiling_ms / 2..=ceiling_ms).contains(ms)), "attempt {attempt}: {waits:?}");
            assert!(waits.iter().any(|ms| *ms != waits[0]), "attempt {attempt} has no jitter");
        }
    }

    #[test]
    fn only_a_failed_attempt_counts_towards_the_dead_letter() {
        let mut rng = StdRng::seed_from_u64(7);
        let transient = || Fault::Transient(anyhow::anyhow!("connection refused"));
        let minute = Duration::from_secs(60);
        let waits: Vec<Duration> = [Duration::ZERO, minute]
            .map(|retry_after| match verdict(&Fault::RateLimited { retry_after }, 99, 99, 8, &mut rng) {
                Verdict::Wait(delay) => delay,
                other => panic!("{other:?}"),
            })
            .to_vec();
        assert!(waits[0] >= Duration::from_secs(1) && waits[0] <= Duration::from_millis(1_100), "{waits:?}");
        assert!(waits[1] >= minute && waits[1] <= Duration::from_secs(66), "{waits:?}");
        assert!(matches!(verdict(&transient(), 7, 7, 8, &mut rng), Verdict::Retry(_)));
        assert_eq!(verdict(&transient(), 8, 8, 8, &mut rng), Verdict::Bury);
        assert_eq!(verdict(&Fault::Malformed { what: "no id".into() }, 1, 1, 8, &mut rng), Verdict::Bury);
        assert_eq!(verdict(&Fault::Reauthorize, 1, 1, 8, &mut rng), Verdict::Bury);
    }

    #[test]
    fn an_outage_of_the_database_costs_no_attempt_and_is_over_within_half_a_minute() {
        let mut rng = StdRng::seed_from_u64(7);
        let away = Fault::Away(anyhow::anyhow!("the database did not answer in time"));
        for (tries, ceiling_secs) in [(1, 1), (3, 4), (6, 32), (29, 32)] {
            match verdict(&away, 8, tries, 8, &mut rng) {
                Verdict::Wait(delay) => {
                    let ceiling = Duration::from_secs(ceiling_secs);
                    assert!((ceiling / 2..=ceiling).contains(&delay), "{tries} tries: {delay:?}");
                }
                other => panic!("{tries} tries: {other:?}"),
            }
        }
        assert!(matches!(verdict(&away, 7, 30, 8, &mut rng), Verdict::Retry(_)), "F15: the item may be the reason");
        assert_eq!(verdict(&away, 8, 37, 8, &mut rng), Verdict::Bury);
    }

    #[test]
    fn words_name_every_cause_once() {
        let fault = Fault::Transient(anyhow::anyhow!("connection refused").context("cannot reach the provider"));
        assert_eq!(fault.in_words(), "could not be done now: cannot reach the provider: connection refused");
    }

    #[test]
    fn every_fault_has_its_verdict_at_every_attempt() {
        let mut rng = StdRng::seed_from_u64(7);
        for attempt in [1, 7, 8, 9, i32::MAX] {
            let refused = Fault::Refused { what: "the scope is missing".into() };
            assert_eq!(verdict(&refused, attempt, attempt, 8, &mut rng), Verdict::Bury, "asking again changes nothing");
            assert_eq!(verdict(&Fault::Stale, attempt, attempt, 8, &mut rng), Verdict::Drop, "it is somebody else's");
            let blocked = Fault::Blocked { what: "nobody has paid".into() };
            assert_eq!(
                verdict(&blocked, attempt, attempt, 8, &mut rng),
                Verdict::Wait(BLOCKED),
                "no attempt was made in vain"
            );
            let wait = Fault::RateLimited { retry_after: Duration::from_secs(5) };
            assert!(
                matches!(verdict(&wait, attempt, attempt, 8, &mut rng), Verdict::Wait(_)),
                "waiting costs no attempt"
            );
            let transient = verdict(&Fault::Transient(anyhow::anyhow!("reset")), attempt, attempt, 8, &mut rng);
            assert_eq!(transient == Verdict::Bury, attempt >= 8, "attempt {attempt}: {transient:?}");
        }
    }

    #[test]
    fn odd_numbers_from_outside_are_waited_for_sensibly() {
        let mut rng = StdRng::seed_from_u64(7);
        assert!(polite(Duration::from_millis(1), &mut rng) >= Duration::from_secs(1));
        assert!(polite(Duration::MAX, &mut rng) >= Duration::from_secs(u64::from(u32::MAX)), "no overflow");
        for attempt in [i32::MIN, -1, 0, 1] {
            let wait = backoff(attempt, &mut rng);
            assert!((500..=1_000).contains(&wait.as_millis()), "attempt {attempt} waits {wait:?}");
        }
    }

    #[test]
    fn words_carry_no_nul_into_a_column() {
        assert_eq!(Fault::Malformed { what: "a\0b".into() }.in_words(), "payload does not parse: a\u{fffd}b");
        let twice = Fault::Transient(anyhow::anyhow!("reset").context("could not be done now"));
        assert_eq!(twice.in_words(), "could not be done now: reset", "a cause that repeats the words is left out");
    }
}
