//! A fake of the services that make vectors, in the wire format of each. It is strict: what the real service refuses, ignores or does silently, it
//! refuses and notes. It records what it is asked and misbehaves on demand.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::fake::{self, Asked, Host, Script, Serve, lock};

/// The key that every fake wants, but the one that is merely compatible.
pub const KEY: &str = "sk-canary-4711";

/// A service whose wire format it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Openai,
    /// OpenAI's API without a key, base64 and shorter vectors.
    Compatible,
    Voyage,
    Cohere,
    Ollama,
    Tei,
    Brain,
}

impl Wire {
    pub const ALL: [Self; 7] =
        [Self::Openai, Self::Compatible, Self::Voyage, Self::Cohere, Self::Ollama, Self::Tei, Self::Brain];

    /// Its name in `EMBEDDER`.
    fn name(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Compatible => "compatible",
            Self::Voyage => "voyage",
            Self::Cohere => "cohere",
            Self::Ollama => "ollama",
            Self::Tei => "tei",
            Self::Brain => "brain",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Openai | Self::Compatible | Self::Voyage => "/v1/embeddings",
            Self::Cohere => "/v2/embed",
            Self::Ollama => "/api/embed",
            Self::Tei => "/embed",
            Self::Brain => "/internal/embed",
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::Openai => "text-embedding-3-small",
            Self::Voyage => "voyage-4",
            Self::Cohere => "embed-v4.0",
            Self::Ollama => "nomic-embed-text",
            Self::Compatible | Self::Tei | Self::Brain => "fake",
        }
    }

    /// The most texts of one call.
    fn most_texts(self) -> usize {
        match self {
            Self::Openai | Self::Compatible => 2_048,
            Self::Voyage => 1_000,
            Self::Cohere => 96,
            Self::Tei => 32,
            Self::Ollama | Self::Brain => 256,
        }
    }

    /// The fields of a request, each with the only value that it may have here; `null` stands for any.
    fn fields(self, dim: usize, is_query: bool) -> Value {
        let model = self.model();
        let side = |query: &'static str, document: &'static str| if is_query { query } else { document };
        match self {
            Self::Openai => json!({"model": model, "input": null, "encoding_format": "base64", "dimensions": dim}),
            Self::Compatible => json!({"model": model, "input": null, "encoding_format": "float"}),
            Self::Voyage => json!({
                "model": model, "input": null, "input_type": side("query", "document"), "truncation": false,
                "output_dtype": "float", "output_dimension": dim,
            }),
            Self::Cohere => json!({
                "model": model, "texts": null, "input_type": side("search_query", "search_document"), "truncate": "NONE",
                "embedding_types": ["float"], "output_dimension": dim,
            }),
            Self::Ollama => json!({"model": model, "input": null, "truncate": false, "dimensions": dim}),
            Self::Tei => json!({
                "inputs": null, "truncate": false, "normalize": true, "dimensions": dim, "prompt_name": side("query", "document"),
            }),
            Self::Brain => json!({"texts": null}),
        }
    }

    fn texts_field(self) -> &'static str {
        match self {
            Self::Cohere | Self::Brain => "texts",
            Self::Tei => "inputs",
            _ => "input",
        }
    }

    /// An error as the service words it.
    fn complaint(self, code: &str, words: &str) -> String {
        let complaint = match self {
            Self::Openai | Self::Compatible => {
                json!({"error": {"message": words, "type": code, "param": null, "code": code}})
            }
            Self::Voyage => json!({"detail": words}),
            Self::Cohere => json!({"message": words}),
            Self::Ollama => json!({"error": words}),
            Self::Tei => json!({"error": words, "error_type": "Validation"}),
            Self::Brain => {
                json!({"type": "/problems/too-large", "title": "The request is too large", "status": 413, "detail": words})
            }
        };
        complaint.to_string()
    }

    /// The refusal of a text that is longer than the model takes, or of too many of them.
    fn too_large(self) -> (u16, String) {
        match self {
            Self::Openai => (
                400,
                self.complaint("invalid_request_error", "Invalid 'input[0]': maximum input length is 8192 tokens."),
            ),
            Self::Compatible => {
                (400, self.complaint("BadRequestError", "This model's maximum context length is 512 tokens."))
            }
            Self::Voyage => (400, self.complaint("", "The example at index 0 in your batch has too many tokens")),
            Self::Cohere => (400, self.complaint("", "invalid request: texts[0] is too long")),
            Self::Ollama => (400, self.complaint("", "the input length exceeds the context length")),
            Self::Tei => (413, self.complaint("", "`inputs` must have less than 512 tokens. Given: 600")),
            Self::Brain => (413, self.complaint("", "the texts are too long")),
        }
    }
}

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
    /// Closes the connection in the middle of the answer.
    Truncated,
    /// Ends the answer's JSON in the middle.
    CutJson,
    WrongDim,
    /// `NaN`, as Python writes it.
    Nan,
    /// `"NaN"`, as a text.
    NanText,
    /// `null`, as JavaScript writes it.
    Null,
    /// A number that no float can hold.
    Infinite,
    /// A number that no parser takes.
    Huge,
    Zeros,
    TooFew,
    TooMany,
    /// Two vectors for one text. Only where vectors have an index.
    SameIndex,
    NoJson,
    /// More bytes than a client should read.
    Endless,
}

/// One received call.
#[derive(Clone, Debug)]
pub struct Call {
    pub texts: Vec<String>,
    /// The request without its texts.
    pub fields: Map<String, Value>,
    /// The whole header.
    pub authorization: Option<String>,
    /// Whether it got its vectors.
    pub is_answered: bool,
}

pub struct FakeEmbedder {
    pub port: u16,
    host: Host,
    state: Arc<State>,
}

struct State {
    wire: Wire,
    dim: usize,
    calls: Mutex<Vec<Call>>,
    /// The requests that were not as the service wants them.
    complaints: Mutex<Vec<String>>,
    script: Script<Manner>,
    most_texts: AtomicUsize,
    most_chars: AtomicUsize,
    most_chars_of_text: AtomicUsize,
}

impl FakeEmbedder {
    /// A service that is compatible with OpenAI's.
    pub async fn start(dim: usize) -> Self {
        Self::of(Wire::Compatible, dim).await
    }

    pub async fn of(wire: Wire, dim: usize) -> Self {
        let state = Arc::new(State {
            wire,
            dim,
            calls: Mutex::default(),
            complaints: Mutex::default(),
            script: Script::new(Manner::Well),
            most_texts: wire.most_texts().into(),
            most_chars: usize::MAX.into(),
            most_chars_of_text: usize::MAX.into(),
        });
        let host = Host::start(Ipv4Addr::LOCALHOST, state.clone()).await;
        Self { port: host.address.port(), host, state }
    }

    /// The value for `EMBED_BASE_URL`, or `BOOTS_BRAIN_URL`.
    pub fn url(&self) -> String {
        let path = self.state.wire.path().strip_suffix("/embeddings").unwrap_or_default();
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Flags that make this service the embedder: `config(&fake.flags())`.
    pub fn flags(&self) -> Vec<String> {
        let (wire, url, dim) = (self.state.wire, self.url(), self.state.dim.to_string());
        let mut flags = vec!["--embedder", wire.name(), "--embed-model", wire.model(), "--embed-dim", &dim];
        flags.extend(match wire {
            Wire::Brain => ["--boots-brain-url", &url, "--brain-api-secret", KEY].to_vec(),
            Wire::Compatible => ["--embed-base-url", &url].to_vec(),
            Wire::Tei => [
                "--embed-base-url",
                &url,
                "--embed-api-key",
                KEY,
                "--embed-query-prompt",
                "query",
                "--embed-document-prompt",
                "document",
            ]
            .to_vec(),
            _ => ["--embed-base-url", &url, "--embed-api-key", KEY].to_vec(),
        });
        flags.into_iter().map(str::to_owned).collect()
    }

    /// Sets how it answers from now on.
    pub fn answer(&self, manner: Manner) {
        self.state.script.set(manner);
    }

    /// Sets how it answers the next calls, one each; then it answers as before.
    pub fn answer_next(&self, manners: &[Manner]) {
        self.state.script.set_next(manners);
    }

    /// Refuses calls with more texts, with more characters, or with a text of more characters.
    pub fn refuse_above(&self, n_texts: usize, n_chars: usize, n_chars_of_text: usize) {
        self.state.most_texts.store(n_texts, Relaxed);
        self.state.most_chars.store(n_chars, Relaxed);
        self.state.most_chars_of_text.store(n_chars_of_text, Relaxed);
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

    /// Every text that got its vector, in order.
    pub fn embedded(&self) -> Vec<String> {
        self.calls().into_iter().filter(|call| call.is_answered).flat_map(|call| call.texts).collect()
    }

    /// The requests that were not as the service wants them.
    pub fn complaints(&self) -> Vec<String> {
        lock(&self.state.complaints).clone()
    }
}

impl State {
    /// The request's texts and other fields, or what is wrong with it.
    fn read(&self, asked: &Asked) -> Result<(Vec<String>, Map<String, Value>), String> {
        let wire = self.wire;
        let line = format!("POST {}", wire.path());
        if asked.line() != line {
            return Err(format!("{} instead of {line}", asked.line()));
        }
        let key = format!("Bearer {KEY}");
        if wire != Wire::Compatible && asked.header("authorization").as_ref() != Some(&key) {
            return Err("the key is wrong".into());
        }
        let mut fields: Map<String, Value> = serde_json::from_slice(&asked.body).map_err(|error| error.to_string())?;
        let is_as = |is_query| {
            let wanted = wire.fields(self.dim, is_query);
            let wanted = wanted.as_object().expect("an object");
            wanted.len() == fields.len()
                && wanted
                    .iter()
                    .all(|(name, value)| fields.get(name).is_some_and(|given| value.is_null() || given == value))
        };
        if !is_as(false) && !is_as(true) {
            fields.remove(wire.texts_field());
            return Err(format!("fields {}", Value::Object(fields)));
        }
        let texts =
            fields.remove(wire.texts_field()).and_then(|texts| serde_json::from_value::<Vec<String>>(texts).ok());
        match texts.filter(|texts| !texts.is_empty() && texts.iter().all(|text| !text.is_empty())) {
            Some(texts) => Ok((texts, fields)),
            None => Err("no texts, or an empty one".into()),
        }
    }

    fn is_too_large(&self, texts: &[String]) -> bool {
        let chars = |text: &String| text.chars().count();
        texts.len() > self.most_texts.load(Relaxed)
            || texts.iter().map(chars).sum::<usize>() > self.most_chars.load(Relaxed)
            || texts.iter().any(|text| chars(text) > self.most_chars_of_text.load(Relaxed))
    }
}

impl Serve for State {
    async fn serve(&self, asked: Asked, mut client: TcpStream) -> Option<()> {
        let (texts, fields) = match self.read(&asked) {
            Ok(read) => read,
            Err(what) => {
                lock(&self.complaints).push(what);
                return fake::answer(&mut client, 400, "", self.wire.complaint("not_as_documented", "no").as_bytes())
                    .await;
            }
        };
        let (manner, is_too_large) = (self.script.take(), self.is_too_large(&texts));
        let is_answered = !is_too_large && matches!(manner, Manner::Well | Manner::Slow(_));
        let authorization = asked.header("authorization");
        lock(&self.calls).push(Call { texts: texts.clone(), fields, authorization, is_answered });
        let (status, headers, body) = match manner {
            Manner::HangsUp => return None,
            Manner::Endless => return fake::pour(&mut client, "application/json").await,
            Manner::Status(status, headers, body) => (status, headers, body.to_owned()),
            Manner::NoJson => (200, "", "<html>".to_owned()),
            _ if is_too_large => {
                let (status, body) = self.wire.too_large();
                (status, "", body)
            }
            Manner::Slow(delay) => {
                tokio::time::sleep(delay).await;
                (200, "", answer(self, &texts, &Manner::Well))
            }
            Manner::CutJson => {
                let whole = answer(self, &texts, &Manner::Well);
                (200, "", whole[..whole.len() / 2].to_owned())
            }
            Manner::Truncated => {
                let whole = answer(self, &texts, &Manner::Well);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", whole.len());
                client.write_all(head.as_bytes()).await.ok()?;
                client.write_all(&whole.as_bytes()[..whole.len() / 2]).await.ok()?;
                return client.shutdown().await.ok();
            }
            manner => (200, "", answer(self, &texts, &manner)),
        };
        fake::answer(&mut client, status, headers, body.as_bytes()).await
    }
}

/// Makes the vectors, spoils the first one if it is to, and writes them as the service does.
fn answer(state: &State, texts: &[String], manner: &Manner) -> String {
    let mut rows: Vec<Vec<Value>> =
        texts.iter().map(|text| vector(text, state.dim).into_iter().map(|number| json!(number)).collect()).collect();
    match manner {
        Manner::WrongDim => rows[0].push(json!(1)),
        Manner::Zeros => rows[0].fill(json!(0)),
        Manner::Nan => rows[0][0] = json!("<NaN>"),
        Manner::NanText => rows[0][0] = json!("NaN"),
        Manner::Null => rows[0][0] = Value::Null,
        Manner::Infinite => rows[0][0] = json!(1e300),
        Manner::Huge => rows[0][0] = json!("<1e999>"),
        Manner::TooFew => _ = rows.pop(),
        Manner::TooMany => rows.push(rows[0].clone()),
        _ => {}
    }
    let n_tokens: usize = texts.iter().map(|text| text.len() / 4).sum();
    let answer = match state.wire {
        Wire::Openai | Wire::Compatible | Wire::Voyage => {
            let row = |(index, row): (usize, &Vec<Value>)| {
                let index = if *manner == Manner::SameIndex { 0 } else { index };
                json!({"object": "embedding", "index": index, "embedding": numbers(state.wire, row)})
            };
            // The last text first: `index` says which is which.
            let data: Vec<Value> = rows.iter().enumerate().map(row).rev().collect();
            json!({"object": "list", "model": state.wire.model(), "data": data, "usage": {"total_tokens": n_tokens}})
        }
        Wire::Cohere => json!({
            "id": "7", "embeddings": {"float": rows}, "texts": texts, "meta": {"billed_units": {"input_tokens": n_tokens}},
        }),
        Wire::Ollama => json!({
            "model": state.wire.model(), "embeddings": rows, "total_duration": 1, "prompt_eval_count": n_tokens,
        }),
        Wire::Tei => json!(rows),
        Wire::Brain => json!({"embeddings": rows, "model": state.wire.model(), "dim": state.dim}),
    };
    answer.to_string().replace("\"<NaN>\"", "NaN").replace("\"<1e999>\"", "1e999")
}

/// Packs the numbers of a vector where base64 is asked for. What is no number cannot be packed, and stays.
fn numbers(wire: Wire, row: &[Value]) -> Value {
    let floats: Option<Vec<f32>> = row.iter().map(|number| number.as_f64().map(|number| number as f32)).collect();
    match floats.filter(|_| wire == Wire::Openai) {
        Some(floats) => json!(STANDARD.encode(floats.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<_>>())),
        None => json!(row),
    }
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
