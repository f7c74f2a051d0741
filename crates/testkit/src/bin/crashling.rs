//! A worker that crash tests kill: the real runtime, with the tests' lane and, when asked, a planted bug.

use clap::Parser;
use engine::work::{Runtime, Stop};
use engine::{Config, database};
use store::crash;

#[derive(Parser)]
struct Crashling {
    #[command(flatten)]
    config: Config,
    /// A bug to plant: ack-first or no-fence.
    #[arg(long)]
    bug: Option<String>,
    /// Migrate, then end.
    #[arg(long)]
    migrate: bool,
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build()?;
    let ended = runtime.block_on(run());
    runtime.shutdown_background(); // as the real program does: a task that never yields must not keep it
    ended
}

async fn run() -> anyhow::Result<()> {
    let crashling = Crashling::parse();
    tracing_subscriber::fmt().with_env_filter(&crashling.config.log).with_writer(std::io::stderr).init();
    crash::arm(std::env::var("TRIBUTARY_CRASH").ok().as_deref()).map_err(anyhow::Error::msg)?;
    let database = database::find(&crashling.config).await?;
    if crashling.migrate {
        database.migrate().await?;
        return Ok(());
    }
    let env = database.env(&crashling.config)?;
    let stop = Stop::default();
    let asked = stop.clone();
    tokio::spawn(async move {
        let mut term =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("a signal handler");
        term.recv().await;
        asked.stop();
    });
    Runtime::new(env, testkit::effects::lanes(crashling.bug.as_deref())).run("worker", stop).await;
    Ok(())
}
