//! Advice about a server that does not start or lets nobody in, by its own words; and how often to tell of it.

use std::time::{Duration, Instant};

use super::{Embedded, files};

/// The longest pause between two lines about the same trouble.
const MOST_PAUSE: Duration = Duration::from_secs(60);

/// Words of PostgreSQL or of the system, and the trouble that they mean.
const TROUBLES: &[(&str, Trouble)] = &[
    ("No space left on device", Trouble::FullDisk),
    ("Disk quota exceeded", Trouble::FullDisk),
    ("53100", Trouble::FullDisk),
    ("Permission denied", Trouble::Rights),
    ("Operation not permitted", Trouble::Rights),
    ("wrong ownership", Trouble::Rights),
    ("invalid permissions", Trouble::Rights),
    ("Read-only file system", Trouble::Rights),
    ("could not map anonymous shared memory", Trouble::Memory),
    ("Cannot allocate memory", Trouble::Memory),
    ("out of memory", Trouble::Memory),
    ("configuration file", Trouble::Settings),
    ("unrecognized configuration parameter", Trouble::Settings),
    ("invalid value for parameter", Trouble::Settings),
    ("could not locate a valid checkpoint record", Trouble::Damage),
    ("could not open file", Trouble::Damage),
    ("could not access file \"$libdir", Trouble::Programs),
    ("invalid page", Trouble::Damage),
    ("contains invalid data", Trouble::Damage),
    ("Input/output error", Trouble::Damage),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    FullDisk,
    Rights,
    Memory,
    Settings,
    Damage,
    Programs,
}

impl Trouble {
    /// None: only the server's log can tell.
    fn of(said: &str) -> Option<Self> {
        TROUBLES.iter().find(|(words, _)| said.contains(words)).map(|(_, trouble)| *trouble)
    }
}

impl Embedded {
    /// Says what to do about a server that does not start or answer, by what it or an error about it said.
    pub fn advice(&self, said: &str) -> String {
        self.known_advice(said).unwrap_or_else(|| format!("the server's log says more: {}", self.log_file().display()))
    }

    /// The same, if the words say what the trouble is.
    pub fn known_advice(&self, said: &str) -> Option<String> {
        let (cluster, log) = (self.cluster_dir(), self.log_file());
        let (cluster, log) = (cluster.display(), log.display());
        Some(match Trouble::of(said)? {
            Trouble::FullDisk => format!("free some space on the disk of {cluster}, then start again"),
            Trouble::Rights => {
                let who = self.user.as_ref().map_or("the user who starts it", |user| user.name.as_str());
                format!("{cluster} and everything in it must belong to {who} and be writable; then start again")
            }
            Trouble::Memory => {
                format!("free some memory, or lower shared_buffers in {cluster}/postgresql.conf, then start again")
            }
            Trouble::Settings => format!("correct {cluster}/postgresql.conf, then start again"),
            Trouble::Damage => format!(
                "files of the database are missing or damaged ({log} names them); check the disk, and restore a backup with `tributary restore`"
            ),
            Trouble::Programs => {
                format!(
                    "the PostgreSQL in {} lacks an extension; start with `./tributary`, which fetches one that has it",
                    self.bin_dir.display()
                )
            }
        })
    }

    /// The same, also by the end of the server's log.
    pub fn advice_by_log(&self, said: &str) -> String {
        self.advice(&format!("{said} {}", files::last_lines(&self.log_file(), 20)))
    }
}

/// Decides when to tell of something that fails again and again: at once, then after pauses that grow to a minute.
#[derive(Debug)]
pub struct Telling {
    since: Instant,
    next: Instant,
    pause: Duration,
}

impl Telling {
    pub fn new(now: Instant) -> Self {
        Self { since: now, next: now, pause: Duration::from_secs(1) }
    }

    /// Whether this failure is told.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(MOST_PAUSE);
        true
    }

    /// Whether it fails for so long that people should be told what to do.
    pub fn needs_advice(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= Duration::from_secs(5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_server_mean_something_to_do() {
        for (said, expected) in [
            ("FATAL:  could not write lock file \"postmaster.pid\": No space left on device", Some(Trouble::FullDisk)),
            ("FATAL:  data directory \"/d/postgres\" has wrong ownership", Some(Trouble::Rights)),
            ("FATAL:  could not open file \"postgresql.conf\": Permission denied", Some(Trouble::Rights)),
            ("FATAL:  could not map anonymous shared memory: Cannot allocate memory", Some(Trouble::Memory)),
            ("FATAL:  configuration file \"/d/postgresql.conf\" contains errors", Some(Trouble::Settings)),
            ("PANIC:  could not locate a valid checkpoint record at 0/1", Some(Trouble::Damage)),
            ("could not open file \"global/pg_filenode.map\": No such file or directory", Some(Trouble::Damage)),
            ("could not access file \"$libdir/vector\": No such file or directory", Some(Trouble::Programs)),
            ("something that nobody has seen", None),
            ("", None),
        ] {
            assert_eq!(Trouble::of(said), expected, "{said}");
        }
    }

    #[test]
    fn trouble_that_lasts_is_told_ever_more_rarely() {
        let begun = Instant::now();
        let mut telling = Telling::new(begun);
        let at = |tenth: u64| begun + Duration::from_millis(tenth * 100);
        let told: Vec<u64> = (0..36_000).filter(|tenth| telling.is_due(at(*tenth))).collect();
        assert_eq!(told[..5], [0, 10, 30, 70, 150], "at once, then after 1, 2, 4 and 8 seconds");
        assert!((60..=70).contains(&told.len()), "{} lines in an hour", told.len());
        assert!(!telling.needs_advice(at(49)) && telling.needs_advice(at(50)));
    }
}
