//! The routes of Graph: one handler, since a batch asks the same questions.

use std::sync::Arc;

use axum::body::{Body as HttpBody, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Json, Router};
use serde_json::Value;

use super::Mail;
use super::batch::{pairs, segments};
use super::fake::{OUTLOOK, error, said};
use super::reading::{Ask, Body, Said};
use crate::manners::Manner;
use crate::oauth::grants::Caller;
use crate::{Shared, lock};

const BASE: &str = "/outlook/v1.0";
const BODY_BYTES: usize = 1024 * 1024;
/// Requests to one mailbox at the same time.
const AT_ONCE: usize = 4;

pub(super) fn routes(_: &Arc<Shared>) -> Router<Arc<Shared>> {
    Router::new().route(&format!("{BASE}/{{*path}}"), any(handle))
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let now = shared.clock.now();
    let mut response = answered(&shared, request).await.unwrap_or_else(|said| shown(*said));
    // By the clock of the fakes, which may be ahead of this machine's.
    if let Ok(date) = HeaderValue::from_str(&now.format("%a, %d %b %Y %H:%M:%S GMT").to_string()) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

async fn answered(shared: &Arc<Shared>, request: Request) -> Result<Response, Box<Said>> {
    let now = shared.clock.now();
    let (parts, body) = request.into_parts();
    let caller = parts.extensions.get::<Caller>().filter(|caller| caller.provider == OUTLOOK && caller.is_valid);
    let caller = caller.cloned().ok_or_else(|| Box::new(error(401, now).into()))?;
    let path = segments(parts.uri.path().strip_prefix(BASE).unwrap_or_default());
    let may_read = caller.scope.is_empty() || caller.scope.split(' ').any(|scope| scope.ends_with("Mail.Read"));
    if !may_read && path != ["me"] {
        return Err(Box::new(error(403, now).into()));
    }
    let body = to_bytes(body, BODY_BYTES).await.unwrap_or_default();
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let manner = parts.extensions.get::<Manner>().cloned();
    let prefer: Vec<&str> = parts.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok()).collect();
    let base = format!("{}{BASE}", shared.url);
    let ask = Ask {
        path,
        query: pairs(parts.uri.query().unwrap_or_default()),
        prefer: prefer.join(", "),
        base: &base,
        manner: manner.as_ref(),
        caller: &caller,
        now,
    };
    let method = parts.method.as_str();
    let names: Vec<&str> = ask.path.iter().map(String::as_str).collect();
    if let ["subscriptions", rest @ ..] = names.as_slice() {
        return Ok(shown(super::notices::handle(shared, &ask, method, rest, &json).await));
    }
    let _turn = Turn::begin(shared, now)?;
    let work = lock(shared.records::<Mail>()).switches.work;
    if !work.is_zero() {
        tokio::time::sleep(work).await;
    }
    let mut mail = lock(shared.records::<Mail>());
    Ok(shown(match (method, names.as_slice()) {
        ("POST", ["$batch"]) => mail.batch(&ask, &json),
        ("GET", _) => {
            mail.spend(1);
            mail.read(&ask)
        }
        _ => ask.refuse(405),
    }))
}

/// A request in flight.
struct Turn(Arc<Shared>);

impl Turn {
    fn begin(shared: &Arc<Shared>, now: chrono::DateTime<chrono::Utc>) -> Result<Self, Box<Said>> {
        let mut mail = lock(shared.records::<Mail>());
        if mail.n_in_flight >= AT_ONCE {
            let words = "Application is over its MailboxConcurrency limit.";
            return Err(Box::new((429, said("ApplicationThrottled", words, now)).into()));
        }
        mail.n_in_flight += 1;
        Ok(Self(shared.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut mail = lock(self.0.records::<Mail>());
        mail.n_in_flight = mail.n_in_flight.saturating_sub(1);
    }
}

fn shown(said: Said) -> Response {
    let status = StatusCode::from_u16(said.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match said.body {
        Body::Json(Value::Null) => status.into_response(),
        Body::Json(body) => (status, Json(body)).into_response(),
        Body::Bytes(kind, bytes) => {
            let mut response = (status, HttpBody::from(Bytes::from(bytes))).into_response();
            if let Ok(kind) = HeaderValue::from_str(&kind) {
                response.headers_mut().insert(CONTENT_TYPE, kind);
            }
            response
        }
    };
    if said.status == 429 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
