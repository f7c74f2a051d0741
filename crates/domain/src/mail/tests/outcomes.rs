//! One message for each outcome that docs/mail.md promises and the corpus does not have.

use super::read;
use crate::mail::{LeftOut, Letter, Note};

/// Writes a message with lines in the order of a table: `\n` is enough.
fn letter(message: &str) -> Letter {
    read(message, message.as_bytes())
}

fn words(letter: &Letter) -> [&str; 3] {
    [&letter.text, letter.quoted.as_deref().unwrap_or_default(), letter.signature.as_deref().unwrap_or_default()]
}

#[test]
fn every_outcome_is_as_documented() {
    for (what, message, expected, notes) in [
        ("nothing", "", ["", "", ""], vec![Note::Malformed]),
        ("no head", "Just words.\n\nMore.", ["Just words.\n\nMore.", "", ""], vec![Note::Malformed]),
        ("a head alone", "Subject: x\n", ["", "", ""], vec![]),
        ("no type", "Subject: x\n\nWords", ["Words", "", ""], vec![]),
        ("an unknown type of text", "Content-Type: text\n\nWords", ["Words", "", ""], vec![]),
        (
            "a multipart without parts",
            "Content-Type: multipart/mixed\n\nWords",
            ["Words", "", ""],
            vec![Note::Malformed],
        ),
        (
            "PGP in the text",
            "Subject: x\n\nWords\n-----BEGIN PGP MESSAGE-----\nxyz\n-----END PGP MESSAGE-----\n",
            ["Words", "", ""],
            vec![Note::Encrypted],
        ),
        (
            "a read receipt",
            "Content-Type: multipart/report; boundary=x\n\n--x\n\nRead.\n--x\nContent-Type: message/disposition-notification\n\n\
             Final-Recipient: rfc822;bob@x.y\nDisposition: manual-action; displayed\n--x--",
            ["Read.\n\n# Delivery report\nRecipient: bob@x.y\nDisposition: manual-action; displayed", "", ""],
            vec![Note::Report],
        ),
        (
            "the head of a letter that came back",
            "Content-Type: multipart/report; boundary=x\n\n--x\n\nFailed.\n--x\nContent-Type: text/rfc822-headers\n\nSubject: Lost\nTo: bob@x.y\n--x--",
            ["Failed.", "# Returned message: Lost\nTo: bob@x.y", ""],
            vec![Note::Report],
        ),
        (
            "passed on in Outlook",
            "Subject: FW: x\n\nSee below.\n\nFrom: Bob\nSent: Tuesday\nTo: Ann\nSubject: x\n\nWords",
            ["See below.\n\nFrom: Bob\nSent: Tuesday\nTo: Ann\nSubject: x\n\nWords", "", ""],
            vec![],
        ),
        (
            "a damaged winmail.dat",
            "Content-Type: multipart/mixed; boundary=x\n\n--x\n\nWords\n--x\nContent-Type: application/ms-tnef; name=winmail.dat\n\nnonsense\n--x--",
            ["Words", "", ""],
            vec![Note::TnefUnreadable],
        ),
        (
            "the same calendar twice",
            "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/calendar\n\nBEGIN:VEVENT\nSUMMARY:V\nEND:VEVENT\n--x\n\
             Content-Type: text/calendar\n\nBEGIN:VEVENT\nSUMMARY:V\nEND:VEVENT\n--x--",
            ["# Calendar entry: V", "", ""],
            vec![Note::Calendar],
        ),
    ] {
        let letter = letter(message);
        assert_eq!((words(&letter), &letter.notes), (expected, &notes), "{what}");
    }
}

#[test]
fn a_file_is_left_out_for_a_reason() {
    let file = |head: &str, body: &str| {
        let message = format!("Content-Type: multipart/mixed; boundary=x\n\n--x\n{head}\n\n{body}\n--x--");
        let [file] = &letter(&message).files[..] else { panic!("{message}") };
        (file.name.clone().unwrap_or_default(), file.media_type.clone(), file.size_bytes, file.left_out)
    };
    for (head, body, name, media_type, size_bytes, left_out) in [
        ("Content-Type: application/pdf; name=a.pdf", "%PDF", "a.pdf", "application/pdf", 4, None),
        ("Content-Type: APPLICATION/X-PDF", "%PDF", "", "application/pdf", 4, None),
        ("Content-Type: application/octet-stream", "%PDF-1.7", "", "application/pdf", 8, None),
        ("Content-Disposition: attachment; filename=a.txt", "words", "a.txt", "text/plain", 5, None),
        ("Content-Type: text/html; name=a.html", "<p>", "a.html", "text/html", 3, None),
        ("Content-Type: image/png\nContent-Disposition: inline", "x", "", "image/png", 1, None),
        ("Content-Type: application/zip", "x", "", "application/zip", 1, Some(LeftOut::Kind)),
        ("Content-Type: message/external-body", "x", "", "message/external-body", 1, Some(LeftOut::Kind)),
        (
            "Content-Type: application/pkcs7-mime; smime-type=certs-only",
            "x",
            "",
            "application/pkcs7-mime",
            1,
            Some(LeftOut::Machine),
        ),
        (
            "Content-Type: application/pdf\nContent-Transfer-Encoding: x-uuencode",
            "begin",
            "",
            "application/pdf",
            5,
            Some(LeftOut::Unreadable),
        ),
        (
            "Content-Type: application/pdf\nContent-Transfer-Encoding: base64",
            "!!!!",
            "",
            "application/pdf",
            0,
            Some(LeftOut::Unreadable),
        ),
        ("Content-Type: message/rfc822; name=a.eml", "no message", "a.eml", "message/rfc822", 10, Some(LeftOut::Kind)),
    ] {
        let expected = (name.to_owned(), media_type.to_owned(), size_bytes, left_out);
        assert_eq!(file(head, body), expected, "{head}");
    }
}

#[test]
fn a_file_above_the_limit_is_named_and_its_bytes_are_not_kept() {
    let large = "x".repeat(26 << 20);
    let letter = letter(&format!("Content-Type: application/pdf; name=a.pdf\n\n{large}"));
    let [file] = &letter.files[..] else { panic!("{:?}", letter.files.len()) };
    assert_eq!((file.left_out, file.size_bytes, file.part.as_str()), (Some(LeftOut::TooLarge), 26 << 20, "1"));
}

#[test]
fn files_are_named_by_their_place() {
    let letter = letter(
        "Content-Type: multipart/mixed; boundary=x\n\n--x\n\nwords\n--x\nContent-Type: application/pdf\n\na\n--x\nContent-Type: message/rfc822\n\n\
         Content-Type: multipart/mixed; boundary=y\nSubject: in\n\n--y\nContent-Type: application/pdf\n\nb\n--y--\n--x\nContent-Type: message/rfc822\n\n\
         Content-Type: application/pdf\nSubject: in\n\nc\n--x--",
    );
    let parts: Vec<&str> = letter.files.iter().map(|file| file.part.as_str()).collect();
    assert_eq!(parts, ["2", "3.1", "4.1"]);
}

#[test]
fn the_sender_is_the_author_or_else_who_sent_it() {
    for (head, expected) in [
        ("From: ann@x.y\nSender: list@x.y", "ann@x.y"),
        ("Sender: list@x.y", "list@x.y"),
        ("From: Ann <ann@x.y>, Bob <bob@x.y>", "Ann <ann@x.y>"),
        ("From:\nFrom: ann@x.y", "ann@x.y"),
        ("From: MAILER-DAEMON (Mail System)", "Mail System <MAILER-DAEMON>"),
    ] {
        let shown = letter(&format!("{head}\n\nwords")).from.map(|from| from.shown());
        assert_eq!(shown.as_deref(), Some(expected), "{head}");
    }
}
