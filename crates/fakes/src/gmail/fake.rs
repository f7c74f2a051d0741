//! Gmail's fake, described: its accounts, tokens and refusals.

use std::sync::Mutex;

use axum::http::HeaderValue;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{Mailboxes, fixtures, mcp, rest};
use crate::google;
use crate::provider::{Fake, Provider, SharedConsent, Words, hash};
use crate::shapes::answer;

pub const GMAIL: Provider = &FAKE;

static FAKE: Fake = Fake {
    name: "gmail",
    path: "gmail",
    // Google's own, for consent and tokens, are Drive's.
    settings: &[
        ("GMAIL_API_URL", "{url}"),
        ("GMAIL_MCP_URL", "{url}/mcp/gmail"),
        ("GMAIL_PUBSUB_KEYS_URL", "{url}/oauth2/v3/certs"),
    ],
    default_account: "office",
    account_id: |account| format!("1{:019}", hash(account) % 10_u64.pow(18)),
    records: || Box::new(Mutex::new(Mailboxes::default())),
    routes: rest::routes,
    mcp: mcp::routes,
    oauth: google::oauth(Some(SharedConsent { of: "google_drive", scope: "https://www.googleapis.com/auth/gmail." })),
    words: Words {
        error: |status, _| error(status),
        rate_limited: |_, is_daily, _| match is_daily {
            true => said(refused(403, "dailyLimitExceeded", "Daily Limit Exceeded")),
            false => said(refused(429, "rateLimitExceeded", "Too many concurrent requests for user")),
        },
        rate_limited_as_403: Some(|| said(refused(403, "userRateLimitExceeded", "User Rate Limit Exceeded"))),
        error_with_200: None,
        lost_token: |_: DateTime<Utc>| said(refused(400, "invalidArgument", "Invalid pageToken")),
    },
    key: None,
    load: fixtures::load,
    bulk: None,
};

fn error(status: u16) -> Response {
    let (reason, message) = match status {
        401 => ("authError", "Invalid Credentials"),
        403 => ("insufficientPermissions", "Request had insufficient authentication scopes."),
        404 => ("notFound", "Requested entity was not found."),
        400 => ("failedPrecondition", "Mail service not enabled"),
        402..500 => ("badRequest", "Bad Request"),
        _ => ("backendError", "Backend Error"),
    };
    said(refused(status, reason, message))
}

fn said((status, body): (u16, Value)) -> Response {
    rest::response(status, body)
}

pub(super) fn refused(status: u16, reason: &str, message: &str) -> (u16, Value) {
    let domain = if reason.ends_with("LimitExceeded") { "usageLimits" } else { "global" };
    let word = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        _ => "UNAVAILABLE",
    };
    let errors = json!([{"message": message, "domain": domain, "reason": reason}]);
    (status, json!({"error": {"code": status, "message": message, "errors": errors, "status": word}}))
}

/// A refusal of a token says where to get a better one.
pub(super) fn unauthorised(reason: &str) -> Response {
    let (status, body) = refused(401, reason, "Invalid Credentials");
    let mut response = answer(status, body);
    let challenge = HeaderValue::from_static("Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}
