//! The life of `up` and of the server it embeds: started, found, killed, adopted, stopped, and everything in its way.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::{Cluster, wait_until};

use crate::app::{App, Folder, command, free_port, get, resident_kb, run};

fn postmaster(folder: &Folder) -> Option<u32> {
    let text = std::fs::read_to_string(folder.0.join("postgres/postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn up_starts_answers_is_found_by_a_second_up_and_stops() {
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    assert!(app.link().contains("/signin#once="));

    let (second, said, _) = run(command(&folder.0, port).arg("up"));
    assert!(second.status.success());
    assert_eq!(said, format!("already running: http://127.0.0.1:{port}\n"));
    let (doctor, said, _) = run(command(&folder.0, port).arg("doctor"));
    assert!(doctor.status.success(), "{said}");
    assert!(said.lines().all(|line| line.starts_with("ok")), "{said}");

    let rss_kb = resident_kb(app.pid(), "VmRSS");
    println!("resident memory of an idle up: {:.1} MB", rss_kb as f64 / 1024.0);
    assert!(rss_kb < 60 * 1024, "an idle up takes {rss_kb} kB");

    let (down, said, _) = run(command(&folder.0, port).arg("down"));
    assert!(down.status.success() && said == "stopped\n", "{said}");
    assert!(app.ended_within(Duration::from_secs(1)).await.expect("it ended").success(), "{}", app.printed());
    assert_eq!(postmaster(&folder), None, "the server still runs");
    let (_, said, _) = run(command(&folder.0, port).arg("down"));
    assert_eq!(said, "nothing was running\n");

    let begun = Instant::now();
    let mut app = App::spawn(command(&folder.0, port), &["up"], port);
    assert!(
        wait_until(Duration::from_secs(5), async || get(&app.url, "/healthz").await.0 == 200).await,
        "no /healthz within 5 s"
    );
    println!("/healthz after {:?}", begun.elapsed());
    app.signal(Signal::TERM);
    assert!(app.ended_within(Duration::from_secs(15)).await.expect("it ended").success());
    assert_eq!(postmaster(&folder), None, "a graceful end stops the server it started");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_up_leaves_a_server_that_the_next_one_adopts_and_down_stops() {
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    let server = postmaster(&folder).expect("a server");
    app.signal(Signal::KILL);
    app.ended_within(Duration::from_secs(5)).await.expect("it ended");
    assert_eq!(postmaster(&folder), Some(server), "the server went with it");

    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    assert_eq!(postmaster(&folder), Some(server), "it was not adopted");
    app.signal(Signal::TERM);
    app.ended_within(Duration::from_secs(15)).await.expect("it ended");
    assert_eq!(postmaster(&folder), Some(server), "who did not start it must not stop it");
    let (_, said, _) = run(command(&folder.0, port).arg("down"));
    assert_eq!(said, "stopped\n");
    assert_eq!(postmaster(&folder), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_started_again_under_a_running_up() {
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    let server = postmaster(&folder).expect("a server");
    testkit::cluster::kill(server, Signal::KILL);
    let is_away = wait_until(Duration::from_secs(10), async || get(&app.url, "/readyz").await.0 == 503).await;
    let is_back = wait_until(Duration::from_secs(30), async || {
        get(&app.url, "/readyz").await.0 == 200 && postmaster(&folder) != Some(server)
    })
    .await;
    assert!(is_back, "I6: it did not come back:\n{}", app.printed());
    assert!(app.ended_within(Duration::ZERO).await.is_none(), "I6: up ended because its server did");
    println!("the server was seen away: {is_away}; it came back by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_way_is_named_with_what_to_do() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let (output, _, said) = run(command(&folder.0, port).arg("up"));
    assert!(!output.status.success());
    assert!(said.contains("cannot be listened on") && said.contains("LISTEN="), "{said}");

    let (output, _, said) =
        run(command(&folder.0, port).env("PG_BIN_DIR", "/nowhere").arg("up").env("LISTEN", "127.0.0.1:0"));
    assert!(!output.status.success());
    assert!(said.contains("no PostgreSQL server in /nowhere") && said.contains("./tributary"), "{said}");

    let (output, _, said) = run(command(&folder.0, port).env("DATABASE_URL", "mysql://canary-secret@x").arg("doctor"));
    assert!(!output.status.success());
    assert!(!said.contains("canary-secret"), "S13: {said}");

    let (output, said, _) = run(command(&folder.0, port).arg("doctor"));
    assert!(!output.status.success());
    assert!(said.contains("what to do: run `tributary up`"), "{said}");

    let (output, _, said) = run(command(&folder.0, port).args(["queue", "list"]));
    assert!(!output.status.success());
    assert!(said.contains("hint: start it with `tributary up`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_another_version_is_refused_and_left_alone() {
    let (folder, port) = (Folder::new(), free_port());
    let sixteen = std::env::var("PG16_BIN_DIR").expect("run by ./test");
    let (made, said, error) = run(command(&folder.0, port).env("PG_BIN_DIR", &sixteen).arg("migrate"));
    assert!(made.status.success(), "{said}{error}");
    let (output, _, said) = run(command(&folder.0, port).arg("up"));
    assert!(!output.status.success());
    assert!(said.contains("was made by PostgreSQL 16, and this is PostgreSQL 18"), "{said}");
    let version = std::fs::read_to_string(folder.0.join("postgres/PG_VERSION")).expect("a version");
    assert_eq!(version.trim(), "16");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_database_port_is_replaced_and_recorded() {
    let (folder, port) = (Folder::new(), free_port());
    assert!(run(command(&folder.0, port).arg("migrate")).0.status.success());
    let recorded = || {
        std::fs::read_to_string(folder.0.join("postgres.port"))
            .expect("a port")
            .trim()
            .parse::<u16>()
            .expect("a number")
    };
    let before = recorded();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", before)).expect("the port is free between runs");
    let app = App::start(command(&folder.0, port), &["up"], port).await;
    assert_ne!(recorded(), before);
    drop(app);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_database_is_used_by_serve_and_worker_apart() {
    let cluster = Cluster::private().await;
    let running = cluster.running();
    store::migrate::create_database(&running.admin.database("postgres"), "given", None).await.expect("a database");
    let password = std::fs::read_to_string(cluster.embedded().cluster_dir().with_file_name("postgres.password"))
        .expect("a password");
    let url = format!("postgres://postgres:{}@127.0.0.1:{}/given", password.trim(), running.port);
    let (folder, port) = (Folder::new(), free_port());
    let with = |folder: &Folder| {
        let mut command = command(&folder.0, port);
        command.env("DATABASE_URL", &url);
        command
    };
    // They may start before the migration.
    let serving = App::spawn(with(&folder), &["serve"], port);
    let working = App::spawn(with(&folder), &["worker"], port);
    let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.expect("a session");
    let sessions = "select count(*) from pg_stat_activity where datname = 'given' and application_name = 'tributary'";
    let both_wait = wait_until(Duration::from_secs(20), async || {
        sqlx::query_scalar::<_, i64>(sessions).fetch_one(&mut conn).await.is_ok_and(|n| n >= 2)
    });
    assert!(both_wait.await, "{}{}", serving.printed(), working.printed());
    let (migrated, said, error) = run(with(&folder).arg("migrate"));
    assert!(migrated.status.success(), "{said}{error}");
    assert!(
        wait_until(Duration::from_secs(20), async || get(&serving.url, "/readyz").await.0 == 200).await,
        "{}",
        serving.printed()
    );
    let is_listed = wait_until(Duration::from_secs(20), async || {
        let (_, said, _) = run(with(&folder).args(["worker", "list"]));
        said.contains("alive") && said.contains("worker")
    });
    assert!(is_listed.await, "{}", working.printed());
    let printed = [serving.printed(), working.printed()].concat();
    assert!(!printed.contains(password.trim()), "S13: the database's password was printed");
    assert!(!folder.0.join("postgres").exists(), "an embedded server was made beside a given one");
}

/// A real pooler in front of a server.
struct Pooler(std::process::Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_recognises_a_transaction_pooler_and_names_what_to_use() {
    let cluster = Cluster::private().await;
    cluster.database("pooled").await;
    let password = std::fs::read_to_string(cluster.embedded().cluster_dir().with_file_name("postgres.password"))
        .expect("a password");
    let (folder, port) = (Folder::new(), free_port());
    std::fs::create_dir_all(&folder.0).expect("a folder");
    for (mode, is_fine) in [("transaction", false), ("session", true)] {
        let config = folder.0.join("pgbouncer.ini");
        let pooled = format!(
            "pooled = host=127.0.0.1 port={} user=postgres password={}",
            cluster.running().port,
            password.trim()
        );
        let settings = format!(
            "listen_addr=127.0.0.1\nlisten_port={port}\nunix_socket_dir=\nauth_type=any\npool_mode={mode}\nignore_startup_parameters=extra_float_digits"
        );
        std::fs::write(&config, format!("[databases]\n{pooled}\n[pgbouncer]\n{settings}\n")).expect("a file");
        let mut pgbouncer = std::process::Command::new("pgbouncer");
        pgbouncer.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default())).arg("-q");
        if store::embedded::is_root() {
            pgbouncer.args(["-u", "nobody"]);
        }
        let _pooler = Pooler(
            pgbouncer.arg(&config).stderr(std::process::Stdio::null()).spawn().expect("pgbouncer; ./test installs it"),
        );
        let url = format!("postgres://any@127.0.0.1:{port}/pooled");
        let mut said = String::new();
        let told = wait_until(Duration::from_secs(10), async || {
            said = run(command(&folder.0, 7171).env("DATABASE_URL", &url).arg("doctor")).1;
            said.contains("session      ")
        });
        assert!(told.await, "{said}");
        assert_eq!(said.contains("ok      session"), is_fine, "{mode}: {said}");
        assert_eq!(said.contains("is a transaction pooler") && said.contains("port 5432"), !is_fine, "{mode}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_left_alone() {
    // A folder that only looks like ours.
    let (folder, port) = (Folder::new(), free_port());
    std::fs::create_dir_all(folder.0.join("postgres")).expect("a folder");
    std::fs::write(folder.0.join("postgres/precious.sql"), "precious").expect("a file");
    let (output, _, said) = run(command(&folder.0, port).arg("up"));
    assert!(!output.status.success() && said.contains("is no PostgreSQL cluster"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.0.join("postgres/precious.sql")).expect("still there"), "precious");
    std::fs::remove_dir_all(folder.0.join("postgres")).expect("removed");

    // A process whose pid a killed `up` and a killed server had left behind.
    let mut innocent = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
    assert!(run(command(&folder.0, port).arg("migrate")).0.status.success());
    let record = format!("{{\"pid\":{},\"url\":\"http://stale\"}}", innocent.id());
    std::fs::write(folder.0.join("up.json"), record).expect("a record");
    std::fs::write(folder.0.join("postgres/postmaster.pid"), format!("{}\n{}\n", innocent.id(), folder.0.display()))
        .expect("a pid file");
    let app = App::start(command(&folder.0, port), &["up"], port).await;
    let (_, said, _) = run(command(&folder.0, port).arg("up"));
    assert_eq!(said, format!("already running: http://127.0.0.1:{port}\n"));
    assert!(run(command(&folder.0, port).arg("down")).0.status.success());
    drop(app);
    assert!(innocent.try_wait().expect("a child").is_none(), "a stranger was ended");
    innocent.kill().expect("ended");
    innocent.wait().expect("collected");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_first_starts_at_once_make_one_cluster_and_neither_stops_the_other() {
    let (folder, port) = (Folder::new(), free_port());
    let mut first = App::spawn(command(&folder.0, port), &["up"], port);
    let others: Vec<_> = (0..3)
        .map(|_| {
            let mut migrate = command(&folder.0, port);
            std::thread::spawn(move || run(migrate.arg("migrate")))
        })
        .collect();
    for other in others {
        let (output, said, error) = other.join().expect("no panic");
        assert!(output.status.success(), "{said}{error}");
    }
    assert!(
        wait_until(Duration::from_secs(30), async || get(&first.url, "/readyz").await.0 == 200).await,
        "{}",
        first.printed()
    );
    assert!(first.ended_within(Duration::ZERO).await.is_none(), "{}", first.printed());
    assert!(!folder.0.join("postgres.new").exists());
    assert!(postmaster(&folder).is_some());
}

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
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
}
