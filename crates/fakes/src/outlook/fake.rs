//! Outlook's fake, described: its accounts, tokens and refusals.

use std::sync::Mutex;

use axum::Router;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Mail, fixtures, rest};
use crate::clock::iso;
use crate::oauth::{CLIENT_ID, CLIENT_SECRET};
use crate::provider::{Fake, FakeOauth, Provider, Words};
use crate::shapes::answer;

pub const OUTLOOK: Provider = &FAKE;

static FAKE: Fake = Fake {
    name: "outlook",
    path: "outlook",
    settings: &[
        ("OUTLOOK_API_URL", "{url}/outlook/v1.0"),
        ("OUTLOOK_AUTHORIZE_URL", "{url}/oauth/outlook/authorize"),
        ("OUTLOOK_TOKEN_URL", "{url}/oauth/outlook/token"),
        ("OUTLOOK_CLIENT_ID", CLIENT_ID),
        ("OUTLOOK_CLIENT_SECRET", CLIENT_SECRET),
    ],
    default_account: "office",
    account_id: |account| format!("{account}@harrowridge.example"),
    records: || Box::new(Mutex::new(Mail::default())),
    routes: rest::routes,
    // Graph has no MCP server that is read.
    mcp: |_, _| Router::new(),
    oauth: FakeOauth {
        shares: None,
        is_basic: false,
        gives_refresh: |asked, _| {
            asked.get("scope").is_some_and(|scope| scope.split(' ').any(|scope| scope == "offline_access"))
        },
        account_parameter: None,
        rotates: true,
        repeats_refresh: false,
        token_secs: 3736,
        pair: |issued| {
            let scopes = issued.scope.split(' ').filter(|scope| *scope != "offline_access");
            json!({"token_type": "Bearer", "scope": scopes.collect::<Vec<_>>().join(" "), "ext_expires_in": issued.expires_in})
        },
        invalid_grant: |grant_type| {
            let (number, words) = match grant_type {
                "refresh_token" => (700_082, "The refresh token has expired due to inactivity."),
                _ => (54_005, "OAuth2 Authorization code was already redeemed."),
            };
            answer(
                400,
                json!({"error": "invalid_grant", "error_description": format!("AADSTS{number}: {words}"),
                    "error_codes": [number], "trace_id": Uuid::new_v4(), "correlation_id": Uuid::new_v4()}),
            )
        },
    },
    words: Words {
        error: |status, now| {
            let (status, body) = error(status, now);
            answer(status, body)
        },
        rate_limited: |_, _, now| {
            let words = "Application is over its MailboxConcurrency limit.";
            answer(429, said("ApplicationThrottled", words, now))
        },
        rate_limited_as_403: None,
        error_with_200: None,
        lost_token: |now| {
            let (status, body) = lost(now);
            answer(status, body)
        },
    },
    key: None,
    load: fixtures::load,
    bulk: None,
};

/// An error without anything more particular to say.
pub(super) fn error(status: u16, now: DateTime<Utc>) -> (u16, Value) {
    let (code, words) = match status {
        401 => ("InvalidAuthenticationToken", "Lifetime validation failed, the token is expired."),
        403 => ("ErrorAccessDenied", "Access is denied. Check credentials and try again."),
        404 => ("ErrorItemNotFound", "The specified object was not found in the store."),
        405 => ("ErrorInvalidRequest", "The OData request is not supported."),
        410 => return lost(now),
        429 => ("TooManyRequests", "Too many requests."),
        400..500 => ("ErrorInvalidRequest", "The request is invalid."),
        _ => ("UnknownError", ""),
    };
    (status, said(code, words, now))
}

/// A link or token that is no longer known.
pub(super) fn lost(now: DateTime<Utc>) -> (u16, Value) {
    let words = "The sync state generation is not found; generation=149;[highest=157][157][155][156].";
    (410, said("SyncStateNotFound", words, now))
}

pub(super) fn said(code: &str, words: &str, now: DateTime<Utc>) -> Value {
    let inner = json!({"date": iso(now), "request-id": Uuid::new_v4()});
    json!({"error": {"code": code, "message": words, "innerError": inner}})
}
