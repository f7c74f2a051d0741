//! `tributary migrate`: brings the database to this binary's schema, forward only.

use std::process::ExitCode;

use engine::{Config, database};

use crate::logging;

pub async fn run(config: Config) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let database = database::start(&config).await?;
    let applied = database.migrate().await;
    let released = database.release(&config).await;
    let applied = applied?;
    released?;
    match applied.is_empty() {
        true => println!("up to date: schema {}", store::migrate::wanted_version()),
        false => println!("applied {}: schema {}", applied.told(), store::migrate::wanted_version()),
    }
    Ok(ExitCode::SUCCESS)
}
