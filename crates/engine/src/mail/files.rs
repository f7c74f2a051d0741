//! The files of letters as documents: bytes in the blob store, text at once where the file is text.

use bytes::Bytes;
use domain::mail::{Attachment, files};
use domain::text::{html_to_text, replace_nul};
use domain::{DocumentStatus, Fault, Record, TenantId};
use serde_json::{Map, Value};

use crate::Env;

/// The beginning of the name of a file's document.
pub(super) const PREFIX: &str = "attachment:";
/// The largest file whose text is read at once.
const MOST_TEXT_BYTES: usize = 2 << 20;
/// The longest name of a part that makes a document's name.
const MOST_PART_CHARS: usize = 500;

/// Whether a file of a letter makes a document.
pub(super) fn is_kept(file: &Attachment) -> bool {
    let is_named = (1..=MOST_PART_CHARS).contains(&file.part.chars().count()) && !file.part.contains(char::is_control);
    is_named && file.left_out.is_none() && files::verdict(file).is_none()
}

/// The name of a file's document.
pub(super) fn name(message_id: &str, file: &Attachment) -> String {
    format!("{PREFIX}{message_id}/{}", file.part)
}

/// The metadata of a file's document: that of its letter, and what the file is.
pub(super) fn metadata(of_letter: &Map<String, Value>, file: &Attachment) -> Value {
    let mut told = of_letter.clone();
    told.insert("attachment_filename".into(), file.name.clone().into());
    told.insert("media_type".into(), files::media_type(file).into());
    told.insert("size_bytes".into(), file.size_bytes.into());
    Value::Object(told)
}

/// Stores a file's bytes, and makes its document of `base`. The bytes stay for a day without a document, so nothing is lost when the page is
/// written again.
pub(super) async fn record(
    env: &Env,
    tenant_id: TenantId,
    base: Record,
    file: &Attachment,
    content: Bytes,
) -> Result<Record, Fault> {
    let text = read(files::media_type(file), &content);
    let key = env.blobs.put(&env.db, tenant_id, content).await?;
    let title = file.name.as_deref().map(replace_nul).unwrap_or_else(|| "A file without a name".into());
    let status = if text.is_some() { DocumentStatus::Completed } else { DocumentStatus::Pending };
    Ok(Record { title: Some(title), text: text.unwrap_or_default(), blob_key: Some(key.to_string()), status, ..base })
}

/// A file as an event names it.
pub(super) fn attached(made: &Record, file: &Attachment) -> Option<store::activities::Attachment> {
    Some(store::activities::Attachment {
        name: replace_nul(file.name.as_deref().unwrap_or_default()),
        content_type: Some(replace_nul(&file.media_type)),
        content_id: file.content_id.as_deref().map(replace_nul),
        bytes: i64::try_from(file.size_bytes).unwrap_or(i64::MAX),
        blob_key: made.blob_key.clone()?,
    })
}

/// The text of a file that is text. None: another reads it.
fn read(media_type: &str, content: &[u8]) -> Option<String> {
    if content.len() > MOST_TEXT_BYTES {
        return None;
    }
    match media_type {
        "text/html" => Some(html_to_text(&decoded(content)).1),
        "text/plain" | "text/csv" => Some(decoded(content)),
        _ => None,
    }
}

/// Bytes as text: UTF-16 where a mark says so, else UTF-8, else as Windows writes western languages.
fn decoded(content: &[u8]) -> String {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match content {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        other => match std::str::from_utf8(other) {
            Ok(text) => text.to_owned(),
            Err(_) => other.iter().map(|byte| western(*byte)).collect(),
        },
    }
}

/// A character of Windows-1252.
fn western(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž', '\u{fffd}',
        '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_the_encoding_that_it_has() {
        for (content, expected) in [
            (&b"caf\xc3\xa9"[..], "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "café"),
            (b"caf\xe9 \x80", "café €"),
            (b"\xff\xfeh\0i\0", "hi"),
            (b"\xfe\xff\0h\0i", "hi"),
            (b"", ""),
        ] {
            assert_eq!(decoded(content), expected, "{content:?}");
        }
    }

    #[test]
    fn text_is_read_at_once_and_the_rest_by_others() {
        assert_eq!(read("text/csv", b"a,b").as_deref(), Some("a,b"));
        assert_eq!(read("text/html", b"<p>hi</p>").as_deref(), Some("hi"));
        assert_eq!(read("application/pdf", b"%PDF"), None);
        assert_eq!(read("text/plain", &vec![b'a'; MOST_TEXT_BYTES + 1]), None);
    }
}
