//! Postmark: inbound e-mail as JSON, its attachments inside.

mod guide;
mod normalise;
mod sample;
mod verify;

use domain::Secret;
use store::keys::new_secret;

use super::{ChannelSpec, LargeBody, NextStep, Origin, ProofSpec, Reply, Told, no_login, plain_url};

/// `user:password` of basic auth, part of the URL.
const BASIC: &str = "basic";

pub static SPEC: ChannelSpec = ChannelSpec {
    code: "postmark",
    label: "Postmark",
    choice: ("Postmark", "inbound e-mail"),
    usual_limit: None,
    proofs: &[ProofSpec {
        name: BASIC,
        label: "basic auth password",
        origin: Origin::Made(|| Secret::new(format!("postmark:{}", new_secret("").reveal()))),
        is_shown: false,
    }],
    takes_shared_keys: false,
    networks: Some(&["3.134.147.250/32", "50.31.156.6/32", "50.31.156.77/32", "18.217.206.57/32"]),
    verifier: verify::verifier,
    normalise: normalise::normalise,
    large_body: Some(LargeBody { most_bytes: 50 << 20, files: ("Attachments", "Content"), left_out: &["RawEmail"] }),
    // Postmark's documentation promises nothing about other codes.
    reply: Reply { status: 200, plain: None },
    url: |base_url, secrets| match (base_url.split_once("://"), secrets.proofs.get(BASIC)) {
        (Some((scheme, rest)), Some(basic)) => {
            format!("{scheme}://{}@{}", basic.reveal(), plain_url(rest, secrets))
        }
        _ => plain_url(base_url, secrets),
    },
    sample: sample::SAMPLE,
    load: Some(sample::LOAD),
    recording_login: no_login,
    told: Told {
        new_secret: None,
        keep_private: "Keep these private: anyone who knows the URL can send events. It contains the user and password, which Postmark sends with every e-mail.",
        next_step: |id, _, _| NextStep {
            text: format!(
                "Keep it private: it contains the user and password. Paste it into Postmark as the inbound webhook.\n\
                 docs/connect.md says where; `tributary channel send-test {id}` tries it."
            ),
            command: None,
        },
    },
    guide: guide::GUIDE,
};
