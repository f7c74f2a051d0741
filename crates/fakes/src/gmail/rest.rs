//! Gmail's REST API. Single requests and the parts of a batch come to the same place.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::fake::{GMAIL, refused};
use super::list::Asked;
use super::{Mailbox, Mailboxes, Message, Watch, batch, compose, pubsub, signer};
use crate::manners::Manner;
use crate::oauth::grants::Caller;
use crate::request::pairs;
use crate::shapes::answer;
use crate::{Shared, lock};

/// A status and a body. An answer of 204 has none.
pub(super) type Said = (u16, Value);

const WATCH_LIFE: TimeDelta = TimeDelta::days(7);

pub(super) fn routes(_: &Arc<Shared>) -> Router<Arc<Shared>> {
    Router::new()
        .route("/gmail/v1/users/{user}/{*rest}", get(one).post(one))
        .route("/batch/gmail/v1", post(batch::answer))
        .route("/oauth2/v3/certs", get(signer::certs))
}

async fn one(
    State(shared): State<Arc<Shared>>,
    caller: Option<Extension<Caller>>,
    manner: Option<Extension<Manner>>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let caller = caller.map(|Extension(caller)| caller);
    let manner = manner.map(|Extension(manner)| manner);
    let (status, said) = say(&shared, caller.as_ref(), manner.as_ref(), &method, &uri, &body);
    response(status, said)
}

pub(super) fn response(status: u16, said: Value) -> Response {
    match (status, said.pointer("/error/errors/0/reason").and_then(Value::as_str)) {
        (204, _) => axum::http::StatusCode::NO_CONTENT.into_response(),
        (401, Some(reason)) => super::fake::unauthorised(reason),
        _ => answer(status, said),
    }
}

/// Answers one request for the mailbox of its caller.
pub(super) fn say(
    shared: &Shared,
    caller: Option<&Caller>,
    manner: Option<&Manner>,
    method: &Method,
    uri: &Uri,
    body: &[u8],
) -> Said {
    let Some(caller) = caller.filter(|caller| caller.provider == GMAIL && caller.is_valid) else {
        return refused(401, "authError", "Invalid Credentials");
    };
    let path: Vec<&str> = uri.path().trim_start_matches("/gmail/v1/users/").split('/').collect();
    let now = shared.clock.now();
    let pairs = pairs(uri);
    let asked = Asked { pairs: &pairs, manner };
    let mut boxes = lock(shared.records::<Mailboxes>());
    let most = boxes.units_a_minute;
    let address = GMAIL.email(&caller.account);
    let is_own = path.first().is_some_and(|user| *user == "me" || *user == address);
    let mailbox = boxes.of(&caller.account);
    let cost = match (method, &path[1..]) {
        (&Method::GET, ["profile" | "labels"]) => 1,
        (&Method::GET, ["history"]) => 2,
        (&Method::GET, ["messages"]) => 5,
        (&Method::GET, ["threads"]) => 10,
        (&Method::GET, ["messages", _]) => 20,
        (&Method::GET, ["threads", _]) => 40,
        (&Method::POST, ["watch"]) => 100,
        (&Method::POST, ["stop"]) => 50,
        _ => return not_found(),
    };
    if !is_own {
        return refused(403, "forbidden", "Delegation denied");
    }
    if !mailbox.spend(cost, most, now) {
        let message = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user'";
        return refused(403, "rateLimitExceeded", message);
    }
    match (method, &path[1..]) {
        (_, ["profile"]) => (200, mailbox.profile(&address)),
        (_, ["labels"]) => (200, mailbox.shown_labels()),
        (_, ["history"]) => mailbox.list_changes(&asked),
        (_, ["messages"]) => mailbox.list_messages(&asked),
        (_, ["threads"]) => mailbox.list_threads(&asked),
        (_, ["messages", id]) => mailbox.message(id, asked.get("format").unwrap_or("full")),
        (_, ["threads", id]) => mailbox.thread(id, asked.get("format").unwrap_or("full")),
        (_, ["watch"]) => {
            let watched = watch(&mut boxes, &caller.account, body, now);
            if watched.0 == 200 {
                pubsub::tell(&mut boxes, &caller.account, &address, now);
            }
            watched
        }
        _ => {
            mailbox.watch = None;
            (204, Value::Null)
        }
    }
}

/// Promises to tell a topic for seven days.
fn watch(boxes: &mut Mailboxes, account: &str, body: &[u8], now: DateTime<Utc>) -> Said {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let topic = body["topicName"].as_str().unwrap_or_default().to_owned();
    let parts: Vec<&str> = topic.split('/').collect();
    if !matches!(parts[..], ["projects", project, "topics", name] if !project.is_empty() && !name.is_empty()) {
        return bad("Invalid topicName does not match projects/*/topics/*");
    }
    if boxes.topic.is_closed() {
        let message = "Error sending test message to Cloud PubSub: User not authorized to perform this action.";
        return refused(403, "forbidden", message);
    }
    let mailbox = boxes.of(account);
    let is_anothers = mailbox.watch.as_ref().is_some_and(|watch| watch.until > now && watch.topic != topic);
    if is_anothers {
        return bad("Only one user push notification client allowed per developer (call /stop then try again)");
    }
    let until = now + WATCH_LIFE;
    mailbox.watch = Some(Watch { topic, until });
    let expiration = until.timestamp_millis().to_string();
    (200, json!({"historyId": mailbox.history_id.to_string(), "expiration": expiration}))
}

impl Mailbox {
    fn profile(&self, address: &str) -> Value {
        let mut threads: Vec<&String> = self.messages.values().map(|message| &message.thread_id).collect();
        threads.sort_unstable();
        threads.dedup();
        json!({"emailAddress": address, "messagesTotal": self.messages.len(), "threadsTotal": threads.len(),
            "historyId": self.history_id.to_string()})
    }

    fn shown_labels(&self) -> Value {
        let system = super::SYSTEM.iter().map(|id| json!({"id": id, "name": id, "type": "system"}));
        let own = self.labels.iter().map(|(id, name)| json!({"id": id, "name": name, "type": "user"}));
        json!({"labels": system.chain(own).collect::<Vec<_>>()})
    }

    fn message(&mut self, id: &str, format: &str) -> Said {
        if let Some(times) = self.hidden.get_mut(id).filter(|times| **times > 0) {
            *times -= 1;
            return not_found();
        }
        match (self.messages.get(id), format) {
            (None, _) => not_found(),
            (Some(message), "raw" | "full" | "metadata" | "minimal") => (200, message.shown(id, format)),
            _ => bad("Invalid format"),
        }
    }

    fn thread(&self, id: &str, format: &str) -> Said {
        let mut messages: Vec<(&String, &Message)> =
            self.messages.iter().filter(|(_, message)| message.thread_id == id).collect();
        messages.sort_by_key(|(_, message)| message.received_at);
        let Some(history_id) = messages.iter().map(|(_, message)| message.history_id).max() else { return not_found() };
        if format == "raw" {
            return bad("Invalid format");
        }
        let messages: Vec<Value> = messages.iter().map(|(id, message)| message.shown(id, format)).collect();
        (200, json!({"id": id, "historyId": history_id.to_string(), "messages": messages}))
    }
}

impl Message {
    /// The message in a format. `full` has its head and no parts.
    fn shown(&self, id: &str, format: &str) -> Value {
        let mut shown = json!({"id": id, "threadId": self.thread_id, "snippet": self.snippet,
            "historyId": self.history_id.to_string(), "sizeEstimate": self.raw.len(),
            "internalDate": self.received_at.timestamp_millis().to_string()});
        if !self.labels.is_empty() {
            shown["labelIds"] = json!(self.labels);
        }
        match format {
            "raw" => shown["raw"] = json!(URL_SAFE.encode(&self.raw)),
            "minimal" => {}
            _ => {
                let header = |name: &&str| Some(json!({"name": name, "value": compose::header(&self.raw, name)?}));
                let names = ["From", "To", "Cc", "Subject", "Date", "Message-ID"];
                let headers: Vec<Value> = names.iter().filter_map(header).collect();
                shown["payload"] = json!({"partId": "", "mimeType": "multipart/mixed", "headers": headers});
            }
        }
        shown
    }
}

pub(super) fn not_found() -> Said {
    refused(404, "notFound", "Requested entity was not found.")
}

pub(super) fn bad(message: &str) -> Said {
    refused(400, "invalidArgument", message)
}

/// The part of a head that a batch reads.
pub(super) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(axum::http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
