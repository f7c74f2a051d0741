//! A record in its normal form, and which version wins where a batch holds several of one document.

use std::collections::HashMap;

use domain::{Record, text};
use uuid::Uuid;

/// A record with its normalised title and text.
pub(super) struct Normal {
    pub record: Record,
    pub title: Option<String>,
    pub text: String,
    /// The hash of title and text.
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

/// The record of a batch that is written of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Winner {
    /// Its position in the batch.
    pub index: usize,
    /// The newest version that came of the document, in the batch or before.
    pub version: Option<i64>,
}

/// The records to write, one of each document: the one that would stand if the batch came record by record. `stored` is the version that is
/// stored of a record's document. A record without a version, such as a deletion, leaves the version as it is.
pub(super) fn winners(records: &[Normal], stored: impl Fn(&Normal) -> Option<i64>) -> Vec<Winner> {
    let mut best: HashMap<(Uuid, &str), Winner> = HashMap::new();
    for (index, record) in records.iter().enumerate() {
        let came = record.record.source_version;
        let winner = best.entry(record.key()).or_insert_with(|| Winner { index, version: stored(record) });
        if !is_newer(winner.version, came) {
            *winner = Winner { index, version: came.or(winner.version) };
        }
    }
    let mut winners: Vec<Winner> = best.into_values().collect();
    winners.sort_unstable_by_key(|winner| winner.index);
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

    /// F26.
    #[test]
    fn of_each_document_the_newest_version_wins_else_the_last() {
        let (one, other) = (SourceId::new(), SourceId::new());
        for (batch, stored, expected) in [
            (vec![record(one, "a", Some(1)), record(one, "a", Some(2))], None, &[1][..]),
            (vec![record(one, "a", Some(2)), record(one, "a", Some(1))], None, &[0]),
            (vec![record(one, "a", Some(2)), record(one, "a", Some(2))], None, &[1]),
            (vec![record(one, "a", Some(2)), record(one, "a", None)], None, &[1]),
            (vec![record(one, "a", None), record(one, "b", None), record(one, "a", None)], None, &[1, 2]),
            (vec![record(one, "a", Some(2)), record(other, "a", Some(1))], None, &[0, 1]),
            (vec![], None, &[]),
            // One without a version, such as a deletion, and then one that is late.
            (vec![record(one, "a", Some(2)), record(one, "a", None), record(one, "a", Some(1))], None, &[1]),
            (vec![record(one, "a", None), record(one, "a", Some(1))], Some(2), &[0]),
            (vec![record(one, "a", None), record(one, "a", Some(3))], Some(2), &[1]),
            (vec![record(one, "a", Some(1)), record(one, "a", None)], Some(2), &[1]),
        ] {
            let said: Vec<&str> = batch.iter().map(|record| record.text.as_str()).collect();
            let won: Vec<usize> = winners(&batch, |_| stored).into_iter().map(|winner| winner.index).collect();
            assert_eq!(won, expected, "{said:?}, stored {stored:?}");
        }
    }

    #[test]
    fn a_record_without_a_version_keeps_the_newest_that_came_before_it() {
        let one = SourceId::new();
        let batch = [record(one, "a", Some(3)), record(one, "a", None)];
        assert_eq!(winners(&batch, |_| None), [Winner { index: 1, version: Some(3) }]);
        assert_eq!(winners(&batch, |_| Some(5)), [Winner { index: 1, version: Some(5) }]);
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
