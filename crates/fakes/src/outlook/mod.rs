//! Outlook by Microsoft Graph: a mailbox with folders, messages and files, the changes of each folder, and subscriptions that are told of them.

mod acts;
mod batch;
mod delta;
mod fake;
mod fixtures;
mod notices;
mod reading;
mod rest;
mod truth;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use crate::clock::parse_iso;
use crate::provider::hash;
use crate::{Fakes, Shared};

pub use self::fake::OUTLOOK;
pub use self::notices::{Lifecycle, NoticeDelivery};
pub use self::truth::OutlookLetter;

/// The folder that is above all others. No list has it.
const ROOT: &str = "AAMkADRoot0000000000000000AAA=";

/// Folders that every mailbox has, by their names in paths, and the names that people see.
const WELL_KNOWN: [(&str, &str); 8] = [
    ("inbox", "Inbox"),
    ("sentitems", "Sent Items"),
    ("drafts", "Drafts"),
    ("outbox", "Outbox"),
    ("junkemail", "Junk Email"),
    ("deleteditems", "Deleted Items"),
    ("archive", "Archive"),
    ("recoverableitemsdeletions", "Deletions"),
];

/// One mailbox.
pub(crate) struct Mail {
    folders: BTreeMap<String, Folder>,
    /// By immutable id.
    messages: BTreeMap<String, Message>,
    /// Every change, in order. A token is a place in it.
    events: Vec<Event>,
    folder_events: Vec<String>,
    /// Tokens of an earlier generation are no longer known.
    generation: u64,
    n_made: u64,
    notices: notices::Notices,
    switches: Switches,
    /// The units of the limit that were spent: every request, and every part of a batch.
    n_units: u64,
    n_in_flight: usize,
}

struct Folder {
    name: String,
    parent: String,
    is_hidden: bool,
}

struct Message {
    /// As Graph spells it, without what follows from the rest.
    fields: Map<String, Value>,
    folder: String,
    received_at: DateTime<Utc>,
    modified_at: DateTime<Utc>,
    /// A message gets another id with each move, unless one asks for immutable ones.
    n_moves: u32,
    files: Vec<File>,
}

struct File {
    id: String,
    fields: Map<String, Value>,
    bytes: Vec<u8>,
}

struct Event {
    folder: String,
    id: String,
    kind: Kind,
    at: DateTime<Utc>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    /// It was read or flagged.
    State,
    /// It left the folder: it was moved, or deleted for good.
    Moved,
    Deleted,
}

/// The ways in which Graph is not at its best.
#[derive(Default)]
struct Switches {
    /// A delta does not know changes that are younger than this.
    lag: TimeDelta,
    /// A page with bodies that is larger takes too long.
    page_max: Option<usize>,
    /// So many parts of batches are refused, with this wait.
    throttled_parts: u64,
    throttled_secs: u64,
    /// A message that left a folder and came back is told as gone.
    forgets_returns: bool,
    /// Of a message that changed, a delta has some properties only.
    tells_parts: bool,
    /// The time that a request takes. While it passes, others are in flight.
    work: Duration,
    /// Messages that are not found so many times when they are asked for by id.
    hidden: RefCell<HashMap<String, u32>>,
}

/// The mailbox of Outlook, as a person working in it changes it. Messages are named by their immutable ids. Every change has a later time than
/// those before it, and is told to those who have subscribed.
#[derive(Clone)]
pub struct Outlook {
    shared: Arc<Shared>,
}

impl Fakes {
    /// The mailbox of Outlook.
    pub fn outlook(&self) -> Outlook {
        Outlook { shared: self.shared.clone() }
    }
}

impl Outlook {
    fn mail(&self) -> &Mutex<Mail> {
        self.shared.records()
    }
}

impl Default for Mail {
    fn default() -> Self {
        let folder = |(well_known, name): (&'static str, &str)| {
            let is_hidden = well_known == "recoverableitemsdeletions";
            let folder = Folder { name: name.to_owned(), parent: ROOT.to_owned(), is_hidden };
            (folder_id(well_known), folder)
        };
        Self {
            folders: WELL_KNOWN.into_iter().map(folder).collect(),
            messages: BTreeMap::new(),
            events: Vec::new(),
            folder_events: Vec::new(),
            generation: 1,
            n_made: 0,
            notices: notices::Notices::default(),
            switches: Switches::default(),
            n_units: 0,
            n_in_flight: 0,
        }
    }
}

/// An id as long as real ones are, and the same in every run.
fn folder_id(name: &str) -> String {
    format!("AAMkADIxNzk1-_{:016x}{:016x}AAA=", hash(name), hash(&format!("folder {name}")))
}

fn message_id(number: u64) -> String {
    let name = format!("message {number}");
    format!("AAkALgAAAAAAHYQDEapmEc2byACqAC-EWg0A{:016x}{:016x}AAA", hash(&name), hash(&format!("{name}.")))
}

impl Mail {
    /// A folder by its id, or by its name in paths.
    fn folder_id(&self, id: &str) -> Option<String> {
        let known = WELL_KNOWN.iter().find(|(name, _)| *name == id).map(|(name, _)| folder_id(name));
        known.or_else(|| self.folders.contains_key(id).then(|| id.to_owned()))
    }

    /// A message by either of its ids, of which the mutable one is only good until the next move.
    fn message(&self, id: &str) -> Option<(&String, &Message)> {
        self.messages.get_key_value(id).or_else(|| {
            let number = id.strip_prefix("AAMkADU1").and_then(|rest| rest.get(..16)).map(str::to_owned)?;
            self.messages.iter().find(|(known, message)| number == moved(known, message.n_moves))
        })
    }

    /// The id that a request gets to see.
    fn shown_id(id: &str, message: &Message, is_immutable: bool) -> String {
        match is_immutable {
            true => id.to_owned(),
            false => format!("AAMkADU1{}BGAAAAAAC-_{:016x}AAA=", moved(id, message.n_moves), hash(id)),
        }
    }

    fn note(&mut self, folder: &str, id: &str, kind: Kind, at: DateTime<Utc>) {
        self.events.push(Event { folder: folder.to_owned(), id: id.to_owned(), kind, at });
    }

    /// Whether a folder is another, or inside it.
    fn is_inside(&self, id: &str, above: &str) -> bool {
        let mut at = Some(id);
        while let Some(folder) = at {
            if folder == above {
                return true;
            }
            at = self.folders.get(folder).map(|folder| folder.parent.as_str());
        }
        false
    }
}

fn moved(id: &str, n_moves: u32) -> String {
    format!("{:016x}", hash(&format!("{id} {n_moves}")))
}

impl Message {
    /// Makes a message of what is given, with defaults for the rest.
    fn new(given: Value, folder: &str, at: DateTime<Utc>, number: u64, id: &str) -> Self {
        let address = |address: &str| json!({"emailAddress": {"name": address, "address": address}});
        let office = address("office@harrowridge.example");
        let mut fields = json!({
            "subject": "", "body": {"contentType": "text", "content": ""}, "bodyPreview": "",
            "from": address("someone@example.com"), "toRecipients": [office], "ccRecipients": [], "bccRecipients": [],
            "replyTo": [], "isRead": false, "isDraft": false, "importance": "normal",
            "flag": {"flagStatus": "notFlagged"}, "categories": [], "inferenceClassification": "focused",
            "internetMessageId": format!("<{number}.fake@harrowridge.example>"),
            "conversationId": format!("AAQkADFake{number}"),
        });
        let time = |key: &str| given.get(key).and_then(Value::as_str).and_then(parse_iso);
        let received_at = time("receivedDateTime").unwrap_or(at);
        let modified_at = time("lastModifiedDateTime").unwrap_or(at);
        let files = given.get("attachments").and_then(Value::as_array).cloned().unwrap_or_default();
        for (key, value) in given.as_object().cloned().into_iter().flatten() {
            fields[key] = value;
        }
        let mut fields = fields.as_object().cloned().unwrap_or_default();
        for computed in
            ["id", "parentFolderId", "attachments", "hasAttachments", "receivedDateTime", "lastModifiedDateTime"]
        {
            fields.remove(computed);
        }
        if !fields.contains_key("sender") {
            fields.insert("sender".to_owned(), fields["from"].clone());
        }
        let files = files.into_iter().enumerate().filter_map(|(index, file)| File::new(file, index, id)).collect();
        Self { fields, folder: folder.to_owned(), received_at, modified_at, n_moves: 0, files }
    }
}

impl File {
    fn new(file: Value, index: usize, message_id: &str) -> Option<Self> {
        use base64::Engine as _;
        let mut fields = file.as_object()?.clone();
        let text = fields.remove("contentBytes").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
        let given = fields.remove("id").and_then(|id| id.as_str().map(str::to_owned));
        let id = given.unwrap_or_else(|| format!("{message_id}ESABAA{:016x}=", hash(&format!("{message_id} {index}"))));
        fields.entry("@odata.type").or_insert(json!("#microsoft.graph.fileAttachment"));
        fields.entry("isInline").or_insert(json!(false));
        // The size in the store, which is a little more.
        fields.entry("size").or_insert(json!(bytes.len() + 180));
        Some(Self { id, fields, bytes })
    }
}
