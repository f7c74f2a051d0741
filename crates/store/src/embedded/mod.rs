//! The embedded PostgreSQL server in its data folder.
//!
//! ```text
//! <data>/postgres/            the cluster (PGDATA)
//! <data>/run/                 its socket, and its log postgres.log
//! <data>/postgres.port        its loopback port
//! <data>/postgres.password    password of the superuser, 0600
//! <data>/login.password       password of the ordinary role that our pool uses, 0600
//! <data>/server.lock          held while the server is created or started
//! <data>/users.lock           shared by all processes that use the server
//! <data>/restore.unfinished   exists while a restore writes here
//! <data>/restore.renew        exists after a restore, until the database was renewed
//! ```
//!
//! If we are root, the server runs as another user, who owns `postgres/` and `run/` and nothing else. Root never writes where that user
//! could have planted a link.
//!
//! A server that already runs on the folder is adopted. After a crash `pg_ctl` is tried repeatedly: PostgreSQL refuses to start as long
//! as an orphaned backend of the dead server holds the shared memory.

mod advice;
mod backup;
mod files;
mod manifest;
mod wal;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Secret;
use rustix::fs::{FlockOperation, flock};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::process::Command;

use crate::connect::ConnectTo;
use crate::{Error, Result, migrate};

pub use advice::Telling;
pub use backup::Restore;
pub use files::{User, is_root};
pub use wal::{Receiver, Until, WAL, check_wal};

/// The role and the database of our pool.
pub const LOGIN: &str = "tributary";
pub const DATABASE: &str = "tributary";
const SUPERUSER: &str = "postgres";
/// The time limit of a start, including the end of a crashed server's backends and recovery.
const START_LIMIT: Duration = Duration::from_secs(600);

/// How often a server may end without a reason of its own, because something kills it, before that is reported.
const MOST_ENDED: u32 = 20;

/// A data folder, and the PostgreSQL programs for it.
#[derive(Clone, Debug)]
pub struct Embedded {
    data_dir: PathBuf,
    bin_dir: PathBuf,
    user: Option<User>,
    /// Additional settings, for tests: `fsync=off`.
    extra: Vec<String>,
}

/// A running server.
#[derive(Clone, Debug)]
pub struct Running {
    /// May create roles, databases and extensions; only for set-up.
    pub admin: ConnectTo,
    /// The ordinary role of our pool.
    pub login: ConnectTo,
    /// The server was already running, so the process that started it stops it.
    pub was_adopted: bool,
    pub postmaster_pid: u32,
    pub port: u16,
}

/// This process's share of the lock on an embedded server.
#[derive(Clone, Debug)]
pub struct Users(Arc<File>);

impl Users {
    /// Whether no other process uses the server. None can join while the lock is held exclusively.
    pub fn are_only_us(&self) -> bool {
        flock(&*self.0, FlockOperation::NonBlockingLockExclusive).is_ok()
    }
}

/// Whether a session was refused for a reason that does not pass by itself, though a server may say so in passing: a file that is missing.
fn is_lasting(error: &Error) -> bool {
    error.code().is_some_and(|code| code == "58P01")
}

/// The port that a server's pid file names, in its fourth line.
pub(crate) fn port_in(pid_file: &str) -> Option<u16> {
    pid_file.lines().nth(3)?.trim().parse().ok()
}

impl Embedded {
    pub fn new(data_dir: &Path, bin_dir: &Path) -> Result<Self> {
        if !bin_dir.join("postgres").exists() {
            let what = format!(
                "no PostgreSQL server in {}; start with `./tributary`, which fetches it, or set PG_BIN_DIR or DATABASE_URL",
                bin_dir.display()
            );
            return Err(Error::Refused { what });
        }
        let data_dir = std::path::absolute(data_dir).map_err(|error| files::told(data_dir, &error))?;
        Ok(Self { user: files::server_user(&data_dir)?, data_dir, bin_dir: bin_dir.to_owned(), extra: Vec::new() })
    }

    /// Adds settings for postgresql.conf, for when the cluster is created.
    pub fn with_settings(mut self, lines: &[&str]) -> Self {
        self.extra = lines.iter().map(|line| (*line).to_owned()).collect();
        self
    }

    pub fn cluster_dir(&self) -> PathBuf {
        self.data_dir.join("postgres")
    }

    fn run_dir(&self) -> PathBuf {
        self.data_dir.join("run")
    }

    pub fn log_file(&self) -> PathBuf {
        self.run_dir().join("postgres.log")
    }

    /// Starts or adopts the server, and creates the cluster on first use. Only one process does so at a time; others wait, then adopt it.
    pub async fn start(&self) -> Result<Running> {
        files::make_data_folder(&self.data_dir, self.user.as_ref())?;
        files::make_folder(&self.run_dir(), self.user.as_ref())?;
        let _lock = files::lock(&self.data_dir.join("server.lock")).await?;
        self.check_restored()?;
        if !self.has_cluster() {
            self.init().await?;
        }
        let major = self.check_version().await?;
        let deadline = Instant::now() + START_LIMIT;
        let mut launched = None;
        let mut telling = Telling::new(Instant::now());
        loop {
            let pid = match self.running_pid().await? {
                Some(pid) => pid,
                None => {
                    self.add_settings(major);
                    let pid = self.launch(deadline).await?;
                    launched = Some(pid);
                    pid
                }
            };
            // One that we launched in an earlier round is still ours.
            let running = self.running(pid, launched != Some(pid))?;
            match self.ensure_login(&running).await {
                Ok(()) => return Ok(running),
                // It was stopping, or is recovering from a crash: look again.
                Err(error) if error.is_passing() && !is_lasting(&error) && Instant::now() < deadline => {
                    let now = Instant::now();
                    if telling.needs_advice(now) && telling.is_due(now) {
                        let (said, log) = (error.told(), self.log_file());
                        let advice = self.advice_by_log(&said);
                        tracing::warn!(
                            "PostgreSQL does not let us in yet, will ask again: {said} (log: {}); {advice}",
                            log.display()
                        );
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) if is_lasting(&error) => {
                    if launched == Some(pid)
                        && let Err(left) = self.stop().await
                    {
                        tracing::warn!("the embedded PostgreSQL was left running: {left}");
                    }
                    let said = error.told();
                    let what = format!(
                        "PostgreSQL lets nobody in: {said} (log: {})\n\nhint: {}",
                        self.log_file().display(),
                        self.advice(&said)
                    );
                    return Err(Error::Refused { what });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Registers this process as a user of the server until the returned value is dropped. Meanwhile no other process stops the server.
    pub fn join(&self) -> Result<Users> {
        let path = self.data_dir.join("users.lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| files::told(&path, &error))?;
        flock(&file, FlockOperation::NonBlockingLockShared).map_err(|error| files::told(&path, &error.into()))?;
        Ok(Users(Arc::new(file)))
    }

    /// Returns the server on this folder if it runs.
    pub async fn find(&self) -> Result<Option<Running>> {
        match self.running_pid().await? {
            Some(pid) => Ok(Some(self.running(pid, true)?)),
            None => Ok(None),
        }
    }

    /// Stops the server: sessions end, and everything committed is on disk. Does nothing if it does not run.
    pub async fn stop(&self) -> Result<bool> {
        if self.running_pid().await?.is_none() {
            return Ok(false);
        }
        let stopped = self
            .program("pg_ctl")
            .args(["stop", "-w", "-t", "60", "-m", "fast", "-D"])
            .arg(self.cluster_dir())
            .output()
            .await;
        match stopped {
            Ok(output) if output.status.success() => Ok(true),
            Ok(output) => Err(self.failed("stop", &output)),
            Err(error) => Err(files::told(&self.bin_dir.join("pg_ctl"), &error)),
        }
    }

    /// Whether the postmaster is alive. Cheap: it only asks the kernel.
    pub fn is_alive(running: &Running) -> bool {
        files::is_alive(running.postmaster_pid)
    }

    /// Returns the pid of this folder's live postmaster. A pid file that a crash left behind does not count.
    async fn running_pid(&self) -> Result<Option<u32>> {
        if !self.cluster_dir().join("postmaster.pid").exists() {
            return Ok(None);
        }
        let status = self.program("pg_ctl").args(["status", "-D"]).arg(self.cluster_dir()).output().await;
        let status = status.map_err(|error| files::told(&self.bin_dir.join("pg_ctl"), &error))?;
        if !status.status.success() {
            return Ok(None);
        }
        let pid_file = std::fs::read_to_string(self.cluster_dir().join("postmaster.pid")).unwrap_or_default();
        let pid = pid_file.lines().next().and_then(|line| line.trim().parse().ok());
        Ok(pid.filter(|pid| files::is_alive(*pid) && !files::is_other_program(*pid, "postgres")))
    }

    async fn init(&self) -> Result<()> {
        let cluster = self.cluster_dir();
        if cluster.exists() {
            let what =
                format!("{} exists and is no PostgreSQL cluster; point DATA_DIR at another folder", cluster.display());
            return Err(Error::Refused { what });
        }
        let major = self.server_major().await?;
        tracing::info!("making a PostgreSQL {major} cluster in {}", cluster.display());
        // Created under another name and renamed when complete, so that a cluster exists or does not. Leftovers of a crash are removed.
        let aside = self.data_dir.join("postgres.new");
        let _ = std::fs::remove_dir_all(&aside);
        files::make_folder(&aside, self.user.as_ref())?;
        // The server's user must be able to read the password, only during this call.
        let password = files::ensure_password(&self.data_dir.join("postgres.password"))?;
        let pwfile = self.run_dir().join("initdb.password");
        let _ = std::fs::remove_file(&pwfile);
        files::write_for(&pwfile, password.reveal(), self.user.as_ref())?;
        let mut initdb = self.program("initdb");
        initdb.args(["--username", SUPERUSER, "--auth", "scram-sha-256", "--data-checksums", "--encoding", "UTF8"]);
        initdb.arg("--pwfile").arg(&pwfile);
        if major >= 17 {
            initdb.args(["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"]);
        } else {
            initdb.args(["--locale", "C"]);
        }
        for setting in files::settings(major, &self.extra) {
            initdb.arg("--set").arg(setting);
        }
        let output = initdb.arg("-D").arg(&aside).output().await;
        let _ = std::fs::remove_file(&pwfile);
        let output = output.map_err(|error| files::told(&aside, &error))?;
        if !output.status.success() {
            return Err(self.failed("make the cluster (initdb)", &output));
        }
        std::fs::rename(&aside, &cluster).map_err(|error| files::told(&cluster, &error))
    }

    /// Returns the major version of the cluster and of the programs.
    async fn check_version(&self) -> Result<u32> {
        let file = self.cluster_dir().join("PG_VERSION");
        let found = std::fs::read_to_string(&file).map_err(|error| files::told(&file, &error))?;
        let (found, ours) = (found.trim(), self.server_major().await?);
        if found == ours.to_string() {
            return Ok(ours);
        }
        let what = format!(
            "the data folder {} was made by PostgreSQL {found}, and this is PostgreSQL {ours}; \
             point DATA_DIR at another folder, or PG_BIN_DIR at a PostgreSQL {found} to go on using it",
            self.data_dir.display()
        );
        Err(Error::Refused { what })
    }

    /// Gives a cluster of an older binary the settings that it lacks. It runs without them too.
    fn add_settings(&self, major: u32) {
        match files::add_settings(&self.cluster_dir(), major, self.user.as_ref()) {
            Ok(added) if added.is_empty() => {}
            Ok(added) => tracing::info!("added to postgresql.conf, which did not name them: {}", added.join(", ")),
            Err(error) => tracing::warn!("settings that the server needs after a crash could not be added: {error}"),
        }
    }

    async fn server_major(&self) -> Result<u32> {
        let postgres = self.bin_dir.join("postgres");
        let output =
            self.program("postgres").arg("--version").output().await.map_err(|error| files::told(&postgres, &error))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let major = text
            .split_whitespace()
            .last()
            .and_then(|version| version.split('.').next())
            .and_then(|major| major.parse().ok());
        major.ok_or_else(|| self.failed("tell its version", &output))
    }

    /// Starts the server on its recorded port, or on another if that is taken. It is retried only while the obstacle can pass by itself:
    /// the shared memory of a crashed server's last sessions, or a kill while it recovered.
    async fn launch(&self, deadline: Instant) -> Result<u32> {
        self.remove_stale_pid_file();
        let mut n_ended = 0;
        loop {
            let logged_before = files::size(&self.log_file());
            let port = self.free_port()?;
            let socket = self.socket_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
            let listen = format!("-p {port} -k '{}'", socket.replace('\'', "'\\''")); // pg_ctl passes it to a shell
            let mut start = self.program("pg_ctl");
            start.args(["start", "-w", "-s", "-t", "60", "-D"]).arg(self.cluster_dir()).arg("-l").arg(self.log_file());
            // The server inherits pg_ctl's output pipes and would keep them open, so its output goes to the log file.
            start.arg("-o").arg(listen).stdout(Stdio::null()).stderr(Stdio::null());
            let started = start.status().await.map_err(|error| files::told(&self.bin_dir.join("pg_ctl"), &error))?;
            // It is alive, though perhaps still recovering. A connection waits for that.
            if let Some(pid) = self.running_pid().await? {
                files::write(&self.data_dir.join("postgres.port"), &port.to_string())?;
                return Ok(pid);
            }
            let said = files::last_lines(&self.log_file(), 5);
            n_ended += 1;
            let logged = files::text_after(&self.log_file(), logged_before);
            let has_reason = files::names_a_reason(&logged);
            let passes = (!has_reason && n_ended <= MOST_ENDED)
                || ["still in use", "already exists", "could not bind"].iter().any(|words| said.contains(words));
            if started.success() || (passes && Instant::now() < deadline) {
                if !has_reason && n_ended > 1 {
                    tracing::warn!(
                        "PostgreSQL ended while it started, for no reason of its own: starting it again ({n_ended})"
                    );
                }
                tokio::time::sleep(Duration::from_millis(250)).await;
                continue;
            }
            let what = format!(
                "PostgreSQL did not start; its last words: {said} (log: {})\n\nhint: {}",
                self.log_file().display(),
                self.advice(&logged)
            );
            return Err(Error::Refused { what });
        }
    }

    /// Removes a pid file that a machine crash left behind. Its pid may belong to another program by now, and PostgreSQL would refuse to
    /// start.
    fn remove_stale_pid_file(&self) {
        let path = self.cluster_dir().join("postmaster.pid");
        let pid = std::fs::read_to_string(&path).ok().and_then(|text| text.lines().next()?.trim().parse().ok());
        if pid.is_some_and(|pid| files::is_other_program(pid, "postgres")) {
            let _ = std::fs::remove_file(&path);
        }
    }

    fn free_port(&self) -> Result<u16> {
        let recorded =
            std::fs::read_to_string(self.data_dir.join("postgres.port")).ok().and_then(|text| text.trim().parse().ok());
        let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        if let Some(port) = recorded.filter(|port| is_free(*port)) {
            return Ok(port);
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Ok(free.map_err(|error| files::told(Path::new("127.0.0.1"), &error))?.port())
    }

    /// The socket is in the run folder, unless that path is longer than a socket path may be (107 bytes).
    fn socket_dir(&self) -> Option<PathBuf> {
        let fits = self.run_dir().join(".s.PGSQL.65535").as_os_str().len() < 104;
        fits.then(|| self.run_dir())
    }

    fn running(&self, postmaster_pid: u32, was_adopted: bool) -> Result<Running> {
        let pid_file = self.cluster_dir().join("postmaster.pid");
        // A server that has just ended has no file. Then nobody can connect, and our caller looks again.
        let port = std::fs::read_to_string(&pid_file).ok().and_then(|text| port_in(&text)).unwrap_or(0);
        let to = |user: &str, file: &str| -> Result<ConnectTo> {
            let password = files::ensure_password(&self.data_dir.join(file))?;
            let mut options = PgConnectOptions::new_without_pgpass()
                .host("127.0.0.1")
                .port(port)
                .username(user)
                .password(password.reveal());
            if let Some(dir) = self.socket_dir() {
                options = options.socket(dir);
            }
            Ok(ConnectTo::embedded(options.database(DATABASE), pid_file.clone()))
        };
        let (admin, login) = (to(SUPERUSER, "postgres.password")?, to(LOGIN, "login.password")?);
        Ok(Running { admin, login, was_adopted, postmaster_pid, port })
    }

    /// Creates our database and the ordinary role that uses it.
    async fn ensure_login(&self, running: &Running) -> Result<()> {
        let password = files::ensure_password(&self.data_dir.join("login.password"))?;
        let postgres = running.admin.database("postgres");
        let mut admin = postgres.try_connect("tributary start").await?;
        let (has_login, has_database): (bool, bool) = sqlx::query_as(
            "select exists (select from pg_roles where rolname = $1), exists (select from pg_database where datname = $2)",
        )
        .bind(LOGIN)
        .bind(DATABASE)
        .fetch_one(&mut admin)
        .await?;
        if !has_login {
            // We generated the password from letters and digits, so it needs no quoting. The statement appears in no log: log_statement
            // is off, and it cannot fail on its syntax.
            let sql = format!("create role {LOGIN} login noinherit password '{}'", password.reveal());
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await?;
        }
        admin.close().await?;
        if has_database {
            return Ok(());
        }
        migrate::create_database(&postgres, DATABASE, None).await
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin_dir.join(name));
        command.current_dir("/");
        command.env("LC_ALL", "C").stdin(Stdio::null()).kill_on_drop(false);
        for variable in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGOPTIONS"] {
            command.env_remove(variable);
        }
        if let Some(user) = self.user.as_ref() {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }

    fn failed(&self, doing: &str, output: &std::process::Output) -> Error {
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).trim().replace('\n', " · ");
        let (log, advice) = (self.log_file(), self.advice(&said));
        Error::Refused {
            what: format!("PostgreSQL could not {doing}: {said} (log: {})\n\nhint: {advice}", log.display()),
        }
    }

    /// Returns a secret file of this folder, for tests that connect in another way.
    pub fn login_password(&self) -> Result<Secret> {
        files::ensure_password(&self.data_dir.join("login.password"))
    }
}
