//! Brings lines of JSON-RPC from stdin to the server, and its answers to stdout. It keeps nothing but the version that was agreed on, so a server that
//! starts again is found again.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use connectors::relay::Relay;
use domain::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Stdout, stdin, stdout};
use tokio::task::{AbortHandle, JoinSet};

/// A longer line is no message.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// The member of a request's `_meta` that names the version, from 2026-07-28 on.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const FAILED: i64 = -32_000;
const PARSE_ERROR: i64 = -32_700;

/// Cloning shares it.
#[derive(Clone)]
struct Desk {
    relay: Relay,
    url: Arc<str>,
    out: Arc<tokio::sync::Mutex<Stdout>>,
    /// The version that `initialize` agreed on.
    agreed: Arc<Mutex<Option<String>>>,
    /// Requests that wait for their answer, by id.
    waiting: Arc<Mutex<HashMap<String, AbortHandle>>>,
}

pub async fn run(url: &str, key: Secret) -> anyhow::Result<ExitCode> {
    let desk = Desk {
        relay: Relay::new(url, key)?,
        url: url.into(),
        out: Arc::new(tokio::sync::Mutex::new(stdout())),
        agreed: Arc::default(),
        waiting: Arc::default(),
    };
    let (mut lines, mut line, mut tasks) = (BufReader::new(stdin()), Vec::new(), JoinSet::new());
    loop {
        line.clear();
        let read = (&mut lines).take(MOST_BYTES).read_until(b'\n', &mut line).await?;
        if read == 0 {
            break;
        }
        while tasks.try_join_next().is_some() {}
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice(&line) {
            // Of the revision that had batches; the server has none.
            Ok(Value::Array(messages)) => messages.into_iter().for_each(|message| desk.take(&mut tasks, message)),
            Ok(message) => desk.take(&mut tasks, message),
            Err(_) => desk.answer(&failure(Value::Null, PARSE_ERROR, "the line is no JSON")).await,
        }
    }
    while tasks.join_next().await.is_some() {}
    Ok(ExitCode::SUCCESS)
}

impl Desk {
    fn take(&self, tasks: &mut JoinSet<()>, message: Value) {
        if message["method"] == "notifications/cancelled" {
            let id = message["params"]["requestId"].to_string();
            // The server hears of it by the closed connection.
            self.waiting().remove(&id).inspect(AbortHandle::abort);
            return;
        }
        let id = message.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        let (desk, of) = (self.clone(), id.clone());
        let task = tasks.spawn(async move {
            desk.bring(message).await;
            of.inspect(|id| drop(desk.waiting().remove(id)));
        });
        if let Some(id) = id {
            self.waiting().insert(id, task);
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a message to the server, and the answer back. A request is always answered.
    async fn bring(&self, message: Value) {
        let agreed = self.agreed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let id = message.get("id").cloned();
        let is_initialize = message["method"] == "initialize";
        let reply = self.relay.send(&headers(&message, agreed.as_deref()), message.to_string()).await;
        let answer = match (reply, id) {
            (Err(why), Some(id)) => {
                let what = format!("the server at {} does not answer: {why}. Start it with `tributary up`.", self.url);
                Some(failure(id, FAILED, &what))
            }
            (Ok(reply), Some(id)) => {
                let answers: Vec<Value> =
                    reply.messages.iter().filter_map(|message| serde_json::from_str(message).ok()).collect();
                let is_rpc = !answers.is_empty() && answers.iter().all(|answer| answer.get("jsonrpc").is_some());
                if is_rpc {
                    for answer in &answers {
                        if is_initialize && let Some(version) = answer["result"]["protocolVersion"].as_str() {
                            *self.agreed.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.to_owned());
                        }
                        self.answer(answer).await;
                    }
                    None
                } else {
                    Some(failure(id, FAILED, &in_words(reply.status, answers.first())))
                }
            }
            (Err(why), None) => {
                eprintln!("tributary: a notification was lost: {why}");
                None
            }
            (Ok(_), None) => None,
        };
        if let Some(answer) = answer {
            self.answer(&answer).await;
        }
    }

    async fn answer(&self, answer: &Value) {
        let mut out = self.out.lock().await;
        // Nobody is there any more if it fails.
        let _ = out.write_all(format!("{answer}\n").as_bytes()).await;
        let _ = out.flush().await;
    }
}

/// The headers that say what is in the body.
fn headers(message: &Value, agreed: Option<&str>) -> Vec<(&'static str, String)> {
    let stated = message["params"]["_meta"][VERSION].as_str();
    let method = message["method"].as_str().unwrap_or_default();
    let version = match (stated, method) {
        (Some(version), _) => Some(version),
        (None, "initialize") => None,
        (None, _) => agreed,
    };
    let mut headers: Vec<_> = version.map(|version| ("mcp-protocol-version", plain(version))).into_iter().collect();
    if stated.is_some() {
        headers.push(("mcp-method", plain(method)));
        let params = &message["params"];
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name", plain(name))));
    }
    headers
}

/// A text as a header takes it.
fn plain(text: &str) -> String {
    let is_plain =
        text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && text.trim() == text && !text.starts_with("=?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// The reason why the server gave no answer of the protocol.
fn in_words(status: u16, problem: Option<&Value>) -> String {
    let said = |name: &str| problem.and_then(|problem| problem[name].as_str()).unwrap_or_default().to_owned();
    match status {
        401 => {
            "the server does not know this key: make one there with `tributary key create`, and set TRIBUTARY_KEY to it"
                .into()
        }
        429 => format!("too many requests: {}", said("detail")),
        _ => format!("the server refused it ({status}): {} {}", said("title"), said("detail")).trim().to_owned(),
    }
}

fn failure(id: Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_what_the_body_says() {
        let of = |message: Value, agreed| {
            headers(&message, agreed).into_iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
        };
        let call = |meta: Value| json!({ "method": "tools/call", "params": { "name": "search", "_meta": meta } });
        assert_eq!(of(json!({ "method": "initialize", "params": {} }), None), [] as [&str; 0]);
        assert_eq!(of(call(json!({})), Some("2025-06-18")), ["mcp-protocol-version: 2025-06-18"]);
        assert_eq!(
            of(call(json!({ VERSION: "2026-07-28" })), Some("2025-06-18")),
            ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: search"]
        );
        let read =
            json!({ "method": "resources/read", "params": { "uri": "x:é", "_meta": { VERSION: "2026-07-28" } } });
        assert_eq!(of(read, None)[2], "mcp-name: =?base64?eDrDqQ==?=");
    }

    #[test]
    fn a_failure_is_told_as_the_protocol_says() {
        assert!(in_words(401, None).contains("tributary key create"));
        let problem = json!({ "title": "Too many requests", "detail": "wait" });
        assert_eq!(in_words(429, Some(&problem)), "too many requests: wait");
        assert_eq!(in_words(502, None), "the server refused it (502):");
    }
}
