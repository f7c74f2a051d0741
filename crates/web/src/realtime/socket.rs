//! `GET /realtime/v1/websocket`: one client's socket with its topics. The cost of a client is bounded: frames, topics, subscriptions, and
//! sockets per key and per tenant. A client that does not read is cut off. A client that falls behind is disconnected and reconnects.

use std::collections::HashMap;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use domain::{Op, Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::rest::Table;
use tokio::sync::watch;
use tokio::time::Instant;

use super::feed::{Event, Seat};
use super::filter::Filter;
use super::frames::{Change, Message, Version};
use crate::api::auth::{Caller, Credential, authenticate_anew};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::api::rest::{self, RestError};
use crate::app::App;
use crate::ring::Since;
use crate::server::{CallerAddress, ConnectionPermit};

const FRAME_BYTES: usize = 64 * 1024;
/// The buffer sizes of a socket for reading and writing.
const BUFFER_BYTES: usize = 8 * 1024;
const MOST_TOPICS: usize = 64;
const TOPIC_BYTES: usize = 255;
const MOST_BINDINGS: usize = 32;
/// Compiled patterns take memory, so a socket has few.
const MOST_PATTERNS: usize = 8;
/// Clients send a heartbeat every 25 s or 30 s.
const SILENT_FOR: Duration = Duration::from_secs(60);
/// The interval at which a socket checks that its key is still valid. A client may also take this long to accept a frame, because the check waits
/// meanwhile.
const CHECK: Duration = Duration::from_secs(4);
const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
pub(crate) struct Asked {
    /// The key. Browsers cannot send headers with a WebSocket. Our own logs contain routes, never queries.
    apikey: Option<Secret>,
    vsn: Option<String>,
}

/// Opens a socket for an agent's key.
pub(crate) async fn open(
    State(app): State<App>,
    Extension(place): Extension<ConnectionPermit>,
    Extension(address): Extension<CallerAddress>,
    headers: HeaderMap,
    query: Result<Query<Asked>, ApiError>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, RestError> {
    let unread = |_| RestError::bad("PGRST100", "the query cannot be read");
    let Query(Asked { apikey, vsn }) = query.map_err(unread)?;
    let shown = apikey.map(Credential::Key).or_else(|| Credential::of(&headers));
    let caller = rest::agent_with(&app, shown, address).await?;
    let unknown = || RestError::bad("PGRST100", "vsn is 1.0.0 or 2.0.0");
    let version = Version::find(vsn.as_deref()).ok_or_else(unknown)?;
    let no_socket = |_| RestError::new(StatusCode::UPGRADE_REQUIRED, "PGRST100", "this address is for WebSockets");
    let upgrade = upgrade.map_err(no_socket)?;
    let enough = || RestError::too_many("this key, or its tenant, has enough sockets", 5);
    let seat = Seat::take(&app.feed, &caller).ok_or_else(enough)?;
    let upgrade = upgrade
        .max_frame_size(FRAME_BYTES)
        .max_message_size(FRAME_BYTES)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        Session::new(app, caller, address, version, socket).run().await;
        drop((seat, place));
    }))
}

/// The reason why a socket ends.
enum End {
    /// The client is gone.
    Left,
    Close(u16, &'static str),
}

const GOING_AWAY: End = End::Close(1001, "the server stops");
const MALFORMED: End = End::Close(1002, "a frame is malformed, or larger than 64 KiB");
const NO_MESSAGE: End = End::Close(1003, "a frame is no message of Phoenix's");
const SILENT: End = End::Close(1008, "no heartbeat for a minute");
const UNWELCOME: End = End::Close(1008, "the key is not accepted");
/// Clients reconnect and poll for missed rows.
const BEHIND: End = End::Close(1013, "fell behind");

struct Session {
    app: App,
    caller: Caller,
    address: CallerAddress,
    version: Version,
    socket: WebSocket,
    topics: HashMap<String, Vec<Binding>>,
    last_binding: u32,
    latest: watch::Receiver<u64>,
    seen: u64,
    heard: Instant,
    next_check: Instant,
}

/// One subscription of a topic.
struct Binding {
    id: u32,
    /// `None` means any.
    op: Option<Op>,
    filter: Filter,
}

#[derive(Deserialize)]
struct Join {
    #[serde(default)]
    config: JoinConfig,
}

#[derive(Default, Deserialize)]
struct JoinConfig {
    /// Null if a client does not listen for database changes.
    postgres_changes: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Wanted {
    event: String,
    schema: Option<String>,
    table: Option<String>,
    filter: Option<String>,
}

impl Session {
    fn new(app: App, caller: Caller, address: CallerAddress, version: Version, socket: WebSocket) -> Self {
        let mut latest = app.feed.ring.latest();
        let (seen, now) = (*latest.borrow_and_update(), Instant::now());
        let (topics, last_binding) = (HashMap::new(), 0);
        let next_check = now + CHECK;
        Self { app, caller, address, version, socket, topics, last_binding, latest, seen, heard: now, next_check }
    }

    async fn run(mut self) {
        let stop = self.app.stop.clone();
        let end = loop {
            let done = tokio::select! {
                frame = self.socket.recv() => match frame {
                    Some(Ok(frame)) => self.hear(frame).await,
                    Some(Err(_)) => Err(MALFORMED), // or the connection broke, and the client does not get this
                    None => Err(End::Left),
                },
                changed = self.latest.changed() => match changed {
                    Ok(()) => self.tell().await,
                    Err(_) => Err(GOING_AWAY),
                },
                () = tokio::time::sleep_until(self.next_check) => self.check().await,
                () = stop.stopped() => Err(GOING_AWAY),
            };
            if let Err(end) = done {
                break end;
            }
        };
        let End::Close(code, reason) = end else { return };
        tracing::debug!(key.id = %self.caller.key_id, code, "a realtime socket was closed: {reason}");
        let frame = Frame::Close(Some(CloseFrame { code, reason: reason.into() }));
        let goodbye = async {
            if self.socket.send(frame).await.is_ok() {
                while let Some(Ok(_)) = self.socket.recv().await {} // until the client closes too
            }
        };
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }

    async fn check(&mut self) -> Result<(), End> {
        self.next_check = Instant::now() + CHECK;
        if self.heard.elapsed() > SILENT_FOR {
            return Err(SILENT);
        }
        // If the database is away, keys stay valid.
        match authenticate_anew(&self.app, &self.caller.credential).await {
            Ok(false) => Err(UNWELCOME),
            Ok(true) | Err(_) => Ok(()),
        }
    }

    async fn hear(&mut self, frame: Frame) -> Result<(), End> {
        self.heard = Instant::now();
        let text = match frame {
            Frame::Text(text) => text,
            Frame::Close(_) => return Err(End::Left),
            // Broadcasts between clients are not supported, and pings are answered by the WebSocket library.
            Frame::Binary(_) | Frame::Ping(_) | Frame::Pong(_) => return Ok(()),
        };
        let message = self.version.read(&text).ok_or(NO_MESSAGE)?;
        let answered = match message.event.as_str() {
            "phx_join" => match self.join(&message).await {
                Ok(response) => {
                    let is_of_rows = !self.topics[&message.topic].is_empty();
                    self.reply(&message, "ok", response).await?;
                    return if is_of_rows { self.say_subscribed(message.topic).await } else { Ok(()) };
                }
                Err(reason) => self.reply(&message, "error", json!({ "reason": reason })),
            },
            "access_token" => {
                if let Some(token) = message.payload["access_token"].as_str() {
                    self.show(token).await.map_err(|_| UNWELCOME)?;
                }
                self.reply(&message, "ok", json!({}))
            }
            "phx_leave" => {
                self.topics.remove(&message.topic);
                self.reply(&message, "ok", json!({}))
            }
            _ => self.reply(&message, "ok", json!({})),
        };
        answered.await
    }

    /// Returns the requested bindings, each with its id, or the reason for a refusal.
    async fn join(&mut self, message: &Message<Value>) -> Result<Value, String> {
        if let Some(token) = message.payload["access_token"].as_str() {
            self.show(token).await.map_err(|error| error.to_string())?;
        }
        let join: Join = Deserialize::deserialize(&message.payload).map_err(|_| "the join's config cannot be read")?;
        let mut wanted = join.config.postgres_changes.unwrap_or_default();
        if wanted.len() > MOST_BINDINGS {
            return Err(format!("a topic has at most {MOST_BINDINGS} subscriptions"));
        }
        if message.topic.len() > TOPIC_BYTES {
            return Err(format!("a topic's name has at most {TOPIC_BYTES} bytes"));
        }
        self.topics.remove(&message.topic); // joined again, after the client lost it
        if self.topics.len() >= MOST_TOPICS {
            return Err(format!("a socket has at most {MOST_TOPICS} topics"));
        }
        let mut bindings = Vec::new();
        for wanted in &mut wanted {
            self.last_binding += 1; // from 1, because clients treat 0 as none
            bindings.push(Binding::new(self.last_binding, wanted)?);
            if let Value::Object(echoed) = wanted {
                echoed.insert("id".into(), self.last_binding.into());
            }
        }
        let patterns = self.topics.values().flatten().chain(&bindings).map(|binding| binding.filter.patterns());
        if patterns.sum::<usize>() > MOST_PATTERNS {
            return Err(format!("a socket has at most {MOST_PATTERNS} patterns"));
        }
        self.topics.insert(message.topic.clone(), bindings);
        Ok(json!({ "postgres_changes": wanted }))
    }

    /// A later key replaces the first. It must belong to the same tenant.
    async fn show(&mut self, token: &str) -> Result<(), RestError> {
        let shown = Credential::Key(Secret::new(token.trim()));
        let caller = rest::agent_with(&self.app, Some(shown), self.address).await?;
        if caller.tenant_id != self.caller.tenant_id {
            return Err(ApiError::UnknownKey.into());
        }
        self.caller = caller;
        Ok(())
    }

    /// Sends what is new in the feed.
    async fn tell(&mut self) -> Result<(), End> {
        let Since::New(events) = self.app.feed.ring.since(self.seen) else { return Err(BEHIND) };
        for (number, event) in events {
            self.seen = number;
            if !event.is_for(&self.caller, self.app.env.clock.now()) {
                continue;
            }
            let told: Vec<(String, Vec<u32>)> = self
                .topics
                .iter()
                .map(|(topic, bindings)| (topic.clone(), wanting(bindings, &event)))
                .filter(|(_, ids)| !ids.is_empty())
                .collect();
            for (topic, ids) in told {
                self.say(topic, "postgres_changes", Change { ids: &ids, data: &event.data }).await?;
            }
            if Instant::now() >= self.next_check {
                break; // so a slow reader keeps nothing that the ring has dropped, and its key is checked in time
            }
        }
        if self.seen < *self.latest.borrow() {
            self.latest.mark_changed(); // one batch at a time, so that incoming messages are read in between
        }
        Ok(())
    }

    async fn say_subscribed(&mut self, topic: String) -> Result<(), End> {
        let channel = topic.strip_prefix("realtime:").unwrap_or(&topic).to_owned();
        let status = json!({ "extension": "postgres_changes", "status": "ok", "message": "Subscribed to PostgreSQL", "channel": channel });
        self.say(topic, "system", status).await
    }

    async fn say(&mut self, topic: String, event: &str, payload: impl Serialize) -> Result<(), End> {
        let (join_ref, r#ref) = (Value::Null, Value::Null);
        self.send(&Message { join_ref, r#ref, topic, event: event.to_owned(), payload }).await
    }

    /// Replies to a message. A message without a ref needs no reply.
    async fn reply(&mut self, to: &Message<Value>, status: &str, response: Value) -> Result<(), End> {
        if to.r#ref.is_null() {
            return Ok(());
        }
        let Message { join_ref, r#ref, topic, .. } = to;
        let payload = json!({ "status": status, "response": response });
        let (join_ref, r#ref, topic, event) = (join_ref.clone(), r#ref.clone(), topic.clone(), "phx_reply".to_owned());
        self.send(&Message { join_ref, r#ref, topic, event, payload }).await
    }

    async fn send(&mut self, message: &Message<impl Serialize>) -> Result<(), End> {
        let frame = Frame::text(self.version.write(message));
        match tokio::time::timeout(CHECK, self.socket.send(frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Left), // gone, or it does not read
        }
    }
}

impl Binding {
    fn new(id: u32, wanted: &Value) -> Result<Self, String> {
        let wanted: Wanted = Deserialize::deserialize(wanted).map_err(|_| "a subscription cannot be read")?;
        let is_any = |name: &Option<String>, only: &str| name.as_deref().is_none_or(|name| name == only || name == "*");
        if !is_any(&wanted.schema, "public") || !is_any(&wanted.table, "activities") {
            return Err("changes are told of the table public.activities alone".into());
        }
        let op = match wanted.event.as_str() {
            "*" => None,
            "INSERT" => Some(Op::Insert),
            "UPDATE" => Some(Op::Update),
            "DELETE" => Some(Op::Delete),
            other => return Err(format!("{other:?} is none of INSERT, UPDATE, DELETE and *")),
        };
        let table = Table::find("activities").ok_or("there are no activities")?;
        let filter = Filter::new(table, wanted.filter.as_deref().unwrap_or_default())?;
        Ok(Self { id, op, filter })
    }
}

/// Returns the subscriptions that want a change. Only the id of a deleted row is known, so filters do not apply to it.
fn wanting(bindings: &[Binding], event: &Event) -> Vec<u32> {
    let is_wanted = |binding: &&Binding| {
        binding.op.is_none_or(|op| op == event.op) && (event.op == Op::Delete || binding.filter.holds(&event.row))
    };
    bindings.iter().filter(is_wanted).map(|binding| binding.id).collect()
}
