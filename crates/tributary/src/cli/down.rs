//! `tributary down`: stops a running `up`, then the embedded database, also one that another process started.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use engine::{Config, database};
use rustix::process::{Pid, Signal, kill_process};

use super::up;

pub async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let mut stopped = false;
    if config.data_dir.exists() && up::lock(&config)?.is_none() {
        let Some(running) = up::running(&config) else {
            bail!(
                "`up` is just starting or stopping on {}\n\nhint: try again in a few seconds",
                config.data_dir.display()
            );
        };
        if let Some(pid) = Pid::from_raw(running.pid) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + Duration::from_secs(config.drain_secs + 60);
        while up::lock(&config)?.is_none() {
            if Instant::now() > deadline {
                bail!(
                    "process {} does not stop\n\nhint: `kill -9 {}` loses nothing; then `tributary down` again",
                    running.pid,
                    running.pid
                );
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stopped = true;
    }
    if config.database_url.is_none() && config.data_dir.exists() {
        stopped |= database::embedded(&config)?.stop().await?;
    }
    println!("{}", if stopped { "stopped" } else { "nothing was running" });
    Ok(ExitCode::SUCCESS)
}
