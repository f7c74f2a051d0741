//! The chart of arrivals: bars over the last hour, day or week, with an axis, and its numbers as a table.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::shown::{counted, number, plural};
use serde::Deserialize;
use store::activities::Bucket;
use store::queue::MOST_COUNTED;

use super::text::{Figure, Form, Moment};

const BAR_WIDTH: usize = 10;
const HEIGHT: i64 = 80;

/// How far the chart looks back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Span {
    #[default]
    #[serde(rename = "1h")]
    Hour,
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
}

impl Span {
    const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Week];

    /// The length of a bar, and how many there are.
    pub fn buckets(self) -> (Duration, i32) {
        match self {
            Self::Hour => (Duration::from_secs(60), 60),
            Self::Day => (Duration::from_secs(1_800), 48),
            Self::Week => (Duration::from_secs(7_200), 84),
        }
    }

    fn href(self) -> &'static str {
        match self {
            Self::Hour => "/?span=1h#flow-title",
            Self::Day => "/?span=24h#flow-title",
            Self::Week => "/?span=7d#flow-title",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Hour => "1 hour",
            Self::Day => "24 hours",
            Self::Week => "7 days",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Hour => "in the last hour",
            Self::Day => "in the last 24 hours",
            Self::Week => "in the last 7 days",
        }
    }

    fn bar(self) -> &'static str {
        match self {
            Self::Hour => "a minute",
            Self::Day => "in half an hour",
            Self::Week => "in two hours",
        }
    }

    /// The form of a time on the axis.
    fn form(self) -> Form {
        if self == Self::Week { Form::Weekday } else { Form::Clock }
    }
}

/// A drawing in its own units: a bar is ten wide.
pub(super) struct Chart {
    pub spans: Vec<SpanLink>,
    pub width: usize,
    pub height: i64,
    pub bars: Vec<Bar>,
    /// The axis on the left, from the top.
    pub levels: [Figure; 3],
    /// The axis below, from the left.
    pub times: Vec<Moment>,
    /// The chart in one sentence.
    pub summary: String,
    pub peak: String,
}

pub(super) struct SpanLink {
    pub href: &'static str,
    pub label: &'static str,
    pub is_current: bool,
}

pub(super) struct Bar {
    pub x: usize,
    pub y: i64,
    pub height: i64,
    pub is_empty: bool,
    pub said: String,
    pub at: Moment,
    /// The moment at which it begins, for the script.
    pub exact: DateTime<Utc>,
}

impl Chart {
    /// Makes the chart of counts, the oldest first. Each stops at [`MOST_COUNTED`].
    pub fn new(buckets: &[Bucket], span: Span) -> Self {
        let most = buckets.iter().map(|bucket| bucket.n).max().unwrap_or(0);
        let (top, is_more) = (level_above(most), most >= MOST_COUNTED);
        let bar = |(index, bucket): (usize, &Bucket)| {
            // A single event among thousands is still seen.
            let height = if bucket.n == 0 { 0 } else { (bucket.n * HEIGHT / top).max(2) };
            Bar {
                x: index * BAR_WIDTH,
                y: HEIGHT - height,
                height,
                is_empty: bucket.n == 0,
                said: match bucket.n {
                    1 => "1 event".into(),
                    n => format!("{} events", counted(n, MOST_COUNTED)),
                },
                at: Moment { at: bucket.begins, form: Form::Bucket },
                exact: bucket.begins,
            }
        };
        let sum: i64 = buckets.iter().map(|bucket| bucket.n).sum();
        let step = (buckets.len() / 4).max(1);
        Self {
            spans: Span::ALL
                .map(|one| SpanLink { href: one.href(), label: one.label(), is_current: one == span })
                .into(),
            width: buckets.len() * BAR_WIDTH,
            height: HEIGHT,
            bars: buckets.iter().enumerate().map(bar).collect(),
            levels: [top, top / 2, 0].map(Figure::new),
            times: buckets.iter().step_by(step).map(|b| Moment { at: b.begins, form: span.form() }).collect(),
            summary: match sum {
                0 => format!("Nothing arrived {}", span.in_words()),
                sum if is_more => format!("{}+ events {}", number(sum), span.in_words()),
                sum => format!("{} {}", plural(sum, "event", "events"), span.in_words()),
            },
            peak: match sum {
                0 => String::new(),
                _ => format!("at most {} {}", counted(most, MOST_COUNTED), span.bar()),
            },
        }
    }

    /// The bars that are not empty, the newest first.
    pub fn rows(&self) -> impl Iterator<Item = &Bar> {
        self.bars.iter().rev().filter(|bar| !bar.is_empty)
    }
}

/// The upper end of the axis: a round number that half can be taken of.
fn level_above(most: i64) -> i64 {
    let mut scale = 1;
    loop {
        if let Some(level) = [2, 4, 10].map(|step| step * scale).into_iter().find(|level| *level >= most) {
            return level;
        }
        scale *= 10;
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn buckets(counts: &[i64]) -> Vec<Bucket> {
        let begins = |nth: usize| DateTime::UNIX_EPOCH + TimeDelta::minutes(nth as i64);
        counts.iter().enumerate().map(|(nth, n)| Bucket { begins: begins(nth), n: *n }).collect()
    }

    #[test]
    fn bars_are_as_high_as_their_share_of_the_axis() {
        let mut counts = vec![0; 60];
        (counts[0], counts[58], counts[59]) = (1, 800, 400);
        let chart = Chart::new(&buckets(&counts), Span::Hour);
        let drawn: Vec<_> = chart.rows().map(|bar| (bar.x, bar.y, bar.height, bar.said.as_str())).collect();
        assert_eq!(drawn, [(590, 48, 32, "400 events"), (580, 16, 64, "800 events"), (0, 78, 2, "1 event")]);
        assert_eq!(chart.levels, [1_000, 500, 0].map(Figure::new));
        assert_eq!(
            (chart.summary.as_str(), chart.peak.as_str()),
            ("1,201 events in the last hour", "at most 800 a minute")
        );
        assert_eq!((chart.width, chart.bars.len(), chart.times.len()), (600, 60, 4));
    }

    #[test]
    fn the_axis_ends_at_a_round_number_that_has_a_half() {
        for (most, top) in [(0, 2), (1, 2), (2, 2), (3, 4), (5, 10), (11, 20), (21, 40), (81, 100), (1_000, 1_000)] {
            assert_eq!(level_above(most), top, "{most}");
            assert_eq!(level_above(most) % 2, 0);
        }
    }

    #[test]
    fn what_was_not_counted_to_the_end_is_at_least_so_many() {
        let chart = Chart::new(&buckets(&[1, MOST_COUNTED]), Span::Week);
        assert_eq!(chart.bars[1].said, "1,000+ events");
        assert_eq!(
            (chart.summary.as_str(), chart.peak.as_str()),
            ("1,001+ events in the last 7 days", "at most 1,000+ in two hours")
        );
    }

    #[test]
    fn a_quiet_day_says_so() {
        let chart = Chart::new(&buckets(&[0; 48]), Span::Day);
        assert!(chart.rows().next().is_none() && chart.peak.is_empty());
        assert_eq!(chart.summary, "Nothing arrived in the last 24 hours");
        assert!(Chart::new(&[], Span::Hour).bars.is_empty());
    }
}
