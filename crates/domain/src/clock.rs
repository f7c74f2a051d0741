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
