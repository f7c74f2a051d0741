//! The messages that the library's package carries for its own tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use mail_parser::{Address, MessageParser, PartType};

use super::read;
use crate::mail::Note;

/// Fields of messages that the library reads in another way, with the reason why we differ.
const DIFFERENT: [(&str, &str, &str); 4] = [
    (
        "malformed/005.eml",
        "text",
        "A line ends the outer multipart and begins a part of the inner one; we take it for the end.",
    ),
    (
        "malformed/019.eml",
        "date",
        "Its first date is cut off within the minutes, which we read; the library takes another one.",
    ),
    (
        "malformed/020.eml",
        "text",
        "The first boundary is missing, so the plain text has become a part of a head; its HTML is read.",
    ),
    ("malformed/021.eml", "text", "The same. The library's words are those of a comment in the HTML."),
];

#[test]
fn the_samples_of_the_library_are_read() {
    let folder = package().join("resources/eml");
    let (mut n_read, mut differences) = (0, Vec::new());
    for suite in ["rfc", "legacy", "thirdparty", "malformed"] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join(suite))
            .expect("the package carries its samples")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "eml"))
            .collect();
        files.sort();
        for path in files {
            let name = format!("{suite}/{}", path.file_name().expect("a name").display());
            let bytes = std::fs::read(&path).expect("a sample");
            differences.extend(compared(&name, &bytes));
            n_read += 1;
            for end in (0..bytes.len()).step_by(bytes.len() / 20 + 1) {
                read(&name, &bytes[..end]);
            }
        }
    }
    assert!(n_read >= 100, "only {n_read} samples");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Compares with what the library reads from a whole message. Returns each difference that is not a known one.
fn compared(name: &str, bytes: &[u8]) -> Vec<String> {
    let ours = read(name, bytes);
    let Some(theirs) = MessageParser::default().parse(bytes) else {
        return if ours.notes.contains(&Note::Malformed) { vec![] } else { vec![format!("{name}: {:?}", ours.notes)] };
    };
    let mut differences = Vec::new();
    let mut compare = |field: &'static str, ours: String, theirs: String| {
        // We guess the charset of a head that has letters of none.
        let is_known = theirs.contains('\u{fffd}') || DIFFERENT.iter().any(|known| known.0 == name && known.1 == field);
        if ours != theirs && !is_known {
            differences.push(format!("{name}: {field}\n   ours {ours:?}\n theirs {theirs:?}"));
        }
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    compare("subject", ours.subject.unwrap_or_default(), theirs.subject().map(words).unwrap_or_default());
    let from = theirs.from().and_then(Address::first);
    let address = from.and_then(|one| one.address.as_deref()).map(words);
    if let Some(address) = address {
        compare("sender", ours.from.unwrap_or_default().address, address);
    }
    let date = theirs.date().filter(|date| date.is_valid()).map(|date| date.to_timestamp());
    compare("date", format!("{:?}", ours.sent_at.map(|at| at.timestamp())), format!("{date:?}"));
    // Every word of its first plain text is somewhere in ours.
    let all = [Some(ours.text), ours.quoted, ours.signature].map(Option::unwrap_or_default).join(" ");
    if let Some(PartType::Text(text)) = theirs.text_part(0).map(|part| &part.body) {
        let is_word = |word: &&str| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        let missing: Vec<&str> = text.split_whitespace().filter(is_word).filter(|word| !all.contains(word)).collect();
        compare("text", missing.join(" "), String::new());
    }
    differences
}

/// The folder of the library's package.
fn package() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let found = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).expect("cargo's metadata");
    let packages = found["packages"].as_array().expect("packages");
    let library = packages.iter().find(|package| package["name"] == "mail-parser").expect("the library");
    Path::new(library["manifest_path"].as_str().expect("a path")).parent().expect("a folder").to_owned()
}
