//! The guard's own tests: every scheme with vectors of others, mutated requests, and the time that a refusal takes.

mod generic;
mod mutated;
mod postmark;
mod timing;
mod twilio;

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue};
use store::channels::{Channel, Retiring, Secrets};

use super::*;
use crate::intake::providers;
use crate::intake::providers::generic::sign;

const SECRET: &str = "a-secret-of-more-than-24-characters";
const NOW: i64 = 1_800_000_000;

static NOBODYS: LazyLock<Arc<Keys>> = LazyLock::new(|| Arc::new(Keys::nobodys(&ChannelProviders::default())));

fn one(name: &str, secret: &str) -> Proofs {
    Proofs::default().with(name, Secret::new(secret))
}

/// An open channel with the secrets given, however short they are.
fn keys(spec: &ChannelSpec, proofs: &Proofs) -> Arc<Keys> {
    keys_of(spec, proofs, &Settings::default())
}

fn keys_of(spec: &ChannelSpec, proofs: &Proofs, settings: &Settings) -> Arc<Keys> {
    let material = KeyMaterial { proofs, before: None, settings };
    Arc::new(Keys::new(&ChannelProviders::default(), Some(spec), material, true))
}

fn generic_with(secret: &str) -> Arc<Keys> {
    let proofs = one("webhook_secret", secret).with("bearer", Secret::new("ak_live_0123456789"));
    keys(&providers::generic::SPEC, &proofs)
}

fn twilio_with(token: &str) -> Arc<Keys> {
    keys(&providers::twilio::SPEC, &one("auth_token", token))
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).expect("a time")
}

/// A request, ready to be checked and changed.
#[derive(Clone, Debug)]
pub struct Sent {
    pub base_url: String,
    pub target: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub now: i64,
    pub address: IpAddr,
}

impl Sent {
    pub fn new(base_url: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        Self {
            base_url: base_url.into(),
            target: target.into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect(),
            body: body.to_vec(),
            now: NOW,
            address: [203, 0, 113, 7].into(),
        }
    }

    /// The guard's verdict. None: at nobody's channel.
    pub fn check(&self, keys: Option<&Arc<Keys>>) -> Result<(), Why> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(value)) else {
                continue;
            };
            headers.append(name, value);
        }
        let (base_url, target) = (&self.base_url, &self.target);
        let request = Request { headers: &headers, target, base_url, address: self.address, now: at(self.now) };
        let mut check = Check::begin(keys.unwrap_or(&NOBODYS), request);
        for chunk in self.body.chunks(7) {
            check.update(chunk);
        }
        check.passes(&self.body)
    }
}

pub fn by_header(keys: Option<&Arc<Keys>>, headers: &[(&str, &str)], body: &[u8]) -> bool {
    Sent::new("https://in.example", "/ingest/k", headers, body).check(keys).is_ok()
}

/// A generic channel as its row and its sealed secrets say.
fn opened(secret: &str, retiring: Option<Retiring>, is_active: bool) -> Opened {
    let channel = Channel {
        id: uuid::Uuid::now_v7(),
        provider_code: providers::generic::SPEC.code.into(),
        name: "shop".into(),
        is_active,
        max_per_minute: None,
        person_id: None,
        auto_create_contacts: false,
        settings: Settings::default(),
        created_at: at(NOW),
    };
    let proofs = one("webhook_secret", secret).with("bearer", Secret::new("ak_live_of_more_than_24_characters"));
    let secrets = Secrets { ingestion_key: Secret::new("k"), proofs, retiring };
    Opened { tenant_id: domain::TenantId::new(), channel, secrets }
}

fn verdict(opened: &Opened, signed_with: &str) -> Result<(), Why> {
    let keys = Keys::of(&ChannelProviders::default(), &providers::generic::SPEC, opened, at(NOW));
    let signature = sign(&Secret::new(signed_with), b"x");
    let sent = Sent::new("https://in.example", "/ingest/k", &[("x-webhook-signature", &signature)], b"x");
    sent.check(Some(&Arc::new(keys)))
}

#[test]
fn secrets_before_a_rotation_are_good_until_their_time() {
    let passes = |until: i64| {
        let retiring = Retiring { proofs: one("webhook_secret", SECRET), until: at(until) };
        verdict(&opened("another-secret-of-24-characters", Some(retiring), true), SECRET).is_ok()
    };
    assert!(passes(NOW + 1) && !passes(NOW) && !passes(NOW - 1));
}

#[test]
fn a_closed_channel_takes_nothing_however_good_the_signature() {
    assert_eq!(verdict(&opened(SECRET, None, true), SECRET), Ok(()));
    assert_eq!(verdict(&opened(SECRET, None, false), SECRET), Err("the channel is disabled"));
    assert_eq!(verdict(&opened("short", None, true), "short"), Err("the channel is disabled"));
}
