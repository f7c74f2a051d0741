//! A fake language model that speaks both dialects, answers as the test says, and checks how it is asked.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpStream;

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
    Endless,
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
}

impl FakeChat {
    pub async fn start() -> Self {
        let usual = json!({ "summary": "Ann wants to be called back.", "facts": ["Ann called."] });
        let state = Arc::new(State { calls: Mutex::default(), script: Script::new(Manner::Says(usual)) });
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
