//! Writes messages as mail programs do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};

/// The bytes of a plain letter, with files where there are some: name, type and bytes.
pub(super) fn letter(
    (from, to): (&str, &str),
    subject: &str,
    text: &str,
    files: &[(&str, &str, &[u8])],
    (id, at): (&str, DateTime<Utc>),
) -> Vec<u8> {
    let domain = from.trim_end_matches('>').rsplit('@').next().unwrap_or("example.com");
    let mut head = format!(
        "From: {from}\r\nTo: {to}\r\nSubject: {}\r\nDate: {}\r\nMessage-ID: <{id}@mail.{domain}>\r\nMIME-Version: 1.0\r\n",
        encoded(subject),
        at.to_rfc2822(),
    );
    let body = format!(
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{}\r\n",
        lines(text)
    );
    if files.is_empty() {
        return (head + &body).into_bytes();
    }
    let boundary = format!("=_{id}");
    head.push_str(&format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\r\n\r\n--{boundary}\r\n{body}"));
    for (name, kind, bytes) in files {
        let encoded = STANDARD.encode(bytes);
        let encoded: Vec<&str> =
            encoded.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        head.push_str(&format!(
            "--{boundary}\r\nContent-Type: {kind}; name=\"{name}\"\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n{}\r\n",
            encoded.join("\r\n")
        ));
    }
    head.push_str(&format!("--{boundary}--\r\n"));
    head.into_bytes()
}

/// The value of a header line of a message; none where it has no such line.
pub(super) fn header(raw: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(raw);
    let head = text.split("\r\n\r\n").next().unwrap_or_default().to_owned();
    let mut lines = head.split("\r\n").peekable();
    while let Some(line) = lines.next() {
        let Some((known, value)) = line.split_once(':') else { continue };
        if known.eq_ignore_ascii_case(name) {
            let mut value = value.trim().to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
                value.push(' ');
                value.push_str(more.trim());
            }
            return Some(value);
        }
    }
    None
}

fn encoded(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_owned(),
        false => format!("=?utf-8?B?{}?=", STANDARD.encode(text)),
    }
}

fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
