//! Maps Google's documents and sheets, and files of other kinds, to records of ours.

use domain::mail::files::kept_types;
use domain::text::replace_nul;
use serde_json::{Map, Value};

use crate::pull::record;
use crate::pull::{Failed, Item, RawItem, RemoteFile};

pub(super) const DOC: &str = "google_drive.doc";
pub(super) const SHEET: &str = "google_drive.sheet";
/// A file that is no document of Google's own: its bytes are fetched, and read as those of every other file.
pub(super) const FILE: &str = "google_drive.file";
pub(super) const DOC_MIME: &str = "application/vnd.google-apps.document";
pub(super) const SHEET_MIME: &str = "application/vnd.google-apps.spreadsheet";

const OBJECT: &str = "file";

/// Files that are read beside those that are kept of letters. Films and music are not.
const MORE_TYPES: [&str; 6] =
    ["image/gif", "image/webp", "image/bmp", "application/zip", "message/rfc822", "application/vnd.ms-outlook"];

/// The types of Drive's that are read.
pub(super) fn mime_types() -> impl Iterator<Item = &'static str> {
    [DOC_MIME, SHEET_MIME].into_iter().chain(kept_types()).chain(MORE_TYPES)
}

/// The document type of a file; none for types that are not read.
pub(super) fn document_type(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        DOC_MIME => Some(DOC),
        SHEET_MIME => Some(SHEET),
        _ => mime_types().any(|known| known.eq_ignore_ascii_case(mime_type)).then_some(FILE),
    }
}

/// Brings one file of Drive's JSON into its one form, with its text under `text`. `object` is `file`.
pub(super) fn raw(object: &str, record: Value) -> Result<RawItem, Failed> {
    read(object, &record).map_err(|reason| record::failed(OBJECT, record.get("id"), reason, record.clone()))
}

fn read(object: &str, record: &Value) -> Result<RawItem, String> {
    if object != OBJECT {
        return Err("it is of a kind that is not read".into());
    }
    let fields = record::object(record)?;
    let id = record::id(fields, "id")?;
    let external_id = format!("{OBJECT}:{id}");
    let mime_type = record::text(fields, "mimeType")?.unwrap_or_default();
    let Some(document_type) = document_type(&mime_type) else {
        return Err("it is of a type that is not read".into());
    };
    if fields.get("trashed").and_then(Value::as_bool) == Some(true) {
        return Ok(tombstone(&id, document_type));
    }
    let text = fields.get("text").and_then(Value::as_str);
    if text.is_none() && document_type != FILE {
        return Err("it came without its text".into());
    }
    let created = record::time(fields.get("createdTime"));
    let updated = record::time(fields.get("modifiedTime"));

    let mut payload = Map::new();
    record::put(&mut payload, "id", Some(id));
    record::put(&mut payload, "name", record::text(fields, "name")?);
    record::put(&mut payload, "mimeType", Some(mime_type));
    record::put(&mut payload, "createdTime", created.map(record::spelled));
    record::put(&mut payload, "modifiedTime", updated.map(record::spelled));
    record::put(&mut payload, "webViewLink", record::text(fields, "webViewLink")?);
    record::put(&mut payload, "size", record::text(fields, "size")?);
    record::put(&mut payload, "sha256Checksum", record::text(fields, "sha256Checksum")?);
    record::put(&mut payload, "text", text.map(words));
    Ok(RawItem {
        external_id,
        document_type,
        payload: Value::Object(payload),
        source_created_at: created,
        source_updated_at: updated,
        is_deleted: false,
    })
}

/// The words of an export: without the mark of its byte order, and without the pictures that a document's Markdown has at its end as lines
/// of base64.
fn words(text: &str) -> String {
    let is_picture = |line: &str| line.starts_with('[') && line.contains("]: <data:");
    let text = replace_nul(text.trim_start_matches('\u{feff}'));
    if !text.lines().any(is_picture) {
        return text;
    }
    text.split_inclusive('\n').filter(|line| !is_picture(line)).collect()
}

/// A tombstone without a time: a file that comes back from the bin, or is shared with us again, is older than its removal, and must win all
/// the same.
pub(super) fn tombstone(id: &str, document_type: &'static str) -> RawItem {
    record::tombstone(format!("{OBJECT}:{id}"), document_type, None)
}

/// Makes of a file what memory takes.
pub(super) fn item(raw: RawItem) -> Item {
    if raw.is_deleted {
        return record::buried(raw, Vec::new());
    }
    let title = record::said(&raw.payload, "/name");
    let text = record::said(&raw.payload, "/text").unwrap_or_default();
    let file = (raw.document_type == FILE).then(|| RemoteFile {
        name: title.clone(),
        media_type: record::said(&raw.payload, "/mimeType").unwrap_or_default(),
        size_bytes: record::said(&raw.payload, "/size").and_then(|size| size.parse().ok()),
        sha256: record::said(&raw.payload, "/sha256Checksum"),
        blob_key: None,
    });
    Item { raw, title, text, mentions: Vec::new(), letter: None, file }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_keeps_its_metadata_as_drive_spells_it_and_its_text_beside() {
        let file = json!({
            "id": "1aB-_z", "name": "Plan", "mimeType": DOC_MIME, "createdTime": "2026-10-01T00:00:00.000Z",
            "modifiedTime": "2026-11-01T00:00:00.000Z", "trashed": false, "parents": ["F"],
            "webViewLink": "https://docs.google.com/document/d/1aB-_z/edit", "text": "\u{feff}# Plan\n\nAll of it.",
        });
        let doc = raw("file", file).expect("a file");
        assert_eq!(
            doc.payload,
            json!({
                "id": "1aB-_z", "name": "Plan", "mimeType": DOC_MIME, "createdTime": "2026-10-01T00:00:00.000Z",
                "modifiedTime": "2026-11-01T00:00:00.000Z", "webViewLink": "https://docs.google.com/document/d/1aB-_z/edit",
                "text": "# Plan\n\nAll of it.",
            })
        );
        assert_eq!(raw("file", doc.payload.clone()).expect("a file"), doc);
        let item = item(doc);
        assert_eq!((item.title.as_deref(), item.text.as_str()), (Some("Plan"), "# Plan\n\nAll of it."));
        assert_eq!((item.raw.external_id.as_str(), item.raw.document_type), ("file:1aB-_z", "google_drive.doc"));
        assert!(item.mentions.is_empty());

        let sheet = raw("file", json!({ "id": "2", "mimeType": SHEET_MIME, "text": "" })).expect("a sheet");
        assert_eq!(sheet.document_type, "google_drive.sheet");
    }

    #[test]
    fn a_file_of_another_kind_comes_without_its_text_and_with_its_hash() {
        let file = json!({ "id": "7", "name": "Lease.pdf", "mimeType": "application/pdf", "size": "12", "sha256Checksum": "ab" });
        let read = raw("file", file).expect("a file");
        assert_eq!(raw("file", read.payload.clone()).expect("a file"), read);
        let item = item(read);
        assert_eq!((item.raw.document_type, item.text.as_str()), (FILE, ""));
        let file = item.file.expect("a file");
        assert_eq!(
            (file.size_bytes, file.sha256.as_deref(), file.name.as_deref()),
            (Some(12), Some("ab"), Some("Lease.pdf"))
        );
    }

    #[test]
    fn what_says_nothing_is_left_out_of_the_text() {
        for (text, expected) in [
            ("a\n\nb\n", "a\n\nb\n"),
            ("\u{feff}a\0", "a\u{fffd}"),
            ("![][image1] a\r\n\n[image1]: <data:image/png;base64,iVBORw0KGgo=>\n", "![][image1] a\r\n\n"),
            ("[note]: <https://x.example>", "[note]: <https://x.example>"),
            ("", ""),
        ] {
            assert_eq!(words(text), expected);
        }
    }

    #[test]
    fn a_file_in_the_bin_is_gone() {
        let gone = raw("file", json!({ "id": "1", "mimeType": SHEET_MIME, "trashed": true })).expect("a tombstone");
        assert!(gone.is_deleted && gone.source_updated_at.is_none());
        assert_eq!(item(gone).text, "");
    }

    #[test]
    fn what_is_no_file_of_ours_stays_behind_with_a_reason() {
        for (record, id, reason) in [
            (json!({ "mimeType": DOC_MIME, "text": "" }), "file:?", "it has no id that is one"),
            (json!({ "id": "1", "mimeType": "video/mp4" }), "file:1", "it is of a type that is not read"),
            (json!({ "id": "1" }), "file:1", "it is of a type that is not read"),
            (json!({ "id": "1", "mimeType": DOC_MIME }), "file:1", "it came without its text"),
            (json!({ "id": "1", "mimeType": DOC_MIME, "text": 5 }), "file:1", "it came without its text"),
            (json!({ "id": "1", "mimeType": DOC_MIME, "text": "", "name": {} }), "file:1", "its name is not a text"),
        ] {
            let failed = raw("file", record).expect_err("no file");
            assert!(failed.external_id.starts_with(id), "{failed:?}");
            assert_eq!(failed.reason, reason);
        }
    }
}
