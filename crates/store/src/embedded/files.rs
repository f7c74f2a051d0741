//! The data folder: its owner, its files, and the server's settings.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Secret;
use rand::RngExt;
use rustix::fs::{FlockOperation, OFlags, flock};

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

/// Writes a file that only the server's user can read, and that a power cut leaves whole. It is new, so nobody can have planted a link.
pub(super) fn write_for(path: &Path, text: &str, user: Option<&User>) -> Result<()> {
    let mut file =
        File::options().write(true).create_new(true).mode(0o600).open(path).map_err(|error| told(path, &error))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| told(path, &error))?;
    match user {
        Some(user) => fchown(&file, Some(user.uid), Some(user.gid)).map_err(|error| told(path, &error)),
        None => Ok(()),
    }
}

/// Replaces a file of the server's.
pub(super) fn replace_for(path: &Path, text: &str, user: Option<&User>) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(told(path, &error)),
        _ => write_for(path, text, user),
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

pub(super) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Reads what was added to a file since it had this size.
pub(super) fn text_after(path: &Path, size: u64) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(std::io::SeekFrom::Start(size))?;
        file.read_to_end(&mut bytes)
    });
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Whether a server's log says why it ended. One that was killed says nothing, but it may have turned clients away before: lines of sessions
/// have a name after the process id, and name no reason of the server's. Nor do processes that end because others did. If one of the
/// server's processes was killed, that is the reason, and it lies outside.
pub(super) fn names_a_reason(log: &str) -> bool {
    let is_pid =
        |word: &str| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')?.parse::<u32>().ok()).is_some();
    // With another prefix of lines than ours, every line counts.
    let is_of_server = |before: &str| {
        let words: Vec<&str> = before.split_whitespace().collect();
        words.iter().position(|word| is_pid(word)).is_none_or(|at| at + 1 == words.len())
    };
    let is_reason = |line: &str| {
        let level = ["FATAL:", "PANIC:"].iter().find_map(|level| line.find(level));
        let is_consequence = ["the database system is", "FATAL:  terminating", "postmaster exit"]
            .iter()
            .any(|words| line.contains(words));
        level.is_some_and(|at| is_of_server(&line[..at])) && !is_consequence
    };
    log.lines().any(is_reason) && !log.contains("was terminated by signal 9")
}

pub(super) fn last_lines(path: &Path, n: usize) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join(" · ")
}

/// Settings that differ from PostgreSQL's defaults. They are written into postgresql.conf when the cluster is made; edit that file as you
/// like.
pub(super) fn settings(major: u32, extra: &[String]) -> Vec<String> {
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
    let ours = ours.into_iter().map(str::to_owned).chain(needed(major).map(str::to_owned));
    ours.chain(extra.iter().cloned()).collect()
}

/// Those of the settings that a cluster of an older binary gets too, unless its file names them.
fn needed(major: u32) -> impl Iterator<Item = &'static str> {
    let always = [
        // Details and statements may contain people's data.
        "log_error_verbosity=terse",
        "log_min_error_statement=panic",
        // A login that hangs frees its place soon.
        "authentication_timeout=10s",
        // `up` starts a crashed server again. While the server recovers by itself, it overlooks that another of its processes dies, and
        // may then wait for that process for ever.
        "restart_after_crash=off",
    ];
    // Sessions read their pages themselves: none waits for a worker process that has died.
    let own_reads = (major >= 18).then_some("io_method=sync");
    always.into_iter().chain(own_reads)
}

/// Adds the needed settings that a cluster's postgresql.conf does not name, and returns them. They go to its beginning: PostgreSQL takes
/// the last one of a name, so whatever an operator has set counts, also in a file that is included and in postgresql.auto.conf.
pub(super) fn add_settings(cluster: &Path, major: u32, user: Option<&User>) -> Result<Vec<&'static str>> {
    let path = cluster.join("postgresql.conf");
    let failed = |error: std::io::Error| told(&path, &error);
    // The server's user may have put something else there, such as a link to a file that only root may read.
    let plain_file = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(plain_file).open(&path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() || user.is_some_and(|user| user.uid != meta.uid()) {
        return Err(Error::Refused { what: format!("{} is not a file of the server's", path.display()) });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let named = names_in(&text);
    let is_named = |setting: &str| named.iter().any(|name| setting.split('=').next() == Some(name.as_str()));
    let added: Vec<&'static str> = needed(major).filter(|setting| !is_named(setting)).collect();
    if added.is_empty() {
        return Ok(added);
    }
    let lines: String = added.iter().filter_map(|setting| setting.split_once('=')).map(as_line).collect();
    let aside = cluster.join("postgresql.conf.new");
    let header =
        "# Added by a newer Tributary. A line further below that names the same setting is the one that counts.";
    replace_for(&aside, &format!("{header}\n{lines}\n{text}"), user)?;
    std::fs::rename(&aside, &path).map_err(failed)?;
    Ok(added)
}

fn as_line((name, value): (&str, &str)) -> String {
    format!("{name} = '{value}'\n")
}

/// The settings that a configuration file names, in lower case. Lines that are commented out do not count.
fn names_in(conf: &str) -> Vec<String> {
    let name = |line: &str| {
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        line.trim_start().split(|c: char| !is_in_name(c)).next().map(str::to_ascii_lowercase)
    };
    conf.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_last_words_are_a_reason() {
        let at = "2026-11-17 07:06:46.569 UTC";
        for (log, expected) in [
            (String::new(), false),
            (format!("{at} [22] LOG:  checkpointer process (PID 2162) was terminated by signal 9: Killed"), false),
            (format!("{at} [22] [unknown] FATAL:  the database system is starting up"), false),
            (format!("{at} [22] [unknown] FATAL:  sorry, too many clients already"), false),
            (format!("{at} [22] tributary serve FATAL:  terminating connection due to administrator command"), false),
            (format!("{at} [22] FATAL:  terminating connection due to unexpected postmaster exit"), false),
            (format!("{at} [22] FATAL:  terminating autovacuum process due to administrator command"), false),
            (
                format!(
                    "{at} [23] FATAL:  could not open file \"base/1\"\n{at} [22] LOG:  startup process (PID 23) was terminated by signal 9: Killed"
                ),
                false,
            ),
            (format!("{at} [22] FATAL:  could not write lock file: No space left on device"), true),
            (format!("a line\n{at} [22] PANIC:  could not locate a valid checkpoint record"), true),
            ("FATAL:  could not map anonymous shared memory".to_owned(), true),
            ("db01 FATAL:  data directory has wrong ownership".to_owned(), true),
        ] {
            assert_eq!(names_a_reason(&log), expected, "{log}");
        }
    }

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
        assert_eq!((size(&path), text_after(&path, 8).as_str(), text_after(&path, 99).as_str()), (14, "three\n", ""));
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(last_lines(&path, 2), "", "a missing log is an empty one");
        assert_eq!((size(&path), text_after(&path, 8).as_str()), (0, ""));
    }

    #[test]
    fn a_server_that_was_killed_is_told_from_one_that_cannot_start() {
        let killed = "[7] LOG:  listening on IPv4 address\n[8] FATAL:  the database system is starting up\n";
        assert!(!names_a_reason(killed) && !names_a_reason(""));
        assert!(names_a_reason("[7] FATAL:  configuration file \"postgresql.conf\" contains errors\n"));
        assert!(names_a_reason(&format!("{killed}[7] PANIC:  could not locate a valid checkpoint record\n")));
    }

    #[test]
    fn further_settings_come_last_and_so_win() {
        let lines = settings(18, &["max_connections=50".into()]);
        assert_eq!(lines.last().map(String::as_str), Some("max_connections=50"));
        let buffers = lines.iter().find_map(|line| line.strip_prefix("shared_buffers=")?.strip_suffix("MB"));
        let mb: u64 = buffers.and_then(|text| text.parse().ok()).expect("megabytes");
        assert!((128..=2_048).contains(&mb), "{mb}");
    }

    #[test]
    fn an_older_cluster_gets_the_settings_that_nobody_has_set_before_all_others() {
        let cluster = std::env::temp_dir().join(format!("tributary-conf-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir(&cluster).expect("a folder");
        let conf = cluster.join("postgresql.conf");
        let before = "#restart_after_crash = on\n  Authentication_Timeout=7s # ours\ninclude 'more.conf'\n";
        std::fs::write(&conf, before).expect("written");
        let added = add_settings(&cluster, 18, None).expect("added");
        let wanted =
            ["log_error_verbosity=terse", "log_min_error_statement=panic", "restart_after_crash=off", "io_method=sync"];
        assert_eq!(added, wanted, "and not what the operator has set");
        let after = std::fs::read_to_string(&conf).expect("settings");
        assert!(after.ends_with(before) && after.contains("\nrestart_after_crash = 'off'\n"), "{after}");
        assert!(add_settings(&cluster, 18, None).expect("nothing to do").is_empty(), "once");
        assert_eq!(std::fs::read_to_string(&conf).expect("settings"), after);
        assert!(!cluster.join("postgresql.conf.new").exists());

        // A file that belongs to somebody else is not copied into one of the server's.
        let elsewhere = cluster.join("secret");
        std::fs::rename(&conf, &elsewhere).expect("renamed");
        std::fs::write(&elsewhere, "port = 1\n").expect("written");
        std::os::unix::fs::symlink(&elsewhere, &conf).expect("a link");
        assert!(add_settings(&cluster, 18, None).is_err());
        assert_eq!(std::fs::read_to_string(&elsewhere).expect("settings"), "port = 1\n");
        std::fs::remove_dir_all(&cluster).expect("removed");
    }

    #[test]
    fn a_server_gets_only_settings_that_it_knows() {
        let has_it = |major| settings(major, &[]).iter().any(|line| line.starts_with("io_method="));
        assert!(has_it(18) && !has_it(17));
    }
}
