//! The head of a message or of one of its parts: its fields, and the forms in which they are read.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use mail_parser::parsers::MessageStream;
use mail_parser::{Addr, HeaderValue};

use super::{Correspondent, decode, encoded};

/// Limits of a head. Nothing that people or mail servers write comes near them.
const MOST_FIELDS: usize = 1_000;
const FIELD_BYTES: usize = 64 * 1024;
const NAME_BYTES: usize = 100;
const MOST_PEOPLE: usize = 1_000;
const MOST_IDS: usize = 100;
const LINE_CHARS: usize = 2_000;
/// So much of a field is decoded for people to look at, and so much of a media type is read.
const SHOWN_BYTES: usize = 8_000;

/// The fields of a head in their order, unfolded and not decoded.
#[derive(Default)]
pub(super) struct Head {
    fields: Vec<(String, String)>,
    /// A field or a part of one was left out.
    pub is_cut: bool,
    /// Some lines are no fields.
    pub is_malformed: bool,
}

/// A media type or a disposition with its parameters.
#[derive(Default)]
pub(super) struct Kind {
    /// Lower case.
    pub name: String,
    parameters: Vec<(String, String)>,
}

impl Kind {
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), parameters: Vec::new() }
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Head {
    /// Reads a head up to its empty line. Returns the rest. A line that is no field ends the head too, and is part of the rest.
    pub fn read(bytes: &[u8]) -> (Self, &[u8]) {
        let mut head = Self::default();
        let mut field: Option<(String, Vec<u8>)> = None;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (line, after) = first_line(rest);
            if line.is_empty() {
                rest = after;
                break;
            }
            if matches!(line[0], b' ' | b'\t') {
                match &mut field {
                    Some((_, value)) if value.len() + line.len() <= FIELD_BYTES => value.extend_from_slice(line),
                    Some(_) => head.is_cut = true,
                    // Blanks before the first field.
                    None => {}
                }
            } else if let Some((name, value)) = name_and_value(line) {
                head.push(field.take());
                head.is_cut |= value.len() > FIELD_BYTES;
                field = Some((name, value[..value.len().min(FIELD_BYTES)].to_vec()));
            } else if field.is_some() || !is_envelope(line) {
                // As everybody does, we take it for the first line of the body.
                head.is_malformed = true;
                break;
            }
            rest = after;
        }
        head.push(field);
        (head, rest)
    }

    fn push(&mut self, field: Option<(String, Vec<u8>)>) {
        let Some((name, value)) = field else { return };
        if self.fields.len() == MOST_FIELDS {
            self.is_cut = true;
            return;
        }
        self.fields.push((name, decode::text(&value, None)));
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All fields, decoded, for people to look at.
    pub fn shown(&self) -> Vec<(String, String)> {
        self.fields
            .iter()
            .map(|(name, value)| {
                let end = value.floor_char_boundary(SHOWN_BYTES);
                (name.clone(), line(&encoded::decode(&value[..end])))
            })
            .collect()
    }

    /// The decoded words of a field, on one line. None: there are none.
    pub fn words(&self, name: &str) -> Option<String> {
        self.all(name).map(|value| line(&encoded::decode(value))).find(|words| !words.is_empty())
    }

    /// The people and lists of all fields with this name, those of groups among them.
    pub fn people(&self, name: &str) -> Vec<Correspondent> {
        let mut people = Vec::new();
        for value in self.all(name) {
            let value = with_end(&encoded::decode_shielded(value));
            if let HeaderValue::Address(addresses) = MessageStream::new(value.as_bytes()).parse_address() {
                people.extend(addresses.iter().take(MOST_PEOPLE - people.len()).filter_map(correspondent));
            }
        }
        people
    }

    pub fn date(&self, name: &str) -> Option<DateTime<Utc>> {
        self.all(name).find_map(|value| {
            let value = with_end(value);
            match MessageStream::new(value.as_bytes()).parse_date() {
                HeaderValue::DateTime(at) if at.is_valid() => DateTime::from_timestamp(at.to_timestamp(), 0),
                _ => None,
            }
        })
    }

    /// The message ids of the fields with these names, in their order and without brackets, each once.
    pub fn ids(&self, names: &[&str]) -> Vec<String> {
        let mut seen = HashSet::new();
        let mut ids = Vec::new();
        for value in names.iter().flat_map(|name| self.all(name)) {
            let value = with_end(value);
            let found = MessageStream::new(value.as_bytes()).parse_id();
            for id in found.as_text_list().unwrap_or_default() {
                let id = line(id);
                if !id.is_empty() && seen.insert(id.clone()) {
                    ids.push(id);
                }
            }
        }
        // The beginning of a conversation, and its last letters.
        if ids.len() > MOST_IDS {
            ids.drain(1..ids.len() - MOST_IDS + 1);
        }
        ids
    }

    /// A `Content-Type` or `Content-Disposition`.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let value = self.first(name)?;
        let value = with_end(&encoded::decode_shielded(&value[..value.floor_char_boundary(SHOWN_BYTES)]));
        let parsed = MessageStream::new(value.as_bytes()).parse_content_type();
        let parsed = parsed.as_content_type()?;
        let name = match parsed.subtype() {
            Some(subtype) => format!("{}/{subtype}", parsed.ctype()),
            None => parsed.ctype().to_owned(),
        };
        let parameters = parsed.attributes().unwrap_or_default();
        let parameters =
            parameters.iter().map(|one| (one.name.to_lowercase(), line(&encoded::unshield(&one.value)))).collect();
        Some(Kind { name: line(&encoded::unshield(&name)).to_lowercase(), parameters })
    }
}

/// A text on one line: without control characters, trimmed, and of a length that people can read.
pub(super) fn line(text: &str) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if n_chars >= LINE_CHARS {
            break;
        }
        if n_chars > 0 {
            line.push(' ');
            n_chars += 1;
        }
        let room = LINE_CHARS - n_chars.min(LINE_CHARS);
        line.extend(word.chars().take(room));
        n_chars += word.chars().take(room).count();
    }
    line.truncate(line.trim_end().len());
    line
}

/// The first line without its end, and the lines after it.
pub(super) fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

fn name_and_value(line: &[u8]) -> Option<(String, &[u8])> {
    let colon = line.iter().take(NAME_BYTES + 1).position(|byte| *byte == b':')?;
    let name = line[..colon].trim_ascii_end();
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let name = is_name.then(|| String::from_utf8_lossy(name).into_owned())?;
    Some((name, line[colon + 1..].trim_ascii_start()))
}

/// The line that mailbox files have before each message.
fn is_envelope(line: &[u8]) -> bool {
    line.starts_with(b"From ") || line.starts_with(b">From ")
}

/// The library's readers of fields want a line's end.
fn with_end(value: &str) -> String {
    format!("{}\n", value.replace(['\n', '\r'], " "))
}

fn correspondent(found: &Addr) -> Option<Correspondent> {
    let read = |text: &str| line(&encoded::unshield(text));
    let name = found.name.as_deref().map(read).filter(|name| !name.is_empty());
    let address = found.address.as_deref().map(read).unwrap_or_default();
    let name = name.filter(|name| *name != address);
    (name.is_some() || !address.is_empty()).then_some(Correspondent { name, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Head {
        Head::read(text.as_bytes()).0
    }

    #[test]
    fn people_are_read_however_they_are_written() {
        for (value, expected) in [
            ("ann@example.com", "ann@example.com"),
            ("Ann Lee <ann@example.com>", "Ann Lee <ann@example.com>"),
            ("\"Lee, Ann\" <ann@example.com>, bob@example.com", "Lee, Ann <ann@example.com>; bob@example.com"),
            ("ann@example.com (Ann Lee)", "Ann Lee <ann@example.com>"),
            ("=?utf-8?q?Lee=2C_=C3=84nn?= <ann@example.com>", "Lee, Änn <ann@example.com>"),
            ("Dr. =?utf-8?q?=C3=84nn?= Lee <ann@example.com>", "Dr. Änn Lee <ann@example.com>"),
            ("\"=?utf-8?q?=C3=84nn?= Lee\" <ann@example.com>", "Änn Lee <ann@example.com>"),
            ("=?utf-8?b?w4RubiA8YUBiLmM+?= <ann@example.com>", "Änn <a@b.c> <ann@example.com>"),
            ("Friends: ann@example.com, Bob <bob@example.com>;", "ann@example.com; Bob <bob@example.com>"),
            ("undisclosed-recipients:;", ""),
            ("ann@example.com <ann@example.com>", "ann@example.com"),
            ("Ann", "Ann"),
            ("<ann@example.com>", "ann@example.com"),
            ("Jörg <joerg@example.com>", "Jörg <joerg@example.com>"),
            ("", ""),
            (",,,", ""),
            ("ann@example.com,\r\n  bob@example.com", "ann@example.com; bob@example.com"),
        ] {
            let shown: Vec<String> =
                head(&format!("To: {value}\r\n\r\n")).people("to").iter().map(Correspondent::shown).collect();
            assert_eq!(shown.join("; "), expected, "of {value:?}");
        }
    }

    #[test]
    fn a_head_ends_where_its_lines_are_no_fields() {
        for (text, fields, rest) in [
            ("A: b\r\nC: d\r\n\r\nbody", "A=b C=d", "body"),
            ("A: b\n c\n\td\n\nbody", "A=b c\td", "body"),
            ("From ann@example.com Tue Mar  3\nA: b\n\nbody", "A=b", "body"),
            ("A: b\nno field\n\nbody", "A=b", "no field\n\nbody"),
            ("hello there\nyou", "", "hello there\nyou"),
            ("A : b\n\n", "A=b", ""),
            ("A: b", "A=b", ""),
            ("\r\nbody", "", "body"),
            ("", "", ""),
            (": no name\nbody", "", ": no name\nbody"),
        ] {
            let (head, found) = Head::read(text.as_bytes());
            let shown: Vec<String> = head.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!((shown.join(" ").as_str(), found), (fields, rest.as_bytes()), "of {text:?}");
        }
    }

    #[test]
    fn dates_ids_and_kinds_are_read() {
        let head = head(
            "Date: Tue, 03 Mar 2026 10:15:00 +0100\nX-Date: yesterday\nMessage-ID: <a@b>\nReferences: <1@x> <2@x>\n <1@x>\n\
             In-Reply-To: <2@x> <3@x>\nContent-Type: Text/Plain; charset=\"UTF-8\"; name*=utf-8''Gr%C3%BC%C3%9Fe.txt\n\
             Content-Disposition: attachment; filename=\"=?utf-8?q?a=3Bb=22.txt?=\"\n\n",
        );
        assert_eq!(head.date("date").map(|at| at.to_rfc3339()).as_deref(), Some("2026-03-03T09:15:00+00:00"));
        assert_eq!(head.date("x-date"), None);
        assert_eq!(head.ids(&["message-id"]), ["a@b"]);
        assert_eq!(head.ids(&["references", "in-reply-to"]), ["1@x", "2@x", "3@x"]);
        let kind = head.kind("content-type").expect("a type");
        assert_eq!((kind.name.as_str(), kind.parameter("charset")), ("text/plain", Some("UTF-8")));
        assert_eq!(kind.parameter("name"), Some("Grüße.txt"));
        let disposition = head.kind("content-disposition").expect("a disposition");
        assert_eq!((disposition.name.as_str(), disposition.parameter("filename")), ("attachment", Some("a;b\".txt")));
    }
}
