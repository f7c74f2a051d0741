//! The end of a demonstration: nothing of it is left, however it is stopped.

use std::time::Duration;

use rustix::process::Signal;
use testkit::wait_until;

use crate::app::{App, Folder, command, free_port, get};

const SOON: Duration = Duration::from_secs(60);

/// A demonstration that plays, with the ids of its workers.
async fn playing(folder: &Folder) -> (App, Vec<u32>) {
    let port = free_port();
    // The port is in LISTEN.
    let args = ["demo", "--data-dir", folder.0.to_str().expect("a path")];
    let demo = App::spawn(command(&folder.0, port), &args, port);
    let has_workers = wait_until(SOON, async || workers(demo.pid()).len() == 2).await;
    assert!(has_workers, "it does not play:\n{}", demo.printed());
    assert_eq!(get(&demo.url, "/healthz").await.0, 200, "it listens elsewhere:\n{}", demo.printed());
    let workers = workers(demo.pid());
    (demo, workers)
}

/// A line of what the kernel says of a process.
fn said(pid: u32, line: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|said| said.strip_prefix(line))?.trim().to_owned())
}

fn workers(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("a list of processes");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_worker = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        said(*pid, "PPid:") == Some(parent.to_string()) && command.ends_with(b"\0worker\0")
    };
    pids.filter(is_worker).collect()
}

fn is_running(pid: u32) -> bool {
    said(pid, "State:").is_some_and(|state| !state.starts_with('Z'))
}

#[tokio::test(flavor = "multi_thread")]
async fn told_twice_to_stop_it_leaves_neither_a_process_nor_its_folder() {
    let folder = Folder::new();
    let (mut demo, workers) = playing(&folder).await;
    let pid_file = std::fs::read_to_string(folder.0.join("postgres/postmaster.pid")).expect("a server");
    let server: u32 = pid_file.lines().next().and_then(|line| line.trim().parse().ok()).expect("a pid");
    // The terminal is closed, and somebody does not want to wait.
    demo.signal(Signal::HUP);
    assert!(wait_until(SOON, async || demo.printed().contains("Stopping")).await, "{}", demo.printed());
    demo.signal(Signal::TERM);
    assert!(demo.ended_within(SOON).await.is_some(), "it does not end:\n{}", demo.printed());
    assert!(!folder.0.exists(), "its folder is left:\n{}", demo.printed());
    let is_gone = async || workers.iter().chain([&server]).all(|pid| !is_running(*pid));
    assert!(wait_until(SOON, is_gone).await, "{workers:?} or {server} still runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_it_takes_its_workers_with_it() {
    let folder = Folder::new();
    let (mut demo, workers) = playing(&folder).await;
    demo.signal(Signal::KILL);
    demo.ended_within(SOON).await.expect("it ended");
    let is_gone = async || workers.iter().all(|pid| !is_running(*pid));
    assert!(wait_until(SOON, is_gone).await, "{workers:?} still run");
}
