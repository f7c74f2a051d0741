//! An issuer's public keys (a JSON web key set), as far as they are RSA keys for signatures.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use reqwest::header::{ACCEPT_ENCODING, CACHE_CONTROL, HeaderMap};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Refused;
use crate::Http;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_MAX_BYTES: usize = 256 * 1024;
/// The keys are kept for as long as their issuer says, within these bounds.
const KEPT: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(86_400));
/// Anybody can name a key that nobody knows, so the issuer is not asked oftener because of one.
const BETWEEN: Duration = Duration::from_secs(60);
/// The same after a failure, which may be short.
const BETWEEN_FAILURES: Duration = Duration::from_secs(5);

/// A public key: its modulus and its exponent.
pub(super) struct Key {
    pub n: Vec<u8>,
    pub e: Vec<u8>,
}

pub(super) struct Keys {
    http: Http,
    url: String,
    known: RwLock<Known>,
    /// Held by the one that asks the issuer: when it may be asked again.
    next_at: Mutex<Option<Instant>>,
}

#[derive(Clone, Default)]
struct Known {
    keys: Arc<HashMap<String, Arc<Key>>>,
    good_until: Option<Instant>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl Keys {
    pub fn new(http: &Http, url: &str) -> Self {
        Self { http: http.clone(), url: url.to_owned(), known: RwLock::default(), next_at: Mutex::default() }
    }

    /// The key of this id. Keys that are too old are still believed while their issuer cannot be asked.
    pub async fn find(&self, id: &str) -> Result<Arc<Key>, Refused> {
        let known = self.known();
        let is_fresh = known.good_until.is_some_and(|until| Instant::now() < until);
        if let Some(key) = known.keys.get(id).filter(|_| is_fresh) {
            return Ok(key.clone());
        }
        let mut next_at = self.next_at.lock().await;
        // Another one may have asked while we waited for our turn.
        let may_ask = next_at.is_none_or(|next| Instant::now() >= next);
        let mut fetched = Ok(());
        if may_ask && self.known().good_until == known.good_until {
            fetched = self.fetch().await;
            *next_at = Some(Instant::now() + if fetched.is_ok() { BETWEEN } else { BETWEEN_FAILURES });
        }
        drop(next_at);
        let known = self.known();
        match known.keys.get(id) {
            Some(key) => Ok(key.clone()),
            None if known.keys.is_empty() || fetched.is_err() => Err(Refused::NoKeys),
            None => Err(Refused::Key),
        }
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self) -> Result<(), Refused> {
        let failed = |_| Refused::NoKeys;
        let request = self.http.client().get(&self.url).timeout(ANSWER_WITHIN).header(ACCEPT_ENCODING, "identity");
        let mut answer = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
        let kept = kept(answer.headers());
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > ANSWER_MAX_BYTES {
                return Err(Refused::NoKeys);
            }
            body.extend_from_slice(&piece);
        }
        let set: KeySet = serde_json::from_slice(&body).map_err(|_| Refused::NoKeys)?;
        let keys: HashMap<_, _> = set.keys.into_iter().filter_map(Listed::read).collect();
        if keys.is_empty() {
            return Err(Refused::NoKeys);
        }
        let known = Known { keys: Arc::new(keys), good_until: Some(Instant::now() + kept) };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }
}

impl Listed {
    /// The key with its id, if it is for signatures by RS256.
    fn read(self) -> Option<(String, Arc<Key>)> {
        let is_ours = self.kty == "RSA"
            && self.alg.is_none_or(|alg| alg == "RS256")
            && self.purpose.is_none_or(|purpose| purpose == "sig");
        // Leading zeros are spelled by some issuers, and refused by the check of signatures.
        let number = |text: String| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            Some(bytes[zeros..].to_vec())
        };
        let key = Key { n: number(self.n?)?, e: number(self.e?)? };
        is_ours.then_some((self.kid?, Arc::new(key)))
    }
}

/// The time for which an answer may be kept.
fn kept(headers: &HeaderMap) -> Duration {
    let said = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let age = said.split(',').find_map(|word| word.trim().strip_prefix("max-age=")?.parse().ok());
    let (least, most) = KEPT;
    Duration::from_secs(age.unwrap_or_default()).clamp(least, most)
}

#[cfg(test)]
impl Keys {
    /// Lets the time pass for which the keys may be kept.
    pub fn age(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).good_until = None;
    }

    /// Lets the time pass after which the issuer may be asked again.
    pub async fn wait(&self) {
        *self.next_at.lock().await = None;
    }
}
