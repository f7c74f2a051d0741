//! Who may bring something, decided on the raw bytes. What is computed depends on the request alone: every proof it shows is checked
//! with the channel's secrets, or with secrets that nobody has, and comparisons take the same time whatever they find. So a refusal
//! says nothing, not even by when it comes.

mod twilio;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use domain::{Secret, hex};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ipnet::IpNet;
use sha2::{Digest as _, Sha256};
use store::channels::{Opened, Proofs, Provider};
use subtle::ConstantTimeEq as _;

pub use twilio::sign as sign_twilio;

use crate::config::network;

/// How far a sender's clock may be off.
const TOLERANCE_SECS: i64 = 300;
/// Of one request: while a secret changes there are two.
const MOST_SIGNATURES: usize = 8;
/// Where Postmark's webhooks come from, as it publishes.
const POSTMARK: [&str; 4] = ["3.134.147.250/32", "50.31.156.6/32", "50.31.156.77/32", "18.217.206.57/32"];

/// A request as far as it is known before its body.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub headers: &'a HeaderMap,
    /// Path and query as they stand in the request line.
    pub target: &'a str,
    /// How others reach this server.
    pub base_url: &'a str,
    pub address: IpAddr,
    pub now: DateTime<Utc>,
}

/// Why somebody was refused, for the channel's owner alone.
pub(super) type Why = &'static str;

/// What requests of a channel are checked with. Of each secret there are two, the one in force and the one before.
pub(super) struct Keys {
    /// None: nobody's channel.
    provider: Option<Provider>,
    is_open: bool,
    bodies: [Hmac<Sha256>; 2],
    standard: [Hmac<Sha256>; 2],
    /// Hashed: texts of different lengths would be told apart by the time it takes to compare them.
    bearers: [[u8; 32]; 2],
    basics: [[u8; 32]; 2],
    tokens: [Secret; 2],
    shared: BTreeMap<String, Secret>,
    /// Checked where a shared key is named that there is not.
    stranger: Secret,
    ranges: Vec<IpNet>,
    require_ip: bool,
}

/// Checked for whoever has no channel.
static NOBODY: LazyLock<Arc<Keys>> =
    LazyLock::new(|| Arc::new(Keys::new(None, &Proofs::default(), None, postmark_ranges(None), true)));

fn random() -> Secret {
    store::keys::new_secret("")
}

/// Whether each is a network, or an address.
pub fn are_networks(texts: &[String]) -> bool {
    texts.iter().all(|text| network(text).is_ok())
}

fn postmark_ranges(given: Option<&[String]>) -> Vec<IpNet> {
    match given {
        Some(given) => given.iter().filter_map(|text| network(text).ok()).collect(),
        None => POSTMARK.iter().filter_map(|text| network(text).ok()).collect(),
    }
}

impl Keys {
    pub fn of(opened: &Opened, now: DateTime<Utc>) -> Self {
        let secrets = &opened.secrets;
        let before = secrets.retiring.as_ref().filter(|retiring| retiring.until > now).map(|retiring| &retiring.proofs);
        let ranges = postmark_ranges(opened.settings.ranges.as_deref());
        let mut keys = Self::new(Some(opened.provider), &secrets.proofs, before, ranges, opened.settings.require_ip);
        keys.is_open = opened.is_active;
        keys
    }

    fn new(
        provider: Option<Provider>,
        proofs: &Proofs,
        before: Option<&Proofs>,
        ranges: Vec<IpNet>,
        require_ip: bool,
    ) -> Self {
        // A secret that is not there is one that nobody has.
        let two = |of: fn(&Proofs) -> &Option<Secret>| {
            [of(proofs).clone(), before.and_then(|before| of(before).clone())]
                .map(|secret| secret.unwrap_or_else(random))
        };
        let signing = two(|proofs| &proofs.webhook_secret);
        Self {
            provider,
            is_open: false,
            bodies: signing.each_ref().map(|secret| keyed(secret.reveal().as_bytes())),
            standard: signing.each_ref().map(|secret| keyed(&standard_key(secret))),
            bearers: two(|proofs| &proofs.bearer).each_ref().map(store::keys::hash),
            basics: two(|proofs| &proofs.basic).each_ref().map(store::keys::hash),
            tokens: two(|proofs| &proofs.auth_token),
            shared: proofs.shared_keys.clone(),
            stranger: random(),
            ranges,
            require_ip,
        }
    }
}

/// What the bytes of a channel's requests are signed with.
fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")
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

/// A check under way: fed with the body as it comes.
pub(super) struct Check {
    keys: Arc<Keys>,
    /// Its address is one of the channel's ranges.
    is_near: bool,
    bearer: Shown,
    basic: Shown,
    /// By every scheme that the request shows.
    signed: Vec<Signed>,
    twilio: Option<twilio::Claim>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Wrong,
    Right,
}

/// Macs under way, and what the sender says they are.
struct Signed {
    macs: [Hmac<Sha256>; 2],
    said: Vec<[u8; 32]>,
    /// It says when, and that is now; or says nothing about it.
    is_timely: bool,
}

impl Signed {
    fn passes(&self) -> bool {
        let mut passes = false;
        for mac in &self.macs {
            let made = mac.clone().finalize().into_bytes();
            for said in &self.said {
                passes |= bool::from(made.ct_eq(said));
            }
        }
        passes
    }
}

impl Check {
    /// `None`: nobody's key.
    pub fn begin(keys: Option<&Arc<Keys>>, request: Request) -> Self {
        let keys = keys.unwrap_or(&NOBODY).clone();
        let bearer = authorization(request.headers, b"bearer ");
        let basic = authorization(request.headers, b"basic ").map(|given| STANDARD.decode(given).unwrap_or_default());
        let is_near =
            keys.ranges.iter().fold(false, |is_near, range| is_near | range.contains(&request.address.to_canonical()));
        Self {
            is_near,
            bearer: shown(bearer, &keys.bearers),
            basic: shown(basic.as_deref(), &keys.basics),
            signed: [
                plain(&keys, &request),
                standard(&keys, &request),
                stripe(&keys, &request),
                slack(&keys, &request),
            ]
            .into_iter()
            .flatten()
            .collect(),
            twilio: twilio::Claim::of(&request, basic.as_deref()),
            keys,
        }
    }

    /// Whether the body has to be kept for the check, and not only fed to it.
    pub fn wants_body(&self) -> bool {
        self.twilio.is_some()
    }

    /// Verified already by what came before the body: it may be larger than others.
    pub fn is_placed(&self) -> bool {
        self.keys.provider == Some(Provider::Postmark) && self.postmark() && self.keys.is_open
    }

    fn postmark(&self) -> bool {
        self.is_near | (self.basic == Shown::Right) | !self.keys.require_ip
    }

    pub fn update(&mut self, bytes: &[u8]) {
        for signed in &mut self.signed {
            signed.macs.iter_mut().for_each(|mac| mac.update(bytes));
        }
    }

    /// The body is complete; it is here where it was wanted.
    pub fn passes(&self, body: &[u8]) -> Result<(), Why> {
        let (keys, bearer) = (&self.keys, self.bearer);
        let is_signed = self.signed.iter().fold(false, |is_signed, one| is_signed | (one.passes() & one.is_timely));
        let twilio = self.twilio.as_ref().map(|claim| claim.check(keys, body));
        let verdict = match keys.provider {
            None => Err("nobody's key"),
            Some(Provider::Generic) => {
                if (bearer == Shown::Right) | is_signed {
                    Ok(())
                } else if self.signed.iter().any(|one| !one.is_timely) {
                    Err("its timestamp is no time within five minutes of now, or webhook-id is missing or has a dot")
                } else if !self.signed.is_empty() {
                    Err("the signature does not match: another secret signed it, or the body was changed on its way")
                } else if bearer == Shown::Wrong {
                    Err("the bearer key is not this channel's")
                } else {
                    Err("it shows no bearer key and no signature")
                }
            }
            Some(Provider::Twilio) => twilio.unwrap_or(Err("it has no X-Twilio-Signature")),
            Some(Provider::Postmark) if self.postmark() => Ok(()),
            Some(Provider::Postmark) if self.basic == Shown::Wrong => {
                Err("user and password are not this channel's, and its address is none of Postmark's")
            }
            Some(Provider::Postmark) => Err("its address is none of Postmark's, and it shows no user and password"),
        };
        match verdict {
            Ok(()) if !keys.is_open => Err("the channel is disabled"),
            verdict => verdict,
        }
    }
}

fn authorization<'a>(headers: &'a HeaderMap, scheme: &[u8]) -> Option<&'a [u8]> {
    let (given, rest) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(scheme.len())?;
    given.eq_ignore_ascii_case(scheme).then(|| rest.trim_ascii())
}

fn shown(given: Option<&[u8]>, wanted: &[[u8; 32]; 2]) -> Shown {
    let Some(given) = given else { return Shown::Nothing };
    let given: [u8; 32] = Sha256::digest(given).into();
    let is_one = wanted.iter().fold(false, |is_one, hash| is_one | bool::from(given.ct_eq(hash)));
    if is_one { Shown::Right } else { Shown::Wrong }
}

fn text<'a>(request: &Request<'a>, name: &str) -> Option<&'a str> {
    request.headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

fn is_now(timestamp: &str, request: &Request) -> bool {
    let is_plain = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let at: Option<i64> = timestamp.parse().ok();
    is_plain & at.is_some_and(|at| at.abs_diff(request.now.timestamp()) <= TOLERANCE_SECS.unsigned_abs())
}

/// Macs fed with what is signed before the body.
fn begun(macs: &[Hmac<Sha256>; 2], before: &str) -> [Hmac<Sha256>; 2] {
    macs.clone().map(|mac| mac.chain_update(before))
}

/// `sha256=<hex>` over the body: ours, and GitHub's.
fn plain(keys: &Keys, request: &Request) -> Option<Signed> {
    let said = text(request, "x-webhook-signature").or_else(|| text(request, "x-hub-signature-256"))?;
    let said = said.strip_prefix("sha256=").and_then(hex::decode).into_iter().collect();
    Some(Signed { macs: keys.bodies.clone(), said, is_timely: true })
}

/// Standard Webhooks, also under its other name: `v1,<base64>` over `{id}.{timestamp}.{body}`.
fn standard(keys: &Keys, request: &Request) -> Option<Signed> {
    let header = |name: &str| ["webhook", "svix"].iter().find_map(|by| text(request, &format!("{by}-{name}")));
    let (said, id, timestamp) =
        (header("signature")?, header("id").unwrap_or_default(), header("timestamp").unwrap_or_default());
    let versions = said.split(' ').filter_map(|entry| entry.strip_prefix("v1,"));
    // An id with a dot could be read as another id and another time.
    let is_plain = !id.is_empty() & !id.contains('.');
    Some(Signed {
        macs: begun(&keys.standard, &format!("{id}.{timestamp}.")),
        said: versions.filter_map(|text| STANDARD.decode(text).ok()?.try_into().ok()).take(MOST_SIGNATURES).collect(),
        is_timely: is_plain & is_now(timestamp, request),
    })
}

/// Stripe: `t=<time>,v1=<hex>` over `{t}.{body}`.
fn stripe(keys: &Keys, request: &Request) -> Option<Signed> {
    let said = text(request, "stripe-signature")?;
    let parts = || said.split(',').filter_map(|part| part.trim().split_once('='));
    let timestamp = parts().find(|(name, _)| *name == "t").map_or("", |(_, time)| time);
    Some(Signed {
        macs: begun(&keys.bodies, &format!("{timestamp}.")),
        said: parts()
            .filter(|(name, _)| *name == "v1")
            .filter_map(|(_, digits)| hex::decode(digits))
            .take(MOST_SIGNATURES)
            .collect(),
        is_timely: is_now(timestamp, request),
    })
}

/// Slack: `v0=<hex>` over `v0:{timestamp}:{body}`.
fn slack(keys: &Keys, request: &Request) -> Option<Signed> {
    let said = text(request, "x-slack-signature")?;
    let timestamp = text(request, "x-slack-request-timestamp").unwrap_or_default();
    Some(Signed {
        macs: begun(&keys.bodies, &format!("v0:{timestamp}:")),
        said: said.strip_prefix("v0=").and_then(hex::decode).into_iter().collect(),
        is_timely: is_now(timestamp, request),
    })
}

#[cfg(test)]
mod tests;
