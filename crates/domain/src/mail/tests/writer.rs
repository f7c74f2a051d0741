//! Writes messages from a seed, and knows what was written.

use chrono::{DateTime, FixedOffset, TimeZone as _, Utc};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::authors::{AUTHORS, Author};
use super::encodings::{base64, encoded, quoted_printable};
use super::histories::{QUOTINGS, SIGNATURES};
use crate::mail::{LeftOut, Note, signed, tnef};

pub struct Written {
    pub bytes: Vec<u8>,
    pub name: String,
    pub address: String,
    pub subject: String,
    pub sent_at: DateTime<Utc>,
    pub text: String,
    /// A sentence of the history.
    pub quoted: Option<String>,
    /// The words of the signature.
    pub signature: Option<String>,
    pub has_html: bool,
    /// Each file's name and the reason why it is left out.
    pub files: Vec<(String, Option<LeftOut>)>,
    pub notes: Vec<Note>,
    /// The kind of its structure, for the words of a failed test.
    pub kind: &'static str,
}

pub const KINDS: [&str; 22] = [
    "plain",
    "html",
    "alternative",
    "alternative and a file",
    "related in alternative",
    "mixed in related",
    "signed by S/MIME",
    "signed by PGP",
    "signed as a whole",
    "encrypted by S/MIME",
    "encrypted by PGP",
    "winmail.dat",
    "invitation",
    "bounce",
    "attached message",
    "digest",
    "text, file, text",
    "flowed",
    "signed in line by PGP",
    "a file without a type",
    "several files",
    "page without plain text",
];

/// Writes the message of a seed.
pub fn message(seed: u64) -> Written {
    let mut rng = StdRng::seed_from_u64(seed);
    let Author(name, subject, sentences, charsets) = &AUTHORS[rng.random_range(0..AUTHORS.len())];
    let pick = |rng: &mut StdRng, n: usize| rng.random_range(0..n);
    let kind = KINDS[seed as usize % KINDS.len()];
    let charset = charsets[pick(&mut rng, charsets.len())];
    let mut paragraphs: Vec<&str> = sentences.to_vec();
    paragraphs.rotate_left(pick(&mut rng, 3));
    paragraphs.truncate(pick(&mut rng, 3) + 1);
    let mut w = Writer { charset, boundary: 0, end: if pick(&mut rng, 4) == 0 { "\n" } else { "\r\n" }, rng };
    let mut written = Written {
        bytes: Vec::new(),
        name: (*name).into(),
        address: format!("a{seed}@example.com"),
        subject: (*subject).into(),
        sent_at: DateTime::from_timestamp(1_700_000_000 + seed as i64 * 86_461, 0).expect("a time"),
        text: paragraphs.join("\n\n"),
        quoted: None,
        signature: None,
        has_html: false,
        files: Vec::new(),
        notes: Vec::new(),
        kind,
    };
    let (mut plain, mut html) = w.bodies(seed, &paragraphs, &mut written);
    // These say nothing of their own, or cannot be quoted in.
    let is_bare =
        matches!(kind, "encrypted by S/MIME" | "encrypted by PGP" | "digest" | "signed in line by PGP" | "flowed");
    if is_bare {
        (written.quoted, written.signature) = (None, None);
        plain = paragraphs.join("\n\n");
        html = format!("<p>{}</p>", paragraphs.join("</p><p>"));
    }
    let entity = w.entity(kind, &plain, &html, &mut written);
    let head = w.head(&written);
    written.bytes = [head.into_bytes(), entity].concat();
    written
}

/// A file of each kind: its name, its type, its content and the reason why it is left out.
const FILES: [(&str, &str, &[u8], Option<LeftOut>); 6] = [
    ("Invoice 2041.pdf", "application/pdf", b"%PDF-1.7 \x00\xff content", None),
    ("photo.jpg", "image/jpeg", b"\xff\xd8\xff\xe0 content", None),
    ("list.csv", "text/csv", b"no,sum\r\n1,10\r\n", None),
    ("notes.txt", "text/plain", b"Notes.\r\n", None),
    ("ann.vcf", "text/x-vcard", b"BEGIN:VCARD\r\nEND:VCARD\r\n", Some(LeftOut::Machine)),
    ("tool.exe", "application/x-msdownload", b"MZ\0\0", Some(LeftOut::Kind)),
];

struct Writer {
    rng: StdRng,
    charset: &'static str,
    boundary: usize,
    end: &'static str,
}

impl Writer {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.rng.random_range(0..all.len())]
    }

    /// The two forms of the body, with history and signature or without.
    fn bodies(&mut self, seed: u64, paragraphs: &[&str], written: &mut Written) -> (String, String) {
        let mut plain = paragraphs.join("\n\n");
        let escaped: Vec<String> =
            paragraphs.iter().map(|text| text.replace('&', "&amp;").replace('<', "&lt;")).collect();
        let mut html = format!("<html><body><p>{}</p>", escaped.join("</p>\n<p>"));
        if self.rng.random_range(0..3) == 0 {
            let words = format!("Signature number {seed}");
            let (in_plain, in_html) = self.one_of(&SIGNATURES);
            plain.push_str(&format!("\n\n{}", in_plain.replace("{S}", &words)));
            html.push_str(&in_html.replace("{S}", &words));
            written.signature = Some(words);
        }
        if self.rng.random_range(0..2) == 0 {
            let history = format!("History number {seed}.");
            let quoting = &QUOTINGS[self.rng.random_range(0..QUOTINGS.len())];
            // The words of the quoting must have letters of the charset.
            if encoded(quoting.plain, self.charset).is_some() {
                plain.push_str(&format!("\n\n{}", quoting.plain.replace("{H}", &history)));
                html.push_str(&quoting.html.replace("{H}", &history));
                written.quoted = Some(history);
            }
        }
        (plain, html + "</body></html>")
    }

    fn head(&mut self, written: &Written) -> String {
        let zone = self.one_of(&[0, 3_600, -28_800, 19_800, 43_200]);
        let at = FixedOffset::east_opt(zone).expect("a zone").from_utc_datetime(&written.sent_at.naive_utc());
        let date = match self.rng.random_range(0..3) {
            0 => at.format("%a, %d %b %Y %H:%M:%S %z").to_string(),
            1 => at.format("%-d %b %Y %H:%M:%S %z (CET)").to_string(),
            _ => at.format("%a,  %-d  %b  %Y  %H:%M:%S  %z").to_string(),
        };
        let name = if written.name.is_ascii() && self.rng.random_range(0..2) == 0 {
            format!("\"{}\"", written.name.replace('"', "\\\""))
        } else {
            self.words(&written.name)
        };
        let subject = match written.subject.is_ascii() && !written.subject.contains("=?") {
            true if self.rng.random_range(0..2) == 0 => written.subject.replace(" on ", &format!("{} on ", self.end)),
            _ => self.words(&written.subject),
        };
        let fields = [
            format!("Received: from mx by mx with ESMTP id 1;{}\tTue, 3 Mar 2026 10:15:00 +0000 (UTC)", self.end),
            format!("FROM: {name}{}\t<{}>", self.end, written.address),
            "To: bob@example.net, \"Team, all\" <team@example.net>, Group: c@example.net;".into(),
            format!("date: {date}"),
            format!("Subject: {subject}"),
            "Message-Id: <m1@example.com>".into(),
            "References: <m0@example.com>".into(),
            "MIME-Version: 1.0 (a comment)".into(),
        ];
        fields.join(self.end) + self.end
    }

    /// Encoded words of at most 40 bytes each, cut wherever they end.
    fn words(&mut self, text: &str) -> String {
        let charset = if encoded(text, self.charset).is_some() { self.charset } else { "utf-8" };
        let bytes = encoded(text, charset).expect("UTF-8 has all letters");
        let is_base64 = self.rng.random_range(0..2) == 0;
        let words: Vec<String> = bytes
            .chunks(39)
            .map(|chunk| match is_base64 {
                true => format!("=?{charset}?B?{}?=", base64(chunk, usize::MAX, "")),
                false => format!(
                    "=?{}?q?{}?=",
                    charset.to_uppercase(),
                    chunk
                        .iter()
                        .map(|byte| match byte {
                            b' ' => "_".to_owned(),
                            byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
                            byte => format!("={byte:02X}"),
                        })
                        .collect::<String>()
                ),
            })
            .collect();
        words.join(&format!("{} ", self.end))
    }

    /// A text part with its head.
    fn text(&mut self, subtype: &str, parameters: &str, text: &str) -> Vec<u8> {
        let charset = if encoded(text, self.charset).is_some() { self.charset } else { "utf-8" };
        let text = text.replace('\n', self.end);
        let bytes = encoded(&text, charset).expect("UTF-8 has all letters");
        let quote = self.one_of(&["", "\""]);
        let (encoding, body) = match self.rng.random_range(0..3) {
            0 => ("BASE64", base64(&bytes, 76, self.end).into_bytes()),
            1 => ("quoted-printable", quoted_printable(&bytes, self.end)),
            _ => ("8bit", bytes),
        };
        let end = self.end;
        let head = format!(
            "Content-Type: text/{subtype};{end}\tcharset={quote}{charset}{quote}{parameters}{end}Content-Transfer-Encoding: {encoding}{end}{end}"
        );
        [head.into_bytes(), body].concat()
    }

    fn file(&mut self, name: &str, kind: &str, content: &[u8], more: &str) -> Vec<u8> {
        let end = self.end;
        let named = match self.rng.random_range(0..4) {
            0 => format!("; filename=\"{name}\""),
            1 => format!(";{end}\tfilename*=utf-8''{}", name.replace(' ', "%20")),
            2 => {
                let (first, last) = name.split_at(3);
                format!(";{end} filename*0=\"{first}\";{end} filename*1=\"{last}\"")
            }
            _ => format!(";{end} filename=\"{}\"", self.words(name).replace(&format!("{end} "), " ")),
        };
        let head = format!(
            "Content-Type: {kind}{end}Content-Disposition: attachment{named}{end}{more}Content-Transfer-Encoding: base64{end}{end}"
        );
        [head, base64(content, 76, end)].concat().into_bytes()
    }

    fn multipart(&mut self, subtype: &str, parts: &[Vec<u8>]) -> Vec<u8> {
        self.boundary += 1;
        let boundary = format!("=_Part.{}.a", self.boundary);
        let end = self.end;
        let mut bytes =
            format!("Content-Type: multipart/{subtype}; boundary=\"{boundary}\"{end}{end}preamble{end}").into_bytes();
        for part in parts {
            bytes.extend(format!("--{boundary}{end}").bytes());
            bytes.extend(part);
            bytes.extend(end.bytes());
        }
        bytes.extend(format!("--{boundary}--{end}epilogue{end}").bytes());
        bytes
    }

    fn entity(&mut self, kind: &'static str, plain: &str, html: &str, written: &mut Written) -> Vec<u8> {
        let end = self.end;
        let with_head = |head: &str, body: &[u8]| [format!("{head}{end}{end}").as_bytes(), body].concat();
        match kind {
            "plain" => self.text("plain", "", plain),
            "html" | "page without plain text" => {
                written.has_html = true;
                written.text = written.text.replace('\t', " ");
                self.text("html", "", html)
            }
            "alternative" => {
                written.has_html = true;
                let parts = [self.text("plain", "", plain), self.text("html", "", html)];
                self.multipart("alternative", &parts)
            }
            "alternative and a file" | "a file without a type" | "several files" => {
                let body = self.entity("alternative", plain, html, written);
                let n = if kind == "several files" { FILES.len() } else { 1 };
                let mut parts = vec![body];
                for (name, media_type, content, left_out) in
                    FILES.iter().skip(if n == 1 { self.rng.random_range(0..2) } else { 0 }).take(n)
                {
                    let media_type =
                        if kind == "a file without a type" { "application/octet-stream" } else { media_type };
                    parts.push(self.file(name, media_type, content, ""));
                    written.files.push(((*name).into(), *left_out));
                }
                self.multipart("mixed", &parts)
            }
            "related in alternative" | "mixed in related" => {
                written.has_html = true;
                let shown = html.replace("</body>", "<img src=\"cid:Logo.1@x\"></body>");
                let picture =
                    self.file("logo.png", "image/png", b"\x89PNG\r\n\x1a\n", &format!("Content-ID: <logo.1@x>{end}"));
                written.files.push(("logo.png".into(), Some(LeftOut::Inline)));
                let (plain, page) = (self.text("plain", "", plain), self.text("html", "", &shown));
                if kind == "related in alternative" {
                    let related = self.multipart("related; type=\"text/html\"", &[page, picture]);
                    return self.multipart("alternative", &[plain, related]);
                }
                let body = self.multipart("alternative", &[plain, page]);
                self.multipart("related", &[body, picture])
            }
            "signed by S/MIME" | "signed by PGP" => {
                let body = self.entity("alternative", plain, html, written);
                let (name, kind) = match kind {
                    "signed by PGP" => ("signature.asc", "application/pgp-signature"),
                    _ => ("smime.p7s", "application/pkcs7-signature"),
                };
                let signature = self.file(name, kind, b"0\x80", "");
                written.files.push((name.into(), Some(LeftOut::Machine)));
                written.notes.push(Note::Signed);
                self.multipart("signed; micalg=sha-256", &[body, signature])
            }
            "signed as a whole" => {
                let body = self.entity("alternative", plain, html, written);
                written.notes.push(Note::Signed);
                let wrapped = base64(&signed::tests::written(Some(&body)), 76, end);
                with_head(
                    &format!(
                        "Content-Type: application/pkcs7-mime; smime-type=signed-data; name=smime.p7m{end}Content-Transfer-Encoding: base64"
                    ),
                    wrapped.as_bytes(),
                )
            }
            "encrypted by S/MIME" => {
                written.notes.push(Note::Encrypted);
                written.text.clear();
                written.files.push(("smime.p7m".into(), Some(LeftOut::Unreadable)));
                self.file(
                    "smime.p7m",
                    "application/pkcs7-mime; smime-type=enveloped-data",
                    &signed::tests::written(None),
                    "",
                )
            }
            "encrypted by PGP" => {
                written.notes.push(Note::Encrypted);
                written.text.clear();
                written.files.push(("version".into(), Some(LeftOut::Machine)));
                written.files.push(("encrypted.asc".into(), Some(LeftOut::Unreadable)));
                let parts = [
                    self.file("version", "application/pgp-encrypted", b"Version: 1", ""),
                    self.file("encrypted.asc", "application/octet-stream", b"-----BEGIN PGP MESSAGE-----", ""),
                ];
                self.multipart("encrypted", &parts)
            }
            "winmail.dat" => {
                written.notes.push(Note::Tnef);
                let dat = tnef::tests::written(&plain.replace('\n', "\r\n"), "Rechnung März.pdf", b"%PDF-1.7");
                written.files.push(("Rechnung März.pdf".into(), None));
                let wrapped = self.file("winmail.dat", "application/ms-tnef", &dat, "");
                match self.rng.random_range(0..2) {
                    0 => wrapped,
                    _ => {
                        let body = self.text("plain", "", plain);
                        self.multipart("mixed", &[body, wrapped])
                    }
                }
            }
            "invitation" => {
                written.has_html = true;
                written.notes.push(Note::Calendar);
                let calendar = "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nSUMMARY:Visit\nDTSTART:20260303T090000Z\nLOCATION:Pier 4\nEND:VEVENT\nEND:VCALENDAR";
                written.text.push_str("\n\n# Invitation: Visit\nWhen: 2026-03-03 09:00 (UTC)\nWhere: Pier 4");
                let parts = [
                    self.text("plain", "", plain),
                    self.text("html", "", html),
                    self.text("calendar", "; method=REQUEST", calendar),
                ];
                let body = self.multipart("alternative", &parts);
                let file = self.file("invite.ics", "application/ics", calendar.as_bytes(), "");
                written.files.push((String::new(), Some(LeftOut::Machine)));
                written.files.push(("invite.ics".into(), Some(LeftOut::Machine)));
                self.multipart("mixed", &[body, file])
            }
            "bounce" => {
                written.notes.push(Note::Report);
                written.text.push_str("\n\n# Delivery report\nRecipient: bob@example.net\nAction: failed");
                let status = with_head(
                    "Content-Type: message/delivery-status",
                    b"Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; bob@example.net\nAction: failed\n",
                );
                let returned = with_head("Content-Type: message/rfc822", b"Subject: lost\n\nReturned words.");
                written.quoted.get_or_insert_with(|| "Returned words.".into());
                let body = self.text("plain", "", plain);
                self.multipart("report; report-type=delivery-status", &[body, status, returned])
            }
            "attached message" => {
                let file = self.file("inner.pdf", "application/pdf", b"%PDF-1.7", "");
                written.files.push(("inner.pdf".into(), None));
                let text = with_head("Content-Type: text/plain", b"Inner words.");
                let inner = self.multipart("mixed", &[text, file]);
                let inner =
                    [format!("Subject: Inner{end}From: Cy <cy@example.org>{end}").as_bytes(), &inner[..]].concat();
                let attached = with_head("Content-Type: message/rfc822", &inner);
                written.text.push_str("\n\n# Attached message: Inner\nFrom: Cy <cy@example.org>\n\nInner words.");
                let body = self.text("plain", "", plain);
                self.multipart("mixed", &[body, attached])
            }
            "digest" => {
                let one = |n: u8| {
                    with_head("", format!("Subject: Part {n}{end}{end}Words {n}.").as_bytes())[end.len()..].to_vec()
                };
                let digest = self.multipart("digest", &[one(1), one(2)]);
                written
                    .text
                    .push_str("\n\n# Attached message: Part 1\n\nWords 1.\n\n# Attached message: Part 2\n\nWords 2.");
                let body = self.text("plain", "", plain);
                self.multipart("mixed", &[body, digest])
            }
            "text, file, text" => {
                let (first, last) = (self.text("plain", "", "First of all."), self.text("plain", "", plain));
                written.text = format!("First of all.\n\n{}", written.text);
                let (name, media_type, content, left_out) = FILES[0];
                let file = self.file(name, media_type, content, "");
                written.files.push((name.into(), left_out));
                self.multipart("mixed", &[first, file, last])
            }
            "flowed" => {
                let flowed = plain.replace(" ", " \n").replace("\t", " \n").replace("\n>", "\n >");
                written.text = written.text.replace('\t', " ");
                self.text("plain", "; format=flowed", &flowed)
            }
            "signed in line by PGP" => {
                written.notes.push(Note::Signed);
                let signed = format!(
                    "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{plain}\n-----BEGIN PGP SIGNATURE-----\n\niQ==\n-----END PGP SIGNATURE-----\n"
                );
                self.text("plain", "", &signed)
            }
            other => panic!("no such kind: {other}"),
        }
    }
}
