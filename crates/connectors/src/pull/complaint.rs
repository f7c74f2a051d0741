//! A provider's refusal: what it means, the provider's own code, and how long it wants us to wait. Each provider's folder has a parser for
//! its own. Its sentences may quote a record or a token, so they are dropped there.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

/// A daily allowance comes back at a midnight whose time zone the provider does not tell, so it is asked again every hour.
pub const DAILY_WAIT: Duration = Duration::from_secs(3_600);
const CODE_MAX_BYTES: usize = 60;

/// The meaning of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// We asked too often.
    Wait,
    /// The token is not good.
    Token,
    /// The provider is not well; the same request may succeed later.
    Trouble,
    /// The same request will be refused again.
    Lasting,
}

impl Meaning {
    pub const ALL: [Self; 4] = [Self::Wait, Self::Token, Self::Trouble, Self::Lasting];

    /// The meaning of a status alone.
    pub fn of_status(status: u16) -> Self {
        match status {
            429 => Self::Wait,
            401 => Self::Token,
            408 | 423 | 425 | 500.. => Self::Trouble,
            _ => Self::Lasting,
        }
    }
}

/// A refusal, read by its provider's parser.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub meaning: Meaning,
    /// The provider's own word for it, where that is a plain word.
    pub code: Option<String>,
    /// The time to wait where the answer has no `Retry-After`.
    pub wait: Duration,
    /// The provider's time, as the body tells it.
    pub told_at: Option<DateTime<Utc>>,
}

/// The JSON of a body; null where it is none.
pub fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

/// The code at a JSON pointer, if it is one plain word: no sentence gets through.
pub fn word_at(said: &Value, pointer: &str) -> Option<String> {
    let word = said.pointer(pointer)?.as_str()?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    ((1..=CODE_MAX_BYTES).contains(&word.len()) && word.bytes().all(is_plain)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_says_whether_to_wait_renew_retry_or_stop() {
        for (status, meaning) in [
            (400, Meaning::Lasting),
            (401, Meaning::Token),
            (403, Meaning::Lasting),
            (404, Meaning::Lasting),
            (408, Meaning::Trouble),
            (423, Meaning::Trouble),
            (429, Meaning::Wait),
            (500, Meaning::Trouble),
            (503, Meaning::Trouble),
        ] {
            assert_eq!(Meaning::of_status(status), meaning, "{status}");
        }
    }

    #[test]
    fn a_code_is_one_plain_word() {
        let said =
            json!({ "a": "MISSING_SCOPES", "b": "ana@acme.example is no id", "c": "", "d": 7, "e": "x".repeat(61) });
        assert_eq!(word_at(&said, "/a").as_deref(), Some("MISSING_SCOPES"));
        for pointer in ["/b", "/c", "/d", "/e", "/f"] {
            assert_eq!(word_at(&said, pointer), None, "{pointer}");
        }
        assert_eq!((json(b"<html>"), json(b"[1]")), (Value::Null, json!([1])));
    }
}
