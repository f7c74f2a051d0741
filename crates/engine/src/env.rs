//! What everything that runs has at hand. Nobody asks the system for the time or for settings past it.

use std::sync::Arc;

use domain::Clock;
use store::Db;
use store::vault::Vault;

use crate::Config;

#[derive(Clone)]
pub struct Env {
    pub db: Db,
    pub config: Arc<Config>,
    pub clock: Clock,
    pub vault: Arc<Vault>,
    pub http: connectors::Http,
}

impl Env {
    pub fn new(db: Db, config: Config, clock: Clock, vault: Vault) -> anyhow::Result<Self> {
        Ok(Self { db, config: Arc::new(config), clock, vault: Arc::new(vault), http: connectors::Http::new()? })
    }
}
