//! Google's refusals: a list of reasons, in an older and a newer style. Some of those with status 403 mean that we asked too often.

use std::time::Duration;

use serde_json::Value;

use crate::pull::complaint::{Complaint, DAILY_WAIT, Meaning, json, word_at};

/// Reasons that mean "too often" and come with status 403.
const WAITS: [&str; 4] = ["userRateLimitExceeded", "rateLimitExceeded", "sharingRateLimitExceeded", DAILY];
const DAILY: &str = "dailyLimitExceeded";
const WAIT: Duration = Duration::from_secs(30);

/// Reads the answer to a request that failed.
pub(in crate::pull) fn complaint(status: u16, body: &[u8]) -> Complaint {
    let reasons = reasons(&json(body));
    let is_wait = status == 403 && reasons.iter().any(|reason| WAITS.contains(&reason.as_str()));
    let meaning = if is_wait { Meaning::Wait } else { Meaning::of_status(status) };
    let is_daily = reasons.iter().any(|reason| reason == DAILY);
    let wait = if is_daily { DAILY_WAIT } else { WAIT };
    Complaint { meaning, code: reasons.into_iter().next(), wait, told_at: None }
}

/// The older reasons, those of the newer style, and its status, in that order.
fn reasons(said: &Value) -> Vec<String> {
    let listed = ["/error/errors", "/error/details"].into_iter().filter_map(|at| said.pointer(at)?.as_array());
    let mut reasons: Vec<String> = listed.flatten().filter_map(|entry| word_at(entry, "/reason")).collect();
    reasons.extend(word_at(said, "/error/status"));
    reasons
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_status_and_by_googles_reason() {
        use Meaning::*;
        let old =
            |reason: &str| json!({ "error": { "code": 403, "message": "canary", "errors": [{ "reason": reason }] } });
        let new = |details: Value| json!({ "error": { "status": "PERMISSION_DENIED", "details": details } });
        let disabled = json!([{ "@type": "x" }, { "reason": "SERVICE_DISABLED" }]);
        for (status, body, meaning, code, secs) in [
            (403, old("userRateLimitExceeded"), Wait, Some("userRateLimitExceeded"), 30),
            (403, old("rateLimitExceeded"), Wait, Some("rateLimitExceeded"), 30),
            (403, old("sharingRateLimitExceeded"), Wait, Some("sharingRateLimitExceeded"), 30),
            (403, old("dailyLimitExceeded"), Wait, Some("dailyLimitExceeded"), 3_600),
            (403, old("exportSizeLimitExceeded"), Lasting, Some("exportSizeLimitExceeded"), 30),
            (403, new(disabled), Lasting, Some("SERVICE_DISABLED"), 30),
            (403, new(json!(null)), Lasting, Some("PERMISSION_DENIED"), 30),
            (429, old("dailyLimitExceeded"), Wait, Some("dailyLimitExceeded"), 3_600),
            (429, json!({}), Wait, None, 30),
            (500, json!({}), Trouble, None, 30),
        ] {
            let complaint = complaint(status, body.to_string().as_bytes());
            assert_eq!((complaint.meaning, complaint.code.as_deref()), (meaning, code), "{status} {body}");
            assert_eq!(complaint.wait, Duration::from_secs(secs), "{status} {body}");
        }
    }
}
