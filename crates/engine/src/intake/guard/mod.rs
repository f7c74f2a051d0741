//! Decides on the raw bytes who may send to a channel. The work depends on the request alone: every provider checks what the request shows,
//! with the channel's secrets or with random ones, and comparisons take the same time whatever they find. Only then is it decided whose
//! verdict counts. So a refusal tells a stranger nothing, not even by how long it takes.
//!
//! `delivery` feeds it with the body. Once the check passes, the provider's `normalise` reads the body.

pub mod proof;

use std::net::IpAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::Secret;
use http::HeaderMap;
use store::channels::{Opened, Proofs, Settings};

use super::providers::{ChannelProviders, ChannelSpec};

/// The part of a request that is known before its body.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub headers: &'a HeaderMap,
    /// Path and query as they stand in the request line.
    pub target: &'a str,
    /// The URL by which others reach this server.
    pub base_url: &'a str,
    pub address: IpAddr,
    pub now: DateTime<Utc>,
}

impl<'a> Request<'a> {
    /// A header's text; empty where it is not plain ASCII.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name).map(|value| value.to_str().unwrap_or_default())
    }
}

/// Why a request was refused, for the channel's owner alone.
pub type Why = &'static str;

/// One provider's check of a channel's requests. Every channel has one of each provider, also those of other providers.
pub trait Verifier: Send + Sync {
    /// Begins to check a request. Whether something is computed must depend on the request alone, not on the secrets.
    fn begin(self: Arc<Self>, request: &Request) -> Box<dyn Verification>;
}

/// A request while it is checked: fed with the body as it arrives.
pub trait Verification: Send + Sync {
    /// The whole body is needed at the end, and not only piece by piece.
    fn wants_body(&self) -> bool {
        false
    }

    /// Verified already by what came before the body.
    fn is_verified_early(&self) -> bool {
        false
    }

    fn update(&mut self, _piece: &[u8]) {}

    /// The verdict once the body is complete. `body` is empty unless it was wanted.
    fn verdict(&self, body: &[u8]) -> Result<(), Why>;

    /// The header with the signature by which a request is verified, if there are several kinds: it tells which parts were signed.
    fn signature(&self) -> Option<&'static str> {
        None
    }
}

/// The secrets of one channel, or of none.
#[derive(Clone, Copy)]
pub struct KeyMaterial<'a> {
    pub proofs: &'a Proofs,
    /// Those before the last rotation, while they are valid.
    pub before: Option<&'a Proofs>,
    pub settings: &'a Settings,
}

impl KeyMaterial<'_> {
    /// The secret in force and the one before. There are always two: a missing one is random, so nobody has it.
    pub fn two(&self, name: &str) -> [Secret; 2] {
        [Some(self.proofs), self.before].map(|proofs| proofs.and_then(|proofs| proofs.get(name)).cloned()).map(known)
    }
}

/// A random secret in place of one that is missing.
fn known(secret: Option<Secret>) -> Secret {
    secret.unwrap_or_else(proof::random)
}

/// The verifiers of one channel, one per provider.
pub(super) struct Keys {
    verifiers: Vec<Arc<dyn Verifier>>,
    /// Which of them decides. None: nobody's channel.
    own: Option<usize>,
    is_open: bool,
}

impl Keys {
    /// The verifiers of a channel. One with an empty or short secret is closed, whatever its row says.
    pub fn of(providers: &ChannelProviders, spec: &ChannelSpec, opened: &Opened, now: DateTime<Utc>) -> Self {
        let secrets = &opened.secrets;
        let before = secrets.retiring.as_ref().filter(|retiring| retiring.until > now).map(|retiring| &retiring.proofs);
        let material = KeyMaterial { proofs: &secrets.proofs, before, settings: &opened.channel.settings };
        let is_open = opened.channel.is_active && spec.check(&secrets.proofs).is_ok();
        Self::new(providers, Some(spec), material, is_open)
    }

    /// The verifiers of a key that no channel has.
    pub fn nobodys(providers: &ChannelProviders) -> Self {
        let (proofs, settings) = (Proofs::default(), Settings::default());
        Self::new(providers, None, KeyMaterial { proofs: &proofs, before: None, settings: &settings }, false)
    }

    /// Somebody may send to it.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    fn new(providers: &ChannelProviders, own: Option<&ChannelSpec>, material: KeyMaterial<'_>, is_open: bool) -> Self {
        Self {
            verifiers: providers.all().iter().map(|spec| (spec.verifier)(&material)).collect(),
            own: own.and_then(|own| providers.all().iter().position(|spec| spec.code == own.code)),
            is_open,
        }
    }
}

/// A check under way, by every provider.
pub(super) struct Check {
    keys: Arc<Keys>,
    under_way: Vec<Box<dyn Verification>>,
}

impl Check {
    pub fn begin(keys: &Arc<Keys>, request: Request) -> Self {
        let under_way = keys.verifiers.iter().map(|verifier| verifier.clone().begin(&request)).collect();
        Self { keys: keys.clone(), under_way }
    }

    /// The body has to be kept for the check, and not only fed to it.
    pub fn wants_body(&self) -> bool {
        self.under_way.iter().any(|one| one.wants_body())
    }

    /// The channel's own provider is sure already: the body may be larger than others.
    pub fn is_verified_early(&self) -> bool {
        self.keys.is_open && self.keys.own.is_some_and(|own| self.under_way[own].is_verified_early())
    }

    /// The header with the signature by which the channel's own provider verified the request.
    pub fn signature(&self) -> Option<&'static str> {
        self.keys.own.and_then(|own| self.under_way[own].signature())
    }

    pub fn update(&mut self, piece: &[u8]) {
        self.under_way.iter_mut().for_each(|one| one.update(piece));
    }

    /// The verdict once the body is complete. `body` may be empty unless it was wanted.
    pub fn passes(&self, body: &[u8]) -> Result<(), Why> {
        let mut verdict = Err("nobody's key");
        for (nth, one) in self.under_way.iter().enumerate() {
            let of_one = one.verdict(body);
            if self.keys.own == Some(nth) {
                verdict = of_one;
            }
        }
        match verdict {
            Ok(()) if !self.keys.is_open => Err("the channel is disabled"),
            verdict => verdict,
        }
    }
}

#[cfg(test)]
mod tests;
