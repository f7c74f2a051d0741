//! Items that leave their queue to wait for longer than an hour, or for an event, and how they come back.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Notice, Op, ParkedId, TenantId};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use super::{Queue, Receipt, check_name};
use crate::crash::{self, Point};
use crate::{Result, Tx};

impl Queue {
    /// Takes a message out of the queue for this long, or (`None`) until an event or a person sends it again.
    pub(super) async fn park(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        receipt: Receipt,
        reason: &str,
        delay: Option<Duration>,
    ) -> Result<bool> {
        let parked = sqlx::query(AssertSqlSafe(self.0.park.clone()))
            .bind(at)
            .bind(receipt.msg_id)
            .bind(receipt.read_ct)
            .bind(ParkedId::new().0)
            .bind(reason)
            .bind(delay.map(|delay| delay.as_secs_f64()))
            .bind(self.name())
            .execute(conn)
            .await?;
        crash::at(Point::ParkAfter)?;
        Ok(parked.rows_affected() == 1)
    }

    /// Whether a message of the tenant's with these fields is parked.
    pub async fn has_parked(&self, conn: &mut PgConnection, tenant_id: TenantId, fields: &Value) -> Result<bool> {
        let sql = "select exists (select from tributary.parked where tenant_id = $1 and queue = $2 and message @> $3)";
        Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(self.name()).bind(fields).fetch_one(conn).await?)
    }
}

/// Sends parked items whose time has come back to their queues; returns how many. Their attempts go on counting.
pub async fn unpark_due(tx: &mut Tx, at: Option<DateTime<Utc>>, limit: i64) -> Result<usize> {
    let due: Vec<(Uuid, Uuid, String, Value, Value)> = sqlx::query_as(
        "delete from tributary.parked where (tenant_id, id) in (
             select tenant_id, id from tributary.parked
             where until <= coalesce($1, now()) and to_regclass('pgmq.q_' || queue) is not null -- a newer binary's queue stays
             order by until limit $2 for update skip locked)
         returning tenant_id, id, queue, message, headers",
    )
    .bind(at)
    .bind(limit)
    .fetch_all(&mut **tx)
    .await?;
    for (tenant_id, id, queue, message, headers) in &due {
        send_again(tx, at, TenantId(*tenant_id), ParkedId(*id), queue, message, headers).await?;
    }
    crash::at(Point::UnparkBeforeCommit)?;
    Ok(due.len())
}

pub(super) async fn unpark_one(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: ParkedId,
) -> Result<Option<i64>> {
    let taken: Option<(String, Value, Value)> = sqlx::query_as(
        "delete from tributary.parked where tenant_id = $1 and id = $2 returning queue, message, headers",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(&mut **tx)
    .await?;
    let Some((queue, message, headers)) = taken else { return Ok(None) };
    send_again(tx, at, tenant_id, id, &queue, &message, &headers).await.map(Some)
}

async fn send_again(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: ParkedId,
    queue: &str,
    message: &Value,
    headers: &Value,
) -> Result<i64> {
    check_name(queue)?;
    let sql = format!(
        "insert into pgmq.q_{queue} (vt, read_ct, enqueued_at, message, headers)
         values (coalesce($1, now()), coalesce(($3 ->> 'read_ct')::int, 0), coalesce(($3 ->> 'enqueued_at')::timestamptz, now()), $2,
             ($3 - array['read_ct', 'enqueued_at']) || jsonb_build_object('parked_as', $4::text))
         returning msg_id"
    );
    let sent = sqlx::query_scalar(AssertSqlSafe(sql)).bind(at).bind(message).bind(headers).bind(id.to_string());
    let msg_id = sent.fetch_one(&mut **tx).await?;
    tx.notify(Notice::lane(Some(tenant_id), queue, Op::Insert));
    Ok(msg_id)
}
