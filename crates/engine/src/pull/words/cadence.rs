//! The interval between automatic syncs of a source, as people write it.

use std::time::Duration;

/// The intervals that pages offer. Daily syncs run at night.
pub const OFFERED: [&str; 5] = ["15m", "1h", "6h", "1d", "7d"];

const LEAST: Duration = Duration::from_secs(60);
const MOST: Duration = Duration::from_secs(30 * 86_400);

/// `15m`, `6h` or `1d`; a minute at least, thirty days at most.
pub fn parse(text: &str) -> Result<Duration, String> {
    let odd = || format!("{text:?} is not a length of time such as 15m, 6h or 1d");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(odd)?;
    let secs: u64 = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(odd()),
    };
    let number: u64 = number.parse().map_err(|_| odd())?;
    checked(Duration::from_secs(number.saturating_mul(secs)))
}

/// The same length, if a source may be synced so often and so rarely.
pub fn checked(every: Duration) -> Result<Duration, String> {
    if (LEAST..=MOST).contains(&every) { Ok(every) } else { Err("it is a minute at least, and 30 days at most".into()) }
}

/// The interval as it is typed. One that is not a whole number of minutes is rounded up.
pub fn spelled(every: Duration) -> String {
    match every.as_secs() {
        secs if secs > 0 && secs.is_multiple_of(86_400) => format!("{}d", secs / 86_400),
        secs if secs > 0 && secs.is_multiple_of(3_600) => format!("{}h", secs / 3_600),
        secs => format!("{}m", secs.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_they_are_spelled() {
        for text in OFFERED.into_iter().chain(["1m", "90m", "36h", "30d"]) {
            assert_eq!(parse(text).map(spelled).as_deref(), Ok(text), "{text}");
        }
        assert_eq!(parse("24h").map(spelled).as_deref(), Ok("1d"));
        for odd in
            ["", "6", "h", "6 h", "-6h", "6w", "0m", "31d", "99999999999999999999d", "18446744073709551615d", "6ü"]
        {
            assert!(parse(odd).is_err(), "{odd}");
        }
    }
}
