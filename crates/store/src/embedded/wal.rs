//! The WAL kept beside a backup, and the way back to a moment in it.
//!
//! Each folder has a replication slot of its own, by which the server keeps WAL for it while no receiver runs. A slot that has fallen too far behind is
//! lost: the server has removed WAL that the folder lacks, so the folder ends there.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::backup::{copy_folder, entries, hand_over};
use super::{Embedded, Restore, Running, START_LIMIT, SUPERUSER, files};
use crate::{Error, Result, vault};

/// The folder of the WAL in a backup.
pub const WAL: &str = "wal";
/// The same in a cluster that is being recovered.
const KEPT: &str = "wal_kept";
/// The most WAL that the server keeps for a receiver that is away. After more than that, a new backup is needed.
const MOST_KEPT: &str = "8GB";
/// How long the end of a backup waits for the last of the WAL, or for the end of a receiver.
const RECEIVED_LIMIT: Duration = Duration::from_secs(10);
/// The beginning of every slot's name.
const SLOTS: &str = "tributary_backup_";
/// The lock in a backup's folder, held by the program that keeps its WAL.
const LOCK: &str = "wal.lock";
/// SQLSTATE of a slot that a receiver still uses.
const IN_USE: &str = "55006";
/// How often a recovery says how far it is.
const SAY_EVERY: Duration = Duration::from_secs(5);
/// A segment that was not full yet when the receiver ended.
const PARTIAL: &str = "partial";

/// Whether a backup has WAL, by which it can go to a moment.
pub fn check_wal(dir: &Path) -> Result<()> {
    if dir.join(WAL).exists() {
        return Ok(());
    }
    Err(Error::Refused { what: format!("{} has no WAL: it was not made with `backup --wal`", dir.display()) })
}

/// The moment to which a database is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The last moment that the WAL has.
    Latest,
    At(chrono::DateTime<chrono::Utc>),
}

impl std::str::FromStr for Until {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let at = chrono::DateTime::parse_from_rfc3339(text);
        at.map(|at| Self::At(at.with_timezone(&chrono::Utc)))
            .map_err(|_| "a time with its zone, such as 2026-11-16T18:30:00Z, or `latest`".into())
    }
}

/// A process that receives the WAL. Killed when it is dropped; what it has written stays.
pub struct Receiver {
    child: Child,
    passfile: PathBuf,
    port: u16,
    _lock: File,
}

impl Receiver {
    /// Waits until it ends by itself, which it only does when it cannot go on.
    pub async fn ended(&mut self) -> Error {
        let status = self.child.wait().await;
        let why = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Error::Refused {
            what: format!(
                "the WAL is no longer received ({why}); run this again, and if that fails, take a new backup"
            ),
        }
    }

    /// Whether the server listens elsewhere than when this was started. It may, after a crash.
    pub fn is_misled(&self, running: &Running) -> bool {
        self.port != running.admin.port()
    }

    /// Ends it in order: what has arrived is on disk.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap_or(0))) {
            let _ = kill_process(pid, Signal::INT);
        }
        self.child.wait().await.map_err(|error| files::told(Path::new("pg_receivewal"), &error))?;
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.passfile);
    }
}

impl Embedded {
    /// Makes the server keep all WAL from now on until a receiver has it. Before the base backup, so that nothing lies between the two. Slots of
    /// backups that have fallen too far behind are dropped: they keep nothing, and the server has room for ten.
    pub async fn keep_wal(&self, running: &Running, dir: &Path) -> Result<()> {
        let mut admin = running.admin.database("postgres").connect("tributary backup").await?;
        sqlx::query(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots
             where starts_with(slot_name::text, $1) and not active and wal_status = 'lost'",
        )
        .bind(SLOTS)
        .execute(&mut admin)
        .await?;
        let bound = format!("alter system set max_slot_wal_keep_size = '{MOST_KEPT}'"); // or an abandoned backup fills the disk
        sqlx::query(sqlx::AssertSqlSafe(bound)).execute(&mut admin).await?;
        sqlx::query("select pg_reload_conf()").execute(&mut admin).await?;
        sqlx::query(
            "select pg_create_physical_replication_slot($1, true) where not exists (select from pg_replication_slots where slot_name = $1)",
        )
        .bind(slot(dir))
        .execute(&mut admin)
        .await?;
        Ok(())
    }

    /// Makes the folder of the WAL. A backup that has one can go on, also if its first receiver never started.
    pub fn make_wal_folder(&self, dir: &Path) -> Result<()> {
        files::make_folder(&dir.join(WAL), self.user.as_ref())
    }

    /// Whether the WAL of this backup can go on. Refused: the server has not kept what the folder lacks.
    pub async fn check_kept(&self, running: &Running, dir: &Path) -> Result<()> {
        let mut admin = running.admin.database("postgres").connect("tributary backup").await?;
        let status: Option<Option<String>> =
            sqlx::query_scalar("select wal_status from pg_replication_slots where slot_name = $1")
                .bind(slot(dir))
                .fetch_optional(&mut admin)
                .await?;
        let why = match status {
            None => "the server does not keep WAL for it".to_owned(),
            Some(Some(status)) if status == "lost" => {
                format!("it lacks more than the {MOST_KEPT} of WAL that are kept")
            }
            Some(_) => return Ok(()),
        };
        let what = format!("{} cannot go on: {why}; take a new backup, into another folder", dir.display());
        Err(Error::Refused { what })
    }

    /// Receives the WAL into the backup's folder, as it is written. A receiver that a killed program left behind is ended first.
    pub async fn receive_wal(&self, running: &Running, dir: &Path) -> Result<Receiver> {
        let (into, name, port) = (dir.join(WAL), slot(dir), running.admin.port());
        let lock = lock_folder(dir)?;
        end_orphans(&name).await;
        files::make_folder(&into, self.user.as_ref())?;
        let passfile = self.passfile(&name)?;
        let mut receive = self.program("pg_receivewal");
        receive.args([
            "--no-password",
            "--synchronous",
            "--slot",
            &name,
            "--username",
            SUPERUSER,
            "--port",
            &port.to_string(),
            "--host",
        ]);
        receive.arg(self.socket_dir().unwrap_or_else(|| "127.0.0.1".into()));
        receive.arg("--directory").arg(into).env("PGPASSFILE", &passfile);
        // It says on our stderr why it waits or ends. In a group of its own: Ctrl-C is for us, and we end it in order.
        let child = receive.stdout(Stdio::null()).process_group(0).kill_on_drop(true).spawn();
        match child {
            Ok(child) => Ok(Receiver { child, passfile, port, _lock: lock }),
            Err(error) => {
                let _ = std::fs::remove_file(&passfile);
                Err(files::told(&self.bin_dir.join("pg_receivewal"), &error))
            }
        }
    }

    /// Waits until the receiver has everything that was committed before this call, for a while: a server that was stopped has nothing to send.
    pub async fn wait_received(&self, running: &Running, dir: &Path) -> Result<()> {
        let mut admin = running.admin.database("postgres").connect("tributary backup").await?;
        let committed: String =
            sqlx::query_scalar("select pg_current_wal_flush_lsn()::text").fetch_one(&mut admin).await?;
        let deadline = Instant::now() + RECEIVED_LIMIT;
        loop {
            let is_there: bool = sqlx::query_scalar(
                "select exists (select from pg_replication_slots where slot_name = $1 and restart_lsn >= $2::pg_lsn)",
            )
            .bind(slot(dir))
            .bind(&committed)
            .fetch_one(&mut admin)
            .await?;
            if is_there {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::TimedOut);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Ends the keeping of WAL for a folder, which may be gone. `false`: none was kept.
    pub async fn end_wal(&self, running: &Running, dir: &Path) -> Result<bool> {
        let lock = if dir.exists() { Some(lock_folder(dir)?) } else { None };
        if lock.is_some() {
            end_orphans(&slot(dir)).await;
        }
        let deadline = Instant::now() + RECEIVED_LIMIT;
        loop {
            match self.drop_slot(running, dir).await {
                Err(error) if error.code().as_deref() != Some(IN_USE) => return Err(error),
                // The server notices a moment later that a receiver has ended.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(100)).await,
                Err(_) => return Err(kept_by_another(dir)),
                dropped => return dropped,
            }
        }
    }

    /// Drops the slot of a folder. `false`: there was none.
    pub async fn drop_slot(&self, running: &Running, dir: &Path) -> Result<bool> {
        let mut admin = running.admin.database("postgres").connect("tributary backup").await?;
        let sql = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = $1";
        Ok(sqlx::query(sql).bind(slot(dir)).execute(&mut admin).await?.rows_affected() == 1)
    }
}

/// The name under which the server keeps WAL for a backup.
fn slot(dir: &Path) -> String {
    use sha2::{Digest as _, Sha256};
    let hash = Sha256::digest(dir.as_os_str().as_encoded_bytes());
    format!("{SLOTS}{}", domain::hex::encode(&hash[..8]))
}

fn kept_by_another(dir: &Path) -> Error {
    Error::Refused {
        what: format!("another `tributary backup --wal` keeps the WAL of {}; stop it first", dir.display()),
    }
}

/// Locks a backup's folder, so that one program at a time keeps its WAL.
fn lock_folder(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| files::told(&path, &error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(kept_by_another(dir)),
        Err(error) => Err(files::told(&path, &error.into())),
    }
}

/// Ends the receivers of a slot whose program was killed. The caller has the folder's lock, so they are nobody's.
async fn end_orphans(slot: &str) {
    let deadline = Instant::now() + RECEIVED_LIMIT;
    let mut signal = Signal::INT;
    loop {
        let orphans = receivers_of(slot);
        if orphans.is_empty() {
            return;
        }
        for pid in orphans {
            let _ = kill_process(pid, signal);
        }
        if signal == Signal::KILL {
            return;
        }
        if Instant::now() > deadline {
            signal = Signal::KILL;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The processes that receive for a slot, by their command lines. Where the system does not show those, none.
fn receivers_of(slot: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let receiver = |entry: std::fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0);
        let is_receiver = words.next()?.ends_with(b"pg_receivewal") && words.any(|word| word == slot.as_bytes());
        is_receiver.then_some(pid)
    };
    entries.flatten().filter_map(receiver).collect()
}

impl Restore<'_> {
    /// Brings the restored cluster forward to a moment, by the WAL that was kept beside its backup. The server runs for this, and is stopped at its end.
    /// It takes as long as there is WAL; `say` hears how far it is. Returns the ids of the master keys with which its secrets are sealed: a rotation may
    /// lie between the copy and the moment.
    pub async fn recover(&self, dir: &Path, until: Until, say: impl Fn(&str)) -> Result<Vec<String>> {
        let embedded = self.embedded;
        let cluster = embedded.cluster_dir();
        let kept = cluster.join(KEPT);
        copy_folder(&dir.join(WAL), &kept)?;
        for (path, _) in entries(&kept)? {
            if path.extension().is_some_and(|extension| extension == PARTIAL) {
                std::fs::rename(&path, path.with_extension("")).map_err(|error| files::told(&path, &error))?;
            }
        }
        if let Some(user) = embedded.user.as_ref() {
            hand_over(&kept, user)?;
        }
        let settings = cluster.join("postgresql.auto.conf");
        let usual = std::fs::read_to_string(&settings).map_err(|error| files::told(&settings, &error))?;
        let target = match until {
            Until::Latest => String::new(),
            Until::At(at) => format!("recovery_target_time = '{}'\n", at.to_rfc3339()),
        };
        let recovery = format!(
            "restore_command = 'cp \"{KEPT}/%f\" \"%p\"'\nrecovery_target_action = 'promote'\nrecovery_target_inclusive = off\n{target}"
        );
        files::replace_for(&settings, &format!("{usual}{recovery}"), embedded.user.as_ref())?;
        files::replace_for(&cluster.join("recovery.signal"), "", embedded.user.as_ref())?;
        files::make_folder(&embedded.run_dir(), embedded.user.as_ref())?;
        let pid = embedded.launch(Instant::now() + START_LIMIT).await?;
        let recovered = self.recovered(pid, say).await;
        embedded.stop().await?;
        let key_ids = recovered?;
        files::replace_for(&settings, &usual, embedded.user.as_ref())?;
        std::fs::remove_dir_all(&kept).map_err(|error| files::told(&kept, &error))?;
        Ok(key_ids)
    }

    /// Waits until the server takes writes, for as long as it lives, and reads which master keys are in use.
    async fn recovered(&self, pid: u32, say: impl Fn(&str)) -> Result<Vec<String>> {
        let running = self.embedded.running(pid, false)?;
        let mut said_at = Instant::now();
        loop {
            if !Embedded::is_alive(&running) {
                let said = files::last_lines(&self.embedded.log_file(), 5);
                return Err(Error::Refused { what: format!("PostgreSQL could not go to that moment: {said}") });
            }
            let reached = match progress(&running).await {
                Ok(Progress::Over(key_ids)) => return Ok(key_ids),
                Ok(Progress::Paused) => {
                    let said = files::last_lines(&self.embedded.log_file(), 5);
                    return Err(Error::Refused {
                        what: format!("PostgreSQL needs other settings for this WAL: {said}"),
                    });
                }
                Ok(Progress::At(at)) => at,
                Err(error) if !error.is_passing() => return Err(error),
                Err(_) => None, // it takes no sessions before the copy is consistent
            };
            if said_at.elapsed() > SAY_EVERY {
                say(&reached.map_or_else(|| "reading the WAL".to_owned(), |at| format!("at {}", at.to_rfc3339())));
                said_at = Instant::now();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// How far a recovery is.
enum Progress {
    /// The time of the last transaction.
    At(Option<chrono::DateTime<chrono::Utc>>),
    /// It waits for a setting that the server had when the WAL was written, such as more connections.
    Paused,
    /// It is over, and these master keys are in use.
    Over(Vec<String>),
}

async fn progress(running: &Running) -> Result<Progress> {
    let mut admin = running.admin.connect("tributary backup").await?;
    let (is_going_on, is_paused, at): (bool, bool, Option<chrono::DateTime<chrono::Utc>>) = sqlx::query_as(
        "select pg_is_in_recovery(), pg_is_in_recovery() and pg_get_wal_replay_pause_state() = 'paused', pg_last_xact_replay_timestamp()",
    )
    .fetch_one(&mut admin)
    .await?;
    if is_paused {
        return Ok(Progress::Paused);
    }
    if is_going_on {
        return Ok(Progress::At(at));
    }
    Ok(Progress::Over(vault::keys_in_use(&mut admin).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_zone() {
        assert_eq!("latest".parse(), Ok(Until::Latest));
        assert!(
            matches!("2026-11-16T18:30:00+01:00".parse(), Ok(Until::At(at)) if at.to_rfc3339() == "2026-11-16T17:30:00+00:00")
        );
        for odd in ["", "yesterday", "2026-11-16", "2026-11-16T18:30:00"] {
            assert!(odd.parse::<Until>().is_err(), "{odd}");
        }
    }
}
