//! A process with many tasks that ask for one source's token all the time, as workers do. It ends when its standard input closes.
//! `REFRESHER_FOR` names tenant and source, `REFRESHER_TASKS` and `REFRESHER_LEASE_MS` are numbers. `TRIBUTARY_CRASH` stops or kills it.

use std::time::Duration;

use anyhow::Context as _;
use domain::{Clock, Secret};
use engine::Env;
use engine::pull::tokens::{self, Timing};
use store::Db;
use store::vault::Vault;

pub fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let config = testkit::config(&[]); // from the environment
    store::crash::arm(std::env::var("TRIBUTARY_CRASH").ok().as_deref()).map_err(anyhow::Error::msg)?;
    let whose = std::env::var("REFRESHER_FOR")?;
    let (tenant, source) = whose.split_once(' ').context("REFRESHER_FOR is `tenant source`")?;
    let (tenant, source) = (tenant.parse()?, source.parse()?);
    let tasks: usize = std::env::var("REFRESHER_TASKS")?.parse()?;
    let lease = Duration::from_millis(std::env::var("REFRESHER_LEASE_MS")?.parse()?);
    let url = config.database_url.clone().context("DATABASE_URL is not set")?;
    let db = Db::lazy(&store::ConnectTo::url(url.reveal())?, 4, Duration::from_secs(10));
    let key = config.master_key.clone().unwrap_or_else(|| Secret::new(""));
    let env = Env::new(db, config, Clock::System, Vault::new(&key)?)?;
    let timing = Timing { lease, patience: Duration::from_secs(35) };
    let provider = env.providers.named("quickbooks")?;
    for _ in 0..tasks {
        let env = env.clone();
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_millis(10));
            loop {
                tick.tick().await;
                if let Err(trouble) = tokens::token_within(&env, tenant, source, provider, timing).await {
                    eprintln!("no token: {trouble:?}");
                }
            }
        });
    }
    tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??;
    Ok(())
}
