//! Finding the processes of an embedded server, for tests that kill them.

use std::path::Path;
use std::process::{Command, Stdio};

use testkit::cluster::bin_dir;

use crate::app::Folder;

/// The pid that the server of this folder left in its file.
pub fn postmaster(folder: &Folder) -> Option<u32> {
    let text = std::fs::read_to_string(folder.0.join("postgres/postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// The server's children that serve a client of ours.
pub fn sessions(postmaster: u32) -> Vec<u32> {
    children(postmaster, |title| title.starts_with(&format!("{} ", store::embedded::LOGIN)))
}

/// The server's other children: the checkpointer, the log's writer, the vacuum …
pub fn helpers(postmaster: u32) -> Vec<u32> {
    children(postmaster, |title| !title.starts_with(&format!("{} ", store::embedded::LOGIN)))
}

/// The process that recovers what a crash left.
pub fn recovery(postmaster: u32) -> Option<u32> {
    children(postmaster, |title| title.starts_with("startup")).first().copied()
}

/// The children whose title, without its first word, is wanted.
fn children(postmaster: u32, is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).unwrap_or_default();
    let is_it = |pid: &u32| {
        let title = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        title.strip_prefix("postgres: ").is_some_and(&is_wanted)
    };
    listed.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_it).collect()
}

pub fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether the server takes connections, without logging in.
pub fn is_accepting(folder: &Folder) -> bool {
    let Ok(port) = std::fs::read_to_string(folder.0.join("postgres.port")) else { return false };
    let mut asked = Command::new(bin_dir("PG_BIN_DIR").join("pg_isready"));
    asked.args(["-q", "-h", "127.0.0.1", "-t", "1", "-p", port.trim()]).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// A number that the environment sets, as `scripts/soak` does.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
