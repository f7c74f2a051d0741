//! Exports the text of Google's own documents, a few at once, and fetches the bytes of other files, one at a time. A page stops when it has enough text for one
//! time.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Deserialize as _;
use serde_json::Value;

use super::map::{self, DOC_MIME, FILE};
use super::wire::Head;
use super::{ALL_DRIVES, AT_ONCE, Drive, LIMITS};
use crate::pull::http::{Bounds, Refused};
use crate::pull::records::Read;
use crate::pull::{Account, Download, Failed, Item, PullError, record};

/// A hundred files of 10 MB would be a page of a gigabyte.
const TEXT_MAX_BYTES: usize = 32 * 1024 * 1024;
/// Google exports 10 MB at most.
const EXPORT: Bounds =
    Bounds { total: Duration::from_secs(120), idle: Duration::from_secs(20), bytes: 10 * 1024 * 1024 + 64 * 1024 };

/// The largest file that is fetched: it is held in memory until it is stored.
const FILE_MAX_BYTES: usize = 25 * 1024 * 1024;
const DOWNLOAD: Bounds =
    Bounds { total: Duration::from_secs(300), idle: Duration::from_secs(20), bytes: FILE_MAX_BYTES };

/// The files of a page that were read this time.
#[derive(Default)]
pub(super) struct Taken {
    pub items: Vec<Item>,
    pub failed: Vec<Failed>,
    /// All files of the page that are done, these and earlier ones.
    pub done: Vec<String>,
    pub is_whole: bool,
}

impl Drive {
    /// Reads the files of a page with their text, except those in `done`.
    pub(super) async fn take(
        &self,
        account: &Account<'_>,
        files: Vec<Value>,
        done: Vec<String>,
    ) -> Result<Taken, PullError> {
        let is_done = |file: &Value| {
            let id = file.get("id").and_then(record::plain_id);
            id.is_some_and(|id| done.contains(&id))
        };
        let files: Vec<Value> = files.into_iter().filter(|file| !is_done(file)).collect();
        let mut taken = Taken { done, ..Taken::default() };
        let mut text_bytes = 0;
        for group in files.chunks(AT_ONCE) {
            if text_bytes > TEXT_MAX_BYTES {
                return Ok(taken);
            }
            let read = try_join_all(group.iter().map(|file| self.with_text(account, file.clone()))).await?;
            taken.done.extend(group.iter().filter_map(|file| file.get("id").and_then(record::plain_id)));
            for file in read.into_iter().flatten() {
                match file.map(map::item) {
                    Ok(item) => {
                        text_bytes += item.text.len();
                        taken.items.push(item);
                    }
                    Err(behind) => taken.failed.push(behind),
                }
            }
        }
        taken.is_whole = true;
        Ok(taken)
    }

    /// Reads one file with its text. None: its type is not read, or it is gone meanwhile.
    pub(super) async fn with_text(&self, account: &Account<'_>, mut file: Value) -> Result<Option<Read>, PullError> {
        let Ok(head) = Head::deserialize(&file) else { return Ok(Some(map::raw("file", file))) };
        let Some(id) = record::plain_id(&head.id) else { return Ok(Some(map::raw("file", file))) };
        if map::document_type(&head.mime_type).is_none() || head.trashed {
            return Ok(None);
        }
        let failed = |reason: String, file: Value| Ok(Some(Err(record::failed("file", Some(&head.id), reason, file))));
        if head.capabilities.is_some_and(|may| may.can_download == Some(false)) {
            return failed("it may not be downloaded".into(), file);
        }
        if map::document_type(&head.mime_type) == Some(FILE) {
            let size = head.size.and_then(|size| size.parse::<u64>().ok());
            return match size.is_some_and(|size| size > FILE_MAX_BYTES as u64) {
                true => failed(FILE_TOO_LARGE.into(), file),
                false => Ok(Some(map::raw("file", file))),
            };
        }
        let mime_type = if head.mime_type == DOC_MIME { "text/markdown" } else { "text/csv" };
        let path = format!("/files/{id}/export");
        let exported = self.api.download(account, &LIMITS, &path, &[("mimeType", mime_type)], EXPORT).await;
        let bytes = match exported {
            Ok(bytes) => bytes,
            Err(Refused::Lasting { status: 404, .. }) => return Ok(None),
            Err(Refused::Lasting { status, code, .. }) => return failed(why_not(status, code.as_deref()), file),
            Err(Refused::TooLarge { .. }) => return failed(TOO_LARGE.into(), file),
            Err(Refused::Other(error)) => return Err(error),
        };
        let Ok(text) = String::from_utf8(bytes) else { return failed("its text is no UTF-8".into(), file) };
        if let Some(fields) = file.as_object_mut() {
            fields.insert("text".to_owned(), Value::String(text));
        }
        Ok(Some(map::raw("file", file)))
    }

    /// Fetches the bytes of a file that is no document of Google's own.
    pub(super) async fn bytes(&self, account: &Account<'_>, id: &str) -> Result<Download, PullError> {
        let (path, query) = (format!("/files/{id}"), [("alt", "media"), ALL_DRIVES[0]]);
        match self.api.download_page(account, &LIMITS, &path, &query, DOWNLOAD).await {
            Ok(bytes) => Ok(Download::Bytes(bytes.into())),
            Err(Refused::Lasting { status: 404, .. }) => Ok(Download::Gone),
            Err(Refused::Lasting { status, code, .. }) => Ok(Download::Refused(why_not(status, code.as_deref()))),
            Err(Refused::TooLarge { .. }) => Ok(Download::Refused(FILE_TOO_LARGE.into())),
            Err(Refused::Other(error)) => Err(error),
        }
    }
}

const FILE_TOO_LARGE: &str = "it is too large: files of up to 25 MB are read";
const TOO_LARGE: &str = "it is too large: Google exports 10 MB at most";

/// The reason why this file cannot be had. A second request would have the same answer.
pub(super) fn why_not(status: u16, code: Option<&str>) -> String {
    match code {
        Some("exportSizeLimitExceeded") => TOO_LARGE.into(),
        Some("cannotDownloadFile" | "insufficientFilePermissions" | "cannotExportFile" | "appNotAuthorizedToFile") => {
            "it may not be downloaded".into()
        }
        Some("domainPolicy") => "the rules of its domain keep it from being downloaded".into(),
        Some(code) => format!("Google Drive does not give it ({code})"),
        None => format!("Google Drive does not give it (http_{status})"),
    }
}
