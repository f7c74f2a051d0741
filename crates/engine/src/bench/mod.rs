//! `tributary bench` measures speed as a ratio to a limit measured in the same run, as medians of three alternating rounds.

mod embed;
mod fair;
mod queue;
mod remember;

use serde::Serialize;

pub use embed::embed;
pub use fair::fair;
pub use queue::queue;
pub use remember::remember;

/// One measured case, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    pub case: String,
    pub ours: f64,
    pub limit: f64,
    pub ratio: f64,
    pub unit: &'static str,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Further observations, for a person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

pub const ROUNDS: usize = 3;

/// One round: its rate, and the duration of each piece.
#[derive(Debug)]
pub struct Round {
    pub rate: f64,
    pub times_ms: Vec<f64>,
}

impl Case {
    pub fn new(case: String, unit: &'static str, ours: &Round, limit: f64) -> Self {
        let mut times = ours.times_ms.clone();
        times.sort_by(f64::total_cmp);
        Self {
            case,
            ours: ours.rate,
            limit,
            ratio: ours.rate / limit,
            unit,
            p50_ms: quantile(&times, 0.50),
            p99_ms: quantile(&times, 0.99),
            note: String::new(),
        }
    }
}

/// Returns a percentile of sorted numbers; 0 if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0.0)
}

/// Returns the round with the median rate.
pub fn median(mut rounds: Vec<Round>) -> Round {
    rounds.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    rounds.swap_remove(rounds.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numbers_that_were_measured() {
        let times: Vec<f64> = (1..=100).map(f64::from).collect();
        for (share, expected) in [(0.0, 1.0), (0.5, 51.0), (0.99, 100.0), (1.0, 100.0)] {
            assert_eq!(quantile(&times, share), expected, "{share}");
        }
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.99)), (0.0, 7.0));
    }

    #[test]
    fn the_median_round_is_the_middle_one_by_rate() {
        let round = |rate| Round { rate, times_ms: vec![3.0, 1.0, 2.0] };
        let middle = median(vec![round(30.0), round(10.0), round(20.0)]);
        assert_eq!(middle.rate, 20.0);
        let case = Case::new("x".into(), "items/s", &middle, 40.0);
        assert_eq!((case.ratio, case.p50_ms, case.p99_ms), (0.5, 2.0, 3.0));
    }
}
