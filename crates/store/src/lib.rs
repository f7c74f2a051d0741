//! PostgreSQL: the only crate with sqlx, so the only SQL. Callers get [`Db`] and [`Tx`], never sqlx itself.
//!
//! Functions here take a connection (a [`Tx`] derefs to one) and never open a transaction: the caller does, so that what
//! commits together is seen in one place.

pub mod activities;
pub mod alerts;
pub mod bench;
pub mod blobs;
pub mod channels;
pub mod claims;
pub mod clients;
pub mod contacts;
pub mod crash;
mod db;
pub mod dead_letters;
pub mod doctor;
pub mod embedded;
pub mod failures;
pub mod forgotten;
pub mod gates;
pub mod indexes;
pub mod jobs;
pub mod keys;
pub mod memory;
pub mod migrate;
pub mod nodes;
pub mod notices;
pub mod oauth;
pub mod people;
pub mod queue;
pub mod recordings;
pub mod rest;
pub mod retention;
pub mod schedules;
pub mod secret_file;
pub mod sessions;
pub mod sources;
pub mod spend;
pub mod tenants;
pub mod tokens;
pub mod vault;
pub mod waiting;
pub mod workers;

pub use db::{ConnectTo, Connection, Db, Tx, TxOn, Within, within};
pub use sqlx::PgConnection;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database could not do it")]
    Database(#[from] sqlx::Error),
    #[error("the database did not answer in time")]
    TimedOut,
    #[error("{0}")]
    Conflict(&'static str),
    #[error("{what}")]
    Refused { what: String },
    #[error("crash point {0} asked for an error")]
    CrashPoint(&'static str),
}

impl Error {
    /// The other side went away or was busy: the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::TimedOut | Self::CrashPoint(_) => true,
            Self::Conflict(_) | Self::Refused { .. } => false,
            Self::Database(error) => match error {
                sqlx::Error::Database(reply) => {
                    // Connection failures, resources, operator intervention (restart), serialization, deadlock, lock timeout.
                    reply.code().is_some_and(|code| {
                        ["08", "53", "57"].contains(&&code[..2]) || ["40001", "40P01", "55P03"].contains(&code.as_ref())
                    })
                }
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

    /// SQLSTATE, when the database itself said no.
    pub fn code(&self) -> Option<String> {
        match self {
            Self::Database(sqlx::Error::Database(reply)) => reply.code().map(|code| code.into_owned()),
            _ => None,
        }
    }

    /// What the database itself said, for programs that speak to it through us.
    pub fn told(&self) -> String {
        match self {
            Self::Database(sqlx::Error::Database(reply)) => reply.message().to_owned(),
            other => other.to_string(),
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

/// A lane's view of a database failure: worth another attempt.
impl From<Error> for domain::Fault {
    fn from(error: Error) -> Self {
        Self::Transient(error.into())
    }
}
