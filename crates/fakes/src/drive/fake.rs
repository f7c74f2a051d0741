//! Google Drive's fake, described: its accounts, tokens and refusals.

use std::sync::Mutex;

use axum::http::HeaderValue;
use axum::http::header::WWW_AUTHENTICATE;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::drive::{Files, fixtures, mcp, rest};
use crate::google;
use crate::oauth::{CLIENT_ID, CLIENT_SECRET};
use crate::provider::{Fake, Provider, Words, hash};
use crate::shapes::answer;

pub const DRIVE: Provider = &FAKE;

static FAKE: Fake = Fake {
    name: "google_drive",
    path: "drive",
    settings: &[
        ("DRIVE_API_URL", "{url}/drive/v3"),
        ("DRIVE_MCP_URL", "{url}/mcp/google_drive"),
        ("GOOGLE_AUTHORIZE_URL", "{url}/oauth/google_drive/authorize"),
        ("GOOGLE_TOKEN_URL", "{url}/oauth/google_drive/token"),
        ("GOOGLE_CLIENT_ID", CLIENT_ID),
        ("GOOGLE_CLIENT_SECRET", CLIENT_SECRET),
    ],
    default_account: "office",
    // The permission id; the owner's is in the fixtures.
    account_id: |account| match account {
        "office" => "04719385526601938274".to_owned(),
        other => format!("1{:019}", hash(other) % 10_u64.pow(18)),
    },
    records: || Box::new(Mutex::new(Files::default())),
    routes: rest::routes,
    mcp: mcp::routes,
    oauth: google::oauth(None),
    words: Words {
        error,
        rate_limited: |_, is_daily, _| match is_daily {
            true => refused(403, "dailyLimitExceeded", "Daily Limit Exceeded"),
            false => refused(429, "rateLimitExceeded", "Rate Limit Exceeded"),
        },
        rate_limited_as_403: Some(|| refused(403, "userRateLimitExceeded", "User Rate Limit Exceeded")),
        error_with_200: None,
        lost_token: |_| lost_token(),
    },
    key: None,
    load: fixtures::load,
    bulk: None,
};

fn error(status: u16, _: DateTime<Utc>) -> Response {
    let (reason, message) = match status {
        401 => ("authError", "Invalid Credentials"),
        403 => ("insufficientFilePermissions", "The user does not have sufficient permissions for this file."),
        404 => ("notFound", "File not found."),
        410 => ("gone", "Gone"),
        400..500 => ("badRequest", "Bad Request"),
        _ => ("backendError", "Backend Error"),
    };
    refused(status, reason, message)
}

pub(super) fn refused(status: u16, reason: &str, message: &str) -> Response {
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

/// The token of a page is not one.
pub(super) fn lost_token() -> Response {
    let error = json!({"message": "Invalid Value", "domain": "global", "reason": "invalid",
        "location": "pageToken", "locationType": "parameter"});
    answer(400, json!({"error": {"code": 400, "message": "Invalid Value", "errors": [error]}}))
}
