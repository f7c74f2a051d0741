//! Numbers of cells as their format shows them: days, times, shares, decimals.

use crate::day;

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// With so many decimals at least. Further ones are kept, whatever the format says.
    Number {
        decimals: usize,
    },
    /// A hundred times the number, and a sign.
    Percent {
        decimals: usize,
    },
    Date,
    Time,
    DateTime,
    /// Hours that may be more than a day has.
    Hours,
}

pub(super) const PLAIN: Shown = Shown::Number { decimals: 0 };

/// The formats that every program has under these numbers.
pub(super) fn of_number(id: &str) -> Shown {
    match id.parse::<u32>() {
        Ok(2 | 4 | 7 | 8 | 39 | 40 | 43 | 44) => Shown::Number { decimals: 2 },
        Ok(9) => Shown::Percent { decimals: 0 },
        Ok(10) => Shown::Percent { decimals: 2 },
        Ok(14..=17) => Shown::Date,
        Ok(18..=21 | 45 | 47) => Shown::Time,
        Ok(22) => Shown::DateTime,
        Ok(46) => Shown::Hours,
        _ => PLAIN,
    }
}

/// A format by its code: whether it has parts of a date, of a time, or both. What is quoted or in brackets is no part.
pub(super) fn of_code(code: &str) -> Shown {
    let (mut is_quoted, mut in_brackets, mut is_escaped) = (false, false, false);
    let (mut plain, mut bracketed) = (String::new(), String::new());
    for c in code.split(';').next().unwrap_or_default().chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            // A blank as wide as the next character, or the next as often as there is room.
            '\\' | '_' | '*' => is_escaped = true,
            '[' => in_brackets = true,
            ']' => {
                if matches!(bracketed.as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss") {
                    return Shown::Hours;
                }
                (in_brackets, bracketed) = (false, String::new());
            }
            c if in_brackets => bracketed.push(c.to_ascii_lowercase()),
            c => plain.push(c.to_ascii_lowercase()),
        }
    }
    if plain == "general" || plain == "standard" || plain == "@" {
        return PLAIN;
    }
    let has = |part: &str| plain.contains(part);
    let decimals = plain.split_once('.').map_or(0, |(_, after)| after.bytes().take_while(|byte| *byte == b'0').count());
    match (has("y") || has("d") || has("mmm"), has("h") || has("s")) {
        (true, true) => Shown::DateTime,
        (true, false) => Shown::Date,
        (false, true) => Shown::Time,
        (false, false) if has("%") => Shown::Percent { decimals },
        (false, false) => Shown::Number { decimals: if has("e+") { 0 } else { decimals } },
    }
}

pub(super) fn in_words(number: f64, shown: Shown, is_1904: bool) -> String {
    let days = if is_1904 { number + 1_462.0 } else { number };
    match shown {
        Shown::Number { decimals } => with_decimals(number, decimals),
        Shown::Percent { decimals } => format!("{}%", with_decimals(number * 100.0, decimals)),
        Shown::Hours if (0.0..1e9).contains(&number) => {
            let seconds = (number * 86_400.0).round() as u64;
            clock(seconds / 3_600, seconds)
        }
        _ if !(0.0..2_958_466.0).contains(&days) => with_decimals(number, 0),
        shown => {
            let seconds = ((days.fract() * 86_400.0).round() as u64).min(86_399);
            let time = clock(seconds / 3_600, seconds);
            match shown {
                Shown::Time => time,
                Shown::DateTime => format!("{} {time}", date(days as i64)),
                _ => date(days as i64),
            }
        }
    }
}

fn clock(hours: u64, seconds: u64) -> String {
    let time = format!("{hours:02}:{:02}", seconds / 60 % 60);
    if seconds.is_multiple_of(60) { time } else { format!("{time}:{:02}", seconds % 60) }
}

/// As people write it: a sum of 0.1 and 0.2 is 0.3.
fn with_decimals(number: f64, decimals: usize) -> String {
    let rounded = format!("{number:.10}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    let n_kept = short.split_once('.').map_or(0, |(_, after)| after.len());
    match n_kept < decimals {
        true => format!("{number:.*}", decimals.min(10)),
        false => short.to_owned(),
    }
}

/// The day of a number: 1 is 1900-01-01, and 60 is a day that was not.
fn date(days: i64) -> String {
    day::since_1970(if days < 60 { days + 1 } else { days } - 25_569)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_their_format_says() {
        for (number, code, expected) in [
            (0.1 + 0.2, "General", "0.3"),
            (1_234_567.0, "#,##0.00", "1234567.00"),
            (4.123, "0.00", "4.123"),
            (-4.2, "#,##0.00 [$€-407];[Red]-#,##0.00 [$€-407]", "-4.20"),
            (0.125, "0.0%", "12.5%"),
            (0.07, "0%", "7%"),
            (0.000_001_5, "0.00E+00", "0.0000015"),
            (45_000.0, "yyyy\\-mm\\-dd", "2023-03-15"),
            (45_000.5, "dd.mm.yyyy hh:mm", "2023-03-15 12:00"),
            (45_000.0, "mmm", "2023-03-15"),
            (0.25, "h:mm", "06:00"),
            (1.5, "[h]:mm", "36:00"),
            (1.0, "m/d/yy", "1900-01-01"),
            (61.0, "m/d/yy", "1900-03-01"),
            (12.5, "0.0\" days\"", "12.5"),
            (3.0, "_-* #,##0_d", "3"),
            (7.0, "[$-409]0", "7"),
        ] {
            assert_eq!(in_words(number, of_code(code), false), expected, "{number} as {code}");
        }
        assert_eq!(in_words(43_538.0, Shown::Date, true), "2023-03-15");
    }
}
