//! Words for people: times, numbers, and text from outside as `domain` makes it safe to look at. (Askama escapes it for HTML.)

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
pub(super) use domain::shown::{clipped, shown, shown_lines};
pub(super) use engine::pull::words::figures::{dollars, money, number};

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

pub(super) fn plural(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
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
    }
}
