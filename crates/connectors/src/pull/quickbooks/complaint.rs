//! QuickBooks' refusals: a Fault with a numbered error, which may also come with a good status.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::pull::complaint::{Complaint, Meaning, json, word_at};
use crate::pull::record::time;

const WAIT: Duration = Duration::from_secs(60);

/// Reads the answer to a request that failed.
pub(super) fn complaint(status: u16, body: &[u8]) -> Complaint {
    let said = json(body);
    // Both spellings are QuickBooks' own.
    let code = ["Fault", "fault"].into_iter().find_map(|key| fault_code(said.get(key)?));
    let meaning = if is_throttled(code.as_deref()) { Meaning::Wait } else { Meaning::of_status(status) };
    Complaint { meaning, code, wait: WAIT, told_at: time(said.get("time")) }
}

/// Finds a Fault in an answer with a good status.
pub(super) fn hidden_complaint(body: &[u8]) -> Option<Complaint> {
    /// The rest of the answer is large, and stepped over.
    #[derive(Deserialize)]
    struct Faulted {
        #[serde(rename = "Fault", alias = "fault")]
        fault: Value,
        #[serde(default)]
        time: Value,
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
    Some(Complaint { meaning, code, wait: WAIT, told_at: time(Some(&told)) })
}

fn is_throttled(code: Option<&str>) -> bool {
    is_code(code, "3001")
}

/// QuickBooks writes codes with and without zeros in front.
fn is_code(code: Option<&str>, known: &str) -> bool {
    code.is_some_and(|code| code.trim_start_matches('0') == known)
}

fn fault_code(fault: &Value) -> Option<String> {
    ["/Error/0/code", "/error/0/code"].into_iter().find_map(|at| word_at(fault, at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_known_by_its_status_and_by_its_code() {
        use Meaning::*;
        let fault = |code: &str| json!({ "Fault": { "Error": [{ "Message": "canary", "code": code }], "type": "ValidationFault" } });
        for (status, body, meaning, code) in [
            (400, fault("610"), Lasting, Some("610")),
            (400, json!({ "fault": { "error": [{ "code": "4000" }] } }), Lasting, Some("4000")),
            (401, fault("3200"), Token, Some("3200")),
            (403, fault("003100"), Lasting, Some("003100")),
            (403, fault("003001"), Wait, Some("003001")),
            (429, json!({}), Wait, None),
        ] {
            let complaint = complaint(status, body.to_string().as_bytes());
            assert_eq!((complaint.meaning, complaint.code.as_deref()), (meaning, code), "{status} {body}");
            assert_eq!(complaint.wait, Duration::from_secs(60));
        }
    }

    #[test]
    fn quickbooks_refuses_with_success_too() {
        let of = |body: Value| {
            let complaint = hidden_complaint(body.to_string().as_bytes())?;
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
    }
}
