//! A fake language model that speaks both dialects, at once or in a stream, answers as the test says, checks how it is asked, and counts what it
//! would charge for.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::fake::{self, Asked, Host, Script, Serve, lock};

/// The way in which the fake answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    /// In the requested form, with this content, whether it fits or not.
    Says(Value),
    /// With prose instead of the requested form.
    Prose,
    Refuses,
    /// As the provider's content filter answers.
    IsFiltered,
    CutOff,
    /// After this delay.
    Slow(Duration),
    /// With this status, these header lines (each ending in `\r\n`) and this body.
    Status(u16, &'static str, &'static str),
    HangsUp,
    NoJson,
    /// Without an end. In a stream: sentence after sentence.
    Endless,
    /// In a stream: this text, and then nothing more.
    BreaksOff(String),
    /// In a stream: this text, and then an error of the service.
    Fails(String),
    /// In a stream: this text, which need not be JSON, and a proper end.
    Writes(String),
    /// In a stream: the first text, and after [`FakeChat::go_on`] the second.
    Waits(String, String),
}

/// One question, in either dialect.
#[derive(Clone, Debug)]
pub struct Call {
    pub is_anthropic: bool,
    pub model: String,
    pub system: String,
    pub text: String,
    pub schema: Value,
    pub key: Option<String>,
}

pub struct FakeChat {
    pub port: u16,
    host: Host,
    state: Arc<State>,
}

struct State {
    calls: Mutex<Vec<Call>>,
    script: Script<Manner>,
    n_tokens: AtomicU64,
    go_on: Notify,
}

impl FakeChat {
    pub async fn start() -> Self {
        let usual = json!({ "summary": "Ann wants to be called back.", "facts": ["Ann called."] });
        let state = Arc::new(State {
            calls: Mutex::default(),
            script: Script::new(Manner::Says(usual)),
            n_tokens: AtomicU64::new(0),
            go_on: Notify::new(),
        });
        let host = Host::start(Ipv4Addr::LOCALHOST, state.clone()).await;
        Self { port: host.address.port(), host, state }
    }

    /// The value for `LLM_BASE_URL`. OpenAI's includes `/v1`, Anthropic's does not.
    pub fn url(&self, is_anthropic: bool) -> String {
        format!("http://127.0.0.1:{}{}", self.port, if is_anthropic { "" } else { "/v1" })
    }

    /// Sets how it answers from now on.
    pub fn answer(&self, manner: Manner) {
        self.state.script.set(manner);
    }

    /// Sets how it answers the next calls, one each; then it answers as before.
    pub fn answer_next(&self, manners: &[Manner]) {
        self.state.script.set_next(manners);
    }

    pub async fn go_away(&self) {
        self.host.go_away().await;
    }

    /// Lets a stream that waits go on.
    pub fn go_on(&self) {
        self.state.go_on.notify_one();
    }

    /// The tokens that it has told of at the end of streams.
    pub fn n_tokens(&self) -> u64 {
        self.state.n_tokens.load(SeqCst)
    }

    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state.calls).clone()
    }
}

impl Serve for State {
    async fn serve(&self, asked: Asked, mut client: TcpStream) -> Option<()> {
        let question: Value = serde_json::from_slice(&asked.body).ok()?;
        let call = match asked.line() {
            "POST /v1/messages" => anthropic(&asked, &question),
            "POST /v1/chat/completions" => openai(&asked, &question),
            _ => None,
        };
        let Some(call) = call else {
            let complaint =
                json!({ "type": "error", "error": { "type": "not_as_documented", "message": "look at it again" } });
            return fake::answer(&mut client, 400, "", complaint.to_string().as_bytes()).await;
        };
        let is_anthropic = call.is_anthropic;
        if question["stream"] == true {
            let passages = passages(&call.text);
            lock(&self.calls).push(call);
            let wire = Wire { is_anthropic, n_asked: asked.body.len() as u64 / 4 };
            return self.stream(&wire, &passages, client).await;
        }
        let name = if is_anthropic { question["tool_choice"]["name"].clone() } else { Value::Null };
        lock(&self.calls).push(call);
        let said = |manner: &Manner| if is_anthropic { message(&name, manner) } else { completion(manner) }.to_string();
        let (status, headers, body) = match self.script.take() {
            Manner::Slow(delay) => {
                tokio::time::sleep(delay).await;
                (200, "", said(&Manner::Says(json!({ "summary": "At last.", "facts": [] }))))
            }
            Manner::Status(status, headers, body) => (status, headers, body.to_owned()),
            Manner::HangsUp => return None,
            Manner::NoJson => (200, "", "<html>".to_owned()),
            Manner::Endless => return fake::pour(&mut client, "application/json").await,
            manner => (200, "", said(&manner)),
        };
        fake::answer(&mut client, status, headers, body.as_bytes()).await
    }
}

impl State {
    async fn stream(&self, wire: &Wire, passages: &[Value], mut client: TcpStream) -> Option<()> {
        let (text, ending) = match self.script.take() {
            Manner::Status(status, headers, body) => {
                return fake::answer(&mut client, status, headers, body.as_bytes()).await;
            }
            Manner::HangsUp => return None,
            Manner::NoJson => ("<html>".to_owned(), Ends::WithGarbage),
            Manner::Says(answer) => (resolved(answer, passages).to_string(), Ends::Well),
            Manner::Slow(_) => (json!({ "sentences": [] }).to_string(), Ends::Well),
            Manner::Prose => ("Gladly! Ann called.".to_owned(), Ends::Well),
            Manner::Refuses => (String::new(), Ends::Refused),
            Manner::IsFiltered => (String::new(), Ends::Filtered),
            Manner::CutOff => ("{\"sentences\":[{\"text\":\"Ann wants".to_owned(), Ends::Long),
            Manner::BreaksOff(text) => (text, Ends::Never),
            Manner::Fails(text) => (text, Ends::WithError),
            Manner::Writes(text) => (text, Ends::Well),
            Manner::Waits(first, rest) => {
                wire.begin(&mut client).await?;
                wire.write(&mut client, &resolved_text(&first, passages)).await?;
                self.go_on.notified().await;
                let rest = resolved_text(&rest, passages);
                wire.write(&mut client, &rest).await?;
                return self.end(wire, (first.len() + rest.len()) as u64 / 4, Ends::Well, client).await;
            }
            Manner::Endless => {
                wire.begin(&mut client).await?;
                wire.write(&mut client, "{\"sentences\":[").await?;
                loop {
                    wire.write(&mut client, "{\"text\":\"Nothing holds this.\",\"cites\":[]},").await?;
                }
            }
        };
        wire.begin(&mut client).await?;
        let text = resolved_text(&text, passages);
        wire.write(&mut client, &text).await?;
        self.end(wire, text.len() as u64 / 4, ending, client).await
    }

    async fn end(&self, wire: &Wire, n_written: u64, ending: Ends, mut client: TcpStream) -> Option<()> {
        match ending {
            Ends::Never => {}
            Ends::WithGarbage => event(&mut client, "", "<html>").await?,
            Ends::WithError => {
                let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } });
                event(&mut client, "error", &error.to_string()).await?;
            }
            ending => {
                self.n_tokens.fetch_add(wire.n_asked + n_written, SeqCst);
                wire.end(&mut client, n_written, ending).await?;
            }
        }
        client.shutdown().await.ok()
    }
}

/// The way in which a stream ends.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Well,
    Long,
    Refused,
    Filtered,
    Never,
    WithError,
    WithGarbage,
}

/// One stream, in either dialect.
struct Wire {
    is_anthropic: bool,
    /// The tokens of the question.
    n_asked: u64,
}

impl Wire {
    async fn begin(&self, client: &mut TcpStream) -> Option<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        client.write_all(head.as_bytes()).await.ok()?;
        if self.is_anthropic {
            let usage = json!({ "input_tokens": self.n_asked, "output_tokens": 0 });
            let start = json!({ "type": "message_start", "message": { "id": "msg_1", "usage": usage } });
            event(client, "message_start", &start.to_string()).await?;
            event(client, "ping", r#"{"type":"ping"}"#).await?;
            let block = json!({ "type": "tool_use", "id": "toolu_1", "name": "answer", "input": {} });
            let start = json!({ "type": "content_block_start", "index": 0, "content_block": block });
            event(client, "content_block_start", &start.to_string()).await?;
        }
        Some(())
    }

    /// Sends a text in small pieces.
    async fn write(&self, client: &mut TcpStream, text: &str) -> Option<()> {
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(11) {
            let piece: String = piece.iter().collect();
            let (name, said) = if self.is_anthropic {
                let delta = json!({ "type": "input_json_delta", "partial_json": piece });
                let said = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
                ("content_block_delta", said)
            } else {
                let choice = json!({ "index": 0, "delta": { "content": piece }, "finish_reason": null });
                ("", json!({ "object": "chat.completion.chunk", "choices": [choice], "usage": null }))
            };
            event(client, name, &said.to_string()).await?;
        }
        Some(())
    }

    async fn end(&self, client: &mut TcpStream, n_written: u64, ending: Ends) -> Option<()> {
        if self.is_anthropic {
            let reason = match ending {
                Ends::Long => "max_tokens",
                Ends::Refused | Ends::Filtered => "refusal",
                _ => "tool_use",
            };
            let delta = json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": n_written } });
            event(client, "message_delta", &delta.to_string()).await?;
            return event(client, "message_stop", r#"{"type":"message_stop"}"#).await;
        }
        let (reason, delta) = match ending {
            Ends::Long => ("length", json!({})),
            Ends::Filtered => ("content_filter", json!({})),
            Ends::Refused => ("stop", json!({ "refusal": "I cannot help with that." })),
            _ => ("stop", json!({})),
        };
        let last = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }], "usage": null });
        event(client, "", &last.to_string()).await?;
        let usage = json!({ "prompt_tokens": self.n_asked, "completion_tokens": n_written });
        event(client, "", &json!({ "choices": [], "usage": usage }).to_string()).await?;
        event(client, "", "[DONE]").await
    }
}

async fn event(client: &mut TcpStream, name: &str, data: &str) -> Option<()> {
    let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
    client.write_all(format!("{name}data: {data}\n\n").as_bytes()).await.ok()
}

/// The passages of a question, if it has some.
fn passages(text: &str) -> Vec<Value> {
    let data = text.split_once('\n').and_then(|(_, data)| serde_json::from_str::<Value>(data).ok());
    data.and_then(|data| data["untrusted"]["passages"].as_array().cloned()).unwrap_or_default()
}

/// Puts the names of passages into a script: `@words` becomes the name of the first passage that has these words, else one that no passage has.
fn resolved(mut answer: Value, passages: &[Value]) -> Value {
    match &mut answer {
        Value::String(text) => {
            if let Some(words) = text.strip_prefix('@') {
                let has = |passage: &&Value| passage["text"].as_str().is_some_and(|text| text.contains(words));
                let found = passages.iter().find(has).and_then(|passage| passage["id"].as_str());
                *text = found.unwrap_or("p404").to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = resolved(item.take(), passages)),
        Value::Object(fields) => fields.values_mut().for_each(|field| *field = resolved(field.take(), passages)),
        _ => {}
    }
    answer
}

/// The same for a text that need not be whole JSON: `"@words"` between quotation marks.
fn resolved_text(text: &str, passages: &[Value]) -> String {
    let mut parts = text.split("\"@");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (words, rest) = part.split_once('"').unwrap_or((part, ""));
        let name = resolved(Value::String(format!("@{words}")), passages);
        out += &format!("{name}{rest}");
    }
    out
}

/// `None`: the request is not one that the service takes.
fn anthropic(asked: &Asked, question: &Value) -> Option<Call> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (tool, message) = (&question["tools"][0], &question["messages"][0]);
    let is_right = asked.header("anthropic-version").as_deref() == Some("2023-06-01")
        && asked.header("authorization").is_none()
        && question["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0)
        && question["tool_choice"] == json!({ "type": "tool", "name": tool["name"] })
        && message["role"] == "user"
        && is_strict(&tool["input_schema"]);
    is_right.then_some(())?;
    Some(Call {
        is_anthropic: true,
        model: text(&question["model"])?,
        system: text(&question["system"])?,
        text: text(&message["content"])?,
        schema: tool["input_schema"].clone(),
        key: asked.header("x-api-key"),
    })
}

fn openai(asked: &Asked, question: &Value) -> Option<Call> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (format, messages) = (&question["response_format"], &question["messages"]);
    let is_right = format["type"] == "json_schema"
        && format["json_schema"]["strict"] == true
        && format["json_schema"]["name"].as_str().is_some_and(|name| !name.is_empty())
        && messages[0]["role"] == "system"
        && messages[1]["role"] == "user"
        && (question["stream"].is_null() || question["stream_options"]["include_usage"] == true)
        && is_strict(&format["json_schema"]["schema"]);
    is_right.then_some(())?;
    Some(Call {
        is_anthropic: false,
        model: text(&question["model"])?,
        system: text(&messages[0]["content"])?,
        text: text(&messages[1]["content"])?,
        schema: format["json_schema"]["schema"].clone(),
        key: asked.header("authorization"),
    })
}

/// Whether OpenAI takes the schema as strict: an object, all of its fields required, and no others.
fn is_strict(schema: &Value) -> bool {
    let named: Vec<&String> = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    schema["type"] == "object"
        && schema["additionalProperties"] == false
        && !named.is_empty()
        && named.len() == required.len()
        && named.iter().all(|name| required.contains(&name.as_str()))
}

fn message(tool: &Value, manner: &Manner) -> Value {
    let prose = json!([{ "type": "text", "text": "Gladly! Ann called." }]);
    let (stop_reason, content) = match manner {
        Manner::Says(answer) => {
            let used = json!({ "type": "tool_use", "id": "toolu_1", "name": tool, "input": answer });
            ("tool_use", json!([{ "type": "text", "text": "Let me see." }, used]))
        }
        Manner::Refuses | Manner::IsFiltered => ("refusal", json!([])),
        Manner::CutOff => {
            let begun =
                json!({ "type": "tool_use", "id": "toolu_1", "name": tool, "input": { "summary": "Ann wants" } });
            ("max_tokens", json!([begun]))
        }
        _ => ("end_turn", prose),
    };
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason })
}

fn completion(manner: &Manner) -> Value {
    let (finish_reason, content, refusal) = match manner {
        Manner::Says(answer) => ("stop", json!(answer.to_string()), Value::Null),
        Manner::Refuses => ("stop", Value::Null, json!("I cannot help with that.")),
        Manner::IsFiltered => ("content_filter", json!(""), Value::Null),
        Manner::CutOff => ("length", json!("{\"summary\":\"Ann wants"), Value::Null),
        _ => ("stop", json!("Gladly! Ann called."), Value::Null),
    };
    let message = json!({ "role": "assistant", "content": content, "refusal": refusal });
    json!({ "object": "chat.completion", "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason }] })
}
