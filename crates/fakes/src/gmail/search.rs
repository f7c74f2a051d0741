//! Gmail's search, as far as clients use it.

use chrono::{NaiveDate, NaiveTime};

use super::{Message, compose};

/// A question: all of its words have to hold.
pub(super) struct Search(Vec<Word>);

enum Word {
    Not(Box<Word>),
    Any(Vec<Word>),
    In(&'static str),
    /// Seconds since 1970, counted.
    After(i64),
    /// Seconds since 1970, not counted.
    Before(i64),
    /// A header that contains a text.
    Head(&'static str, String),
    Text(String),
}

impl Search {
    /// None: it has a bracket that is not closed.
    pub fn parse(q: &str) -> Option<Self> {
        let mut words = Vec::new();
        let mut rest = q.trim();
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('{') {
                let (group, after) = inside.split_once('}')?;
                words.push(Word::Any(group.split_whitespace().map(word).collect()));
                rest = after.trim_start();
            } else {
                let (one, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                words.push(word(one));
                rest = after.trim_start();
            }
        }
        Some(Self(words))
    }

    pub fn holds(&self, message: &Message) -> bool {
        self.0.iter().all(|word| word.holds(message))
    }
}

fn word(text: &str) -> Word {
    if let Some(inside) = text.strip_prefix('-') {
        return Word::Not(Box::new(word(inside)));
    }
    let (name, value) = text.split_once(':').unwrap_or(("", text));
    match name {
        "in" | "label" | "is" => Word::In(label(value)),
        "after" => Word::After(seconds(value)),
        "before" => Word::Before(seconds(value)),
        "from" => Word::Head("From", value.to_lowercase()),
        "to" => Word::Head("To", value.to_lowercase()),
        "subject" => Word::Head("Subject", value.to_lowercase()),
        _ => Word::Text(text.to_lowercase()),
    }
}

fn label(name: &str) -> &'static str {
    match name.to_lowercase().as_str() {
        "inbox" => "INBOX",
        "sent" => "SENT",
        "drafts" | "draft" => "DRAFT",
        "spam" => "SPAM",
        "trash" => "TRASH",
        "chats" | "chat" => "CHAT",
        "unread" => "UNREAD",
        "starred" => "STARRED",
        "important" => "IMPORTANT",
        _ => "",
    }
}

/// Seconds, or the beginning of a day in California, whose summer is not known here.
fn seconds(value: &str) -> i64 {
    let day = || NaiveDate::parse_from_str(value, "%Y/%m/%d").ok();
    let of_day = || day().map(|day| day.and_time(NaiveTime::MIN).and_utc().timestamp() + 8 * 3_600);
    value.parse().ok().or_else(of_day).unwrap_or_default()
}

impl Word {
    fn holds(&self, message: &Message) -> bool {
        let contains = |text: Option<String>, word: &str| text.is_some_and(|text| text.to_lowercase().contains(word));
        match self {
            Self::Not(word) => !word.holds(message),
            Self::Any(words) => words.iter().any(|word| word.holds(message)),
            Self::In(label) => message.labels.iter().any(|known| known == label),
            Self::After(secs) => message.received_at.timestamp() >= *secs,
            Self::Before(secs) => message.received_at.timestamp_millis() < secs * 1_000,
            Self::Head(name, word) => contains(compose::header(&message.raw, name), word),
            Self::Text(word) => contains(Some(String::from_utf8_lossy(&message.raw).into_owned()), word),
        }
    }
}
