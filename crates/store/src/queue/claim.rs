//! Claims messages and keeps hold of them.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, FromRow as _, PgConnection, Row as _};

use super::{Queue, Receipt};
use crate::Result;
use crate::crash::{self, Point};

/// The share that a message belongs to: a number per tenant, and another one for its history. Tenants whose numbers are equal by chance
/// share one turn. An index holds it: never changed.
pub const SHARE: &str = "((hashtext(coalesce(message ->> 'tenant_id', ''))::bigint & 2147483647) \
    + case when headers ->> 'priority' = 'history' then 4294967296 else 0 end)";
/// How often a claim looks further that met only messages which other sessions hold.
const MOST_LOOKS: usize = 16;
/// Shares of history begin here.
const HISTORY: i64 = 1 << 32;

/// Where the next claim of a part of the shares begins.
#[derive(Debug)]
pub(super) struct Turn {
    /// Shares between these two, both excluded.
    bounds: (i64, i64),
    /// After which share the last claim of this process stopped.
    stopped_after: AtomicI64,
}

impl Turn {
    const fn between(low: i64, high: i64) -> Self {
        Self { bounds: (low, high), stopped_after: AtomicI64::new(low) }
    }

    pub(super) const fn of_live() -> Self {
        Self::between(-1, HISTORY)
    }

    pub(super) const fn of_history() -> Self {
        Self::between(HISTORY - 1, i64::MAX)
    }
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
    /// Claims up to `limit` due messages: every tenant its share, of each tenant the longest due first. Messages of history are claimed
    /// only when no live ones are. Two claims never share a message. When it returns none, no message is due that nobody else holds.
    pub async fn claim(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        limit: u32,
        lease_secs: u32,
        by: &str,
    ) -> Result<Vec<Claimed>> {
        for turn in &self.0.turns {
            for _ in 0..MOST_LOOKS {
                let rows = sqlx::query(AssertSqlSafe(self.0.claim.clone()))
                    .bind(at)
                    .bind(i64::from(limit))
                    .bind(f64::from(lease_secs))
                    .bind(by)
                    .bind(turn.stopped_after.load(Ordering::Relaxed))
                    .bind(turn.bounds.0)
                    .bind(turn.bounds.1)
                    .fetch_all(&mut *conn)
                    .await?;
                let Some(first) = rows.first() else { break };
                turn.stopped_after.store(first.try_get("stopped_after")?, Ordering::Relaxed);
                if first.try_get::<Option<i64>, _>("msg_id")?.is_some() {
                    return Ok(rows.iter().map(Claimed::from_row).collect::<sqlx::Result<_>>()?);
                }
                if first.try_get("is_all")? {
                    break;
                }
            }
        }
        Ok(Vec::new())
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
        let taken = sqlx::query(AssertSqlSafe(self.0.take_over.clone())).bind(at).bind(dead).execute(conn).await?;
        Ok(taken.rows_affected())
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
