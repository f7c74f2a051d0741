//! The one middleware: request id, span, metrics, time limit, panics, headers, and problems written as the reader wants them.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    TRANSFER_ENCODING, UPGRADE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use engine::intake::network;
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use crate::api::error::{ApiError, Problem, Reader};
use crate::api::rest;
use crate::app::App;
use crate::caps::{Hold, holding};
use crate::heads::Doubt;
use crate::server::{CallerAddress, ConnectionPermit, MAX_OF_ADDRESS, Peer, client_address};
use crate::terms::Terms;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; \
                      frame-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors";

/// The policy of a file that others sent. It is to be saved; opened by itself, it can load and run nothing.
pub(crate) const FILE_POLICY: &str = "default-src 'none'; sandbox";

/// The policy of the HTML of a letter, which one of our pages frames. It can load and run nothing; a link that a person follows opens outside.
const LETTER_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; \
                             sandbox allow-popups allow-popups-to-escape-sandbox; frame-ancestors 'self'";

/// The content security policy of our answers. Only the sites that `EMBED_ORIGINS` names may frame them.
pub(crate) fn policy(config: &engine::Config) -> HeaderValue {
    let framed_by = if config.embed_origins.is_empty() { "'none'".into() } else { config.embed_origins.join(" ") };
    HeaderValue::try_from(format!("{POLICY} {framed_by}")).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The headers under which the HTML of a letter is shown in a frame of our pages, and of those sites' that frame our pages.
pub(crate) fn letter_headers(config: &engine::Config) -> [(HeaderName, String); 3] {
    let framed_by: String = config.embed_origins.iter().map(|origin| format!(" {origin}")).collect();
    [
        (CONTENT_SECURITY_POLICY, format!("{LETTER_POLICY}{framed_by}")),
        (X_FRAME_OPTIONS, "SAMEORIGIN".to_owned()),
        // Not even the names of the servers that its links lead to are looked up.
        (HeaderName::from_static("x-dns-prefetch-control"), "off".to_owned()),
    ]
}

pub(crate) async fn edge(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let mut proxied = Ok(None);
    if let Some(Peer(peer)) = request.extensions().get().copied() {
        let address = client_address(peer.ip(), request.headers(), &app.env.config);
        request.extensions_mut().insert(CallerAddress(address));
        proxied = hold_of_proxied(&app, peer.ip(), address);
    }
    if let (Ok(Some(hold)), Some(place)) = (&proxied, request.extensions_mut().get_mut::<ConnectionPermit>()) {
        place.give_to(hold.clone()); // a socket outlives its request
    }
    let id = request_id(request.headers());
    let method = method_label(request.method());
    // The route, not the path: a path can hold an id, a query a key, and labels must stay few.
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let reader = Reader {
        wants_html: wants_html(request.uri().path(), request.headers()),
        is_get: request.method() == Method::GET,
        path_and_query: request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned(),
    };
    let span = tracing::info_span!("http", method, route, request.id = id);
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let is_upgrade = request.headers().contains_key(UPGRADE);
    let is_doubtful = request.extensions().get::<Doubt>().is_some_and(Doubt::is_raised);
    let terms = Terms::new(&app.env.config);
    let response = match proxied {
        _ if is_doubtful => {
            let twice = "it says its length twice, in Content-Length and in Transfer-Encoding";
            ApiError::Malformed(StatusCode::BAD_REQUEST, twice.into()).into_response()
        }
        Err(refused) => refused.into_response(),
        Ok(hold) => {
            let response = bounded(terms.clone(), request, next).instrument(span.clone()).await;
            match hold {
                Some(hold) => response.map(|body| holding(body, hold)),
                None => response,
            }
        }
    };
    let mut response = span.in_scope(|| Problem::write(response, &reader, &id));
    protect(response.headers_mut(), &app, &id);
    if terms.is_open_to_pages() {
        rest::open_to_pages(response.headers_mut());
    }
    let is_not_upgraded = is_upgrade && response.status() != StatusCode::SWITCHING_PROTOCOLS;
    if is_chunked || is_doubtful || is_not_upgraded {
        // What follows is not read as a request: a proxy before us may have seen another end.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }

    let (status, seconds) = (response.status(), started.elapsed().as_secs_f64());
    let labels = [("route", route.clone()), ("method", method.to_owned()), ("status", status.as_str().to_owned())];
    metrics::counter!("tributary_http_requests_total", &labels).increment(1);
    metrics::histogram!("tributary_http_request_seconds", "route" => route.clone(), "method" => method).record(seconds);
    let duration_ms = (seconds * 1_000.0).round();
    span.in_scope(|| {
        tracing::debug!(status = status.as_u16(), duration_ms, "{method} {route} answered {}", status.as_u16())
    });
    response
}

/// Counts a request that comes through a trusted proxy for its caller's address. The proxy's connections are everybody's, so they are not
/// counted for it.
fn hold_of_proxied(app: &App, peer: IpAddr, caller: IpAddr) -> Result<Option<Arc<Hold<IpAddr>>>, ApiError> {
    let config = &app.env.config;
    if !config.is_trusted_proxy(peer) || config.is_trusted_proxy(caller) {
        return Ok(None);
    }
    match app.addresses.take(network(caller), MAX_OF_ADDRESS) {
        Some(hold) => Ok(Some(Arc::new(hold))),
        None => {
            metrics::counter!("tributary_http_connections_refused_total").increment(1);
            Err(ApiError::AtOnce("this address has enough requests under way", 1))
        }
    }
}

/// The handler's answer, or a problem when it takes too long or panics. An event stream or a socket answers at once and then goes
/// on outside of this, so no limit ends it.
async fn bounded(terms: Terms, mut request: Request, next: Next) -> Response {
    let begun = tokio::time::Instant::now();
    request.extensions_mut().insert(terms.clone());
    let mut answered = pin!(AssertUnwindSafe(next.run(request)).catch_unwind());
    let mut limit = terms.time();
    loop {
        match tokio::time::timeout_at(begun + limit, &mut answered).await {
            Ok(Ok(response)) => return response,
            Ok(Err(panic)) => {
                // Without what it said: that can hold anything, and the panic hook has logged the place.
                drop(panic);
                return ApiError::Internal(anyhow::anyhow!("the handler panicked")).into_response();
            }
            // Its route has asked for more.
            Err(_) if terms.time() > limit => limit = terms.time(),
            Err(_) => return ApiError::TimedOut.into_response(),
        }
    }
}

fn protect(headers: &mut HeaderMap, app: &App, request_id: &str) {
    // A file may be under a stricter one.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert_with(|| app.policy.clone());
    if app.env.config.embed_origins.is_empty() {
        // The HTML of a letter may be framed by our own pages.
        headers.entry(X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("DENY"));
    } else {
        headers.remove(X_FRAME_OPTIONS); // it cannot name anybody
    }
    let fixed = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: with that, browsers send `Origin: null` with our own forms, and the origin check would refuse them.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert(REQUEST_ID, id);
    }
}

/// The caller's own request id if it is a sane one, so that its log and ours can be joined; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let is_sane = |text: &&str| {
        (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    match headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(is_sane) {
        Some(given) => given.to_owned(),
        None => uuid::Uuid::now_v7().to_string(),
    }
}

/// Pages are read by people. Callers of the API and senders of webhooks get JSON, whatever they accept.
fn wants_html(path: &str, headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let doors =
        ["/api/", "/ingest/", "/webhooks/", "/functions/", "/internal/", "/rest/", "/realtime/", "/.well-known/"];
    let is_program = ["/mcp", "/documents/events"].contains(&path) || doors.iter().any(|door| path.starts_with(door));
    !is_program && accepts.contains("text/html")
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sane_request_ids_are_taken_over() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(text).expect("header"));
            request_id(&headers)
        };
        for sane in ["a", "7f3a-b.c_D", &"x".repeat(64)] {
            assert_eq!(of(sane), sane);
        }
        for odd in ["", "a b", "a\"b", "<script>", &"x".repeat(65)] {
            assert_ne!(of(odd), odd);
            assert_eq!(of(odd).len(), 36, "{odd:?} should be replaced by a uuid");
        }
    }

    #[test]
    fn the_api_never_answers_with_a_page() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/html,*/*"));
        assert!(wants_html("/system/queues", &headers));
        assert!(!wants_html("/api/v1/queues", &headers));
        assert!(!wants_html("/ingest/x", &headers) && !wants_html("/functions/v1/ingest-activity", &headers));
        assert!(!wants_html("/system/queues", &HeaderMap::new()));
    }

    #[test]
    fn methods_are_counted_under_few_names() {
        for (method, label) in
            [("GET", "GET"), ("PATCH", "PATCH"), ("OPTIONS", "OPTIONS"), ("PROPFIND", "other"), ("X-1", "other")]
        {
            assert_eq!(method_label(&Method::from_bytes(method.as_bytes()).expect("a method")), label);
        }
    }

    #[test]
    fn programs_doors_are_never_answered_with_a_page() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/html"));
        for door in [
            "/documents/events",
            "/rest/v1/activities",
            "/realtime/v1/websocket",
            "/ingest/x",
            "/webhooks/x",
            "/api/v1/nothing",
            "/mcp",
            "/.well-known/x",
        ] {
            assert!(!wants_html(door, &headers), "{door}");
        }
        for page in ["/", "/restaurant", "/apiary", "/connections/x"] {
            assert!(wants_html(page, &headers), "{page}");
        }
    }
}
