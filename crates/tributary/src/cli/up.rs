//! `tributary up`: runs everything on one machine. It holds a lock on the data folder, and a second `up` says where the first one is.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, bail};
use engine::{Config, database};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use store::embedded::{Embedded, Running};

use super::{key, process};
use crate::logging;

/// The file that a running `up` leaves for others to find.
#[derive(Serialize, Deserialize)]
pub struct Record {
    pub pid: i32,
    pub url: String,
}

/// The lock, held until dropped.
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

/// Records where this process can be reached.
pub fn leave_record(config: &Config) -> anyhow::Result<()> {
    let record = Record { pid: i32::try_from(std::process::id())?, url: config.base_url() };
    std::fs::write(record_path(config), serde_json::to_string(&record)?).context("the data folder cannot be written")
}

pub fn running(config: &Config) -> Option<Record> {
    serde_json::from_str(&std::fs::read_to_string(record_path(config)).ok()?).ok()
}

pub async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let Some(_lock) = lock(&config)? else {
        let url = running(&config).map_or_else(|| "it is still starting".to_owned(), |running| running.url);
        println!("already running: {url}");
        return Ok(ExitCode::SUCCESS);
    };
    let _ = std::fs::remove_file(record_path(&config)); // of one that was killed: its pid may be anybody's by now
    logging::start(&config)?;
    let metrics = process::metrics()?;
    let listener = process::listen(&config).await?;
    let stop = process::stop_on_signals(&config)?;
    let mut database = tokio::select! {
        started = database::start(&config) => started?,
        () = stop.stopped() => bail!("stopped while the database was starting; it may still be: `tributary down` stops it"),
    };
    let restarted = Arc::default();
    let ended = serve_all(&config, &database, &restarted, listener, metrics, stop).await;
    let _ = std::fs::remove_file(record_path(&config));
    if let Some(server) = restarted.lock().ok().and_then(|mut server: MutexGuard<'_, Option<Running>>| server.take()) {
        database.was_restarted(server);
    }
    let released = database.release(&config).await;
    ended.and_then(|code| released.map(|()| code))
}

async fn serve_all(
    config: &Config,
    database: &database::Database,
    restarted: &Arc<Mutex<Option<Running>>>,
    listener: tokio::net::TcpListener,
    metrics: metrics_exporter_prometheus::PrometheusHandle,
    stop: engine::work::Stop,
) -> anyhow::Result<ExitCode> {
    let applied = database.migrate().await?;
    if !applied.is_empty() {
        tracing::info!("database set up: {}", applied.told());
    }
    let env = database.env(config)?;
    let link = key::new_link(&env, None).await?;
    let url = config.base_url();
    leave_record(config)?;
    eprintln!(
        "\n  Tributary is up: {url}\n  Sign in (once, within 15 minutes): {link}\n  Stop: Ctrl-C, or `tributary down`\n"
    );
    let keeper =
        database.embedded.clone().map(|server| tokio::spawn(keep_server(config.clone(), server, restarted.clone())));
    let lanes = tokio::spawn(process::run_lanes(env.clone(), "up", stop.clone()));
    let served = web::serve(env, listener, metrics, stop.clone()).await;
    stop.stop();
    lanes.await.context("the lanes ended badly")?;
    if let Some(keeper) = keeper {
        keeper.abort();
    }
    served.map(|()| ExitCode::SUCCESS)
}

/// Restarts the embedded server when it dies. Everything else waits for it and continues.
async fn keep_server(config: Config, mut server: Running, restarted: Arc<Mutex<Option<Running>>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if Embedded::is_alive(&server) {
            continue;
        }
        tracing::error!("the embedded PostgreSQL (pid {}) is gone; starting it again", server.postmaster_pid);
        match database::embedded(&config) {
            Ok(embedded) => match embedded.start().await {
                Ok(again) => {
                    tracing::info!("the embedded PostgreSQL runs again (pid {})", again.postmaster_pid);
                    if let Ok(mut slot) = restarted.lock() {
                        *slot = Some(again.clone());
                    }
                    server = again;
                }
                Err(error) => tracing::error!("it does not start, will keep trying: {error}"),
            },
            Err(error) => tracing::error!("it does not start, will keep trying: {error}"),
        }
    }
}
