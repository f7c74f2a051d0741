//! The terms of a request: how long it may take, how large its body may be, and whether pages of other sites may read the answer. A route that
//! needs other terms than the usual asks for them on its own line in the router; the edge keeps them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{Next, from_fn};
use axum::routing::MethodRouter;
use engine::Config;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::app::App;

/// Larger webhooks are given time to arrive.
const LARGE_BYTES: u64 = 1 << 20;
/// Longer than fetching a recording may take, because the first to ask waits for that.
const RECORDING_LIMIT: Duration = Duration::from_secs(660);
/// Connecting an account asks its provider twice.
const CONNECT_LIMIT: Duration = Duration::from_secs(90);
/// Longer than a language model may write.
const ANSWER_LIMIT: Duration = Duration::from_secs(150);

/// Routes whose terms are not the usual ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A large document takes minutes to embed, and breaking it off would lose them.
    Document,
    /// A large mail takes its time on the way here.
    Webhook,
    /// A recording is fetched when it is first asked for.
    Recording,
    /// Connecting a source waits for its provider.
    Connect,
    /// Many texts take a while to embed. They are small.
    Embed,
    /// An answer waits for a language model.
    Answer,
    /// A call of a tool can wait for its turn, or embed a long text.
    Mcp,
}

impl Limit {
    /// How long a request may take, by its headers and the two limits of the settings.
    fn time(self, usual: Duration, long: Duration, headers: &HeaderMap) -> Duration {
        match self {
            Self::Document | Self::Embed | Self::Mcp => long,
            Self::Webhook if content_length(headers) > LARGE_BYTES => long,
            Self::Webhook => usual,
            Self::Recording => RECORDING_LIMIT,
            Self::Connect => CONNECT_LIMIT.max(usual),
            Self::Answer => ANSWER_LIMIT.max(usual),
        }
    }

    /// The largest body, where the usual limit does not hold. (A webhook's depends on its channel; intake counts it.)
    fn body(self, config: &Config) -> Option<usize> {
        (self == Self::Document).then_some(config.document_max_bytes)
    }
}

fn content_length(headers: &HeaderMap) -> u64 {
    headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0)
}

/// A request's terms. The edge puts them into the request, its route may change them, the edge reads them. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Terms(Arc<Inner>);

struct Inner {
    config: Arc<Config>,
    time: Mutex<Duration>,
    is_open_to_pages: AtomicBool,
}

impl Terms {
    /// The usual ones.
    pub fn new(config: &Arc<Config>) -> Self {
        Self(Arc::new(Inner {
            config: config.clone(),
            time: Mutex::new(Duration::from_secs(config.request_secs)),
            is_open_to_pages: AtomicBool::new(false),
        }))
    }

    pub fn time(&self) -> Duration {
        *self.0.time.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_open_to_pages(&self) -> bool {
        self.0.is_open_to_pages.load(Ordering::Relaxed)
    }

    fn limit(&self, limit: Limit, request: &mut Request) {
        let config = &self.0.config;
        let (usual, long) = (Duration::from_secs(config.request_secs), Duration::from_secs(config.document_secs));
        *self.0.time.lock().unwrap_or_else(PoisonError::into_inner) = limit.time(usual, long, request.headers());
        if let Some(bytes) = limit.body(config) {
            DefaultBodyLimit::max(bytes).apply(request);
        }
    }
}

/// The terms that a route can ask for.
pub(crate) trait WithTerms: Sized {
    fn limited(self, limit: Limit) -> Self;

    /// Pages of other sites may call it and read the answer.
    fn open_to_pages(self) -> Self;
}

impl WithTerms for MethodRouter<App> {
    fn limited(self, limit: Limit) -> Self {
        self.layer(from_fn(move |mut request: Request, next: Next| {
            if let Some(terms) = request.extensions().get::<Terms>().cloned() {
                terms.limit(limit, &mut request);
            }
            next.run(request)
        }))
    }

    fn open_to_pages(self) -> Self {
        self.layer(from_fn(|request: Request, next: Next| {
            if let Some(terms) = request.extensions().get::<Terms>() {
                terms.0.is_open_to_pages.store(true, Ordering::Relaxed);
            }
            next.run(request)
        }))
    }
}

impl WithTerms for UtoipaMethodRouter<App> {
    fn limited(self, limit: Limit) -> Self {
        let (schemas, paths, router) = self;
        (schemas, paths, router.limited(limit))
    }

    fn open_to_pages(self) -> Self {
        let (schemas, paths, router) = self;
        (schemas, paths, router.open_to_pages())
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn each_limit_has_its_time() {
        let of = |limit: Limit, content_length: &'static str, usual: u64| {
            let headers = HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from_static(content_length))]);
            limit.time(Duration::from_secs(usual), Duration::from_secs(600), &headers).as_secs()
        };
        for (limit, content_length, usual, secs) in [
            (Limit::Document, "10", 30, 600),
            (Limit::Webhook, "1048576", 30, 30),
            (Limit::Webhook, "1048577", 30, 600),
            (Limit::Webhook, "many", 30, 30),
            (Limit::Recording, "0", 30, 660),
            (Limit::Connect, "10", 30, 90),
            (Limit::Connect, "10", 120, 120),
            (Limit::Answer, "10", 30, 150),
            (Limit::Answer, "10", 200, 200),
        ] {
            assert_eq!(of(limit, content_length, usual), secs, "{limit:?} {content_length} {usual}");
        }
    }
}
