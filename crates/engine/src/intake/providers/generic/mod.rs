//! Generic webhooks: any sender that signs its requests or shows a key, and speaks our words.

mod guide;
mod normalise;
mod sample;
mod senders;
mod verify;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Secret;
use rand::RngExt as _;
use store::keys::new_secret;

pub use verify::{sign, sign_standard};

use super::{ChannelSpec, NextStep, Origin, ProofSpec, Reply, Told, no_login, plain_url};

/// Signs bodies.
const WEBHOOK_SECRET: &str = "webhook_secret";
/// Sent as it is.
const BEARER: &str = "bearer";

pub static SPEC: ChannelSpec = ChannelSpec {
    code: "generic",
    label: "Generic webhook",
    choice: ("Generic", "any signed webhook"),
    // Its senders honour Retry-After, so a limit loses nothing.
    usual_limit: Some(100),
    proofs: &[
        ProofSpec {
            name: BEARER,
            label: "bearer key",
            origin: Origin::Made(|| new_secret("ak_live_")),
            is_shown: true,
        },
        ProofSpec {
            name: WEBHOOK_SECRET,
            label: "webhook secret",
            origin: Origin::GivenOrMade(new_webhook_secret),
            is_shown: true,
        },
    ],
    takes_shared_keys: false,
    networks: None,
    verifier: verify::verifier,
    normalise: normalise::normalise,
    large_body: None,
    reply: Reply { status: 202, plain: None },
    url: plain_url,
    sample: sample::SAMPLE,
    load: Some(sample::LOAD),
    recording_login: no_login,
    told: Told {
        new_secret: Some(("The sender's own new secret", "leave empty to generate one")),
        keep_private: "Keep these private.",
        next_step: |_, url, proofs| {
            NextStep {
            text: "Keep them private. To send something, signed:\n".into(),
            command: proofs.get(WEBHOOK_SECRET).map(|secret| {
                format!(
                    "body='{{\"type\":\"note\",\"content\":\"hello from a shell\"}}'; curl -sS '{url}' -H 'Content-Type: application/json' \
                     -H \"X-Webhook-Signature: sha256=$(printf %s \"$body\" | openssl dgst -sha256 -hmac '{}' -r | cut -d' ' -f1)\" \
                     --data-binary \"$body\"",
                    secret.reveal()
                )
            }),
        }
        },
    },
    guide: guide::GUIDE,
};

/// In the form of Standard Webhooks, which other senders take as plain text.
fn new_webhook_secret() -> Secret {
    Secret::new(format!("whsec_{}", STANDARD.encode(rand::rng().random::<[u8; 32]>())))
}
