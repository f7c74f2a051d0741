//! Google Drive: files, their texts and the feed of changes, and how a test changes them.

mod fake;
mod filter;
mod fixtures;
mod mcp;
mod rest;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::clock::{iso, parse_iso};
use crate::{Fakes, Shared, lock};

pub use self::fake::DRIVE;

pub(crate) const DOCUMENT: &str = "application/vnd.google-apps.document";
pub(crate) const SHEET: &str = "application/vnd.google-apps.spreadsheet";

#[derive(Default)]
pub(crate) struct Files {
    files: BTreeMap<String, File>,
    /// The changes by number. Each file is there once, at its latest change.
    changes: BTreeMap<u64, Change>,
    last_change: u64,
}

pub(crate) struct File {
    metadata: Value,
    modified_at: DateTime<Utc>,
    text: String,
    /// Of a file that is no document of Google's own.
    bytes: Option<Vec<u8>>,
}

pub(crate) struct Change {
    file_id: String,
    at: DateTime<Utc>,
}

/// The files of Drive, as a person working in it changes them. Every change has a later time than those before it.
#[derive(Clone)]
pub struct Drive {
    shared: Arc<Shared>,
}

impl Fakes {
    /// The files of Google Drive.
    pub fn drive(&self) -> Drive {
        Drive { shared: self.shared.clone() }
    }
}

impl Drive {
    fn files(&self) -> &Mutex<Files> {
        self.shared.records()
    }

    pub fn put_doc(&self, name: &str, text: &str) -> String {
        self.put_file(json!({"name": name, "mimeType": DOCUMENT}), text)
    }

    pub fn put_sheet(&self, name: &str, csv: &str) -> String {
        self.put_file(json!({"name": name, "mimeType": SHEET}), csv)
    }

    /// Creates a file, or replaces the one with its id; `metadata` as in Drive's own answers. Returns the id.
    pub fn put_file(&self, metadata: Value, text: &str) -> String {
        let id = metadata["id"].as_str().map_or_else(|| format!("1{}", Uuid::new_v4().simple()), str::to_owned);
        let mut drive = lock(self.files());
        let now = self.shared.clock.stamp();
        let mut whole = json!({"kind": "drive#file", "id": id, "parents": ["root"], "createdTime": iso(now),
            "trashed": false, "explicitlyTrashed": false, "version": "0", "capabilities": {"canDownload": true}});
        if let Some(known) = drive.files.get(&id) {
            whole = known.metadata.clone();
        }
        set(&mut whole, metadata);
        drive.files.insert(id.clone(), File { metadata: whole, modified_at: now, text: text.to_owned(), bytes: None });
        drive.touch(&id, now);
        id
    }

    /// A file of another kind than Google's own.
    pub fn put_bytes(&self, name: &str, mime_type: &str, bytes: &[u8]) -> String {
        let id = self.put_file(json!({"name": name, "mimeType": mime_type}), "");
        self.set_bytes(&id, bytes);
        id
    }

    /// A new revision of such a file.
    pub fn set_bytes(&self, id: &str, bytes: &[u8]) {
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.change(id, |file| {
            set(&mut file.metadata, json!({"size": bytes.len().to_string(), "sha256Checksum": sha256}));
            file.bytes = Some(bytes.to_owned());
        });
    }

    /// Changes what Drive says of a file.
    pub fn say(&self, id: &str, metadata: Value) {
        self.change(id, |file| set(&mut file.metadata, metadata));
    }

    pub fn set_text(&self, id: &str, text: &str) {
        self.change(id, |file| file.text = text.to_owned());
    }

    pub fn rename(&self, id: &str, name: &str) {
        self.change(id, |file| file.metadata["name"] = json!(name));
    }

    /// Moves a file into the bin, or out of it.
    pub fn trash(&self, id: &str, is_trashed: bool) {
        self.change(id, |file| {
            set(&mut file.metadata, json!({"trashed": is_trashed, "explicitlyTrashed": is_trashed}))
        });
    }

    /// Deletes a file for good, or no longer shares it with us.
    pub fn remove(&self, id: &str) {
        let mut drive = lock(self.files());
        let now = self.shared.clock.stamp();
        drive.files.remove(id).expect("a file that is there");
        drive.note_change(id, now);
    }

    /// Counts all files, with the bin and folders.
    pub fn count(&self) -> usize {
        lock(self.files()).files.len()
    }

    pub fn ids(&self) -> Vec<String> {
        lock(self.files()).files.keys().cloned().collect()
    }

    /// The documents, sheets and files with bytes that are not in the bin.
    pub fn readable_ids(&self) -> Vec<String> {
        let is_readable = |file: &File| {
            let kind = file.metadata["mimeType"].as_str().unwrap_or_default();
            ([DOCUMENT, SHEET].contains(&kind) || file.bytes.is_some()) && file.metadata["trashed"] != json!(true)
        };
        lock(self.files()).files.iter().filter(|(_, file)| is_readable(file)).map(|(id, _)| id.clone()).collect()
    }

    /// Adds a file of a fixture, with its own times.
    pub(crate) fn load(&self, metadata: Value, text: &str) {
        let Some(id) = metadata["id"].as_str().map(str::to_owned) else { return };
        let modified_at = metadata["modifiedTime"].as_str().and_then(parse_iso).unwrap_or_default();
        let mut drive = lock(self.files());
        drive.files.insert(id.clone(), File { metadata, modified_at, text: text.to_owned(), bytes: None });
        drive.note_change(&id, modified_at);
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut File)) {
        let mut drive = lock(self.files());
        let now = self.shared.clock.stamp();
        change(drive.files.get_mut(id).expect("a file that is there"));
        drive.touch(id, now);
    }
}

impl Files {
    fn touch(&mut self, id: &str, now: DateTime<Utc>) {
        let Some(file) = self.files.get_mut(id) else { return };
        let version: u64 =
            file.metadata["version"].as_str().and_then(|version| version.parse().ok()).unwrap_or_default();
        file.modified_at = now;
        set(&mut file.metadata, json!({"version": (version + 1).to_string(), "modifiedTime": iso(now)}));
        self.note_change(id, now);
    }

    fn note_change(&mut self, id: &str, at: DateTime<Utc>) {
        self.changes.retain(|_, change| change.file_id != id);
        self.last_change += 1;
        self.changes.insert(self.last_change, Change { file_id: id.to_owned(), at });
    }
}

fn set(metadata: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().cloned().into_iter().flatten() {
        metadata[name] = value;
    }
}
