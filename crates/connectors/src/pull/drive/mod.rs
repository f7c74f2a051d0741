//! Reads Google's documents and sheets, and files of other kinds, by Drive's REST API. A full pass lists them, newest first. A delta follows the feed of changes,
//! which tells of removals too.

mod export;
mod guide;
mod map;
mod spec;
mod tools;
mod wire;

use futures_util::future::{BoxFuture, try_join_all};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::export::Taken;
use self::map::DOC;
pub use self::spec::SPEC;
use self::wire::{About, Change, Changes, FILE_FIELDS, Files, StartPageToken};
use super::http::{Api, ApiAnswer, Refused};
use super::records::{Read, Records};
use super::trail::{Trail, follow};
use super::{
    Account, Connector, Download, Failed, Found, Identity, Item, Limit, Page, PullError, last, more, read_place, record,
};

const LIMITS: [&Limit; 1] = [&spec::REQUESTS];
const PAGE: &str = "100";
/// The number of files that are exported or looked up at the same time.
const AT_ONCE: usize = 4;
/// Files of shared drives are read too.
const ALL_DRIVES: [(&str, &str); 2] = [("supportsAllDrives", "true"), ("includeItemsFromAllDrives", "true")];

pub(super) struct Drive {
    api: Api,
    first_max: usize,
}

/// The position of a pass. A page whose texts are too much for one time is read again, without the files that are done.
#[derive(Default, Serialize, Deserialize)]
struct FilesPlace {
    trail: Option<Trail>,
    done: Vec<String>,
    /// Files so far, for the cap on a first sync.
    n_taken: usize,
}

#[derive(Serialize, Deserialize)]
struct Cursor {
    page_token: String,
}

impl Drive {
    /// `first_max` is how many files a first sync takes.
    pub fn new(api: Api, first_max: usize) -> Self {
        Self { api, first_max }
    }

    async fn full_page(&self, account: &Account<'_>, place: Option<&Value>, is_first: bool) -> Result<Page, PullError> {
        let place: FilesPlace = place.map(read_place).transpose()?.unwrap_or_default();
        let list = self.list(account, place.trail.as_ref()).await?;
        let (files, mut failed) = values(&list.files);
        let room = if is_first { self.first_max.saturating_sub(place.n_taken) + place.done.len() } else { usize::MAX };
        let is_capped = files.len() > room || (files.len() == room && list.next_page_token.is_some());
        let n_done = place.done.len();
        let Taken { items, failed: behind, done, is_whole } =
            self.take(account, files.into_iter().take(room).collect(), place.done).await?;
        failed.extend(behind);

        let n_taken = place.n_taken + done.len() - n_done;
        if !is_whole {
            return Ok(more(items, failed, json!(FilesPlace { trail: place.trail, done, n_taken })));
        }
        let mut page = match list.next_page_token {
            Some(token) if !is_capped => {
                let trail = Some(follow(self.api.who(), place.trail, token)?);
                more(items, failed, json!(FilesPlace { trail, done: Vec::new(), n_taken }))
            }
            _ => last(items, failed, Value::Null),
        };
        if is_capped {
            let most = self.first_max;
            page.note = Some(format!("The newest {most} files were taken; older ones come in when they change."));
        } else if list.incomplete_search {
            page.note =
                Some("Google Drive could not look everywhere; what it left out comes in when it changes.".into());
        }
        Ok(page)
    }

    async fn list(&self, account: &Account<'_>, trail: Option<&Trail>) -> Result<Files, PullError> {
        let types: Vec<String> = map::mime_types().map(|kind| format!("mimeType='{kind}'")).collect();
        let q = format!("({}) and trashed=false", types.join(" or "));
        let fields = format!("nextPageToken,incompleteSearch,files({FILE_FIELDS})");
        let mut query = vec![("q", q.as_str()), ("fields", fields.as_str())];
        query.extend([("orderBy", "modifiedTime desc"), ("pageSize", PAGE)]);
        query.extend(ALL_DRIVES);
        query.extend(trail.map(|trail| ("pageToken", trail.after.as_str())));
        match self.api.get::<Files>(account, &LIMITS, "/files", &query).await {
            Err(Refused::Lasting { status: 400 | 404 | 410, .. }) if trail.is_some() => {
                Err(PullError::CursorLost("Google Drive no longer knows our place in its list"))
            }
            answer => Ok(answer?.body),
        }
    }

    async fn delta_page(
        &self,
        account: &Account<'_>,
        cursor: &Value,
        place: Option<&Value>,
    ) -> Result<Page, PullError> {
        let Cursor { page_token } = read_place(cursor)?;
        let place: FilesPlace = place.map(read_place).transpose()?.unwrap_or_default();
        let trail = place.trail.unwrap_or_else(|| Trail::start(page_token));
        let changes = self.changes(account, &trail.after).await?;
        let (mut items, mut failed, files) = told(&changes.changes);
        // A page may come in several parts. Changes that cannot be read are told with the first part. Removals are told with each part: the
        // page is asked for again, and may have more of them.
        if !place.done.is_empty() {
            failed.clear();
        }
        let taken = self.take(account, files, place.done).await?;
        items.extend(taken.items);
        failed.extend(taken.failed);
        if !taken.is_whole {
            return Ok(more(items, failed, json!(FilesPlace { trail: Some(trail), done: taken.done, n_taken: 0 })));
        }
        match (changes.next_page_token, changes.new_start_page_token) {
            (Some(token), _) => {
                let trail = Some(follow(self.api.who(), Some(trail), token)?);
                Ok(more(items, failed, json!(FilesPlace { trail, ..FilesPlace::default() })))
            }
            (None, Some(page_token)) => Ok(last(items, failed, json!(Cursor { page_token }))),
            (None, None) => {
                let what = format!("{} did not say where the next changes begin", self.api.who());
                Err(PullError::Unreadable { what, raw: String::new() })
            }
        }
    }

    async fn changes(&self, account: &Account<'_>, page_token: &str) -> Result<Changes, PullError> {
        let fields =
            format!("nextPageToken,newStartPageToken,changes(changeType,removed,fileId,time,file({FILE_FIELDS}))");
        let mut query = vec![("pageToken", page_token), ("pageSize", PAGE), ("includeRemoved", "true")];
        query.push(("fields", fields.as_str()));
        query.extend(ALL_DRIVES);
        match self.api.get::<Changes>(account, &LIMITS, "/changes", &query).await {
            Err(Refused::Lasting { status: 400 | 404 | 410, .. }) => {
                Err(PullError::CursorLost("Google Drive no longer knows our place in its changes"))
            }
            answer => Ok(answer?.body),
        }
    }

    /// One file as it is now; none when it is gone.
    async fn look_up(&self, account: &Account<'_>, id: &str) -> Result<Option<Read>, PullError> {
        let query = [("fields", FILE_FIELDS), ALL_DRIVES[0]];
        let file = match self.api.get::<Value>(account, &LIMITS, &format!("/files/{id}"), &query).await {
            Ok(answer) => answer.body,
            Err(Refused::Lasting { status: 404, .. }) => return Ok(None),
            // The file is there, though we may not see it, so it does not count as gone.
            Err(Refused::Lasting { status, code, .. }) => {
                let reason = export::why_not(status, code.as_deref());
                return Ok(Some(Err(record::failed("file", Some(&json!(id)), reason, Value::Null))));
            }
            Err(refused) => return Err(refused.into()),
        };
        let read = self.with_text(account, file).await?;
        // It is the file that was asked for, whatever id it has.
        Ok(read
            .map(|read| read.map_err(|behind| record::failed("file", Some(&json!(id)), behind.reason, behind.payload))))
    }

    async fn found(&self, account: &Account<'_>, external_ids: &[String]) -> Result<Found, PullError> {
        let (mut items, mut failed) = (Vec::new(), Vec::new());
        let ids = external_ids.iter().filter_map(|id| id.strip_prefix("file:"));
        let ids: Vec<&str> = ids.filter(|id| record::is_plain_id(id)).collect();
        for ids in ids.chunks(AT_ONCE) {
            let read = try_join_all(ids.iter().map(|id| self.look_up(account, id))).await?;
            for file in read.into_iter().flatten() {
                match file {
                    Ok(raw) => items.push(map::item(raw)),
                    Err(behind) => failed.push(behind),
                }
            }
        }
        Ok((items, failed))
    }
}

impl Connector for Drive {
    fn document_types(&self) -> &'static [&'static str] {
        SPEC.document_types
    }

    fn cursor<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Option<Value>, PullError>> {
        Box::pin(async move {
            let query = [ALL_DRIVES[0]];
            let answer: ApiAnswer<StartPageToken> =
                self.api.get(account, &LIMITS, "/changes/startPageToken", &query).await?;
            Ok(Some(json!(Cursor { page_token: answer.body.start_page_token })))
        })
    }

    fn full<'a>(
        &'a self,
        account: &'a Account<'a>,
        place: Option<&'a Value>,
        is_first: bool,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.full_page(account, place, is_first))
    }

    fn delta<'a>(
        &'a self,
        account: &'a Account<'a>,
        cursor: &'a Value,
        place: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Page, PullError>> {
        Box::pin(self.delta_page(account, cursor, place))
    }

    /// Every file comes with its text, of up to 10 MB.
    fn find_max(&self) -> usize {
        AT_ONCE
    }

    fn find<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_ids: &'a [String],
    ) -> BoxFuture<'a, Result<Found, PullError>> {
        Box::pin(self.found(account, external_ids))
    }

    fn download<'a>(
        &'a self,
        account: &'a Account<'a>,
        external_id: &'a str,
    ) -> BoxFuture<'a, Result<Download, PullError>> {
        Box::pin(async move {
            match external_id.strip_prefix("file:").filter(|id| record::is_plain_id(id)) {
                Some(id) => self.bytes(account, id).await,
                None => Ok(Download::Refused("it has no id that is one".into())),
            }
        })
    }

    fn identify<'a>(&'a self, account: &'a Account<'a>) -> BoxFuture<'a, Result<Identity, PullError>> {
        Box::pin(async move {
            let answer: ApiAnswer<About> = self.api.get(account, &LIMITS, "/about", &[("fields", "user")]).await?;
            let user = answer.body.user;
            let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
            let (address, name) = (said(user.email_address), said(user.display_name));
            let Some(account) = address.clone().or_else(|| said(user.permission_id)) else {
                let what = format!("{} did not say whose account this is", self.api.who());
                return Err(PullError::Unreadable { what, raw: String::new() });
            };
            Ok(Identity { name: address.or(name).unwrap_or_else(|| account.clone()), account })
        })
    }
}

/// The files of a page that are read, and the entries that are no files.
fn values(files: &Records) -> (Vec<Value>, Vec<Failed>) {
    let (mut ours, mut failed) = (Vec::new(), Vec::new());
    for file in files.each("file") {
        match file {
            Ok(file) if is_ours(&file) => ours.push(file),
            Ok(_) => {}
            Err(behind) => failed.push(behind),
        }
    }
    (ours, failed)
}

/// Sorts a page of changes into files that are gone, changes that cannot be read, and files to export.
fn told(changes: &Records) -> (Vec<Item>, Vec<Failed>, Vec<Value>) {
    let (mut gone, mut failed, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for change in changes.each("file") {
        let change = match change {
            Ok(change) => change,
            Err(behind) => {
                failed.push(behind);
                continue;
            }
        };
        let read = Change::deserialize(&change).ok();
        if read.as_ref().is_some_and(|change| change.change_type.as_deref() == Some("drive")) {
            continue;
        }
        let id = read.as_ref().and_then(|change| record::plain_id(change.file_id.as_ref()?));
        let (Some(read), Some(id)) = (read, id) else {
            failed.push(record::failed("file", None, "it is a change of no file", change));
            continue;
        };
        let kind = read.file.as_ref().map(|file| document_type(file));
        let is_trashed = read.file.as_ref().and_then(|file| file.get("trashed")?.as_bool()) == Some(true);
        match (read.removed, kind) {
            // A file that is no longer shared with us comes without its type.
            (true, None) => gone.push(map::item(map::tombstone(&id, DOC))),
            (is_removed, Some(Some(kind))) if is_removed || is_trashed => {
                gone.push(map::item(map::tombstone(&id, kind)))
            }
            (false, Some(Some(_))) => files.extend(read.file),
            _ => {}
        }
    }
    (gone, failed, files)
}

fn is_ours(file: &Value) -> bool {
    document_type(file).is_some()
}

fn document_type(file: &Value) -> Option<&'static str> {
    map::document_type(file.get("mimeType").and_then(Value::as_str)?)
}

#[cfg(test)]
mod tests;
