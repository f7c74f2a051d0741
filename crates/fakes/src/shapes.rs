//! Answers and errors. Each provider words its own; which one it is, the path says.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::manners::RetryAfter;
use crate::provider::Fake;

pub(crate) fn answer(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(body)).into_response()
}

pub(crate) fn text(content_type: &'static str, body: String) -> Response {
    ([(CONTENT_TYPE, content_type)], body).into_response()
}

/// The provider's answer with this status, when nothing more particular is known.
pub(crate) fn error(path: &str, status: u16, now: DateTime<Utc>) -> Response {
    match Fake::of_path(path) {
        Some(_) if status == 429 => rate_limited(path, false, RetryAfter::Absent, now),
        Some(provider) => (provider.words.error)(status, now),
        None => {
            let code = match status {
                401 => "invalid_client",
                400..500 => "invalid_request",
                503 => "temporarily_unavailable",
                _ => "server_error",
            };
            answer(status, json!({"error": code}))
        }
    }
}

/// Too many requests; `is_daily`: for today or this month, not for these seconds.
pub(crate) fn rate_limited(path: &str, is_daily: bool, retry_after: RetryAfter, now: DateTime<Utc>) -> Response {
    let mut response = match Fake::of_path(path) {
        Some(provider) => (provider.words.rate_limited)(path, is_daily, now),
        None => answer(429, json!({"error": "rate_limit_exceeded"})),
    };
    let header = match retry_after {
        RetryAfter::Seconds(secs) => Some(secs.to_string()),
        RetryAfter::Date(secs) => {
            Some((now + TimeDelta::seconds(secs)).format("%a, %d %b %Y %H:%M:%S GMT").to_string())
        }
        RetryAfter::Absent => None,
        RetryAfter::Huge => Some("99999999999999999999".to_owned()),
        RetryAfter::Garbage => Some("soon; very".to_owned()),
        RetryAfter::Negative => Some("-30".to_owned()),
    };
    if let Some(header) = header.and_then(|header| HeaderValue::from_str(&header).ok()) {
        response.headers_mut().insert(RETRY_AFTER, header);
    }
    response
}
