//! Clients of services that run a model: embedding, transcription, chat. This module has what they share: which failures are retried, the
//! limits on time and size of an answer, and error messages that name neither the address nor the key.

mod chat;
mod complaint;
mod embed;
mod stream;
mod transcribe;

use std::time::{Duration, Instant};

use anyhow::anyhow;
use domain::{Fault, Secret};
use reqwest::{RequestBuilder, Response, StatusCode};

pub use self::chat::{ChatClient, Dialect};
use self::complaint::Complaint;
pub(crate) use self::complaint::is_plain;
pub use self::embed::{
    EmbedClient, EmbedService, EmbedSettings, Embedded, KnownModel, Side, estimated_tokens, services,
};
pub use self::stream::{ChatStream, ChatUsage, Ending};
pub use self::transcribe::{TranscribeClient, Transcript};
use crate::Http;
use crate::http::{io_kind, retry_after};

/// Pauses before the second and the third try. A longer outage is left to the caller's own backoff.
const BACKOFF: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];
/// A failure that took longer than this is not retried here.
const HICCUP: Duration = Duration::from_secs(60);
/// The wait if a service asks for one without saying how long.
const WAIT: Duration = Duration::from_secs(10);
/// Statuses of a key that is not accepted. The last one is Cohere's.
const REFUSED_KEY: [u16; 3] = [401, 403, 498];
/// An error body is not longer.
const COMPLAINT_BYTES: usize = 64 * 1024;
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
    /// A smaller request may succeed.
    #[error("{0}")]
    TooLarge(String),
    /// Every request fails until a person has paid, or has corrected a key.
    #[error("{0}")]
    Blocked(String),
}

/// Converts it for a lane, which has its own retry policy.
impl From<Trouble> for Fault {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Wait { retry_after, .. } => Self::RateLimited { retry_after },
            Trouble::Passing(words) | Trouble::Lasting(words) | Trouble::TooLarge(words) => {
                Self::Transient(anyhow!(words))
            }
            Trouble::Blocked(what) => Self::Blocked { what },
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
    model: &'static str,
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
        self.retried(|| self.ask_once(&fill)).await
    }

    /// The same without another try, for somebody who waits and can go on without an answer.
    async fn ask_once(&self, fill: impl Fn(RequestBuilder) -> RequestBuilder) -> Result<Vec<u8>, Trouble> {
        self.read(self.send(fill(self.request())).await?).await
    }

    /// Returns a successful answer whose body has yet to come. Nothing is retried once it begins.
    async fn open(&self, fill: impl Fn(RequestBuilder) -> RequestBuilder) -> Result<Response, Trouble> {
        self.retried(move || self.send(fill(self.request()))).await
    }

    fn request(&self) -> RequestBuilder {
        self.http.client().post(&self.url).timeout(self.settings.answer_within)
    }

    async fn retried<T, F: Future<Output = Result<T, Trouble>>>(&self, ask_once: impl Fn() -> F) -> Result<T, Trouble> {
        let mut pauses = BACKOFF.into_iter();
        loop {
            let asked = Instant::now();
            let trouble = match ask_once().await {
                Err(Trouble::Passing(words)) if asked.elapsed() < HICCUP => words,
                settled => return settled,
            };
            let Some(pause) = pauses.next() else { return Err(Trouble::Passing(trouble)) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let who = self.settings.who;
        let answer = request.send().await.map_err(|error| self.in_words(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let retry_after = retry_after(answer.headers(), WAIT, WAIT_MAX);
        let complaint = Complaint::new(&self.read_beginning(answer).await);
        let code = complaint.code(self.key.as_ref()).map(|code| format!(" ({code})")).unwrap_or_default();
        let Settings { base_url, api_key, model, .. } = self.settings;
        Err(match status {
            status if complaint.is_unpaid(status) => {
                Trouble::Blocked(format!("{who} makes nothing more until it is paid{code}: see to your account there"))
            }
            status if complaint.is_too_large(status) => {
                Trouble::TooLarge(format!("{who} answered {status}{code}: a text or the request is too large"))
            }
            StatusCode::TOO_MANY_REQUESTS => Trouble::Wait { who, retry_after: retry_after.unwrap_or(WAIT) },
            StatusCode::SERVICE_UNAVAILABLE if retry_after.is_some() => {
                Trouble::Wait { who, retry_after: retry_after.unwrap_or_default() }
            }
            status if REFUSED_KEY.contains(&status.as_u16()) => {
                Trouble::Blocked(format!("{who} refused the key ({status}): check {api_key}"))
            }
            StatusCode::NOT_FOUND => {
                Trouble::Lasting(format!("{who} answered {status}{code}: check {base_url} and {model}"))
            }
            status if status.is_server_error() => Trouble::Passing(format!("{who} answered {status}{code}")),
            status => Trouble::Lasting(format!("{who} answered {status}{code}")),
        })
    }

    /// Reads the beginning of a body that is only looked at for a code. What cannot be read has none.
    async fn read_beginning(&self, mut answer: Response) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < COMPLAINT_BYTES
            && let Ok(Some(piece)) = answer.chunk().await
        {
            body.extend_from_slice(&piece);
        }
        body
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
