//! PostgreSQL: the only crate with sqlx, so the only SQL. Callers get [`Db`] and [`Tx`], never sqlx itself.
//!
//! Functions here take a connection (a [`Tx`] derefs to one) and never open a transaction: the caller does, so that what
//! commits together is seen in one place.

pub mod activities;
pub mod alerts;
pub mod assistants;
pub mod bench;
mod bites;
pub mod blobs;
pub mod channels;
pub mod claims;
pub mod clients;
mod connect;
pub mod contacts;
pub mod crash;
mod db;
pub mod dead_letters;
pub mod doctor;
pub mod embedded;
pub mod failures;
pub mod files;
pub mod forgotten;
pub mod functions;
pub mod gates;
pub mod indexes;
pub mod jobs;
pub mod keys;
pub mod mail;
pub mod memory;
pub mod migrate;
pub mod nodes;
pub mod notices;
pub mod oauth;
pub mod people;
mod pool;
pub mod queue;
pub mod recordings;
pub mod rest;
pub mod restored;
pub mod retention;
pub mod schedules;
pub mod searches;
pub mod secret_file;
pub mod senders;
pub mod sessions;
pub mod sources;
pub mod spend;
pub mod tenants;
pub mod tokens;
pub mod vault;
pub mod waiting;
pub mod workers;
pub mod written;

use std::fmt;

pub use connect::ConnectTo;
pub use db::{Db, Tx, TxOn, Within, within};
pub use pool::Connection;
pub use sqlx::PgConnection;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(thiserror::Error)]
pub enum Error {
    #[error("the database could not do it")]
    Database(#[from] sqlx::Error),
    #[error("the database did not answer in time")]
    TimedOut,
    #[error("{0}")]
    Conflict(&'static str),
    /// The present state does not allow it.
    #[error("{what}")]
    NotNow { what: String },
    /// It cannot be done at all, or something is broken.
    #[error("{what}")]
    Refused { what: String },
    #[error("crash point {0} asked for an error")]
    CrashPoint(&'static str),
}

/// Classes of SQLSTATEs that pass by themselves: connection failures, resources, an operator's intervention (restart, timeouts), and
/// system errors (a disk that cannot be read).
const PASSING_CLASSES: [&str; 4] = ["08", "53", "57", "58"];
/// Others that do: a read-only server (it was the primary, or will be), a transaction that idled or took too long (its process was
/// stopped), serialization, deadlock, lock timeout.
const PASSING: [&str; 6] = ["25006", "25P03", "25P04", "40001", "40P01", "55P03"];

impl Error {
    /// The other side went away or was busy: the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::TimedOut | Self::CrashPoint(_) => true,
            Self::Conflict(_) | Self::NotNow { .. } | Self::Refused { .. } => false,
            Self::Database(error) => match error {
                sqlx::Error::Database(reply) => reply.code().is_some_and(|code| {
                    PASSING_CLASSES.iter().any(|class| code.starts_with(class)) || PASSING.contains(&code.as_ref())
                }),
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::WorkerCrashed
                | sqlx::Error::BeginFailed => true,
                _ => false,
            },
        }
    }

    /// The server is not there, or does not answer. What was asked of it is rarely the reason, unlike with a statement that takes too long, needs
    /// too much memory, meets others, idles in its transaction, reads a damaged file, or is put wrongly.
    pub fn is_away(&self) -> bool {
        const BY_STATEMENT: [&str; 8] = ["08P01", "57014", "53200", "40001", "40P01", "55P03", "25P03", "25P04"];
        let is_by_statement = match self {
            Self::CrashPoint(_) | Self::Database(sqlx::Error::Protocol(_)) => true,
            _ => self.code().is_some_and(|code| code.starts_with("58") || BY_STATEMENT.contains(&code.as_str())),
        };
        self.is_passing() && !is_by_statement
    }

    /// SQLSTATE, when the database itself said no.
    pub fn code(&self) -> Option<String> {
        match self {
            Self::Database(sqlx::Error::Database(reply)) => reply.code().map(|code| code.into_owned()),
            _ => None,
        }
    }

    /// Returns the database's own message, for programs that speak to it through us.
    pub fn told(&self) -> String {
        match self {
            Self::Database(sqlx::Error::Database(reply)) => reply.message().to_owned(),
            other => other.to_string(),
        }
    }
}

/// The database's code and message. Its details are left out, because they repeat values of rows: people's data.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(sqlx::Error::Database(reply)) => {
                write!(f, "Database({}: {})", reply.code().unwrap_or_default(), reply.message())
            }
            Self::Database(other) => f.debug_tuple("Database").field(other).finish(),
            Self::TimedOut => f.write_str("TimedOut"),
            Self::Conflict(what) => f.debug_tuple("Conflict").field(what).finish(),
            Self::NotNow { what } => f.debug_struct("NotNow").field("what", what).finish(),
            Self::Refused { what } => f.debug_struct("Refused").field("what", what).finish(),
            Self::CrashPoint(name) => f.debug_tuple("CrashPoint").field(name).finish(),
        }
    }
}

/// Lets constraints decide and names what they said: a violation of `constraint` becomes [`Error::Conflict`].
pub(crate) trait OnConstraint<T> {
    fn on_constraint(self, constraint: &str, says: &'static str) -> Result<T>;
}

impl<T> OnConstraint<T> for std::result::Result<T, sqlx::Error> {
    fn on_constraint(self, constraint: &str, says: &'static str) -> Result<T> {
        self.map_err(|error| match &error {
            sqlx::Error::Database(reply) if reply.constraint() == Some(constraint) => Error::Conflict(says),
            _ => Error::Database(error),
        })
    }
}

/// Reads a word of one of `domain`'s enums; an unknown one is an error.
fn word<T: TryFrom<String, Error = domain::words::UnknownWord>>(text: String) -> Result<T> {
    T::try_from(text).map_err(|error| Error::Database(sqlx::Error::Decode(error.into())))
}

/// A lane's view of a database failure: worth another attempt.
impl From<Error> for domain::Fault {
    fn from(error: Error) -> Self {
        if error.is_away() { Self::Away(error.into()) } else { Self::Transient(error.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server's error with its SQLSTATE.
    #[derive(Debug)]
    struct Reply {
        code: &'static str,
        constraint: Option<&'static str>,
    }

    impl std::fmt::Display for Reply {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the server's own words")
        }
    }

    impl std::error::Error for Reply {}

    impl sqlx::error::DatabaseError for Reply {
        fn message(&self) -> &str {
            "the server's own words"
        }

        fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
            Some(self.code.into())
        }

        fn constraint(&self) -> Option<&str> {
            self.constraint
        }

        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }
    }

    fn said(code: &'static str) -> Error {
        Error::Database(sqlx::Error::Database(Box::new(Reply { code, constraint: None })))
    }

    /// A session prepares a text once, for the types that its first caller bound. Another caller with other types would be refused in the
    /// sessions that the first one has used. So a statement stands in one place.
    #[test]
    fn no_statement_is_written_twice() {
        // The same types everywhere.
        const SHARED: [&str; 2] = ["select pg_try_advisory_lock(", "select pgmq.drop_queue("];
        let mut seen = std::collections::HashMap::new();
        let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("a file");
                let is_statement = |text: &&str| {
                    let is_verb = |verb: &&str| text.starts_with(*verb);
                    ["select ", "insert ", "update ", "delete ", "with "].iter().any(is_verb)
                        && text.contains('$')
                        && !SHARED.iter().any(|shared| text.starts_with(shared))
                };
                for statement in text.split('"').filter(is_statement) {
                    let words = statement.split_whitespace().collect::<Vec<_>>().join(" ");
                    let other = seen.insert(words, path.clone());
                    assert_eq!(other, None, "this stands in {} too: {statement}", path.display());
                }
            }
        }
        assert!(seen.len() > 100, "only {} statements were found", seen.len());
    }

    #[test]
    fn what_passes_by_itself_is_told_from_what_does_not() {
        for code in [
            "08006", "08P01", "25006", "25P03", "25P04", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02",
            "57P03", "57P04", "57P05", "58000", "58030", "58P01",
        ] {
            assert!(said(code).is_passing(), "{code}");
        }
        for code in ["23505", "42501", "42P01", "22P02", "25001", "25P02", "40002", "55000", "PT409", "P0001"] {
            assert!(!said(code).is_passing(), "{code}");
        }
        assert!(Error::TimedOut.is_passing() && Error::CrashPoint("x").is_passing());
        assert!(Error::Database(sqlx::Error::PoolTimedOut).is_passing());
        assert!(Error::Database(sqlx::Error::Io(std::io::Error::other("reset"))).is_passing());
        assert!(!Error::Conflict("taken").is_passing() && !Error::Refused { what: "no".into() }.is_passing());
        assert!(!Error::Database(sqlx::Error::RowNotFound).is_passing());
    }

    #[test]
    fn a_server_that_is_away_is_told_from_a_statement_that_takes_too_long_or_meets_others() {
        for code in ["08006", "25006", "53300", "57P01", "57P03"] {
            assert!(said(code).is_away(), "{code}");
        }
        for code in ["08P01", "57014", "53200", "40001", "40P01", "55P03", "25P03", "25P04", "58030", "23505"] {
            assert!(!said(code).is_away(), "{code}");
        }
        assert!(Error::TimedOut.is_away() && Error::Database(sqlx::Error::PoolTimedOut).is_away());
        assert!(!Error::CrashPoint("x").is_away() && !Error::Refused { what: "no".into() }.is_away());
    }

    #[test]
    fn the_servers_code_and_words_are_handed_on_and_ours_have_no_code() {
        assert_eq!(
            (said("PT409").code().as_deref(), said("PT409").told().as_str()),
            (Some("PT409"), "the server's own words")
        );
        assert_eq!(
            (Error::TimedOut.code(), Error::TimedOut.told()),
            (None, "the database did not answer in time".into())
        );
        assert_eq!(Error::Conflict("it is connected already").told(), "it is connected already");
    }

    /// S13: a reply's own `Debug` has all its fields, details included.
    #[test]
    fn an_error_prints_without_the_fields_of_the_servers_reply() {
        let violated = Error::Database(sqlx::Error::Database(Box::new(Reply { code: "23505", constraint: Some("x") })));
        assert_eq!(format!("{violated:?}"), "Database(23505: the server's own words)");
        assert_eq!(format!("{:?}", Error::Database(sqlx::Error::RowNotFound)), "Database(RowNotFound)");
        assert_eq!(format!("{:?}", Error::NotNow { what: "later".into() }), "NotNow { what: \"later\" }");
    }

    #[test]
    fn only_the_named_constraint_becomes_a_conflict() {
        let violated = |constraint| Err::<(), _>(sqlx::Error::Database(Box::new(Reply { code: "23505", constraint })));
        let named = violated(Some("sources_key")).on_constraint("sources_key", "it is connected already");
        assert!(matches!(named, Err(Error::Conflict("it is connected already"))), "{named:?}");
        for other in [Some("another_key"), None] {
            let kept = violated(other).on_constraint("sources_key", "it is connected already");
            assert!(matches!(kept, Err(Error::Database(_))), "{kept:?}");
        }
        assert!(Ok::<_, sqlx::Error>(7).on_constraint("sources_key", "x").is_ok_and(|n| n == 7));
    }
}
