//! A generic sender shows the channel's bearer key, or signs the body with its secret by one of four schemes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Secret, hex};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::{BEARER, WEBHOOK_SECRET};
use crate::intake::guard::proof::{Shown, Signed, authorization, is_now, keyed};
use crate::intake::guard::{KeyMaterial, Request, Verification, Verifier, Why};

/// Signatures of one request that are compared: while a secret changes there are two.
const MOST_SIGNATURES: usize = 8;
/// The beginning of a body that is looked at: room for an id and a time.
const BEGINS_BYTES: usize = 600;

struct Keys {
    bodies: [Hmac<Sha256>; 2],
    standard: [Hmac<Sha256>; 2],
    bearers: [[u8; 32]; 2],
}

pub(super) fn verifier(material: &KeyMaterial) -> Arc<dyn Verifier> {
    let signing = material.two(WEBHOOK_SECRET);
    Arc::new(Keys {
        bodies: signing.each_ref().map(|secret| keyed(secret.reveal().as_bytes())),
        standard: signing.each_ref().map(|secret| keyed(&standard_key(secret))),
        bearers: material.two(BEARER).each_ref().map(store::keys::hash),
    })
}

struct Check {
    bearer: Shown,
    /// One for each scheme that the request shows, by the header with its signature.
    signed: Vec<(&'static str, Signed)>,
    /// The first bytes of the body.
    begins: Vec<u8>,
}

/// The header of the scheme that signs the body and nothing else.
const PLAIN: &str = "x-webhook-signature";
/// Headers of schemes that name the event in the signed body.
pub(super) const STRIPE: &str = "stripe-signature";
pub(super) const SLACK: &str = "x-slack-signature";

/// Begins to check one kind of signature. None: the request has no such signature.
type Scheme = fn(&Keys, &Request) -> Option<Signed>;

/// By the header of each. Those that sign the event's id come first: of a request that is signed twice, they decide which event it is.
const SCHEMES: [(&str, Scheme); 4] =
    [("webhook-signature", standard), (STRIPE, stripe), (SLACK, slack), (PLAIN, plain)];

impl Verifier for Keys {
    fn begin(self: Arc<Self>, request: &Request) -> Box<dyn Verification> {
        let shown = |(header, scheme): (&'static str, Scheme)| Some((header, scheme(&self, request)?));
        Box::new(Check {
            bearer: Shown::new(authorization(request.headers, b"bearer "), &self.bearers),
            signed: SCHEMES.into_iter().filter_map(shown).collect(),
            begins: Vec::new(),
        })
    }
}

impl Verification for Check {
    fn update(&mut self, piece: &[u8]) {
        let left = BEGINS_BYTES.saturating_sub(self.begins.len());
        self.begins.extend_from_slice(&piece[..left.min(piece.len())]);
        self.signed.iter_mut().for_each(|(_, signed)| signed.update(piece));
    }

    fn verdict(&self, _: &[u8]) -> Result<(), Why> {
        let is_signed =
            self.signed.iter().fold(false, |is_signed, (header, one)| is_signed | self.is_good(header, one));
        if (self.bearer == Shown::Right) | is_signed {
            Ok(())
        } else if self.signed.iter().any(|(_, one)| !one.is_timely) {
            Err("its timestamp is no time within five minutes of now, or webhook-id is missing or has a dot")
        } else if !self.signed.is_empty() {
            Err("the signature does not match: another secret signed it, or the body was changed on its way")
        } else if self.bearer == Shown::Wrong {
            Err("the bearer key is not this channel's")
        } else {
            Err("it shows no bearer key and no signature")
        }
    }

    fn signature(&self) -> Option<&'static str> {
        self.signed.iter().find(|(header, one)| self.is_good(header, one)).map(|(header, _)| *header)
    }
}

impl Check {
    /// Text that another scheme signs is no body: shown as one, an old request would be a new event, and good for ever.
    fn is_good(&self, header: &str, signed: &Signed) -> bool {
        let is_anothers = (header == PLAIN) & begins_with_time(&self.begins);
        signed.passes() & signed.is_timely & !is_anothers
    }
}

/// Whether a body begins as the other schemes begin what they sign: `<time>.`, `v0:<time>:` or `<id>.<time>.`. No JSON and no form does.
fn begins_with_time(body: &[u8]) -> bool {
    let is_time = |part: &[u8]| (9..=12).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    let is_id = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_graphic() && !b"{}[]\"'=&<".contains(byte));
    if let Some(rest) = body.strip_prefix(b"v0:") {
        return rest.split(|byte| *byte == b':').next().is_some_and(is_time);
    }
    let mut parts = body.splitn(3, |byte| *byte == b'.');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(time), Some(_), _) if is_time(time) => true,
        (Some(id), Some(time), Some(_)) => is_id(id) && is_time(time),
        _ => false,
    }
}

/// Standard Webhooks: the secret is base64 after `whsec_`. Any other text signs as it is.
fn standard_key(secret: &Secret) -> Vec<u8> {
    let text = secret.reveal();
    let decoded = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text));
    decoded.ok().filter(|key| key.len() >= 16).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The header `X-Webhook-Signature` of a body, as a sender makes it.
pub fn sign(secret: &Secret, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(keyed(secret.reveal().as_bytes()).chain_update(body).finalize().into_bytes()))
}

/// The header `webhook-signature` of a body, as Standard Webhooks makes it.
pub fn sign_standard(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> String {
    let mac = keyed(&standard_key(secret)).chain_update(format!("{id}.{timestamp}.")).chain_update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// HMACs that are fed already with what is signed before the body.
fn begun(macs: &[Hmac<Sha256>; 2], before: &str) -> [Hmac<Sha256>; 2] {
    macs.clone().map(|mac| mac.chain_update(before))
}

/// `sha256=<hex>` over the body: our own scheme, and GitHub's.
fn plain(keys: &Keys, request: &Request) -> Option<Signed> {
    let said = request.text(PLAIN).or_else(|| request.text("x-hub-signature-256"))?;
    let said = said.strip_prefix("sha256=").and_then(hex::decode).into_iter().collect();
    Some(Signed { macs: keys.bodies.clone(), said, is_timely: true })
}

/// Standard Webhooks, also under its other name: `v1,<base64>` over `{id}.{timestamp}.{body}`.
fn standard(keys: &Keys, request: &Request) -> Option<Signed> {
    let header = |name: &str| ["webhook", "svix"].iter().find_map(|by| request.text(&format!("{by}-{name}")));
    let (said, id, timestamp) =
        (header("signature")?, header("id").unwrap_or_default(), header("timestamp").unwrap_or_default());
    let versions = said.split(' ').filter_map(|entry| entry.strip_prefix("v1,"));
    // An id with a dot could be read as another id and another time.
    let is_plain = !id.is_empty() & !id.contains('.');
    Some(Signed {
        macs: begun(&keys.standard, &format!("{id}.{timestamp}.")),
        said: versions.filter_map(|text| STANDARD.decode(text).ok()?.try_into().ok()).take(MOST_SIGNATURES).collect(),
        is_timely: is_plain & is_now(timestamp, request.now.timestamp()),
    })
}

/// Stripe: `t=<time>,v1=<hex>` over `{t}.{body}`.
fn stripe(keys: &Keys, request: &Request) -> Option<Signed> {
    let said = request.text(STRIPE)?;
    let parts = || said.split(',').filter_map(|part| part.trim().split_once('='));
    let timestamp = parts().find(|(name, _)| *name == "t").map_or("", |(_, time)| time);
    Some(Signed {
        macs: begun(&keys.bodies, &format!("{timestamp}.")),
        said: parts()
            .filter(|(name, _)| *name == "v1")
            .filter_map(|(_, digits)| hex::decode(digits))
            .take(MOST_SIGNATURES)
            .collect(),
        is_timely: is_now(timestamp, request.now.timestamp()),
    })
}

/// Slack: `v0=<hex>` over `v0:{timestamp}:{body}`.
fn slack(keys: &Keys, request: &Request) -> Option<Signed> {
    let said = request.text(SLACK)?;
    let timestamp = request.text("x-slack-request-timestamp").unwrap_or_default();
    Some(Signed {
        macs: begun(&keys.bodies, &format!("v0:{timestamp}:")),
        said: said.strip_prefix("v0=").and_then(hex::decode).into_iter().collect(),
        is_timely: is_now(timestamp, request.now.timestamp()),
    })
}
