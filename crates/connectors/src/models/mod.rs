//! Clients of services that run a model: embedding, transcription, chat. This module has what they share: which failures are retried, the
//! limits on time and size of an answer, and error messages that name neither the address nor the key.

mod chat;
mod embed;
mod transcribe;

use std::time::{Duration, Instant};

use anyhow::anyhow;
use domain::{Fault, Secret};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;

pub use self::chat::{ChatClient, Dialect};
pub use self::embed::{EmbedClient, Embedded};
pub use self::transcribe::{TranscribeClient, Transcript};
use crate::Http;
use crate::http::{io_kind, retry_after};

/// Pauses before the second and the third try. A longer outage is left to the caller's own backoff.
const BACKOFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// A failure that took longer than this is not retried here.
const HICCUP: Duration = Duration::from_secs(60);
/// The wait if a service asks for one without saying how long.
const WAIT: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// The reason for a missing answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("{who} asked us to wait {} s", retry_after.as_secs())]
    Wait { who: &'static str, retry_after: Duration },
    /// The same request may succeed later.
    #[error("{0}")]
    Passing(String),
    /// The same request will fail again until somebody changes something.
    #[error("{0}")]
    Lasting(String),
}

/// Converts it for a lane, which has its own retry policy.
impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Wait { retry_after, .. } => Self::RateLimited { retry_after },
            Trouble::Passing(words) | Trouble::Lasting(words) => Self::Transient(anyhow!(words)),
        }
    }
}

/// The properties of one service.
struct Settings {
    /// Its name in errors.
    who: &'static str,
    /// The settings that configure it, for a person to check.
    base_url: &'static str,
    api_key: &'static str,
    answer_within: Duration,
    answer_max_bytes: usize,
}

struct Service {
    http: Http,
    url: String,
    key: Option<Secret>,
    settings: Settings,
}

impl Service {
    fn new(http: &Http, base_url: &str, path: &str, key: Option<Secret>, settings: Settings) -> Self {
        let url = format!("{}{path}", base_url.trim_end_matches('/'));
        Self { http: http.clone(), url, key, settings }
    }

    fn with_bearer(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    /// Returns the body of a successful answer. `fill` writes the request and is called for every try.
    async fn ask(&self, fill: impl Fn(RequestBuilder) -> RequestBuilder) -> Result<Vec<u8>, Trouble> {
        let mut pauses = BACKOFF.into_iter();
        loop {
            let asked = Instant::now();
            let request = self.http.client().post(&self.url).timeout(self.settings.answer_within);
            let trouble = match self.ask_once(fill(request)).await {
                Err(Trouble::Passing(words)) if asked.elapsed() < HICCUP => words,
                settled => return settled,
            };
            let Some(pause) = pauses.next() else { return Err(Trouble::Passing(trouble)) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask_once(&self, request: RequestBuilder) -> Result<Vec<u8>, Trouble> {
        let who = self.settings.who;
        let answer = request.send().await.map_err(|error| self.in_words(&error))?;
        let status = answer.status();
        if status.is_success() {
            return self.read(answer).await;
        }
        let retry_after = retry_after(answer.headers(), WAIT, WAIT_MAX);
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS => Trouble::Wait { who, retry_after: retry_after.unwrap_or(WAIT) },
            StatusCode::SERVICE_UNAVAILABLE if retry_after.is_some() => {
                Trouble::Wait { who, retry_after: retry_after.unwrap_or_default() }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Trouble::Lasting(format!("{who} refused the key ({status}): check {}", self.settings.api_key))
            }
            status if status.is_server_error() => Trouble::Passing(format!("{who} answered {status}")),
            status => Trouble::Lasting(format!("{who} answered {status}{}", self.reason(answer).await)),
        })
    }

    /// Reads a body up to a limit.
    async fn read(&self, mut answer: Response) -> Result<Vec<u8>, Trouble> {
        let (who, most) = (self.settings.who, self.settings.answer_max_bytes);
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| self.in_words(&error))? {
            if body.len() + piece.len() > most {
                return Err(Trouble::Lasting(format!("{who} gave an answer of more than {most} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Returns the service's error code if it is a plain word. Its sentences may quote a key or a text, so they are not used.
    async fn reason(&self, answer: Response) -> String {
        #[derive(Deserialize)]
        struct Complaint {
            error: Reason,
        }
        #[derive(Deserialize)]
        struct Reason {
            code: Option<String>,
            r#type: Option<String>,
        }
        let body = self.read(answer).await.unwrap_or_default();
        let Ok(Complaint { error }) = serde_json::from_slice(&body) else { return String::new() };
        let is_word =
            |word: &String| (1..=60).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let is_secret = |word: &String| self.key.as_ref().is_some_and(|key| key.reveal().contains(word));
        let word = [error.code, error.r#type].into_iter().flatten().find(|word| is_word(word) && !is_secret(word));
        word.map(|word| format!(" ({word})")).unwrap_or_default()
    }

    fn in_words(&self, error: &reqwest::Error) -> Trouble {
        let Settings { who, base_url, api_key, .. } = self.settings;
        let kind = io_kind(error);
        if error.is_builder() {
            Trouble::Lasting(format!("{who} cannot be asked: check {base_url} and {api_key}"))
        } else if error.is_timeout() {
            Trouble::Passing(format!("{who} did not answer in time"))
        } else if error.is_connect() {
            Trouble::Passing(format!("{who} could not be reached{kind}"))
        } else {
            Trouble::Passing(format!("the connection to {who} broke{kind}"))
        }
    }
}
