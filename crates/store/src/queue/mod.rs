//! Every statement our runtime runs on pgmq's tables. pgmq's own functions serve create, send and outsiders: its read uses no
//! index on time, and its delete has no fence.
//!
//! **Shares.** A claim takes live items before history and gives every tenant with due items its share of the batch, so that a tenant
//! who floods a lane does not keep others waiting. `queue_claim.sql` walks from tenant to tenant by an index and goes on where the
//! last claim of this process stopped.
//!
//! **The fence.** `read_ct` only grows. A receipt is (msg_id, read_ct); every write after a claim names it, so a worker that
//! overslept its lease touches no row. Attempts = read_ct − `headers.waits`, counted at claim: a worker that dies while holding
//! an item has used one.
//!
//! **Headers** hold what pages show: `by` and `since` while held; `waits`; `error` and `error_at` of the last failure; in the
//! archive `state`, `reason` and `ended_at`. `priority` is `history` or absent.

mod claim;
mod items;
mod park;
mod settle;

use std::sync::Arc;

use domain::{Notice, Op, Priority, TenantId};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};

pub use claim::{Claimed, SHARE};
pub use items::{ARCHIVED_OF, ARCHIVED_STATE, Counts, Item, MOST_COUNTED, MOST_SCANNED, Page};
pub use park::unpark_due;
pub use settle::Settlement;

use claim::Turn;

use crate::{Error, Result, Tx, indexes};

/// A claim's receipt: the right to settle this message, until somebody else claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    pub msg_id: i64,
    pub read_ct: i32,
}

/// One lane's queue: the statements on its tables, and where its next claim begins. Cloning shares both.
#[derive(Clone)]
pub struct Queue(Arc<Statements>);

struct Statements {
    name: String,
    /// Of live messages, and of history.
    turns: [Turn; 2],
    send: Arc<str>,
    claim: Arc<str>,
    extend: Arc<str>,
    advance: Arc<str>,
    held: Arc<str>,
    lock: Arc<str>,
    finish: Arc<str>,
    finish_many: Arc<str>,
    wait: Arc<str>,
    fail: Arc<str>,
    bury: Arc<str>,
    park: Arc<str>,
    list: Arc<str>,
    counts: Arc<str>,
    depths: Arc<str>,
    retry_now: Arc<str>,
    replay: Arc<str>,
    end: Arc<str>,
    mark_archived: Arc<str>,
    take_over: Arc<str>,
    oldest_due: Arc<str>,
    dead_of: Arc<str>,
}

impl Queue {
    pub fn new(name: &str) -> Result<Self> {
        check_name(name)?;
        let on = |sql: &str| -> Arc<str> {
            let sql = sql.replace("{q}", &format!("pgmq.q_{name}")).replace("{a}", &format!("pgmq.a_{name}"));
            let sql = sql.replace("{share}", SHARE).replace("{archived_of}", items::ARCHIVED_OF);
            sql.replace("{archived_state}", items::ARCHIVED_STATE).into()
        };
        Ok(Self(Arc::new(Statements {
            name: name.to_owned(),
            turns: [Turn::of_live(), Turn::of_history()],
            send: on(include_str!("../sql/queue_send.sql")),
            claim: on(include_str!("../sql/queue_claim.sql")),
            extend: on(include_str!("../sql/queue_extend.sql")),
            advance: on(include_str!("../sql/queue_advance.sql")),
            held: on("select msg_id, read_ct from {q} where msg_id = any($1)"),
            lock: on("select msg_id from {q} where msg_id = $1 and read_ct = $2 for update"),
            finish: on("delete from {q} where msg_id = $1 and read_ct = $2"),
            finish_many: on(include_str!("../sql/queue_finish_many.sql")),
            wait: on(include_str!("../sql/queue_wait.sql")),
            fail: on(include_str!("../sql/queue_fail.sql")),
            bury: on(include_str!("../sql/queue_bury.sql")),
            park: on(include_str!("../sql/queue_park.sql")),
            list: on(include_str!("../sql/queue_list.sql")),
            counts: on(include_str!("../sql/queue_counts.sql")),
            depths: on(include_str!("../sql/queue_depths.sql")),
            retry_now: on(include_str!("../sql/queue_retry_now.sql")),
            replay: on(include_str!("../sql/queue_replay.sql")),
            end: on(include_str!("../sql/queue_end.sql")),
            mark_archived: on(include_str!("../sql/queue_mark_archived.sql")),
            take_over: on(include_str!("../sql/queue_take_over.sql")),
            oldest_due: on(include_str!("../sql/queue_oldest_due.sql")),
            dead_of: on(include_str!("../sql/queue_dead_of.sql")),
        })))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The statement that claims, for tests of its plan.
    pub fn claim_sql(&self) -> &str {
        &self.0.claim
    }

    /// The statements of pages, for tests of their plans.
    pub fn page_sql(&self) -> [&str; 2] {
        [&self.0.counts, &self.0.list]
    }

    /// The statements of the task `watch`, for tests of their plans.
    pub fn watch_sql(&self) -> [&str; 2] {
        [&self.0.dead_of, &self.0.oldest_due]
    }

    /// Sends live messages in the caller's transaction; lanes are woken after its commit. A message holds ids, never bodies.
    pub async fn send(&self, tx: &mut Tx, tenant_id: TenantId, messages: &[impl Serialize]) -> Result<Vec<i64>> {
        self.send_as(tx, tenant_id, Priority::Live, messages).await
    }

    /// The same for messages of either priority. They keep it when they are retried, parked or replayed.
    pub async fn send_as(
        &self,
        tx: &mut Tx,
        tenant_id: TenantId,
        priority: Priority,
        messages: &[impl Serialize],
    ) -> Result<Vec<i64>> {
        let bodies = messages.iter().map(|message| body(tenant_id, message)).collect::<Result<Vec<Value>>>()?;
        if bodies.is_empty() {
            return Ok(Vec::new());
        }
        let headers = (priority != Priority::Live).then(|| json!({ "priority": priority }));
        let sent = sqlx::query_scalar(AssertSqlSafe(self.0.send.clone())).bind(bodies).bind(headers);
        let ids = sent.fetch_all(&mut **tx).await?;
        tx.notify(Notice::lane(Some(tenant_id), self.name(), Op::Insert));
        Ok(ids)
    }

    /// Sends live messages of several tenants by one statement.
    pub async fn send_each(&self, tx: &mut Tx, messages: &[(TenantId, impl Serialize)]) -> Result<()> {
        let bodies =
            messages.iter().map(|(tenant_id, message)| body(*tenant_id, message)).collect::<Result<Vec<Value>>>()?;
        if bodies.is_empty() {
            return Ok(());
        }
        sqlx::query(AssertSqlSafe(self.0.send.clone())).bind(bodies).bind(None::<Value>).execute(&mut **tx).await?;
        tx.notify_all(messages.iter().map(|(tenant_id, _)| Notice::lane(Some(*tenant_id), self.name(), Op::Insert)));
        Ok(())
    }
}

/// A message as the queue holds it: with its tenant.
fn body(tenant_id: TenantId, message: &impl Serialize) -> Result<Value> {
    let mut body = serde_json::to_value(message).map_err(|error| Error::Refused { what: error.to_string() })?;
    let Some(fields) = body.as_object_mut() else {
        return Err(Error::Refused { what: "a message must be an object of ids".into() });
    };
    fields.insert("tenant_id".into(), tenant_id.to_string().into());
    Ok(body)
}

impl Queue {
    /// Whether the queue holds a message with these fields: for work of which one is enough.
    pub async fn holds(&self, conn: &mut PgConnection, fields: &Value) -> Result<bool> {
        let sql = format!("select exists (select from pgmq.q_{} where message @> $1)", self.name());
        Ok(sqlx::query_scalar(AssertSqlSafe(sql)).bind(fields).fetch_one(conn).await?)
    }

    /// The same, or such a message was given up and nobody has decided about it.
    pub async fn holds_or_buried(&self, conn: &mut PgConnection, message: &Value) -> Result<bool> {
        let sql = format!(
            "select exists (select from pgmq.q_{0} where message @> $1)
                 or exists (select from pgmq.a_{0} where message @> $1 and coalesce(headers ->> 'state', 'dead') = 'dead')",
            self.name()
        );
        Ok(sqlx::query_scalar(AssertSqlSafe(sql)).bind(message).fetch_one(conn).await?)
    }
}

/// pgmq allows 47 characters; ours are lower case, so that no quoting is ever needed.
fn check_name(name: &str) -> Result<()> {
    let fits = name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if fits { Ok(()) } else { Err(Error::Refused { what: format!("{name:?} is no lane: a-z, 0-9 and _ only") }) }
}

/// Creates a lane's queue where it is missing, and the index that claims go by. Autovacuum is told to follow closely: every claim has to
/// step over the queue's dead rows. One that is there costs a single question, because every start of `up` asks it.
pub(crate) async fn create(conn: &mut PgConnection, name: &str) -> Result<()> {
    check_name(name)?;
    let (exists, has_indexes): (bool, bool) = sqlx::query_as(
        "select to_regclass('pgmq.q_' || $1) is not null and to_regclass('pgmq.a_' || $1) is not null,
                to_regclass('pgmq.q_' || $1 || '_vt_idx') is null and 2 = (
                    select count(*) from pg_index i where i.indisvalid and i.indexrelid in (
                        to_regclass('pgmq.q_' || $1 || '_share_idx'), to_regclass('pgmq.a_' || $1 || '_state_idx')))",
    )
    .bind(name)
    .fetch_one(&mut *conn)
    .await?;
    if exists && has_indexes {
        return Ok(());
    }
    let index = (format!("q_{name}_share_idx"), format!("pgmq.q_{name} ({}, vt)", SHARE));
    let archive = (
        format!("a_{name}_state_idx"),
        format!("pgmq.a_{name} (({}), ({}), msg_id)", items::ARCHIVED_OF, items::ARCHIVED_STATE),
    );
    if exists {
        // A queue of an older binary, which may hold many messages: everybody goes on sending.
        sqlx::raw_sql("set lock_timeout = 0").execute(&mut *conn).await?;
        for (name, on) in [&index, &archive] {
            indexes::build_on(conn, "pgmq", name, on).await?;
        }
        let unused = format!("drop index concurrently if exists pgmq.q_{name}_vt_idx");
        sqlx::raw_sql(AssertSqlSafe(unused)).execute(&mut *conn).await?;
        sqlx::raw_sql("set lock_timeout = '1s'").execute(&mut *conn).await?;
    } else {
        // One string is one transaction: a queue is there with all that belongs to it, or not at all.
        let made = format!(
            "select pgmq.create('{name}');
             alter table pgmq.q_{name} set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
                 autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1, fillfactor = 70);
             grant select, insert, update, delete on pgmq.q_{name}, pgmq.a_{name} to service_role;
             grant insert on pgmq.q_{name} to tributary_owner; -- whose triggers send
             drop index if exists pgmq.q_{name}_vt_idx; -- pgmq's: every claim would write to it, and none uses it
             create index {} on {};
             create index {} on {}",
            index.0, index.1, archive.0, archive.1
        );
        sqlx::raw_sql(AssertSqlSafe(made)).execute(conn).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_become_part_of_a_statement() {
        assert!(Queue::new("upkeep").is_ok());
        for bad in ["", "Upkeep", "1st", "a-b", "a;drop table x", "a b", &"a".repeat(41), "é"] {
            assert!(Queue::new(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
