//! The two forms in which a letter is stored: its payload, which pages read, and its words, which are searched.

use serde_json::Value;

use super::{Correspondent, Letter};
use crate::text::{replace_nul, replace_nul_in};

/// So many names of a list are part of a document's text. Longer lists are those of mass mail.
const MOST_NAMES: usize = 50;

impl Letter {
    /// The letter as the payload of its raw item, without the bytes of its files. It has no NULs.
    pub fn payload(&self) -> Value {
        let mut payload = serde_json::to_value(self).expect("a letter consists of texts, numbers and times");
        replace_nul_in(&mut payload);
        payload
    }

    /// Reads a stored payload. None: it is not one of a letter.
    pub fn from_payload(payload: &Value) -> Option<Self> {
        // Any object would be read as an empty letter otherwise.
        payload.get("text")?;
        serde::Deserialize::deserialize(payload).ok()
    }

    /// The text of the letter's document: a few head lines and what its sender wrote. The subject is the document's title.
    pub fn in_words(&self) -> String {
        let mut head = String::new();
        line(&mut head, "From", self.from.as_slice());
        line(&mut head, "To", &self.to);
        line(&mut head, "Cc", &self.cc);
        if let Some(at) = self.sent_at.or(self.received_at) {
            head.push_str(&format!("Date: {}\n", at.format("%Y-%m-%d %H:%M UTC")));
        }
        let words = match (head.is_empty(), self.text.is_empty()) {
            (false, false) => format!("{head}\n{}", self.text),
            (true, _) => self.text.clone(),
            (_, true) => head.trim_end().to_owned(),
        };
        replace_nul(&words)
    }
}

impl Correspondent {
    /// Name and address, as people write them.
    pub fn shown(&self) -> String {
        match &self.name {
            Some(name) if self.address.is_empty() => name.clone(),
            Some(name) if *name != self.address => format!("{name} <{}>", self.address),
            _ => self.address.clone(),
        }
    }
}

fn line(head: &mut String, name: &str, people: &[Correspondent]) {
    if people.is_empty() {
        return;
    }
    let mut shown: Vec<String> = people.iter().take(MOST_NAMES).map(Correspondent::shown).collect();
    if people.len() > MOST_NAMES {
        shown.push(format!("and {} more", people.len() - MOST_NAMES));
    }
    head.push_str(&format!("{name}: {}\n", shown.join(", ")));
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::mail::Attachment;

    fn person(name: &str, address: &str) -> Correspondent {
        Correspondent { name: (!name.is_empty()).then(|| name.to_owned()), address: address.to_owned() }
    }

    fn letter() -> Letter {
        Letter {
            from: Some(person("Ann Lee", "ann@example.com")),
            to: vec![person("", "bob@example.com"), person("Team", "")],
            subject: Some("Friday".into()),
            sent_at: "2026-03-03T10:15:00Z".parse().ok(),
            text: "Yes.".into(),
            quoted: Some("> When?".into()),
            ..Letter::default()
        }
    }

    #[test]
    fn a_payload_is_read_back_without_the_bytes_of_files() {
        let file = Attachment {
            part: "2".into(),
            name: Some("a\0b.pdf".into()),
            media_type: "application/pdf".into(),
            size_bytes: 4,
            content_id: None,
            is_inline: false,
            content: Some(Bytes::from_static(b"%PDF")),
            left_out: None,
        };
        let written = Letter { files: vec![file.clone()], ..letter() };
        let read = Letter::from_payload(&written.payload()).expect("a letter");
        let file = Attachment { name: Some("a\u{fffd}b.pdf".into()), content: None, ..file };
        assert_eq!(read, Letter { files: vec![file], ..letter() });
        for none in [json!(null), json!({}), json!([]), json!({ "text": 1 }), json!({ "subject": "x" })] {
            assert_eq!(Letter::from_payload(&none), None, "{none}");
        }
        assert!(
            Letter::from_payload(&json!({ "text": "only" })).is_some(),
            "later fields may be missing in older rows"
        );
    }

    #[test]
    fn a_letter_in_words_has_a_head_and_no_history() {
        assert_eq!(
            letter().in_words(),
            "From: Ann Lee <ann@example.com>\nTo: bob@example.com, Team\nDate: 2026-03-03 10:15 UTC\n\nYes."
        );
        assert_eq!(Letter { text: "a\0".into(), ..Letter::default() }.in_words(), "a\u{fffd}");
        assert_eq!(Letter::default().in_words(), "");
        let many = Letter { cc: vec![person("", "x@y.z"); 60], ..Letter::default() };
        assert!(many.in_words().ends_with("x@y.z, and 10 more"));
    }
}
