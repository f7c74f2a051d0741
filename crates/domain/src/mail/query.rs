//! Queries that choose letters, in the words of Gmail's search: the part of it that a letter by itself can answer.

use super::{Correspondent, Letter, Place};

/// A query: every term has to hold. An empty one chooses every letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    is_not: bool,
    asks: Asks,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Asks {
    In(Place),
    Anywhere,
    /// Letters are asked about when they come, and then nobody has read them here.
    Unread,
    Label(String),
    From(String),
    To(String),
    Subject(String),
    HasFile,
    FileName(String),
    Words(String),
}

/// The terms that are known, for a person.
const KNOWN: &str = "in:, is:unread, label:, from:, to:, subject:, has:attachment, filename: and words";

impl Query {
    /// Reads a query. The error says what is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        words(text)?
            .into_iter()
            .map(|(is_not, name, value)| Ok(Term { is_not, asks: asks(name, value)? }))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether it chooses a letter that has just come.
    pub fn chooses(&self, letter: &Letter) -> bool {
        self.0.iter().all(|term| term.asks.holds(letter) != term.is_not)
    }
}

fn asks(name: Option<String>, value: String) -> Result<Asks, String> {
    let Some(name) = name else { return Ok(Asks::Words(value)) };
    if value.is_empty() {
        return Err(format!("nothing follows {name}:"));
    }
    Ok(match (name.as_str(), value.as_str()) {
        ("in", "inbox") => Asks::In(Place::Inbox),
        ("in", "sent") => Asks::In(Place::Sent),
        ("in", "spam") => Asks::In(Place::Spam),
        ("in", "trash") => Asks::In(Place::Deleted),
        ("in", "draft" | "drafts") => Asks::In(Place::Drafts),
        ("in", "anywhere") => Asks::Anywhere,
        ("is", "unread") => Asks::Unread,
        ("has", "attachment") => Asks::HasFile,
        ("in" | "label", _) => Asks::Label(value),
        ("from", _) => Asks::From(value),
        ("to", _) => Asks::To(value),
        ("subject", _) => Asks::Subject(value),
        ("filename", _) => Asks::FileName(value),
        _ => return Err(format!("{name}:{value} is not understood here; use {KNOWN}")),
    })
}

impl Asks {
    fn holds(&self, letter: &Letter) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(part);
        let is = |people: &[Correspondent], part: &str| people.iter().any(|one| has(&one.shown(), part));
        let subject = letter.subject.as_deref().unwrap_or_default();
        let mut kept = letter.files.iter().filter(|file| file.left_out.is_none());
        match self {
            Self::In(place) => letter.place == *place,
            Self::Anywhere | Self::Unread => true,
            // Gmail writes a space of a label as a hyphen.
            Self::Label(label) => letter.folders.iter().any(|name| name.to_lowercase().replace(' ', "-") == *label),
            Self::From(part) => is(letter.from.as_slice(), part),
            Self::To(part) => is(&letter.to, part) || is(&letter.cc, part) || is(&letter.bcc, part),
            Self::Subject(part) => has(subject, part),
            Self::HasFile => kept.next().is_some(),
            Self::FileName(part) => kept.any(|file| file.name.as_deref().is_some_and(|name| has(name, part))),
            Self::Words(part) => has(subject, part) || has(&letter.text, part),
        }
    }
}

/// The terms of a query, in small letters: whether it is negated, the name before the colon, and the rest. Quotation marks keep words together.
fn words(text: &str) -> Result<Vec<(bool, Option<String>, String)>, String> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (mut term, mut is_quoted, mut end) = (String::new(), false, rest.len());
        let mut colon = None;
        for (at, c) in rest.char_indices() {
            match c {
                '"' => is_quoted = !is_quoted,
                c if c.is_whitespace() && !is_quoted => {
                    end = at;
                    break;
                }
                ':' if !is_quoted && colon.is_none() => colon = Some(term.len()),
                c => term.extend(c.to_lowercase()),
            }
        }
        if is_quoted {
            return Err("a quotation mark has no partner".into());
        }
        rest = rest[end..].trim_start();
        let (name, value) = match colon {
            Some(at) => (Some(term[..at].to_owned()), term[at..].to_owned()),
            None => (None, term),
        };
        let begins = name.as_deref().unwrap_or(&value);
        let is_not = begins.starts_with('-') && begins.len() > 1;
        let bare = |text: String| if is_not { text[1..].to_owned() } else { text };
        match name {
            Some(name) => terms.push((is_not, Some(bare(name)), value)),
            None if value.is_empty() || matches!(value.as_str(), "or" | "and" | "{" | "}") => {
                return Err(format!("{value:?} is not understood here; use {KNOWN}"));
            }
            None => terms.push((is_not, None, bare(value))),
        }
    }
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::Attachment;

    #[test]
    fn a_query_chooses_letters() {
        let letter = Letter {
            from: Some(Correspondent { name: Some("Ann Lark".into()), address: "ann@shop.example".into() }),
            to: vec![Correspondent { name: None, address: "sales@acme.test".into() }],
            subject: Some("New order".into()),
            text: "Twelve loaves: rye.".into(),
            place: Place::Inbox,
            folders: vec!["INBOX".into(), "Big Customers".into()],
            files: vec![Attachment {
                part: "2".into(),
                name: Some("Order.PDF".into()),
                media_type: "application/pdf".into(),
                size_bytes: 1,
                content_id: None,
                is_inline: false,
                content: None,
                left_out: None,
            }],
            ..Letter::default()
        };
        for (query, expected) in [
            ("", true),
            ("in:inbox is:unread", true),
            ("in:sent", false),
            ("-in:sent", true),
            ("in:anywhere from:lark", true),
            ("from:\"Ann Lark\" to:acme.test", true),
            ("from:bob", false),
            ("subject:\"new order\"", true),
            ("has:attachment filename:pdf", true),
            ("-has:attachment", false),
            ("label:big-customers", true),
            ("label:customers", false),
            ("loaves", true),
            ("\"twelve loaves\"", true),
            ("\"loaves: rye\"", true),
            ("wheat", false),
            ("-wheat", true),
        ] {
            assert_eq!(Query::parse(query).map(|query| query.chooses(&letter)), Ok(expected), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        for odd in ["before:2026/01/01", "from:", "subject:\"open", "a OR b", "is:starred"] {
            assert!(Query::parse(odd).is_err(), "{odd}");
        }
    }
}
