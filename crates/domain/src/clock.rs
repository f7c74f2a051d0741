//! The one place that knows what time it is. In production SQL uses the database's clock; in tests both use the test's.

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

    /// What a statement binds to `coalesce($clock, now())`: nothing unless the clock is fixed.
    pub fn sql(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::System => None,
            Self::Fixed(at) => Some(*at.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Moves a fixed clock; the system's cannot be moved, and a test that tries is wrong.
    pub fn advance(&self, by: TimeDelta) {
        match self {
            Self::System => panic!("the system clock cannot be moved"),
            Self::Fixed(at) => *at.lock().unwrap_or_else(PoisonError::into_inner) += by,
        }
    }
}
