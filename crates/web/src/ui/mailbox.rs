//! The part of a source's page that only mailboxes have: whether something was missed, which of its places are read, the rules that leave messages
//! out, and what they left out.

use chrono::{DateTime, Utc};
use domain::SourceId;
use domain::mail::Place;
use domain::mail::check::CheckState;
use domain::mail::rules::Conditions;
use domain::shown::{capitalised, clipped, counted, number, plural};
use engine::ActError;
use engine::mail::check::words::{self, Line, Tone};
use engine::mail::left_out;
use engine::mail::rules::{self, Change, Preview, RuleLine};
use engine::mail::{check, reading, settings};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use store::mail::checks::Check;
use store::mail::processed::{FORGOTTEN, LeftOutLetter, ReasonCount};
use store::queue::MOST_COUNTED;
use store::sources::Source;

use super::Visitor;
use super::mailbox_acts::Typed;
use super::sources::HERE;
use super::text::When;
use crate::api::error::ApiError;
use crate::api::extract::blank_is_none;
use crate::app::App;

/// The days that the line speaks of.
const DAYS: i64 = 30;
/// Ids that a day that differs names.
const NAMED: usize = 50;
const LEFT_OUT: i64 = 20;
const PLACES: [(Place, &str); 6] = [
    (Place::Inbox, "Inbox"),
    (Place::Other, "Other folders, the archive among them"),
    (Place::Sent, "Sent"),
    (Place::Drafts, "Drafts"),
    (Place::Spam, "Spam"),
    (Place::Deleted, "Deleted items"),
];

pub(super) struct MailboxPart {
    /// Its messages.
    pub mail: String,
    /// The line that says whether something was missed: its tone and a sentence.
    pub tone: &'static str,
    pub line: String,
    pub days: Vec<DayRow>,
    /// Some days differ, so that their messages can be fetched.
    pub can_fetch: bool,
    pub places: Vec<PlaceRow>,
    pub rules: Vec<RuleRow>,
    pub preview: Option<PreviewPart>,
    pub new: NewRule,
    /// How many were left out, in words.
    pub n_left_out: String,
    pub reasons: Vec<ReasonRow>,
    pub left_out: Vec<LeftOutRow>,
    /// The first page of what was left out, from a later or a narrower one.
    pub first: Option<String>,
    pub next: Option<String>,
}

/// A day of a mailbox.
pub(super) struct DayRow {
    pub key: String,
    pub day: String,
    /// The style sheet's name for its state, and the word.
    pub class: &'static str,
    pub word: &'static str,
    pub account: String,
    /// The ids that differ, each list with its heading.
    pub differing: Vec<(&'static str, String)>,
}

pub(super) struct PlaceRow {
    pub name: &'static str,
    pub label: &'static str,
    pub is_read: bool,
}

pub(super) struct RuleRow {
    pub name: String,
    pub label: String,
    pub sentence: String,
    pub is_on: bool,
    /// A mailbox's own rule can be removed.
    pub is_own: bool,
    pub n_left_out: String,
    pub changed: Option<(String, When)>,
    /// The page that tells what switching it would have done.
    pub preview: String,
}

/// A rule that is about to be added: what was typed, and what it would have done.
pub(super) struct NewRule {
    pub name: String,
    pub typed: Typed,
    pub tried: Option<PreviewPart>,
}

/// The outcome of switching a rule, had it been done before.
pub(super) struct PreviewPart {
    pub name: String,
    /// The question, and the answer.
    pub asks: String,
    pub told: String,
    pub is_on: bool,
    pub examples: Vec<Example>,
}

pub(super) struct Example {
    pub sender: String,
    pub subject: String,
    pub at: When,
}

pub(super) struct ReasonRow {
    pub name: String,
    pub label: String,
    pub n: String,
    pub href: String,
    pub is_chosen: bool,
}

pub(super) struct LeftOutRow {
    pub id: String,
    pub sender: String,
    pub subject: String,
    pub reason: String,
    pub at: When,
    /// A person has let it in: it is on its way.
    pub is_coming: bool,
}

/// The fields that the address of a mailbox's page may have.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct MailboxQuery {
    /// The rule whose switch is tried; one that is not there yet if conditions are given.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub preview: Option<String>,
    #[serde(flatten)]
    pub new: Typed,
    /// Only what this rule left out.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub reason: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    pub after: Option<String>,
}

/// The part of a source that is a mailbox; none for others. `is_live`: only what changes by itself is looked at.
pub(super) async fn load(
    app: &App,
    visitor: &Visitor,
    source: &Source,
    query: &MailboxQuery,
    is_live: bool,
) -> Result<Option<MailboxPart>, ApiError> {
    if !reading::is_mailbox(&app.env, &source.provider) {
        return Ok(None);
    }
    let (id, now, env) = (SourceId(source.id), app.env.clock.now(), &app.env);
    let days = check::days(env, visitor, id, DAYS).await?;
    let line = Line::of(env.providers.label(&source.provider), &days);
    let places = settings::get(env, visitor, id).await?.places;
    let rules = rules::list(env, visitor, id).await?;
    let reasons = left_out::count_by_reason(env, visitor, id).await?;
    let (reason, after) = (query.reason.as_deref(), query.after.as_deref());
    let page = left_out::list(env, visitor, id, reason, after, LEFT_OUT).await?;
    let (preview, new) = match query.preview.as_deref().filter(|_| !is_live) {
        Some(name) => match query.new.conditions() {
            Some(conditions) => (None, tried(app, visitor, id, (name, conditions), now).await?),
            None => (preview(app, visitor, id, &rules, name, now).await?, None),
        },
        None => (None, None),
    };
    let href = format!("{HERE}/{id}");
    let of_page = |after: Option<&str>, reason: Option<&str>| {
        let field = |name: &str, value: Option<&str>| {
            value.map(|value| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
        };
        let fields: Vec<String> = [field("reason", reason), field("after", after)].into_iter().flatten().collect();
        if fields.is_empty() { format!("{href}#left-out") } else { format!("{href}?{}#left-out", fields.join("&")) }
    };
    let n: i64 = reasons.iter().map(|reason| reason.letters).sum();
    Ok(Some(MailboxPart {
        mail: format!("/mail?mailbox={id}"),
        tone: match line.tone {
            Tone::Equal => "good",
            Tone::Waiting => "waits",
            Tone::Differs => "bad",
        },
        line: format!("{}.", capitalised(&line.what)),
        can_fetch: days.iter().any(|day| day.state == CheckState::Differs),
        days: days.iter().map(DayRow::new).collect(),
        places: PLACES
            .iter()
            .map(|(place, label)| PlaceRow { name: settings::word(*place), label, is_read: places.contains(place) })
            .collect(),
        preview,
        new: NewRule {
            name: query.preview.clone().filter(|_| new.is_some()).unwrap_or_default(),
            typed: query.new.clone(),
            tried: new,
        },
        n_left_out: match n {
            0 => "Nothing was left out".into(),
            1 => "1 message was left out".into(),
            n => format!("{} messages were left out", counted(n, MOST_COUNTED)),
        },
        reasons: reasons
            .iter()
            .map(|ReasonCount { skip_reason, letters }| ReasonRow {
                label: label(skip_reason),
                n: counted(*letters, MOST_COUNTED),
                href: of_page(None, Some(skip_reason)),
                is_chosen: reason == Some(skip_reason.as_str()),
                name: skip_reason.clone(),
            })
            .collect(),
        rules: rules.iter().map(|rule| RuleRow::new(rule, &href, now)).collect(),
        left_out: page.letters.iter().map(|letter| LeftOutRow::new(letter, now)).collect(),
        first: (reason.is_some() || after.is_some()).then(|| of_page(None, None)),
        next: page.next.as_deref().map(|next| of_page(Some(next), reason)),
    }))
}

/// The outcome of switching a rule, with the messages of the last days. None: there is no such rule.
async fn preview(
    app: &App,
    visitor: &Visitor,
    id: SourceId,
    rules: &[RuleLine],
    name: &str,
    now: DateTime<Utc>,
) -> Result<Option<PreviewPart>, ApiError> {
    let Some(rule) = rules.iter().find(|line| line.rule.name == name).map(|line| &line.rule) else { return Ok(None) };
    let switched = Change { is_on: Some(!rule.is_on), conditions: None };
    let tried = match rules::preview(&app.env, visitor, id, name, switched).await {
        Ok(tried) => tried,
        Err(ActError::Conflict(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(PreviewPart::new(name, rule.is_on, &tried, now)))
}

/// The effect that a rule would have had that is not there yet. None: it is refused.
async fn tried(
    app: &App,
    visitor: &Visitor,
    id: SourceId,
    (name, conditions): (&str, Conditions),
    now: DateTime<Utc>,
) -> Result<Option<PreviewPart>, ApiError> {
    let new = Change { is_on: Some(true), conditions: Some(conditions) };
    match rules::preview(&app.env, visitor, id, name, new).await {
        Ok(tried) => Ok(Some(PreviewPart::new(name, false, &tried, now))),
        Err(ActError::Conflict(_) | ActError::Invalid(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl PreviewPart {
    /// `is_on`: it is on now, so that its end is tried.
    fn new(name: &str, is_on: bool, tried: &Preview, now: DateTime<Utc>) -> Self {
        let examples = if is_on { &tried.would_let_in.latest } else { &tried.would_leave_out.latest };
        let example = |example: &rules::Example| Example {
            sender: clipped(&example.sender, 80),
            subject: super::mail::subject(Some(&example.subject)),
            at: When::new(example.received_at, now),
        };
        Self {
            asks: format!("If {} were {}", label(name), if is_on { "off" } else { "on" }),
            told: told(tried, !is_on),
            is_on,
            examples: examples.iter().map(example).collect(),
            name: name.to_owned(),
        }
    }
}

/// The outcome of a preview in words: what this rule alone decides, and what it shares with others.
fn told(tried: &Preview, is_on: bool) -> String {
    let of = |n: usize| number(i64::try_from(n).unwrap_or(i64::MAX));
    let all = match (tried.looked_at, tried.is_partial) {
        (0, _) => return "No message came within the last 30 days, so there is nothing to try it on.".into(),
        (n, true) => format!("the latest {} messages", of(n)),
        (n, false) => format!("the {} messages of the last 30 days", of(n)),
    };
    let decided = match (is_on, tried.would_leave_out.letters, tried.would_let_in.letters) {
        (true, 0, _) | (false, _, 0) => format!("Nothing would have changed for {all}."),
        (true, n, _) => format!("It would have left out {} of {all}.", of(n)),
        (false, _, n) => format!("{} of {all} would have come in.", of(n)),
    };
    let shared = tried.shared.iter().map(|(rule, n)| match n {
        1 => format!(" It fits 1 that {} leaves out as well.", label(rule)),
        n => format!(" It fits {} that {} leaves out as well.", of(*n), label(rule)),
    });
    shared.fold(decided, |told, one| told + &one)
}

/// The name of a rule, as people read it.
fn label(name: &str) -> String {
    if name == FORGOTTEN {
        return "forgetting".into(); // in whose stead no rule left it out
    }
    clipped(&name.replace('_', " "), 60)
}

impl DayRow {
    fn new(check: &Check) -> Self {
        let word = words::word(check);
        let ids = |ids: &[String], n: i32| {
            let mut named: Vec<String> = ids.iter().take(NAMED).map(|id| clipped(id, 200)).collect();
            let n_more = usize::try_from(n).unwrap_or(0).saturating_sub(named.len());
            if n_more > 0 {
                named.push(format!("and {n_more} more"));
            }
            named.join("\n")
        };
        let differing = [
            ("Missing here", ids(&check.missing, check.n_missing)),
            ("Here, and gone there", ids(&check.surplus, check.n_surplus)),
        ];
        Self {
            key: check.day.to_string(),
            day: check.day.format("%-d %B %Y").to_string(),
            class: match word {
                "equal" => "remembered",
                "differs" => "dead",
                "being read" => "pending",
                _ => "skipped",
            },
            word,
            account: words::account(check),
            differing: differing.into_iter().filter(|(_, ids)| !ids.is_empty()).collect(),
        }
    }
}

impl RuleRow {
    fn new(line: &RuleLine, href: &str, now: DateTime<Utc>) -> Self {
        let rule = &line.rule;
        Self {
            label: label(&rule.name),
            sentence: clipped(&rule.sentence, 400),
            is_on: rule.is_on,
            is_own: !rule.is_shipped,
            n_left_out: match line.n_left_out {
                0 => String::new(),
                n => plural(n, "message", "messages"),
            },
            changed: line.changed.as_ref().map(|(by, at)| (clipped(by, 60), When::new(*at, now))),
            preview: format!("{href}?preview={}#rules", utf8_percent_encode(&rule.name, NON_ALPHANUMERIC)),
            name: rule.name.clone(),
        }
    }
}

impl LeftOutRow {
    fn new(letter: &LeftOutLetter, now: DateTime<Utc>) -> Self {
        let is_forgotten = letter.skip_reason == FORGOTTEN;
        let nobody = if is_forgotten { "a person who was forgotten" } else { "nobody" };
        Self {
            id: letter.message_id.clone(),
            sender: clipped(letter.sender.as_deref().unwrap_or(nobody), 80),
            subject: match is_forgotten {
                true => "Removed".into(),
                false => super::mail::subject(letter.subject.as_deref()),
            },
            reason: label(&letter.skip_reason),
            at: When::new(letter.received_at, now),
            is_coming: letter.let_in_at.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use engine::mail::rules::Counted;

    use super::*;

    #[test]
    fn a_preview_says_what_would_have_been_left_out() {
        let counted = |letters| Counted { letters, latest: Vec::new() };
        let tried = Preview {
            since: DateTime::UNIX_EPOCH,
            looked_at: 340,
            is_partial: false,
            would_leave_out: counted(12),
            would_let_in: counted(3),
            shared: BTreeMap::new(),
        };
        assert_eq!(told(&tried, true), "It would have left out 12 of the 340 messages of the last 30 days.");
        assert_eq!(told(&tried, false), "3 of the 340 messages of the last 30 days would have come in.");
        let shared = Preview { would_let_in: counted(0), shared: [("bulk".to_owned(), 2)].into(), ..tried.clone() };
        assert_eq!(
            told(&shared, false),
            "Nothing would have changed for the 340 messages of the last 30 days. It fits 2 that bulk leaves out as well."
        );
        let many = Preview { looked_at: 5_000, is_partial: true, ..tried };
        assert_eq!(told(&many, true), "It would have left out 12 of the latest 5,000 messages.");
        assert!(told(&Preview::default(), true).starts_with("No message came"));
    }

    #[test]
    fn a_rule_is_called_by_words() {
        assert_eq!(label("delivery_reports"), "delivery reports");
    }
}
