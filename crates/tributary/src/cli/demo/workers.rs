//! Workers in processes of their own: the same binary as `tributary worker`.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args as _;
use engine::Config;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::super::process;
use super::settings;

/// A worker that was told to stop and does not is killed: it loses nothing.
const GRACE: Duration = Duration::from_secs(15);

pub struct Workers {
    program: PathBuf,
    settings: Vec<(String, String)>,
    log: PathBuf,
    running: Vec<Child>,
}

impl Workers {
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program cannot be found again")?;
        let log = config.data_dir.join("workers.log");
        Ok(Self { program, settings: settings::of_worker(config), log, running: Vec::new() })
    }

    /// One more.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("{} cannot be written", self.log.display()))?;
        let mut command = Command::new(&self.program);
        // Settings of another installation are not for it.
        for setting in Config::augment_args(clap::Command::new("worker")).get_arguments() {
            if let Some(variable) = setting.get_env() {
                command.env_remove(variable);
            }
        }
        command.env_remove("TRIBUTARY_CRASH").envs(self.settings.iter().map(|(name, value)| (name, value)));
        command.env(process::PARENT, std::process::id().to_string());
        command.arg("worker").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        self.running.push(command.spawn().context("a worker could not be started")?);
        Ok(())
    }

    /// As `kill -9` does it; false when no worker of ours has this process id.
    pub async fn kill(&mut self, pid: u32) -> anyhow::Result<bool> {
        let Some(nth) = self.running.iter().position(|child| child.id() == Some(pid)) else { return Ok(false) };
        let mut child = self.running.swap_remove(nth);
        child.kill().await?;
        Ok(true)
    }

    /// Starts others for those that ended by themselves.
    pub fn replace_ended(&mut self) -> anyhow::Result<()> {
        let before = self.running.len();
        self.running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        for _ in self.running.len()..before {
            tracing::warn!("a worker has ended by itself, and another is started; {} says why", self.log.display());
            self.start()?;
        }
        Ok(())
    }

    /// All of them finish what they have.
    pub async fn stop(&mut self) {
        for child in &self.running {
            let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid {
                let _ = kill_process(pid, Signal::TERM); // it may have ended this moment
            }
        }
        for mut child in self.running.drain(..) {
            if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
    }
}
