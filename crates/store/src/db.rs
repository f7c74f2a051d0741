//! The pool and the transaction. Both survive a server that goes away: every wait here ends.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::{Caller, Notice};
use sqlx::PgConnection;
use sqlx::postgres::PgPool;

use crate::connect::ConnectTo;
use crate::notices::Bus;
use crate::pool::{self, Connection};
use crate::{Error, Result};

/// How long a COMMIT may take before its connection is given up: a black-holed socket never answers.
const COMMIT_LIMIT: Duration = Duration::from_secs(30);
/// How long a unit of work takes at most. With the four seconds that authentication may take before it, a request whose
/// database is away ends within ten seconds.
const WORK_LIMIT: Duration = Duration::from_secs(6);
/// How long callers of a sibling wait for a session.
const SIBLING_LIMIT: Duration = Duration::from_secs(4);
/// The interval at which a pool looks where its server listens.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub struct Db {
    pool: PgPool,
    bus: Bus,
    to: ConnectTo,
    acquire_limit: Duration,
    /// When this pool last looked where the server listens, and the port that it found.
    followed: Arc<Mutex<(Instant, u16)>>,
}

impl Db {
    /// A pool of sessions that act as `service_role`. Connects on first use, so that a server that is away now is no error.
    pub fn lazy(to: &ConnectTo, max_connections: u32, acquire_limit: Duration) -> Self {
        let options = to.options().application_name("tributary");
        let followed = Arc::new(Mutex::new((Instant::now(), options.get_port())));
        let pool = pool::lazy(options, max_connections, acquire_limit.min(to.try_limit()));
        Self { pool, bus: Bus::default(), to: to.clone(), acquire_limit, followed }
    }

    /// Sessions beside this pool, on the same bus: for what must not wait behind work.
    pub fn sibling(&self, max_connections: u32) -> Self {
        Self { bus: self.bus.clone(), ..Self::lazy(&self.to, max_connections, SIBLING_LIMIT) }
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
        self.follow();
        // Boxed: it is large, and a part of every future that uses the database.
        Box::pin(async {
            tokio::select! {
                biased;
                acquired = Connection::acquire(&self.pool, self.acquire_limit) => acquired,
                never = self.keep_following() => match never {},
            }
        })
        .await
    }

    /// For callers that wait: the server may come back on another port meanwhile.
    async fn keep_following(&self) -> Infallible {
        if self.to.pid_file.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.follow();
        }
    }

    /// New sessions of the pool go to where the embedded server listens now. While it is away, to where it was last.
    fn follow(&self) {
        if self.to.pid_file.is_none() {
            return;
        }
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.0.elapsed() < LOOK_EVERY {
            return;
        }
        if let Some(port) = self.to.named_port().filter(|port| *port != followed.1) {
            tracing::info!("the embedded PostgreSQL listens on port {port} now");
            self.pool.set_connect_options(self.to.options.clone().port(port).application_name("tributary"));
            followed.1 = port;
        }
        followed.0 = Instant::now();
    }

    /// A transaction of the service's own.
    pub async fn begin(&self) -> Result<Tx> {
        self.begin_with("BEGIN").await
    }

    /// The same on a session that the caller keeps: for a loop that commits all the time, without the pool's looks in between.
    pub async fn begin_on<'c>(&self, conn: &'c mut Connection) -> Result<TxOn<'c>> {
        conn.begin("BEGIN").await?;
        Ok(TxOn { conn: Session::Lent(conn), notices: Vec::new(), bus: self.bus.clone() })
    }

    /// A transaction in the caller's name: row security shows it its own tenant and nothing else. One round trip.
    pub async fn begin_as(&self, caller: &Caller) -> Result<Tx> {
        let claims = caller.claims().to_string().replace('\'', "''");
        // standard_conforming_strings is on everywhere since 9.1; set here all the same, because the quoting relies on it.
        let begin = format!(
            "begin; set local standard_conforming_strings = on; set local role authenticated; set local request.jwt.claims = '{claims}'"
        );
        self.begin_with(&begin).await
    }

    async fn begin_with(&self, statement: &str) -> Result<Tx> {
        let mut conn = self.acquire().await?;
        conn.begin(statement).await?;
        Ok(Tx(TxOn { conn: Session::Own(conn), notices: Vec::new(), bus: self.bus.clone() }))
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
/// leaves its session to the pool, which repairs it or closes it, within a limit too.
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

    pub(crate) fn on_session(&mut self) -> &mut TxOn<'static> {
        &mut self.0
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
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}

/// A transaction, and what to tell once it has committed. Dropped without `commit` it rolls back and tells nobody.
pub struct TxOn<'c> {
    conn: Session<'c>,
    notices: Vec<Notice>,
    bus: Bus,
}

/// The session that a transaction is on.
enum Session<'c> {
    Own(Connection),
    Lent(&'c mut Connection),
}

impl Deref for Session<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        match self {
            Self::Own(conn) => conn,
            Self::Lent(conn) => conn,
        }
    }
}

impl DerefMut for Session<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        match self {
            Self::Own(conn) => conn,
            Self::Lent(conn) => conn,
        }
    }
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

    pub async fn commit(mut self) -> Result<()> {
        within(COMMIT_LIMIT, self.conn.commit()).await?;
        for notice in self.notices {
            self.bus.publish(notice);
        }
        Ok(())
    }

    pub async fn rollback(mut self) -> Result<()> {
        self.conn.rollback().await
    }
}

impl Deref for TxOn<'_> {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.conn
    }
}

impl DerefMut for TxOn<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.conn
    }
}

/// Ends a wait on the database that nothing else would end. The session it was on goes back to the pool, or is closed when it
/// does not answer.
pub async fn within<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(Error::TimedOut))
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgConnectOptions;

    use super::*;

    /// I6.
    #[tokio::test]
    async fn a_pool_goes_where_the_embedded_server_says_and_stays_there_while_it_says_nothing() {
        let file = std::env::temp_dir().join(format!("tributary-pid-{}", uuid::Uuid::now_v7().simple()));
        let listens_on = |port: u16| std::fs::write(&file, format!("7\n/data\n0\n{port}\n")).expect("written");
        listens_on(5_001);
        let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(5_001);
        let to = ConnectTo::embedded(options, file.clone());
        let db = Db::lazy(&to, 1, Duration::from_secs(1));
        let port_by_now = || {
            db.followed.lock().expect("no panic").0 -= LOOK_EVERY;
            db.follow();
            db.pool.connect_options().get_port()
        };
        assert_eq!((to.port(), port_by_now()), (5_001, 5_001));
        listens_on(5_002);
        assert_eq!((to.port(), port_by_now()), (5_002, 5_002));
        std::fs::write(&file, "8\n/data\n").expect("written"); // a server that begins to start
        assert_eq!(port_by_now(), 5_002);
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(port_by_now(), 5_002, "it went back to its first port");
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
