//! The mailbox's own ledger: every message that is in it, and where. Tests compare memory with it.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{Mail, Message, Outlook, folder_id};
use crate::lock;

/// One message, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlookLetter {
    /// The immutable id.
    pub id: String,
    pub subject: String,
    /// The name of its folder, as people see it.
    pub folder: String,
    /// `inbox`, `sent`, `drafts`, `spam`, `deleted` or `other`. A folder inside one of Outlook's own is the same place, but for the inbox.
    pub place: &'static str,
    pub is_draft: bool,
    pub received_at: DateTime<Utc>,
    pub modified_at: DateTime<Utc>,
    /// The names of its files.
    pub files: Vec<String>,
}

impl Outlook {
    /// Every message that a person can find, by id. What lies in a hidden folder is gone for people.
    pub fn truth(&self) -> Vec<OutlookLetter> {
        let mail = lock(self.mail());
        let visible = mail.messages.iter().filter(|(_, message)| mail.is_visible(&message.folder));
        visible.map(|(id, message)| mail.kept(id, message)).collect()
    }

    /// Those in the places that are read unless somebody says otherwise: not drafts, spam and deleted ones.
    pub fn read_truth(&self) -> Vec<OutlookLetter> {
        let is_read = |kept: &OutlookLetter| matches!(kept.place, "inbox" | "sent" | "other");
        self.truth().into_iter().filter(is_read).collect()
    }

    pub fn ids(&self) -> Vec<String> {
        self.truth().into_iter().map(|kept| kept.id).collect()
    }

    pub fn count(&self) -> usize {
        self.truth().len()
    }

    /// The folders that people see, by id, with their names.
    pub fn folders(&self) -> Vec<(String, String)> {
        let mail = lock(self.mail());
        let visible = mail.folders.iter().filter(|(id, _)| mail.is_visible(id));
        visible.map(|(id, folder)| (id.clone(), folder.name.clone())).collect()
    }
}

impl Mail {
    fn is_visible(&self, folder: &str) -> bool {
        self.folders.get(folder).is_some_and(|folder| !folder.is_hidden)
    }

    fn kept(&self, id: &str, message: &Message) -> OutlookLetter {
        let text = |key: &str| message.fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_draft = message.fields.get("isDraft") == Some(&Value::Bool(true));
        let file = |file: &super::File| file.fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        OutlookLetter {
            id: id.to_owned(),
            subject: text("subject"),
            folder: self.folders.get(&message.folder).map(|folder| folder.name.clone()).unwrap_or_default(),
            place: if is_draft { "drafts" } else { self.place(&message.folder) },
            is_draft,
            received_at: message.received_at,
            modified_at: message.modified_at,
            files: message.files.iter().map(file).collect(),
        }
    }

    fn place(&self, folder: &str) -> &'static str {
        if folder == folder_id("inbox") {
            return "inbox";
        }
        let places = [
            ("sentitems", "sent"),
            ("drafts", "drafts"),
            ("outbox", "drafts"),
            ("junkemail", "spam"),
            ("deleteditems", "deleted"),
        ];
        let inside = places.into_iter().find(|(name, _)| self.is_inside(folder, &folder_id(name)));
        inside.map_or("other", |(_, place)| place)
    }
}
