//! Resolves names to addresses that may be connected to. The checked address is the one that is used.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::public::is_public;

/// A resolver of names.
#[derive(Clone)]
pub enum Lookup {
    System,
    /// For tests, where a name may have another address each time.
    Given(Arc<Addresses>),
}

type Addresses = dyn Fn(&str) -> Vec<IpAddr> + Send + Sync;

/// The reason why a name cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoWay {
    #[error("the name has no address")]
    Unknown,
    #[error("the address is not public")]
    NotPublic,
}

/// A resolver that returns public addresses and those in the allowed networks.
#[derive(Clone)]
pub(super) struct Gate {
    pub allow: Arc<[IpNet]>,
    pub lookup: Lookup,
}

impl Gate {
    pub fn lets(&self, address: IpAddr) -> bool {
        is_public(address) || self.is_allowed(address)
    }

    /// Whether an address is in one of the allowed networks.
    pub fn is_allowed(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|net| net.contains(&address))
    }

    async fn addresses(&self, name: &str) -> Result<Vec<SocketAddr>, NoWay> {
        // `localhost` is this machine, whatever the resolver answers.
        if name.trim_end_matches('.').rsplit('.').next() == Some("localhost") {
            return Err(NoWay::NotPublic);
        }
        let found: Vec<SocketAddr> = match &self.lookup {
            Lookup::System => tokio::net::lookup_host((name, 0)).await.map_err(|_| NoWay::Unknown)?.collect(),
            Lookup::Given(of) => of(name).into_iter().map(|address| SocketAddr::new(address, 0)).collect(),
        };
        if found.is_empty() {
            return Err(NoWay::Unknown);
        }
        // All addresses must be allowed, because the client may choose any of them.
        if found.iter().all(|address| self.lets(address.ip())) { Ok(found) } else { Err(NoWay::NotPublic) }
    }
}

impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let gate = self.clone();
        Box::pin(async move {
            let found = gate.addresses(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
