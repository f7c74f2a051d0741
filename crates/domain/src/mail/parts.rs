//! Reads the parts of a message: what is text, what is a file, and what each kind of part means. The tree is walked here and not by the library,
//! whose walk takes time with the square of the number of parts (1 MB of multiparts without boundaries: 6 s), and whose messages within messages
//! overflow the stack. The library reads fields, dates, addresses and charsets.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;

use super::boundary::{self, cut};
use super::head::{Head, Kind};
use super::words::{Body, charset_of_page, content_ids, file_name, heading};
use super::{Attachment, LeftOut, Note, body, calendar, decode, files, report, signed, tnef};
use crate::text::normalise;

/// Limits of one message, whatever its parts are nested in.
const MOST_DEPTH: usize = 20;
const MOST_PARTS: usize = 1_000;
const TEXT_BYTES: usize = 4 << 20;

/// Everything that the parts of a message hold, collected while they are read.
#[derive(Default)]
pub(super) struct Reader {
    pub files: Vec<Attachment>,
    pub notes: Vec<Note>,
    parts: usize,
    text_bytes: usize,
    /// The same calendar is mostly there twice: as an alternative of the text, and as a file.
    calendars: HashSet<String>,
}

/// The place of a part.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    depth: usize,
    /// It is a whole message, not a part of one.
    is_message: bool,
    is_in_digest: bool,
    is_in_related: bool,
    is_in_report: bool,
    is_in_encrypted: bool,
}

impl Context {
    pub fn of_message() -> Self {
        Self { is_message: true, ..Self::default() }
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, is_in_encrypted: self.is_in_encrypted, ..Self::default() }
    }
}

impl Reader {
    pub fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Reads a message whose head was read. Its files are complete then.
    pub fn message(&mut self, head: &Head, content: &[u8], path: &str, context: Context) -> Body {
        let n_before = self.files.len();
        let mut body = self.part(head, content, path, Context { is_message: true, ..context });
        if body.own.iter().all(|text| text.trim().is_empty())
            && let Some((text, html)) = body.instead.take()
        {
            body.own = vec![text];
            body.html.extend(html);
        }
        let shown: HashSet<String> = body.html.iter().flat_map(|html| content_ids(html)).collect();
        for file in &mut self.files[n_before..] {
            file.is_inline |= file.content_id.as_ref().is_some_and(|id| shown.contains(&id.to_lowercase()));
            file.left_out = files::verdict(file);
            if file.left_out.is_some() {
                file.content = None;
            }
        }
        body
    }

    fn part(&mut self, head: &Head, content: &[u8], path: &str, context: Context) -> Body {
        self.parts += 1;
        if self.parts > MOST_PARTS || context.depth > MOST_DEPTH {
            self.note(Note::Cut);
            return Body::default();
        }
        if head.is_cut {
            self.note(Note::Cut);
        }
        if head.is_malformed {
            self.note(Note::Malformed);
        }
        // A type that is none counts as missing.
        let kind = head.kind("content-type").filter(|kind| kind.name.contains('/'));
        let usual = if context.is_in_digest { "message/rfc822" } else { "text/plain" };
        let kind = kind.unwrap_or_else(|| Kind::named(usual));
        match kind.name.split_once('/') {
            Some(("multipart", subtype)) => self.multipart(subtype, &kind, content, path, context),
            _ => self.leaf(head, kind, content, path, context),
        }
    }

    fn multipart(&mut self, subtype: &str, kind: &Kind, content: &[u8], path: &str, context: Context) -> Body {
        let named = kind.parameter("boundary").map(str::as_bytes).filter(|boundary| !boundary.is_empty());
        let room = (MOST_PARTS + 1).saturating_sub(self.parts);
        let mut found = named.map(|boundary| cut(content, boundary, room));
        if found.as_ref().is_none_or(|found| found.parts.is_empty()) {
            self.note(Note::Malformed);
            found = boundary::guessed(content).map(|boundary| cut(content, boundary, room));
        }
        let Some(found) = found.filter(|found| !found.parts.is_empty()) else {
            // No part can be told, but people may have written something.
            return self.text(content, &Kind::named("text/plain"));
        };
        if !found.is_whole {
            self.note(Note::Malformed);
        }
        match subtype {
            "signed" => self.note(Note::Signed),
            "encrypted" => self.note(Note::Encrypted),
            "report" => self.note(Note::Report),
            _ => {}
        }
        let inside = Context {
            is_in_digest: subtype == "digest",
            is_in_related: subtype == "related",
            is_in_report: subtype == "report",
            is_in_encrypted: context.is_in_encrypted || subtype == "encrypted",
            ..context.deeper()
        };
        let children: Vec<Body> = (1..)
            .zip(found.parts)
            .map(|(n, bytes)| {
                let (head, content) = Head::read(bytes);
                self.part(&head, content, &child(path, n), inside)
            })
            .collect();
        match subtype {
            "alternative" => Body::alternative(children),
            _ => Body::all(children),
        }
    }

    fn leaf(&mut self, head: &Head, kind: Kind, content: &[u8], path: &str, context: Context) -> Body {
        let disposition = head.kind("content-disposition").unwrap_or_default();
        let name = file_name(disposition.parameter("filename").or_else(|| kind.parameter("name")));
        let is_file = disposition.name == "attachment" || name.is_some() && !context.is_message;
        let ending = name.as_deref().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_lowercase());
        let encoding = head.first("content-transfer-encoding");
        let (bytes, is_whole) = decode::transfer(encoding, content);
        if !is_whole {
            self.note(Note::Malformed);
        }
        let path = if context.is_message { child(path, 1) } else { path.to_owned() };
        let mut file = Attachment {
            part: path.clone(),
            name,
            media_type: kind.name.clone(),
            size_bytes: bytes.len() as u64,
            content_id: head.ids(&["content-id"]).pop(),
            is_inline: false,
            content: None,
            left_out: None,
        };
        match (kind.name.as_str(), ending.as_deref()) {
            _ if context.is_in_encrypted => {
                if files::verdict(&file) != Some(LeftOut::Machine) {
                    file.left_out = Some(LeftOut::Unreadable);
                }
                self.files.push(file);
                return Body::default();
            }
            ("text/plain" | "text/html", _) if !is_file => return self.text(&bytes, &kind),
            ("message/rfc822" | "message/global", _) | ("application/octet-stream", Some("eml")) => {
                if let Some(body) = self.attached(&bytes, &path, context) {
                    return body;
                }
            }
            ("message/delivery-status" | "message/disposition-notification" | "message/global-delivery-status", _) => {
                self.note(Note::Report);
                let words = self.decoded(&bytes, &kind);
                return Body { after: report::in_words(&words).into_iter().collect(), ..Body::default() };
            }
            ("text/rfc822-headers" | "message/rfc822-headers", _) if context.is_in_report => {
                let (head, _) = Head::read(&bytes);
                return Body { returned: vec![heading("Returned message", &head)], ..Body::default() };
            }
            ("text/calendar" | "application/ics", _) | (_, Some("ics")) => {
                file.content = Some(Bytes::from(bytes.into_owned()));
                return self.calendar(file, &kind);
            }
            ("application/ms-tnef" | "application/vnd.ms-tnef", _) => return self.tnef(file, &bytes),
            ("application/octet-stream", Some("dat")) if bytes.starts_with(&[0x78, 0x9f, 0x3e, 0x22]) => {
                return self.tnef(file, &bytes);
            }
            ("application/pkcs7-mime" | "application/x-pkcs7-mime", _) => {
                match (signed::unwrap(&bytes), kind.parameter("smime-type")) {
                    (signed::Wrapped::Signed(entity), _) => {
                        self.note(Note::Signed);
                        let (head, content) = Head::read(&entity);
                        return self.part(&head, content, &path, context.deeper());
                    }
                    (signed::Wrapped::Unknown, Some("certs-only")) => {}
                    (_, Some("signed-data")) => {
                        self.note(Note::Signed);
                        file.left_out = Some(LeftOut::Unreadable);
                    }
                    _ => {
                        self.note(Note::Encrypted);
                        file.left_out = Some(LeftOut::Unreadable);
                    }
                }
            }
            // A second form of the text for some programs.
            ("text/x-amp-html" | "text/watch-html" | "text/enriched" | "text/richtext", _) if file.name.is_none() => {
                return Body::default();
            }
            _ => {}
        }
        let is_undecoded = !is_whole && matches!(bytes, Cow::Borrowed(_));
        if is_undecoded || bytes.is_empty() && !content.trim_ascii().is_empty() {
            file.left_out = Some(LeftOut::Unreadable);
        }
        let is_picture = kind.name.starts_with("image/");
        file.is_inline = context.is_in_related && is_picture && file.content_id.is_some();
        self.keep(file, bytes);
        Body::default()
    }

    /// Adds a file, with its bytes unless it is left out already.
    fn keep(&mut self, mut file: Attachment, bytes: Cow<[u8]>) {
        file.content = Some(Bytes::from(bytes.into_owned()));
        file.media_type = files::media_type(&file).to_owned();
        if files::verdict(&file).is_some() {
            file.content = None;
        }
        self.files.push(file);
    }

    /// The words of a text part, decoded.
    fn decoded(&mut self, bytes: &[u8], kind: &Kind) -> String {
        let room = TEXT_BYTES - self.text_bytes;
        let bytes = if bytes.len() > room {
            self.note(Note::Cut);
            &bytes[..room]
        } else {
            bytes
        };
        self.text_bytes += bytes.len();
        let said = kind.parameter("charset");
        let in_page = || if kind.name == "text/html" { charset_of_page(bytes) } else { None };
        decode::text(bytes, said.map(str::to_owned).or_else(in_page).as_deref())
    }

    fn text(&mut self, bytes: &[u8], kind: &Kind) -> Body {
        let text = self.decoded(bytes, kind);
        if kind.name == "text/html" {
            return Body { own: vec![body::from_html(&text)], html: vec![text], ..Body::default() };
        }
        let is = |name: &str, value: &str| kind.parameter(name).is_some_and(|said| said.eq_ignore_ascii_case(value));
        let text = if is("format", "flowed") { body::flowed::unflow(&text, is("delsp", "yes")) } else { text };
        Body { own: vec![normalise(&text)], ..Body::default() }
    }

    /// Reads a message inside this one. None: it is none.
    fn attached(&mut self, bytes: &[u8], path: &str, context: Context) -> Option<Body> {
        let (head, content) = Head::read(bytes);
        let is_message = ["from", "subject", "date", "received", "to"].iter().any(|name| head.first(name).is_some());
        if !is_message {
            return None;
        }
        let (n_files, n_notes) = (self.files.len(), self.notes.len());
        let body = self.message(&head, content, path, context.deeper());
        let title = if context.is_in_report { "Returned message" } else { "Attached message" };
        let words = [vec![heading(title, &head)], body.own, body.after, body.returned].concat();
        let words = normalise(&words.join("\n\n"));
        Some(if context.is_in_report {
            // Its files are those of the letter that came back.
            self.files.truncate(n_files);
            self.notes.truncate(n_notes);
            Body { returned: vec![words], ..Body::default() }
        } else {
            Body { after: vec![words], ..Body::default() }
        })
    }

    fn calendar(&mut self, mut file: Attachment, kind: &Kind) -> Body {
        let content = file.content.take().unwrap_or_default();
        let text = self.decoded(&content, kind);
        "text/calendar".clone_into(&mut file.media_type);
        self.files.push(file);
        let words = calendar::in_words(&text).filter(|words| self.calendars.insert(words.clone()));
        if words.is_some() {
            self.note(Note::Calendar);
        }
        Body { after: words.into_iter().collect(), ..Body::default() }
    }

    fn tnef(&mut self, mut file: Attachment, bytes: &[u8]) -> Body {
        let Some(unpacked) = tnef::read(bytes) else {
            self.note(Note::TnefUnreadable);
            file.left_out = Some(LeftOut::Unreadable);
            self.files.push(file);
            return Body::default();
        };
        self.note(Note::Tnef);
        for (n, inner) in (1..).zip(unpacked.files) {
            self.parts += 1;
            if self.parts > MOST_PARTS {
                self.note(Note::Cut);
                break;
            }
            let inner_file = Attachment {
                part: child(&file.part, n),
                name: file_name(inner.name.as_deref()),
                media_type: inner
                    .media_type
                    .map_or_else(|| "application/octet-stream".into(), |kind| kind.to_lowercase()),
                size_bytes: inner.content.len() as u64,
                content_id: inner.content_id,
                is_inline: false,
                content: None,
                left_out: None,
            };
            self.keep(inner_file, Cow::Owned(inner.content));
        }
        let html = unpacked.html;
        let text = unpacked.text.or_else(|| html.as_deref().map(body::from_html));
        Body { instead: text.map(|text| (normalise(&text), html)), ..Body::default() }
    }
}

/// The name of a part within another one.
fn child(path: &str, n: usize) -> String {
    if path.is_empty() { n.to_string() } else { format!("{path}.{n}") }
}
