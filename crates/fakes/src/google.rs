//! Google's consent and tokens, which its services share.

use serde_json::json;

use crate::provider::{FakeOauth, SharedConsent};
use crate::shapes::answer;

pub(crate) const fn oauth(shares: Option<SharedConsent>) -> FakeOauth {
    FakeOauth {
        shares,
        is_basic: false,
        // To a client that asks for one, and a second only after a consent that a person saw.
        gives_refresh: |asked, has_grant| {
            let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
            field("access_type") == "offline" && (field("prompt").contains("consent") || !has_grant)
        },
        account_parameter: None,
        rotates: false,
        repeats_refresh: false,
        token_secs: 3599,
        pair: |issued| json!({"token_type": "Bearer", "scope": issued.scope}),
        invalid_grant: |grant_type| {
            let description = match grant_type {
                "refresh_token" => "Token has been expired or revoked.",
                _ => "Bad Request",
            };
            answer(400, json!({"error": "invalid_grant", "error_description": description}))
        },
    }
}
