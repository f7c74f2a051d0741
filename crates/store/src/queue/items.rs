//! Items as people see them: counted, listed, inspected, retried, skipped, cancelled. Always within one tenant.

use chrono::{DateTime, Utc};
use domain::item::Action;
use domain::{Caller, ItemId, ItemState, Notice, Op, ParkedId};
use serde::Serialize;
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use uuid::Uuid;

use super::{Queue, park};
use crate::{Error, Result, Tx};

#[derive(Clone, Debug, Serialize)]
pub struct Item {
    pub id: String,
    pub lane: String,
    pub state: ItemState,
    pub attempts: i32,
    pub waits: i32,
    pub enqueued_at: DateTime<Utc>,
    /// When it is next due; for a held item, when its lease ends. None: waits for an event or a person.
    pub due_at: Option<DateTime<Utc>>,
    pub held_by: Option<String>,
    pub held_since: Option<DateTime<Utc>>,
    pub error: Option<String>,
    pub error_at: Option<DateTime<Utc>>,
    pub reason: Option<String>,
    pub ended_at: Option<DateTime<Utc>>,
    pub message: Value,
}

/// The tenant of an archived item, and its state, as the index of the archive has them: never changed.
pub const ARCHIVED_OF: &str = "coalesce(message ->> 'tenant_id', '')";
pub const ARCHIVED_STATE: &str = "coalesce(headers ->> 'state', 'dead')";

/// So many rows are read for the metrics of a queue.
pub const MOST_SCANNED: i64 = 20_000;

/// So many items of a state are counted, and no more: a page tells "1,000+", and costs the same however many wait.
pub const MOST_COUNTED: i64 = 1_000;

/// The number of items in each state, and since when the oldest waiting one is due. A number of [`MOST_COUNTED`] or more means "at least".
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    pub lane: String,
    pub waiting: i64,
    pub working: i64,
    pub failed: i64,
    pub parked: i64,
    pub dead: i64,
    pub skipped: i64,
    pub cancelled: i64,
    pub oldest_due: Option<DateTime<Utc>>,
}

impl Counts {
    pub fn of(&self, state: ItemState) -> i64 {
        match state {
            ItemState::Waiting => self.waiting,
            ItemState::Working => self.working,
            ItemState::Failed => self.failed,
            ItemState::Parked => self.parked,
            ItemState::Dead => self.dead,
            ItemState::Skipped => self.skipped,
            ItemState::Cancelled => self.cancelled,
        }
    }
}

/// Which part of a list to show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page {
    pub state: Option<ItemState>,
    /// Only what comes after this one: the last of the page before. Parked items come first, then messages, each newest first.
    pub before: Option<ItemId>,
    pub limit: i64,
}

impl Queue {
    pub async fn counts(&self, conn: &mut PgConnection, at: Option<DateTime<Utc>>, caller: &Caller) -> Result<Counts> {
        let rows: Vec<(String, i64, Option<DateTime<Utc>>)> = sqlx::query_as(AssertSqlSafe(self.0.counts.clone()))
            .bind(at)
            .bind(caller.tenant_id.to_string())
            .bind(caller.operates())
            .bind(MOST_COUNTED)
            .fetch_all(&mut *conn)
            .await?;
        let parked = "select count(*) from (select from tributary.parked where tenant_id = $1 and queue = $2 limit $3) some_parked";
        let parked: i64 = sqlx::query_scalar(parked)
            .bind(caller.tenant_id.0)
            .bind(self.name())
            .bind(MOST_COUNTED)
            .fetch_one(conn)
            .await?;
        let mut counts = Counts { lane: self.name().to_owned(), parked, ..Counts::default() };
        for (state, n, oldest) in rows {
            match crate::word(state)? {
                ItemState::Waiting => (counts.waiting, counts.oldest_due) = (n, oldest),
                ItemState::Working => counts.working = n,
                ItemState::Failed => counts.failed = n,
                ItemState::Skipped => counts.skipped = n,
                ItemState::Cancelled => counts.cancelled = n,
                ItemState::Dead => counts.dead = n,
                ItemState::Parked => counts.parked += n,
            }
        }
        Ok(counts)
    }

    /// Counts the items of each of these tenants that were given up, up to [`MOST_COUNTED`]; tenants without any are left out. An empty name stands
    /// for the items of no tenant.
    pub async fn dead_of(&self, conn: &mut PgConnection, tenants: &[String]) -> Result<Vec<(String, i64)>> {
        let counted = sqlx::query_as(AssertSqlSafe(self.0.dead_of.clone())).bind(tenants).bind(MOST_COUNTED);
        Ok(counted.fetch_all(conn).await?)
    }

    /// The number of items in each state, over all tenants: for metrics, never shown to a tenant. Counted in queues of up to [`MOST_SCANNED`]
    /// items; of a longer one the first so many, and the waiting ones are as many as the server's statistics know of.
    pub async fn depths(&self, conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<Vec<(ItemState, i64)>> {
        let rows: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(self.0.depths.clone()))
            .bind(at)
            .bind(self.name())
            .bind(MOST_SCANNED)
            .fetch_all(conn)
            .await?;
        rows.into_iter().map(|(state, n)| Ok((crate::word(state)?, n))).collect()
    }

    pub async fn list(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        caller: &Caller,
        page: Page,
    ) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        let (parked_before, messages_before) = match page.before {
            None => (None, None),
            Some(ItemId::Parked(id)) => (Some(id), None),
            Some(ItemId::Message(id)) => (None, Some(id)),
        };
        if messages_before.is_none() && matches!(page.state, None | Some(ItemState::Parked)) {
            items = self.parked(conn, caller, None, parked_before, page.limit).await?;
        }
        let room = page.limit - i64::try_from(items.len()).unwrap_or(i64::MAX);
        if page.state != Some(ItemState::Parked) && room > 0 {
            let page = Page { limit: room, ..page };
            items.extend(self.messages(conn, at, caller, page, messages_before, None).await?);
        }
        Ok(items)
    }

    pub async fn get(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        caller: &Caller,
        id: ItemId,
    ) -> Result<Option<Item>> {
        let found = match id {
            ItemId::Message(id) => {
                self.messages(conn, at, caller, Page { limit: 1, ..Page::default() }, None, Some(id)).await?
            }
            ItemId::Parked(id) => self.parked(conn, caller, Some(id), None, 1).await?,
        };
        Ok(found.into_iter().next())
    }

    /// Retries, skips or cancels an item. `false`: this caller has no such item. Refused when the item's state does not allow it.
    pub async fn act(
        &self,
        tx: &mut Tx,
        at: Option<DateTime<Utc>>,
        caller: &Caller,
        id: ItemId,
        action: Action,
    ) -> Result<bool> {
        let Some(item) = self.get(tx, at, caller, id).await? else { return Ok(false) };
        let moved_on = Error::Conflict("the item has moved on meanwhile; look at it again");
        if !item.state.allows(action) {
            let what = format!("an item that is {} cannot be {}", item.state, past(action));
            return Err(Error::NotNow { what });
        }
        let by = format!("{} by {}", past(action), caller.key_name);
        let end = if action == Action::Skip { ItemState::Skipped } else { ItemState::Cancelled };
        let changed = match (id, item.state, action) {
            (ItemId::Parked(id), _, Action::Retry) => park::unpark_one(tx, at, caller.tenant_id, id).await?.is_some(),
            (ItemId::Parked(id), _, _) => self.end_parked(tx, at, caller, id, end, &by).await?,
            (ItemId::Message(id), ItemState::Dead | ItemState::Skipped | ItemState::Cancelled, Action::Retry) => {
                let sent = sqlx::query(AssertSqlSafe(self.0.replay.clone())).bind(at).bind(id);
                sent.execute(&mut **tx).await?.rows_affected() == 1
            }
            (ItemId::Message(id), ItemState::Dead, _) => {
                let marked = sqlx::query(AssertSqlSafe(self.0.mark_archived.clone()));
                marked.bind(at).bind(id).bind(end.as_str()).bind(&by).execute(&mut **tx).await?.rows_affected() == 1
            }
            (ItemId::Message(id), _, Action::Retry) => {
                let due = sqlx::query(AssertSqlSafe(self.0.retry_now.clone())).bind(at).bind(id);
                due.execute(&mut **tx).await?.rows_affected() == 1
            }
            (ItemId::Message(id), _, _) => {
                let ended =
                    sqlx::query(AssertSqlSafe(self.0.end.clone())).bind(at).bind(id).bind(end.as_str()).bind(&by);
                ended.bind(action == Action::Cancel).execute(&mut **tx).await?.rows_affected() == 1
            }
        };
        if !changed {
            return Err(moved_on);
        }
        tx.notify(Notice::lane(Some(caller.tenant_id), self.name(), Op::Update));
        Ok(true)
    }

    async fn messages(
        &self,
        conn: &mut PgConnection,
        at: Option<DateTime<Utc>>,
        caller: &Caller,
        page: Page,
        before: Option<i64>,
        only: Option<i64>,
    ) -> Result<Vec<Item>> {
        let rows = sqlx::query(AssertSqlSafe(self.0.list.clone()))
            .persistent(false) // planned for its values each time: one plan for "all" and for "just this id" would scan the queue
            .bind(at)
            .bind(caller.tenant_id.to_string())
            .bind(caller.operates())
            .bind(page.state.map(ItemState::as_str))
            .bind(before)
            .bind(only)
            .bind(page.limit)
            .fetch_all(conn)
            .await?;
        let item = |row: &sqlx::postgres::PgRow| -> Result<Item, sqlx::Error> {
            Ok(Item {
                id: ItemId::Message(row.try_get("msg_id")?).to_string(),
                lane: self.name().to_owned(),
                state: ItemState::try_from(row.try_get::<String, _>("state")?)
                    .map_err(|error| sqlx::Error::Decode(error.into()))?,
                attempts: row.try_get("attempts")?,
                waits: row.try_get("waits")?,
                enqueued_at: row.try_get("enqueued_at")?,
                due_at: row.try_get("due_at")?,
                held_by: row.try_get("held_by")?,
                held_since: row.try_get("held_since")?,
                error: row.try_get("error")?,
                error_at: row.try_get("error_at")?,
                reason: row.try_get("reason")?,
                ended_at: row.try_get("ended_at")?,
                message: row.try_get("message")?,
            })
        };
        Ok(rows.iter().map(item).collect::<Result<_, _>>()?)
    }

    async fn parked(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
        only: Option<ParkedId>,
        before: Option<ParkedId>,
        limit: i64,
    ) -> Result<Vec<Item>> {
        let rows = sqlx::query(include_str!("../sql/parked_list.sql"))
            .bind(caller.tenant_id.0)
            .bind(self.name())
            .bind(only.map(|id| id.0))
            .bind(before.map(|id| id.0))
            .bind(limit)
            .fetch_all(conn)
            .await?;
        let item = |row: &sqlx::postgres::PgRow| -> Result<Item, sqlx::Error> {
            Ok(Item {
                id: ItemId::Parked(ParkedId(row.try_get::<Uuid, _>("id")?)).to_string(),
                lane: self.name().to_owned(),
                state: ItemState::Parked,
                attempts: row.try_get("attempts")?,
                waits: row.try_get("waits")?,
                enqueued_at: row.try_get("enqueued_at")?,
                due_at: row.try_get("until")?,
                held_by: None,
                held_since: None,
                error: row.try_get("error")?,
                error_at: None,
                reason: row.try_get("reason")?,
                ended_at: None,
                message: row.try_get("message")?,
            })
        };
        Ok(rows.iter().map(item).collect::<Result<_, _>>()?)
    }

    /// Ends a parked item: it goes to the archive like any other, under a number of its own.
    async fn end_parked(
        &self,
        tx: &mut Tx,
        at: Option<DateTime<Utc>>,
        caller: &Caller,
        id: ParkedId,
        end: ItemState,
        reason: &str,
    ) -> Result<bool> {
        let Some(msg_id) = park::unpark_one(tx, at, caller.tenant_id, id).await? else { return Ok(false) };
        let ended =
            sqlx::query(AssertSqlSafe(self.0.end.clone())).bind(at).bind(msg_id).bind(end.as_str()).bind(reason);
        Ok(ended.bind(false).execute(&mut **tx).await?.rows_affected() == 1)
    }
}

fn past(action: Action) -> &'static str {
    match action {
        Action::Retry => "retried",
        Action::Skip => "skipped",
        Action::Cancel => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_own_count() {
        let counts = Counts {
            lane: "x".into(),
            waiting: 1,
            working: 2,
            failed: 3,
            parked: 4,
            dead: 5,
            skipped: 6,
            cancelled: 7,
            oldest_due: None,
        };
        let by_state: Vec<i64> = ItemState::ALL.iter().map(|state| counts.of(*state)).collect();
        assert_eq!(by_state, [1, 2, 3, 4, 5, 6, 7]);
    }
}
