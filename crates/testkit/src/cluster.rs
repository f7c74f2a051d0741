//! PostgreSQL servers for tests: one shared by all tests of a binary (fsync off), and private ones (fsync on) that a test may kill.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use engine::lanes;
use store::ConnectTo;
use store::embedded::{Embedded, Running};
use store::migrate;

use crate::{effects, wait_until};

const TEMPLATE: &str = "template_tributary";

pub struct Cluster {
    embedded: Embedded,
    dir: PathBuf,
    running: Mutex<Running>,
    /// Stops the server and removes its folder when this process ends, however it ends: the pipe between them closes then.
    watchdog: Mutex<Option<Child>>,
}

impl Cluster {
    /// Starts a server for this test alone, with fsync on.
    pub async fn private() -> Self {
        Self::private_by(&bin_dir("PG_BIN_DIR")).await
    }

    /// The same, by other programs.
    pub async fn private_by(bin_dir: &Path) -> Self {
        Self::start(bin_dir, &["shared_buffers=64MB"]).await
    }

    /// Starts a PostgreSQL 16 server, for migrations and contracts.
    pub async fn private_16() -> Self {
        Self::start(&bin_dir("PG16_BIN_DIR"), &["shared_buffers=64MB", "fsync=off"]).await
    }

    /// Starts a server of another installation, for example one with a further extension.
    pub async fn private_of(bin_dir: &Path) -> Self {
        Self::start(bin_dir, &["shared_buffers=64MB", "fsync=off"]).await
    }

    async fn start(bin_dir: &Path, settings: &[&str]) -> Self {
        let dir = std::env::temp_dir().join(format!("tributary-test-{}", uuid::Uuid::now_v7().simple()));
        // No `up` watches over a test's server.
        let settings = [settings, &["restart_after_crash=on"]].concat();
        let embedded =
            Embedded::new(&dir, bin_dir).expect("the pinned PostgreSQL; ./test fetches it").with_settings(&settings);
        let running = embedded.start().await.expect("a server for tests");
        let watchdog = Mutex::new(Some(watchdog(running.postmaster_pid, &dir)));
        Self { embedded, dir, running: Mutex::new(running), watchdog }
    }

    pub fn running(&self) -> Running {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn embedded(&self) -> &Embedded {
        &self.embedded
    }

    /// A migrated database of this server.
    pub async fn database(&self, name: &str) -> Database {
        let running = self.running();
        migrate::create_database(&running.admin.database("postgres"), name, None).await.expect("a database");
        let database = self.existing(name);
        database.migrate().await.expect("migrations");
        database
    }

    /// A database of this server, as it is.
    pub fn existing(&self, name: &str) -> Database {
        let running = self.running();
        let password = self.embedded.login_password().expect("the login's password");
        let url =
            format!("postgres://{}:{}@127.0.0.1:{}/{name}", store::embedded::LOGIN, password.reveal(), running.port);
        Database {
            name: name.to_owned(),
            admin: running.admin.database(name),
            login: running.login.database(name),
            url,
        }
    }

    /// Kills the postmaster with SIGKILL. Its backends notice and end themselves.
    pub fn kill(&self) {
        kill(self.running().postmaster_pid, rustix::process::Signal::KILL);
    }

    /// Starts the killed server again, once the old one's backends are gone. Returns how long that took.
    pub async fn restart(&self) -> Duration {
        let begun = Instant::now();
        // The first start after a kill may be refused: the dead server's sessions are still leaving.
        let mut started = None;
        let is_up = wait_until(Duration::from_secs(30), async || started.insert(self.embedded.start().await).is_ok());
        assert!(is_up.await, "a killed server does not start again: {started:?}");
        let running = started.and_then(Result::ok).expect("a running server");
        let mut watching = self.watchdog.lock().unwrap_or_else(PoisonError::into_inner);
        let old = watching.replace(watchdog(running.postmaster_pid, &self.dir));
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
        if let Some(mut old) = old {
            let _ = old.kill(); // before it sees its pipe close: it would remove the folder
            let _ = old.wait();
        }
        begun.elapsed()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut watchdog) = self.watchdog.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(watchdog.stdin.take());
            let _ = watchdog.wait();
        }
    }
}

/// A migrated database, and how to reach it.
#[derive(Clone, Debug)]
pub struct Database {
    pub name: String,
    pub admin: ConnectTo,
    pub login: ConnectTo,
    /// With the password, for child processes.
    pub url: String,
}

impl Database {
    async fn migrate(&self) -> store::Result<()> {
        let mut names: Vec<&str> = lanes::ALL.iter().map(|lane| lane.name).collect();
        names.push(effects::NAME);
        names.push("remember_activity"); // whose messages the triggers of `activities` send
        migrate::run(&self.admin, self.login.login(), &names).await?;
        effects::create_tables(&self.admin, true).await
    }

    /// The same database through a proxy's port.
    pub fn url_through(&self, port: u16) -> String {
        let (before, rest) = self.url.rsplit_once(':').expect("a port");
        let (_, name) = rest.split_once('/').expect("a database");
        format!("{before}:{port}/{name}")
    }
}

/// A fresh database of the shared server, cloned from a migrated template ahead of need.
pub fn cloned() -> Database {
    static CLONES: OnceLock<Mutex<Receiver<Database>>> = OnceLock::new();
    let clones = CLONES.get_or_init(|| {
        let (send, receive) = sync_channel(3);
        std::thread::Builder::new().name("cloner".into()).spawn(move || keep_cloning(&send)).expect("a thread");
        Mutex::new(receive)
    });
    clones.lock().unwrap_or_else(PoisonError::into_inner).recv().expect("the shared server; its error is above")
}

fn keep_cloning(send: &SyncSender<Database>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let settings = ["shared_buffers=128MB", "fsync=off", "full_page_writes=off", "max_connections=500"];
        let cluster = Cluster::start(&bin_dir("PG_BIN_DIR"), &settings).await;
        cluster.database(TEMPLATE).await;
        for n in 0.. {
            let name = format!("t{n}");
            let admin = cluster.running().admin.database("postgres");
            migrate::create_database(&admin, &name, Some(TEMPLATE)).await.expect("a clone");
            if send.send(cluster.existing(&name)).is_err() {
                return;
            }
        }
    });
}

pub fn bin_dir(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set; run the tests by ./test")).into()
}

fn watchdog(postmaster_pid: u32, dir: &Path) -> Child {
    let script = r#"trap '' INT TERM; cat > /dev/null; kill -QUIT "$1" 2> /dev/null
        for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" 2> /dev/null || break; sleep 0.1; done; rm -rf "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "watchdog", &postmaster_pid.to_string()]).arg(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh")
}

/// The folder for blobs of this process's tests and workers. It is removed when this process ends, however it ends.
pub fn blob_url() -> &'static str {
    static FOLDER: OnceLock<(String, Child)> = OnceLock::new();
    let (url, _) = FOLDER.get_or_init(|| {
        let dir = std::env::temp_dir().join(format!("tributary-blobs-{}", uuid::Uuid::now_v7().simple()));
        let mut command = Command::new("sh");
        command.args(["-c", r#"trap '' INT TERM; cat > /dev/null; rm -rf "$1""#, "watchdog"]).arg(&dir);
        let watchdog = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh");
        (format!("file://{}", dir.display()), watchdog)
    });
    url
}

pub fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Kills a child that leads a process group of its own, and every process of that group.
pub fn kill_group(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}
