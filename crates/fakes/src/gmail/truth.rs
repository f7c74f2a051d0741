//! The ledger of the mailboxes themselves: what a memory has to agree with.

use chrono::{DateTime, Utc};

use super::{Gmail, Message, compose};

/// A letter as it lies in a mailbox now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GmailLetter {
    pub id: String,
    pub thread_id: String,
    pub labels: Vec<String>,
    pub received_at: DateTime<Utc>,
    /// As the message spells it.
    pub subject: String,
    pub raw: Vec<u8>,
}

impl GmailLetter {
    fn of(id: &str, message: &Message) -> Self {
        Self {
            id: id.to_owned(),
            thread_id: message.thread_id.clone(),
            labels: message.labels.clone(),
            received_at: message.received_at,
            subject: compose::header(&message.raw, "Subject").unwrap_or_default(),
            raw: message.raw.clone(),
        }
    }

    /// Whether it lies in the inbox, among sent mail, or in the archive.
    pub fn is_read_by_default(&self) -> bool {
        !["DRAFT", "SPAM", "TRASH", "CHAT"].iter().any(|label| self.labels.iter().any(|known| known == label))
    }
}

impl Gmail {
    /// Every letter, by id.
    pub fn letters(&self) -> Vec<GmailLetter> {
        self.with(|mailbox| mailbox.messages.iter().map(|(id, message)| GmailLetter::of(id, message)).collect())
    }

    /// The ids of letters in the inbox, among sent mail, and in the archive.
    pub fn readable_ids(&self) -> Vec<String> {
        self.letters().into_iter().filter(GmailLetter::is_read_by_default).map(|letter| letter.id).collect()
    }

    /// Counts all letters, with drafts, spam and the bin.
    pub fn count(&self) -> usize {
        self.with(|mailbox| mailbox.messages.len())
    }
}
