//! Services with a model behind them: they make vectors, hear, and read for us. What they have in common is here: who is asked again and
//! who is not, how long and how much of an answer is waited for, and errors in words that name neither address nor key.

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

/// Before the second and the third try: a hiccup is gone by then, and what is not is for the caller's own backoff.
const BACKOFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// Who took that long to fail had no hiccup.
const HICCUP: Duration = Duration::from_secs(60);
/// For who asks us to wait and does not say how long.
const WAIT: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    #[error("{who} asked us to wait {} s", retry_after.as_secs())]
    Wait { who: &'static str, retry_after: Duration },
    /// The same may succeed later.
    #[error("{0}")]
    Passing(String),
    /// The same will fail again, unless somebody changes something.
    #[error("{0}")]
    Lasting(String),
}

/// For a lane, which has its own patience.
impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Wait { retry_after, .. } => Self::RateLimited { retry_after },
            Trouble::Passing(words) | Trouble::Lasting(words) => Self::Transient(anyhow!(words)),
        }
    }
}

/// What is particular about a service.
struct Settings {
    /// As errors call it.
    who: &'static str,
    /// The settings that lead to it, for a person to check.
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

    /// The body of a good answer. `fill` writes the question, as often as it is asked.
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

    /// Reads a body as it comes, and no more of it than is sensible.
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

    /// The service's own name for what it did not like, if that is a plain word. Its sentences may quote a key or a text.
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
