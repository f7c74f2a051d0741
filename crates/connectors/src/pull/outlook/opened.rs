//! Files that are letters, or parts of one, in another wrapping: attached messages and appointments, `winmail.dat`, and what S/MIME has signed. They
//! are read as in any other message, so that their words and files are the same from every provider.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use domain::mail::{Attachment, LeftOut, Letter, Note, parse};
use domain::text::normalise;

use super::map::ITEM;

/// One that is larger is kept as a name only.
pub(super) const MOST_BYTES: u64 = 10 * 1024 * 1024;
const TNEF: [&str; 2] = ["application/ms-tnef", "application/vnd.ms-tnef"];
const PKCS7: [&str; 2] = ["application/pkcs7-mime", "application/x-pkcs7-mime"];
/// Outlook gives a signed letter as an almost empty one with all of it in a file of this type.
const SIGNED: &str = "multipart/signed";
const CALENDAR: &str = "text/calendar";

/// Whether a file is opened.
pub(super) fn is_opened(file: &Attachment) -> bool {
    let kind = file.media_type.as_str();
    let is_known = [ITEM, SIGNED, CALENDAR].contains(&kind) || TNEF.contains(&kind) || PKCS7.contains(&kind);
    is_known && file.size_bytes <= MOST_BYTES
}

/// Puts the words and files of what a file holds into the letter. The file stays by its name only where nothing in it was a file.
pub(super) fn open(letter: &mut Letter, index: usize, bytes: &[u8]) {
    let Some(file) = letter.files.get_mut(index) else { return };
    file.size_bytes = bytes.len() as u64;
    let kind = match file.media_type.as_str() {
        // Appointments and contacts are attached in the same way as messages.
        ITEM if bytes.starts_with(b"BEGIN:VCALENDAR") => CALENDAR.to_owned(),
        ITEM if bytes.starts_with(b"BEGIN:") => {
            file.left_out = Some(LeftOut::Machine);
            return;
        }
        kind => kind.to_owned(),
    };
    let inner = match kind.as_str() {
        // It has a head of its own.
        SIGNED => parse(bytes),
        kind => {
            let head = format!("Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\n\r\n");
            parse(&[head.into_bytes(), BASE64_STANDARD.encode(bytes).into_bytes()].concat())
        }
    };
    let (outer, is_whole) = (file.part.clone(), kind != CALENDAR && !is_sealed(&inner));
    if is_whole {
        letter.files.remove(index);
        letter.files.extend(inner.files.into_iter().map(|file| inside(&outer, file)));
    } else {
        file.left_out = Some(if kind == CALENDAR { LeftOut::Machine } else { LeftOut::Unreadable });
    }
    if !inner.text.is_empty() {
        letter.text = normalise(&format!("{}\n\n{}", letter.text, inner.text));
    }
    if kind == SIGNED || PKCS7.contains(&kind.as_str()) {
        // It is the letter's own body.
        letter.html = letter.html.take().filter(|_| inner.html.is_none()).or(inner.html);
        letter.quoted = letter.quoted.take().or(inner.quoted);
        letter.signature = letter.signature.take().or(inner.signature);
    }
    for note in inner.notes {
        if !letter.notes.contains(&note) {
            letter.notes.push(note);
        }
    }
}

/// Whether nothing could be taken out.
fn is_sealed(inner: &Letter) -> bool {
    inner.notes.contains(&Note::TnefUnreadable) || (inner.notes.contains(&Note::Encrypted) && inner.text.is_empty())
}

/// A file of an attached message, with a name within the whole letter.
fn inside(outer: &str, file: Attachment) -> Attachment {
    Attachment { part: format!("{outer}.{}", file.part), ..file }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(media_type: &str) -> Letter {
        let file = Attachment {
            part: "A1".into(),
            name: Some("it".into()),
            media_type: media_type.into(),
            size_bytes: 7,
            content_id: None,
            is_inline: false,
            content: None,
            left_out: Some(LeftOut::Kind),
        };
        Letter { text: "Outside.".into(), files: vec![file], ..Letter::default() }
    }

    fn opened(media_type: &str, bytes: &str) -> Letter {
        let mut letter = letter(media_type);
        assert!(is_opened(&letter.files[0]));
        open(&mut letter, 0, bytes.as_bytes());
        letter
    }

    #[test]
    fn an_attached_message_adds_its_words_and_its_files() {
        let message = "From: Ann <ann@x.example>\r\nSubject: Inner\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
            --b\r\n\r\nInside.\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\n\r\n%PDF-1.4\r\n--b--\r\n";
        let letter = opened(ITEM, message);
        assert!(letter.text.starts_with("Outside.") && letter.text.contains("Inside."), "{}", letter.text);
        assert!(letter.text.contains("Inner"), "{}", letter.text);
        assert_eq!(letter.files.len(), 1);
        assert_eq!((letter.files[0].name.as_deref(), letter.files[0].left_out), (Some("a.pdf"), None));
        assert!(letter.files[0].part.starts_with("A1.") && letter.files[0].content.is_some());
    }

    #[test]
    fn appointments_tell_their_words_and_cards_nothing() {
        let event = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nDTSTART:20261112T140000Z\r\n\
            SUMMARY:Visit of the campuses\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        for kind in [ITEM, CALENDAR] {
            let letter = opened(kind, event);
            assert!(letter.text.contains("Visit of the campuses"), "{}", letter.text);
            assert_eq!(
                (letter.files[0].left_out, letter.notes.clone()),
                (Some(LeftOut::Machine), vec![Note::Calendar])
            );
        }
        let letter = opened(ITEM, "BEGIN:VCARD\r\nFN:Ann\r\nEND:VCARD\r\n");
        assert_eq!((letter.text.as_str(), letter.files[0].left_out), ("Outside.", Some(LeftOut::Machine)));
    }

    #[test]
    fn what_cannot_be_opened_stays_by_its_name() {
        let letter = opened("application/pkcs7-mime", "sealed");
        assert_eq!((letter.files[0].left_out, letter.notes), (Some(LeftOut::Unreadable), vec![Note::Encrypted]));
        let letter = opened("application/ms-tnef", "no tnef");
        assert_eq!((letter.files[0].left_out, letter.notes), (Some(LeftOut::Unreadable), vec![Note::TnefUnreadable]));
    }

    #[test]
    fn a_signed_letter_is_its_own_body() {
        let entity = "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Signed words.</p>\r\n\
            --b\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nx\r\n--b--\r\n";
        let letter = opened(SIGNED, entity);
        assert!(letter.text.contains("Signed words.") && letter.html.is_some(), "{letter:?}");
        assert_eq!(letter.notes, [Note::Signed]);
        assert_eq!(letter.files[0].left_out, Some(LeftOut::Machine));
    }
}
