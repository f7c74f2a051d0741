//! Syncs that are asked for while another one of the same source is under way. They run after it.

use domain::JobKind;
use serde_json::Value;
use store::jobs::{AskedAgain, Job};

/// The most records that one job reads again: as many as one commit writes.
pub(crate) const MOST_ITEMS: usize = 500;

/// Whether a live job does what is asked, because it has not begun and will read all of it.
pub(super) fn is_covered(live: &Job, kind: JobKind, items: &[String]) -> bool {
    let is_whole = live.checkpoint_data.get("items").and_then(Value::as_array).is_none_or(Vec::is_empty);
    let is_as_strong = live.kind == JobKind::Full || (kind != JobKind::Full && items.is_empty());
    live.started_at.is_none() && is_whole && is_as_strong
}

/// Adds an ask to those that run after a job. One sync of the whole source is enough: the strongest, first. One of single records follows it,
/// unless a full one reads them anyway. Returns how many records are left out, because one job reads at most [`MOST_ITEMS`].
pub(super) fn add(asked: &mut Vec<AskedAgain>, ask: AskedAgain) -> usize {
    let mut left_out = 0;
    let is_whole = |asked: &AskedAgain| asked.items.is_empty();
    let known = asked.iter_mut().find(|known| is_whole(known) == is_whole(&ask));
    match known {
        Some(known) if is_whole(&ask) => {
            if ask.kind == JobKind::Full {
                known.kind = JobKind::Full;
            }
        }
        Some(known) => {
            let new: Vec<String> = ask.items.into_iter().filter(|item| !known.items.contains(item)).collect();
            known.items.extend(new);
            left_out = known.items.len().saturating_sub(MOST_ITEMS);
            known.items.truncate(MOST_ITEMS);
        }
        None if is_whole(&ask) => asked.insert(0, ask),
        None => asked.push(ask),
    }
    if asked.iter().any(|asked| asked.kind == JobKind::Full) {
        asked.retain(is_whole);
        left_out = 0;
    }
    // Jobs are listed by id, the newest first: the one that runs first has the smaller id.
    if let [first, second] = asked.as_mut_slice()
        && first.id.0 > second.id.0
    {
        std::mem::swap(&mut first.id, &mut second.id);
    }
    left_out
}

#[cfg(test)]
mod tests {
    use domain::JobId;

    use super::*;

    fn ask(kind: JobKind, items: &[&str]) -> AskedAgain {
        let items = items.iter().map(|item| (*item).to_owned()).collect();
        AskedAgain { id: JobId::new(), kind, by: "person".into(), items }
    }

    #[test]
    fn one_ask_of_the_whole_and_one_of_records_are_kept_the_strongest_first() {
        use JobKind::{Delta, Full};
        type Asks = &'static [(JobKind, &'static [&'static str])];
        let rows: [(Asks, Asks); 8] = [
            (&[(Delta, &[])], &[(Delta, &[])]),
            (&[(Delta, &[]), (Delta, &[])], &[(Delta, &[])]),
            (&[(Delta, &[]), (Full, &[])], &[(Full, &[])]),
            (&[(Full, &[]), (Delta, &[])], &[(Full, &[])]),
            (&[(Delta, &["a"]), (Delta, &["b", "a"])], &[(Delta, &["a", "b"])]),
            (&[(Delta, &["a"]), (Delta, &[])], &[(Delta, &[]), (Delta, &["a"])]),
            (&[(Delta, &["a"]), (Delta, &[]), (Full, &[])], &[(Full, &[])]),
            (&[(Full, &[]), (Delta, &["a"])], &[(Full, &[])]),
        ];
        for (asks, kept) in rows {
            let mut list = Vec::new();
            for (kind, items) in asks {
                add(&mut list, ask(*kind, items));
            }
            let found: Vec<(JobKind, Vec<&str>)> =
                list.iter().map(|asked| (asked.kind, asked.items.iter().map(String::as_str).collect())).collect();
            let kept: Vec<(JobKind, Vec<&str>)> = kept.iter().map(|(kind, items)| (*kind, items.to_vec())).collect();
            assert_eq!(found, kept, "{asks:?}");
            assert!(list.is_sorted_by_key(|asked| asked.id.0), "not listed in the order in which they run: {asks:?}");
        }
    }

    #[test]
    fn records_that_are_too_many_for_one_job_are_counted() {
        let names = |from: usize, n: usize| (from..from + n).map(|n| format!("contact:{n}")).collect::<Vec<_>>();
        let of = |items: Vec<String>| AskedAgain { items, ..ask(JobKind::Delta, &[]) };
        let mut list = Vec::new();
        assert_eq!(add(&mut list, of(names(0, 300))), 0);
        assert_eq!(add(&mut list, of(names(200, 300))), 0, "a hundred were asked for already");
        assert_eq!(add(&mut list, of(names(450, 100))), 50);
        assert_eq!(list[0].items.len(), MOST_ITEMS);
        assert_eq!(add(&mut list, ask(JobKind::Full, &[])), 0, "it reads all of them");
    }

    #[test]
    fn the_first_ask_keeps_its_id() {
        let (first, second) = (ask(JobKind::Delta, &[]), ask(JobKind::Full, &[]));
        let mut list = vec![first.clone()];
        add(&mut list, second);
        assert_eq!(list, [AskedAgain { kind: JobKind::Full, ..first }]);
    }
}
