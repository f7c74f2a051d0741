//! `tributary demo`: runs the whole program with fake providers on this machine, and repeats a story of faults and recoveries until it is
//! stopped.
//!
//! It differs from `up` in one point: the lanes run in processes of their own, so that one of them can be killed.

mod doors;
mod mail;
mod mailboxes;
mod post;
mod settings;
mod stage;
mod story;
mod workers;
mod world;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory as _, FromArgMatches as _};
use domain::SourceId;
use engine::pull::words::is_synced;
use engine::work::{Registered, Stop};
use engine::{Config, Env, database};
use fakes::Fakes;
use metrics_exporter_prometheus::PrometheusHandle;
use store::{sources, tenants};
use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use uuid::Uuid;

use self::doors::Doors;
use self::post::Post;
use self::stage::Stage;
use self::workers::Workers;
use super::{Cli, key, process, up};
use crate::logging;

/// The port. It differs from that of `up`, so that both can run. If it is taken, another one is used.
const PORT: u16 = 7172;

#[derive(clap::Args)]
pub struct Args {
    /// Keep the data folder at the end.
    #[arg(long)]
    keep: bool,
}

/// The settings that are read from the environment: the folders of the programs and of the model, and where to listen.
const OF_THIS_INSTALLATION: [&str; 3] = ["pg_bin_dir", "fast_model_dir", "listen"];

/// Ignores other settings from the environment, because they belong to another installation.
pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let without_env = |setting: Arg| match OF_THIS_INSTALLATION.contains(&setting.get_id().as_str()) {
        true => setting,
        false => setting.env(Resettable::Reset),
    };
    let matches = super::settings::hidden(Cli::command()).mut_args(without_env).get_matches();
    let config = Cli::from_arg_matches(&matches)?.config;
    let is_said = |setting: &str| matches.value_source(setting) == Some(ValueSource::CommandLine);
    let folder = folder(is_said("data_dir").then_some(&config.data_dir))?;
    let is_listen_said = matches.value_source("listen") != Some(ValueSource::DefaultValue);
    let listener = listen(is_listen_said.then_some(config.listen)).await?;
    let fakes = Fakes::start().await;
    let log = if is_said("log") { config.log.clone() } else { "warn".into() };
    let config = settings::pointed_at(&fakes, config, folder.clone(), listener.local_addr()?, log);
    logging::start(&config)?;
    let (stop, at_once) = stop_on_signals(&config)?;
    let (ended, is_whole) = tokio::select! {
        ended = run_in(&config, args.keep, &fakes, listener, stop) => (ended, true),
        // Its workers are killed with what holds them.
        () = at_once.stopped() => (Ok(ExitCode::from(130)), false),
    };
    // Stops the server, also where it has not ended by itself.
    if let Ok(server) = database::embedded(&config) {
        let _ = server.stop().await;
    }
    if args.keep {
        let folder = folder.display();
        say(&format!("kept: {folder}"));
        // Its sources are paused then, and nobody is asked with their made-up tokens.
        if is_whole {
            say(&format!("`tributary up --data-dir {folder}` shows it again, without its providers"));
        }
    } else if let Err(error) = std::fs::remove_dir_all(&folder) {
        say(&format!("{} could not be removed: {error}", folder.display()));
    }
    ended
}

/// The first signal, or a closed terminal, asks for a graceful end. The second one, or an end that takes too long, ends at once. Either way
/// nothing is left behind, unless a third signal interrupts the clean-up.
fn stop_on_signals(config: &Config) -> anyhow::Result<(Stop, Stop)> {
    let (limit, folder) = (process::stop_limit(config), config.data_dir.clone());
    let mut signals = process::signals(&[SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()])?;
    let (stop, at_once) = (Stop::default(), Stop::default());
    let asked = (stop.clone(), at_once.clone());
    tokio::spawn(async move {
        signals.recv().await;
        stop.stop();
        tokio::select! { _ = signals.recv() => {} () = tokio::time::sleep(limit) => {} }
        at_once.stop();
        signals.recv().await;
        let folder = folder.display();
        say(&format!(
            "left behind: {folder}\n`tributary down --data-dir {folder}` stops its PostgreSQL; then remove it"
        ));
        std::process::exit(130);
    });
    Ok(asked)
}

/// Prints to the terminal, which may be gone.
fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// The data folder: a new temporary one, or a given empty one. It is removed at the end.
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
        return bound.with_context(|| {
            format!("{address} cannot be listened on; leave LISTEN and --listen out, and a free port is used")
        });
    }
    match TcpListener::bind(("127.0.0.1", PORT)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind("127.0.0.1:0").await.context("there is no free port on this machine"),
    }
}

async fn run_in(
    config: &Config,
    is_kept: bool,
    fakes: &Fakes,
    listener: TcpListener,
    stop: Stop,
) -> anyhow::Result<ExitCode> {
    let Some(_lock) = up::lock(config)? else { bail!("something runs on {} already", config.data_dir.display()) };
    let metrics = process::metrics()?;
    eprintln!("\n  Setting up a database of its own in {}: a few seconds", config.data_dir.display());
    let database = tokio::select! {
        started = database::start(config) => started?,
        () = stop.stopped() => bail!("stopped while the database was starting"),
    };
    let ended = perform(config, &database, is_kept, fakes, listener, metrics, stop).await;
    let _ = std::fs::remove_file(up::record_path(config));
    let released = database.release(config).await;
    ended.and_then(|()| released.map(|()| ExitCode::SUCCESS))
}

/// Runs the demonstration on a running database.
async fn perform(
    config: &Config,
    database: &database::Database,
    is_kept: bool,
    fakes: &Fakes,
    listener: TcpListener,
    metrics: PrometheusHandle,
    stop: Stop,
) -> anyhow::Result<()> {
    database.migrate().await?;
    let env = database.env(config)?;
    let mut workers = Workers::new(config)?;
    let served = tokio::spawn(web::serve(env.clone(), listener, metrics, stop.clone()));
    // The lanes run in processes of their own, and this one is no worker.
    let registered = Registered::untracked();
    let agent = tokio::spawn(engine::agent::builtin::run(env.clone(), registered, stop.clone()));
    let performed = async {
        world::fill(fakes);
        mailboxes::subscribe(fakes, config);
        let post = Post::new(fakes);
        let doors = Doors::open(&env).await?;
        let stage = Stage::set(env.clone(), fakes.clone()).await?;
        up::leave_record(config)?;
        let link = key::new_link(&env, None).await?;
        let labels: Vec<&str> = env.providers.all().iter().map(|provider| provider.label).collect();
        eprintln!(
            "\n  The demonstration is up: {0}\n  Sign in (once, within 15 minutes): {link}\n  \
             {1} and those who send webhooks are built in; nothing leaves this machine.\n  \
             Commands in another terminal need its folder: DATA_DIR={2} tributary source list\n  \
             Stop: Ctrl-C\n",
            config.base_url(),
            labels.join(", "),
            config.data_dir.display()
        );
        workers.start()?;
        workers.start()?;
        tokio::select! {
            told = story::tell(&stage, &mut workers) => told,
            told = mail::tell(&stage, &post) => told,
            sent = doors.keep_sending() => sent,
            never = post.keep_coming() => match never {},
        }
    };
    let ended = tokio::select! {
        ended = performed => ended,
        () = stop.stopped() => Ok(()),
    };
    stop.stop();
    say("\n  Stopping; a few seconds");
    workers.stop().await;
    if is_kept && let Err(error) = pause_sources(&env).await {
        tracing::warn!("its sources could not be paused: {error}");
    }
    let served = served.await.context("the server ended badly")?;
    agent.await.context("the agent ended badly")?;
    ended.and(served)
}

/// Disconnects the sources of a folder that is kept: their made-up tokens must not be sent to the real providers.
async fn pause_sources(env: &Env) -> store::Result<()> {
    let mut conn = env.db.acquire().await?;
    let tenant_id = tenants::ensure_operator(&mut conn).await?;
    let listed = sources::list(&mut conn, tenant_id, None).await?;
    drop(conn);
    for source in listed.iter().filter(|source| is_synced(source)) {
        engine::pull::jobs::pause_source(env, tenant_id, SourceId(source.id)).await?;
    }
    Ok(())
}
