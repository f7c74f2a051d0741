//! Gmail's answers in its own spelling. Numbers of 64 bits come as text.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::pull::records::Rows;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile {
    pub email_address: String,
    pub history_id: String,
}

/// The ids of a listing. An empty mailbox has no `messages`, and still an estimate of their number.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Messages {
    pub messages: Option<Rows<Listed>>,
    pub next_page_token: Option<String>,
    pub result_size_estimate: Option<IgnoredAny>,
}

impl Messages {
    pub fn listed(&self) -> impl Iterator<Item = &Listed> {
        self.messages.iter().flat_map(|messages| &messages.0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    pub id: String,
    pub thread_id: Option<String>,
}

/// A page of changes. Nothing new: no `history`; a page may have none and still be followed by others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct History {
    #[serde(default)]
    pub history: Rows<Record>,
    pub next_page_token: Option<String>,
    /// The mailbox's present number.
    pub history_id: String,
}

/// One change, or several. `messages` names them again, and is not read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    pub id: String,
    pub messages_added: Rows<Changed>,
    pub messages_deleted: Rows<Changed>,
    pub labels_added: Rows<Changed>,
    pub labels_removed: Rows<Changed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed {
    pub message: Stub,
    /// The labels that were added or removed.
    #[serde(default)]
    pub label_ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stub {
    pub id: String,
    #[serde(default)]
    pub label_ids: Vec<String>,
}

/// A message: with `raw` its bytes, without it the rest alone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub id: String,
    pub thread_id: Option<String>,
    #[serde(default)]
    pub label_ids: Vec<String>,
    /// Milliseconds since 1970.
    pub internal_date: Option<String>,
    /// The message as RFC 5322 has it, in base64 for addresses, padded or not.
    pub raw: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Labels {
    pub labels: Rows<Label>,
}

#[derive(Deserialize)]
pub(super) struct Label {
    pub id: String,
    pub name: String,
}

/// A promise to tell the topic of changes.
#[derive(Deserialize)]
pub(super) struct Watch {
    /// Milliseconds since 1970.
    pub expiration: String,
}
