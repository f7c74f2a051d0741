//! An embedded server that cannot be started, or lets nobody in: `up` says what to do.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::wait_until;

use crate::app::{App, Folder, command, free_port, get, run};
use crate::crashes::postmaster;

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_setting_of_the_server_is_told_at_once() {
    let (folder, port) = (Folder::new(), free_port());
    assert!(run(command(&folder.0, port).arg("migrate")).0.status.success());
    let conf = folder.0.join("postgres/postgresql.conf");
    let text = std::fs::read_to_string(&conf).expect("settings");
    std::fs::write(&conf, text + "\nshared_buffers = plenty\n").expect("written");
    let begun = Instant::now();
    let (output, _, said) = run(command(&folder.0, port).arg("up"));
    assert!(!output.status.success() && said.contains("shared_buffers"), "{said}");
    let hint = format!("hint: correct {}/postgresql.conf", folder.0.join("postgres").display());
    assert!(said.contains(&hint) && said.contains("run/postgres.log"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
}

/// A server that runs and lets nobody in, because a file is gone: waiting does not help.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_can_never_be_used_ends_up_with_what_to_do() {
    let (folder, port) = (Folder::new(), free_port());
    assert!(run(command(&folder.0, port).arg("migrate")).0.status.success());
    std::fs::remove_file(folder.0.join("postgres/global/pg_filenode.map")).expect("removed");
    let mut app = App::spawn(command(&folder.0, port), &["up"], port);
    let ended = app.ended_within(Duration::from_secs(30)).await;
    assert!(ended.is_some_and(|status| !status.success()), "it goes on:\n{}", app.printed());
    let said = app.printed();
    assert!(said.contains("hint: files of the database are missing") && said.contains("run/postgres.log"), "{said}");
    assert_eq!(postmaster(&folder), None, "its server was left behind:\n{said}");
}

/// A server that dies and cannot be started again is told of with what to do, and not with every try.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_come_back_is_told_of_with_what_to_do() {
    let (folder, port) = (Folder::new(), free_port());
    let app = App::start(command(&folder.0, port), &["up"], port).await;
    let conf = folder.0.join("postgres/postgresql.conf");
    let text = std::fs::read_to_string(&conf).expect("settings");
    std::fs::write(&conf, format!("{text}\nshared_buffers = plenty\n")).expect("written");
    testkit::cluster::kill(postmaster(&folder).expect("a server"), Signal::KILL);
    let lines = || app.printed().lines().filter(|line| line.contains("does not start")).count();
    let is_told = wait_until(Duration::from_secs(30), async || lines() >= 3).await;
    assert!(is_told && app.printed().contains("correct "), "{}", app.printed());
    std::fs::write(&conf, text).expect("written");
    let is_back = wait_until(Duration::from_secs(30), async || get(&app.url, "/readyz").await.0 == 200);
    assert!(is_back.await, "I6: it does not come back:\n{}", app.printed());
    assert!(lines() <= 8, "{} lines:\n{}", lines(), app.printed());
}
