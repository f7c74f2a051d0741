//! Reads nasty messages: a corpus that is written from a seed, the samples of the library's package, what attackers send, and one message for each
//! outcome that docs/mail.md promises.

mod attackers;
mod authors;
mod broken;
mod corpus;
mod encodings;
mod histories;
mod outcomes;
mod samples;
mod writer;

use std::collections::HashSet;

use super::{Letter, parse};

/// Checks what is true of every letter, however its message was made.
fn check(what: &str, letter: &Letter) {
    let payload = letter.payload();
    let json = payload.to_string();
    assert!(!json.contains("\\u0000") && !letter.in_words().contains('\0'), "{what}: a NUL");
    let read = Letter::from_payload(&payload).unwrap_or_else(|| panic!("{what}: its payload is no letter"));
    let mut without_content = letter.clone();
    for file in &mut without_content.files {
        assert!(file.content.is_none() || file.left_out.is_none(), "{what}: {file:?} is left out and kept");
        assert!(file.content.is_some() || file.left_out.is_some(), "{what}: {file:?} is neither left out nor kept");
        file.content = None;
    }
    if read != without_content {
        // Whole letters are too long to compare by eye.
        let (read, written) = (read.payload(), serde_json::to_value(&without_content).expect("JSON"));
        let field = read.as_object().into_iter().flatten().find(|(name, value)| written.get(name) != Some(*value));
        panic!("{what}: the payload changes {field:?}");
    }
    let parts: HashSet<&str> = letter.files.iter().map(|file| file.part.as_str()).collect();
    assert_eq!(parts.len(), letter.files.len(), "{what}: two files have one name");
    let notes: HashSet<String> = letter.notes.iter().map(|note| format!("{note:?}")).collect();
    assert_eq!(notes.len(), letter.notes.len(), "{what}: {:?}", letter.notes);
    assert!(letter.headers.len() <= 1_000 && letter.files.len() <= 1_000, "{what}");
    assert!(letter.headers.iter().all(|(_, value)| value.chars().count() <= 2_000), "{what}: a long header");
    for list in [&letter.reply_to, &letter.to, &letter.cc, &letter.bcc] {
        assert!(list.len() <= 1_000, "{what}: {} people", list.len());
    }
    for text in [Some(&letter.text), letter.quoted.as_ref(), letter.signature.as_ref()].into_iter().flatten() {
        assert!(text.chars().count() <= super::parse::MOST_TEXT_CHARS, "{what}: a long text");
        assert_eq!(crate::text::normalise(text), *text, "{what}");
    }
    assert!(letter.html.as_ref().is_none_or(|html| html.len() <= super::parse::MOST_HTML_BYTES), "{what}: a long page");
    assert!(letter.subject.as_deref() != Some("") && letter.html.as_deref() != Some(""), "{what}: an empty text");
}

fn read(what: &str, bytes: &[u8]) -> Letter {
    let letter = parse(bytes);
    check(what, &letter);
    letter
}
