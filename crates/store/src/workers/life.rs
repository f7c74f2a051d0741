//! A worker's life as PostgreSQL sees it: a session of its own that holds a lock. The session of a process that was killed ends with it, so others
//! find out within seconds and need not wait for ten missing heartbeats. A machine that lost its power closes nothing: for that one the heartbeats
//! decide.

use sqlx::PgConnection;

use super::Found;
use crate::{Db, Result};

/// Any number: it keeps these locks apart from others.
const SEED: i64 = 0x6c69_6665;

/// The session of this process, and the name whose lock it holds.
pub struct Life {
    name: String,
    session: Option<PgConnection>,
    is_locked: bool,
}

impl Life {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), session: None, is_locked: false }
    }

    /// Makes sure that the lock is held, and returns the workers whose own session has ended without a goodbye and which missed a heartbeat since.
    /// None: the session is new, so the server may have dropped everyone's.
    pub async fn look(&mut self, db: &Db) -> Result<Option<Vec<Found>>> {
        // Taken out for the question: a session that does not answer is dropped, also when the caller stops waiting.
        if let Some(mut session) = self.session.take().filter(|_| self.is_locked)
            && let Ok(found) = ended(&mut session).await
        {
            self.session = Some(session);
            return Ok(Some(found));
        }
        self.is_locked = false;
        let mut session = db.to().connect("tributary life").await?;
        sqlx::raw_sql("set role service_role; set statement_timeout = '5s'").execute(&mut session).await?;
        // Without waiting: for the server the broken session may not have ended yet. Then its lock still speaks for us.
        let sql = "select pg_try_advisory_lock(hashtextextended($1, $2))";
        self.is_locked = sqlx::query_scalar(sql).bind(&self.name).bind(SEED).fetch_one(&mut session).await?;
        self.session = Some(session);
        Ok(None)
    }
}

async fn ended(conn: &mut PgConnection) -> Result<Vec<Found>> {
    Ok(sqlx::query_as(include_str!("../sql/workers_ended.sql")).bind(SEED).fetch_all(conn).await?)
}
