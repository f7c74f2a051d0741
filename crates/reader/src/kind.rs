//! Tells what a file is by its first bytes. Names and stated types decide among kinds of text.

use domain::reading::{FileKind, Unreadable};

use crate::unpack::{Unpacked, compound};
use crate::{Result, Source, Stop, text};

/// First bytes of programs: Windows, Linux, macOS, Java.
const PROGRAMS: [&[u8]; 7] = [
    b"MZ",
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
];
const IMAGES: [&[u8]; 7] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"GIF87a", b"GIF89a", b"BM"];
const AUDIO: [&[u8]; 6] = [b"ID3", b"fLaC", b"OggS", b"\xff\xfb", b"\xff\xf3", b"\xff\xf1"];
/// A PDF may have something before its head.
const PDF_WITHIN: usize = 1_024;

pub(crate) fn of(source: &Source) -> Result<FileKind> {
    let bytes = source.bytes.as_slice();
    // Two letters alone may begin any text.
    let begins = |some: &[&[u8]]| {
        some.iter()
            .any(|begin| bytes.starts_with(begin) && (begin.len() > 2 || !begin.is_ascii() || head_has_nul(bytes)))
    };
    if bytes.is_empty() {
        return Err(Stop::Refused(Unreadable::Empty, String::new()));
    }
    let head = bytes.get(..PDF_WITHIN).unwrap_or(bytes);
    if head.windows(5).any(|five| five == b"%PDF-") {
        return Ok(FileKind::Pdf);
    }
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        return zipped(bytes);
    }
    if bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return compound(bytes);
    }
    if bytes.starts_with(b"{\\rtf") {
        return Ok(FileKind::Rtf);
    }
    if begins(&IMAGES) || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")) {
        return Ok(FileKind::Image);
    }
    let is_mp4 = bytes.get(4..8) == Some(b"ftyp");
    if begins(&AUDIO) || is_mp4 || (bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE")) {
        return Ok(FileKind::Audio);
    }
    if begins(&PROGRAMS) {
        return Err(Stop::Refused(Unreadable::Program, "the first bytes of a program".into()));
    }
    if !text::is_text(bytes) {
        return Err(Stop::Refused(Unreadable::UnknownKind, "bytes that are no text and no kind that is known".into()));
    }
    Ok(of_text(source))
}

fn head_has_nul(bytes: &[u8]) -> bool {
    bytes.get(..64).unwrap_or(bytes).contains(&0)
}

/// The kind of what is packed as a zip: an office document shows it by the files inside.
fn zipped(bytes: &[u8]) -> Result<FileKind> {
    let mut files = Unpacked::open(bytes)?;
    let has = |name: &str| files.names().any(|known| known == name);
    // Word of the web calls it document2.xml.
    let is_word = |name: String| name.starts_with("word/document") && name.ends_with(".xml");
    Ok(if files.names().any(is_word) {
        FileKind::Docx
    } else if has("xl/workbook.xml") {
        FileKind::Xlsx
    } else if has("ppt/presentation.xml") {
        FileKind::Pptx
    } else if files.begins_with("mimetype", b"application/vnd.oasis.opendocument.spreadsheet")? {
        FileKind::Ods
    } else if files.begins_with("mimetype", b"application/vnd.oasis.opendocument.presentation")? {
        FileKind::Odp
    } else if files.begins_with("mimetype", b"application/vnd.oasis.opendocument.")? {
        FileKind::Odt
    } else {
        FileKind::Zip
    })
}

/// The kinds of text are alike in their bytes.
fn of_text(source: &Source) -> FileKind {
    let ending = source.ending();
    let stated = source.media_type.as_deref().and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    match ending.as_deref() {
        Some("eml" | "mht" | "mhtml") => return FileKind::Eml,
        Some("html" | "htm" | "xhtml") => return FileKind::Html,
        Some("md" | "markdown") => return FileKind::Markdown,
        Some("csv") => return FileKind::Csv,
        Some("tsv" | "tab") => return FileKind::Tsv,
        _ => {}
    }
    match stated.to_ascii_lowercase().as_str() {
        "message/rfc822" => return FileKind::Eml,
        "text/html" | "application/xhtml+xml" => return FileKind::Html,
        "text/markdown" => return FileKind::Markdown,
        "text/csv" | "application/csv" => return FileKind::Csv,
        "text/tab-separated-values" => return FileKind::Tsv,
        _ => {}
    }
    let head = source.bytes.get(..512).unwrap_or(&source.bytes).trim_ascii_start().to_ascii_lowercase();
    if head.starts_with(b"<!doctype html") || head.starts_with(b"<html") {
        return FileKind::Html;
    }
    let is_mail = ["return-path:", "received:", "from:", "mime-version:", "delivered-to:", "message-id:"];
    let has_name = ending.is_some_and(|ending| ending != "txt");
    match !has_name && is_mail.iter().filter(|field| holds_field(&source.bytes, field)).count() >= 3 {
        true => FileKind::Eml,
        false => FileKind::Text,
    }
}

/// Whether one of the first lines begins so.
fn holds_field(bytes: &[u8], field: &str) -> bool {
    let head = bytes.get(..4_096).unwrap_or(bytes);
    let mut lines = head.split(|byte| *byte == b'\n').take(40);
    lines.any(|line| line.get(..field.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(field.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_and_names_only_among_texts() {
        let of = |bytes: &[u8], name: &str| {
            let source = Source { bytes: bytes.to_vec(), name: Some(name.into()), media_type: None };
            super::of(&source).map_err(|stop| match stop {
                Stop::Refused(why, _) => why,
                _ => panic!("{name}"),
            })
        };
        for (bytes, name, expected) in [
            (&b"%PDF-1.4"[..], "a.txt", Ok(FileKind::Pdf)),
            (b"\n\n%PDF-1.4", "a", Ok(FileKind::Pdf)),
            (b"MZ\x90\0\x03", "invoice.pdf", Err(Unreadable::Program)),
            (b"\x7fELF\x02\x01", "a.txt", Err(Unreadable::Program)),
            (b"", "a.pdf", Err(Unreadable::Empty)),
            (b"\x89PNG\r\n\x1a\n", "a.txt", Ok(FileKind::Image)),
            (b"RIFF\x24\0\0\0WAVEfmt ", "a", Ok(FileKind::Audio)),
            (b"{\\rtf1 hi}", "a.doc", Ok(FileKind::Rtf)),
            (b"MZ is no program, and BM no picture.", "a.txt", Ok(FileKind::Text)),
            (b"a,b\n1,2\n", "a.csv", Ok(FileKind::Csv)),
            (b"a,b\n1,2\n", "a.txt", Ok(FileKind::Text)),
            (b"<!DOCTYPE html><p>x", "a", Ok(FileKind::Html)),
            (b"# Title\n", "a.md", Ok(FileKind::Markdown)),
            (b"From: a@b\r\nReceived: x\r\nMIME-Version: 1.0\r\n\r\nhi", "letter", Ok(FileKind::Eml)),
            (b"From: a\nto b", "a.txt", Ok(FileKind::Text)),
            (b"\x00\x01\x02\x03binary\x00", "a.dat", Err(Unreadable::UnknownKind)),
            (b"\xff\xfeh\0i\0", "a.txt", Ok(FileKind::Text)),
            (b"caf\xe9", "a.txt", Ok(FileKind::Text)),
        ] {
            assert_eq!(of(bytes, name), expected, "{name}: {bytes:?}");
        }
    }
}
