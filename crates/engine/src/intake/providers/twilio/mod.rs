//! Twilio: calls, recordings, SMS and WhatsApp.

mod guide;
mod normalise;
mod sample;
mod verify;

use connectors::outside::Basic;
use serde_json::Value;
use store::channels::Proofs;

#[cfg(test)]
pub(in crate::intake) use verify::parameters;
pub use verify::sign;

use super::{ChannelSpec, NextStep, Origin, ProofSpec, Reply, Told, plain_url};

/// The account's primary auth token, which signs requests and opens recordings.
const AUTH_TOKEN: &str = "auth_token";

pub static SPEC: ChannelSpec = ChannelSpec {
    code: "twilio",
    label: "Twilio",
    choice: ("Twilio", "calls, SMS, WhatsApp"),
    usual_limit: None,
    proofs: &[ProofSpec {
        name: AUTH_TOKEN,
        label: "Twilio auth token",
        origin: Origin::Given {
            unchanged: "only Twilio makes its auth tokens: give the new one, or ask for a new URL",
        },
        is_shown: false,
    }],
    takes_shared_keys: true,
    networks: None,
    verifier: verify::verifier,
    normalise: normalise::normalise,
    large_body: None,
    // Twilio takes an answer for instructions: this one has none.
    reply: Reply { status: 202, plain: Some(("text/xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response/>")) },
    // Twilio takes its retry rules from the URL; by default it retries no HTTP error.
    url: |base_url, secrets| format!("{}#rc=5&rp=all", plain_url(base_url, secrets)),
    sample: sample::SAMPLE,
    load: Some(sample::LOAD),
    recording_login,
    told: Told {
        new_secret: Some(("Twilio's new auth token", "")),
        keep_private: "Keep these private. Paste the whole URL, including the part after the #: without it, Twilio does not retry an event after an error.",
        next_step: |id, _, _| NextStep {
            text: format!(
                "Keep it private. Paste the whole URL into Twilio, including the part after the #: it makes Twilio retry an event after an error.\n\
                 Twilio must be able to reach it: set PUBLIC_URL. docs/connect.md says where to paste it; `tributary channel send-test {id}` tries it."
            ),
            command: None,
        },
    },
    guide: guide::GUIDE,
};

/// Twilio keeps recordings behind the account's own credentials.
fn recording_login(metadata: &Value, proofs: &Proofs) -> Option<Basic> {
    let account = metadata.get("account_sid")?.as_str()?;
    let is_plain = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let password = proofs.get(AUTH_TOKEN).filter(|_| is_plain)?.clone();
    Some(Basic { user: account.to_owned(), password, domain: "twilio.com" })
}

#[cfg(test)]
mod tests {
    use domain::Secret;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recording_is_opened_with_the_account_that_the_event_names() {
        let proofs = Proofs::default().with(AUTH_TOKEN, Secret::new("token"));
        let login = recording_login(&json!({ "account_sid": "AC1" }), &proofs).expect("a login");
        assert_eq!((login.user.as_str(), login.password.reveal(), login.domain), ("AC1", "token", "twilio.com"));
        for none in [json!({}), json!({ "account_sid": "" }), json!({ "account_sid": "AC1:x\r\n" })] {
            assert!(recording_login(&none, &proofs).is_none(), "{none}");
        }
        assert!(recording_login(&json!({ "account_sid": "AC1" }), &Proofs::default()).is_none());
    }
}
