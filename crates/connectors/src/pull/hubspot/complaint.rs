//! HubSpot's refusals: a category, and for a limit the policy that was exceeded.

use std::time::Duration;

use serde_json::Value;

use crate::pull::complaint::{Complaint, DAILY_WAIT, Meaning, json, word_at};
use crate::pull::oauth::GrantError;

/// Reads the answer to a request that failed.
pub(super) fn complaint(status: u16, body: &[u8]) -> Complaint {
    let said = json(body);
    let code = ["/category", "/errorType", "/status"].into_iter().find_map(|at| word_at(&said, at));
    // 423 and 477: HubSpot moves an account, or holds it for a moment.
    let meaning = if status == 477 { Meaning::Trouble } else { Meaning::of_status(status) };
    Complaint { meaning, code, wait: wait(&said), told_at: None }
}

/// The rolling window is ten seconds, and a search's is one.
fn wait(said: &Value) -> Duration {
    let policy = said.get("policyName").and_then(Value::as_str).unwrap_or_default();
    let message = said.get("message").and_then(Value::as_str).unwrap_or_default();
    if policy.eq_ignore_ascii_case("DAILY") {
        return DAILY_WAIT;
    }
    let is_secondly = policy.eq_ignore_ascii_case("SECONDLY") || message.contains(" secondly limit");
    Duration::from_secs(if is_secondly { 1 } else { 10 })
}

/// Reads a refusal to give a token. The older endpoint has a code for each reason; the dated ones have one code for all, and a sentence.
pub(super) fn refusal(status: u16, said: &Value) -> Option<GrantError> {
    let words = ["status", "category", "subCategory"].into_iter().filter_map(|key| said.get(key)?.as_str());
    let by_code = words.into_iter().find_map(|word| match word {
        "BAD_REFRESH_TOKEN" => Some(GrantError::Revoked { code: "bad_refresh_token" }),
        "BAD_AUTH_CODE" => Some(GrantError::Revoked { code: "bad_auth_code" }),
        "BAD_CLIENT_ID" | "BAD_CLIENT_SECRET" => Some(GrantError::OurClient),
        _ => None,
    });
    by_code.or_else(|| if status == 400 { in_a_sentence(said) } else { None })
}

fn in_a_sentence(said: &Value) -> Option<GrantError> {
    let message = said.get("message")?.as_str()?.to_lowercase().replace('_', " ");
    let names = |thing: &str| message.contains(thing);
    if names("refresh token") {
        Some(GrantError::Revoked { code: "bad_refresh_token" })
    } else if names("auth code") || names("authorization code") {
        Some(GrantError::Revoked { code: "bad_auth_code" })
    } else if names("client id") || names("client secret") {
        Some(GrantError::OurClient)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_status_and_by_hubspots_word() {
        use Meaning::*;
        for (status, body, meaning, code) in [
            (403, json!({ "status": "error", "category": "MISSING_SCOPES" }), Lasting, Some("MISSING_SCOPES")),
            (400, json!({ "status": "error", "message": "canary" }), Lasting, Some("error")),
            (400, json!({ "category": "ana@acme.example is no id" }), Lasting, None),
            (401, json!({ "category": "EXPIRED_AUTHENTICATION" }), Token, Some("EXPIRED_AUTHENTICATION")),
            (429, json!({ "errorType": "RATE_LIMIT" }), Wait, Some("RATE_LIMIT")),
            (423, json!(null), Trouble, None),
            (477, json!(null), Trouble, None),
            (502, json!("<html>"), Trouble, None),
            (408, json!([]), Trouble, None),
            (404, json!({}), Lasting, None),
        ] {
            let complaint = complaint(status, body.to_string().as_bytes());
            assert_eq!((complaint.meaning, complaint.code.as_deref()), (meaning, code), "{status} {body}");
        }
    }

    #[test]
    fn a_wait_is_as_long_as_the_window_that_was_exceeded() {
        for (body, secs) in [
            (json!({ "policyName": "TEN_SECONDLY_ROLLING" }), 10),
            (json!({ "message": "You have reached your ten_secondly_rolling limit." }), 10),
            (json!({ "message": "You have reached your secondly limit." }), 1),
            (json!({ "policyName": "SECONDLY" }), 1),
            // Never longer than an hour at a time.
            (json!({ "policyName": "DAILY" }), 3_600),
            (json!("?"), 10),
        ] {
            let complaint = complaint(429, body.to_string().as_bytes());
            assert_eq!(complaint.wait, Duration::from_secs(secs), "{body}");
        }
    }
}
