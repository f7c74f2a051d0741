//! Numbers, times and sizes as people read them, on pages and on the command line.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::Value;

/// `12,345`.
pub fn number(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count that stops at `most`: from there on it only says that there are at least as many.
pub fn counted(n: i64, most: i64) -> String {
    if n < most { number(n) } else { format!("{}+", number(most)) }
}

/// `1 job`, `1,204 jobs`.
pub fn plural(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// A sum or a count that a provider gave, as a number or as its digits: `1,200.50`, `12,000`. The currency is not known, so none is
/// shown. None: it is neither.
pub fn money(value: &Value) -> Option<String> {
    let sum = match value {
        Value::Number(sum) => sum.as_f64()?,
        Value::String(text) => text.trim().parse().ok().filter(|sum: &f64| sum.is_finite())?,
        _ => return None,
    };
    let hundredths = (sum * 100.0).round();
    if hundredths.abs() > 1e15 {
        return None; // a double has no cents there
    }
    let hundredths = hundredths as i64;
    let (whole, part) = (number((hundredths / 100).abs()), hundredths.abs() % 100);
    let sign = if hundredths < 0 { "-" } else { "" };
    Some(if part == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part:02}") })
}

/// A sum in its currency, if that is known: `1,200.50 EUR`. What is no sum is shown as it is.
pub fn money_in(value: &Value, currency: Option<&str>) -> String {
    match (money(value), value, currency) {
        (Some(sum), _, Some(currency)) => format!("{sum} {currency}"),
        (Some(sum), ..) => sum,
        (None, Value::String(text), _) => text.clone(),
        (None, Value::Null, _) => String::new(),
        (None, other, _) => other.to_string(),
    }
}

/// A provider's date as people write one: `1 Dec 2026`. Anything else is shown as it is.
pub fn day(text: &str) -> String {
    let date = text.get(..10).and_then(|day| day.parse::<NaiveDate>().ok());
    date.map_or_else(|| text.to_owned(), |date| date.format("%-d %b %Y").to_string())
}

/// A cost in millionths of a dollar, to its first digits that matter.
pub fn dollars(micros: i64) -> String {
    match micros {
        ..=0 => "nothing".into(),
        1..50 => "under $0.0001".into(),
        50..10_000 => format!("${:.4}", micros as f64 / 1e6),
        _ => {
            let cents = (micros + 5_000) / 10_000;
            format!("${}.{:02}", number(cents / 100), cents % 100)
        }
    }
}

/// `9,999 bytes`, `65 kB`, `52 MB`.
pub fn bytes(n: u64) -> String {
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    match n {
        ..10_000 => plural(n, "byte", "bytes"),
        10_000..10_000_000 => format!("{} kB", number(n / 1_000)),
        _ => format!("{} MB", number(n / 1_000_000)),
    }
}

/// A length of time in the largest unit of which it has two: `90 s`, `12 min`, `5 h`, `3 d`. So a longer one never has the smaller number of units.
pub fn span(secs: i64) -> String {
    match secs {
        ..=119 => format!("{secs} s"),
        120..=7_199 => format!("{} min", secs / 60),
        7_200..=172_799 => format!("{} h", secs / 3_600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// The length between two runs, in the largest unit that fits it exactly: `90 s`, `15 min`, `1 h`, `1 d`.
pub fn interval(secs: i64) -> String {
    match secs {
        secs if secs > 0 && secs % 86_400 == 0 => format!("{} d", secs / 86_400),
        secs if secs > 0 && secs % 3_600 == 0 => format!("{} h", secs / 3_600),
        secs if secs > 0 && secs % 60 == 0 => format!("{} min", secs / 60),
        secs => span(secs),
    }
}

/// A short length of time, to a tenth of a second: `0.4 s`. A longer one as [`span`] says it.
pub fn duration(length: TimeDelta) -> String {
    match length.num_milliseconds() {
        millis @ ..120_000 => format!("{:.1} s", millis as f64 / 1_000.0),
        millis => span(millis / 1_000),
    }
}

/// A time as seen from now: `12 s ago`, `in 3 min`, `now`. The pages' script says it in the same words.
pub fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (at - now).num_seconds() {
        0 => "now".into(),
        secs @ 1.. => format!("in {}", span(secs)),
        secs => format!("{} ago", span(-secs)),
    }
}

/// A rate per second: `1.5`, `2,500`.
pub fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { number(per_second.round() as i64) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-1_000, "-1,000")];
        for (n, words) in cases {
            assert_eq!(number(n), words);
        }
    }

    #[test]
    fn one_is_singular() {
        for (n, words) in [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (1_204, "1,204 jobs")] {
            assert_eq!(plural(n, "job", "jobs"), words);
        }
    }

    #[test]
    fn sums_are_plain_and_what_is_none_is_not_made_one() {
        for (value, words) in [
            (json!(0), "0"),
            (json!(100.0), "100"),
            (json!(362.07), "362.07"),
            (json!("1200.5"), "1,200.50"),
            (json!("1000000"), "1,000,000"),
            (json!(-12.3), "-12.30"),
            (json!(-0.001), "0"),
            (json!(0.1 + 0.2), "0.30"),
        ] {
            assert_eq!(money(&value).as_deref(), Some(words), "{value}");
        }
        for odd in
            [json!("about a million"), json!("NaN"), json!("inf"), json!(""), json!(null), json!([1]), json!(1e300)]
        {
            assert_eq!(money(&odd), None, "{odd}");
        }
    }

    #[test]
    fn sums_have_their_currency_and_days_are_days() {
        for (value, currency, words) in [
            (json!(1200.5), Some("EUR"), "1,200.50 EUR"),
            (json!("48600"), None, "48,600"),
            (json!("about a million"), Some("EUR"), "about a million"),
            (json!(null), Some("EUR"), ""),
        ] {
            assert_eq!(money_in(&value, currency), words);
        }
        for (text, words) in [("2026-12-01T00:00:00Z", "1 Dec 2026"), ("soon", "soon"), ("", "")] {
            assert_eq!(day(text), words);
        }
    }

    #[test]
    fn intervals_have_the_largest_unit_that_fits_exactly() {
        for (secs, words) in [
            (0, "0 s"),
            (45, "45 s"),
            (60, "1 min"),
            (90, "90 s"),
            (900, "15 min"),
            (3_600, "1 h"),
            (5_400, "90 min"),
            (21_600, "6 h"),
            (86_400, "1 d"),
            (129_600, "36 h"),
            (604_800, "7 d"),
        ] {
            assert_eq!(interval(secs), words, "{secs}");
        }
    }

    #[test]
    fn costs_are_told_to_the_digits_that_matter() {
        let cases =
            [(0, "nothing"), (7, "under $0.0001"), (1_234, "$0.0012"), (20_000, "$0.02"), (1_234_567_890, "$1,234.57")];
        for (micros, words) in cases {
            assert_eq!(dollars(micros), words);
        }
    }

    #[test]
    fn sizes_have_their_unit() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (9_999, "9,999 bytes"),
            (65_536, "65 kB"),
            (52_428_800, "52 MB"),
            (u64::MAX, "9,223,372,036,854 MB"),
        ];
        for (n, words) in cases {
            assert_eq!(bytes(n), words);
        }
    }

    #[test]
    fn times_are_told_from_now() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(365);
        let cases = [
            (0, "now"),
            (-1, "1 s ago"),
            (-119, "119 s ago"),
            (-120, "2 min ago"),
            (-7_199, "119 min ago"),
            (-7_300, "2 h ago"),
            (-200_000, "2 d ago"),
            (45, "in 45 s"),
            (86_400, "in 24 h"),
        ];
        for (secs, words) in cases {
            assert_eq!(relative(now + TimeDelta::seconds(secs), now), words);
        }
    }

    #[test]
    fn lengths_and_rates_have_a_decimal_where_it_matters() {
        for (millis, words) in [(0, "0.0 s"), (400, "0.4 s"), (119_900, "119.9 s"), (120_000, "2 min")] {
            assert_eq!(duration(TimeDelta::milliseconds(millis)), words);
        }
        for (per_second, words) in [(0.25, "0.2"), (1.5, "1.5"), (9.99, "10.0"), (61.7, "62"), (2_500.0, "2,500")] {
            assert_eq!(rate(per_second), words);
        }
    }
}
