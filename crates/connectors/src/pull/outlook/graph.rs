//! Requests to Graph: with ids that stay the same when a message moves, links that lead only to the API's own address, and batches whose
//! throttled parts are asked for again.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::spec::REQUESTS;
use super::wire::{Answered, Batch};
use crate::pull::http::{Api, ApiAnswer, Bounds, Call, Refused};
use crate::pull::{Account, Limit, PullError};

const LIMITS: [&Limit; 1] = [&REQUESTS];
/// The parts of one batch.
pub(super) const BATCH: usize = 20;
/// A batch whose parts are throttled is asked again that often, as long as some of it was answered.
const ROUNDS: usize = 4;
/// A longer wait is the caller's.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) const IMMUTABLE: &str = r#"IdType="ImmutableId""#;

pub(super) struct Graph {
    api: Api,
    /// The path of the API's address, such as `/v1.0`.
    base_path: String,
}

/// One part of a batch. Every part is a GET.
pub(super) struct Part {
    pub path: String,
    pub prefer: String,
}

impl Part {
    pub fn new(path: String) -> Self {
        Self { path, prefer: IMMUTABLE.to_owned() }
    }
}

/// The answer to a part: its body, or a refusal that will come again.
pub(super) enum Told {
    Body(Box<RawValue>),
    Refused { status: u16, code: Option<String> },
}

impl Graph {
    pub fn new(api: Api, base_url: &str) -> Self {
        let base_path = Url::parse(base_url).map(|url| url.path().trim_end_matches('/').to_owned());
        Self { api, base_path: base_path.unwrap_or_default() }
    }

    pub fn who(&self) -> &'static str {
        self.api.who()
    }

    pub async fn get<T: DeserializeOwned>(
        &self,
        account: &Account<'_>,
        path: &str,
        prefer: &str,
    ) -> Result<ApiAnswer<T>, Refused> {
        let headers = [("prefer", prefer)];
        self.api.call(account, &LIMITS, &Call { headers: &headers, ..Call::get(path) }).await
    }

    pub async fn send<T: DeserializeOwned>(
        &self,
        account: &Account<'_>,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<T, Refused> {
        let headers = [("prefer", IMMUTABLE)];
        let call = Call { method, path, query: &[], headers: &headers, body: Some(body) };
        Ok(self.api.call(account, &LIMITS, &call).await?.body)
    }

    pub async fn delete(&self, account: &Account<'_>, path: &str) -> Result<(), Refused> {
        self.api.tell(account, &LIMITS, &Call { method: Method::DELETE, ..Call::get(path) }).await
    }

    /// Fetches a file. `is_page`: it is a web page, so that one that comes in its place cannot be told from it.
    pub async fn download(
        &self,
        account: &Account<'_>,
        path: &str,
        is_page: bool,
        bounds: Bounds,
    ) -> Result<Vec<u8>, Refused> {
        match is_page {
            true => self.api.download_page(account, &LIMITS, path, &[], bounds).await,
            false => self.api.download(account, &LIMITS, path, &[], bounds).await,
        }
    }

    /// The path and query of a link that Graph gave, below the API's address. Whatever host a link names, the bearer goes nowhere else.
    pub fn below(&self, link: &str) -> Result<String, PullError> {
        let odd = || PullError::Unreadable {
            what: format!("{} named a page that is not its own", self.who()),
            raw: String::new(),
        };
        let url = Url::parse(link).map_err(|_| odd())?;
        let path = url.path().strip_prefix(self.base_path.as_str()).filter(|path| path.starts_with('/'));
        let path = path.ok_or_else(odd)?;
        Ok(match url.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        })
    }

    /// Asks for all parts, twenty at a time, and returns their answers in the same order. A part that stays throttled, or that failed for
    /// another reason that passes, fails all.
    pub async fn all(&self, account: &Account<'_>, parts: &[Part]) -> Result<Vec<Told>, PullError> {
        let mut told = Vec::with_capacity(parts.len());
        for parts in parts.chunks(BATCH) {
            told.extend(self.batch(account, parts).await?);
        }
        Ok(told)
    }

    async fn batch(&self, account: &Account<'_>, parts: &[Part]) -> Result<Vec<Told>, PullError> {
        let mut told: Vec<Option<Told>> = parts.iter().map(|_| None).collect();
        for round in 1.. {
            let waiting: Vec<usize> = (0..parts.len()).filter(|index| told[*index].is_none()).collect();
            if waiting.is_empty() {
                break;
            }
            let before = waiting.len();
            let wait = self.ask(account, parts, &waiting, &mut told).await?;
            let n_left = told.iter().filter(|told| told.is_none()).count();
            let Some(wait) = wait else { continue };
            if n_left == before || wait > PATIENCE || round == ROUNDS {
                return Err(PullError::RateLimited { who: self.who(), retry_after: wait });
            }
            tokio::time::sleep(wait).await;
        }
        Ok(told.into_iter().flatten().collect())
    }

    /// Asks for these parts once. Returns the longest wait that a throttled part asks for.
    async fn ask(
        &self,
        account: &Account<'_>,
        parts: &[Part],
        waiting: &[usize],
        told: &mut [Option<Told>],
    ) -> Result<Option<Duration>, PullError> {
        // Each part counts towards the limit, and the batch itself does not.
        account.pace.turn(&REQUESTS, u32::try_from(waiting.len()).unwrap_or(u32::MAX)).await?;
        let part = |index: &usize| {
            let Part { path, prefer } = &parts[*index];
            json!({ "id": index.to_string(), "method": "GET", "url": path, "headers": { "Prefer": prefer } })
        };
        let question = json!({ "requests": waiting.iter().map(part).collect::<Vec<_>>() });
        let call = Call { method: Method::POST, body: Some(&question), ..Call::get("/$batch") };
        let answer: ApiAnswer<Batch> = self.api.call(account, &[], &call).await?;
        let mut wait = None;
        for answered in answer.body.responses.0 {
            let index = answered.id.parse().ok().filter(|index| waiting.contains(index));
            let Some(index) = index else { continue };
            match self.heard(account, answered) {
                Ok(heard) => told[index] = Some(heard),
                Err(PullError::RateLimited { retry_after, .. }) => wait = wait.max(Some(retry_after)),
                Err(error) => return Err(error),
            }
        }
        if wait.is_none() && waiting.iter().any(|index| told[*index].is_none()) {
            return Err(PullError::Passing(format!("{} answered only a part of what was asked", self.who())));
        }
        Ok(wait)
    }

    fn heard(&self, account: &Account<'_>, answered: Answered) -> Result<Told, PullError> {
        let body = answered.body.unwrap_or_default();
        if (200..300).contains(&answered.status) {
            return Ok(Told::Body(body));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &answered.headers {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&text));
            if let (Ok(name), Ok(value)) = pair {
                headers.insert(name, value);
            }
        }
        match self.api.refused(account, answered.status, &headers, body.get().as_bytes()) {
            Refused::Lasting { status: 504, .. } => Err(self.too_much()),
            Refused::Lasting { status, code, .. } => Ok(Told::Refused { status, code }),
            other => Err(other.into()),
        }
    }

    /// Graph took too long over something that it cannot be asked less of.
    pub fn too_much(&self) -> PullError {
        PullError::Passing(format!("{} is not well (504)", self.who()))
    }

    /// Parses the body of a part.
    pub fn parsed<T: DeserializeOwned>(&self, body: &RawValue) -> Result<T, PullError> {
        serde_json::from_str(body.get()).map_err(|_| PullError::Unreadable {
            what: format!("{} gave an answer of another form", self.who()),
            raw: body.get().chars().take(1_000).collect(),
        })
    }
}

/// A refusal for which nobody has a better meaning.
pub(super) fn lasting(graph: &Graph, refused: Refused) -> PullError {
    match refused {
        Refused::Lasting { status: 504, .. } => graph.too_much(),
        other => other.into(),
    }
}
