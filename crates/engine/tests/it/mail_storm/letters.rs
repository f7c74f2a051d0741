//! Letters as the storm writes them: plain ones, mass mail that rules leave out, and files of which some are in several letters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// A file. Each has bytes of its own, so that its name says which bytes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    pub name: &'static str,
    kind: &'static str,
    begins: &'static [u8],
    n_lines: usize,
    /// Whether it makes a document.
    pub is_kept: bool,
}

const fn file(name: &'static str, kind: &'static str, begins: &'static [u8], n_lines: usize, is_kept: bool) -> File {
    File { name, kind, begins, n_lines, is_kept }
}

static FILES: [File; 8] = [
    file("offer.pdf", "application/pdf", b"%PDF-1.7\n", 40, true),
    file("contract.pdf", "application/pdf", b"%PDF-1.4\n", 400, true),
    file("plan.png", "image/png", b"\x89PNG\r\n\x1a\n", 90, true),
    file("site.jpg", "image/jpeg", b"\xff\xd8\xff\xe0", 60, true),
    file("scan.tiff", "image/tiff", b"II*\0", 30, true),
    file("hours.csv", "text/csv", b"day,hours\n", 12, true),
    file("notes.txt", "text/plain", b"Notes\n", 6, true),
    file("drawings.zip", "application/zip", b"PK\x03\x04", 20, false),
];

impl File {
    pub fn bytes(&self) -> Vec<u8> {
        let lines: String = (0..self.n_lines).map(|n| format!("{n},{} of {}\n", n % 9, self.name)).collect();
        [self.begins, lines.as_bytes()].concat()
    }
}

/// A letter before it is in a mailbox.
#[derive(Clone, Debug)]
pub struct Written {
    from: String,
    subject: String,
    text: String,
    headers: Vec<(&'static str, &'static str)>,
    /// The name that its sender's program gave it.
    name: String,
    pub files: Vec<File>,
    /// The rule that leaves it out.
    pub left_out: Option<&'static str>,
}

impl Written {
    /// The file of this name.
    pub fn file(name: &str) -> Option<&'static File> {
        FILES.iter().find(|file| file.name == name)
    }

    /// The letter of this number.
    pub fn new(dice: &mut StdRng, number: usize) -> Self {
        let person = dice.random_range(0..97);
        let machine = dice.random_range(1..400);
        let mut written = Self {
            from: format!("Sender {person} <sender{person}@firm{}.example>", person % 31),
            subject: format!("Machine {machine}, letter {number}"),
            text: format!("Letter number {number}.\n\nThe machine {machine} is due in week {}.\n", number % 52),
            headers: Vec::new(),
            name: format!("<{number}.{machine}@mail.storm.example>"),
            files: Vec::new(),
            left_out: None,
        };
        match dice.random_range(0..30) {
            0 => {
                written.headers = vec![("List-Unsubscribe", "<https://news.example/out>"), ("X-Campaign", "spring")];
                written.left_out = Some("newsletters");
            }
            1 => {
                written.from = "Shop <noreply@shop.example>".into();
                written.headers = vec![("List-Unsubscribe", "<https://shop.example/out>"), ("Precedence", "bulk")];
                written.left_out = Some("bulk");
            }
            2 => {
                written.headers = vec![("Auto-Submitted", "auto-replied")];
                written.left_out = Some("auto_replies");
            }
            3..9 => {
                let first = dice.random_range(0..FILES.len());
                let beside = dice.random_range(0..FILES.len());
                written.files.push(FILES[first]);
                if dice.random_bool(0.4) && beside != first {
                    written.files.push(FILES[beside]);
                }
            }
            _ => {}
        }
        written
    }

    /// As the bytes of RFC 5322.
    pub fn mime(&self, to: &str, at: DateTime<Utc>) -> Vec<u8> {
        let mut head = format!(
            "From: {}\r\nTo: {to}\r\nSubject: {}\r\nDate: {}\r\nMessage-ID: {}\r\nMIME-Version: 1.0\r\n",
            self.from,
            self.subject,
            at.to_rfc2822(),
            self.name
        );
        self.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        let text = self.text.replace('\n', "\r\n");
        let body = format!("Content-Type: text/plain; charset=utf-8\r\n\r\n{text}");
        if self.files.is_empty() {
            return (head + &body).into_bytes();
        }
        let mut whole =
            head + "Content-Type: multipart/mixed; boundary=\"=_storm\"\r\n\r\n--=_storm\r\n" + &body + "\r\n";
        for file in &self.files {
            let encoded = STANDARD.encode(file.bytes());
            let lines: Vec<&str> =
                encoded.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
            whole.push_str(&format!(
                "--=_storm\r\nContent-Type: {}; name=\"{name}\"\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\
                 Content-Transfer-Encoding: base64\r\n\r\n{}\r\n",
                file.kind,
                lines.join("\r\n"),
                name = file.name,
            ));
        }
        whole.push_str("--=_storm--\r\n");
        whole.into_bytes()
    }

    /// As Graph spells it.
    pub fn graph(&self, at: DateTime<Utc>) -> Value {
        let (name, address) = self.from.split_once(" <").unwrap_or(("", &self.from));
        let from = json!({ "emailAddress": { "name": name, "address": address.trim_end_matches('>') } });
        let headers: Vec<Value> =
            self.headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let attachment = |file: &File| json!({ "name": file.name, "contentType": file.kind, "contentBytes": STANDARD.encode(file.bytes()) });
        let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        json!({
            "from": from, "subject": self.subject, "body": { "contentType": "text", "content": self.text },
            "internetMessageId": self.name, "internetMessageHeaders": headers, "receivedDateTime": at, "sentDateTime": at,
            "attachments": self.files.iter().map(attachment).collect::<Vec<_>>(),
        })
    }
}
