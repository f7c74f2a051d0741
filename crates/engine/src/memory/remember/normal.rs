//! A record in its normal form, and which version wins where a batch holds several of one document.

use std::collections::HashMap;

use domain::{Record, text};
use uuid::Uuid;

/// A record with its normalised title and text.
pub(super) struct Normal {
    pub record: Record,
    pub title: Option<String>,
    pub text: String,
    /// Of title and text.
    pub sha256: [u8; 32],
}

impl Normal {
    pub fn of(mut record: Record) -> Self {
        let (title, text) = if record.is_deleted {
            record.raw_payload = None; // the content of a deleted document goes
            (None, String::new())
        } else {
            let title = record.title.as_deref().map(text::normalise).filter(|title| !title.is_empty());
            (title, text::normalise(&record.text))
        };
        if let Some(payload) = &mut record.raw_payload {
            text::replace_nul_in(payload);
        }
        text::replace_nul_in(&mut record.source_metadata);
        let sha256 = text::sha256(&format!("{}\0{text}", title.as_deref().unwrap_or_default()));
        Self { record, title, text, sha256 }
    }

    /// Identifies the document.
    pub fn key(&self) -> (Uuid, &str) {
        (self.record.source_id.0, &self.record.external_id)
    }
}

/// The indexes of the records to write: of each document the newest version, else the last.
pub(super) fn winners(records: &[Normal]) -> Vec<usize> {
    let mut best: HashMap<(Uuid, &str), usize> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        let held = best.entry(record.key()).or_insert(index);
        if !is_newer(records[*held].record.source_version, record.record.source_version) {
            *held = index;
        }
    }
    let mut winners: Vec<usize> = best.into_values().collect();
    winners.sort_unstable();
    winners
}

/// Whether the version held is newer than the one that came. Without versions the last write wins.
pub(super) fn is_newer(held: Option<i64>, came: Option<i64>) -> bool {
    matches!((held, came), (Some(held), Some(came)) if held > came)
}

#[cfg(test)]
mod tests {
    use domain::{DocumentType, SourceId};
    use serde_json::json;

    use super::*;

    fn record(source_id: SourceId, name: &str, version: Option<i64>) -> Normal {
        Normal::of(Record {
            source_version: version,
            ..Record::new(source_id, name, DocumentType::Note, format!("{name} {version:?}"))
        })
    }

    #[test]
    fn of_each_document_the_newest_version_wins_else_the_last() {
        let (one, other) = (SourceId::new(), SourceId::new());
        for (batch, expected) in [
            (vec![record(one, "a", Some(1)), record(one, "a", Some(2))], &[1][..]),
            (vec![record(one, "a", Some(2)), record(one, "a", Some(1))], &[0]),
            (vec![record(one, "a", Some(2)), record(one, "a", Some(2))], &[1]),
            (vec![record(one, "a", Some(2)), record(one, "a", None)], &[1]),
            (vec![record(one, "a", None), record(one, "b", None), record(one, "a", None)], &[1, 2]),
            (vec![record(one, "a", Some(2)), record(other, "a", Some(1))], &[0, 1]),
            (vec![], &[]),
        ] {
            let said: Vec<&str> = batch.iter().map(|record| record.text.as_str()).collect();
            assert_eq!(winners(&batch), expected, "{said:?}");
        }
    }

    #[test]
    fn a_hash_is_of_what_can_be_read_and_a_deleted_record_says_nothing() {
        let source_id = SourceId::new();
        let note = |title: Option<&str>, text: &str| Record {
            title: title.map(Into::into),
            raw_payload: Some(json!({ "a": "\0" })),
            ..Record::new(source_id, "a", DocumentType::Note, text)
        };
        let plain = Normal::of(note(None, "A text"));
        assert_eq!(Normal::of(note(Some("  "), "A text\r\n")).sha256, plain.sha256);
        assert_ne!(Normal::of(note(Some("A"), "text")).sha256, Normal::of(note(None, "A text")).sha256);
        let payload = plain.record.raw_payload.expect("a payload");
        assert!(!payload["a"].as_str().expect("a text").contains('\0'));
        let deleted = Normal::of(Record { is_deleted: true, ..note(Some("A title"), "A text") });
        assert_eq!((deleted.title, deleted.text.as_str(), deleted.record.raw_payload), (None, "", None));
    }
}
