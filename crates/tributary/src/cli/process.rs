//! Shared by `up`, `serve` and `worker`: signals, metrics, and the two halves of the program.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use engine::lanes;
use engine::work::{Runtime, Stop};
use engine::{Config, Env, database};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::logging;

/// Runs the HTTP server alone.
pub async fn serve(config: Config) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    raise_handle_limit();
    let metrics = metrics()?;
    let listener = listen(&config).await?;
    let env = database::find(&config).await?.env(&config)?;
    database::wait_for_schema(&env).await?;
    let stop = stop_on_signals(&config)?;
    tracing::info!("serving on {}", config.base_url());
    web::serve(env, listener, metrics, stop).await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the lanes alone.
pub async fn work(config: Config) -> anyhow::Result<ExitCode> {
    #[cfg(target_os = "linux")]
    end_with_parent()?;
    logging::start(&config)?;
    raise_handle_limit();
    let env = database::find(&config).await?.env(&config)?;
    database::wait_for_schema(&env).await?;
    let stop = stop_on_signals(&config)?;
    run_lanes(env, "worker", stop).await;
    Ok(ExitCode::SUCCESS)
}

/// The variable that names the process with which a worker ends.
pub const PARENT: &str = "TRIBUTARY_PARENT";

/// Stops a worker when the program that started it is gone.
#[cfg(target_os = "linux")]
fn end_with_parent() -> anyhow::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let Ok(parent) = std::env::var(PARENT) else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::TERM)).context("a worker cannot be told when its parent ends")?;
    // It may have ended before we asked.
    let is_there = getppid().is_some_and(|pid| pid.as_raw_nonzero().to_string() == parent);
    anyhow::ensure!(is_there, "who started this worker is gone");
    Ok(())
}

/// Runs the lanes and the built-in agent. The agent runs in `up` by default, and in a worker only if the settings say so.
pub async fn run_lanes(env: Env, role: &str, stop: Stop) {
    let agent = env.config.builtin_agent.unwrap_or(role == "up");
    let runtime = Runtime::new(env.clone(), &lanes::ALL, lanes::SCHEDULES);
    let registered = runtime.registered();
    let lanes = runtime.run(role, stop.clone());
    if agent {
        tokio::join!(lanes, engine::agent::builtin::run(env, registered, stop));
    } else {
        lanes.await;
    }
}

/// More open files than this are never needed: 4,096 connections of callers, and some hundreds of our own.
const MOST_HANDLES: u64 = 65_536;

/// Raises the limit on open files as far as we may. A shell's usual 1,024 are fewer than the connections that we serve.
pub fn raise_handle_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(MOST_HANDLES, |hard| hard.min(MOST_HANDLES));
    // None: there is no limit.
    let Some(now) = limit.current.filter(|now| *now < most) else { return };
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }) {
        tracing::warn!("no more than {now} files can be open at once, connections included: {error}");
    }
}

/// Binds the port first, so that a port in use is reported before anything else starts.
pub async fn listen(config: &Config) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(config.listen).await;
    bound.with_context(|| {
        format!(
            "{} cannot be listened on; choose another with LISTEN=127.0.0.1:7172, or stop what uses it",
            config.listen
        )
    })
}

pub fn metrics() -> anyhow::Result<PrometheusHandle> {
    PrometheusBuilder::new().install_recorder().context("metrics could not be set up")
}

/// The time limit of a graceful stop: the drain, the last writes to the database, and stopping the embedded server.
pub fn stop_limit(config: &Config) -> Duration {
    Duration::from_secs(config.drain_secs + 90)
}

/// SIGTERM and Ctrl-C ask for a graceful stop. A second signal, or a stop that takes too long, ends the process at once.
pub fn stop_on_signals(config: &Config) -> anyhow::Result<Stop> {
    let (limit, stop) = (stop_limit(config), Stop::default());
    let mut signals = signals(&[SignalKind::terminate(), SignalKind::interrupt()])?;
    let asked = stop.clone();
    tokio::spawn(async move {
        signals.recv().await;
        tracing::info!("stopping: finishing the running items");
        asked.stop();
        tokio::select! { _ = signals.recv() => {} () = tokio::time::sleep(limit) => {} }
        eprintln!("stopped at once; running items are claimed again after their lease");
        std::process::exit(130);
    });
    Ok(stop)
}

/// Returns a stream of these signals.
pub fn signals(kinds: &[SignalKind]) -> anyhow::Result<mpsc::UnboundedReceiver<()>> {
    let (tell, told) = mpsc::unbounded_channel();
    for kind in kinds {
        let (mut signal, tell) = (signal(*kind)?, tell.clone());
        tokio::spawn(async move { while signal.recv().await.is_some() && tell.send(()).is_ok() {} });
    }
    Ok(told)
}
