//! HubSpot's fake, described: its accounts, tokens and refusals.

use std::sync::Mutex;

use axum::response::Response;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Fakes;
use crate::fixtures::{Fixture, records};
use crate::hubspot::{Crm, mcp, rest};
use crate::ledger::Seen;
use crate::oauth::grants::Issued;
use crate::oauth::{CLIENT_ID, CLIENT_SECRET};
use crate::provider::{Bulk, Fake, FakeOauth, Provider, Words, hash};
use crate::shapes::answer;

pub const HUBSPOT: Provider = &FAKE;

pub(super) const PRIVATE_APP_TOKEN: &str = "pat-na1-fake-00000000-0000-4000-8000-000000000000";

static FAKE: Fake = Fake {
    name: "hubspot",
    path: "hubspot",
    settings: &[
        ("HUBSPOT_API_URL", "{url}/hubspot"),
        ("HUBSPOT_MCP_URL", "{url}/mcp/hubspot"),
        ("HUBSPOT_AUTHORIZE_URL", "{url}/oauth/hubspot/authorize"),
        ("HUBSPOT_TOKEN_URL", "{url}/oauth/hubspot/token"),
        ("HUBSPOT_CLIENT_ID", CLIENT_ID),
        ("HUBSPOT_CLIENT_SECRET", CLIENT_SECRET),
    ],
    default_account: "harrowridge",
    // The portal.
    account_id: |account| match account {
        "harrowridge" => "24317905".to_owned(),
        other => (30_000_000 + hash(other) % 60_000_000).to_string(),
    },
    records: || Box::new(Mutex::new(Crm::default())),
    routes: rest::routes,
    mcp: mcp::routes,
    oauth: FakeOauth {
        shares: None,
        is_basic: false,
        gives_refresh: |_, _| true,
        account_parameter: None,
        rotates: false,
        repeats_refresh: true,
        token_secs: 1800,
        pair,
        // The dated endpoint says it as it says everything.
        invalid_grant: |grant_type| match grant_type {
            "refresh_token" => refused(400, "VALIDATION_ERROR", "missing or invalid refresh token"),
            _ => refused(400, "VALIDATION_ERROR", "missing or unknown auth code"),
        },
    },
    words: Words {
        error,
        rate_limited,
        rate_limited_as_403: None,
        error_with_200: None,
        lost_token: |_| refused(400, "VALIDATION_ERROR", "The paging cursor 'after' is not valid."),
    },
    key: Some(PRIVATE_APP_TOKEN),
    load,
    bulk: Some(Bulk {
        fill: |fakes, n| fakes.hubspot().fill_contacts(n),
        count: |fakes| fakes.hubspot().count("contacts"),
        path: "/hubspot",
        key: PRIVATE_APP_TOKEN,
        is_page: |seen: &Seen| {
            seen.method == "GET" && seen.path.ends_with("/contacts") && seen.query.contains("properties=")
        },
    }),
};

const FIXTURES: [Fixture; 3] = [
    ("companies", include_str!("../../../../fixtures/hubspot/companies.json")),
    ("contacts", include_str!("../../../../fixtures/hubspot/contacts.json")),
    ("deals", include_str!("../../../../fixtures/hubspot/deals.json")),
];

/// Companies before what is associated with them.
fn load(fakes: &Fakes) {
    for (kind, pages) in FIXTURES {
        for record in records(pages, "/results") {
            fakes.hubspot().load(kind, &record);
        }
    }
}

/// The number of the portal.
pub(super) fn hub_id(account: &str) -> u64 {
    HUBSPOT.account_id(account).parse().unwrap_or_default()
}

fn pair(issued: &Issued) -> Value {
    json!({
        "token_type": "bearer",
        "hub_id": hub_id(&issued.account),
        "user_id": 7_512_346,
        "scopes": issued.scope.split_whitespace().collect::<Vec<_>>(),
    })
}

fn error(status: u16, _: DateTime<Utc>) -> Response {
    let (category, message) = match status {
        401 => ("EXPIRED_AUTHENTICATION", "The OAuth token used to make this call expired."),
        403 => ("MISSING_SCOPES", "This app hasn't been granted all required scopes to make this call."),
        404 => ("OBJECT_NOT_FOUND", "resource not found"),
        400..500 => ("VALIDATION_ERROR", "The request is not valid."),
        _ => ("INTERNAL_ERROR", "internal error"),
    };
    refused(status, category, message)
}

pub(super) fn refused(status: u16, category: &str, message: &str) -> Response {
    let id = Uuid::new_v4();
    answer(status, json!({"status": "error", "message": message, "correlationId": id, "category": category}))
}

fn rate_limited(path: &str, is_daily: bool, _: DateTime<Utc>) -> Response {
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
