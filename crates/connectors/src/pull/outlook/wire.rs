//! Graph's answers in its own spelling. `map` reads the messages one by one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::pull::records::{Records, Rows};

/// A page of a list or of a delta: with a link to the next page, or with the link from which the next delta starts.
#[derive(Deserialize)]
pub(super) struct List {
    pub value: Records,
    #[serde(rename = "@odata.nextLink")]
    pub next: Option<String>,
    #[serde(rename = "@odata.deltaLink")]
    pub delta: Option<String>,
}

/// A page of something that is read as a whole.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(super) struct Rest<T> {
    pub value: Rows<T>,
    #[serde(rename = "@odata.nextLink")]
    pub next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MailFolder {
    #[serde(rename = "@odata.type")]
    pub kind: Option<String>,
    pub id: String,
    pub display_name: Option<String>,
    pub parent_folder_id: Option<String>,
    pub child_folder_count: Option<i64>,
    pub is_hidden: Option<bool>,
}

/// A folder of which only the id was asked for.
#[derive(Deserialize)]
pub(super) struct Named {
    pub id: String,
}

#[derive(Deserialize)]
pub(super) struct Batch {
    pub responses: Rows<Answered>,
}

/// The answer to a part of a batch.
#[derive(Deserialize)]
pub(super) struct Answered {
    pub id: String,
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, Value>,
    pub body: Option<Box<RawValue>>,
}

/// A file of a message, without its bytes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    #[serde(rename = "@odata.type")]
    pub kind: Option<String>,
    pub id: String,
    pub name: Option<String>,
    pub content_type: Option<String>,
    pub size: Option<u64>,
    pub is_inline: Option<bool>,
    /// Only files have it, and only where nobody selects.
    pub content_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    pub id: Option<String>,
    pub mail: Option<String>,
    pub user_principal_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    pub id: String,
    pub resource: Option<String>,
    pub expiration_date_time: Option<Value>,
}

/// A letter as the census asks for it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    pub id: Value,
    pub received_date_time: Option<Value>,
    pub parent_folder_id: Option<String>,
    pub is_draft: Option<bool>,
}
