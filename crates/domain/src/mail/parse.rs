//! Reads a message in the form of RFC 5322 and MIME.

use std::borrow::Cow;

use super::head::Head;
use super::parts::{Context, Reader};
use super::words::Body;
use super::{Letter, Note, body, pgp};
use crate::text::{normalise, replace_nul};

/// Longer messages are read up to here. The largest that mail servers take are of this size.
const MOST_BYTES: usize = 160 << 20;
pub(super) const MOST_TEXT_CHARS: usize = 1_000_000;
pub(super) const MOST_HTML_BYTES: usize = 2 << 20;

/// Reads the bytes of a message. It never fails: what cannot be read is missing, and a note says so. Thread, place, folders and the time at
/// which it was received are the provider's to say.
pub fn parse(bytes: &[u8]) -> Letter {
    let is_cut = bytes.len() > MOST_BYTES;
    let bytes = with_line_ends(&bytes[..bytes.len().min(MOST_BYTES)]);
    let (head, content) = Head::read(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes));
    let mut reader = Reader::default();
    let read = reader.message(&head, content, "", Context::of_message());
    if head.is_empty() {
        reader.note(Note::Malformed);
    }
    if is_cut {
        reader.note(Note::Cut);
        // Its end is missing.
        if let Some(file) = reader.files.last_mut() {
            (file.left_out, file.content) = (Some(super::LeftOut::TooLarge), None);
        }
    }
    let mut letter = Letter {
        internet_message_id: head.ids(&["message-id"]).into_iter().next(),
        references: head.ids(&["references", "in-reply-to"]),
        from: head.people("from").into_iter().chain(head.people("sender")).next(),
        reply_to: head.people("reply-to"),
        to: head.people("to"),
        cc: head.people("cc"),
        bcc: head.people("bcc"),
        subject: head.words("subject"),
        sent_at: head.date("date"),
        headers: head.shown(),
        ..Letter::default()
    };
    write(&mut letter, read, &mut reader);
    (letter.files, letter.notes) = (reader.files, reader.notes);
    letter
}

/// Writes the words of the parts into the letter, each where it belongs and none too long.
fn write(letter: &mut Letter, read: Body, reader: &mut Reader) {
    let own = pgp::without_blocks(&read.own.join("\n\n"), |note| reader.note(note));
    let split = body::split_as(letter.subject.as_deref(), &own);
    let mut cut = |text: String| match text.char_indices().nth(MOST_TEXT_CHARS) {
        Some((end, _)) => {
            reader.note(Note::Cut);
            text[..end].trim_end().to_owned()
        }
        None => text,
    };
    let some = |text: String| (!text.is_empty()).then_some(text);
    letter.text = cut(joined(vec![split.text], read.after));
    letter.quoted = some(cut(joined(split.quoted.into_iter().collect(), read.returned)));
    letter.signature = split.signature.map(&mut cut);
    let html = replace_nul(&read.html.join("\n<hr>\n"));
    if html.len() > MOST_HTML_BYTES {
        reader.note(Note::Cut);
    }
    letter.html = some(html[..html.floor_char_boundary(MOST_HTML_BYTES)].to_owned());
}

fn joined(mut texts: Vec<String>, more: Vec<String>) -> String {
    texts.extend(more);
    normalise(&texts.join("\n\n"))
}

/// Lines that end as on old Macs end as elsewhere.
fn with_line_ends(bytes: &[u8]) -> Cow<'_, [u8]> {
    let begin = &bytes[..bytes.len().min(64 * 1024)];
    if begin.contains(&b'\r') && !begin.contains(&b'\n') {
        return Cow::Owned(bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect());
    }
    Cow::Borrowed(bytes)
}
