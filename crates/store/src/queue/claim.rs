//! Claims messages and keeps hold of them.

use std::sync::PoisonError;

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, PgConnection};

use super::{Queue, Receipt};
use crate::Result;
use crate::crash::{self, Point};

/// The share that a message belongs to: a number per tenant, and another one for its history. Tenants whose numbers are equal by chance
/// share one turn. An index holds it: never changed.
pub(super) const SHARE: &str = "((hashtext(coalesce(message ->> 'tenant_id', ''))::bigint & 2147483647) \
    + case when headers ->> 'priority' = 'history' then 4294967296 else 0 end)";
/// Shares of history begin here.
pub(super) const HISTORY: i64 = 1 << 32;

/// After which share the last claim of this process stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    live: i64,
    history: i64,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { live: -1, history: HISTORY - 1 }
    }
}

/// A claimed message, and where the next claim begins.
#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    claimed: Claimed,
    live_after: i64,
    history_after: i64,
}

/// A claimed message.
#[derive(Debug, sqlx::FromRow)]
pub struct Claimed {
    pub msg_id: i64,
    pub read_ct: i32,
    pub waits: i32,
    /// How many holders died or hung while they had it.
    pub lapses: i32,
    pub enqueued_at: DateTime<Utc>,
    pub message: serde_json::Value,
}

impl Claimed {
    pub fn receipt(&self) -> Receipt {
        Receipt { msg_id: self.msg_id, read_ct: self.read_ct }
    }

    /// Which attempt this is, from 1; waits do not count.
    pub fn attempt(&self) -> i32 {
        self.read_ct - self.waits
    }
}

impl Queue {
    /// Claims up to `limit` due messages: live ones before history, every tenant its share, of each tenant the longest due first. Two
    /// claims never share a message. None are due when it returns none.
    pub async fn claim(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        limit: u32,
        lease_secs: u32,
        by: &str,
    ) -> Result<Vec<Claimed>> {
        let cursor = *self.0.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(self.0.claim.clone()))
            .bind(at)
            .bind(i64::from(limit))
            .bind(f64::from(lease_secs))
            .bind(by)
            .bind(cursor.live)
            .bind(cursor.history)
            .fetch_all(conn)
            .await?;
        if let Some(row) = rows.first() {
            let next = Cursor { live: row.live_after, history: row.history_after };
            *self.0.cursor.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
        Ok(rows.into_iter().map(|row| row.claimed).collect())
    }

    /// Extends the leases of what is still ours and returns the receipts that are lost: claimed by another, or ended by a person.
    pub async fn extend(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        receipts: &[Receipt],
        lease_secs: u32,
    ) -> Result<Vec<Receipt>> {
        crash::at(Point::ExtendBefore)?;
        let (ids, counts) = columns(receipts);
        let kept: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(self.0.extend.clone()))
            .bind(at)
            .bind(&ids)
            .bind(&counts)
            .bind(f64::from(lease_secs))
            .fetch_all(&mut *conn)
            .await?;
        if kept.len() == receipts.len() {
            return Ok(Vec::new());
        }
        // A row was skipped because its own effect holds it, or it is lost: a plain read, which waits for nobody, tells.
        let there: Vec<(i64, i32)> =
            sqlx::query_as(AssertSqlSafe(self.0.held.clone())).bind(&ids).fetch_all(conn).await?;
        Ok(receipts.iter().copied().filter(|r| !there.contains(&(r.msg_id, r.read_ct))).collect())
    }

    /// The first statement of a part of an item's effect: extends its lease in it. `false`: roll back, it is not ours. What commits is
    /// progress, so the attempt that made it counts as the first again.
    pub async fn advance(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        receipt: Receipt,
        lease_secs: u32,
    ) -> Result<bool> {
        let extended = sqlx::query(AssertSqlSafe(self.0.advance.clone()))
            .bind(at)
            .bind(receipt.msg_id)
            .bind(receipt.read_ct)
            .bind(f64::from(lease_secs))
            .execute(conn)
            .await?;
        Ok(extended.rows_affected() == 1)
    }

    /// Makes what these workers hold due at once: they are dead. What they did counts as an attempt, and as a lapse.
    pub async fn take_over(&self, conn: &mut PgConnection, at: Option<DateTime<Utc>>, dead: &[String]) -> Result<u64> {
        let sql = format!(
            "update pgmq.q_{} set vt = coalesce($1, now()) where vt > coalesce($1, now()) and headers ->> 'by' = any($2)",
            self.name()
        );
        Ok(sqlx::query(AssertSqlSafe(sql)).bind(at).bind(dead).execute(conn).await?.rows_affected())
    }

    /// Since when the longest waiting message is or will be due.
    pub async fn oldest_due(&self, conn: &mut PgConnection) -> Result<Option<DateTime<Utc>>> {
        Ok(sqlx::query_scalar(AssertSqlSafe(self.0.oldest_due.clone())).fetch_one(conn).await?)
    }
}

pub(super) fn columns(receipts: &[Receipt]) -> (Vec<i64>, Vec<i32>) {
    receipts.iter().map(|receipt| (receipt.msg_id, receipt.read_ct)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_no_attempts() {
        for (read_ct, waits, attempt) in [(1, 0, 1), (5, 0, 5), (5, 4, 1), (5, 2, 3)] {
            let claimed = Claimed {
                msg_id: 7,
                read_ct,
                waits,
                lapses: 0,
                enqueued_at: DateTime::UNIX_EPOCH,
                message: serde_json::Value::Null,
            };
            assert_eq!(claimed.attempt(), attempt, "{read_ct} claims, {waits} waits");
            assert_eq!((claimed.receipt().msg_id, claimed.receipt().read_ct), (7, read_ct));
        }
    }
}
