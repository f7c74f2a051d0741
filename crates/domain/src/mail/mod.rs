//! E-mails as every mailbox gives them: the letter that a provider's message, or its bytes, are read into. Providers spell messages in their own
//! ways; from here on there is one. docs/mail.md has the outcome of every kind of message.

pub mod body;
mod boundary;
mod calendar;
pub mod check;
pub mod clean;
mod decode;
mod encoded;
pub mod files;
mod head;
mod letter;
mod parse;
mod parts;
mod pgp;
pub mod query;
mod report;
pub mod rules;
mod signed;
#[cfg(test)]
mod tests;
mod tnef;
mod words;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use parse::parse;

/// One message of a mailbox, read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Letter {
    /// The conversation that it belongs to, as its provider names it.
    pub thread_id: Option<String>,
    /// `Message-ID` without its brackets. The same letter may lie in a mailbox several times.
    pub internet_message_id: Option<String>,
    /// `In-Reply-To` and `References`, oldest first, without brackets.
    pub references: Vec<String>,
    /// `From`; a letter that names several authors has the first one here.
    pub from: Option<Correspondent>,
    pub reply_to: Vec<Correspondent>,
    pub to: Vec<Correspondent>,
    pub cc: Vec<Correspondent>,
    pub bcc: Vec<Correspondent>,
    pub subject: Option<String>,
    /// `Date`, as the sender's clock has it.
    pub sent_at: Option<DateTime<Utc>>,
    /// The time at which the provider took it in.
    pub received_at: Option<DateTime<Utc>>,
    pub place: Place,
    /// Folders or labels, in the words of the mailbox's owner.
    pub folders: Vec<String>,
    /// Header fields in their order, decoded, each value at most 2,000 characters.
    pub headers: Vec<(String, String)>,
    /// The words that the sender wrote: without the quoted history and the signature, where these can be told.
    pub text: String,
    /// The history that it quotes.
    pub quoted: Option<String>,
    pub signature: Option<String>,
    /// The HTML body as it came, for people to look at in a sandbox.
    pub html: Option<String>,
    pub files: Vec<Attachment>,
    /// The documented outcomes that a person should know of, such as that it is encrypted.
    pub notes: Vec<Note>,
}

/// A person or a list in a letter's head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correspondent {
    pub name: Option<String>,
    /// As it was written; `domain::address::normal_email` makes a key of it.
    pub address: String,
}

/// The kind of place in a mailbox at which a letter lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    Inbox,
    Sent,
    Drafts,
    Spam,
    Deleted,
    /// Any other folder, the archive among them.
    #[default]
    Other,
}

/// A file of a letter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name within the letter, which stays the same whenever the letter is read.
    pub part: String,
    pub name: Option<String>,
    /// Lower case, without parameters.
    pub media_type: String,
    pub size_bytes: u64,
    pub content_id: Option<String>,
    /// Whether it is shown inside the HTML body.
    pub is_inline: bool,
    /// Its bytes, if it is kept and they were read. None: see [`Attachment::left_out`].
    #[serde(skip)]
    pub content: Option<Bytes>,
    /// The reason why it is not kept.
    pub left_out: Option<LeftOut>,
}

/// The reason why a file of a letter makes no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// Its type is not among those that are kept.
    Kind,
    /// It is shown inside the HTML body.
    Inline,
    /// A signature, a calendar entry or a business card.
    Machine,
    TooLarge,
    /// It cannot be read: encrypted, or damaged.
    Unreadable,
}

/// An outcome of reading a letter. The table in docs/mail.md has the same outcomes with the kinds of messages that lead to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// S/MIME or PGP: what is encrypted was not read, so mostly only the head was. Its files are listed, and none is kept.
    Encrypted,
    /// S/MIME or PGP. What was signed is read like any other letter, also if the signature wraps it; the signature was not checked.
    Signed,
    /// A `winmail.dat` was unpacked: its files are files of the letter, and its plain text or HTML is the text if the letter has no other. A
    /// body in RTF was not read.
    Tnef,
    /// A `winmail.dat` could not be unpacked. It is listed as a file that is not kept.
    TnefUnreadable,
    /// An invitation to a meeting, or an answer to one: what, when, where and by whom are part of the text.
    Calendar,
    /// A report about another letter: delivered, bounced, opened. What happened to whom is part of the text; the other letter, if it came back,
    /// is part of what is quoted, and its files are not listed.
    Report,
    /// Parts of it do not follow the standard; what could be read was read.
    Malformed,
    /// Its provider did not list its files: those that were read before stay.
    FilesUnread,
    /// It is larger than what is read: its text, HTML, head, people or parts were cut at a limit.
    Cut,
}
