//! Errors as each provider words them. Which provider it is, the path says.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock::iso;
use crate::manners::RetryAfter;

/// Whose words an answer under this path is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tongue {
    Oauth,
    Hubspot,
    Google,
    Quickbooks,
}

impl Tongue {
    pub fn of(path: &str) -> Self {
        match path.trim_start_matches('/').split('/').next() {
            Some("oauth") => Self::Oauth,
            Some("drive") => Self::Google,
            Some("quickbooks") => Self::Quickbooks,
            _ => Self::Hubspot,
        }
    }
}

pub(crate) fn answer(status: u16, body: Value) -> Response {
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(body)).into_response()
}

pub(crate) fn text(content_type: &'static str, body: String) -> Response {
    ([(CONTENT_TYPE, content_type)], body).into_response()
}

/// What the provider says with this status, when nothing more particular is known.
pub(crate) fn error(path: &str, status: u16, now: DateTime<Utc>) -> Response {
    match Tongue::of(path) {
        Tongue::Oauth => {
            let code = match status {
                401 => "invalid_client",
                400..500 => "invalid_request",
                503 => "temporarily_unavailable",
                _ => "server_error",
            };
            answer(status, json!({"error": code}))
        }
        Tongue::Hubspot => {
            let (category, message) = match status {
                401 => ("EXPIRED_AUTHENTICATION", "The OAuth token used to make this call expired."),
                403 => ("MISSING_SCOPES", "This app hasn't been granted all required scopes to make this call."),
                404 => ("OBJECT_NOT_FOUND", "resource not found"),
                429 => return rate_limited(path, false, RetryAfter::Absent, now),
                400..500 => ("VALIDATION_ERROR", "The request is not valid."),
                _ => ("INTERNAL_ERROR", "internal error"),
            };
            hubspot(status, category, message)
        }
        Tongue::Google => {
            let (reason, message) = match status {
                401 => ("authError", "Invalid Credentials"),
                403 => ("insufficientFilePermissions", "The user does not have sufficient permissions for this file."),
                404 => ("notFound", "File not found."),
                429 => return rate_limited(path, false, RetryAfter::Absent, now),
                410 => ("gone", "Gone"),
                400..500 => ("badRequest", "Bad Request"),
                _ => ("backendError", "Backend Error"),
            };
            google(status, reason, message)
        }
        Tongue::Quickbooks => match status {
            401 => quickbooks_unauthorized(now),
            403 => fault(403, "AuthorizationFault", "003100", "ApplicationAuthorizationFailed", now),
            404 => fault(404, "ValidationFault", "610", "Object Not Found", now),
            429 => rate_limited(path, false, RetryAfter::Absent, now),
            400..500 => fault(status, "ValidationFault", "2010", "Request has invalid or unsupported property", now),
            _ => fault(
                status,
                "SystemFault",
                "10000",
                "An application error has occurred while processing your request",
                now,
            ),
        },
    }
}

pub(crate) fn hubspot(status: u16, category: &str, message: &str) -> Response {
    let id = Uuid::new_v4();
    answer(status, json!({"status": "error", "message": message, "correlationId": id, "category": category}))
}

pub(crate) fn google(status: u16, reason: &str, message: &str) -> Response {
    let domain = if reason.ends_with("LimitExceeded") { "usageLimits" } else { "global" };
    let errors = json!([{"message": message, "domain": domain, "reason": reason}]);
    let mut response = answer(status, json!({"error": {"code": status, "message": message, "errors": errors}}));
    if status == 401 {
        let challenge =
            HeaderValue::from_static("Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

pub(crate) fn fault(status: u16, kind: &str, code: &str, message: &str, now: DateTime<Utc>) -> Response {
    let errors = json!([{"Message": message, "Detail": format!("{message} (fake)"), "code": code, "element": ""}]);
    answer(status, json!({"Fault": {"Error": errors, "type": kind}, "time": iso(now)}))
}

/// The gateway in front of QuickBooks spells its keys in lower case.
pub(crate) fn quickbooks_unauthorized(now: DateTime<Utc>) -> Response {
    let message = "message=AuthenticationFailed; errorCode=003200; statusCode=401";
    let errors = json!([{"message": message, "detail": "Token expired or not valid", "code": "3200", "element": null}]);
    answer(401, json!({"fault": {"error": errors, "type": "AUTHENTICATION"}, "time": now.timestamp_millis()}))
}

/// The token of a page is not one.
pub(crate) fn lost_token(tongue: Tongue, now: DateTime<Utc>) -> Response {
    match tongue {
        Tongue::Google => {
            let error = json!({"message": "Invalid Value", "domain": "global", "reason": "invalid",
                "location": "pageToken", "locationType": "parameter"});
            answer(400, json!({"error": {"code": 400, "message": "Invalid Value", "errors": [error]}}))
        }
        Tongue::Quickbooks => fault(400, "ValidationFault", "4001", "QueryValidationError: Invalid startposition", now),
        _ => hubspot(400, "VALIDATION_ERROR", "The paging cursor 'after' is not valid."),
    }
}

/// Too many requests; `is_daily`: for today or this month, not for these seconds.
pub(crate) fn rate_limited(path: &str, is_daily: bool, retry_after: RetryAfter, now: DateTime<Utc>) -> Response {
    let mut response = match Tongue::of(path) {
        Tongue::Oauth => answer(429, json!({"error": "rate_limit_exceeded"})),
        Tongue::Hubspot => {
            let (policy, limit) = match (is_daily, path.ends_with("/search")) {
                (true, _) => ("DAILY", "daily"),
                (false, true) => ("SECONDLY", "secondly"),
                (false, false) => ("TEN_SECONDLY_ROLLING", "ten_secondly_rolling"),
            };
            answer(
                429,
                json!({"status": "error", "message": format!("You have reached your {limit} limit."),
                    "errorType": "RATE_LIMIT", "correlationId": Uuid::new_v4(), "policyName": policy,
                    "requestId": Uuid::new_v4()}),
            )
        }
        Tongue::Google if is_daily => google(403, "dailyLimitExceeded", "Daily Limit Exceeded"),
        Tongue::Google => google(429, "rateLimitExceeded", "Rate Limit Exceeded"),
        Tongue::Quickbooks => {
            let message = "message=ThrottleExceeded; errorCode=003001; statusCode=429";
            fault(429, "THROTTLED", "003001", message, now)
        }
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
