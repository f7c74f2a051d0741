//! The life of `up` and of the server it embeds: started, found, killed, adopted, stopped, and everything in its way.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::{Cluster, stays_true, wait_until};

use crate::app::{App, Folder, client, command, free_port, get, resident_kb, run};
use crate::crashes::{is_accepting, postmaster, recovery, sessions};

/// The same command from a shell with a low soft limit on open files.
fn with_few_files(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -Sn 256 && exec \"$0\" \"$@\""]).arg(command.get_program()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// The soft limit on the open files of a process.
fn most_files(pid: u32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("a process");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    line.split_whitespace().nth(3).and_then(|number| number.parse().ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn up_starts_answers_is_found_by_a_second_up_and_stops() {
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(with_few_files(&command(&folder.0, port)), &["up"], port).await;
    assert!(app.link().contains("/signin#once="));
    assert!(most_files(app.pid()) > 256, "a shell's limit on open files is kept");

    // It says where the first one is, whatever itself was told, and how to sign in there.
    let (second, said, error) = run(command(&folder.0, free_port()).arg("up"));
    assert!(second.status.success(), "{error}");
    let (running, link) = said.split_once('\n').expect("two lines");
    assert_eq!(running, format!("already running: http://127.0.0.1:{port}"));
    let link = link.trim().strip_prefix("Sign in (once, within 15 minutes): ").expect("a link");
    let (page, secret) = link.split_once("#once=").expect("a secret");
    assert_eq!(page, format!("http://127.0.0.1:{port}/signin"));
    let form = [("once", secret)];
    let redeemed =
        client().post(format!("{}/signin/once", app.url)).header("origin", &app.url).form(&form).send().await;
    let redeemed = redeemed.expect("an answer");
    assert!(redeemed.headers().contains_key("set-cookie"), "the link does not sign in: {redeemed:?}");
    // It answers before its worker has registered.
    let mut said = String::new();
    let is_well = wait_until(Duration::from_secs(20), async || {
        let (doctor, now, _) = run(command(&folder.0, port).arg("doctor"));
        said = now;
        doctor.status.success() && said.lines().all(|line| line.starts_with("ok"))
    });
    assert!(is_well.await, "{said}");

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
async fn an_up_that_fails_leaves_no_server_behind() {
    let (folder, port) = (Folder::new(), free_port());
    // A folder where it would leave its record: it fails when its server runs already.
    std::fs::create_dir_all(folder.0.join("up.json")).expect("a folder");
    let (output, out, err) = run(command(&folder.0, port).arg("up"));
    assert!(!output.status.success() && err.contains("cannot be written"), "{out}{err}");
    assert!(!format!("{out}{err}").contains("starting it again"), "it restarts what it stops: {out}{err}");
    let is_gone = stays_true(Duration::from_secs(1), async || postmaster(&folder).is_none()).await;
    assert!(is_gone, "its server was left behind: {out}{err}");
}

/// PostgreSQL's programs, of which `pg_ctl` halts a server as soon as it has started it.
fn programs_that_halt_the_server() -> Folder {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let (folder, real) = (Folder::new(), testkit::cluster::bin_dir("PG_BIN_DIR"));
    std::fs::create_dir(&folder.0).expect("a folder");
    for program in std::fs::read_dir(&real).expect("programs") {
        let program = program.expect("a program");
        if program.file_name() != "pg_ctl" {
            symlink(program.path(), folder.0.join(program.file_name())).expect("a link");
        }
    }
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\"\nended=$?\nif [ \"$1\" = start ]; then\n    while [ \"$1\" != -D ]; do shift; done\n    \
         kill -STOP \"$(head -n 1 \"$2/postmaster.pid\")\"\nfi\nexit $ended\n",
        real.join("pg_ctl").display()
    );
    let pg_ctl = folder.0.join("pg_ctl");
    std::fs::write(&pg_ctl, script).expect("a program");
    std::fs::set_permissions(&pg_ctl, std::fs::Permissions::from_mode(0o755)).expect("executable");
    folder
}

/// I6: as after a long recovery.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_late_is_stopped_by_the_up_that_started_it() {
    let (folder, port, programs) = (Folder::new(), free_port(), programs_that_halt_the_server());
    let mut up = command(&folder.0, port);
    up.env("PG_BIN_DIR", &programs.0);
    let mut app = App::spawn(up, &["up"], port);
    let socket = folder.0.join("run/.s.PGSQL.").display().to_string();
    let is_late = wait_until(Duration::from_secs(60), async || {
        // The server's own socket, and one of each try to connect.
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        sockets.lines().filter(|line| line.contains(&socket)).count() > 2
    })
    .await;
    postmaster(&folder).into_iter().for_each(|server| testkit::cluster::kill(server, Signal::CONT));
    assert!(is_late, "there was no second try:\n{}", app.printed());
    let is_ready = wait_until(Duration::from_secs(60), async || get(&app.url, "/readyz").await.0 == 200).await;
    assert!(is_ready, "I6:\n{}", app.printed());
    app.signal(Signal::TERM);
    assert!(app.ended_within(Duration::from_secs(30)).await.expect("it ended").success(), "{}", app.printed());
    assert_eq!(postmaster(&folder), None, "the server that it started was left behind");
}

/// I6: also a folder that an older version has made.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_folder_gets_the_settings_for_crashes_and_keeps_its_own() {
    let (folder, port) = (Folder::new(), free_port());
    assert!(run(command(&folder.0, port).arg("migrate")).0.status.success());
    let conf = folder.0.join("postgres/postgresql.conf");
    let names = ["authentication_timeout", "io_method", "log_error_verbosity", "restart_after_crash"];
    let older: String = std::fs::read_to_string(&conf)
        .expect("settings")
        .lines()
        .filter(|line| !names.iter().any(|name| line.starts_with(name)))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&conf, older + "authentication_timeout = 7s\n").expect("written");
    let app = App::start(command(&folder.0, port), &["up"], port).await;
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect("a file").trim().to_owned();
    let url = format!("postgres://tributary:{}@127.0.0.1:{}/tributary", read("login.password"), read("postgres.port"));
    let mut conn = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.expect("a connection");
    let in_force: Vec<String> =
        sqlx::query_scalar("select name || ' ' || setting from pg_settings where name = any($1) order by name")
            .bind(names)
            .fetch_all(&mut conn)
            .await
            .expect("settings");
    let wanted = ["authentication_timeout 7", "io_method sync", "log_error_verbosity terse", "restart_after_crash off"];
    assert_eq!(in_force, wanted, "{}", app.printed());
}

/// I6.
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

/// I6: `up` does not end because its server does, not even while it sets it up.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_while_it_is_set_up_is_started_again() {
    let (folder, port) = (Folder::new(), free_port());
    let mut up = command(&folder.0, port);
    up.env("TRIBUTARY_CRASH", "migrate.functions:stop");
    let mut app = App::spawn(up, &["up"], port);
    let is_stopped = wait_until(Duration::from_secs(60), async || testkit::process::is_stopped(app.pid())).await;
    assert!(is_stopped, "the crash point was not reached:\n{}", app.printed());
    testkit::cluster::kill(postmaster(&folder).expect("a server"), Signal::KILL);
    app.signal(Signal::CONT);
    let is_ready = wait_until(Duration::from_secs(60), async || {
        app.ended_within(Duration::ZERO).await.is_some() || get(&app.url, "/readyz").await.0 == 200
    });
    assert!(is_ready.await && app.ended_within(Duration::ZERO).await.is_none(), "I6:\n{}", app.printed());
}

/// F4, I6: PostgreSQL itself would wait for ever. It overlooks the end of a process while it recovers from the crash of another.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_hit_again_while_it_recovers_comes_back() {
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    let mut is_hit_twice = false;
    for _ in 0..20 {
        let session = postmaster(&folder).and_then(|server| sessions(server).pop());
        session.into_iter().for_each(|pid| testkit::cluster::kill(pid, Signal::KILL));
        let deadline = Instant::now() + Duration::from_secs(2);
        // Its recovery takes a tenth of a second, so this looks more often than `wait_until` does.
        while !is_hit_twice && Instant::now() < deadline {
            if let Some(pid) = postmaster(&folder).and_then(recovery) {
                testkit::cluster::kill(pid, Signal::KILL);
                is_hit_twice = true;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let is_back = wait_until(Duration::from_secs(30), async || {
            is_accepting(&folder) && get(&app.url, "/readyz").await.0 == 200
        });
        assert!(is_back.await, "I6: it does not come back:\n{}", app.printed());
        if is_hit_twice {
            break;
        }
    }
    assert!(is_hit_twice, "its recovery was never met");
    assert!(app.ended_within(Duration::ZERO).await.is_none(), "I6: up ended because its server did");
}

/// I6: a server that is killed while `up` starts it has not failed for a reason of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_while_it_starts_is_started_again() {
    let (folder, port) = (Folder::new(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    let old = postmaster(&folder).expect("a server");
    app.signal(Signal::KILL);
    testkit::cluster::kill(old, Signal::KILL);
    app.ended_within(Duration::from_secs(5)).await.expect("it ended");

    let mut app = App::spawn(command(&folder.0, port), &["up"], port);
    let is_killed = wait_until(Duration::from_secs(30), async || {
        let new = postmaster(&folder).filter(|pid| *pid != old);
        new.into_iter().for_each(|pid| testkit::cluster::kill(pid, Signal::KILL));
        new.is_some()
    });
    assert!(is_killed.await, "no server was started:\n{}", app.printed());
    let is_ready = wait_until(Duration::from_secs(60), async || {
        app.ended_within(Duration::ZERO).await.is_some() || get(&app.url, "/readyz").await.0 == 200
    });
    assert!(is_ready.await && app.ended_within(Duration::ZERO).await.is_none(), "I6:\n{}", app.printed());
}

/// I6: each process finds the server by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_on_another_port_is_found_by_every_process() {
    let (folder, port, other_port) = (Folder::new(), free_port(), free_port());
    let mut app = App::start(command(&folder.0, port), &["up"], port).await;
    let mut other = App::start(command(&folder.0, other_port), &["serve"], other_port).await;
    let recorded = || std::fs::read_to_string(folder.0.join("postgres.port")).expect("a port").trim().to_owned();
    let (before, server) = (recorded(), postmaster(&folder).expect("a server"));
    // Its port is taken before it is started again: `up` is halted meanwhile.
    app.signal(Signal::STOP);
    testkit::cluster::kill(server, Signal::KILL);
    let address = format!("127.0.0.1:{before}");
    let mut taken = None;
    let is_taken = wait_until(Duration::from_secs(5), async || {
        taken = std::net::TcpListener::bind(&address).ok();
        taken.is_some()
    });
    assert!(is_taken.await, "the killed server's port does not become free");
    app.signal(Signal::CONT);
    for url in [&app.url, &other.url] {
        let is_back =
            wait_until(Duration::from_secs(30), async || recorded() != before && get(url, "/readyz").await.0 == 200);
        assert!(is_back.await, "I6: {url} does not come back:\n{}{}", app.printed(), other.printed());
    }
    for process in [&mut app, &mut other] {
        assert!(process.ended_within(Duration::ZERO).await.is_none(), "I6: it ended because its server did");
    }
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
    let both_wait = wait_until(Duration::from_secs(20), async || {
        [&serving, &working].iter().all(|app| app.printed().contains("\"service_role\" does not exist"))
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
pub struct Pooler(std::process::Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Pooler {
    /// Starts pgbouncer with this file.
    pub fn start(config: &std::path::Path) -> Self {
        let mut pgbouncer = Command::new("pgbouncer");
        pgbouncer.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default())).arg("-q");
        if store::embedded::is_root() {
            pgbouncer.args(["-u", "nobody"]);
        }
        Self(pgbouncer.arg(config).stderr(Stdio::null()).spawn().expect("pgbouncer; ./test installs it"))
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
        let _pooler = Pooler::start(&config);
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
    let mut innocent = Command::new("sleep").arg("60").spawn().expect("a process");
    assert!(run(command(&folder.0, port).arg("migrate")).0.status.success());
    let record = format!("{{\"pid\":{},\"url\":\"http://stale\"}}", innocent.id());
    std::fs::write(folder.0.join("up.json"), record).expect("a record");
    std::fs::write(folder.0.join("postgres/postmaster.pid"), format!("{}\n{}\n", innocent.id(), folder.0.display()))
        .expect("a pid file");
    let app = App::start(command(&folder.0, port), &["up"], port).await;
    let (_, said, _) = run(command(&folder.0, port).arg("up"));
    assert!(said.starts_with(&format!("already running: http://127.0.0.1:{port}\n")), "{said}");
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
