//! Rules that leave letters out, as data: conditions on senders, recipients, subjects, header fields, files and size. The program ships some, which
//! err toward letting in; a mailbox switches them and adds its own.
//!
//! A rule reads [`Facts`], which are small enough to be kept for every letter: so that a change of rules can be tried on letters of the past.

mod facts;
mod pattern;
mod shipped;

use serde::{Deserialize, Serialize};

pub use self::facts::Facts;
use self::pattern::{is_address, is_like, is_subject};
pub use self::shipped::SHIPPED;
use super::{Letter, Note};

/// The most rules that a mailbox has of its own.
pub const MOST_RULES: usize = 100;
/// The most patterns in one list of a rule.
const MOST_PATTERNS: usize = 200;
const PATTERN_CHARS: usize = 200;

/// The conditions of a rule. All that are given have to hold; of a list, one. Empty ones ask for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conditions {
    /// The letters that it fits are let in, whatever other rules say.
    #[serde(skip_serializing_if = "is_false")]
    pub lets_in: bool,
    /// Letters that came in, that the owner sent, or both.
    #[serde(skip_serializing_if = "Way::is_received")]
    pub way: Way,
    /// The sender, as an address, a domain (`example.com`, with those below it) or a pattern (`no-reply@*`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<String>,
    /// A recipient, copies included, in the same ways.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Words of the subject, or a pattern of all of it (`Accepted:*`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Header fields that are all there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// Header fields of which one is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_header: Vec<Header>,
    /// Outcomes of reading it, of which it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Whether it has files that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_files: Option<bool>,
    /// The ending of a file's name (`.pdf`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_names: Vec<String>,
    /// Neither a subject, nor words, nor a file.
    #[serde(skip_serializing_if = "is_false")]
    pub is_empty: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// It does not fit letters of people who are contacts.
    #[serde(skip_serializing_if = "is_false")]
    pub except_contacts: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(is: &bool) -> bool {
    !is
}

/// The way that a letter went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    #[default]
    Received,
    Sent,
    Both,
}

impl Way {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_received(&self) -> bool {
        *self == Self::Received
    }
}

/// A header field, and the values of which it has one. Without values it only has to be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub name: String,
    /// Patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A rule that the program ships.
pub struct Shipped {
    /// Stored in rows: never renamed.
    pub name: &'static str,
    /// The letters that it leaves out, for people.
    pub sentence: &'static str,
    /// Whether it is on in a mailbox that says nothing of it.
    pub is_on: bool,
    pub conditions: fn() -> Conditions,
}

/// A rule of a mailbox: a shipped one, or one of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub name: String,
    pub sentence: String,
    pub is_on: bool,
    pub is_shipped: bool,
    pub conditions: Conditions,
}

/// A row of a mailbox's rules: its own one, or a shipped one that was switched (without conditions).
#[derive(Clone, Debug)]
pub struct Changed {
    pub name: String,
    pub is_on: bool,
    pub conditions: Option<Conditions>,
}

/// The rules of a mailbox, in the order in which they are asked: its own ones, then the shipped ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// The shipped rules, with a mailbox's changes. A row that names a shipped rule that is no more is left aside.
    pub fn of(changed: Vec<Changed>) -> Self {
        let mut rules = Vec::new();
        let mut switched = Vec::new();
        for Changed { name, is_on, conditions } in changed {
            match conditions {
                Some(conditions) => {
                    let sentence = conditions.in_words();
                    rules.push(Rule { name, sentence, is_on, is_shipped: false, conditions });
                }
                None => switched.push((name, is_on)),
            }
        }
        rules.extend(SHIPPED.iter().map(|shipped| Rule {
            name: shipped.name.into(),
            sentence: shipped.sentence.into(),
            is_on: switched.iter().find(|(name, _)| name == shipped.name).map_or(shipped.is_on, |(_, is_on)| *is_on),
            is_shipped: true,
            conditions: (shipped.conditions)(),
        }));
        Self(rules)
    }

    pub fn named(&self, name: &str) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.name == name)
    }

    /// The facts of a letter, with every header field that one of these rules asks for.
    pub fn facts(&self, letter: &Letter, is_of_contact: bool) -> Facts {
        let headers = self.0.iter().flat_map(|rule| rule.conditions.headers.iter().chain(&rule.conditions.one_header));
        let also: Vec<String> = headers.map(|header| header.name.to_ascii_lowercase()).collect();
        Facts::of(letter, is_of_contact, &also)
    }

    /// The name of the rule that leaves a letter out. None: it is let in.
    pub fn verdict(&self, facts: &Facts) -> Option<&str> {
        let mut fit = self.0.iter().filter(|rule| rule.is_on && rule.conditions.fit(facts));
        let first = fit.next()?;
        let lets_in = first.conditions.lets_in || fit.any(|rule| rule.conditions.lets_in);
        (!lets_in).then_some(first.name.as_str())
    }
}

/// The name of the rule that leaves a letter out; `is_of_contact`: its sender is a contact.
pub fn verdict<'r>(letter: &Letter, rules: &'r Rules, is_of_contact: bool) -> Option<&'r str> {
    rules.verdict(&rules.facts(letter, is_of_contact))
}

impl Conditions {
    /// Whether they fit a letter. Conditions that ask for nothing fit none.
    pub fn fit(&self, facts: &Facts) -> bool {
        if self.asks_nothing() || (self.except_contacts && facts.is_of_contact) {
            return false;
        }
        let has = |header: &Header| {
            facts.headers.iter().any(|(name, value)| {
                name.eq_ignore_ascii_case(&header.name)
                    && (header.values.is_empty() || header.values.iter().any(|like| is_like(like, value)))
            })
        };
        let one = |list: &[String], fits: &dyn Fn(&str) -> bool| list.is_empty() || list.iter().any(|like| fits(like));
        let way = if facts.is_sent { Way::Sent } else { Way::Received };
        (self.way == Way::Both || self.way == way)
            && one(&self.senders, &|like| facts.senders.iter().any(|sender| is_address(like, sender)))
            && one(&self.recipients, &|like| facts.recipients.iter().any(|to| is_address(like, to)))
            && one(&self.subjects, &|like| is_subject(like, &facts.subject))
            && self.headers.iter().all(has)
            && (self.one_header.is_empty() || self.one_header.iter().any(has))
            && (self.notes.is_empty() || self.notes.iter().any(|note| facts.notes.contains(note)))
            && self.has_files.is_none_or(|has| has != facts.files.is_empty())
            && one(&self.file_names, &|like| facts.files.iter().any(|name| ends_with(name, like)))
            && (!self.is_empty || facts.is_empty())
            && self.min_bytes.is_none_or(|min| facts.bytes >= min)
            && self.max_bytes.is_none_or(|max| facts.bytes <= max)
    }

    fn asks_nothing(&self) -> bool {
        let rest = Self { lets_in: false, way: Way::default(), except_contacts: false, ..self.clone() };
        rest == Self::default()
    }

    /// Why they are refused, in words.
    pub fn refusal(&self) -> Option<String> {
        if self.asks_nothing() {
            return Some("a rule needs a condition: without one it would fit every letter".into());
        }
        for (name, list) in [
            ("senders", &self.senders),
            ("recipients", &self.recipients),
            ("subjects", &self.subjects),
            ("file_names", &self.file_names),
        ] {
            if let Some(why) = odd_list(name, list) {
                return Some(why);
            }
        }
        let headers = self.headers.iter().chain(&self.one_header);
        for header in headers.clone() {
            let is_name = !header.name.is_empty()
                && header.name.len() <= 100
                && header.name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
            if !is_name {
                return Some("a header field's name has letters, digits and hyphens".into());
            }
            if let Some(why) = odd_list("values", &header.values) {
                return Some(why);
            }
        }
        if headers.count() > MOST_PATTERNS {
            return Some(format!("a rule names at most {MOST_PATTERNS} header fields"));
        }
        let is_void = matches!((self.min_bytes, self.max_bytes), (Some(min), Some(max)) if min > max);
        is_void.then(|| "min_bytes is more than max_bytes".into())
    }

    /// A sentence for people.
    pub fn in_words(&self) -> String {
        let any = |list: &[String]| list.join(" or ");
        let mut parts = Vec::new();
        let mut put = |given: bool, words: String| {
            if given {
                parts.push(words);
            }
        };
        put(!self.senders.is_empty(), format!("from {}", any(&self.senders)));
        put(!self.recipients.is_empty(), format!("to {}", any(&self.recipients)));
        put(!self.subjects.is_empty(), format!("with {} in the subject", any(&self.subjects)));
        for header in &self.headers {
            put(true, header.in_words());
        }
        let headers: Vec<String> = self.one_header.iter().map(Header::in_words).collect();
        put(!headers.is_empty(), headers.join(" or "));
        put(!self.notes.is_empty(), "of a certain kind".into());
        put(self.has_files == Some(true), "with files".into());
        put(self.has_files == Some(false), "without files".into());
        put(!self.file_names.is_empty(), format!("with a file whose name ends in {}", any(&self.file_names)));
        put(self.is_empty, "without subject, words and files".into());
        put(self.min_bytes.is_some(), format!("of {} bytes or more", self.min_bytes.unwrap_or_default()));
        put(self.max_bytes.is_some(), format!("of {} bytes or less", self.max_bytes.unwrap_or_default()));
        put(self.except_contacts, "unless its sender is a contact".into());
        let what = match self.way {
            Way::Received => "Letters",
            Way::Sent => "Sent letters",
            Way::Both => "Letters, also sent ones,",
        };
        let tail = if self.lets_in { ", which are let in whatever other rules say" } else { "" };
        format!("{what} {}{tail}.", parts.join(", "))
    }
}

impl Header {
    fn in_words(&self) -> String {
        match self.values.as_slice() {
            [] => format!("with a field {}", self.name),
            values => format!("with {}: {}", self.name, values.join(" or ")),
        }
    }
}

fn ends_with(name: &str, ending: &str) -> bool {
    name.to_lowercase().ends_with(&ending.to_lowercase())
}

fn odd_list(name: &str, list: &[String]) -> Option<String> {
    if list.len() > MOST_PATTERNS {
        return Some(format!("{name} has more than {MOST_PATTERNS} entries"));
    }
    let is_odd = |text: &String| {
        text.trim().is_empty() || text.chars().count() > PATTERN_CHARS || text.chars().any(char::is_control)
    };
    let what = format!("an entry of {name} has 1 to {PATTERN_CHARS} characters, on one line");
    list.iter().any(is_odd).then_some(what).or_else(|| {
        let everything = list.iter().any(|text| text.trim().chars().all(|c| matches!(c, '*' | '@')));
        everything.then(|| format!("an entry of {name} is more than a *"))
    })
}

#[cfg(test)]
mod tests;
