//! What `up`, `serve` and `worker` share: signals, metrics, and the two halves of the program.

use std::process::ExitCode;

use anyhow::Context as _;
use engine::work::{Runtime, Stop, lanes};
use engine::{Config, Env, database};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// The HTTP server alone.
pub async fn serve(config: Config) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let metrics = metrics()?;
    let listener = listen(&config).await?;
    let env = database::find(&config).await?.env(&config)?;
    database::wait_for_schema(&env).await?;
    let stop = stop_on_signals()?;
    tracing::info!("serving on {}", config.base_url());
    web::serve(env, listener, metrics, stop).await?;
    Ok(ExitCode::SUCCESS)
}

/// The lanes alone.
pub async fn work(config: Config) -> anyhow::Result<ExitCode> {
    logging::start(&config)?;
    let env = database::find(&config).await?.env(&config)?;
    database::wait_for_schema(&env).await?;
    let stop = stop_on_signals()?;
    run_lanes(env, "worker", stop).await;
    Ok(ExitCode::SUCCESS)
}

pub async fn run_lanes(env: Env, role: &str, stop: Stop) {
    Runtime::new(env, &lanes::ALL).run(role, stop).await;
}

/// Binds first, so that a taken port is told before anything else starts.
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

/// SIGTERM and Ctrl-C ask for a graceful stop; a second Ctrl-C ends at once.
pub fn stop_on_signals() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let asked = stop.clone();
    tokio::spawn(async move {
        tokio::select! { _ = term.recv() => {} _ = int.recv() => {} }
        tracing::info!("stopping: finishing what is in hand");
        asked.stop();
        tokio::select! { _ = term.recv() => {} _ = int.recv() => {} }
        eprintln!("stopped at once; what was in hand is taken up again after its lease");
        std::process::exit(130);
    });
    Ok(stop)
}
