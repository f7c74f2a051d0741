//! The pool's sessions: how one is opened, checked before it is handed out, and given back. Each of these waits ends, or a silent
//! connection would keep its place in the pool for ever.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::{PoolConnection, PoolConnectionMetadata};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Row as _};
use tokio::time::timeout;

use crate::{Error, Result};

/// How long an idle session may take to show that it lives. Shorter than the limits of callers (`/readyz`: two seconds), so that the
/// caller who meets a dead one still gets a new one.
const CHECK_LIMIT: Duration = Duration::from_millis(1_500);
/// How long one try to get a session takes before the next one begins: longer than a handshake over a slow network. A server that is
/// coming back may accept a connection and never answer on it. A fifth of this is the longest pause between two tries to connect.
pub(crate) const TRY_LIMIT: Duration = Duration::from_secs(4);
/// The same for a server on this machine.
pub(crate) const LOCAL_TRY_LIMIT: Duration = Duration::from_secs(2);
/// The pause before the next try if the server went away during the last one.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long a session may take to end what its caller began and left.
const RETURN_LIMIT: Duration = Duration::from_secs(2);
/// For how long a session of a read-only server is used before a new one is opened: that one may lead to the server that writes.
const READ_ONLY_FOR: Duration = Duration::from_secs(5);

/// Set as statements, not as start-up options: poolers in front of a server refuse those. Our transactions are short; one that idles
/// belongs to a process that was stopped, and its locks keep its items from others. A statement whose caller has gone ends within two
/// seconds, where the server can see that (14 and later, not on Windows).
const SESSION: &str = "set role service_role; set statement_timeout = '30s'; set idle_in_transaction_session_timeout = '10s'; \
    do $$ begin set client_connection_check_interval = '2s'; exception when others then null; end $$";

/// A pool that connects on first use. Each try to get a session from it ends at the limit.
pub(crate) fn lazy(options: PgConnectOptions, max_connections: u32, try_limit: Duration) -> PgPool {
    let silence = Arc::new(Silence::default());
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(try_limit)
        .idle_timeout(Duration::from_secs(300))
        .after_connect(|conn, _| Box::pin(async move { sqlx::raw_sql(SESSION).execute(&mut *conn).await.map(|_| ()) }))
        .test_before_acquire(false)
        .before_acquire(move |conn, meta| {
            let silence = silence.clone();
            Box::pin(async move { is_usable(conn, &meta, &silence).await })
        })
        .connect_lazy_with(options)
}

/// Whether an idle session can be handed out. An error, too, makes the pool close it and open another.
async fn is_usable(conn: &mut PgConnection, meta: &PoolConnectionMetadata, silence: &Silence) -> sqlx::Result<bool> {
    if silence.is_since(meta.idle_for) {
        return Ok(false);
    }
    let check = sqlx::raw_sql("show transaction_read_only").fetch_one(&mut *conn);
    match timeout(CHECK_LIMIT, check).await {
        Ok(row) => Ok(row?.try_get::<String, _>(0)? == "off" || meta.age < READ_ONLY_FOR),
        Err(_) => {
            silence.noticed();
            Ok(false)
        }
    }
}

/// When a session was last found dead. Those that were idle by then have taken the same way, so each of them is closed unasked: their
/// callers would wait one after the other.
#[derive(Default)]
struct Silence(Mutex<Option<Instant>>);

impl Silence {
    fn noticed(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether one was found dead within this time.
    fn is_since(&self, ago: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() < ago)
    }
}

/// Whether a try to connect met a server that is ending or is not there yet. The pool itself waits for one that refuses or that says it
/// is starting; these it hands on.
fn is_between_servers(error: &sqlx::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotFound, UnexpectedEof};
    match error {
        // Not found: a server that ends removes its socket.
        sqlx::Error::Io(error) => {
            matches!(error.kind(), NotFound | ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof)
        }
        // Told to end, or ended because another session crashed.
        sqlx::Error::Database(reply) => matches!(reply.code().as_deref(), Some("57P01" | "57P02")),
        _ => false,
    }
}

/// A session outside any transaction, for a loop that makes many small statements. Goes back to the pool when it is dropped.
pub struct Connection {
    /// None once it is given back.
    session: Option<PoolConnection<Postgres>>,
    /// A transaction was begun on it, and is not known to have ended.
    is_open: bool,
}

const GIVEN_BACK: &str = "BUG: the session was given back already";

impl Connection {
    /// Tries until the limit. A server that goes away and comes back meanwhile costs its callers the time, and no error.
    pub(crate) async fn acquire(pool: &PgPool, limit: Duration) -> Result<Self> {
        let mut trouble = None;
        let acquired = timeout(limit, async {
            loop {
                match Self::try_acquire(pool).await {
                    Err(Error::Database(sqlx::Error::PoolTimedOut)) => {}
                    Err(Error::Database(error)) if is_between_servers(&error) => {
                        trouble = Some(error);
                        tokio::time::sleep(AGAIN_AFTER).await;
                    }
                    tried => return tried,
                }
            }
        })
        .await;
        acquired.unwrap_or_else(|_| Err(trouble.map_or(Error::TimedOut, Error::Database)))
    }

    async fn try_acquire(pool: &PgPool) -> Result<Self> {
        if pool.num_idle() > 0 || pool.size() >= pool.options().get_max_connections() {
            return Ok(Self::new(pool.acquire().await?));
        }
        // It will be opened, which takes up to eight round trips. The task goes on when its caller gives up, and leaves the session to
        // the next one; otherwise every caller of a far server would begin anew and none would finish.
        let pool = pool.clone();
        let opened = tokio::spawn(async move { pool.acquire().await.map(Self::new) });
        Ok(opened.await.map_err(|_| Error::TimedOut)??)
    }

    fn new(session: PoolConnection<Postgres>) -> Self {
        Self { session: Some(session), is_open: false }
    }

    /// Begins a transaction by this statement. What is left of an earlier one is rolled back.
    pub(crate) async fn begin(&mut self, statement: &str) -> Result<()> {
        if self.is_open {
            self.rollback().await?;
        }
        self.is_open = true;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut **self).await?;
        Ok(())
    }

    pub(crate) async fn commit(&mut self) -> Result<()> {
        self.end("COMMIT").await
    }

    pub(crate) async fn rollback(&mut self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    async fn end(&mut self, statement: &'static str) -> Result<()> {
        sqlx::raw_sql(statement).execute(&mut **self).await?;
        self.is_open = false;
        Ok(())
    }

    /// Closes it: its state is unknown, so nobody else gets it.
    pub fn discard(mut self) {
        drop(self.session.take().map(PoolConnection::detach));
    }
}

impl Drop for Connection {
    /// The pool asks a session whether it lives before it takes it back, without a limit. So this has one, and a session that says
    /// nothing is closed: its place in the pool is free for another.
    fn drop(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            drop(session.detach());
            return;
        };
        let is_open = self.is_open;
        runtime.spawn(async move {
            if is_open {
                let ended = timeout(RETURN_LIMIT, sqlx::raw_sql("ROLLBACK").execute(&mut *session)).await;
                if !matches!(ended, Ok(Ok(_))) {
                    drop(session.detach());
                    return;
                }
            }
            // Dropped at the limit, this closes the session and frees its place.
            let _ = timeout(RETURN_LIMIT, session.return_to_pool()).await;
        });
    }
}

impl Deref for Connection {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        self.session.as_ref().expect(GIVEN_BACK)
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.session.as_mut().expect(GIVEN_BACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_condemns_the_sessions_that_were_idle_then_and_no_later_ones() {
        let silence = Silence::default();
        assert!(!silence.is_since(Duration::from_secs(3_600)), "nothing was silent yet");
        silence.noticed();
        assert!(silence.is_since(Duration::from_secs(1)));
        assert!(!silence.is_since(Duration::ZERO), "given back after it");
    }

    /// I6.
    #[tokio::test]
    async fn a_caller_is_held_while_the_server_has_no_socket_and_then_told_why() {
        let nowhere = std::env::temp_dir().join("tributary-no-such-folder");
        let pool = lazy(PgConnectOptions::new_without_pgpass().socket(nowhere), 1, TRY_LIMIT);
        let (begun, limit) = (Instant::now(), Duration::from_millis(300));
        let told = Connection::acquire(&pool, limit).await.err();
        let is_why = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        assert!(matches!(&told, Some(Error::Database(sqlx::Error::Io(error))) if is_why(error)), "{told:?}");
        assert!(begun.elapsed() >= limit, "it was told after {:?}", begun.elapsed());
    }
}
