//! A record in its normal form, and which version wins where a batch holds several of one document.

use std::collections::HashMap;

use domain::text::{self, Chunk};
use domain::{PageText, Record};
use uuid::Uuid;

/// A record with its normalised title and text.
pub(super) struct Normal {
    pub record: Record,
    pub title: Option<String>,
    pub text: String,
    /// The pages of its file that have text. The text is what is said before them, then theirs.
    pages: Vec<PageText>,
    before_pages: String,
    /// The hash of title and text, and of where its pages are.
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
        let pages = pages(&mut record);
        let before_pages = if pages.is_empty() { String::new() } else { text.clone() };
        let mut hashed = format!("{}\0{text}", title.as_deref().unwrap_or_default());
        for page in &pages {
            let label = page.label.as_deref().unwrap_or_default();
            hashed.push_str(&format!("\0{}\0{label}\0{}", page.number, page.text));
        }
        let said = [text].into_iter().filter(|text| !text.is_empty());
        let text = said.chain(pages.iter().map(|page| page.text.clone())).collect::<Vec<_>>().join("\n\n");
        Self { record, title, text, pages, before_pages, sha256: text::sha256(&hashed) }
    }

    /// Its text, cut into chunks, each with the page on which it stands.
    pub fn chunks(&self) -> (Vec<Chunk>, Vec<Option<&PageText>>) {
        if self.pages.is_empty() {
            let chunks = text::chunks(&self.text);
            let nowhere = vec![None; chunks.len()];
            return (chunks, nowhere);
        }
        let texts = [self.before_pages.as_str()].into_iter().chain(self.pages.iter().map(|page| page.text.as_str()));
        let placed = text::chunks_of_pages(texts).into_iter();
        placed.map(|(nth, chunk)| (chunk, nth.checked_sub(1).and_then(|nth| self.pages.get(nth)))).unzip()
    }

    /// Identifies the document.
    pub fn key(&self) -> (Uuid, &str) {
        (self.record.source_id.0, &self.record.external_id)
    }
}

/// The pages of a record's file, normalised; those without text are left out.
fn pages(record: &mut Record) -> Vec<PageText> {
    let pages = std::mem::take(&mut record.pages).into_iter().filter(|_| !record.is_deleted);
    let normal = pages.map(|page| PageText {
        label: page.label.as_deref().map(text::normalise).filter(|label| !label.is_empty()),
        text: text::normalise(&page.text),
        ..page
    });
    normal.filter(|page| !page.text.is_empty()).collect()
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
    fn a_files_pages_are_its_text_and_each_chunk_knows_its_page() {
        let page = |number, label: Option<&str>, text: &str| PageText {
            number,
            label: label.map(Into::into),
            text: text.into(),
        };
        let of = |text: &str, pages| {
            Normal::of(Record { pages, ..Record::new(SourceId::new(), "a", DocumentType::File, text) })
        };
        let normal =
            of("An invoice.", vec![page(1, None, "One.\r\n"), page(2, None, " "), page(3, Some("Sums"), "Three.")]);
        assert_eq!(normal.text, "An invoice.\n\nOne.\n\nThree.");
        let (chunks, places) = normal.chunks();
        let placed: Vec<(&str, Option<i32>)> = chunks
            .iter()
            .zip(&places)
            .map(|(chunk, page)| (chunk.text.as_str(), page.map(|page| page.number)))
            .collect();
        assert_eq!(placed, [("An invoice.", None), ("One.", Some(1)), ("Three.", Some(3))]);
        let moved = of("An invoice.", vec![page(1, None, "One."), page(2, Some("Sums"), "Three.")]);
        assert_eq!(moved.text, normal.text);
        assert_ne!(moved.sha256, normal.sha256, "the same words on another page are another text");
        let plain = of("A note.", vec![]);
        assert_eq!(plain.chunks().1, [None]);
        assert_eq!(plain.sha256, text::sha256("\0A note."), "the hash of a text without pages stays what it was");
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
