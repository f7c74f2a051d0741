//! Documents: one version of one as its source tells it, what type it is, and the names of those that we make ourselves.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ActivityId, ActivityType, SourceId, words};

/// One version of one document, ready to be remembered. `remember` decides whether it is new, a change, nothing new, or too late.
#[derive(Clone, Debug)]
pub struct Record {
    pub source_id: SourceId,
    /// Its name at the source. Source and name together identify the document.
    pub external_id: String,
    pub document_type: DocumentType,
    pub title: Option<String>,
    pub text: String,
    /// The pages of its file. Then its text is theirs, after what `text` says.
    pub pages: Vec<PageText>,
    pub raw_payload: Option<Value>,
    pub blob_key: Option<String>,
    /// The source's own version, else its updated time in microseconds. An older one never overwrites a newer; without one the last
    /// write wins.
    pub source_version: Option<i64>,
    pub thread_id: Option<String>,
    pub contact_id: Option<i64>,
    pub source_metadata: Value,
    pub source_created_at: Option<DateTime<Utc>>,
    pub source_updated_at: Option<DateTime<Utc>>,
    /// The source deleted it: a tombstone is kept, and no content.
    pub is_deleted: bool,
    /// Records of the same source that this one says something about, by their external ids; a client mentions itself. `None`: records
    /// of this type never mention any.
    pub mentions: Option<Vec<String>>,
    /// How far its file is read. Of one that is `pending` the text comes later: where the same bytes are stored already, text and status stay.
    pub status: DocumentStatus,
    /// The reason why its file is not read, if the status is `skipped` or `failed`.
    pub skip_reason: Option<String>,
}

/// The text of a page, sheet or slide, or of a stretch of speech.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageText {
    /// From 1.
    pub number: i32,
    /// The sheet's name, the slide's title.
    pub label: Option<String>,
    pub text: String,
}

words! {
    /// How far a document's file is read. What comes without a file is complete.
    #[derive(Default)]
    DocumentStatus {
        Pending = "pending",
        Classifying = "classifying",
        Transcribing = "transcribing",
        Extracting = "extracting",
        #[default]
        Completed = "completed",
        Skipped = "skipped",
        Failed = "failed",
    }
}

impl DocumentStatus {
    /// Whether its file is still being read, or waits for it.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Pending | Self::Classifying | Self::Transcribing | Self::Extracting)
    }
}

impl Record {
    pub fn new(
        source_id: SourceId,
        external_id: impl Into<String>,
        document_type: DocumentType,
        text: impl Into<String>,
    ) -> Self {
        Self {
            source_id,
            external_id: external_id.into(),
            document_type,
            title: None,
            text: text.into(),
            pages: Vec::new(),
            raw_payload: None,
            blob_key: None,
            source_version: None,
            thread_id: None,
            contact_id: None,
            source_metadata: Value::Object(serde_json::Map::new()),
            source_created_at: None,
            source_updated_at: None,
            is_deleted: false,
            mentions: None,
            status: DocumentStatus::default(),
            skip_reason: None,
        }
    }
}

/// The type of a document. Rows and the API spell it as one word, or as two with a dot between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum DocumentType {
    /// `note`: a text that was handed in.
    Note,
    /// `file`: a file that was handed in, or that came with an activity.
    File,
    /// `client`: what is known of a client, as a text.
    Client,
    /// `activity.email` and the like: an event, and what an agent made of it.
    Activity(ActivityType),
    /// `hubspot.contact` and the like: a provider's record. Providers choose their own kinds.
    Record { provider: String, kind: String },
}

impl fmt::Display for DocumentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note => f.pad("note"),
            Self::File => f.pad("file"),
            Self::Client => f.pad("client"),
            Self::Activity(activity) => write!(f, "activity.{activity}"),
            Self::Record { provider, kind } => write!(f, "{provider}.{kind}"),
        }
    }
}

impl FromStr for DocumentType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once('.')) {
            ("note", _) => Ok(Self::Note),
            ("file", _) => Ok(Self::File),
            ("client", _) => Ok(Self::Client),
            (_, Some(("activity", activity))) => activity.parse().map(Self::Activity),
            (_, Some((provider, kind))) if !provider.is_empty() && !kind.is_empty() => {
                Ok(Self::Record { provider: provider.to_owned(), kind: kind.to_owned() })
            }
            _ => {
                Err(format!("{text:?} is not a type of document: use note, file, client, activity.… or provider.kind"))
            }
        }
    }
}

impl From<DocumentType> for String {
    fn from(document_type: DocumentType) -> Self {
        document_type.to_string()
    }
}

impl TryFrom<String> for DocumentType {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// An activity's document is named by this and the activity's id.
pub const ACTIVITY_PREFIX: &str = "activity:";
/// A file that came with an activity is a document named by this, the activity's id and the place of the file.
const ATTACHMENT_PREFIX: &str = "attachment:";
/// A client's document is named by this and the external id of the client.
pub const CLIENT_PREFIX: &str = "client:";
/// The kind of the records that are people at a client.
pub const CONTACT: &str = "contact";

/// The kind of a provider's record, by the external id that its connector gives it: `contact` of `contact:51`.
pub fn record_kind(external_id: &str) -> Option<&str> {
    external_id.split_once(':').map(|(kind, _)| kind)
}

impl ActivityId {
    /// The name of the activity's document.
    pub fn external_id(self) -> String {
        format!("{ACTIVITY_PREFIX}{self}")
    }

    /// The activity whose document has this name.
    pub fn from_external_id(external_id: &str) -> Option<Self> {
        external_id.strip_prefix(ACTIVITY_PREFIX)?.parse().ok()
    }

    /// The name of the document of one of the activity's files.
    pub fn file_external_id(self, ordinal: i32) -> String {
        format!("{ATTACHMENT_PREFIX}{self}/{ordinal}")
    }

    /// The activity whose file is the document that has this name.
    pub fn of_file(external_id: &str) -> Option<Self> {
        let (id, ordinal) = external_id.strip_prefix(ATTACHMENT_PREFIX)?.split_once('/')?;
        ordinal.parse::<i32>().ok()?;
        id.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_reads_back_as_what_it_was_and_a_word_that_is_none_is_an_error() {
        let contact = DocumentType::Record { provider: "hubspot".into(), kind: "contact".into() };
        let dotted = DocumentType::Record { provider: "google_drive".into(), kind: "sheet.v2".into() };
        for (document_type, text) in [
            (DocumentType::Note, "note"),
            (DocumentType::File, "file"),
            (DocumentType::Client, "client"),
            (DocumentType::Activity(ActivityType::Email), "activity.email"),
            (contact, "hubspot.contact"),
            (dotted, "google_drive.sheet.v2"),
        ] {
            assert_eq!((document_type.to_string().as_str(), text.parse()), (text, Ok(document_type.clone())));
            assert_eq!(serde_json::to_value(&document_type).expect("a text"), text);
        }
        for none in ["", "notes", "activity", "activity.", "activity.visit", ".contact", "hubspot."] {
            assert!(none.parse::<DocumentType>().is_err(), "{none:?}");
        }
    }

    #[test]
    fn an_activitys_document_is_named_after_it() {
        let id = ActivityId::new();
        assert_eq!(ActivityId::from_external_id(&id.external_id()), Some(id));
        assert_eq!(ActivityId::of_file(&id.file_external_id(7)), Some(id));
        for none in [id.to_string(), "activity:".into(), "activity:1".into(), format!("client:{id}")] {
            assert_eq!(ActivityId::from_external_id(&none), None, "{none}");
        }
        for none in
            [id.external_id(), format!("attachment:{id}"), format!("attachment:{id}/2.1"), "attachment:1/2".into()]
        {
            assert_eq!(ActivityId::of_file(&none), None, "{none}");
        }
    }

    #[test]
    fn a_records_kind_is_the_whole_word_before_the_colon() {
        let cases = [("contact:51", Some("contact")), ("contacts:1", Some("contacts")), ("contact", None), ("", None)];
        for (external_id, kind) in cases {
            assert_eq!(record_kind(external_id), kind, "{external_id}");
        }
    }
}
