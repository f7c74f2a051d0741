//! Drive's REST API, version 3.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::clock::iso;
use crate::drive::fake::{DRIVE, lost_token, refused};
use crate::drive::filter::Filter;
use crate::drive::{DOCUMENT, File, Files, SHEET};
use crate::manners::Manner;
use crate::oauth::grants::Caller;
use crate::request::pairs;
use crate::shapes::{answer, text};
use crate::{Shared, lock};

const MOST_A_PAGE: usize = 1000;
const EXPORT_BYTES: usize = 10 * 1024 * 1024;
/// Before the place in a listing, so that nobody takes it for a number.
const TOKEN_HEAD: &str = "~!!~";

pub(crate) fn routes(_: &Arc<Shared>) -> Router<Arc<Shared>> {
    let drive = Router::new()
        .route("/files", get(list))
        .route("/files/{id}", get(one))
        .route("/files/{id}/export", get(export))
        .route("/changes/startPageToken", get(start_page_token))
        .route("/changes", get(changes))
        .route("/about", get(about))
        .route_layer(middleware::from_fn(guard));
    Router::new().nest("/drive/v3", drive)
}

async fn guard(request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>();
    match caller.is_some_and(|caller| caller.provider == DRIVE && caller.is_valid) {
        true => next.run(request).await,
        false => refused(401, "authError", "Invalid Credentials"),
    }
}

/// The parameters of a request.
struct Asked(Vec<(String, String)>);

impl Asked {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn page_rows(&self, manner: Option<&Extension<Manner>>) -> Option<usize> {
        let rows = self.get("pageSize").map_or(Some(100), |size| size.parse().ok())?;
        let is_sound = (1..=MOST_A_PAGE).contains(&rows);
        is_sound.then(|| manner.map_or(rows, |Extension(manner)| manner.page_rows(rows)))
    }

    /// Keeps the fields that `fields` names, at every depth; without `fields`, the few that Drive gives.
    fn trim(&self, value: &mut Value) {
        let words: Vec<&str> = match self.get("fields") {
            Some("*") => return,
            Some(fields) => fields.split(|c: char| !c.is_alphanumeric()).collect(),
            None => DEFAULT_FIELDS.to_vec(),
        };
        trim(value, &words);
    }
}

const DEFAULT_FIELDS: [&str; 14] = [
    "kind",
    "incompleteSearch",
    "nextPageToken",
    "newStartPageToken",
    "files",
    "id",
    "name",
    "mimeType",
    "changes",
    "changeType",
    "removed",
    "fileId",
    "time",
    "file",
];

fn trim(value: &mut Value, words: &[&str]) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| trim(value, words)),
        Value::Object(values) => {
            values.retain(|key, _| words.contains(&key.as_str()));
            let lists = values.iter_mut().filter(|(key, _)| ["files", "changes", "file"].contains(&key.as_str()));
            lists.for_each(|(_, value)| trim(value, words));
        }
        _ => {}
    }
}

async fn list(State(shared): State<Arc<Shared>>, manner: Option<Extension<Manner>>, uri: Uri) -> Response {
    let asked = Asked(pairs(&uri));
    let (q, order) = (asked.get("q").unwrap_or_default(), asked.get("orderBy").unwrap_or_default());
    let Some(filter) = Filter::parse(q) else { return refused(400, "invalid", "Invalid Value") };
    let Some(page_rows) = asked.page_rows(manner.as_ref()) else { return refused(400, "invalid", "Invalid Value") };
    let start = match asked.get("pageToken") {
        None => 0,
        Some(token) => match place_in(token, q, order) {
            Some(start) => start,
            None => return lost_token(),
        },
    };
    let drive = lock(shared.records::<Files>());
    let mut files: Vec<&File> = drive.files.values().filter(|file| filter.holds(file)).collect();
    let key = order.split_whitespace().next().unwrap_or("modifiedTime");
    files.sort_by_key(|file| file.metadata[key].to_string());
    if order.is_empty() || order.ends_with(" desc") {
        files.reverse();
    }
    let page: Vec<&Value> = files.iter().skip(start).take(page_rows).map(|file| &file.metadata).collect();
    let repeats = manner.as_deref() == Some(&Manner::RepeatToken);
    let next = if repeats { start } else { start + page_rows };
    let mut answered = json!({"kind": "drive#fileList", "incompleteSearch": false, "files": page});
    if repeats || next < files.len() {
        answered["nextPageToken"] = json!(token_of(next, q, order));
    }
    asked.trim(&mut answered);
    answer(200, answered)
}

/// A token is good only for the question that it was given to.
fn token_of(place: usize, q: &str, order: &str) -> String {
    format!("{TOKEN_HEAD}{}", URL_SAFE_NO_PAD.encode(format!("{place} {order} {q}")))
}

fn place_in(token: &str, q: &str, order: &str) -> Option<usize> {
    let inside = String::from_utf8(URL_SAFE_NO_PAD.decode(token.strip_prefix(TOKEN_HEAD)?).ok()?).ok()?;
    let (place, asked) = inside.split_once(' ')?;
    (asked == format!("{order} {q}")).then(|| place.parse().ok())?
}

async fn one(State(shared): State<Arc<Shared>>, Path(id): Path<String>, uri: Uri) -> Response {
    let asked = Asked(pairs(&uri));
    let drive = lock(shared.records::<Files>());
    let Some(file) = drive.files.get(&id) else { return not_found(&id) };
    if asked.get("alt") == Some("media") {
        return match is_native(file) {
            true => refused(403, "fileNotDownloadable", "Only files with binary content can be downloaded."),
            false => {
                let bytes = file.bytes.clone().unwrap_or_else(|| file.text.clone().into_bytes());
                ([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response()
            }
        };
    }
    let mut metadata = file.metadata.clone();
    asked.trim(&mut metadata);
    answer(200, metadata)
}

async fn export(State(shared): State<Arc<Shared>>, Path(id): Path<String>, uri: Uri) -> Response {
    let asked = Asked(pairs(&uri));
    let drive = lock(shared.records::<Files>());
    let Some(file) = drive.files.get(&id) else { return not_found(&id) };
    if !is_native(file) {
        return refused(403, "fileNotExportable", "Export only supports Docs Editors files.");
    }
    let offered: &[&'static str] = match file.metadata["mimeType"].as_str() {
        Some(DOCUMENT) => &["text/markdown", "text/plain", "text/html"],
        Some(SHEET) => &["text/csv", "text/tab-separated-values"],
        _ => &[],
    };
    let Some(content_type) = offered.iter().find(|offered| asked.get("mimeType") == Some(**offered)) else {
        return refused(400, "badRequest", "The requested conversion is not supported.");
    };
    if file.text.len() > EXPORT_BYTES {
        return refused(403, "exportSizeLimitExceeded", "This file is too large to be exported.");
    }
    text(content_type, file.text.clone())
}

fn is_native(file: &File) -> bool {
    file.metadata["mimeType"].as_str().is_some_and(|kind| kind.starts_with("application/vnd.google-apps."))
}

fn not_found(id: &str) -> Response {
    refused(404, "notFound", &format!("File not found: {id}."))
}

async fn start_page_token(State(shared): State<Arc<Shared>>) -> Response {
    let next = lock(shared.records::<Files>()).last_change + 1;
    answer(200, json!({"kind": "drive#startPageToken", "startPageToken": next.to_string()}))
}

async fn changes(State(shared): State<Arc<Shared>>, manner: Option<Extension<Manner>>, uri: Uri) -> Response {
    let asked = Asked(pairs(&uri));
    let Some(page_rows) = asked.page_rows(manner.as_ref()) else { return refused(400, "invalid", "Invalid Value") };
    let drive = lock(shared.records::<Files>());
    let start = asked.get("pageToken").and_then(|token| token.parse().ok());
    let Some(start) = start.filter(|start| (1..=drive.last_change + 1).contains(start)) else {
        return lost_token();
    };
    let with_removed = asked.get("includeRemoved") != Some("false");
    let mut left = drive.changes.range(start..).peekable();
    let mut next = start;
    let mut page = Vec::new();
    for (number, change) in left.by_ref().take(page_rows) {
        next = number + 1;
        let mut row = json!({"kind": "drive#change", "changeType": "file", "type": "file", "time": iso(change.at),
            "fileId": change.file_id, "removed": true});
        if let Some(file) = drive.files.get(&change.file_id) {
            row["removed"] = json!(false);
            row["file"] = file.metadata.clone();
        } else if !with_removed {
            continue;
        }
        page.push(row);
    }
    let mut answered = json!({"kind": "drive#changeList", "changes": page});
    if manner.as_deref() == Some(&Manner::RepeatToken) {
        answered["nextPageToken"] = json!(start.to_string());
    } else if left.peek().is_some() {
        answered["nextPageToken"] = json!(next.to_string());
    } else {
        answered["newStartPageToken"] = json!((drive.last_change + 1).to_string());
    }
    asked.trim(&mut answered);
    answer(200, answered)
}

async fn about(Extension(caller): Extension<Caller>, uri: Uri) -> Response {
    if Asked(pairs(&uri)).get("fields").is_none() {
        return refused(400, "required", "The 'fields' parameter is required for this method.");
    }
    let provider = DRIVE;
    answer(
        200,
        json!({"user": {
            "kind": "drive#user",
            "displayName": "Harrow Ridge Equipment",
            "me": true,
            "permissionId": provider.account_id(&caller.account),
            "emailAddress": provider.email(&caller.account),
        }}),
    )
}
