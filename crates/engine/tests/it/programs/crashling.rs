//! A worker that crash tests kill: the real runtime, with the tests' lane and, on request, a planted bug.
//! `CRASHLING_BUG` names the bug: `ack-first` or `no-fence`. With `CRASHLING_MIGRATE` it migrates and ends. `CRASHLING_SPARE_MB` is what it may
//! take beyond the memory that it begins with. With `CRASHLING_REAL` it runs the program's own lanes instead of the tests'. With `PIGEONPOST_FILE` it
//! knows the made-up mailbox that lies there.

use engine::database;
use engine::work::{Runtime, Stop};
use store::crash;

use crate::letters::pigeon;

pub fn main() -> anyhow::Result<()> {
    if let Ok(spare) = std::env::var("CRASHLING_SPARE_MB") {
        limit_memory(spare.parse()?)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build()?;
    let ended = runtime.block_on(run());
    runtime.shutdown_background(); // like the real program: a task that never yields must not keep the process alive
    ended
}

/// Refuses this process any memory beyond `spare_mb` more than it has, as a small machine would.
fn limit_memory(spare_mb: u64) -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap_or_default();
    let size_kb: u64 = size.trim().trim_end_matches(" kB").parse()?;
    let most = Some((size_kb << 10) + (spare_mb << 20));
    Ok(setrlimit(Resource::As, Rlimit { current: most, maximum: most })?)
}

async fn run() -> anyhow::Result<()> {
    let config = testkit::config(&[]); // from the environment
    tracing_subscriber::fmt().with_env_filter(&config.log).with_writer(std::io::stderr).init();
    crash::arm(std::env::var("TRIBUTARY_CRASH").ok().as_deref()).map_err(anyhow::Error::msg)?;
    let database = database::find(&config).await?;
    if std::env::var_os("CRASHLING_MIGRATE").is_some() {
        database.migrate().await?;
        return Ok(());
    }
    let mut env = database.env(&config)?;
    if let Ok(file) = std::env::var(pigeon::FILE) {
        env.providers = pigeon::providers(&env, &file);
    }
    let stop = Stop::default();
    let asked = stop.clone();
    tokio::spawn(async move {
        let mut term =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("a signal handler");
        term.recv().await;
        asked.stop();
    });
    let bug = std::env::var("CRASHLING_BUG").ok();
    let lanes = match std::env::var_os("CRASHLING_REAL") {
        Some(_) => &engine::lanes::ALL,
        None => testkit::effects::lanes(bug.as_deref()),
    };
    Runtime::new(env, lanes, engine::lanes::SCHEDULES).run("worker", stop).await;
    Ok(())
}
