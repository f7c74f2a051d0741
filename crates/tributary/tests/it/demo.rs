//! A demonstration: what its mailboxes show, and its end, after which nothing of it is left, however it is stopped.

use std::time::Duration;

use rustix::process::Signal;
use testkit::wait_until;

use crate::app::{App, Folder, client, command, free_port, get};

const SOON: Duration = Duration::from_secs(60);
/// Until the story of the mailboxes has come to a line of its first minutes.
const STORY: Duration = Duration::from_secs(180);

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

/// A person's browser, signed in by the link that was printed.
async fn signed_in(demo: &App) -> String {
    let link = demo.link();
    let once = link.split_once("#once=").map_or("", |(_, once)| once);
    let request = client().post(format!("{}/signin/once", demo.url)).header("origin", &demo.url);
    let answer = request.form(&[("once", once)]).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 303, "the link does not sign in");
    let cookie = answer.headers()["set-cookie"].to_str().expect("a cookie");
    cookie.split(';').next().expect("a value").to_owned()
}

/// A page as a person sees it.
async fn page(demo: &App, cookie: &str, path: &str) -> String {
    let answer = client().get(format!("{}{path}", demo.url)).header("cookie", cookie).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200, "{path}");
    answer.text().await.expect("a page")
}

/// The page that a line of the story names, as soon as it is told.
async fn told(demo: &App, words: &str) -> String {
    let line = || demo.printed().lines().find(|line| line.contains(words)).map(str::to_owned);
    assert!(wait_until(STORY, async || line().is_some()).await, "nobody tells of {words:?}:\n{}", demo.printed());
    let line = line().expect("a line");
    line.split_once(&format!("→ {}", demo.url)).unwrap_or_else(|| panic!("no page: {line}")).1.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn its_mail_is_listed_and_found_and_none_of_it_is_missed() {
    let folder = Folder::new();
    let (demo, _) = playing(&folder).await;
    let letter = told(&demo, "Nora Vickery's letter \"Snow pusher for winter 2027\" came in").await;
    let cookie = signed_in(&demo).await;
    let id = letter.strip_prefix("/mail/").expect("a letter's page");
    for (path, words) in [
        (letter.as_str(), "deliver to the upper gate"),
        ("/mail", "Snow pusher for winter 2027"),
        ("/search?q=snow+pusher+upper+gate", id),
    ] {
        let shown = page(&demo, &cookie, path).await;
        assert!(shown.contains(words), "{path} does not show {words:?}: {shown}");
    }
    let conversation = told(&demo, "3 letters in one conversation").await;
    assert!(page(&demo, &cookie, &conversation).await.contains("keep the old chisel"), "{conversation}");
    told(&demo, "a rule left it out").await;
    for label in ["Gmail", "Outlook"] {
        let mailbox = told(&demo, &format!("that {label} counts is accounted for (green)")).await;
        assert!(page(&demo, &cookie, &mailbox).await.contains("Nothing was missed"), "{mailbox}");
    }
    let printed = demo.printed();
    assert!(!printed.contains("(red)") && !printed.contains("(grey)"), "{printed}");
    assert!(!printed.contains("A chapter is left out"), "{printed}");
}
