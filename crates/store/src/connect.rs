//! How the database is reached, and sessions outside any pool.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use domain::Secret;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

use crate::{Error, Result, embedded, pool, within};

/// How long a session outside a pool may take to be opened. The embedded server is tried several times in it.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How to reach the database, with the password inside: never printed.
#[derive(Clone)]
pub struct ConnectTo {
    pub(crate) options: PgConnectOptions,
    /// The pid file of an embedded server, which names its port. After a crash that may be another one.
    pub(crate) pid_file: Option<PathBuf>,
}

impl ConnectTo {
    pub fn url(url: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url).map_err(|_| Error::Refused {
            what: "DATABASE_URL is no PostgreSQL address; one looks like postgres://user:password@host:5432/database"
                .into(),
        })?;
        Ok(Self { options, pid_file: None })
    }

    /// An embedded server, wherever it listens by the time of connecting.
    pub(crate) fn embedded(options: PgConnectOptions, pid_file: PathBuf) -> Self {
        Self { options, pid_file: Some(pid_file) }
    }

    pub fn database(&self, name: &str) -> Self {
        Self { options: self.options.clone().database(name), pid_file: self.pid_file.clone() }
    }

    /// Leads to where the server listens now.
    pub(crate) fn options(&self) -> PgConnectOptions {
        self.options.clone().port(self.port())
    }

    /// Opens a session outside any pool, within a limit: a server in trouble may accept a connection and say nothing.
    pub(crate) async fn connect(&self, name: &str) -> Result<PgConnection> {
        within(CONNECT_LIMIT, async {
            loop {
                match self.try_connect(name).await {
                    Err(Error::TimedOut) if self.pid_file.is_some() => {} // it may be another server by now
                    tried => return tried,
                }
            }
        })
        .await
    }

    /// The same, once.
    pub(crate) async fn try_connect(&self, name: &str) -> Result<PgConnection> {
        let options = self.options().application_name(name);
        let limit = if self.pid_file.is_some() { self.try_limit() } else { CONNECT_LIMIT };
        within(limit, async { Ok(options.connect().await?) }).await
    }

    /// How long a pool tries to get a session before it begins anew. The embedded server is on this machine, where a handshake takes
    /// milliseconds.
    pub(crate) fn try_limit(&self) -> Duration {
        if self.pid_file.is_some() { pool::LOCAL_TRY_LIMIT } else { pool::TRY_LIMIT }
    }

    /// Where this leads, without the password.
    pub fn in_words(&self) -> String {
        let place = match self.options.get_socket() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.options.get_host(), self.port()),
        };
        format!("{} at {place}", self.options.get_database().unwrap_or("postgres"))
    }

    /// The port on which the server listens now. While an embedded one is away, the port that it had when this was made.
    pub fn port(&self) -> u16 {
        self.named_port().unwrap_or_else(|| self.options.get_port())
    }

    /// The port that the embedded server names. None while it is away, and for any other server.
    pub(crate) fn named_port(&self) -> Option<u16> {
        let pid_file = self.pid_file.as_ref()?;
        embedded::port_in(&std::fs::read_to_string(pid_file).ok()?)
    }

    pub fn login(&self) -> &str {
        self.options.get_username()
    }

    /// With the password, for PostgreSQL's own programs: in their environment, never on a command line.
    pub fn uri(&self) -> Secret {
        let mut url = self.options().to_url_lossy();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        url.set_query(None);
        for (name, value) in pairs.iter().filter(|(name, _)| name != "statement-cache-capacity") {
            url.query_pairs_mut().append_pair(name, value); // what libpq knows too
        }
        Secret::new(url)
    }
}

impl std::fmt::Debug for ConnectTo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "postgres://ann:se%20cret@db.example:5433/things?sslmode=require";

    #[test]
    fn an_address_prints_without_its_password() {
        let to = ConnectTo::url(URL).expect("an address");
        assert_eq!((to.in_words().as_str(), to.port(), to.login()), ("things at db.example:5433", 5_433, "ann"));
        assert_eq!(
            format!("{to:?} {:?}", Some(to.database("other"))),
            "things at db.example:5433 Some(other at db.example:5433)"
        );
        assert!(!format!("{to:#?}").contains("cret"));
    }

    #[test]
    fn the_address_for_other_programs_has_the_password_and_only_what_libpq_knows() {
        let uri = ConnectTo::url(URL).expect("an address").database("other").uri();
        assert!(uri.reveal().starts_with("postgres://ann:se%20cret@db.example:5433/other?"), "{}", uri.reveal());
        assert!(
            uri.reveal().contains("sslmode=require") && !uri.reveal().contains("statement-cache"),
            "{}",
            uri.reveal()
        );
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for odd in ["not a url: pass=secret", "http://[bad", "postgres://host:port/x"] {
            let refused = ConnectTo::url(odd).expect_err(odd).to_string();
            assert!(
                refused.starts_with("DATABASE_URL is no PostgreSQL address") && !refused.contains("secret"),
                "{refused}"
            );
        }
    }
}
