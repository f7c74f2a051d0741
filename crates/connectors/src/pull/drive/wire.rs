//! Drive's answers in its own spelling. `map` reads the files one by one.

use serde::Deserialize;
use serde_json::Value;

use crate::pull::records::Records;

/// The fields that we ask for of a file.
pub(super) const FILE_FIELDS: &str =
    "id,name,mimeType,createdTime,modifiedTime,size,sha256Checksum,trashed,webViewLink,capabilities/canDownload";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Files {
    pub files: Records,
    pub next_page_token: Option<String>,
    #[serde(default)]
    pub incomplete_search: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changes {
    pub changes: Records,
    pub next_page_token: Option<String>,
    /// On the last page only.
    pub new_start_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change {
    pub change_type: Option<String>,
    #[serde(default)]
    pub removed: bool,
    pub file_id: Option<Value>,
    pub file: Option<Value>,
}

/// The fields that decide whether a file is exported or fetched.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    pub id: Value,
    #[serde(default)]
    pub mime_type: String,
    #[serde(default)]
    pub trashed: bool,
    /// In bytes, as text. Google's own documents have none.
    pub size: Option<String>,
    pub capabilities: Option<Capabilities>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capabilities {
    pub can_download: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartPageToken {
    pub start_page_token: String,
}

#[derive(Deserialize)]
pub(super) struct About {
    pub user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct User {
    pub email_address: Option<String>,
    pub display_name: Option<String>,
    pub permission_id: Option<String>,
}
