//! The days of a mailbox in plain words, for pages, the API and the command line.

use chrono::NaiveDate;
use domain::mail::check::CheckState;
use domain::shown::plural;
use store::mail::checks::Check;

/// The line of a mailbox that says whether something was missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub tone: Tone,
    /// A sentence without a full stop.
    pub what: String,
    /// The first and the last day that it speaks of; none while nothing was counted.
    pub days: Option<(NaiveDate, NaiveDate)>,
}

/// The colour of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Green: every letter that the provider counts is accounted for.
    Equal,
    /// Grey: nothing was counted yet, or something is on its way.
    Waiting,
    /// Red: letters differ.
    Differs,
}

impl Line {
    /// Sums up the days of a mailbox, the newest first. `who` is its provider.
    pub fn of(who: &str, checks: &[Check]) -> Self {
        let of = |state: CheckState| checks.iter().filter(move |check| check.state == state);
        let span = |days: &[NaiveDate]| days.last().copied().zip(days.first().copied());
        let red: Vec<NaiveDate> = of(CheckState::Differs).map(|check| check.day).collect();
        if !red.is_empty() {
            let missing = of(CheckState::Differs).map(|check| i64::from(check.n_missing)).sum();
            let surplus = of(CheckState::Differs).map(|check| i64::from(check.n_surplus)).sum();
            let on = plural(i64::try_from(red.len()).unwrap_or(i64::MAX), "day", "days");
            let what = format!("{}, on {on}", differences(who, missing, surplus));
            return Self { tone: Tone::Differs, what, days: span(&red) };
        }
        let equal: Vec<&Check> =
            checks.iter().filter(|check| matches!(check.state, CheckState::Equal | CheckState::Reading)).collect();
        let days: Vec<NaiveDate> = equal.iter().map(|check| check.day).collect();
        let waiting: i64 = equal.iter().map(|check| i64::from(check.n_waiting + check.n_leaving)).sum();
        if days.is_empty() {
            let is_asked = checks.iter().any(|check| check.asked_at.is_some());
            let note = checks.iter().find_map(|check| check.note.clone());
            let what = match note {
                Some(note) if !is_asked => format!("Its messages could not be counted: {note}"),
                _ if is_asked => format!("{who} is being asked how many messages it has"),
                _ => "Its messages were not counted yet".to_owned(),
            };
            return Self { tone: Tone::Waiting, what, days: None };
        }
        let letters: i64 = equal.iter().map(|check| i64::from(check.n_provider)).sum();
        if waiting > 0 {
            let counted = plural(letters, "message", "messages");
            let what = format!("{waiting} of the {counted} that {who} counts are still being read");
            return Self { tone: Tone::Waiting, what, days: span(&days) };
        }
        // A day that is counted again, or that is not settled yet, proves nothing.
        let is_open = |check: &&Check| check.asked_at.is_some() || check.state == CheckState::Reading;
        let closed: Vec<&Check> = equal.iter().copied().filter(|check| !is_open(check)).collect();
        let n_open = i64::try_from(checks.iter().filter(is_open).count()).unwrap_or(i64::MAX);
        if closed.is_empty() {
            let what = format!("{} still being counted", plural(n_open, "day is", "days are"));
            return Self { tone: Tone::Waiting, what, days: span(&days) };
        }
        let days: Vec<NaiveDate> = closed.iter().map(|check| check.day).collect();
        let letters = closed.iter().map(|check| i64::from(check.n_provider)).sum();
        let proof = match letters {
            0 => format!("{who} counts no messages"),
            1 => format!("the one message that {who} counts is accounted for"),
            _ => format!("each of the {} that {who} counts is accounted for", plural(letters, "message", "messages")),
        };
        let what = format!("Nothing was missed {}: {proof}", on(&days));
        let (tone, what) = match n_open {
            0 => (Tone::Equal, what),
            n => {
                (Tone::Waiting, format!("{what}; {} still being counted", plural(n, "other day is", "other days are")))
            }
        };
        Self { tone, what, days: span(&days) }
    }
}

/// Days as part of a sentence, the newest first: `on 14 November`, `on 7 days from 8 November to 14 November`.
fn on(days: &[NaiveDate]) -> String {
    let word = |day: &NaiveDate| day.format("%-d %B").to_string();
    match days {
        [day] => format!("on {}", word(day)),
        [newest, .., oldest] => format!("on {} days from {} to {}", days.len(), word(oldest), word(newest)),
        [] => String::new(),
    }
}

/// Letters that differ, as part of a sentence.
pub(crate) fn differences(who: &str, missing: i64, surplus: i64) -> String {
    let are_missing = || match missing {
        1 => format!("1 message that {who} has is missing here"),
        n => format!("{} that {who} has are missing here", plural(n, "message", "messages")),
    };
    let are_surplus = || match surplus {
        1 => format!("1 message is here that {who} no longer has"),
        n => format!("{} are here that {who} no longer has", plural(n, "message", "messages")),
    };
    match (missing, surplus) {
        (_, 0) => are_missing(),
        (0, _) => are_surplus(),
        _ => format!("{}, and {}", are_missing(), are_surplus()),
    }
}

/// The word for a day.
pub fn word(check: &Check) -> &'static str {
    match check.state {
        _ if check.asked_at.is_some() && check.state != CheckState::Differs => "being read",
        CheckState::New => "not counted",
        CheckState::Reading => "being read",
        CheckState::Equal => "equal",
        CheckState::Differs => "differs",
        CheckState::NotRead => "not read",
        CheckState::Unknown => "not counted",
    }
}

/// The account of a day: each letter that its provider counts is in one of the numbers.
pub fn account(check: &Check) -> String {
    if let (CheckState::New | CheckState::Unknown, note) = (check.state, &check.note) {
        return note.clone().unwrap_or_else(|| "waits to be counted".to_owned());
    }
    let part = |n: i32, what: &str| (n > 0).then(|| format!("{n} {what}"));
    let reasons: Vec<String> = check.skipped.iter().map(|(rule, n)| format!("{rule} {n}")).collect();
    let left_out = match reasons.as_slice() {
        [] => "left out".to_owned(),
        reasons => format!("left out ({})", reasons.join(", ")),
    };
    let parts = [
        part(check.n_stored, "stored"),
        part(check.n_skipped, &left_out),
        part(check.n_kept_out, "kept out by a person"),
        part(check.n_failed, "could not be read"),
        part(check.n_waiting, "being read"),
        part(check.n_not_read, "from before the first sync"),
        part(check.n_missing, "missing"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let counted = plural(i64::from(check.n_provider), "message", "messages");
    let all = if parts.is_empty() { counted } else { format!("{counted}: {}", parts.join(", ")) };
    match (check.n_surplus, check.n_leaving) {
        (0, 0) => all,
        (0, n) => format!("{all}; {n} more here, being looked at"),
        (n, _) => format!("{all}; {n} more here"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(day: &str, state: CheckState) -> Check {
        Check {
            day: day.parse().expect("a day"),
            state,
            asked_at: None,
            checked_at: None,
            n_provider: 0,
            n_stored: 0,
            skipped: BTreeMap::new(),
            n_skipped: 0,
            n_kept_out: 0,
            n_failed: 0,
            n_waiting: 0,
            n_leaving: 0,
            n_not_read: 0,
            n_missing: 0,
            n_surplus: 0,
            missing: Vec::new(),
            surplus: Vec::new(),
            note: None,
            suspects: None,
        }
    }

    #[test]
    fn a_mailbox_is_green_only_if_everything_is_accounted_for() {
        let equal = Check { n_provider: 7, n_stored: 7, ..check("2026-11-14", CheckState::Equal) };
        let reading = Check { n_provider: 3, n_stored: 1, n_waiting: 2, ..check("2026-11-15", CheckState::Reading) };
        let red = Check { n_provider: 2, n_missing: 2, n_surplus: 1, ..check("2026-11-13", CheckState::Differs) };
        let of = |checks: &[&Check]| {
            let checks: Vec<Check> = checks.iter().map(|check| (*check).clone()).collect();
            let line = Line::of("Gmail", &checks);
            (line.tone, line.what)
        };
        let (tone, what) = of(&[&equal]);
        assert_eq!(tone, Tone::Equal);
        assert_eq!(
            what,
            "Nothing was missed on 14 November: each of the 7 messages that Gmail counts is accounted for"
        );
        let quiet = check("2026-11-12", CheckState::Equal);
        assert_eq!(
            of(&[&equal, &quiet]).1,
            "Nothing was missed on 2 days from 12 November to 14 November: each of the 7 messages that Gmail counts is accounted for"
        );
        assert_eq!(of(&[&quiet]).1, "Nothing was missed on 12 November: Gmail counts no messages");
        let asked = Check { asked_at: Some(chrono::DateTime::UNIX_EPOCH), ..equal.clone() };
        assert_eq!(of(&[&asked]), (Tone::Waiting, "1 day is still being counted".into()));
        assert_eq!(
            of(&[&asked, &quiet]),
            (
                Tone::Waiting,
                "Nothing was missed on 12 November: Gmail counts no messages; 1 other day is still being counted"
                    .into()
            )
        );
        assert_eq!(
            of(&[&reading, &equal]),
            (Tone::Waiting, "2 of the 10 messages that Gmail counts are still being read".into())
        );
        let (tone, what) = of(&[&reading, &equal, &red]);
        assert_eq!(tone, Tone::Differs);
        assert_eq!(
            what,
            "2 messages that Gmail has are missing here, and 1 message is here that Gmail no longer has, on 1 day"
        );
        let unknown = Check { note: Some("the source is paused".into()), ..check("2026-11-14", CheckState::Unknown) };
        assert_eq!(of(&[&unknown]).1, "Its messages could not be counted: the source is paused");
        assert_eq!(of(&[]), (Tone::Waiting, "Its messages were not counted yet".into()));
    }

    #[test]
    fn a_day_accounts_for_each_letter() {
        let day = Check {
            n_provider: 12,
            n_stored: 7,
            n_skipped: 3,
            skipped: BTreeMap::from([("newsletter".to_owned(), 3)]),
            n_failed: 1,
            n_missing: 1,
            n_surplus: 2,
            ..check("2026-11-14", CheckState::Differs)
        };
        assert_eq!(
            account(&day),
            "12 messages: 7 stored, 3 left out (newsletter 3), 1 could not be read, 1 missing; 2 more here"
        );
        assert_eq!(account(&check("2026-11-14", CheckState::Equal)), "0 messages");
        assert_eq!(word(&day), "differs");
    }
}
