//! QuickBooks' fake, described: its accounts, tokens and refusals.

use std::sync::Mutex;

use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::json;

use crate::Fakes;
use crate::clock::iso;
use crate::fixtures::{Fixture, records};
use crate::oauth::{CLIENT_ID, CLIENT_SECRET};
use crate::provider::{Fake, FakeOauth, Provider, Words, hash};
use crate::quickbooks::{Books, mcp, rest};
use crate::shapes::answer;

pub const QUICKBOOKS: Provider = &FAKE;

static FAKE: Fake = Fake {
    name: "quickbooks",
    path: "quickbooks",
    settings: &[
        ("QUICKBOOKS_API_URL", "{url}/quickbooks"),
        ("QUICKBOOKS_MCP_URL", "{url}/mcp/quickbooks"),
        ("QUICKBOOKS_AUTHORIZE_URL", "{url}/oauth/quickbooks/authorize"),
        ("QUICKBOOKS_TOKEN_URL", "{url}/oauth/quickbooks/token"),
        ("QUICKBOOKS_CLIENT_ID", CLIENT_ID),
        ("QUICKBOOKS_CLIENT_SECRET", CLIENT_SECRET),
    ],
    default_account: "harrowridge",
    // The realm.
    account_id: |account| match account {
        "harrowridge" => "9130357849201635".to_owned(),
        other => format!("9{:015}", hash(other) % 10_u64.pow(15)),
    },
    records: || Box::new(Mutex::new(Books::default())),
    routes: rest::routes,
    mcp: mcp::routes,
    oauth: FakeOauth {
        shares: None,
        is_basic: true,
        gives_refresh: |_, _| true,
        account_parameter: Some("realmId"),
        rotates: true,
        repeats_refresh: true,
        token_secs: 3600,
        pair: |_| json!({"token_type": "bearer", "x_refresh_token_expires_in": 8_726_400}),
        invalid_grant: |_| {
            answer(400, json!({"error": "invalid_grant", "error_description": "Incorrect or invalid refresh token"}))
        },
    },
    words: Words {
        error,
        rate_limited: |_, _, now| {
            let message = "message=ThrottleExceeded; errorCode=003001; statusCode=429";
            fault(429, "THROTTLED", "003001", message, now)
        },
        rate_limited_as_403: None,
        error_with_200: Some(|now| fault(200, "SystemFault", "10000", FAILED, now)),
        lost_token: |now| fault(400, "ValidationFault", "4001", "QueryValidationError: Invalid startposition", now),
    },
    key: None,
    load,
    bulk: None,
};

const FAILED: &str = "An application error has occurred while processing your request";

const FIXTURES: [Fixture; 2] = [
    ("Customer", include_str!("../../../../fixtures/quickbooks/customers.json")),
    ("Invoice", include_str!("../../../../fixtures/quickbooks/invoices.json")),
];

fn load(fakes: &Fakes) {
    for (entity, pages) in FIXTURES {
        for record in records(pages, &format!("/QueryResponse/{entity}")) {
            fakes.quickbooks().load(entity, record);
        }
    }
}

fn error(status: u16, now: DateTime<Utc>) -> Response {
    match status {
        401 => unauthorized(now),
        403 => fault(403, "AuthorizationFault", "003100", "ApplicationAuthorizationFailed", now),
        404 => fault(404, "ValidationFault", "610", "Object Not Found", now),
        400..500 => fault(status, "ValidationFault", "2010", "Request has invalid or unsupported property", now),
        _ => fault(status, "SystemFault", "10000", FAILED, now),
    }
}

pub(super) fn fault(status: u16, kind: &str, code: &str, message: &str, now: DateTime<Utc>) -> Response {
    let errors = json!([{"Message": message, "Detail": format!("{message} (fake)"), "code": code, "element": ""}]);
    answer(status, json!({"Fault": {"Error": errors, "type": kind}, "time": iso(now)}))
}

/// The gateway in front of QuickBooks spells its keys in lower case.
pub(super) fn unauthorized(now: DateTime<Utc>) -> Response {
    let message = "message=AuthenticationFailed; errorCode=003200; statusCode=401";
    let errors = json!([{"message": message, "detail": "Token expired or not valid", "code": "3200", "element": null}]);
    answer(401, json!({"fault": {"error": errors, "type": "AUTHENTICATION"}, "time": now.timestamp_millis()}))
}
