//! Graph's refusals: a code below `error`, and those of Microsoft's identity platform.

use std::time::Duration;

use serde_json::Value;

use crate::pull::complaint::{Complaint, Meaning, json, word_at};
use crate::pull::oauth::GrantError;

/// A wait that nobody told us the length of. Graph nearly always does.
const WAIT: Duration = Duration::from_secs(10);

/// Codes by which Graph says that a link is no longer good, in small letters.
const LOST: [&str; 5] = [
    "syncstatenotfound",
    "syncstateinvalid",
    "resyncrequired",
    "resyncchangesapplydifferences",
    "resyncchangesuploaddifferences",
];

/// Reads the answer to a request that failed.
pub(super) fn complaint(status: u16, body: &[u8]) -> Complaint {
    let said = json(body);
    let code = ["/error/code", "/error"].into_iter().find_map(|at| word_at(&said, at));
    let meaning = match (status, code.as_deref()) {
        (_, Some("ApplicationThrottled" | "TooManyRequests" | "ErrorServerBusy" | "MailboxConcurrency")) => {
            Meaning::Wait
        }
        // A page that was too much for Graph. The same link may be asked for less.
        (504, _) => Meaning::Lasting,
        // The mailbox moves to another server of Microsoft's.
        (_, Some("ErrorMailboxMoveInProgress" | "MailboxInfoStale" | "ErrorInternalServerTransientError")) => {
            Meaning::Trouble
        }
        _ => Meaning::of_status(status),
    };
    Complaint { meaning, code, wait: WAIT, told_at: None }
}

/// Whether a refusal means that a link from an earlier answer is no longer good.
pub(super) fn is_lost(status: u16, code: Option<&str>) -> bool {
    let says_so = || code.is_some_and(|code| LOST.contains(&code.to_ascii_lowercase().as_str()));
    status == 410 || (matches!(status, 400 | 404) && says_so())
}

/// Reads a refusal to give a token. What a person or an administrator has to allow anew ends the grant; a wrong scope or resource is ours.
pub(super) fn refusal(_: u16, said: &Value) -> Option<GrantError> {
    match said.get("error")?.as_str()? {
        "interaction_required" => Some(GrantError::Revoked { code: "interaction_required" }),
        "consent_required" => Some(GrantError::Revoked { code: "consent_required" }),
        "login_required" => Some(GrantError::Revoked { code: "login_required" }),
        "invalid_scope" | "invalid_resource" => Some(GrantError::OurClient),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(code: &str) -> Value {
        json!({ "error": { "code": code, "message": "canary", "innerError": { "request-id": "1" } } })
    }

    #[test]
    fn a_refusal_is_known_by_its_status_and_by_graphs_code() {
        use Meaning::*;
        for (status, body, meaning, code) in [
            (401, said("InvalidAuthenticationToken"), Token, Some("InvalidAuthenticationToken")),
            (403, said("ErrorAccessDenied"), Lasting, Some("ErrorAccessDenied")),
            (404, said("ErrorItemNotFound"), Lasting, Some("ErrorItemNotFound")),
            (429, said("TooManyRequests"), Wait, Some("TooManyRequests")),
            (429, said("ApplicationThrottled"), Wait, Some("ApplicationThrottled")),
            (503, said("UnknownError"), Trouble, Some("UnknownError")),
            (504, said("UnknownError"), Lasting, Some("UnknownError")),
            (400, said("ana@acme.example is no id"), Lasting, None),
            (502, json!("<html>"), Trouble, None),
        ] {
            let complaint = complaint(status, body.to_string().as_bytes());
            assert_eq!((complaint.meaning, complaint.code.as_deref()), (meaning, code), "{status} {body}");
        }
    }

    #[test]
    fn a_lost_place_is_said_in_many_ways() {
        for (status, code, is) in [
            (410, Some("SyncStateNotFound"), true),
            (410, None, true),
            (400, Some("syncStateInvalid"), true),
            (404, Some("resyncRequired"), true),
            (404, Some("ErrorItemNotFound"), false),
            (400, None, false),
            (403, Some("SyncStateNotFound"), false),
        ] {
            assert_eq!(is_lost(status, code), is, "{status} {code:?}");
        }
    }

    #[test]
    fn a_grant_ends_only_where_somebody_has_to_allow_it_anew() {
        let of = |error: &str| match refusal(400, &json!({ "error": error, "error_description": "canary" })) {
            Some(GrantError::Revoked { code }) => code,
            Some(GrantError::OurClient) => "ours",
            _ => "passing",
        };
        for (error, expected) in [
            ("interaction_required", "interaction_required"),
            ("consent_required", "consent_required"),
            ("invalid_scope", "ours"),
            ("temporarily_unavailable", "passing"),
            ("server_error", "passing"),
        ] {
            assert_eq!(of(error), expected, "{error}");
        }
    }
}
