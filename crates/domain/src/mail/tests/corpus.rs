//! Reads the corpus: two hundred messages, each written from its number.

use super::read;
use super::writer::{KINDS, message};

const MESSAGES: u64 = 200;

#[test]
fn well_formed_messages_are_read_as_they_were_written() {
    let mut wrong = Vec::new();
    for seed in 0..MESSAGES {
        let written = message(seed);
        let what = format!("message {seed} ({})", written.kind);
        let letter = read(&what, &written.bytes);
        let mut compare = |field: &str, found: String, expected: String| {
            if found != expected {
                wrong.push(format!("{what}: {field}\n   found {found:?}\nexpected {expected:?}"));
            }
        };
        let from = letter.from.clone().unwrap_or_default();
        compare("name", from.name.unwrap_or_default(), written.name);
        compare("address", from.address, written.address);
        compare("subject", letter.subject.clone().unwrap_or_default(), written.subject);
        compare("date", format!("{:?}", letter.sent_at), format!("{:?}", Some(written.sent_at)));
        compare("text", letter.text.clone(), written.text);
        compare(
            "people",
            letter.to.iter().map(|to| to.shown()).collect::<Vec<_>>().join("; "),
            "bob@example.net; Team, all <team@example.net>; c@example.net".into(),
        );
        compare(
            "ids",
            format!("{:?} {:?}", letter.internet_message_id, letter.references),
            r#"Some("m1@example.com") ["m0@example.com"]"#.into(),
        );
        let files: Vec<_> =
            letter.files.iter().map(|file| (file.name.clone().unwrap_or_default(), file.left_out)).collect();
        compare("files", format!("{files:?}"), format!("{:?}", written.files));
        compare("notes", format!("{:?}", letter.notes), format!("{:?}", written.notes));
        compare("html", letter.html.is_some().to_string(), written.has_html.to_string());
        for (field, found, expected) in
            [("quoted", &letter.quoted, &written.quoted), ("signature", &letter.signature, &written.signature)]
        {
            let has = |words: &str| {
                found.as_deref().is_some_and(|found| {
                    found.contains(words)
                        || found.starts_with("Sent from my")
                        || found.starts_with("Von meinem")
                        || found.starts_with("Get Outlook")
                })
            };
            if !expected.as_deref().map_or(found.is_none(), has) {
                compare(field, format!("{found:?}"), format!("{expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {MESSAGES}:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn the_corpus_is_the_same_whenever_it_is_written_and_has_every_kind() {
    let kinds: std::collections::HashSet<&str> = (0..MESSAGES).map(|seed| message(seed).kind).collect();
    assert_eq!(kinds.len(), KINDS.len());
    assert_eq!(message(7).bytes, message(7).bytes);
}
