//! What a provider says when it refuses: what it means, a code of its own, and how long it wants to be left alone. Its sentences may quote
//! a record or a token, so they go no further than here.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::Provider;
use serde::Deserialize;
use serde_json::Value;

use super::record::time;

/// Google's words for "too often", which come as 403.
const GOOGLE_WAITS: [&str; 4] =
    ["userRateLimitExceeded", "rateLimitExceeded", "sharingRateLimitExceeded", GOOGLE_DAILY];
const GOOGLE_DAILY: &str = "dailyLimitExceeded";
const GOOGLE_WAIT: Duration = Duration::from_secs(30);
const QUICKBOOKS_WAIT: Duration = Duration::from_secs(60);
/// A day's allowance is back at a midnight that nobody tells: of the account's place for HubSpot, of California for Google.
const DAILY_WAIT: Duration = Duration::from_secs(3_600);
const CODE_MAX_BYTES: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// We asked too often.
    Wait,
    /// The token is not good.
    Token,
    /// The provider is not well; the same may succeed later.
    Trouble,
    /// It will not be otherwise when it is asked again.
    Lasting,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub meaning: Meaning,
    /// The provider's own word for it, if it is a plain one.
    pub code: Option<String>,
    /// How long to wait, where the answer's head does not say.
    pub wait: Duration,
    /// When, as the body has it.
    pub told_at: Option<DateTime<Utc>>,
}

/// Of an answer that is no success.
pub(super) fn heard(provider: Provider, status: u16, body: &[u8]) -> Complaint {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let meaning = match status {
        429 => Meaning::Wait,
        401 => Meaning::Token,
        // 423 and 477: HubSpot moves an account, or holds it for a moment.
        408 | 423 | 425 | 477 | 500.. => Meaning::Trouble,
        _ => Meaning::Lasting,
    };
    match provider {
        Provider::Hubspot => {
            let code = ["/category", "/errorType", "/status"].into_iter().find_map(|at| word_at(&said, at));
            Complaint { meaning, code, wait: hubspot_wait(&said), told_at: None }
        }
        Provider::Quickbooks => {
            // Both spellings are QuickBooks' own.
            let code = ["Fault", "fault"].into_iter().find_map(|key| fault_code(said.get(key)?));
            let meaning = if is_throttled(code.as_deref()) { Meaning::Wait } else { meaning };
            Complaint { meaning, code, wait: QUICKBOOKS_WAIT, told_at: time(said.get("time")) }
        }
        Provider::GoogleDrive => {
            let reasons = google_reasons(&said);
            let is_wait = status == 403 && reasons.iter().any(|reason| GOOGLE_WAITS.contains(&reason.as_str()));
            let meaning = if is_wait { Meaning::Wait } else { meaning };
            let is_daily = reasons.iter().any(|reason| reason == GOOGLE_DAILY);
            let wait = if is_daily { DAILY_WAIT } else { GOOGLE_WAIT };
            Complaint { meaning, code: reasons.into_iter().next(), wait, told_at: None }
        }
    }
}

/// QuickBooks refuses with 200, too.
pub(super) fn hidden_in_success(provider: Provider, body: &[u8]) -> Option<Complaint> {
    /// The rest of the answer is large, and stepped over.
    #[derive(Deserialize)]
    struct Faulted {
        #[serde(rename = "Fault", alias = "fault")]
        fault: Value,
        #[serde(default)]
        time: Value,
    }
    if provider != Provider::Quickbooks {
        return None;
    }
    let Faulted { fault, time: told } = serde_json::from_slice(body).ok()?;
    let kind = fault.as_object()?.get("type").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let code = fault_code(&fault);
    let meaning = if is_throttled(code.as_deref()) {
        Meaning::Wait
    } else if is_code(code.as_deref(), "3200") || kind.contains("authentication") {
        Meaning::Token
    } else if kind.contains("system") || kind.contains("service") {
        Meaning::Trouble
    } else {
        Meaning::Lasting
    };
    Some(Complaint { meaning, code, wait: QUICKBOOKS_WAIT, told_at: time(Some(&told)) })
}

/// The rolling window is ten seconds, and a search's is one.
fn hubspot_wait(said: &Value) -> Duration {
    let policy = said.get("policyName").and_then(Value::as_str).unwrap_or_default();
    let message = said.get("message").and_then(Value::as_str).unwrap_or_default();
    if policy.eq_ignore_ascii_case("DAILY") {
        return DAILY_WAIT;
    }
    let is_secondly = policy.eq_ignore_ascii_case("SECONDLY") || message.contains(" secondly limit");
    Duration::from_secs(if is_secondly { 1 } else { 10 })
}

fn is_throttled(code: Option<&str>) -> bool {
    is_code(code, "3001")
}

/// QuickBooks writes them with zeros in front, and without.
fn is_code(code: Option<&str>, known: &str) -> bool {
    code.is_some_and(|code| code.trim_start_matches('0') == known)
}

fn fault_code(fault: &Value) -> Option<String> {
    ["/Error/0/code", "/error/0/code"].into_iter().find_map(|at| word_at(fault, at))
}

/// The classic reasons, those of the newer style, and its status, in that order.
fn google_reasons(said: &Value) -> Vec<String> {
    let listed = ["/error/errors", "/error/details"].into_iter().filter_map(|at| said.pointer(at)?.as_array());
    let mut reasons: Vec<String> = listed.flatten().filter_map(|entry| word_at(entry, "/reason")).collect();
    reasons.extend(word_at(said, "/error/status"));
    reasons
}

fn word_at(said: &Value, pointer: &str) -> Option<String> {
    let word = said.pointer(pointer)?.as_str()?;
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    ((1..=CODE_MAX_BYTES).contains(&word.len()) && word.bytes().all(is_plain)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_status_and_by_the_providers_word() {
        use Meaning::*;
        use Provider::*;
        let google =
            |reason: &str| json!({ "error": { "code": 403, "message": "canary", "errors": [{ "reason": reason }] } });
        let fault = |code: &str| json!({ "Fault": { "Error": [{ "Message": "canary", "code": code }], "type": "ValidationFault" } });
        for (provider, status, body, meaning, code) in [
            (Hubspot, 403, json!({ "status": "error", "category": "MISSING_SCOPES" }), Lasting, Some("MISSING_SCOPES")),
            (Hubspot, 400, json!({ "status": "error", "message": "canary" }), Lasting, Some("error")),
            (Hubspot, 400, json!({ "category": "ana@acme.example is no id" }), Lasting, None),
            (Hubspot, 401, json!({ "category": "EXPIRED_AUTHENTICATION" }), Token, Some("EXPIRED_AUTHENTICATION")),
            (Hubspot, 429, json!({ "errorType": "RATE_LIMIT" }), Wait, Some("RATE_LIMIT")),
            (Hubspot, 423, json!(null), Trouble, None),
            (Hubspot, 477, json!(null), Trouble, None),
            (Hubspot, 502, json!("<html>"), Trouble, None),
            (Hubspot, 408, json!([]), Trouble, None),
            (Hubspot, 404, json!({}), Lasting, None),
            (Quickbooks, 400, fault("610"), Lasting, Some("610")),
            (Quickbooks, 400, json!({ "fault": { "error": [{ "code": "4000" }] } }), Lasting, Some("4000")),
            (Quickbooks, 401, fault("3200"), Token, Some("3200")),
            (Quickbooks, 403, fault("003100"), Lasting, Some("003100")),
            (Quickbooks, 403, fault("003001"), Wait, Some("003001")),
            (Quickbooks, 429, json!({}), Wait, None),
            (GoogleDrive, 403, google("userRateLimitExceeded"), Wait, Some("userRateLimitExceeded")),
            (GoogleDrive, 403, google("rateLimitExceeded"), Wait, Some("rateLimitExceeded")),
            (GoogleDrive, 403, google("sharingRateLimitExceeded"), Wait, Some("sharingRateLimitExceeded")),
            (GoogleDrive, 403, google("dailyLimitExceeded"), Wait, Some("dailyLimitExceeded")),
            (GoogleDrive, 403, google("exportSizeLimitExceeded"), Lasting, Some("exportSizeLimitExceeded")),
            (
                GoogleDrive,
                403,
                json!({ "error": { "status": "PERMISSION_DENIED", "details": [{ "@type": "x" }, { "reason": "SERVICE_DISABLED" }] } }),
                Lasting,
                Some("SERVICE_DISABLED"),
            ),
            (
                GoogleDrive,
                403,
                json!({ "error": { "status": "PERMISSION_DENIED" } }),
                Lasting,
                Some("PERMISSION_DENIED"),
            ),
            (GoogleDrive, 429, json!({}), Wait, None),
            (GoogleDrive, 500, json!({}), Trouble, None),
        ] {
            let complaint = heard(provider, status, body.to_string().as_bytes());
            assert_eq!((complaint.meaning, complaint.code.as_deref()), (meaning, code), "{provider} {status} {body}");
        }
    }

    #[test]
    fn a_wait_is_as_long_as_the_providers_window() {
        for (provider, body, secs) in [
            (Provider::Hubspot, json!({ "policyName": "TEN_SECONDLY_ROLLING" }), 10),
            (Provider::Hubspot, json!({ "message": "You have reached your ten_secondly_rolling limit." }), 10),
            (Provider::Hubspot, json!({ "message": "You have reached your secondly limit." }), 1),
            (Provider::Hubspot, json!({ "policyName": "SECONDLY" }), 1),
            // Never longer than an hour at a time.
            (Provider::Hubspot, json!({ "policyName": "DAILY" }), 3_600),
            (Provider::Hubspot, json!("?"), 10),
            (Provider::Quickbooks, json!({}), 60),
            (Provider::GoogleDrive, json!({}), 30),
            (Provider::GoogleDrive, json!({ "error": { "errors": [{ "reason": "dailyLimitExceeded" }] } }), 3_600),
        ] {
            let complaint = heard(provider, 429, body.to_string().as_bytes());
            assert_eq!(complaint.wait, Duration::from_secs(secs), "{provider} {body}");
        }
    }

    #[test]
    fn quickbooks_refuses_with_success_too() {
        let of = |body: Value| {
            let complaint = hidden_in_success(Provider::Quickbooks, body.to_string().as_bytes())?;
            Some((complaint.meaning, complaint.code))
        };
        let fault = |key: &str, errors: &str, code: &str, kind: &str| json!({ key: { errors: [{ "code": code }], "type": kind } });
        let known = |meaning, code: &str| Some((meaning, Some(code.to_owned())));
        assert_eq!(of(fault("Fault", "Error", "610", "ValidationFault")), known(Meaning::Lasting, "610"));
        assert_eq!(of(fault("fault", "error", "3200", "AUTHENTICATION")), known(Meaning::Token, "3200"));
        assert_eq!(of(fault("Fault", "Error", "003200", "")), known(Meaning::Token, "003200"));
        assert_eq!(of(fault("Fault", "Error", "003001", "ThrottleFault")), known(Meaning::Wait, "003001"));
        assert_eq!(of(fault("Fault", "Error", "10000", "SystemFault")), known(Meaning::Trouble, "10000"));
        assert_eq!(of(json!({ "Fault": {} })), Some((Meaning::Lasting, None)));
        assert_eq!(of(json!({ "Fault": null })), None);
        assert_eq!(of(json!({ "QueryResponse": { "Customer": [{ "DisplayName": "Fault" }] } })), None);
        assert_eq!(hidden_in_success(Provider::Hubspot, br#"{"Fault":{}}"#), None);
    }
}
