//! `tributary up`: all of it on one machine. Holds a lock on the data folder; a second `up` says where the first one is.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use engine::{Config, database};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use store::embedded::Embedded;

use super::{key, process};
use crate::logging;

/// What a running `up` leaves for others to find.
#[derive(Serialize, Deserialize)]
pub struct Running {
    pub pid: i32,
    pub url: String,
}

/// The lock, held as long as this lives.
pub struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

pub fn lock(config: &Config) -> anyhow::Result<Option<Lock>> {
    let dir = &config.data_dir;
    std::fs::create_dir_all(dir)
        .with_context(|| format!("the data folder {} cannot be made; set DATA_DIR to one that can", dir.display()))?;
    let file = File::options().create(true).truncate(false).write(true).open(dir.join("up.lock"));
    let file = file.with_context(|| {
        format!("the data folder {} cannot be written; set DATA_DIR to one that can", dir.display())
    })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(file))),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error).context("the data folder cannot be locked"),
    }
}

pub fn record_path(config: &Config) -> PathBuf {
    config.data_dir.join("up.json")
}

pub fn running(config: &Config) -> Option<Running> {
    serde_json::from_str(&std::fs::read_to_string(record_path(config)).ok()?).ok()
}

pub async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let Some(_lock) = lock(&config)? else {
        let url = running(&config).map_or_else(|| "it is still starting".to_owned(), |running| running.url);
        println!("already running: {url}");
        return Ok(ExitCode::SUCCESS);
    };
    logging::start(&config)?;
    let metrics = process::metrics()?;
    let listener = process::listen(&config).await?;
    let stop = process::stop_on_signals()?;
    let database = database::start(&config).await?;
    let ended = serve_all(&config, &database, listener, metrics, stop).await;
    let _ = std::fs::remove_file(record_path(&config));
    // Only a graceful end of the one who started the server stops it.
    if database.embedded.as_ref().is_some_and(|server| !server.was_adopted) && ended.is_ok() {
        database::embedded(&config)?.stop().await?;
    }
    ended
}

async fn serve_all(
    config: &Config,
    database: &database::Database,
    listener: tokio::net::TcpListener,
    metrics: metrics_exporter_prometheus::PrometheusHandle,
    stop: engine::work::Stop,
) -> anyhow::Result<ExitCode> {
    let applied = database.migrate().await?;
    if !applied.is_empty() {
        tracing::info!("database set up: {} migrations", applied.len());
    }
    let env = database.env(config)?;
    let link = key::new_link(&env, None).await?;
    let url = config.base_url();
    let record = serde_json::to_string(&Running { pid: i32::try_from(std::process::id())?, url: url.clone() })?;
    std::fs::write(record_path(config), record).context("the data folder cannot be written")?;
    eprintln!(
        "\n  Tributary is up: {url}\n  Sign in (once, within 15 minutes): {link}\n  Stop: Ctrl-C, or `tributary down`\n"
    );
    let keeper = database.embedded.clone().map(|server| tokio::spawn(keep_server(config.clone(), server)));
    let lanes = tokio::spawn(process::run_lanes(env.clone(), "up", stop.clone()));
    let served = web::serve(env, listener, metrics, stop.clone()).await;
    stop.stop();
    lanes.await.context("the lanes ended badly")?;
    if let Some(keeper) = keeper {
        keeper.abort();
    }
    served.map(|()| ExitCode::SUCCESS)
}

/// Starts the embedded server again when it dies: everything else waits for it and goes on.
async fn keep_server(config: Config, mut server: store::embedded::Running) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if Embedded::is_alive(&server) {
            continue;
        }
        tracing::error!("the embedded PostgreSQL (pid {}) is gone; starting it again", server.postmaster_pid);
        match database::embedded(&config) {
            Ok(embedded) => match embedded.start().await {
                Ok(restarted) => {
                    tracing::info!("the embedded PostgreSQL runs again (pid {})", restarted.postmaster_pid);
                    server = restarted;
                }
                Err(error) => tracing::error!("it does not start, will keep trying: {error}"),
            },
            Err(error) => tracing::error!("it does not start, will keep trying: {error}"),
        }
    }
}
