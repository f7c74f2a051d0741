//! The client of our own API, for an agent on a device: claims, results, heartbeats, recordings, and the event stream that wakes it.

use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use domain::{Fault, Secret};
use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::Http;

/// Time limits for a recording, and for silence on the event stream, which sends something every fifteen seconds.
const RECORDING_LIMIT: Duration = Duration::from_secs(1_800);
const SILENCE: Duration = Duration::from_secs(45);

/// A connection to the server with this device's key.
#[derive(Clone)]
pub struct Rest {
    http: Http,
    url: String,
    key: Secret,
}

#[derive(Debug, thiserror::Error)]
pub enum RestError {
    /// Another agent holds the activity.
    #[error("{0}")]
    Lost(String),
    /// A retry would be refused too.
    #[error("the server refused it ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("the server could not be reached")]
    Away(#[source] anyhow::Error),
}

impl From<RestError> for Fault {
    fn from(error: RestError) -> Self {
        match error {
            RestError::Lost(_) => Self::Stale,
            RestError::Away(cause) => Self::Transient(cause.context("the server could not be reached")),
            refused => Self::Transient(anyhow!(refused)),
        }
    }
}

/// The body of an error: PostgREST's object, or problem+json.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Complaint {
    message: String,
    title: String,
    detail: String,
}

impl Rest {
    /// `url` is the server's address without a path of the API.
    pub fn new(http: Http, url: &str, key: Secret) -> Self {
        Self { http, url: url.trim_end_matches('/').to_owned(), key }
    }

    /// Calls a SQL function.
    pub async fn call(&self, name: &str, arguments: &Value) -> Result<Value, RestError> {
        let request = self.request(Method::POST, &format!("/rest/v1/rpc/{name}")).json(arguments);
        json(self.send(request).await?).await
    }

    /// Updates the rows that match a PostgREST filter.
    pub async fn update(&self, table: &str, filter: &str, columns: &Value) -> Result<(), RestError> {
        let request = self.request(Method::PATCH, &format!("/rest/v1/{table}?{filter}")).json(columns);
        self.send(request).await.map(|_| ())
    }

    /// Inserts a row, or updates the one with the same `key`; returns it.
    pub async fn upsert(&self, table: &str, key: &str, row: &Value) -> Result<Value, RestError> {
        let request = self
            .request(Method::POST, &format!("/rest/v1/{table}?on_conflict={key}"))
            .header("prefer", "resolution=merge-duplicates,return=representation")
            .header(ACCEPT, "application/vnd.pgrst.object+json")
            .json(row);
        json(self.send(request).await?).await
    }

    /// Fetches the recording of a call: its content type, and its body piece by piece.
    pub async fn recording(&self, id: &str) -> Result<(String, Pieces), RestError> {
        let path = format!("/api/v1/activities/{id}/recording");
        let answer = self.send(self.request(Method::GET, &path).timeout(RECORDING_LIMIT)).await?;
        let given = answer.headers().get("content-type").and_then(|value| value.to_str().ok());
        Ok((given.unwrap_or("application/octet-stream").to_owned(), Pieces(answer)))
    }

    /// Reads the event stream and calls `heard` whenever new activities may be there, until the stream ends.
    pub async fn events(&self, mut heard: impl FnMut()) -> Result<(), RestError> {
        let request = self.request(Method::GET, "/api/v1/events").timeout(Duration::from_secs(86_400));
        let mut answer = self.send(request).await?;
        let mut line = Vec::new();
        loop {
            let piece = match tokio::time::timeout(SILENCE, answer.chunk()).await {
                Ok(piece) => piece.map_err(|error| RestError::Away(error.without_url().into()))?,
                Err(_) => return Err(RestError::Away(anyhow!("the event stream fell silent"))),
            };
            let Some(piece) = piece else { return Ok(()) };
            for byte in piece {
                match byte {
                    b'\n' => {
                        if is_about_activities(&line) {
                            heard();
                        }
                        line.clear();
                    }
                    byte if line.len() < 4_096 => line.push(byte),
                    _ => {}
                }
            }
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.client().request(method, format!("{}{path}", self.url)).bearer_auth(self.key.reveal())
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, RestError> {
        let answer = request.send().await.map_err(|error| RestError::Away(error.without_url().into()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let complaint: Complaint = serde_json::from_slice(&read(answer).await?).unwrap_or_default();
        let said = [complaint.message, complaint.detail, complaint.title];
        let message = said.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| "it did not say why".into());
        Err(match status {
            StatusCode::CONFLICT => RestError::Lost(message),
            // These statuses concern the request or its key. Others may come from a proxy, and a retry may help.
            StatusCode::BAD_REQUEST
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => RestError::Refused { status: status.as_u16(), message },
            status => RestError::Away(anyhow!("it answered {status}: {message}")),
        })
    }
}

/// A body that is read piece by piece.
pub struct Pieces(Response);

impl Pieces {
    pub async fn next(&mut self) -> Result<Option<Bytes>, RestError> {
        self.0.chunk().await.map_err(|error| RestError::Away(error.without_url().into()))
    }
}

/// Whether a notice announces claimable activities. Changes that agents make wake nobody.
fn is_about_activities(line: &[u8]) -> bool {
    let is = |word: &str| line.windows(word.len()).any(|part| part == word.as_bytes());
    let is_new = is(r#""kind":"activities""#) && is(r#""op":"insert""#);
    line.starts_with(b"data:") && (is_new || is(r#""op":"resync""#))
}

async fn json(answer: Response) -> Result<Value, RestError> {
    let body = read(answer).await?;
    serde_json::from_slice(&body)
        .map_err(|_| RestError::Away(anyhow!("its answer is not JSON: is this a Tributary server?")))
}

async fn read(mut answer: Response) -> Result<Vec<u8>, RestError> {
    const MOST_BYTES: usize = 64 << 20;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| RestError::Away(error.without_url().into()))? {
        if body.len() + piece.len() > MOST_BYTES {
            return Err(RestError::Away(anyhow!("its answer has no end")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
