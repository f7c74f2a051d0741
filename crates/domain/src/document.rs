//! What comes to be remembered: one record, message or file, as its source tells it.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::SourceId;

/// One version of one document. `remember` decides what it means: something new, a change, nothing new, or too late.
#[derive(Clone, Debug)]
pub struct Record {
    pub source_id: SourceId,
    /// Its name at the source; with the source it says which document this is.
    pub external_id: String,
    /// Such as `note`, `file`, `activity.email`.
    pub document_type: String,
    pub title: Option<String>,
    pub text: String,
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
    /// The source deleted it: what is left is a tombstone.
    pub is_deleted: bool,
    /// Records of the same source that this one says something about, by their external ids; itself where it is a client. None: records of
    /// this kind never do.
    pub mentions: Option<Vec<String>>,
}

impl Record {
    pub fn new(
        source_id: SourceId,
        external_id: impl Into<String>,
        document_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            source_id,
            external_id: external_id.into(),
            document_type: document_type.into(),
            title: None,
            text: text.into(),
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
        }
    }
}
