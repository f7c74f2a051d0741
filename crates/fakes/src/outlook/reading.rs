//! Reads out the person, folders, messages and files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::fake::{OUTLOOK, error, said};
use super::{File, Folder, Mail, Message, ROOT};
use crate::manners::Manner;
use crate::oauth::grants::Caller;

/// A question, alone or as a part of a batch.
pub(super) struct Ask<'a> {
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    pub prefer: String,
    /// The address of the API.
    pub base: &'a str,
    pub manner: Option<&'a Manner>,
    pub caller: &'a Caller,
    pub now: DateTime<Utc>,
}

/// An answer.
pub(super) struct Said {
    pub status: u16,
    pub body: Body,
}

pub(super) enum Body {
    Json(Value),
    Bytes(String, Vec<u8>),
}

impl From<(u16, Value)> for Said {
    fn from((status, body): (u16, Value)) -> Self {
        Self { status, body: Body::Json(body) }
    }
}

impl Ask<'_> {
    pub fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn is_immutable(&self) -> bool {
        self.prefer.contains("ImmutableId")
    }

    /// The number of rows that the header asks for.
    pub fn page_size(&self) -> Option<usize> {
        let rest = self.prefer.split("odata.maxpagesize=").nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }

    pub fn refuse(&self, status: u16) -> Said {
        error(status, self.now).into()
    }

    fn invalid(&self, words: &str) -> Said {
        (400, said("RequestBroker--ParseUri", words, self.now)).into()
    }

    /// The address of this question, with another query.
    fn link(&self, query: &str) -> String {
        format!("{}/{}?{query}", self.base, self.path.join("/"))
    }
}

/// Keeps the properties that are selected, and the id.
pub(super) fn selected(fields: Map<String, Value>, select: Option<&str>) -> Map<String, Value> {
    let Some(select) = select else {
        let mut fields = fields;
        // Graph gives these only to those who name them.
        fields.remove("internetMessageHeaders");
        return fields;
    };
    let wanted: Vec<&str> = select.split(',').map(str::trim).collect();
    let is_wanted = |key: &str| key == "id" || key.starts_with('@') || wanted.contains(&key);
    fields.into_iter().filter(|(key, _)| is_wanted(key)).collect()
}

/// A time as Graph writes it.
pub(super) fn seconds(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl Mail {
    /// Answers a GET.
    pub(super) fn read(&self, ask: &Ask<'_>) -> Said {
        let path: Vec<&str> = ask.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["me"] => me(ask),
            ["me", "mailFolders"] => self.folder_list(ask, ROOT),
            ["me", "mailFolders", "delta"] => self.folder_delta(ask),
            ["me", "mailFolders", folder, rest @ ..] => {
                let Some(id) = self.folder_id(folder).filter(|id| self.folders.contains_key(id)) else {
                    return ask.refuse(404);
                };
                match rest {
                    [] => (200, Value::Object(selected(self.folder_fields(&id), ask.value("$select")))).into(),
                    ["childFolders"] => self.folder_list(ask, &id),
                    ["messages"] => self.message_list(ask, Some(&id)),
                    ["messages", "delta"] => self.delta(ask, &id),
                    ["messages", message, rest @ ..] => self.one(ask, message, rest),
                    _ => ask.refuse(400),
                }
            }
            ["me", "messages"] => self.message_list(ask, None),
            ["me", "messages", message, rest @ ..] => self.one(ask, message, rest),
            _ => ask.invalid("Resource not found for the segment."),
        }
    }

    fn folder_fields(&self, id: &str) -> Map<String, Value> {
        let Some(Folder { name, parent, is_hidden, .. }) = self.folders.get(id) else { return Map::new() };
        let n_children = self.folders.values().filter(|folder| folder.parent == id && !folder.is_hidden).count();
        let inside = self.messages.values().filter(|message| message.folder == id);
        let n_unread = inside.clone().filter(|message| message.fields.get("isRead") == Some(&json!(false))).count();
        let fields = json!({"id": id, "displayName": name, "parentFolderId": parent, "childFolderCount": n_children,
            "unreadItemCount": n_unread, "totalItemCount": inside.count(), "sizeInBytes": 0, "isHidden": is_hidden});
        fields.as_object().cloned().unwrap_or_default()
    }

    /// The folders directly inside another.
    fn folder_list(&self, ask: &Ask<'_>, parent: &str) -> Said {
        let with_hidden = ask.value("includeHiddenFolders") == Some("true");
        let ids =
            self.folders.iter().filter(|(_, folder)| folder.parent == parent && (with_hidden || !folder.is_hidden));
        let rows = ids.map(|(id, _)| Value::Object(selected(self.folder_fields(id), ask.value("$select")))).collect();
        listed(ask, rows)
    }

    /// All folders of the mailbox, and later those that changed.
    fn folder_delta(&self, ask: &Ask<'_>) -> Said {
        let since = match ask.value("$deltatoken").map(|token| token.split_once('-')) {
            None => None,
            Some(token) => {
                match token.and_then(|(gen_, at)| Some((gen_.parse::<u64>().ok()?, at.parse::<usize>().ok()?))) {
                    Some((generation, at)) if generation == self.generation => Some(at),
                    _ => return ask.refuse(410),
                }
            }
        };
        let mut ids: Vec<&String> = match since {
            None => self.folders.keys().collect(),
            Some(since) => self.folder_events.iter().skip(since).collect(),
        };
        ids.sort();
        ids.dedup();
        let row = |id: &String| match self.folders.get(id) {
            Some(folder) if folder.is_hidden => None,
            Some(_) => Some(Value::Object(selected(self.folder_fields(id), ask.value("$select")))),
            None => Some(json!({"id": id, "@removed": {"reason": "deleted"}})),
        };
        let rows: Vec<Value> = ids.into_iter().filter_map(row).collect();
        let link = ask.link(&format!("$deltatoken={}-{}", self.generation, self.folder_events.len()));
        (200, json!({"value": rows, "@odata.deltaLink": link})).into()
    }

    /// A message as Graph spells it.
    pub(super) fn message_fields(&self, id: &str, message: &Message, is_immutable: bool) -> Map<String, Value> {
        let mut fields = message.fields.clone();
        let has_files = message.files.iter().any(|file| file.fields.get("isInline") != Some(&json!(true)));
        let changed = seconds(message.modified_at);
        let sent = fields.get("sentDateTime").cloned().unwrap_or_else(|| json!(seconds(message.received_at)));
        for (key, value) in [
            ("@odata.etag", json!(format!("W/\"CQAAABYAAA{}\"", message.modified_at.timestamp_millis()))),
            ("id", json!(Self::shown_id(id, message, is_immutable))),
            ("parentFolderId", json!(message.folder)),
            ("hasAttachments", json!(has_files)),
            ("receivedDateTime", json!(seconds(message.received_at))),
            ("sentDateTime", sent),
            ("lastModifiedDateTime", json!(changed)),
            ("changeKey", json!(format!("CQAAABYAAA{}", message.modified_at.timestamp_millis()))),
        ] {
            fields.insert(key.to_owned(), value);
        }
        fields
    }

    fn message_list(&self, ask: &Ask<'_>, folder: Option<&str>) -> Said {
        let Some((from, before)) = bounds(ask.value("$filter")) else { return ask.refuse(400) };
        let is_there = |message: &Message| {
            let at = message.received_at;
            folder.is_none_or(|folder| message.folder == folder)
                && from.is_none_or(|from| at >= from)
                && before.is_none_or(|before| at < before)
        };
        let mut found: Vec<(&String, &Message)> =
            self.messages.iter().filter(|(_, message)| is_there(message)).collect();
        found.sort_by_key(|(id, message)| (std::cmp::Reverse(message.received_at), *id));
        let fields = |(id, message): (&String, &Message)| {
            Value::Object(selected(self.message_fields(id, message, ask.is_immutable()), ask.value("$select")))
        };
        // Only those of the page are spelled out: a mailbox is large.
        let number = |name: &str, default: usize| ask.value(name).map_or(Ok(default), str::parse).unwrap_or(default);
        let (skip, top) = (number("$skip", 0), number("$top", 10));
        if !(1..=1_000).contains(&top) {
            return ask.refuse(400);
        }
        let top = ask.manner.map_or(top, |manner| manner.page_rows(top));
        let n_found = found.len();
        let rows: Vec<Value> = found.into_iter().skip(skip).take(top).map(fields).collect();
        let next =
            if ask.manner == Some(&Manner::RepeatToken) { skip } else { skip + rows.len().max(usize::from(top == 0)) };
        let mut answer = json!({"@odata.context": format!("{}/$metadata#messages", ask.base), "value": rows});
        if ask.manner == Some(&Manner::RepeatToken) || skip + top < n_found {
            answer["@odata.nextLink"] = json!(ask.link(&with_skip(&ask.query, next)));
        }
        (200, answer).into()
    }

    fn one(&self, ask: &Ask<'_>, id: &str, rest: &[&str]) -> Said {
        let Some((id, message)) = self.message(id) else { return ask.refuse(404) };
        if let Some(times) = self.switches.hidden.borrow_mut().get_mut(id).filter(|times| **times > 0) {
            *times -= 1;
            return ask.refuse(404);
        }
        let file = |file: &str| message.files.iter().find(|known| known.id == file);
        match rest {
            [] => {
                let fields = self.message_fields(id, message, ask.is_immutable());
                (200, Value::Object(selected(fields, ask.value("$select")))).into()
            }
            ["$value"] => Said { status: 200, body: Body::Bytes("text/plain".to_owned(), mime(message)) },
            ["attachments"] => {
                let select = ask.value("$select");
                let is_odd = select.is_some_and(|select| select.split(',').any(|name| name == "contentId"));
                if is_odd {
                    return ask
                        .invalid("Could not find a property named 'contentId' on type 'microsoft.graph.attachment'.");
                }
                let rows = message.files.iter().map(|file| Value::Object(selected(file.shown(), select))).collect();
                listed(ask, rows)
            }
            ["attachments", name] => match file(name) {
                Some(file) => (200, Value::Object(selected(file.shown(), ask.value("$select")))).into(),
                None => ask.refuse(404),
            },
            ["attachments", name, "$value"] => match file(name) {
                Some(file) if file.kind() == "referenceAttachment" => ask.refuse(405),
                Some(file) => {
                    let kind = file.fields.get("contentType").and_then(Value::as_str);
                    let kind = kind.unwrap_or("text/plain").to_owned();
                    Said { status: 200, body: Body::Bytes(kind, file.bytes.clone()) }
                }
                None => ask.refuse(404),
            },
            _ => ask.refuse(400),
        }
    }
}

impl File {
    fn kind(&self) -> &str {
        let kind = self.fields.get("@odata.type").and_then(Value::as_str).unwrap_or_default();
        kind.rsplit('.').next().unwrap_or_default()
    }

    /// As a list shows it: with its bytes, unless others are selected.
    fn shown(&self) -> Map<String, Value> {
        let mut fields = self.fields.clone();
        fields.insert("id".to_owned(), json!(self.id));
        if self.kind() == "fileAttachment" {
            fields.insert("contentBytes".to_owned(), json!(STANDARD.encode(&self.bytes)));
        }
        fields
    }
}

fn me(ask: &Ask<'_>) -> Said {
    let email = OUTLOOK.email(&ask.caller.account);
    // Accounts without a mailbox address of their own have only the name that they sign in with.
    let mail = if ask.caller.account == "personal" { Value::Null } else { json!(email) };
    let fields = json!({"id": format!("{:032x}", crate::provider::hash(&ask.caller.account)), "mail": mail,
        "userPrincipalName": email, "displayName": "Harrow Ridge Equipment"});
    (200, Value::Object(selected(fields.as_object().cloned().unwrap_or_default(), ask.value("$select")))).into()
}

/// A list in pages of `$top`, ten unless asked for more.
fn listed(ask: &Ask<'_>, rows: Vec<Value>) -> Said {
    let number = |name: &str, default: usize| ask.value(name).map_or(Ok(default), str::parse).unwrap_or(default);
    let (skip, top) = (number("$skip", 0), number("$top", 10));
    let n_rows = rows.len();
    let page: Vec<Value> = rows.into_iter().skip(skip).take(top).collect();
    let mut answer = json!({"value": page});
    if skip + top < n_rows {
        answer["@odata.nextLink"] = json!(ask.link(&with_skip(&ask.query, skip + top)));
    }
    (200, answer).into()
}

fn with_skip(query: &[(String, String)], skip: usize) -> String {
    let kept = query.iter().filter(|(name, _)| name != "$skip");
    let mut pairs: Vec<String> = kept.map(|(name, value)| format!("{name}={}", value.replace(' ', "%20"))).collect();
    pairs.push(format!("$skip={skip}"));
    pairs.join("&")
}

type Bound = Option<DateTime<Utc>>;

/// The bounds of `receivedDateTime ge X and receivedDateTime lt Y`. None: it says something else.
fn bounds(filter: Option<&str>) -> Option<(Bound, Bound)> {
    let (mut from, mut before) = (None, None);
    for condition in filter.into_iter().flat_map(|filter| filter.split(" and ")) {
        let mut words = condition.split_whitespace();
        if words.next() != Some("receivedDateTime") {
            return None;
        }
        let (sign, at) = (words.next()?, crate::clock::parse_iso(words.next()?)?);
        match sign {
            "ge" => from = Some(at),
            "lt" => before = Some(at),
            _ => return None,
        }
    }
    Some((from, before))
}

/// The message as MIME, made anew each time.
fn mime(message: &Message) -> Vec<u8> {
    let text = |pointer: &str| {
        let fields = Value::Object(message.fields.clone());
        fields.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    format!(
        "From: {}\r\nSubject: {}\r\nDate: {}\r\nMessage-ID: {}\r\nContent-Type: text/{}; charset=utf-8\r\n\r\n{}\r\n",
        text("/from/emailAddress/address"),
        text("/subject"),
        message.received_at.to_rfc2822(),
        text("/internetMessageId"),
        if text("/body/contentType") == "html" { "html" } else { "plain" },
        text("/body/content")
    )
    .into_bytes()
}
