//! The only source of the time. In production SQL uses the database's clock; in tests both use the test's clock.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

#[derive(Clone, Debug, Default)]
pub enum Clock {
    #[default]
    System,
    Fixed(Arc<Mutex<DateTime<Utc>>>),
}

impl Clock {
    pub fn fixed(at: DateTime<Utc>) -> Self {
        Self::Fixed(Arc::new(Mutex::new(at)))
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.sql().unwrap_or_else(Utc::now)
    }

    /// Returns the value that statements bind in `coalesce($clock, now())`: `None` unless the clock is fixed.
    pub fn sql(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::System => None,
            Self::Fixed(at) => Some(*at.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Moves a fixed clock. Moving the system's clock is an error in the test.
    pub fn advance(&self, by: TimeDelta) {
        match self {
            Self::System => panic!("the system clock cannot be moved"),
            Self::Fixed(at) => *at.lock().unwrap_or_else(PoisonError::into_inner) += by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_moves_only_when_told_and_all_its_copies_with_it() {
        let noon = DateTime::from_timestamp(1_700_000_000, 0).expect("a time");
        let clock = Clock::fixed(noon);
        let copy = clock.clone();
        assert_eq!((clock.now(), clock.sql()), (noon, Some(noon)));
        copy.advance(TimeDelta::minutes(90));
        assert_eq!(clock.now(), noon + TimeDelta::minutes(90));
        copy.advance(TimeDelta::minutes(-90));
        assert_eq!(clock.sql(), Some(noon));
    }

    #[test]
    fn the_systems_time_is_left_to_the_database() {
        let before = Utc::now();
        assert_eq!(Clock::System.sql(), None);
        assert!(Clock::default().now() >= before);
    }

    #[test]
    #[should_panic(expected = "the system clock cannot be moved")]
    fn the_system_clock_cannot_be_moved() {
        Clock::System.advance(TimeDelta::seconds(1));
    }
}
