//! The facts of a letter that rules ask for.

use serde::{Deserialize, Serialize};

use crate::mail::{Correspondent, Letter, Note, Place};

/// The fields that rules usually ask for.
const FIELDS: &[&str] = &[
    "auto-submitted",
    "feedback-id",
    "list-id",
    "list-post",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "precedence",
    "return-path",
    "x-auto-response-suppress",
    "x-autoreply",
    "x-autorespond",
    "x-auto-reply-from",
    "x-campaign",
    "x-campaignid",
    "x-campaign-id",
    "x-cmail-campaign",
    "x-failed-recipients",
    "x-mailer",
    "x-mailer-recptid",
    "x-mc-user",
    "x-ms-exchange-inbox-rules-loop",
    "x-newsletter",
    "x-spam-flag",
];
const VALUE_CHARS: usize = 100;
const MOST_RECIPIENTS: usize = 50;
const MOST_FILES: usize = 50;
const NAME_CHARS: usize = 100;

/// A letter as rules see it: enough to try rules on it later, and no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Its `From` and `Reply-To`, in small letters.
    pub senders: Vec<String>,
    pub recipients: Vec<String>,
    pub subject: String,
    pub headers: Vec<(String, String)>,
    /// Names of the files that are kept.
    pub files: Vec<String>,
    pub notes: Vec<Note>,
    pub has_words: bool,
    pub bytes: u64,
    pub is_sent: bool,
    pub is_of_contact: bool,
}

impl Facts {
    /// `also` are further fields that are kept, in small letters.
    pub fn of(letter: &Letter, is_of_contact: bool, also: &[String]) -> Self {
        let kept = letter.files.iter().filter(|file| file.left_out.is_none());
        let size = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let words = letter.text.len() + size(&letter.quoted) + size(&letter.signature) + size(&letter.html);
        let files: u64 = letter.files.iter().map(|file| file.size_bytes).sum();
        let is_kept = |(name, _): &&(String, String)| {
            let name = name.to_ascii_lowercase();
            FIELDS.contains(&name.as_str()) || also.contains(&name)
        };
        Self {
            senders: addresses(letter.from.iter().chain(&letter.reply_to)),
            recipients: addresses(letter.to.iter().chain(&letter.cc).chain(&letter.bcc)),
            subject: letter.subject.as_deref().map(|subject| clipped(subject.trim(), 500)).unwrap_or_default(),
            headers: letter
                .headers
                .iter()
                .filter(is_kept)
                .map(|(name, value)| (name.to_ascii_lowercase(), clipped(value.trim(), VALUE_CHARS)))
                .collect(),
            files: kept
                .take(MOST_FILES)
                .map(|file| clipped(file.name.as_deref().unwrap_or(&file.media_type), NAME_CHARS))
                // A letter whose files are not known may have some.
                .chain(letter.notes.contains(&Note::FilesUnread).then(|| "?".to_owned()))
                .collect(),
            notes: letter.notes.clone(),
            has_words: has_words(letter),
            bytes: files + words as u64,
            is_sent: letter.place == Place::Sent,
            is_of_contact,
        }
    }

    /// Neither a subject, nor words, nor a file. One that cannot be read may have all of them.
    pub fn is_empty(&self) -> bool {
        !self.has_words && self.files.is_empty() && self.subject.is_empty()
    }
}

/// Whether anybody wrote anything. What cannot be read counts as words.
fn has_words(letter: &Letter) -> bool {
    let unread = [Note::Encrypted, Note::TnefUnreadable, Note::Malformed, Note::FilesUnread, Note::Cut];
    !letter.text.trim().is_empty()
        || letter.quoted.is_some()
        || letter.signature.is_some()
        || !letter.files.is_empty()
        || letter.notes.iter().any(|note| unread.contains(note))
}

fn addresses<'a>(people: impl Iterator<Item = &'a Correspondent>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for person in people {
        let address = clipped(&person.address.trim().to_lowercase(), 320);
        if !address.is_empty() && !found.contains(&address) && found.len() < MOST_RECIPIENTS {
            found.push(address);
        }
    }
    found
}

fn clipped(text: &str, chars: usize) -> String {
    text.chars().take(chars).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect()
}
