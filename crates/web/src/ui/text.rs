//! Parts of pages that are more than text: times that stay true, states in colour, and code in a sentence. (Askama escapes for HTML.)

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, Utc};
use domain::shown::{relative, shown};

/// Splits a sentence at its backticks. `true`: the part stands between two, and is what a person types.
pub(super) fn with_code(text: &str) -> Vec<(bool, String)> {
    text.split('`')
        .enumerate()
        .map(|(nth, part)| (nth % 2 == 1, shown(part)))
        .filter(|(_, part)| !part.is_empty())
        .collect()
}

/// A time as seen from now: `12 s ago`. The page's script keeps it true; the exact time is its title.
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
        let (exact, words) = (at.to_rfc3339_opts(SecondsFormat::Millis, true), relative(at, self.now));
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

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_time_is_told_in_words_with_the_exact_one_beside_it() {
        let at = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        assert_eq!(
            When::new(at, at + TimeDelta::seconds(12)).to_string(),
            r#"<time datetime="2024-10-04T00:00:00.000Z" title="2024-10-04 00:00:00 UTC">12 s ago</time>"#
        );
        assert_eq!(When::maybe(None, at).to_string(), "–");
        assert_eq!(Badge("dead").to_string(), r#"<span class="badge dead">dead</span>"#);
    }

    #[test]
    fn what_stands_between_backticks_is_typed() {
        let parts =
            |text| with_code(text).into_iter().map(|(is_code, part)| format!("{is_code}:{part}")).collect::<Vec<_>>();
        assert_eq!(parts("run `tributary up` now"), ["false:run ", "true:tributary up", "false: now"]);
        assert_eq!(parts("`a`"), ["true:a"]);
        assert_eq!(parts("plain"), ["false:plain"]);
        assert_eq!(parts(""), [] as [&str; 0]);
        assert_eq!(parts("odd `\u{202e}"), ["false:odd ", "true:⟨U+202E⟩"]);
    }
}
