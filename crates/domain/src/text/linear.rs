//! Tests that a function takes linear time. There is no limit in seconds, and the time of other programs does not count, so slow and busy
//! machines pass too.

use std::time::{Duration, Instant};

/// A text four times as long may take so many times as long: four times is linear, sixteen times is quadratic.
const MOST_TIMES: u32 = 10;
const ROUNDS: usize = 3;
/// Shorter times are too short to compare.
const LEAST: Duration = Duration::from_millis(10);

/// Panics unless `run` takes linear time, by the best of a few rounds.
pub fn assert_linear(what: &str, text: &str, four_times: &str, run: impl Fn(&str)) {
    let time = |text: &str| {
        let (wall, cpu) = (Instant::now(), cpu_time());
        run(text);
        cpu_time().zip(cpu).map_or_else(|| wall.elapsed(), |(after, before)| after.saturating_sub(before))
    };
    let (mut once, mut four) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        once = once.min(time(text));
        four = four.min(time(four_times));
        if is_linear(once, four) {
            return;
        }
    }
    panic!("{what:?}: {} bytes took {once:?}, and {} bytes took {four:?}", text.len(), four_times.len());
}

fn is_linear(once: Duration, four_times: Duration) -> bool {
    four_times <= once.max(LEAST) * MOST_TIMES
}

/// The time that this thread has run, where the system tells it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_times_as_long_is_linear_and_sixteen_times_is_not() {
        for (once, four_times, expected) in
            [(100, 400, true), (100, 990, true), (100, 1_600, false), (1, 90, true), (1, 160, false)]
        {
            let [a, b] = [once, four_times].map(Duration::from_millis);
            assert_eq!(is_linear(a, b), expected, "{once} ms and {four_times} ms");
        }
    }
}
