//! One day of a mailbox, as its provider counts it beside what is known of it here. A difference is told only if it was there before a sync that
//! came to its end, and is still there after it: what was on its way meanwhile is no difference.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::words;

/// The most differences of one kind that are named.
pub const MOST_NAMED: usize = 1_000;

/// A provider counts letters that its own list of changes may not have yet. So late they are there.
const LAG: TimeDelta = TimeDelta::minutes(10);

words! {
    /// The outcome of a day's last comparison.
    CheckState {
        /// Never counted.
        New = "new",
        /// Differences that no sync has settled yet.
        Reading = "reading",
        Equal = "equal",
        Differs = "differs",
        /// Before what the first sync read, which was capped.
        NotRead = "not_read",
        /// It could not be counted.
        Unknown = "unknown",
    }
}

/// The trace here of a letter that the provider counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Stored,
    /// The rule of this name left it out.
    Skipped(String),
    /// A person deleted its document, or decided that it is not read.
    KeptOut,
    /// It could not be read, and is listed as such.
    Failed,
    /// It was read once, and nothing is left of it.
    Lost,
}

/// The letters of a day, each in one place. Lists are in the order of the ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub n_provider: usize,
    pub n_stored: usize,
    /// By the rule that left them out.
    pub skipped: BTreeMap<String, usize>,
    pub n_kept_out: usize,
    pub n_failed: usize,
    /// Too new to be judged.
    pub n_waiting: usize,
    /// Came in before what was read.
    pub n_not_read: usize,
    /// The provider has them, and nothing here knows of them.
    pub missing: Vec<String>,
    /// Stored here, and the provider does not count them.
    pub surplus: Vec<String>,
    /// Those of the surplus that are too new to be judged.
    pub n_leaving: usize,
}

/// The letters that a provider counts on a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// By external id: when it came in, if that was told.
    pub letters: BTreeMap<String, Option<DateTime<Utc>>>,
    /// The end of the day.
    pub until: DateTime<Utc>,
}

impl Counted {
    /// The latest time at which a letter may have come in.
    fn latest(&self, id: &str) -> DateTime<Utc> {
        self.letters.get(id).copied().flatten().unwrap_or(self.until)
    }
}

impl Compared {
    /// Compares what the provider counts with what is known of these letters, and with the letters `here` that came in on that day. Letters from
    /// before `read_from` were not read.
    pub fn new(
        counted: &Counted,
        known: &HashMap<String, Known>,
        here: &[String],
        read_from: Option<DateTime<Utc>>,
    ) -> Self {
        let mut compared = Self { n_provider: counted.letters.len(), ..Self::default() };
        for (id, came_in) in &counted.letters {
            // Where its time was not told, and the day has both, it may have been left out.
            let earliest = came_in.unwrap_or(counted.until - TimeDelta::days(1));
            let is_unread = || read_from.is_some_and(|from| earliest < from);
            match known.get(id) {
                Some(Known::Stored) => compared.n_stored += 1,
                Some(Known::Skipped(rule)) => *compared.skipped.entry(rule.clone()).or_default() += 1,
                Some(Known::KeptOut) => compared.n_kept_out += 1,
                Some(Known::Failed) => compared.n_failed += 1,
                Some(Known::Lost) => compared.missing.push(id.clone()),
                None if is_unread() => compared.n_not_read += 1,
                None => compared.missing.push(id.clone()),
            }
        }
        compared.surplus = here.iter().filter(|id| !counted.letters.contains_key(*id)).cloned().collect();
        compared.surplus.sort_unstable();
        compared.surplus.dedup();
        compared
    }

    /// Whether there is nothing to look at again.
    pub fn is_equal(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty() && self.n_waiting == 0 && self.n_leaving == 0
    }

    pub fn n_skipped(&self) -> usize {
        self.skipped.values().sum()
    }

    /// The letters whose own time decides whether they are missing, and was not told.
    pub fn undated(&self, known: &HashMap<String, Known>, counted: &Counted, suspects: &Suspects) -> Vec<String> {
        let is_undated = |id: &&String| counted.letters.get(*id).is_some_and(Option::is_none);
        let is_late = counted.until > suspects.since - LAG;
        let missing = self.missing.iter().filter(|_| is_late);
        let unread = counted.letters.keys().filter(|id| self.n_not_read > 0 && !known.contains_key(*id));
        let mut undated: Vec<String> = missing.chain(unread).filter(is_undated).cloned().collect();
        undated.sort_unstable();
        undated.dedup();
        undated
    }

    /// Leaves as differences only what was suspected before and did not come in just then, and waits for the rest.
    pub fn judged(mut self, suspects: &Suspects, counted: &Counted) -> Self {
        let settled = suspects.since - LAG;
        let is_old = |id: &String| counted.latest(id) <= settled;
        let suspected: HashSet<&String> = suspects.missing.iter().collect();
        let is_cut = suspects.missing.len() >= MOST_NAMED;
        let (missing, waiting): (Vec<String>, Vec<String>) =
            self.missing.into_iter().partition(|id| is_old(id) && (is_cut || suspected.contains(id)));
        let suspected: HashSet<&String> = suspects.surplus.iter().collect();
        let is_cut = suspects.surplus.len() >= MOST_NAMED;
        let (surplus, leaving): (Vec<String>, Vec<String>) =
            self.surplus.into_iter().partition(|id| is_cut || suspected.contains(id));
        (self.missing, self.surplus) = (missing, surplus);
        self.n_waiting += waiting.len();
        self.n_leaving += leaving.len();
        self
    }

    /// Waits for every difference, because no sync has had the time to settle it.
    pub fn unjudged(mut self) -> Self {
        self.n_waiting += std::mem::take(&mut self.missing).len();
        self.n_leaving += std::mem::take(&mut self.surplus).len();
        self
    }

    /// Takes letters out of the surplus that the provider has after all, by name.
    pub fn without_surplus(mut self, found: &HashSet<String>) -> Self {
        self.surplus.retain(|id| !found.contains(id));
        self
    }

    pub fn state(&self) -> CheckState {
        match self {
            _ if !self.missing.is_empty() || !self.surplus.is_empty() => CheckState::Differs,
            _ if self.n_waiting > 0 || self.n_leaving > 0 => CheckState::Reading,
            _ if self.n_not_read > 0 && self.n_not_read == self.n_provider => CheckState::NotRead,
            _ => CheckState::Equal,
        }
    }
}

/// Differences that are looked at again once a sync that began after them has come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspects {
    /// At most [`MOST_NAMED`] of each. If there are so many, there may be more.
    pub missing: Vec<String>,
    pub surplus: Vec<String>,
    /// The time at which the letters were counted.
    pub since: DateTime<Utc>,
    /// How often they were compared already.
    pub rounds: u32,
}

impl Suspects {
    pub fn of(compared: &Compared, since: DateTime<Utc>, rounds: u32) -> Self {
        let named = |ids: &[String]| ids.iter().take(MOST_NAMED).cloned().collect();
        Self { missing: named(&compared.missing), surplus: named(&compared.surplus), since, rounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u32) -> Option<DateTime<Utc>> {
        Some(format!("2026-11-14T{hour:02}:00:00Z").parse().expect("a time"))
    }

    fn counted(letters: &[(&str, u32)]) -> Counted {
        let letters = letters.iter().map(|(id, hour)| ((*id).to_owned(), at(*hour))).collect();
        Counted { letters, until: "2026-11-15T00:00:00Z".parse().expect("a time") }
    }

    fn known(letters: &[(&str, Known)]) -> HashMap<String, Known> {
        letters.iter().map(|(id, known)| ((*id).to_owned(), known.clone())).collect()
    }

    fn names(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn every_letter_that_the_provider_counts_is_in_one_number() {
        let there = counted(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6)]);
        let here = known(&[
            ("a", Known::Stored),
            ("b", Known::Skipped("newsletter".into())),
            ("c", Known::KeptOut),
            ("d", Known::Failed),
        ]);
        let compared = Compared::new(&there, &here, &names(&["a", "z"]), None);
        assert_eq!((compared.missing.clone(), compared.surplus.clone()), (names(&["e", "f"]), names(&["z"])));
        let sum = compared.n_stored + compared.n_skipped() + compared.n_kept_out + compared.n_failed;
        assert_eq!((sum + compared.missing.len(), compared.n_provider), (6, 6));
        assert_eq!(compared.state(), CheckState::Differs);
        assert_eq!(compared.skipped["newsletter"], 1);

        let capped = Compared::new(&there, &here, &[], at(6));
        assert_eq!((capped.n_not_read, capped.missing), (1, names(&["f"])), "from before what was read");
        let before = Compared::new(&there, &HashMap::new(), &[], at(7));
        assert_eq!(before.state(), CheckState::NotRead);
    }

    #[test]
    fn a_difference_counts_only_if_it_outlives_a_sync() {
        let here = names(&["x", "y"]);
        let first = counted(&[("a", 1), ("b", 2), ("d", 12)]);
        let compared = Compared::new(&first, &HashMap::new(), &here, None);
        let suspects = Suspects::of(&compared, at(12).expect("a time"), 1);
        assert_eq!(compared.unjudged().state(), CheckState::Reading);

        // After the sync: b is stored, c came in, y is gone here too, z was deleted there. The list of changes does not have d yet.
        let second = counted(&[("a", 1), ("b", 2), ("c", 13), ("d", 12)]);
        let again = Compared::new(&second, &known(&[("b", Known::Stored)]), &names(&["x", "z"]), None);
        let judged = again.judged(&suspects, &second);
        assert_eq!((judged.missing.clone(), judged.surplus.clone()), (names(&["a"]), names(&["x"])));
        assert_eq!((judged.n_waiting, judged.n_leaving, judged.n_stored), (2, 1, 1));
        assert_eq!(judged.state(), CheckState::Differs);
        assert_eq!(judged.without_surplus(&HashSet::from(["x".to_owned()])).surplus, names(&[]));
    }

    #[test]
    fn where_too_many_differ_to_name_them_the_time_decides() {
        let many: Vec<String> = (0..MOST_NAMED + 5).map(|n| format!("m{n:05}")).collect();
        let there = Counted { letters: many.iter().map(|id| (id.clone(), at(1))).collect(), ..counted(&[]) };
        let suspects = Suspects::of(&Compared::new(&there, &HashMap::new(), &[], None), at(12).expect("a time"), 1);
        assert_eq!(suspects.missing.len(), MOST_NAMED);
        let mut later = there.clone();
        later.letters.insert("new".into(), at(13));
        let judged = Compared::new(&later, &HashMap::new(), &[], None).judged(&suspects, &later);
        assert_eq!((judged.missing.len(), judged.n_waiting), (MOST_NAMED + 5, 1));
    }

    #[test]
    fn a_letter_whose_time_was_not_told_is_missing_only_if_that_is_certain() {
        let mut there = counted(&[("told", 9)]);
        there.letters.insert("untold".into(), None);
        let nothing = HashMap::new();
        let suspects = |since: &str| Suspects {
            missing: names(&["told", "untold"]),
            surplus: Vec::new(),
            since: since.parse().expect("a time"),
            rounds: 1,
        };
        let compared = Compared::new(&there, &nothing, &[], None);
        // The day is long over.
        let later = suspects("2026-11-15T12:00:00Z");
        assert_eq!(compared.undated(&nothing, &there, &later), names(&[]));
        assert_eq!(compared.clone().judged(&later, &there).missing.len(), 2);
        // It may have come in a moment ago.
        let same_day = suspects("2026-11-14T12:00:00Z");
        assert_eq!(compared.undated(&nothing, &there, &same_day), names(&["untold"]));
        let judged = compared.judged(&same_day, &there);
        assert_eq!((judged.missing.clone(), judged.n_waiting), (names(&["told"]), 1));
        // The first sync read from eight o'clock on.
        let capped = Compared::new(&there, &nothing, &[], at(8));
        assert_eq!((capped.missing.clone(), capped.n_not_read), (names(&["told"]), 1));
        assert_eq!(capped.undated(&nothing, &there, &later), names(&["untold"]));
        // What was read once was not left out.
        let lost = Compared::new(&there, &known(&[("untold", Known::Lost)]), &[], at(20));
        assert_eq!((lost.missing, lost.n_not_read), (names(&["untold"]), 1));
    }

    #[test]
    fn nothing_on_either_side_is_equal() {
        let compared = Compared::new(&counted(&[]), &HashMap::new(), &[], at(1));
        assert!(compared.is_equal());
        assert_eq!(compared.state(), CheckState::Equal);
    }
}
