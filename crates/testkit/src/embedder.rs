//! A service on this machine that speaks OpenAI's embeddings API, writes down what it was asked, and misbehaves when told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How it answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Manner {
    Well,
    /// After that long.
    Slow(Duration),
    /// With this status, these header lines (each ending in `\r\n`) and this body.
    Status(u16, &'static str, &'static str),
    /// Hangs up without a word.
    HangsUp,
    WrongDim,
    /// As Python writes it.
    Nan,
    /// As JavaScript writes it.
    Null,
    /// A number too large to be one.
    Infinite,
    Zeros,
    TooFew,
    TooMany,
    SameIndex,
    NoJson,
    /// More bytes than anybody should read.
    Endless,
}

/// One call, as it came in.
#[derive(Clone, Debug)]
pub struct Call {
    pub model: String,
    pub texts: Vec<String>,
    pub dimensions: Option<usize>,
    /// The header, whole.
    pub authorization: Option<String>,
}

pub struct FakeEmbedder {
    pub port: u16,
    state: Arc<State>,
    is_wanted: watch::Sender<bool>,
    is_listening: watch::Receiver<bool>,
}

struct State {
    dim: usize,
    calls: Mutex<Vec<Call>>,
    /// From now on, and before that for this many calls.
    manner: Mutex<(Manner, Vec<Manner>)>,
}

impl FakeEmbedder {
    pub async fn start(dim: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State { dim, calls: Mutex::default(), manner: Mutex::new((Manner::Well, Vec::new())) });
        let (is_wanted, wanted) = watch::channel(true);
        let (listening, is_listening) = watch::channel(true);
        tokio::spawn(listen(listener, state.clone(), wanted, listening));
        Self { port, state, is_wanted, is_listening }
    }

    /// What `EMBED_BASE_URL` is set to.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Settings that make it the embedder: `config(&fake.flags())`.
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

    /// From now on.
    pub fn answer(&self, manner: Manner) {
        *lock(&self.state.manner) = (manner, Vec::new());
    }

    /// The next calls in turn; then as before.
    pub fn answer_next(&self, manners: &[Manner]) {
        lock(&self.state.manner).1 = manners.iter().rev().cloned().collect();
    }

    /// While it is away, connections are refused.
    pub async fn go_away(&self) {
        self.is_wanted.send_replace(false);
        let _ = self.is_listening.clone().wait_for(|on| !on).await;
    }

    pub async fn come_back(&self) {
        self.is_wanted.send_replace(true);
        let _ = self.is_listening.clone().wait_for(|on| *on).await;
    }

    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state.calls).clone()
    }

    /// Every text it was asked for, in order.
    pub fn texts(&self) -> Vec<String> {
        self.calls().into_iter().flat_map(|call| call.texts).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(
    mut listener: TcpListener,
    state: Arc<State>,
    mut wanted: watch::Receiver<bool>,
    listening: watch::Sender<bool>,
) {
    let address: SocketAddr = listener.local_addr().expect("an address");
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => Some(accepted),
            _ = wanted.wait_for(|on| !on) => None,
        };
        match accepted {
            Some(Ok((client, _))) => drop(tokio::spawn(serve(client, state.clone()))),
            Some(Err(_)) => {}
            None => {
                drop(listener);
                listening.send_replace(false);
                if wanted.wait_for(|on| *on).await.is_err() {
                    return; // the test is over
                }
                listener = TcpListener::bind(address).await.expect("its port again");
                listening.send_replace(true);
            }
        }
    }
}

#[derive(Deserialize)]
struct Question {
    model: String,
    input: Vec<String>,
    encoding_format: String,
    dimensions: Option<usize>,
}

/// Answers one request and closes.
async fn serve(mut client: TcpStream, state: Arc<State>) -> Option<()> {
    let mut received = Vec::new();
    let head_bytes = loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
        client.read_buf(&mut received).await.ok().filter(|n| *n > 0)?;
    };
    let head = String::from_utf8_lossy(&received[..head_bytes]).into_owned();
    let header = |name: &str| {
        let of_line = |line: &str| {
            line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        head.lines().find_map(of_line)
    };
    let body_bytes: usize = header("content-length")?.parse().ok()?;
    while received.len() < head_bytes + body_bytes {
        client.read_buf(&mut received).await.ok().filter(|n| *n > 0)?;
    }
    let question: Question = serde_json::from_slice(&received[head_bytes..]).ok()?;
    let is_known = head.starts_with("POST /v1/embeddings ") && question.encoding_format == "float";
    lock(&state.calls).push(Call {
        model: question.model,
        texts: question.input.clone(),
        dimensions: question.dimensions,
        authorization: header("authorization"),
    });
    let manner = {
        let mut manner = lock(&state.manner);
        manner.1.pop().unwrap_or_else(|| manner.0.clone())
    };
    if manner == Manner::Endless {
        client
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
            .await
            .ok()?;
        loop {
            client.write_all(&[b' '; 64 * 1024]).await.ok()?;
        }
    }
    let (status, headers, body) = match manner {
        _ if !is_known => (404, "", String::new()),
        Manner::HangsUp => return None,
        Manner::Status(status, headers, body) => (status, headers, body.to_owned()),
        Manner::NoJson => (200, "", "<html>".to_owned()),
        Manner::Slow(delay) => {
            tokio::time::sleep(delay).await;
            (200, "", answer(&state, &question.input, &Manner::Well))
        }
        manner => (200, "", answer(&state, &question.input, &manner)),
    };
    let head =
        format!("HTTP/1.1 {status} Answer\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    client.write_all((head + &body).as_bytes()).await.ok()?;
    client.shutdown().await.ok()
}

/// The last text first: `index` says which is which.
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

/// Texts that share words are near each other; not of unit length, as with some services.
fn vector(text: &str, dim: usize) -> Vec<f32> {
    let mut vector = vec![0.01; dim];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = word.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        vector[hash as usize % dim] += 1.0;
        vector[(hash >> 13) as usize % dim] -= 0.5;
    }
    vector
}
