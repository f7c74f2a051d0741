//! Facets: how many of the matching documents each source, type, time, channel, kind of paper and supplier has. Pure.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Datelike as _, Months, NaiveDate, Utc};
use store::memory::Traits;
use uuid::Uuid;

/// The most values that one facet lists.
const MOST_VALUES: usize = 20;
/// Documents of so many months are counted by month, those of more by year.
const MOST_MONTHS: i32 = 18;

/// The matching documents, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    pub n_matches: usize,
    /// There may be more matching documents than were counted.
    pub is_at_least: bool,
    /// Each list has the most frequent value first.
    pub sources: Vec<Facet<Uuid>>,
    pub types: Vec<Facet<String>>,
    pub channels: Vec<Facet<Uuid>>,
    pub papers: Vec<Facet<String>>,
    pub suppliers: Vec<Facet<String>>,
    /// Months or years, the newest first.
    pub times: Vec<Period>,
}

/// A value, and the number of matching documents that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facet<T> {
    pub value: T,
    /// For people.
    pub name: String,
    pub n: usize,
}

/// A month or a year (UTC), and the number of matching documents in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// Such as 2026-11, or 2026.
    pub name: String,
    /// Its first day.
    pub since: NaiveDate,
    /// Its last day.
    pub until: NaiveDate,
    pub n: usize,
}

pub(super) fn count(matching: &[&Traits], is_at_least: bool) -> Facets {
    let of = |document: &&Traits| (document.source_id, document.source_name.clone());
    Facets {
        n_matches: matching.len(),
        is_at_least,
        sources: frequent(matching.iter().map(of)),
        types: frequent(matching.iter().map(|d| (d.document_type.clone(), d.document_type.clone()))),
        channels: frequent(matching.iter().filter(|document| document.is_of_channel).map(of)),
        papers: said(matching, |document| document.paper.as_ref()),
        suppliers: said(matching, |document| document.supplier.as_ref()),
        times: periods(matching.iter().map(|document| document.at)),
    }
}

fn said<'a>(matching: &[&'a Traits], of: impl Fn(&'a Traits) -> Option<&'a String>) -> Vec<Facet<String>> {
    frequent(matching.iter().filter_map(|document| of(document)).map(|value| (value.clone(), value.clone())))
}

fn frequent<T: Clone + Ord + std::hash::Hash>(values: impl Iterator<Item = (T, String)>) -> Vec<Facet<T>> {
    let mut counts: HashMap<T, (String, usize)> = HashMap::new();
    for (value, name) in values {
        counts.entry(value).or_insert((name, 0)).1 += 1;
    }
    let mut facets: Vec<Facet<T>> = counts.into_iter().map(|(value, (name, n))| Facet { value, name, n }).collect();
    facets.sort_by(|a, b| b.n.cmp(&a.n).then_with(|| a.name.cmp(&b.name)).then_with(|| a.value.cmp(&b.value)));
    facets.truncate(MOST_VALUES);
    facets
}

fn periods(times: impl Iterator<Item = DateTime<Utc>>) -> Vec<Period> {
    let months: Vec<NaiveDate> = times.filter_map(|at| at.date_naive().with_day(1)).collect();
    let (Some(first), Some(last)) = (months.iter().min(), months.iter().max()) else { return Vec::new() };
    let number = |month: &NaiveDate| month.year() * 12 + i32::try_from(month.month0()).unwrap_or_default();
    let is_by_month = number(last) - number(first) < MOST_MONTHS;
    let mut counts: BTreeMap<NaiveDate, usize> = BTreeMap::new();
    for month in &months {
        let since = if is_by_month { Some(*month) } else { month.with_month(1) };
        *counts.entry(since.unwrap_or(*month)).or_default() += 1;
    }
    let period = |(since, n): (NaiveDate, usize)| {
        let length = Months::new(if is_by_month { 1 } else { 12 });
        let until = since.checked_add_months(length).and_then(|next| next.pred_opt()).unwrap_or(since);
        Period { name: since.format(if is_by_month { "%Y-%m" } else { "%Y" }).to_string(), since, until, n }
    };
    counts.into_iter().rev().map(period).take(MOST_VALUES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(source: u128, kind: &str, is_of_channel: bool, at: &str) -> Traits {
        Traits {
            document_id: Uuid::nil(),
            document_type: kind.into(),
            source_id: Uuid::from_u128(source),
            source_name: format!("source {source}"),
            is_of_channel,
            paper: is_of_channel.then(|| "invoice".into()),
            supplier: None,
            at: format!("{at}T12:00:00Z").parse().expect("a time"),
        }
    }

    #[test]
    fn every_value_is_counted_and_the_most_frequent_comes_first() {
        let documents = [
            document(1, "note", false, "2026-11-01"),
            document(2, "activity.email", true, "2026-11-30"),
            document(2, "activity.email", true, "2026-10-31"),
            document(2, "activity.sms", true, "2025-12-31"),
        ];
        let facets = count(&documents.iter().collect::<Vec<_>>(), true);
        let by_id = |facets: &[Facet<Uuid>]| facets.iter().map(|f| (f.value.as_u128(), f.n)).collect::<Vec<_>>();
        assert_eq!((facets.n_matches, facets.is_at_least), (4, true));
        assert_eq!(by_id(&facets.sources), [(2, 3), (1, 1)]);
        assert_eq!(by_id(&facets.channels), [(2, 3)]);
        let papers: Vec<(&str, usize)> = facets.papers.iter().map(|f| (f.value.as_str(), f.n)).collect();
        assert_eq!((papers, facets.suppliers.len()), (vec![("invoice", 3)], 0));
        let types: Vec<(&str, usize)> = facets.types.iter().map(|f| (f.value.as_str(), f.n)).collect();
        assert_eq!(types, [("activity.email", 2), ("activity.sms", 1), ("note", 1)]);
        let times: Vec<(&str, usize)> = facets.times.iter().map(|f| (f.name.as_str(), f.n)).collect();
        assert_eq!(times, [("2026-11", 2), ("2026-10", 1), ("2025-12", 1)]);
        assert_eq!(
            (facets.times[0].since.to_string(), facets.times[0].until.to_string()),
            ("2026-11-01".into(), "2026-11-30".into())
        );
        assert_eq!(count(&[], false), Facets::default());
    }

    #[test]
    fn a_long_time_is_counted_by_year() {
        let documents = ["2026-11-01", "2026-01-31", "2019-06-15"].map(|at| document(1, "note", false, at));
        let facets = count(&documents.iter().collect::<Vec<_>>(), false);
        let times: Vec<(String, usize)> =
            facets.times.iter().map(|f| (format!("{} to {}", f.since, f.until), f.n)).collect();
        assert_eq!(times, [("2026-01-01 to 2026-12-31".into(), 2), ("2019-01-01 to 2019-12-31".into(), 1)]);
    }
}
