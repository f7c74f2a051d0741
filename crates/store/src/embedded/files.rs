//! The data folder: whose it is, what lies in it, and the server's settings.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Secret;
use rand::RngExt;

use crate::{Error, Result};

/// The user the server runs as when we are root, which PostgreSQL refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// None: we are nobody special and the server runs as us. As root: the owner of the folder, else the first of these that exists.
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

pub(super) fn make_folder(path: &Path, user: Option<&User>) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| told(path, &error))?;
    if let Some(user) = user {
        let owner = std::fs::metadata(path).map_err(|error| told(path, &error))?.uid();
        if owner == 0 {
            chown(path, Some(user.uid), Some(user.gid)).map_err(|error| told(path, &error))?;
        }
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
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(path, mode).map_err(|error| told(path, &error))
}

/// The password in the file, made on first use. Letters, digits, - and _ only.
pub(super) fn ensure_password(path: &Path, user: Option<&User>) -> Result<Secret> {
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let password = URL_SAFE_NO_PAD.encode(rand::rng().random::<[u8; 24]>());
            file.write_all(password.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| told(path, &error))?;
            give(path, user)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(told(path, &error)),
    }
    let text = std::fs::read_to_string(path).map_err(|error| told(path, &error))?;
    if text.trim().is_empty() {
        // A crash between creating and writing: nothing was made with it yet.
        std::fs::remove_file(path).map_err(|error| told(path, &error))?;
        return ensure_password(path, user);
    }
    Ok(Secret::new(text.trim()))
}

pub(super) fn write_owned(path: &Path, text: &str, user: Option<&User>) -> Result<()> {
    std::fs::write(path, text).map_err(|error| told(path, &error))?;
    give(path, user)
}

fn give(path: &Path, user: Option<&User>) -> Result<()> {
    match user {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)).map_err(|error| told(path, &error)),
        None => Ok(()),
    }
}

/// Alive, and not just a dead process that nobody has collected yet.
pub(super) fn is_alive(pid: u32) -> bool {
    let Some(found) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_zombie = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
    // EPERM: it lives, and is another user's.
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

/// What differs from PostgreSQL's own defaults, and why.
pub(super) fn settings(extra: &[String]) -> String {
    let memory_kb: u64 = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()))
        .unwrap_or(4 << 20);
    let shared_mb = (memory_kb / 1024 / 4).clamp(128, 2048);
    let ours = format!(
        "\n# Tributary's settings: edit below this line as you like; they are written once.\n\
         listen_addresses = '127.0.0.1'\n\
         max_connections = 200\n\
         shared_buffers = {shared_mb}MB\n\
         jit = off                     # our queries are short; compiling them costs more than it gains\n\
         random_page_cost = 1.1        # disks without arms\n\
         max_wal_size = 4GB\n\
         wal_compression = on\n\
         log_min_messages = warning\n\
         log_line_prefix = '%m [%p] %q%a '\n"
    );
    ours + &extra.iter().map(|line| format!("{line}\n")).collect::<String>()
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
}
