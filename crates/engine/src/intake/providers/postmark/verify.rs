//! Postmark signs nothing. It is known by its address, or by user and password.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;

use super::{BASIC, SPEC};
use crate::config::network;
use crate::intake::guard::proof::{Shown, authorization};
use crate::intake::guard::{KeyMaterial, Request, Verification, Verifier, Why};

struct Keys {
    basics: [[u8; 32]; 2],
    ranges: Vec<IpNet>,
    require_ip: bool,
}

pub(super) fn verifier(material: &KeyMaterial) -> Arc<dyn Verifier> {
    let ranges = match &material.settings.ranges {
        Some(given) => given.iter().filter_map(|text| network(text).ok()).collect(),
        None => SPEC.networks.into_iter().flatten().filter_map(|text| network(text).ok()).collect(),
    };
    Arc::new(Keys {
        basics: material.two(BASIC).each_ref().map(store::keys::hash),
        ranges,
        require_ip: material.settings.require_ip,
    })
}

impl Verifier for Keys {
    fn begin(self: Arc<Self>, request: &Request) -> Box<dyn Verification> {
        let basic = authorization(request.headers, b"basic ").map(|given| STANDARD.decode(given).unwrap_or_default());
        let address = request.address.to_canonical();
        Box::new(Check {
            is_near: self.ranges.iter().fold(false, |is_near, range| is_near | range.contains(&address)),
            basic: Shown::new(basic.as_deref(), &self.basics),
            require_ip: self.require_ip,
        })
    }
}

struct Check {
    /// Its address is in one of the channel's networks.
    is_near: bool,
    basic: Shown,
    require_ip: bool,
}

impl Verification for Check {
    fn is_verified_early(&self) -> bool {
        self.is_near | (self.basic == Shown::Right) | !self.require_ip
    }

    fn verdict(&self, _: &[u8]) -> Result<(), Why> {
        if self.is_verified_early() {
            Ok(())
        } else if self.basic == Shown::Wrong {
            Err("user and password are not this channel's, and its address is none of Postmark's")
        } else {
            Err("its address is none of Postmark's, and it shows no user and password")
        }
    }
}
