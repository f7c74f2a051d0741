//! Twilio's signature: HMAC over the public URL and, for forms, every parameter by name. For JSON the URL names the body's hash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Secret, hex};
use hmac::Hmac;
use http::header::CONTENT_TYPE;
use percent_encoding::percent_decode;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::AUTH_TOKEN;
use crate::intake::guard::proof::{authorization, random};
use crate::intake::guard::{KeyMaterial, Request, Verification, Verifier, Why};

/// More than any webhook of Twilio's has; sorting stays cheap.
const MOST_PARAMETERS: usize = 1_000;

struct Keys {
    tokens: [Secret; 2],
    shared: BTreeMap<String, Secret>,
    /// Checked where a request names a shared key that the channel does not have.
    stranger: Secret,
}

pub(super) fn verifier(material: &KeyMaterial) -> Arc<dyn Verifier> {
    let shared = material.proofs.shared_keys.clone();
    Arc::new(Keys { tokens: material.two(AUTH_TOKEN), shared, stranger: random() })
}

impl Verifier for Keys {
    fn begin(self: Arc<Self>, request: &Request) -> Box<dyn Verification> {
        Box::new(Check { claim: Claim::of(request), keys: self })
    }
}

struct Check {
    keys: Arc<Keys>,
    claim: Option<Claim>,
}

impl Verification for Check {
    fn wants_body(&self) -> bool {
        self.claim.is_some()
    }

    fn verdict(&self, body: &[u8]) -> Result<(), Why> {
        let verdict = self.claim.as_ref().map(|claim| claim.check(&self.keys, body));
        verdict.unwrap_or(Err("it has no X-Twilio-Signature"))
    }
}

/// A request's signature, and what it says about how it was made.
struct Claim {
    signature: Vec<u8>,
    by: By,
    /// The forms in which the URL may have been signed: without a port and with it, without user and password and with them, quotes as sent
    /// and encoded.
    urls: Vec<String>,
    is_form: bool,
    body_sha256: Option<String>,
}

enum By {
    /// SHA-1 with the account's auth token.
    Account,
    Shared {
        key: String,
        is_sha256: bool,
    },
    /// It names an unknown way of signing.
    Unknown,
}

impl Claim {
    /// None: the request has no such signature.
    fn of(request: &Request) -> Option<Self> {
        let signature = request.headers.get("x-twilio-signature")?.as_bytes().to_vec();
        // User and password of the URL, which Twilio sends as basic auth and may have signed or not.
        let basic = authorization(request.headers, b"basic ").map(|given| STANDARD.decode(given).unwrap_or_default());
        let userinfo = basic.as_deref().and_then(|userinfo| std::str::from_utf8(userinfo).ok());
        let settings = request.headers.get("x-twilio-webhooks-signature-settings");
        let by = settings.map_or(By::Account, |value| by(value.to_str().unwrap_or_default()));
        let media = request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        let query = request.target.split_once('?').map_or("", |(_, query)| query);
        Some(Self {
            signature,
            by,
            urls: urls(request.base_url, request.target, userinfo),
            is_form: media.eq_ignore_ascii_case("application/x-www-form-urlencoded"),
            body_sha256: query.split('&').find_map(|pair| pair.strip_prefix("bodySHA256=")).map(str::to_owned),
        })
    }

    fn check(&self, keys: &Keys, body: &[u8]) -> Result<(), Why> {
        let rest = if self.is_form { parameters(body) } else { Some(Vec::new()) };
        let is_body = self.is_form | self.is_body(body);
        let (secrets, is_sha256): (Vec<&Secret>, bool) = match &self.by {
            By::Account => (keys.tokens.iter().collect(), false),
            By::Shared { key, is_sha256 } => (vec![keys.shared.get(key).unwrap_or(&keys.stranger)], *is_sha256),
            By::Unknown => (Vec::new(), false),
        };
        let is_strange = matches!(&self.by, By::Shared { key, .. } if !keys.shared.contains_key(key));
        let mut is_signed = false;
        for secret in &secrets {
            for url in &self.urls {
                let made = mac(secret, is_sha256, &[url.as_bytes(), rest.as_deref().unwrap_or_default()]);
                is_signed |= bool::from(made.as_bytes().ct_eq(&self.signature));
            }
        }
        match (&self.by, &rest) {
            (By::Unknown, _) => Err("it is signed in a way that is not known: neither HMAC_SHA1 nor HMAC_SHA256"),
            _ if is_strange => Err("it is signed with a shared key that this channel does not have"),
            (_, None) => Err("it has more parameters than any webhook of Twilio's"),
            _ if !self.is_form && self.body_sha256.is_none() => Err("it is no form, and its URL has no bodySHA256"),
            _ if is_signed & is_body => Ok(()),
            _ if is_signed => Err("its body is not the one that was signed"),
            _ => Err(
                "X-Twilio-Signature does not match: the auth token is another account's, or PUBLIC_URL is not the URL that Twilio calls",
            ),
        }
    }

    fn is_body(&self, body: &[u8]) -> bool {
        let made = hex::encode(Sha256::digest(body));
        self.body_sha256.as_ref().is_some_and(|said| made.as_bytes().ct_eq(said.as_bytes()).into())
    }
}

fn mac(secret: &Secret, is_sha256: bool, parts: &[&[u8]]) -> String {
    fn of<M: hmac::Mac + hmac::KeyInit>(key: &[u8], parts: &[&[u8]]) -> String {
        let mut mac = <M as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        STANDARD.encode(mac.finalize().into_bytes())
    }
    let key = secret.reveal().as_bytes();
    if is_sha256 { of::<Hmac<Sha256>>(key, parts) } else { of::<Hmac<Sha1>>(key, parts) }
}

/// `key=…,algorithm=…`
fn by(settings: &str) -> By {
    let field = |name: &str| {
        settings.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=').map(str::trim))
    };
    let is_sha256 = match field("algorithm") {
        None | Some("HMAC_SHA1") => false,
        Some("HMAC_SHA256") => true,
        Some(_) => return By::Unknown,
    };
    match field("key") {
        Some(key) => By::Shared { key: key.to_owned(), is_sha256 },
        None if is_sha256 => By::Unknown, // the auth token signs with SHA-1 alone
        None => By::Account,
    }
}

fn urls(base: &str, target: &str, userinfo: Option<&str>) -> Vec<String> {
    let (scheme, rest) = base.split_once("://").unwrap_or(("https", base));
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority, if scheme == "http" { "80" } else { "443" }),
    };
    let mut authorities = vec![host.to_owned(), format!("{host}:{port}")];
    authorities.extend(
        userinfo.into_iter().flat_map(|userinfo| [format!("{userinfo}@{host}"), format!("{userinfo}@{host}:{port}")]),
    );
    let mut urls = Vec::with_capacity(4);
    for authority in authorities {
        let url = format!("{scheme}://{authority}{path}{target}");
        if url.contains('\'') {
            urls.push(url.replace('\'', "%27"));
        }
        urls.push(url);
    }
    urls
}

/// Every parameter's name and value, sorted by name and then by value, each once. None: too many.
pub(in crate::intake) fn parameters(body: &[u8]) -> Option<Vec<u8>> {
    let decoded = |part: &[u8]| {
        let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        percent_decode(&spaced).collect::<Vec<u8>>()
    };
    let mut sorted: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for (nth, pair) in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).enumerate() {
        if nth == MOST_PARAMETERS {
            return None;
        }
        let at = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = at.map_or((pair, &b""[..]), |at| (&pair[..at], &pair[at + 1..]));
        sorted.entry(decoded(name)).or_default().insert(decoded(value));
    }
    let mut all = Vec::with_capacity(body.len());
    for (name, values) in sorted {
        for value in values {
            all.extend_from_slice(&name);
            all.extend_from_slice(&value);
        }
    }
    Some(all)
}

/// The header `X-Twilio-Signature` of a form, as Twilio makes it.
pub fn sign(token: &Secret, url: &str, form: &[u8]) -> String {
    mac(token, false, &[url.as_bytes(), &parameters(form).unwrap_or_default()])
}
