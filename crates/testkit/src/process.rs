//! Worker processes that tests may kill, stop and resume.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::cluster::{blob_url, kill};
use crate::wait_until;

/// A worker process that is killed when the test ends.
pub struct Worker(Child);

/// Whether SIGSTOP stopped a process: its own at a crash point, or the test's.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// The options for starting a worker.
pub struct Start<'a> {
    pub program: &'a str,
    pub args: &'a [&'a str],
    pub database_url: &'a str,
    /// `<point>:<action>[:<n>]`
    pub crash: Option<&'a str>,
    pub env: &'a [(&'a str, &'a str)],
}

impl Worker {
    pub fn start(how: &Start) -> Self {
        let mut command = Command::new(how.program);
        command.args(how.args).env("DATABASE_URL", how.database_url);
        match std::env::var("CHILD_LOG") {
            Ok(filter) => command.env("LOG", filter),
            Err(_) => command.env("LOG", "off").stderr(Stdio::null()),
        };
        command
            .env("MASTER_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
            .env("BLOB_URL", blob_url())
            .env("EMBEDDER", "fast")
            .env("WORKER_HEARTBEAT_SECS", "1")
            .env("DRAIN_SECS", "5");
        command.env_remove("TRIBUTARY_CRASH").envs(how.env.iter().copied());
        if let Some(crash) = how.crash {
            command.env("TRIBUTARY_CRASH", crash);
        }
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a worker process"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.0.id(), signal);
    }

    /// See [`is_stopped`].
    pub fn is_stopped(&self) -> bool {
        is_stopped(self.0.id())
    }

    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child of ours")
    }

    /// Waits until the process ends by itself; `None` when it still runs after `limit`.
    pub async fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let mut status = None;
        wait_until(limit, async || {
            status = self.has_ended();
            status.is_some()
        })
        .await;
        status
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
