//! Copies the cluster while it runs, and restores the copy.
//!
//! A restore is marked in the data folder from its first to its last step, so no server starts on a partial one, and another restore
//! starts over.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{Embedded, Running, SUPERUSER, User, files, manifest};
use crate::{Error, Result, secret_file};

/// The marker file in a data folder that a restore writes to.
const UNFINISHED: &str = "restore.unfinished";
/// The marker file in a data folder that was restored, until what was given out before counts for nothing ([`crate::restored`]).
const TO_RENEW: &str = "restore.renew";
const PASSWORDS: [&str; 2] = ["postgres.password", "login.password"];
/// Files that an empty data folder may contain: locks, logs, and the key that a restored database may need.
const NO_DATA: [&str; 5] = ["up.lock", "server.lock", "users.lock", "run", "master.key"];
/// The interval at which a long copy reports its progress.
const SAY_EVERY: Duration = Duration::from_secs(5);

impl Embedded {
    pub fn has_cluster(&self) -> bool {
        self.cluster_dir().join("PG_VERSION").exists()
    }

    /// The server's major version, as its folders name it.
    pub async fn version(&self) -> Result<String> {
        Ok(self.server_major().await?.to_string())
    }

    /// Copies the running cluster into `<dir>/postgres` and its passwords into `dir`, and checks the copy against the server's manifest.
    pub async fn back_up(&self, running: &Running, dir: &Path, say: impl Fn(&str)) -> Result<()> {
        files::make_data_folder(dir, self.user.as_ref())?;
        let cluster = dir.join("postgres");
        files::make_folder(&cluster, self.user.as_ref())?;
        let passfile = self.passfile(&uuid::Uuid::now_v7().simple().to_string())?;
        let copied = self.base_backup(running, &cluster, &passfile, say).await;
        let _ = std::fs::remove_file(&passfile);
        copied?;
        for name in PASSWORDS {
            copy_secret(&self.data_dir.join(name), &dir.join(name))?;
        }
        self.verify(&cluster).await
    }

    /// The server's user reads the password from its own folder, and only while a program runs that needs it. `whose` tells these programs apart.
    pub(super) fn passfile(&self, whose: &str) -> Result<PathBuf> {
        let passfile = self.run_dir().join(format!("backup.password.{whose}"));
        let password = files::ensure_password(&self.data_dir.join("postgres.password"))?;
        let quoted = password.reveal().replace('\\', "\\\\").replace(':', "\\:");
        files::replace_for(&passfile, &format!("*:*:*:{SUPERUSER}:{quoted}\n"), self.user.as_ref())?;
        Ok(passfile)
    }

    async fn base_backup(&self, running: &Running, into: &Path, passfile: &Path, say: impl Fn(&str)) -> Result<()> {
        let told = |error| files::told(&self.bin_dir.join("pg_basebackup"), &error);
        let mut copy = self.program("pg_basebackup");
        copy.args(["--wal-method", "stream", "--checkpoint", "fast", "--no-password", "--progress"]);
        copy.args(["--manifest-checksums", "SHA256"]); // for the check afterwards
        copy.args(["--username", SUPERUSER, "--port", &running.port.to_string(), "--host"]);
        copy.arg(self.socket_dir().unwrap_or_else(|| "127.0.0.1".into()));
        copy.arg("--pgdata").arg(into).env("PGPASSFILE", passfile);
        let mut child = copy.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().map_err(told)?;
        let (mut said, mut told_at) = (Vec::new(), Instant::now());
        if let Some(stderr) = child.stderr.take() {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if !line.contains(" kB (") {
                    said.push(line);
                } else if told_at.elapsed() > SAY_EVERY {
                    say(line.trim());
                    told_at = Instant::now();
                }
            }
        }
        if child.wait().await.map_err(told)?.success() {
            return Ok(());
        }
        Err(Error::Refused { what: format!("PostgreSQL could not copy the cluster: {}", said.join(" · ")) })
    }

    /// Checks every file of a copied cluster against its manifest, and the WAL that is needed for consistency.
    async fn verify(&self, cluster: &Path) -> Result<()> {
        let damaged = |what: String| Error::Refused { what: format!("the copy of the cluster is damaged: {what}") };
        let checked = {
            let cluster = cluster.to_owned();
            tokio::task::spawn_blocking(move || manifest::check(&cluster))
        };
        let ranges = checked.await.unwrap_or_else(|error| Err(error.to_string())).map_err(damaged)?;
        for range in ranges {
            let mut read = self.program("pg_waldump");
            read.args([
                "--quiet",
                "--timeline",
                &range.timeline.to_string(),
                "--start",
                &range.start,
                "--end",
                &range.end,
            ]);
            let output = read.arg("--path").arg(cluster.join("pg_wal")).output().await;
            let output = output.map_err(|error| files::told(&self.bin_dir.join("pg_waldump"), &error))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " · ");
                return Err(damaged(format!("its WAL cannot be read: {said}")));
            }
        }
        Ok(())
    }

    pub(super) fn check_restored(&self) -> Result<()> {
        if !self.data_dir.join(UNFINISHED).exists() {
            return Ok(());
        }
        let what = format!(
            "a restore into {} was not finished; run `tributary restore` again, or remove the folder",
            self.data_dir.display()
        );
        Err(Error::Refused { what })
    }

    /// Whether this folder was restored and its database was not renewed yet ([`crate::restored::renew`]). Until then nothing may work on it.
    pub fn is_to_renew(&self) -> bool {
        self.data_dir.join(TO_RENEW).exists()
    }

    /// Records that the restored database was renewed.
    pub fn was_renewed(&self) -> Result<()> {
        let marker = self.data_dir.join(TO_RENEW);
        absent_is_fine(std::fs::remove_file(&marker)).map_err(|error| files::told(&marker, &error))
    }

    /// Prepares an empty data folder for a restore. Leftovers of an unfinished restore are removed.
    pub async fn begin_restore(&self) -> Result<Restore<'_>> {
        if self.running_pid().await?.is_some() {
            let what = format!(
                "a server runs on {}; stop it with `tributary down`, and restore into an empty folder (DATA_DIR)",
                self.data_dir.display()
            );
            return Err(Error::Refused { what });
        }
        files::make_data_folder(&self.data_dir, self.user.as_ref())?;
        let lock = files::lock(&self.data_dir.join("server.lock")).await?;
        let marker = self.data_dir.join(UNFINISHED);
        if marker.exists() {
            for name in ["postgres.new", "postgres", "blobs"] {
                let left = self.data_dir.join(name);
                absent_is_fine(std::fs::remove_dir_all(&left)).map_err(|error| files::told(&left, &error))?;
            }
            for name in PASSWORDS {
                let left = self.data_dir.join(name);
                absent_is_fine(std::fs::remove_file(&left)).map_err(|error| files::told(&left, &error))?;
            }
        } else if let Some(name) = self.first_datum()? {
            let what = format!(
                "{} is not empty ({name} is there), and a restore replaces nothing; move it away, or set DATA_DIR to an empty folder",
                self.data_dir.display()
            );
            return Err(Error::Refused { what });
        }
        Ok(Restore { embedded: self, _lock: lock })
    }

    fn first_datum(&self) -> Result<Option<String>> {
        let entries = std::fs::read_dir(&self.data_dir).map_err(|error| files::told(&self.data_dir, &error))?;
        for entry in entries {
            let name = entry.map_err(|error| files::told(&self.data_dir, &error))?.file_name();
            let name = name.to_string_lossy().into_owned();
            if !NO_DATA.contains(&name.as_str()) && !name.starts_with("master.key.old-") {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

/// A data folder during a restore.
pub struct Restore<'a> {
    pub(super) embedded: &'a Embedded,
    _lock: File,
}

impl Restore<'_> {
    /// Restores what `back_up` wrote into `dir`, and checks it before it becomes the cluster. Until `finish`, no server can start here.
    pub async fn cluster(&self, dir: &Path) -> Result<()> {
        let (data_dir, user) = (&self.embedded.data_dir, self.embedded.user.clone());
        let (from, aside) = (dir.join("postgres"), data_dir.join("postgres.new"));
        files::write(&data_dir.join(UNFINISHED), "")?;
        let copy = {
            let aside = aside.clone();
            // We own it while it is written, so that nobody can plant a link in it, and hand it over when it is complete. No fsync: the
            // server syncs everything during its first recovery.
            tokio::task::spawn_blocking(move || {
                copy_folder(&from, &aside)?;
                user.as_ref().map_or(Ok(()), |user| hand_over(&aside, user))
            })
        };
        copy.await.unwrap_or_else(|error| Err(Error::Refused { what: format!("the copy ended badly: {error}") }))?;
        self.embedded.verify(&aside).await?;
        for name in PASSWORDS {
            copy_secret(&dir.join(name), &data_dir.join(name))?;
        }
        let cluster = self.embedded.cluster_dir();
        std::fs::rename(&aside, &cluster).map_err(|error| files::told(&cluster, &error))
    }

    /// Ends the restore: the folder is an ordinary data folder again, whose database is renewed by the next `up` or `migrate`.
    pub fn finish(self) -> Result<()> {
        let (dir, marker) = (&self.embedded.data_dir, self.embedded.data_dir.join(UNFINISHED));
        files::write(&dir.join(TO_RENEW), "")?;
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| files::told(dir, &error))?;
        std::fs::remove_file(&marker).map_err(|error| files::told(&marker, &error))
    }
}

fn absent_is_fine(done: std::io::Result<()>) -> std::io::Result<()> {
    match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn copy_secret(from: &Path, to: &Path) -> Result<()> {
    let text = std::fs::read_to_string(from).map_err(|error| files::told(from, &error))?;
    secret_file::create(to, &text).map_err(|error| files::told(to, &error))
}

/// Copies folders and plain files, readable only by their owner.
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(to).map_err(|error| files::told(to, &error))?;
    for (path, kind) in entries(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if kind.is_dir() {
            copy_folder(&path, &target)?;
        } else if kind.is_file() {
            let mut source = File::open(&path).map_err(|error| files::told(&path, &error))?;
            let made = File::options().write(true).create_new(true).mode(0o600).open(&target);
            let mut file = made.map_err(|error| files::told(&target, &error))?;
            std::io::copy(&mut source, &mut file).map_err(|error| files::told(&target, &error))?;
        } else {
            let what = format!("{} is neither a file nor a folder; such a cluster cannot be restored", path.display());
            return Err(Error::Refused { what });
        }
    }
    Ok(())
}

/// Changes the owner. The outermost folder comes last, so its new owner cannot enter before.
pub(super) fn hand_over(path: &Path, user: &User) -> Result<()> {
    for (path, kind) in entries(path)? {
        if kind.is_dir() {
            hand_over(&path, user)?;
        } else {
            lchown(&path, Some(user.uid), Some(user.gid)).map_err(|error| files::told(&path, &error))?;
        }
    }
    lchown(path, Some(user.uid), Some(user.gid)).map_err(|error| files::told(path, &error))
}

pub(super) fn entries(folder: &Path) -> Result<Vec<(PathBuf, std::fs::FileType)>> {
    let read = || std::fs::read_dir(folder)?.map(|entry| entry.and_then(|e| Ok((e.path(), e.file_type()?)))).collect();
    std::io::Result::map_err(read(), |error| files::told(folder, &error))
}
