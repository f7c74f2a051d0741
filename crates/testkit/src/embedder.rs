//! A fake of OpenAI's embeddings API. It records what it is asked and misbehaves on demand.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::fake::{self, Asked, Host, Script, Serve, lock};

/// The way in which the fake answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    Well,
    /// After this delay.
    Slow(Duration),
    /// With this status, these header lines (each ending in `\r\n`) and this body.
    Status(u16, &'static str, &'static str),
    /// Closes the connection without an answer.
    HangsUp,
    WrongDim,
    /// `NaN`, as Python writes it.
    Nan,
    /// `null`, as JavaScript writes it.
    Null,
    /// A number that no float can hold.
    Infinite,
    Zeros,
    TooFew,
    TooMany,
    SameIndex,
    NoJson,
    /// More bytes than a client should read.
    Endless,
}

/// One received call.
#[derive(Clone, Debug)]
pub struct Call {
    pub model: String,
    pub texts: Vec<String>,
    pub dimensions: Option<usize>,
    /// The whole header.
    pub authorization: Option<String>,
}

pub struct FakeEmbedder {
    pub port: u16,
    host: Host,
    state: Arc<State>,
}

struct State {
    dim: usize,
    calls: Mutex<Vec<Call>>,
    script: Script<Manner>,
}

impl FakeEmbedder {
    pub async fn start(dim: usize) -> Self {
        let state = Arc::new(State { dim, calls: Mutex::default(), script: Script::new(Manner::Well) });
        let host = Host::start(Ipv4Addr::LOCALHOST, state.clone()).await;
        Self { port: host.address.port(), host, state }
    }

    /// The value for `EMBED_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Flags that make this service the embedder: `config(&fake.flags())`.
    pub fn flags(&self) -> Vec<String> {
        let flags = [
            "--embedder",
            "compatible",
            "--embed-model",
            "fake",
            "--embed-base-url",
            &self.url(),
            "--embed-dim",
            &self.state.dim.to_string(),
        ];
        flags.map(str::to_owned).to_vec()
    }

    /// Sets how it answers from now on.
    pub fn answer(&self, manner: Manner) {
        self.state.script.set(manner);
    }

    /// Sets how it answers the next calls, one each; then it answers as before.
    pub fn answer_next(&self, manners: &[Manner]) {
        self.state.script.set_next(manners);
    }

    /// While the service is away, it refuses connections.
    pub async fn go_away(&self) {
        self.host.go_away().await;
    }

    pub async fn come_back(&self) {
        self.host.come_back().await;
    }

    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state.calls).clone()
    }

    /// Every text of every call, in order.
    pub fn texts(&self) -> Vec<String> {
        self.calls().into_iter().flat_map(|call| call.texts).collect()
    }
}

#[derive(Deserialize)]
struct Question {
    model: String,
    input: Vec<String>,
    encoding_format: String,
    dimensions: Option<usize>,
}

impl Serve for State {
    async fn serve(&self, asked: Asked, mut client: TcpStream) -> Option<()> {
        let question: Question = serde_json::from_slice(&asked.body).ok()?;
        let is_known = asked.line() == "POST /v1/embeddings" && question.encoding_format == "float";
        lock(&self.calls).push(Call {
            model: question.model,
            texts: question.input.clone(),
            dimensions: question.dimensions,
            authorization: asked.header("authorization"),
        });
        let manner = self.script.take();
        let (status, headers, body) = match manner {
            _ if !is_known => (404, "", String::new()),
            Manner::HangsUp => return None,
            Manner::Endless => return fake::pour(&mut client, "application/json").await,
            Manner::Status(status, headers, body) => (status, headers, body.to_owned()),
            Manner::NoJson => (200, "", "<html>".to_owned()),
            Manner::Slow(delay) => {
                tokio::time::sleep(delay).await;
                (200, "", answer(self, &question.input, &Manner::Well))
            }
            manner => (200, "", answer(self, &question.input, &manner)),
        };
        fake::answer(&mut client, status, headers, body.as_bytes()).await
    }
}

/// Answers the last text first. `index` says which is which.
fn answer(state: &State, texts: &[String], manner: &Manner) -> String {
    let row = |(index, text): (usize, &String)| json!({"object": "embedding", "index": index, "embedding": vector(text, state.dim)});
    let mut rows: Vec<Value> = texts.iter().enumerate().map(row).rev().collect();
    let first = |rows: &mut Vec<Value>, number: Value| rows[0]["embedding"][0] = number;
    match manner {
        Manner::WrongDim => rows[0]["embedding"] = json!(vector("x", state.dim + 1)),
        Manner::Zeros => rows[0]["embedding"] = json!(vec![0; state.dim]),
        Manner::Nan => first(&mut rows, json!("NaN")),
        Manner::Null => first(&mut rows, Value::Null),
        Manner::Infinite => first(&mut rows, json!(1e300)),
        Manner::TooFew => rows.truncate(texts.len() - 1),
        Manner::TooMany => rows.push(rows[0].clone()),
        Manner::SameIndex => rows.iter_mut().for_each(|row| row["index"] = json!(0)),
        _ => {}
    }
    let n_tokens: usize = texts.iter().map(|text| text.len() / 4).sum();
    let answer =
        json!({"object": "list", "data": rows, "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens}});
    answer.to_string().replace("\"NaN\"", "NaN")
}

/// Makes a vector in which texts that share words are near each other. It is not of unit length, as with some services.
fn vector(text: &str, dim: usize) -> Vec<f32> {
    let mut vector = vec![0.01; dim];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = word.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        vector[hash as usize % dim] += 1.0;
        vector[(hash >> 13) as usize % dim] -= 0.5;
    }
    vector
}
