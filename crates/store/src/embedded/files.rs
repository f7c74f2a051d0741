//! The data folder: its owner, its files, and the server's settings.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Secret;
use rand::RngExt;
use rustix::fs::{FlockOperation, flock};

use crate::{Error, Result, secret_file};

/// The user that runs the server if we are root, because PostgreSQL refuses to run as root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns `None` if we are not root: the server then runs as our own user. For root it is the owner of the folder, or else the first of
/// these users that exists.
pub(super) fn server_user(data_dir: &Path) -> Result<Option<User>> {
    if !is_root() {
        return Ok(None);
    }
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let owner = std::fs::metadata(data_dir.join("postgres")).map(|meta| meta.uid()).ok().filter(|uid| *uid != 0);
    let users: Vec<User> = passwd.lines().filter_map(parse_user).collect();
    let owned = users.iter().find(|user| Some(user.uid) == owner);
    let wanted = owned.or_else(|| {
        ["tributary", "postgres", "nobody"].iter().find_map(|name| users.iter().find(|user| user.name == *name))
    });
    wanted.cloned().map(Some).ok_or_else(|| Error::Refused {
        what: "PostgreSQL does not run as root, and there is no user tributary, postgres or nobody to run it as; \
               make one with `useradd --system tributary`, or start as another user"
            .into(),
    })
}

fn parse_user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(User { name, uid, gid })
}

/// Makes the data folder accessible only to us. If another user runs the server, that user may pass through it to its own folders.
pub(super) fn make_data_folder(path: &Path, user: Option<&User>) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| told(path, &error))?;
    if let Some(user) = user {
        let closed = path.ancestors().skip(1).find(|folder| {
            std::fs::metadata(folder).is_ok_and(|meta| meta.uid() != user.uid && meta.permissions().mode() & 0o001 == 0)
        });
        if let Some(folder) = closed {
            let what = format!(
                "as root the server runs as user {}, who may not enter {}; set DATA_DIR to a folder it can reach, such as /var/lib/tributary",
                user.name,
                folder.display()
            );
            return Err(Error::Refused { what });
        }
    }
    let mode = if user.is_some() { 0o711 } else { 0o700 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(|error| told(path, &error))
}

/// Creates a folder that belongs to the server's user.
pub(super) fn make_folder(path: &Path, user: Option<&User>) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| told(path, &error))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(|error| told(path, &error))?;
    match user {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)).map_err(|error| told(path, &error)),
        None => Ok(()),
    }
}

/// Waits for the lock. It is released when the returned file is dropped.
pub(super) async fn lock(path: &Path) -> Result<File> {
    let file =
        File::options().create(true).truncate(false).write(true).open(path).map_err(|error| told(path, &error))?;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(told(path, &error.into()));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(file)
}

/// Returns the password in the file, which is created on first use. It contains only letters, digits, - and _.
pub(super) fn ensure_password(path: &Path) -> Result<Secret> {
    if !path.exists() {
        let password = URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 24]>());
        secret_file::create(path, &password).map_err(|error| told(path, &error))?;
    }
    let text = std::fs::read_to_string(path).map_err(|error| told(path, &error))?;
    Ok(Secret::new(text.trim()))
}

pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| told(path, &error))
}

/// Writes a secret that the server's user can read. The file is new, so nobody can have planted a link.
pub(super) fn write_for(path: &Path, text: &str, user: Option<&User>) -> Result<()> {
    let mut file =
        File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| told(path, &error))?;
    file.write_all(text.as_bytes()).map_err(|error| told(path, &error))?;
    match user {
        Some(user) => fchown(&file, Some(user.uid), Some(user.gid)).map_err(|error| told(path, &error)),
        None => Ok(()),
    }
}

/// Whether the pid certainly belongs to another program, by the kernel's word. If the kernel cannot be asked, the answer is no.
pub(super) fn is_other_program(pid: u32, name: &str) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|path| !path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)))
}

/// Whether the process is alive, and not a zombie.
pub(super) fn is_alive(pid: u32) -> bool {
    let Some(found) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_zombie = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
    // EPERM: it is alive and belongs to another user.
    !is_zombie && rustix::process::test_kill_process(found) != Err(rustix::io::Errno::SRCH)
}

pub(super) fn told(path: &Path, error: &std::io::Error) -> Error {
    Error::Refused { what: format!("{} cannot be used: {error}", path.display()) }
}

pub(super) fn last_lines(path: &Path, n: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join(" · ")
}

/// Settings that differ from PostgreSQL's defaults. They are written into postgresql.conf once; edit that file as you like.
pub(super) fn settings(extra: &[String]) -> Vec<String> {
    let memory_kb: u64 = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()))
        .unwrap_or(4 << 20);
    let shared_mb = (memory_kb / 1024 / 4).clamp(128, 2048);
    let ours = [
        "listen_addresses=127.0.0.1",
        "max_connections=200",
        &format!("shared_buffers={shared_mb}MB"),
        "jit=off",              // our queries are short: compiling them takes longer than it saves
        "random_page_cost=1.1", // solid-state disks
        "max_wal_size=4GB",
        "wal_compression=on",
        "log_min_messages=warning",
        "log_line_prefix=%m [%p] %q%a ",
    ];
    ours.into_iter().map(str::to_owned).chain(extra.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_as_passwd_spells_them() {
        let user = parse_user("postgres:x:105:113:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash");
        assert_eq!(user, Some(User { name: "postgres".into(), uid: 105, gid: 113 }));
        assert_eq!(parse_user("broken"), None);
    }

    #[test]
    fn a_process_is_alive_until_it_is_gone() {
        let me = std::process::id();
        assert!(is_alive(me) && !is_other_program(me, "store"));
        assert!(is_other_program(me, "postgres"));
        assert!(!is_alive(0) && !is_alive(u32::MAX), "numbers that no process has");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        let pid = child.id();
        let _ = child.wait();
        assert!(!is_alive(pid));
    }

    #[test]
    fn the_last_lines_are_on_one() {
        let path = std::env::temp_dir().join(format!("tributary-lines-{}", uuid::Uuid::now_v7().simple()));
        std::fs::write(&path, "one\ntwo\nthree\n").expect("written");
        assert_eq!(
            (last_lines(&path, 2).as_str(), last_lines(&path, 9).as_str()),
            ("two · three", "one · two · three")
        );
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(last_lines(&path, 2), "", "a missing log is an empty one");
    }

    #[test]
    fn further_settings_come_last_and_so_win() {
        let lines = settings(&["max_connections=50".into()]);
        assert_eq!(lines.last().map(String::as_str), Some("max_connections=50"));
        let buffers = lines.iter().find_map(|line| line.strip_prefix("shared_buffers=")?.strip_suffix("MB"));
        let mb: u64 = buffers.and_then(|text| text.parse().ok()).expect("megabytes");
        assert!((128..=2_048).contains(&mb), "{mb}");
    }
}
