//! Settles claims: done, handed back, failed or dead. Every statement names its receipt; `false` or a missing id means that the
//! receipt was no longer valid and nothing was changed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::ItemState;
use sqlx::{AssertSqlSafe, PgConnection};

use super::claim::columns;
use super::{Queue, Receipt};
use crate::Result;
use crate::crash::{self, Point};

/// How one or more claims end.
#[derive(Debug)]
pub enum Settlement<'a> {
    /// Acknowledged: the messages are deleted.
    Finish(&'a [Receipt]),
    /// Handed back, each due after its delay, for the reason given. Costs no attempt.
    Wait(&'a [(Receipt, Duration)], &'a str),
    /// A failed attempt, due again after a delay, with its error.
    Fail(Receipt, Duration, &'a str),
    /// Leaves the queue, for a reason, for so long or (`None`) until an event.
    Park(Receipt, &'a str, Option<Duration>),
    /// Ends in the archive, in a final state, for a reason.
    Bury(Receipt, ItemState, &'a str),
}

impl Settlement<'_> {
    /// The receipts it names.
    pub fn receipts(&self) -> Vec<Receipt> {
        match self {
            Self::Finish(receipts) => receipts.to_vec(),
            Self::Wait(back, _) => back.iter().map(|(receipt, _)| *receipt).collect(),
            Self::Fail(receipt, ..) | Self::Park(receipt, ..) | Self::Bury(receipt, ..) => vec![*receipt],
        }
    }
}

impl Queue {
    /// Records a settlement; returns how many of its receipts were still good.
    pub async fn settle(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        settlement: &Settlement<'_>,
    ) -> Result<usize> {
        Ok(match *settlement {
            Settlement::Finish(receipts) => self.finish_many(conn, receipts).await?.len(),
            Settlement::Wait(back, reason) => self.wait(conn, at, back, reason).await?.len(),
            Settlement::Fail(receipt, delay, error) => usize::from(self.fail(conn, at, receipt, delay, error).await?),
            Settlement::Park(receipt, reason, delay) => usize::from(self.park(conn, at, receipt, reason, delay).await?),
            Settlement::Bury(receipt, state, reason) => usize::from(self.bury(conn, at, receipt, state, reason).await?),
        })
    }

    /// The first statement of an effect's transaction: acknowledges in it. `false`: roll back, it is not ours.
    pub async fn finish(&self, conn: &mut PgConnection, receipt: Receipt) -> Result<bool> {
        let gone = sqlx::query(AssertSqlSafe(self.0.finish.clone()))
            .bind(receipt.msg_id)
            .bind(receipt.read_ct)
            .execute(conn)
            .await?;
        Ok(gone.rows_affected() == 1)
    }

    /// The first statement of a transaction that writes about an item without moving it. `false`: roll back, it is not ours.
    pub async fn lock(&self, conn: &mut PgConnection, receipt: Receipt) -> Result<bool> {
        let ours = sqlx::query(AssertSqlSafe(self.0.lock.clone())).bind(receipt.msg_id).bind(receipt.read_ct);
        Ok(ours.fetch_optional(conn).await?.is_some())
    }

    /// Acknowledges many at once; returns the ids that were still ours.
    pub async fn finish_many(&self, conn: &mut PgConnection, receipts: &[Receipt]) -> Result<Vec<i64>> {
        let (ids, counts) = columns(receipts);
        Ok(sqlx::query_scalar(AssertSqlSafe(self.0.finish_many.clone())).bind(ids).bind(counts).fetch_all(conn).await?)
    }

    /// Hands messages back, each due after its delay. Costs no attempt.
    async fn wait(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        back: &[(Receipt, Duration)],
        reason: &str,
    ) -> Result<Vec<i64>> {
        let receipts: Vec<Receipt> = back.iter().map(|(receipt, _)| *receipt).collect();
        let secs: Vec<f64> = back.iter().map(|(_, delay)| delay.as_secs_f64()).collect();
        let (ids, counts) = columns(&receipts);
        let done = sqlx::query_scalar(AssertSqlSafe(self.0.wait.clone()))
            .bind(at)
            .bind(ids)
            .bind(counts)
            .bind(secs)
            .bind(reason)
            .fetch_all(conn)
            .await?;
        Ok(done)
    }

    /// Records a failed attempt; the message is due again after `delay`.
    async fn fail(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        receipt: Receipt,
        delay: Duration,
        error: &str,
    ) -> Result<bool> {
        crash::at(Point::FailBefore)?;
        let failed = sqlx::query(AssertSqlSafe(self.0.fail.clone()))
            .bind(at)
            .bind(receipt.msg_id)
            .bind(receipt.read_ct)
            .bind(delay.as_secs_f64())
            .bind(error)
            .execute(conn)
            .await?;
        Ok(failed.rows_affected() == 1)
    }

    /// Moves a message to the archive, where a person finds it.
    async fn bury(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        receipt: Receipt,
        state: ItemState,
        reason: &str,
    ) -> Result<bool> {
        let buried = sqlx::query(AssertSqlSafe(self.0.bury.clone()))
            .bind(at)
            .bind(receipt.msg_id)
            .bind(receipt.read_ct)
            .bind(state.as_str())
            .bind(reason)
            .execute(conn)
            .await?;
        crash::at(Point::BuryAfter)?;
        Ok(buried.rows_affected() == 1)
    }
}
