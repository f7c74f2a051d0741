//! `tributary up`: runs everything on one machine. It holds a lock on the data folder, and a second `up` says where the first one is.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use engine::work::Stop;
use engine::{ActError, Config, database};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use store::embedded::{Embedded, Running, Telling};
use tokio::task::JoinSet;

use super::{env, key, process};
use crate::logging;

/// The pause between two tries while the database is away.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// The interval at which `up` looks whether its server lives. After a crash the server ends and is started again.
const KEEP_EVERY: Duration = Duration::from_millis(100);

/// The pause after a start that failed.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// How long the end of `up` waits for a start of its server that is under way. By then the server has its pid file, by which it is stopped.
const KEEPER_LIMIT: Duration = Duration::from_secs(20);

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

/// The settings of a command beside the `up` that runs on its data folder: `up` may have been told another address, and that is the one to say.
pub fn beside_running(config: Config) -> Config {
    let Some(running) = running(&config).filter(|_| config.public_url.is_none()) else { return config };
    let pid = rustix::process::Pid::from_raw(running.pid);
    if !pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)) {
        return config; // it was killed
    }
    match running.url.strip_prefix("http://").and_then(|address| address.parse().ok()) {
        Some(listen) => Config { listen, ..config },
        None => Config { public_url: Some(running.url), ..config },
    }
}

pub async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let Some(_lock) = lock(&config)? else {
        tell_running(config).await;
        return Ok(ExitCode::SUCCESS);
    };
    let _ = std::fs::remove_file(record_path(&config)); // of one that was killed: its pid may be anybody's by now
    logging::start(&config)?;
    process::raise_handle_limit();
    let metrics = process::metrics()?;
    let listener = process::listen(&config).await?;
    let stop = process::stop_on_signals(&config)?;
    let mut database = tokio::select! {
        started = start(&config) => started?,
        () = stop.stopped() => bail!("stopped while the database was starting; it may still be: `tributary down` stops it"),
    };
    let keeper = Keeper::start(&config, database.embedded.clone());
    let ended = serve_all(&config, &database, listener, metrics, stop).await;
    let _ = std::fs::remove_file(record_path(&config));
    // First, or it would start again what is stopped here.
    if let Some(server) = keeper.end().await {
        database.was_restarted(server);
    }
    let released = database.release(&config).await;
    ended.and_then(|code| released.map(|()| code))
}

/// Says where the `up` is that runs already, and how to sign in there.
async fn tell_running(config: Config) {
    let Some(running) = running(&config) else {
        println!("already running: it is still starting");
        return;
    };
    println!("already running: {}", running.url);
    // This process may have been told other settings than the one that runs, whose address is in its record.
    let config = Config { public_url: Some(running.url), ..config };
    let link = async { key::new_link(&env(&config).await?, None).await };
    match link.await {
        Ok(link) => println!("Sign in (once, within 15 minutes): {link}"),
        Err(error) => eprintln!("a sign-in link cannot be made now: {error:#}\n\nhint: `tributary signin` tries again"),
    }
}

/// Starts the database and brings it to this binary's schema. An embedded server that crashes meanwhile is started again. One that we
/// started is stopped if this fails.
async fn start(config: &Config) -> anyhow::Result<database::Database> {
    let mut database = started(config).await?;
    let mut telling = Telling::new(Instant::now());
    loop {
        match database.migrate().await {
            Ok(applied) => {
                if !applied.is_empty() {
                    tracing::info!("database set up: {}", applied.told());
                }
                return Ok(database);
            }
            Err(error) if database.embedded.is_some() && is_passing(&error) => {
                tell(&mut telling, config, "the database could not be set up", &error);
            }
            Err(error) => {
                if let Err(left) = database.release(config).await {
                    tracing::warn!("the embedded PostgreSQL was left running: {left:#}");
                }
                return Err(hinted(config, error));
            }
        }
        tokio::time::sleep(TRY_EVERY).await;
        if !database.embedded.as_ref().is_some_and(Embedded::is_alive) {
            database = started(config).await?;
        }
    }
}

/// Starts the server. One that dies again and again while it is prepared is started until it stays.
async fn started(config: &Config) -> anyhow::Result<database::Database> {
    let mut telling = Telling::new(Instant::now());
    loop {
        match database::start(config).await {
            Err(error) if is_passing(&error) => {
                tell(&mut telling, config, "the database went away while it started", &error);
            }
            started => return started.map_err(|error| hinted(config, error)),
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// Tells that something did not succeed and is tried again: not every time, and with what to do when it lasts.
fn tell(telling: &mut Telling, config: &Config, what: &str, error: &anyhow::Error) {
    let now = Instant::now();
    if !telling.is_due(now) {
        return;
    }
    match advice(config, error).filter(|_| telling.needs_advice(now)) {
        Some(advice) => tracing::warn!("{what}, will keep trying: {error:#}; {advice}"),
        None => tracing::warn!("{what}, will try again: {error:#}"),
    }
}

/// Advice about trouble with the embedded server. None: the database is somebody else's.
fn advice(config: &Config, error: &anyhow::Error) -> Option<String> {
    if config.database_url.is_some() {
        return None;
    }
    Some(database::embedded(config).ok()?.advice_by_log(&format!("{error:#}")))
}

/// An error that ends `up`, with what to do about it, unless it says so itself.
fn hinted(config: &Config, error: anyhow::Error) -> anyhow::Error {
    let said = format!("{error:#}");
    let is_refusal = matches!(error.downcast_ref::<store::Error>(), Some(store::Error::Refused { .. }));
    let advice = match is_refusal {
        // A refusal of ours names what it wants, but for what the system says about a file.
        true => database::embedded(config).ok().and_then(|server| server.known_advice(&said)),
        false => advice(config, &error),
    };
    match advice.filter(|_| !said.contains("hint:")) {
        Some(advice) => anyhow::anyhow!("{said}\n\nhint: {advice}"),
        None => error,
    }
}

/// Whether the database may answer when it is asked again. It was asked by an act or directly.
fn is_passing(error: &anyhow::Error) -> bool {
    let of_act = error.downcast_ref::<ActError>().and_then(|error| match error {
        ActError::Store(error) => Some(error),
        _ => None,
    });
    of_act.or_else(|| error.downcast_ref::<store::Error>()).is_some_and(store::Error::is_passing)
}

async fn serve_all(
    config: &Config,
    database: &database::Database,
    listener: tokio::net::TcpListener,
    metrics: metrics_exporter_prometheus::PrometheusHandle,
    stop: Stop,
) -> anyhow::Result<ExitCode> {
    let env = database.env(config)?;
    let mut telling = Telling::new(Instant::now());
    let link = loop {
        match key::new_link(&env, None).await {
            Err(error) if is_passing(&error) => tell(&mut telling, config, "the database is away", &error),
            made => break made?,
        }
        tokio::select! {
            () = tokio::time::sleep(TRY_EVERY) => {}
            () = stop.stopped() => bail!("stopped while the database was away"),
        }
    };
    let url = config.base_url();
    leave_record(config)?;
    eprintln!(
        "\n  Tributary is up: {url}\n  Sign in (once, within 15 minutes): {link}\n  Stop: Ctrl-C, or `tributary down`\n"
    );
    let lanes = tokio::spawn(process::run_lanes(env.clone(), "up", stop.clone()));
    let served = web::serve(env, listener, metrics, stop.clone()).await;
    stop.stop();
    lanes.await.context("the lanes ended badly")?;
    served.map(|()| ExitCode::SUCCESS)
}

/// Restarts the embedded server when it dies, until it is told to end. Everything else waits for the server and continues.
struct Keeper {
    end: Stop,
    /// Returns the server that it started last. Aborted when this is dropped.
    task: JoinSet<Option<Running>>,
}

impl Keeper {
    /// `None`: the server is somebody else's, and there is nothing to do.
    fn start(config: &Config, server: Option<Running>) -> Self {
        let (end, mut task) = (Stop::default(), JoinSet::new());
        if let Some(server) = server {
            task.spawn(keep_server(config.clone(), server, end.clone()));
        }
        Self { end, task }
    }

    /// Returns the server that was started last, if any. From here on none is started: a start that is under way is waited for.
    async fn end(mut self) -> Option<Running> {
        self.end.stop();
        let ended = tokio::time::timeout(KEEPER_LIMIT, self.task.join_next()).await;
        self.task.shutdown().await;
        ended.ok().flatten().and_then(Result::ok).flatten()
    }
}

async fn keep_server(config: Config, mut server: Running, end: Stop) -> Option<Running> {
    let mut restarted = None;
    let mut trouble: Option<Telling> = None;
    loop {
        let pause = if trouble.is_some() { AFTER_FAILURE } else { KEEP_EVERY };
        tokio::select! { () = tokio::time::sleep(pause) => {} () = end.stopped() => {} }
        if end.is_stopping() {
            return restarted;
        }
        if Embedded::is_alive(&server) {
            continue;
        }
        if trouble.is_none() {
            tracing::error!("the embedded PostgreSQL (pid {}) is gone; starting it again", server.postmaster_pid);
        }
        match start_again(&config).await {
            Ok(again) => {
                tracing::info!("the embedded PostgreSQL runs again (pid {})", again.postmaster_pid);
                restarted = Some(again.clone());
                (server, trouble) = (again, None);
            }
            Err(error) => {
                let now = Instant::now();
                if trouble.get_or_insert_with(|| Telling::new(now)).is_due(now) {
                    let said = format!("{:#}", hinted(&config, error)).replace("\n\nhint: ", "; ");
                    tracing::error!("the embedded PostgreSQL does not start, will keep trying: {said}");
                }
            }
        }
    }
}

async fn start_again(config: &Config) -> anyhow::Result<Running> {
    Ok(database::embedded(config)?.start().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_goes_away_during_an_act_is_waited_for_too() {
        let context = "a sign-in link could not be made";
        for error in [
            anyhow::Error::from(store::Error::TimedOut),
            anyhow::Error::from(store::Error::TimedOut).context(context),
            anyhow::Error::from(ActError::from(store::Error::TimedOut)),
            anyhow::Error::from(ActError::from(store::Error::TimedOut)).context(context),
        ] {
            assert!(is_passing(&error), "{error:?}");
        }
        for error in [anyhow::anyhow!("no key"), ActError::invalid("a name has 1 to 100 characters").into()] {
            assert!(!is_passing(&error), "{error:?}");
        }
    }
}
