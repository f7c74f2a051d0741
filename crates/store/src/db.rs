//! The pool and the transaction. Both survive a server that goes away: every wait here ends.

use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::time::Duration;

use domain::{Caller, Notice, Secret};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};

use crate::notices::Bus;
use crate::{Error, Result};

/// A session outside any transaction, for a loop that makes many small statements.
pub type Connection = sqlx::pool::PoolConnection<Postgres>;

/// How long a COMMIT may take before its connection is given up: a black-holed socket never answers.
const COMMIT_LIMIT: Duration = Duration::from_secs(30);
/// How long a unit of work takes at most. With the four seconds that authentication may take before it, a request whose
/// database is away ends within ten seconds.
const WORK_LIMIT: Duration = Duration::from_secs(6);

#[derive(Clone)]
pub struct Db {
    pool: PgPool,
    bus: Bus,
    to: ConnectTo,
}

/// How to reach the database, with the password inside: never printed.
#[derive(Clone)]
pub struct ConnectTo(pub(crate) PgConnectOptions);

impl ConnectTo {
    pub fn url(url: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url).map_err(|_| Error::Refused {
            what: "DATABASE_URL is no PostgreSQL address; one looks like postgres://user:password@host:5432/database"
                .into(),
        })?;
        Ok(Self(options))
    }

    pub fn database(&self, name: &str) -> Self {
        Self(self.0.clone().database(name))
    }

    /// Where this leads, without the password.
    pub fn in_words(&self) -> String {
        let place = match self.0.get_socket() {
            Some(path) => path.display().to_string(),
            None => format!("{}:{}", self.0.get_host(), self.0.get_port()),
        };
        format!("{} at {place}", self.0.get_database().unwrap_or("postgres"))
    }

    pub fn port(&self) -> u16 {
        self.0.get_port()
    }

    pub fn login(&self) -> &str {
        self.0.get_username()
    }

    /// With the password, for PostgreSQL's own programs: in their environment, never on a command line.
    pub fn uri(&self) -> Secret {
        use sqlx::ConnectOptions as _;
        let mut url = self.0.to_url_lossy();
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

impl Db {
    /// A pool of sessions that act as `service_role`. Connects on first use, so that a server that is away now is no error.
    pub fn lazy(to: &ConnectTo, max_connections: u32, acquire_limit: Duration) -> Self {
        let options = to.0.clone().application_name("tributary");
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(acquire_limit)
            .idle_timeout(Duration::from_secs(300))
            .after_connect(|conn, _| {
                Box::pin(async move {
                    // As a statement, not as a start-up option: poolers in front of a server refuse those. Our transactions are
                    // short; one that idles belongs to a process that was stopped, and its locks keep its items from others.
                    let session = "set role service_role; set statement_timeout = '30s'; \
                                   set idle_in_transaction_session_timeout = '10s'";
                    sqlx::raw_sql(session).execute(&mut *conn).await.map(|_| ())
                })
            })
            .test_before_acquire(false)
            .before_acquire(|conn, _| {
                Box::pin(async move {
                    // A future cancelled during BEGIN leaves its session inside a transaction. This repairs it: silent when
                    // clean, a warning when it repaired something, an error (so the session is dropped) when aborted.
                    let repair = sqlx::raw_sql("begin; rollback").execute(&mut *conn);
                    match tokio::time::timeout(Duration::from_secs(5), repair).await {
                        Ok(done) => done.map(|_| true),
                        Err(_) => Ok(false), // the socket is dead; the pool closes the session
                    }
                })
            })
            .connect_lazy_with(options);
        Self { pool, bus: Bus::default(), to: to.clone() }
    }

    /// Sessions beside this pool, on the same bus: for what must not wait behind work.
    pub fn sibling(&self, max_connections: u32) -> Self {
        Self { bus: self.bus.clone(), ..Self::lazy(&self.to, max_connections, Duration::from_secs(10)) }
    }

    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// How this pool reaches the database.
    pub(crate) fn to(&self) -> &ConnectTo {
        &self.to
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub async fn acquire(&self) -> Result<Connection> {
        Ok(self.pool.acquire().await?)
    }

    /// A transaction of the service's own.
    pub async fn begin(&self) -> Result<Tx> {
        Ok(self.tx(self.pool.begin().await?))
    }

    /// The same on a session that the caller keeps: for a loop that commits all the time, without the pool's looks in between.
    pub async fn begin_on<'c>(&self, conn: &'c mut Connection) -> Result<TxOn<'c>> {
        let inner = sqlx::Connection::begin(&mut **conn).await?;
        Ok(TxOn { inner, notices: Vec::new(), bus: self.bus.clone() })
    }

    /// A transaction in the caller's name: row security shows it its own tenant and nothing else. One round trip.
    pub async fn begin_as(&self, caller: &Caller) -> Result<Tx> {
        let claims = caller.claims().to_string().replace('\'', "''");
        // standard_conforming_strings is on everywhere since 9.1; set here all the same, because the quoting relies on it.
        let begin = format!(
            "begin; set local standard_conforming_strings = on; set local role authenticated; set local request.jwt.claims = '{claims}'"
        );
        Ok(self.tx(self.pool.begin_with(AssertSqlSafe(begin)).await?))
    }

    fn tx(&self, inner: Transaction<'static, Postgres>) -> Tx {
        Tx(TxOn { inner, notices: Vec::new(), bus: self.bus.clone() })
    }

    /// Units of work with a limit of their own.
    pub fn within(&self, limit: Duration) -> Within<'_> {
        Within { db: self, limit }
    }

    /// See [`Within::read`].
    pub async fn read<T>(&self, caller: &Caller, work: impl AsyncFnOnce(&mut Tx) -> Result<T>) -> Result<T> {
        self.within(WORK_LIMIT).read(caller, work).await
    }

    /// See [`Within::write`].
    pub async fn write<T, E: From<Error>>(&self, work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>) -> Result<T, E> {
        self.within(WORK_LIMIT).write(work).await
    }

    /// See [`Within::write_as`].
    pub async fn write_as<T, E: From<Error>>(
        &self,
        caller: &Caller,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Result<T, E> {
        self.within(WORK_LIMIT).write_as(caller, work).await
    }

    /// See [`Within::session`].
    pub async fn session<T>(&self, work: impl AsyncFnOnce(&mut PgConnection) -> Result<T>) -> Result<T> {
        self.within(WORK_LIMIT).session(work).await
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Units of work on the database, each of which ends in time: waiting for a session, every statement and the commit count.
/// Without such a limit a request would wait as long as a silent connection does, which is for ever. A unit that is cut off
/// leaves its session to the pool, which repairs it, or drops it, before it is used again.
#[derive(Clone, Copy)]
pub struct Within<'a> {
    db: &'a Db,
    limit: Duration,
}

impl Within<'_> {
    /// Reads as the caller: row security shows it its own tenant and nothing else. Never commits.
    pub async fn read<T>(self, caller: &Caller, work: impl AsyncFnOnce(&mut Tx) -> Result<T>) -> Result<T> {
        within(self.limit, async {
            let mut tx = self.db.begin_as(caller).await?;
            work(&mut tx).await
        })
        .await
    }

    /// Writes as the caller. Commits what succeeds and rolls back what fails.
    pub async fn write_as<T, E: From<Error>>(
        self,
        caller: &Caller,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Result<T, E> {
        self.commit(self.db.begin_as(caller), work).await
    }

    /// Writes as the service. Commits what succeeds and rolls back what fails.
    pub async fn write<T, E: From<Error>>(self, work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>) -> Result<T, E> {
        self.commit(self.db.begin(), work).await
    }

    async fn commit<T, E: From<Error>>(
        self,
        begin: impl Future<Output = Result<Tx>>,
        work: impl AsyncFnOnce(&mut Tx) -> Result<T, E>,
    ) -> Result<T, E> {
        let committed = async {
            let mut tx = begin.await?;
            let done = work(&mut tx).await?;
            tx.commit().await?;
            Ok(done)
        };
        tokio::time::timeout(self.limit, committed).await.unwrap_or(Err(Error::TimedOut.into()))
    }

    /// Runs statements as the service, each its own transaction.
    pub async fn session<T>(self, work: impl AsyncFnOnce(&mut PgConnection) -> Result<T>) -> Result<T> {
        within(self.limit, async {
            let mut conn = self.db.acquire().await?;
            work(&mut conn).await
        })
        .await
    }
}

/// A transaction on a session of the pool's. It has no lifetime, so that a closure can take it where a future must be `Send`.
pub struct Tx(TxOn<'static>);

impl Tx {
    /// Told to this process and the others after the commit, never before.
    pub fn notify(&mut self, notice: Notice) {
        self.0.notify(notice);
    }

    pub fn notify_all(&mut self, notices: impl IntoIterator<Item = Notice>) {
        self.0.notify_all(notices);
    }

    pub async fn commit(self) -> Result<()> {
        self.0.commit().await
    }

    pub async fn rollback(self) -> Result<()> {
        self.0.rollback().await
    }
}

impl AsMut<Tx> for Tx {
    fn as_mut(&mut self) -> &mut Tx {
        self
    }
}

impl Deref for Tx {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.0.inner
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0.inner
    }
}

/// A transaction, and what to tell once it has committed. Dropped without `commit` it rolls back and tells nobody.
pub struct TxOn<'c> {
    inner: Transaction<'c, Postgres>,
    notices: Vec<Notice>,
    bus: Bus,
}

impl TxOn<'_> {
    /// Told to this process and the others after the commit, never before.
    pub fn notify(&mut self, notice: Notice) {
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    pub fn notify_all(&mut self, notices: impl IntoIterator<Item = Notice>) {
        notices.into_iter().for_each(|notice| self.notify(notice));
    }

    pub async fn commit(self) -> Result<()> {
        match tokio::time::timeout(COMMIT_LIMIT, self.inner.commit()).await {
            Ok(committed) => committed?,
            Err(_) => return Err(Error::TimedOut),
        }
        for notice in self.notices {
            self.bus.publish(notice);
        }
        Ok(())
    }

    pub async fn rollback(self) -> Result<()> {
        Ok(self.inner.rollback().await?)
    }
}

impl Deref for TxOn<'_> {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for TxOn<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
    }
}

/// Ends a wait on the database that nothing else would end. The session it was on is dropped by the pool when it is next
/// asked for and does not answer.
pub async fn within<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(Error::TimedOut))
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

    #[tokio::test]
    async fn a_wait_ends_at_its_limit_and_a_result_is_handed_through() {
        let late = within(Duration::from_millis(1), std::future::pending::<Result<()>>()).await;
        assert!(matches!(late, Err(Error::TimedOut)), "{late:?}");
        assert!(within(Duration::from_secs(5), async { Ok(7) }).await.is_ok_and(|n| n == 7));
        let refused = within(Duration::from_secs(5), async { Err::<(), _>(Error::Conflict("taken")) }).await;
        assert!(matches!(refused, Err(Error::Conflict("taken"))), "{refused:?}");
    }
}
