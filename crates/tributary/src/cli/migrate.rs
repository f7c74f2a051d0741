//! `tributary migrate`: brings the database to this binary's schema, forward only.

use std::process::ExitCode;

use engine::{Config, database};

use crate::logging;

#[derive(clap::Args)]
pub struct Args {
    /// The database was put back to an earlier moment by other means than `tributary restore`: receipts and claims from after that moment are refused. Run
    /// it once, before anything else runs.
    #[arg(long)]
    restored: bool,
}

pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let database = database::start(&config).await?;
    let mut applied = database.migrate().await;
    if args.restored && applied.is_ok() {
        applied = database.renew().await.and(applied);
    }
    let released = database.release(&config).await;
    let applied = applied?;
    released?;
    match applied.is_empty() {
        true => println!("up to date: schema {}", store::migrate::wanted_version()),
        false => println!("applied {}: schema {}", applied.told(), store::migrate::wanted_version()),
    }
    Ok(ExitCode::SUCCESS)
}
