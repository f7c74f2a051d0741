//! Follows a provider's page tokens without going round for ever: a provider that gives a token a second time would otherwise be asked until
//! somebody notices.

use serde::{Deserialize, Serialize};

use super::PullError;

/// The token to ask with, and one earlier token. By Brent's algorithm the earlier one is replaced after twice as many steps each time, so a
/// circle of any size is found with one token to remember.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trail {
    pub after: String,
    #[serde(default)]
    mark: String,
    #[serde(default)]
    steps: u64,
    #[serde(default)]
    until: u64,
}

impl Trail {
    pub fn start(token: String) -> Self {
        Self { mark: token.clone(), after: token, steps: 0, until: 1 }
    }

    /// Moves on to the next token; none when we have been there.
    fn on(self, token: String) -> Option<Self> {
        if token == self.after || token == self.mark {
            return None;
        }
        let steps = self.steps + 1;
        if steps < self.until {
            return Some(Self { after: token, steps, ..self });
        }
        Some(Self { mark: token.clone(), after: token, steps: 0, until: self.until.max(1).saturating_mul(2) })
    }
}

/// The trail to the page that an answer named.
pub fn follow(who: &'static str, asked: Option<Trail>, token: String) -> Result<Trail, PullError> {
    let Some(asked) = asked else { return Ok(Trail::start(token)) };
    asked.on(token).ok_or_else(|| same_page(who))
}

pub fn same_page(who: &'static str) -> PullError {
    PullError::Unreadable { what: format!("{who} gave the same page again"), raw: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of pages that were requested before the circle was noticed.
    fn pages_until_met(straight: usize, circle: usize) -> usize {
        let token = |step: usize| {
            let place = if step < straight { step } else { straight + (step - straight) % circle };
            place.to_string()
        };
        let mut trail = None;
        for step in 0..10_000 {
            match follow("Acme", trail, token(step)) {
                Ok(next) => trail = Some(next),
                Err(error) => {
                    assert_eq!(error.to_string(), "Acme gave the same page again");
                    return step;
                }
            }
        }
        panic!("a circle of {circle} after {straight} was never met");
    }

    #[test]
    fn a_circle_of_any_size_is_met_and_a_repeated_token_at_once() {
        for straight in [0, 1, 2, 7, 100] {
            assert_eq!(pages_until_met(straight, 1), straight + 1);
            for circle in [2, 3, 10, 99] {
                let pages = pages_until_met(straight, circle);
                assert!(pages <= 4 * (straight + circle), "{straight} + {circle}: {pages}");
            }
        }
    }

    #[test]
    fn a_straight_way_has_no_end_and_survives_being_stored() {
        let mut trail = Trail::start("0".into());
        for step in 1..5_000 {
            let stored = serde_json::to_value(&trail).expect("JSON");
            let read: Trail = serde_json::from_value(stored).expect("a trail");
            trail = follow("Acme", Some(read), step.to_string()).expect("a new token");
        }
        follow("Acme", Some(trail), "4999".into()).expect_err("a repeated token, after the trail was stored");
    }
}
