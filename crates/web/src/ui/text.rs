//! Words for people: times, numbers, and text from outside as `domain` makes it safe to look at. (Askama escapes it for HTML.)

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
pub(super) use domain::shown::{clipped, shown, shown_lines};
use serde_json::Value;

/// A sentence in its parts, and whether each stands between backticks: what a person types.
pub(super) fn with_code(text: &str) -> Vec<(bool, String)> {
    text.split('`')
        .enumerate()
        .map(|(nth, part)| (nth % 2 == 1, shown(part)))
        .filter(|(_, part)| !part.is_empty())
        .collect()
}

/// A time as a person says it now: `12 s ago`. The page's script keeps it true; the exact time is its title.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

impl When {
    pub fn new(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        Self { at: Some(at), now }
    }

    /// A dash when there is none.
    pub fn maybe(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Self {
        Self { at, now }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = self.at else { return f.write_str("–") };
        let (exact, words) = (at.to_rfc3339_opts(SecondsFormat::Millis, true), relative(at - self.now));
        write!(f, r#"<time datetime="{exact}" title="{}">{words}</time>"#, at.format("%Y-%m-%d %H:%M:%S UTC"))
    }
}

impl HtmlSafe for When {} // made of digits and our own words

/// A state as a coloured word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Badge(pub &'static str);

impl fmt::Display for Badge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"<span class="badge {0}">{0}</span>"#, self.0)
    }
}

impl HtmlSafe for Badge {} // names of states

/// `12 s ago`, `in 3 min`, `now`. The page's script says it in the same words.
fn relative(from_now: TimeDelta) -> String {
    let secs = from_now.num_seconds();
    match secs {
        0 => "now".into(),
        1.. => format!("in {}", span(secs)),
        _ => format!("{} ago", span(-secs)),
    }
}

/// A length of time in its largest unit: `90 s`, `12 min`, `5 h`, `3 d`.
pub(super) fn span(secs: i64) -> String {
    match secs {
        ..=99 => format!("{secs} s"),
        100..=5_999 => format!("{} min", secs / 60),
        6_000..=172_799 => format!("{} h", secs / 3_600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// `12,345`.
pub(super) fn number(n: i64) -> String {
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

pub(super) fn plural(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// A sum or a count that a provider gave, as a number or as its digits: `1,200.50`, `12,000`. Nobody says in which currency, so neither do we.
/// None: it is neither.
pub(super) fn money(value: &Value) -> Option<String> {
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

/// Millionths of a dollar: what something costs, to its first digits that matter.
pub(super) fn dollars(micros: i64) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn costs_are_told_to_the_digits_that_matter() {
        let cases =
            [(0, "nothing"), (7, "under $0.0001"), (1_234, "$0.0012"), (20_000, "$0.02"), (1_234_567_890, "$1,234.57")];
        for (micros, words) in cases {
            assert_eq!(dollars(micros), words);
        }
    }

    #[test]
    fn times_and_numbers_read_well() {
        let of = |secs| relative(TimeDelta::seconds(secs));
        let cases = [
            (0, "now"),
            (-1, "1 s ago"),
            (-99, "99 s ago"),
            (-100, "1 min ago"),
            (-7_300, "2 h ago"),
            (-200_000, "2 d ago"),
            (45, "in 45 s"),
        ];
        for (secs, words) in cases {
            assert_eq!(of(secs), words);
        }
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (-1_000, "-1,000")];
        for (n, words) in cases {
            assert_eq!(number(n), words);
        }
    }
}
