//! A fake of OpenAI's transcription API. It transcribes nothing, but checks how it is asked.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;

use crate::fake::{self, Asked, Host, Script, Serve, lock};

/// The way in which the fake answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    /// With this transcript.
    Heard(&'static str),
    /// With this JSON.
    Answers(serde_json::Value),
    /// After this delay.
    Slow(Duration),
    /// With this status, these header lines (each ending in `\r\n`) and this body.
    Status(u16, &'static str, &'static str),
    HangsUp,
    NoJson,
    Endless,
}

/// One received recording.
#[derive(Clone, Debug)]
pub struct Call {
    pub model: String,
    pub file_name: String,
    pub content_type: String,
    pub file: Vec<u8>,
    pub authorization: Option<String>,
}

pub struct FakeSpeech {
    pub port: u16,
    host: Host,
    state: Arc<State>,
}

struct State {
    calls: Mutex<Vec<Call>>,
    script: Script<Manner>,
}

impl FakeSpeech {
    pub async fn start() -> Self {
        let script = Script::new(Manner::Heard("Hello, this is Ann. Please call me back."));
        let state = Arc::new(State { calls: Mutex::default(), script });
        let host = Host::start(Ipv4Addr::LOCALHOST, state.clone()).await;
        Self { port: host.address.port(), host, state }
    }

    /// The value for `TRANSCRIBE_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
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
        let Some(call) = call(&asked) else {
            let complaint = json!({ "error": { "code": "not_as_documented", "message": "look at the form" } });
            return fake::answer(&mut client, 400, "", complaint.to_string().as_bytes()).await;
        };
        lock(&self.calls).push(call);
        let (status, headers, body) = match self.script.take() {
            Manner::Heard(text) => (200, "", json!({ "text": text }).to_string()),
            Manner::Answers(json) => (200, "", json.to_string()),
            Manner::Slow(delay) => {
                tokio::time::sleep(delay).await;
                (200, "", json!({ "text": "at last" }).to_string())
            }
            Manner::Status(status, headers, body) => (status, headers, body.to_owned()),
            Manner::HangsUp => return None,
            Manner::NoJson => (200, "", "<html>".to_owned()),
            Manner::Endless => return fake::pour(&mut client, "application/json").await,
        };
        fake::answer(&mut client, status, headers, body.as_bytes()).await
    }
}

/// `None`: the request is not one that the service takes.
fn call(asked: &Asked) -> Option<Call> {
    let kind = asked.header("content-type")?;
    let edge = format!("--{}", kind.strip_prefix("multipart/form-data; boundary=")?);
    let is_known = asked.line() == "POST /v1/audio/transcriptions" && asked.header("content-length").is_some();
    let body = asked.body.strip_suffix(format!("\r\n{edge}--\r\n").as_bytes()).filter(|_| is_known)?;
    let mut call = Call {
        model: String::new(),
        file_name: String::new(),
        content_type: String::new(),
        file: Vec::new(),
        authorization: asked.header("authorization"),
    };
    let mut format = String::new();
    for part in parts(body, &edge)? {
        let at = part.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let (head, content) = (std::str::from_utf8(&part[..at]).ok()?, &part[at + 4..]);
        let said = |name: &str| head.split(&format!("{name}=\"")).nth(1)?.split('"').next().map(str::to_owned);
        // With the blank: without it `filename` would match.
        match said(" name")?.as_str() {
            "model" => call.model = String::from_utf8(content.to_vec()).ok()?,
            "response_format" => format = String::from_utf8(content.to_vec()).ok()?,
            "file" => {
                call.file_name = said("filename")?;
                call.content_type = head.split("Content-Type: ").nth(1)?.lines().next()?.to_owned();
                call.file = content.to_vec();
            }
            _ => return None,
        }
    }
    (!call.model.is_empty() && format == "json" && !call.file.is_empty()).then_some(call)
}

/// The text between the two edges.
fn parts<'a>(body: &'a [u8], edge: &str) -> Option<Vec<&'a [u8]>> {
    let between = format!("\r\n{edge}\r\n");
    let mut rest = body.strip_prefix(format!("{edge}\r\n").as_bytes())?;
    let mut parts = Vec::new();
    while let Some(at) = rest.windows(between.len()).position(|bytes| bytes == between.as_bytes()) {
        parts.push(&rest[..at]);
        rest = &rest[at + between.len()..];
    }
    parts.push(rest);
    Some(parts)
}
