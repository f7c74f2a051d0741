//! The files of a letter that make documents of their own.

use super::{Attachment, LeftOut};

/// The largest file that is kept.
pub const MOST_BYTES: u64 = 25 * 1024 * 1024;

/// A type of file: its name, further names that senders give it, the endings of its files, and their first bytes.
struct Type {
    name: &'static str,
    aliases: &'static [&'static str],
    endings: &'static [&'static str],
    begins: &'static [&'static [u8]],
}

/// Types that are kept. Office documents are archives or texts by their first bytes, so their type or their name tells them.
const KEPT: [Type; 18] = [
    Type {
        name: "application/pdf",
        aliases: &["application/x-pdf", "application/acrobat", "text/pdf"],
        endings: &["pdf"],
        begins: &[b"%PDF-"],
    },
    Type { name: "image/png", aliases: &["image/x-png"], endings: &["png"], begins: &[b"\x89PNG\r\n\x1a\n"] },
    Type {
        name: "image/jpeg",
        aliases: &["image/jpg", "image/pjpeg"],
        endings: &["jpg", "jpeg", "jpe", "jfif"],
        begins: &[b"\xff\xd8\xff"],
    },
    Type {
        name: "image/tiff",
        aliases: &["image/tif", "image/x-tiff"],
        endings: &["tif", "tiff"],
        begins: &[b"II*\0", b"MM\0*"],
    },
    Type { name: "text/plain", aliases: &[], endings: &["txt", "text"], begins: &[] },
    Type { name: "text/html", aliases: &["application/xhtml+xml"], endings: &["html", "htm"], begins: &[] },
    Type {
        name: "text/csv",
        aliases: &["application/csv", "text/comma-separated-values", "text/x-csv"],
        endings: &["csv"],
        begins: &[],
    },
    Type { name: "text/tab-separated-values", aliases: &[], endings: &["tsv"], begins: &[] },
    Type { name: "text/markdown", aliases: &["text/x-markdown"], endings: &["md", "markdown"], begins: &[] },
    Type {
        name: "application/rtf",
        aliases: &["text/rtf", "application/x-rtf", "text/richtext"],
        endings: &["rtf"],
        begins: &[b"{\\rtf"],
    },
    Type {
        name: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        aliases: &[],
        endings: &["docx"],
        begins: &[],
    },
    Type { name: "application/vnd.ms-word.document.macroenabled.12", aliases: &[], endings: &["docm"], begins: &[] },
    Type {
        name: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        aliases: &[],
        endings: &["xlsx"],
        begins: &[],
    },
    Type { name: "application/vnd.ms-excel.sheet.macroenabled.12", aliases: &[], endings: &["xlsm"], begins: &[] },
    Type {
        name: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        aliases: &[],
        endings: &["pptx"],
        begins: &[],
    },
    Type { name: "application/vnd.oasis.opendocument.text", aliases: &[], endings: &["odt"], begins: &[] },
    Type { name: "application/vnd.oasis.opendocument.spreadsheet", aliases: &[], endings: &["ods"], begins: &[] },
    Type { name: "application/vnd.oasis.opendocument.presentation", aliases: &[], endings: &["odp"], begins: &[] },
];

/// Types that machines write for machines: signatures, keys, calendar entries and business cards.
const MACHINE: [Type; 8] = [
    Type {
        name: "application/pkcs7-signature",
        aliases: &["application/x-pkcs7-signature"],
        endings: &["p7s"],
        begins: &[],
    },
    Type {
        name: "application/pkcs7-mime",
        aliases: &["application/x-pkcs7-mime"],
        endings: &["p7m", "smime"],
        begins: &[],
    },
    Type { name: "application/pgp-signature", aliases: &[], endings: &["sig"], begins: &[b"-----BEGIN PGP SIG"] },
    Type { name: "application/pgp-encrypted", aliases: &[], endings: &[], begins: &[] },
    Type { name: "application/pgp-keys", aliases: &[], endings: &[], begins: &[b"-----BEGIN PGP PUBLIC"] },
    Type { name: "text/calendar", aliases: &["application/ics"], endings: &["ics"], begins: &[b"BEGIN:VCALENDAR"] },
    Type {
        name: "text/vcard",
        aliases: &["text/x-vcard", "text/directory"],
        endings: &["vcf"],
        begins: &[b"BEGIN:VCARD"],
    },
    Type {
        name: "application/ms-tnef",
        aliases: &["application/vnd.ms-tnef"],
        endings: &[],
        begins: &[b"\x78\x9f\x3e\x22"],
    },
];

/// Types that say nothing, so the name and the first bytes decide.
const UNSAID: [&str; 9] = [
    "",
    "application/octet-stream",
    "application/x-octet-stream",
    "application/octetstream",
    "application/binary",
    "application/download",
    "application/x-download",
    "application/force-download",
    "application/unknown",
];

/// Returns the reason why a file is left out. None: it is kept. Its bytes need not be there yet.
pub fn verdict(file: &Attachment) -> Option<LeftOut> {
    if file.left_out.is_some() {
        return file.left_out;
    }
    let kind = media_type(file);
    // A signature or a calendar entry is often said to be text.
    let is_machine =
        |one: &Type| one.name == kind || ending(file).is_some_and(|ending| one.endings.contains(&&*ending));
    if MACHINE.iter().any(is_machine) {
        return Some(LeftOut::Machine);
    }
    let is_kept = KEPT.iter().any(|one| one.name == kind);
    // Some programs say of every file that it is shown inside.
    if file.is_inline && (kind.starts_with("image/") || !is_kept) {
        return Some(LeftOut::Inline);
    }
    if !is_kept {
        return Some(LeftOut::Kind);
    }
    (file.size_bytes > MOST_BYTES).then_some(LeftOut::TooLarge)
}

/// The types that are kept, under their usual names.
pub fn kept_types() -> impl Iterator<Item = &'static str> {
    KEPT.iter().map(|one| one.name)
}

/// The type of a file under its usual name. Where it is not said, the first bytes tell it, if they are there, or else the name.
pub fn media_type(file: &Attachment) -> &str {
    let said = file.media_type.as_str();
    let known = || KEPT.iter().chain(&MACHINE);
    if !UNSAID.contains(&said) {
        return known().find(|one| one.aliases.contains(&said)).map_or(said, |one| one.name);
    }
    let content = file.content.as_deref().unwrap_or_default();
    let by_content = known().find(|one| one.begins.iter().any(|begin| content.starts_with(begin)));
    let by_name = || ending(file).and_then(|ending| known().find(|one| one.endings.contains(&&*ending)));
    by_content.or_else(by_name).map_or(said, |one| one.name)
}

fn ending(file: &Attachment) -> Option<String> {
    file.name.as_deref()?.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn file(kind: &str, name: &str) -> Attachment {
        Attachment {
            part: "2".into(),
            name: (!name.is_empty()).then(|| name.to_owned()),
            media_type: kind.into(),
            size_bytes: 1_000,
            content_id: None,
            is_inline: false,
            content: None,
            left_out: None,
        }
    }

    #[test]
    fn files_are_kept_by_their_kind() {
        use LeftOut::{Kind, Machine};
        for (kind, name, expected) in [
            ("application/pdf", "", None),
            ("application/x-pdf", "a", None),
            ("application/octet-stream", "Invoice.PDF", None),
            ("", "a.tiff", None),
            ("image/jpg", "a", None),
            ("text/csv", "a.csv", None),
            ("text/plain", "notes.txt", None),
            ("text/html", "page.html", None),
            ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "", None),
            ("application/octet-stream", "Plan.XLSX", None),
            ("application/vnd.ms-powerpoint.presentation", "talk.pptx", Some(Kind)),
            ("text/rtf", "", None),
            ("", "notes.odt", None),
            ("image/gif", "a.gif", Some(Kind)),
            ("application/zip", "a.pdf.zip", Some(Kind)),
            ("application/octet-stream", "", Some(Kind)),
            ("application/octet-stream", "run.exe", Some(Kind)),
            ("application/msword", "a.doc", Some(Kind)),
            ("application/pkcs7-signature", "smime.p7s", Some(Machine)),
            ("application/octet-stream", "smime.p7s", Some(Machine)),
            ("application/octet-stream", "a.smime", Some(Machine)),
            ("text/plain", "signature.sig", Some(Machine)),
            ("text/calendar", "", Some(Machine)),
            ("application/ics", "invite.ics", Some(Machine)),
            ("text/x-vcard", "ann.vcf", Some(Machine)),
            ("application/octet-stream", "ann.VCF", Some(Machine)),
        ] {
            assert_eq!(verdict(&file(kind, name)), expected, "{kind} {name:?}");
        }
    }

    #[test]
    fn size_place_and_first_bytes_count_too() {
        let pdf = file("application/pdf", "a.pdf");
        assert_eq!(verdict(&Attachment { size_bytes: MOST_BYTES, ..pdf.clone() }), None);
        assert_eq!(verdict(&Attachment { size_bytes: MOST_BYTES + 1, ..pdf.clone() }), Some(LeftOut::TooLarge));
        assert_eq!(verdict(&Attachment { is_inline: true, ..pdf.clone() }), None, "a PDF is no picture of the body");
        assert_eq!(verdict(&Attachment { is_inline: true, ..file("image/png", "a.png") }), Some(LeftOut::Inline));
        assert_eq!(verdict(&Attachment { left_out: Some(LeftOut::Unreadable), ..pdf }), Some(LeftOut::Unreadable));
        let scan =
            Attachment { content: Some(Bytes::from_static(b"%PDF-1.4")), ..file("application/octet-stream", "scan") };
        assert_eq!((verdict(&scan), media_type(&scan)), (None, "application/pdf"));
    }
}
