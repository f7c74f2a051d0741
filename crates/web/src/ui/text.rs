//! Parts of pages that are more than text: times that stay true, states in colour, and code in a sentence. (Askama escapes for HTML.)

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, Utc};
use domain::shown::{counted, number, relative, shown};

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

/// A moment in the form that the script gives it for the reader's language and time zone; without it, in UTC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub at: DateTime<Utc>,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `14:30`.
    Clock,
    /// `Tue 17`, for a week.
    Weekday,
    /// `Tue 14:30`.
    Bucket,
    /// `17 November 2026`.
    Day,
    /// `November 2026`.
    Month,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Weekday => "weekday",
            Self::Bucket => "bucket",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    fn in_utc(self) -> &'static str {
        match self {
            Self::Clock => "%H:%M",
            Self::Weekday => "%a %-d",
            Self::Bucket => "%a %H:%M",
            Self::Day => "%-d %B %Y",
            Self::Month => "%B %Y",
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let words = self.at.format(self.form.in_utc());
        write!(f, r#"<time datetime="{exact}" data-form="{}">{words}</time>"#, self.form.name())
    }
}

impl HtmlSafe for Moment {} // made of digits and names of months and days

/// A number that stands alone; the script writes it in the reader's own form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    n: Option<i64>,
    /// The number as the server writes it, or words instead of one.
    pub words: String,
}

impl Figure {
    pub fn new(n: i64) -> Self {
        Self { n: Some(n), words: number(n) }
    }

    /// A count that stops at `most`, and then means "at least".
    pub fn counted(n: i64, most: i64) -> Self {
        Self { n: (n < most).then_some(n), words: counted(n, most) }
    }

    /// Words of ours in the place of a number.
    pub fn words(words: impl Into<String>) -> Self {
        Self { n: None, words: words.into() }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n {
            Some(n) => write!(f, r#"<data value="{n}">{}</data>"#, self.words),
            None => f.write_str(&self.words),
        }
    }
}

impl HtmlSafe for Figure {} // made of digits and our own words

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
    fn a_moment_names_the_form_that_the_script_gives_it() {
        let at = DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(870);
        let told = |form| Moment { at, form }.to_string();
        assert_eq!(told(Form::Clock), r#"<time datetime="2024-10-04T14:30:00.000Z" data-form="clock">14:30</time>"#);
        assert!(told(Form::Weekday).ends_with(r#"data-form="weekday">Fri 4</time>"#));
        assert!(told(Form::Bucket).ends_with(r#"data-form="bucket">Fri 14:30</time>"#));
        assert!(told(Form::Day).ends_with(r#"data-form="day">4 October 2024</time>"#));
        assert!(told(Form::Month).ends_with(r#"data-form="month">October 2024</time>"#));
    }

    #[test]
    fn a_figure_has_its_number_for_the_script() {
        assert_eq!(Figure::new(12_345).to_string(), r#"<data value="12345">12,345</data>"#);
        assert_eq!(Figure::counted(999, 1_000).to_string(), r#"<data value="999">999</data>"#);
        assert_eq!(Figure::counted(1_000, 1_000).to_string(), "1,000+");
        assert_eq!(Figure::words("42%").to_string(), "42%");
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
