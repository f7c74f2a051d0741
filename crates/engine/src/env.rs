//! The environment of everything that runs. Time and settings come from here and from nowhere else.

use std::sync::Arc;

use connectors::Outside;
use connectors::outside::{Limits, Lookup};
use domain::Clock;
use store::Db;
use store::vault::Vault;

use crate::Config;
use crate::blobs::Blobs;
use crate::intake::ChannelProviders;
use crate::memory::codes::Codes;
use crate::memory::embed::Embedders;
use crate::memory::recall::Lists;
use crate::pull::Providers;

#[derive(Clone)]
pub struct Env {
    pub db: Db,
    /// The name under which this process holds items and activities. No other process has ever had it.
    pub name: Arc<str>,
    pub config: Arc<Config>,
    pub clock: Clock,
    pub vault: Arc<Vault>,
    pub http: connectors::Http,
    /// Fetches what strangers name.
    pub outside: Outside,
    pub embedders: Embedders,
    /// Postings that searches have read.
    pub lists: Lists,
    /// Codes of vectors that searches have read.
    pub codes: Codes,
    pub blobs: Blobs,
    /// The providers that sources are at.
    pub providers: Arc<Providers>,
    /// The providers that webhook channels can have.
    pub channel_providers: Arc<ChannelProviders>,
}

impl Env {
    pub fn new(db: Db, config: Config, clock: Clock, vault: Vault) -> anyhow::Result<Self> {
        let (http, blobs) = (connectors::Http::new()?, Blobs::open(&config, clock.clone())?);
        let embedders = Embedders::from_config(&config, &http)?;
        let limits = Limits { bytes: config.recording_max_bytes, ..Limits::default() };
        let outside = Outside::new(&config.outbound_allow, Lookup::System, limits)?;
        let providers = Arc::new(Providers::from_config(&config, &http)?);
        let (config, vault) = (Arc::new(config), Arc::new(vault));
        let (channel_providers, lists, codes) = (Arc::default(), Lists::default(), Codes::default());
        let name = format!("{}:{}:{:08x}", host(), std::process::id(), rand::random::<u32>()).into();
        Ok(Self {
            db,
            name,
            config,
            clock,
            vault,
            http,
            outside,
            embedders,
            lists,
            codes,
            blobs,
            providers,
            channel_providers,
        })
    }
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
