//! `tributary demo`: the whole program beside providers of its own, on this machine alone, and a story of faults and recoveries that goes
//! round until it is stopped.
//!
//! It is `up` with one difference: the lanes run in processes of their own, so that one of them can be killed.

mod doors;
mod settings;
mod stage;
mod story;
mod workers;
mod world;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::ArgMatches;
use clap::parser::ValueSource;
use engine::work::Stop;
use engine::{Config, database};
use fakes::Fakes;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use uuid::Uuid;

use self::doors::Doors;
use self::stage::Stage;
use self::workers::Workers;
use super::{key, process, up};
use crate::logging;

/// Beside that of `up`, so that both can run; another where it is taken.
const PORT: u16 = 7172;

#[derive(clap::Args)]
pub struct Args {
    /// Keep the data folder at the end.
    #[arg(long)]
    keep: bool,
}

/// Settings from the environment are those of another installation: only what was said to this command counts.
pub async fn run(config: Config, args: Args, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let is_said = |setting: &str| matches.value_source(setting) == Some(ValueSource::CommandLine);
    let folder = folder(is_said("data_dir").then_some(&config.data_dir))?;
    let listener = listen(is_said("listen").then_some(config.listen)).await?;
    let fakes = Fakes::start().await;
    let log = if is_said("log") { config.log.clone() } else { "warn".into() };
    let config = settings::pointed_at(&fakes, config, folder.clone(), listener.local_addr()?, log);
    logging::start(&config)?;
    let ended = run_in(&config, &fakes, listener).await;
    // Whatever is left of the server, also where it did not come to its end.
    if let Ok(server) = database::embedded(&config) {
        let _ = server.stop().await;
    }
    if args.keep {
        eprintln!("kept: {0}\n`tributary up --data-dir {0}` shows it again, without its providers", folder.display());
    } else if let Err(error) = std::fs::remove_dir_all(&folder) {
        eprintln!("{} could not be removed: {error}", folder.display());
    }
    ended
}

/// A new folder below the temporary one, or an empty one that was named: at the end it is removed.
fn folder(named: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let path = match named {
        Some(path) => std::path::absolute(path)?,
        None => std::env::temp_dir().join(format!("tributary-demo-{}", &Uuid::new_v4().simple().to_string()[..8])),
    };
    let is_empty = |path: &Path| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    ensure!(
        !path.exists() || is_empty(&path),
        "{} is not empty, and a demonstration removes its folder at the end\n\nhint: name one that does not exist",
        path.display()
    );
    std::fs::create_dir_all(&path).with_context(|| format!("the folder {} cannot be made", path.display()))?;
    Ok(path)
}

async fn listen(wanted: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    if let Some(address) = wanted {
        let bound = TcpListener::bind(address).await;
        return bound
            .with_context(|| format!("{address} cannot be listened on; leave --listen out, and a free one is used"));
    }
    match TcpListener::bind(("127.0.0.1", PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind("127.0.0.1:0").await.context("there is no free port on this machine"),
    }
}

async fn run_in(config: &Config, fakes: &Fakes, listener: TcpListener) -> anyhow::Result<ExitCode> {
    let Some(_lock) = up::lock(config)? else { bail!("something runs on {} already", config.data_dir.display()) };
    let metrics = process::metrics()?;
    let stop = process::stop_on_signals(config)?;
    eprintln!("\n  Setting up a database of its own in {}: a few seconds", config.data_dir.display());
    let database = tokio::select! {
        started = database::start(config) => started?,
        () = stop.stopped() => bail!("stopped while the database was starting"),
    };
    let ended = perform(config, &database, fakes, listener, metrics, stop).await;
    let _ = std::fs::remove_file(up::record_path(config));
    let released = database.release(config).await;
    ended.and_then(|()| released.map(|()| ExitCode::SUCCESS))
}

/// Everything between a database that runs and one that may be stopped.
async fn perform(
    config: &Config,
    database: &database::Database,
    fakes: &Fakes,
    listener: TcpListener,
    metrics: PrometheusHandle,
    stop: Stop,
) -> anyhow::Result<()> {
    database.migrate().await?;
    let env = database.env(config)?;
    let mut workers = Workers::new(config)?;
    let served = tokio::spawn(web::serve(env.clone(), listener, metrics, stop.clone()));
    let agent = tokio::spawn(engine::agent::builtin::run(env.clone(), stop.clone()));
    let performed = async {
        world::fill(fakes);
        let doors = Doors::open(&env).await?;
        let stage = Stage::set(env.clone(), fakes.clone()).await?;
        up::leave_record(config)?;
        let link = key::new_link(&env, None).await?;
        eprintln!(
            "\n  The demonstration is up: {0}\n  Sign in (once, within 15 minutes): {link}\n  \
             HubSpot, Google Drive, QuickBooks and those who send webhooks are built in; nothing leaves this machine.\n  \
             Stop: Ctrl-C\n",
            config.base_url()
        );
        workers.start()?;
        workers.start()?;
        tokio::select! {
            told = story::tell(&stage, &mut workers) => told,
            sent = doors.keep_sending() => sent,
        }
    };
    let ended = tokio::select! {
        ended = performed => ended,
        () = stop.stopped() => Ok(()),
    };
    stop.stop();
    eprintln!("\n  Stopping; a few seconds");
    workers.stop().await;
    let served = served.await.context("the server ended badly")?;
    agent.await.context("the agent ended badly")?;
    ended.and(served)
}
