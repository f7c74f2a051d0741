//! A process whose tasks want a good token of one source all the time, as workers do. It ends with its standard input.

use std::time::Duration;

use clap::Parser;
use domain::{Clock, Provider, Secret, SourceId, TenantId};
use engine::pull::tokens::{self, Timing};
use engine::{Config, Env};
use store::Db;
use store::vault::Vault;

#[derive(Parser)]
struct Args {
    tenant: TenantId,
    source: SourceId,
    tasks: usize,
    lease_ms: u64,
    #[command(flatten)]
    config: Config,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let url = args.config.database_url.clone().ok_or_else(|| anyhow::anyhow!("DATABASE_URL is not set"))?;
    let db = Db::lazy(&store::ConnectTo::url(url.reveal())?, 4, Duration::from_secs(10));
    let key = args.config.master_key.clone().unwrap_or_else(|| Secret::new(""));
    let env = Env::new(db, args.config, Clock::System, Vault::new(&key)?)?;
    let timing = Timing { lease: Duration::from_millis(args.lease_ms), patience: Duration::from_secs(35) };
    for _ in 0..args.tasks {
        let (env, tenant, source) = (env.clone(), args.tenant, args.source);
        tokio::spawn(async move {
            loop {
                if let Err(trouble) = tokens::token_within(&env, tenant, source, Provider::Quickbooks, timing).await {
                    eprintln!("no token: {trouble:?}");
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
    tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await??;
    Ok(())
}
