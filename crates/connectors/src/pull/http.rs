//! Requests to a provider's own API: in turn, with a bearer that goes nowhere else, within bounds of time and size. There are no retries
//! here: the caller decides on those.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::Secret;
use domain::text::replace_nul;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::complaint::{Complaint, Meaning};
use super::spec::Provider;
use super::{Account, Limit, PullError};
use crate::Http;
use crate::http::{answered_at, io_kind, retry_after};

/// The longest wait, whatever the provider asks for.
const WAIT_MAX: Duration = Duration::from_secs(86_400);
/// The part of an unreadable answer that is kept for a person.
const RAW_MAX_BYTES: usize = 16 * 1024;
const COMPLAINT_MAX_BYTES: usize = 64 * 1024;

/// Limits on an answer.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub total: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
    pub bytes: usize,
}

const JSON: Bounds = Bounds { total: Duration::from_secs(60), idle: Duration::from_secs(20), bytes: 32 * 1024 * 1024 };

/// The API of a provider.
pub struct Api {
    http: Http,
    base_url: String,
    provider: Provider,
    pub(super) json: Bounds,
}

/// A request that is more than a GET or a POST of JSON.
pub struct Call<'a> {
    pub method: Method,
    /// Below the API's address. It may have a query of its own, as links that the provider gave have.
    pub path: &'a str,
    pub query: &'a [(&'a str, &'a str)],
    pub headers: &'a [(&'static str, &'a str)],
    pub body: Option<&'a Value>,
}

impl<'a> Call<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, query: &[], headers: &[], body: None }
    }
}

/// A good answer of a provider's API.
#[derive(Debug)]
pub struct ApiAnswer<T> {
    pub body: T,
    /// The time of the answer by the provider's clock.
    pub answered_at: Option<DateTime<Utc>>,
}

/// The reasons why there is no good answer. The meaning of a lasting refusal depends on the request; unless the caller knows better it is
/// [`PullError::Forbidden`].
#[derive(Debug)]
pub enum Refused {
    Lasting { who: &'static str, status: u16, code: Option<String>, answered_at: Option<DateTime<Utc>> },
    TooLarge { who: &'static str, most: usize, raw: String },
    Other(PullError),
}

impl From<PullError> for Refused {
    fn from(error: PullError) -> Self {
        Self::Other(error)
    }
}

impl From<Refused> for PullError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Lasting { who, status, code, .. } => {
                Self::Forbidden { who, code: code.unwrap_or_else(|| format!("http_{status}")) }
            }
            Refused::TooLarge { who, most, raw } => {
                Self::Unreadable { what: format!("{who} gave an answer of more than {most} bytes"), raw }
            }
            Refused::Other(error) => error,
        }
    }
}

impl Api {
    /// `base_url` may end with a slash.
    pub fn new(http: &Http, base_url: &str, provider: Provider) -> Self {
        Self { http: http.clone(), base_url: base_url.trim_end_matches('/').to_owned(), provider, json: JSON }
    }

    /// The provider, as people call it.
    pub fn who(&self) -> &'static str {
        self.provider.label
    }

    /// Asks for JSON. The request counts towards each of `limits` with one unit.
    pub async fn get<T: DeserializeOwned>(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<ApiAnswer<T>, Refused> {
        let request = self.request(Method::GET, path, query)?.header(ACCEPT, "application/json");
        self.json(account, limits, request).await
    }

    /// Asks for JSON with a body of JSON.
    pub async fn post<T: DeserializeOwned>(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        path: &str,
        body: &Value,
    ) -> Result<ApiAnswer<T>, Refused> {
        let request = self.request(Method::POST, path, &[])?.header(ACCEPT, "application/json").json(body);
        self.json(account, limits, request).await
    }

    /// Sends a request and reads JSON.
    pub async fn call<T: DeserializeOwned>(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        call: &Call<'_>,
    ) -> Result<ApiAnswer<T>, Refused> {
        let request = self.called(call)?.header(ACCEPT, "application/json");
        self.json(account, limits, request).await
    }

    /// Sends a request whose answer has no body that anybody reads.
    pub async fn tell(&self, account: &Account<'_>, limits: &[&'static Limit], call: &Call<'_>) -> Result<(), Refused> {
        let request = self.called(call)?;
        self.ask(account, limits, request, self.json).await.map(|_| ())
    }

    /// Reads a refusal that came as a part of another answer.
    pub(super) fn refused(&self, account: &Account<'_>, status: u16, headers: &HeaderMap, body: &[u8]) -> Refused {
        self.refusal(status, headers, (self.provider.complaint)(status, body), account.token)
    }

    fn called(&self, call: &Call<'_>) -> Result<RequestBuilder, PullError> {
        let mut request = self.request(call.method.clone(), call.path, call.query)?;
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        Ok(match call.body {
            Some(body) => request.json(body),
            None => request,
        })
    }

    /// Sends a body of another form, and returns the answer as it came: its type, and its bytes.
    pub async fn send_as(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        path: &str,
        (content_type, body): (&str, String),
        bounds: Bounds,
    ) -> Result<(Option<String>, Vec<u8>), Refused> {
        let request = self.request(Method::POST, path, &[])?.header(CONTENT_TYPE, content_type).body(body);
        let (headers, body) = self.ask(account, limits, request, bounds).await?;
        if is_page(&headers) {
            return Err(self.unreadable("a web page instead of data", &body, account.token).into());
        }
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok((content_type, body))
    }

    /// Fetches a file within `bounds`.
    pub async fn download(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        path: &str,
        query: &[(&str, &str)],
        bounds: Bounds,
    ) -> Result<Vec<u8>, Refused> {
        let request = self.request(Method::GET, path, query)?;
        let (headers, body) = self.ask(account, limits, request, bounds).await?;
        if is_page(&headers) {
            return Err(self.unreadable("a web page instead of a file", &body, account.token).into());
        }
        Ok(body)
    }

    /// Fetches a file within `bounds` that may be a web page itself.
    pub async fn download_page(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        path: &str,
        query: &[(&str, &str)],
        bounds: Bounds,
    ) -> Result<Vec<u8>, Refused> {
        let request = self.request(Method::GET, path, query)?;
        Ok(self.ask(account, limits, request, bounds).await?.1)
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> Result<RequestBuilder, PullError> {
        let url = format!("{}{path}", self.base_url);
        // An empty list would still leave a question mark.
        let parsed = if query.is_empty() { Url::parse(&url) } else { Url::parse_with_params(&url, query) };
        let url = parsed.map_err(|_| self.cannot_ask())?;
        Ok(self.http.client().request(method, url))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        request: RequestBuilder,
    ) -> Result<ApiAnswer<T>, Refused> {
        let (headers, body) = self.ask(account, limits, request, self.json).await?;
        let wrong = |what: &str| Err(self.unreadable(what, &body, account.token).into());
        if is_page(&headers) {
            return wrong("a web page instead of data");
        }
        if std::str::from_utf8(&body).is_err() {
            return wrong("an answer that is no UTF-8");
        }
        match serde_json::from_slice(&body) {
            Ok(parsed) => Ok(ApiAnswer { body: parsed, answered_at: answered_at(&headers) }),
            Err(error) if error.is_data() => wrong("an answer of another form"),
            Err(error) if error.is_eof() => wrong("an answer that is cut off"),
            Err(_) => wrong("an answer that is not JSON"),
        }
    }

    /// The head and the body of a success.
    async fn ask(
        &self,
        account: &Account<'_>,
        limits: &[&'static Limit],
        request: RequestBuilder,
        bounds: Bounds,
    ) -> Result<(HeaderMap, Vec<u8>), Refused> {
        for limit in limits {
            account.pace.turn(limit, 1).await?;
        }
        let request = request.bearer_auth(account.token.reveal()).header(ACCEPT_ENCODING, "identity");
        let answer = request.timeout(bounds.total).send().await.map_err(|error| self.in_words(&error))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        if !status.is_success() {
            let bounds = Bounds { bytes: COMPLAINT_MAX_BYTES, ..bounds };
            let body = self.read(answer, bounds, account.token).await.unwrap_or_default();
            let complaint = (self.provider.complaint)(status.as_u16(), &body);
            return Err(self.refusal(status.as_u16(), &headers, complaint, account.token));
        }
        let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
        if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
            return Err(self.unreadable("a packed answer, which nobody asked for", &[], account.token).into());
        }
        let body = self.read(answer, bounds, account.token).await?;
        if let Some(complaint) = self.provider.hidden_complaint.and_then(|find| find(&body)) {
            return Err(self.refusal(status.as_u16(), &headers, complaint, account.token));
        }
        Ok((headers, body))
    }

    /// Reads a body within its bounds.
    async fn read(&self, mut answer: Response, bounds: Bounds, token: &Secret) -> Result<Vec<u8>, Refused> {
        let too_large =
            |body: &[u8]| Err(Refused::TooLarge { who: self.who(), most: bounds.bytes, raw: beginning(body, token) });
        if answer.content_length().is_some_and(|bytes| bytes > bounds.bytes as u64) {
            return too_large(&[]);
        }
        let mut body = Vec::new();
        loop {
            let Ok(read) = timeout(bounds.idle, answer.chunk()).await else {
                return Err(PullError::Passing(format!("{} fell silent in the middle of an answer", self.who())).into());
            };
            let Some(piece) = read.map_err(|error| self.in_words(&error))? else { return Ok(body) };
            if body.len() + piece.len() > bounds.bytes {
                return too_large(&body);
            }
            body.extend_from_slice(&piece);
        }
    }

    fn refusal(&self, status: u16, headers: &HeaderMap, complaint: Complaint, token: &Secret) -> Refused {
        let who = self.who();
        let code = complaint.code.filter(|code| !token.reveal().contains(code.as_str()));
        let told = retry_after(headers, complaint.wait, WAIT_MAX);
        match (complaint.meaning, told) {
            (Meaning::Wait, told) => PullError::RateLimited { who, retry_after: told.unwrap_or(complaint.wait) }.into(),
            (Meaning::Trouble, Some(retry_after)) if status == 503 => {
                PullError::RateLimited { who, retry_after }.into()
            }
            (Meaning::Token, _) => PullError::Unauthorized { who }.into(),
            (Meaning::Trouble, _) => {
                let code = code.map(|code| format!(", {code}")).unwrap_or_default();
                PullError::Passing(format!("{who} is not well ({status}{code})")).into()
            }
            (Meaning::Lasting, _) => {
                Refused::Lasting { who, status, code, answered_at: complaint.told_at.or(answered_at(headers)) }
            }
        }
    }

    /// An answer that is not the API's; `what` ends the sentence.
    pub(super) fn unreadable(&self, what: &str, body: &[u8], token: &Secret) -> PullError {
        PullError::Unreadable { what: format!("{} gave {what}", self.who()), raw: beginning(body, token) }
    }

    fn cannot_ask(&self) -> PullError {
        PullError::Passing(format!("{} cannot be asked: check its address in the settings", self.who()))
    }

    fn in_words(&self, error: &reqwest::Error) -> PullError {
        let (who, kind) = (self.who(), io_kind(error));
        if error.is_builder() {
            return self.cannot_ask();
        }
        PullError::Passing(if error.is_timeout() {
            format!("{who} did not answer in time")
        } else if error.is_connect() {
            format!("{who} could not be reached{kind}")
        } else {
            format!("the connection to {who} broke{kind}")
        })
    }
}

/// Whether the answer is a web page: a proxy stands between us and the provider, or the address is not the API's.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    kind.len() >= 9 && kind[..9].eq_ignore_ascii_case(b"text/html")
}

/// The beginning of a body, for a person: as a row takes it, and without the token, which a provider may repeat.
fn beginning(body: &[u8], token: &Secret) -> String {
    let token = token.reveal();
    // A little more at first, so that the end does not cut the token in two.
    let text = replace_nul(&String::from_utf8_lossy(&body[..body.len().min(RAW_MAX_BYTES + token.len())]));
    let mut text = if token.is_empty() { text } else { text.replace(token, "***") };
    text.truncate(text.floor_char_boundary(RAW_MAX_BYTES));
    text
}
