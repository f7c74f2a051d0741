//! Connectors against a server on this machine that says what a test tells it to, byte by byte.

mod asking;
mod granting;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Secret;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::settings::SettingKind;
use super::*;
use crate::Http;

/// The time that the server states in its answers.
pub(super) const DATE: &str = "Sun, 15 Nov 2026 12:00:00 GMT";

/// Settings that lead to a server, for an API and for tokens.
pub(super) fn settings(provider: Provider, url: &str) -> Settings {
    let mut settings = Settings::default();
    for setting in provider.settings {
        match setting.env.rsplit_once('_') {
            Some((start, "URL")) if start.ends_with("_API") => settings.set(setting.env, url),
            Some((start, "URL")) if start.ends_with("_TOKEN") => settings.set(setting.env, format!("{url}/token")),
            Some((start, "ID")) if start.ends_with("_CLIENT") => settings.set(setting.env, "client-7"),
            Some((start, "SECRET")) if start.ends_with("_CLIENT") => settings.set(setting.env, "canary-secret"),
            _ if setting.kind == SettingKind::Count => settings.set(setting.env, "3"),
            _ => {}
        }
    }
    settings
}

/// A request that the server received.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// Such as `GET /files?pageSize=100`, decoded.
    pub line: String,
    pub head: String,
    pub body: String,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    pub fn has(&self, text: &str) -> bool {
        self.line.contains(text)
    }
}

/// An answer, and whether the server then falls silent instead of closing the connection.
pub(super) struct Reply {
    pub bytes: Vec<u8>,
    pub is_silent: bool,
}

pub(super) fn raw_reply(status: &str, headers: &str, body: &[u8]) -> Reply {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    Reply { bytes: [head.as_bytes(), body].concat(), is_silent: false }
}

pub(super) fn ok(body: Value) -> Reply {
    status("200 OK", body)
}

pub(super) fn status(status: &str, body: Value) -> Reply {
    let headers = format!("Content-Type: application/json\r\nDate: {DATE}\r\n");
    raw_reply(status, &headers, body.to_string().as_bytes())
}

pub(super) struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (log, answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), log.clone()));
            }
        });
        Self { url, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("the log").clone()
    }

    pub fn connector(&self, provider: Provider) -> Arc<dyn Connector> {
        (provider.rest)(&Http::new().expect("a client"), &settings(provider, &self.url))
    }
}

async fn serve<F: Fn(&Asked) -> Reply>(mut stream: TcpStream, answer: Arc<F>, log: Arc<Mutex<Vec<Asked>>>) {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    while bytes.len() < head_end + length.unwrap_or(0_usize) {
        if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let target = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1");
    let asked = Asked { line: decoded(target), body: String::from_utf8_lossy(&bytes[head_end..]).into_owned(), head };
    let reply = answer(&asked);
    log.lock().expect("the log").push(asked);
    let _ = stream.write_all(&reply.bytes).await;
    if reply.is_silent {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let _ = stream.shutdown().await;
}

fn decoded(target: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = target.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        (bytes, rest) = match (first, code) {
            (b'%', Some(code)) => ([bytes, vec![code]].concat(), &tail[2..]),
            (b'+', _) => ([bytes, vec![b' ']].concat(), tail),
            (other, _) => ([bytes, vec![*other]].concat(), tail),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A limiter that never waits, and counts the calls and their units.
#[derive(Default)]
pub(super) struct Counted(pub Mutex<Vec<&'static str>>, pub Mutex<u32>);

impl Counted {
    /// The units of all calls.
    pub fn units(&self) -> u32 {
        *self.1.lock().expect("the units")
    }
}

impl Pace for Counted {
    fn turn<'a>(&'a self, limit: &'static Limit, units: u32) -> BoxFuture<'a, Result<(), PullError>> {
        self.0.lock().expect("the count").push(limit.name);
        *self.1.lock().expect("the units") += units;
        Box::pin(async { Ok(()) })
    }
}

/// The account of a test.
pub(super) struct Person {
    pub token: Secret,
    pub pace: Counted,
}

impl Person {
    pub fn new() -> Self {
        Self { token: Secret::new("canary-token-7f3a"), pace: Counted::default() }
    }

    pub fn account(&self) -> Account<'_> {
        let places = &[Place::Inbox, Place::Sent, Place::Other];
        Account { token: &self.token, account: "123", pace: &self.pace, places }
    }
}

pub(super) fn ids(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.raw.external_id.as_str()).collect()
}

/// Every page of a full pass.
pub(super) async fn all(connector: &dyn Connector, person: &Person, is_first: bool) -> Result<Vec<Page>, PullError> {
    let account = person.account();
    let mut pages: Vec<Page> = Vec::new();
    loop {
        let place = pages.last().map(|page| page.next.clone());
        pages.push(connector.full(&account, place.as_ref(), is_first).await?);
        assert!(pages.len() < 50, "a pass without an end");
        if pages.last().is_some_and(|page| !page.more) {
            return Ok(pages);
        }
    }
}

/// Every page of a delta.
pub(super) async fn since(connector: &dyn Connector, person: &Person, cursor: &Value) -> Result<Vec<Page>, PullError> {
    let account = person.account();
    let mut pages: Vec<Page> = Vec::new();
    loop {
        let place = pages.last().map(|page| page.next.clone());
        pages.push(connector.delta(&account, cursor, place.as_ref()).await?);
        assert!(pages.len() < 50, "a delta without an end");
        if pages.last().is_some_and(|page| !page.more) {
            return Ok(pages);
        }
    }
}

pub(super) fn all_ids(pages: &[Page]) -> Vec<&str> {
    pages.iter().flat_map(|page| ids(&page.items)).collect()
}

/// A short form of an error: its kind and its words.
pub(super) fn short(error: &PullError) -> String {
    let kind = match error {
        PullError::RateLimited { .. } => "wait",
        PullError::Unauthorized { .. } => "token",
        PullError::Forbidden { .. } => "refused",
        PullError::Passing(_) => "passing",
        PullError::Ours(_) => "ours",
        PullError::Unreadable { .. } => "unreadable",
        PullError::CursorLost(_) => "lost",
    };
    format!("{kind}: {error}")
}

#[test]
fn only_what_has_an_id_can_be_asked_for() {
    for named in ["contact:51", "file:1AbC_d-9", "invoice:7"] {
        assert!(is_named(named), "{named}");
    }
    for nameless in ["contact:?1a2b3c4d", "contact:", "answer", "", "?:"] {
        assert!(!is_named(nameless), "{nameless}");
    }
}
