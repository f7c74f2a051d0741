//! Loads changed rows once for all sockets, and only for tenants that have one.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::{KeyId, Notice, Op, TenantId};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use store::rest::Table;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;
use crate::ring::Ring;

/// The size of all rows kept for slow readers, for all sockets together.
const RING_BYTES: usize = 16 << 20;
/// Larger columns are left out of a row, as Supabase does.
const ROW_BYTES: usize = 1 << 20;
const SMALL_BYTES: usize = 64;
const TOO_LARGE: &[&str] = &["Error 413: Payload Too Large"];
/// Rows loaded by one query. With [`ROW_BYTES`] for each of three columns, this bounds the memory for loading.
const CHUNK: usize = 16;
/// Changes taken from the bus at once.
const BATCH: usize = 1_024;
const MOST_SOCKETS: usize = 32;
/// How often we look for new rows without a notice, because other programs write too.
const LOOK: Duration = Duration::from_secs(5);
/// How long a row counts as new for that. A commit may come later than its row's time.
const NEW_FOR: Duration = Duration::from_secs(60);

/// A row that changed.
pub(super) struct Event {
    pub tenant_id: TenantId,
    pub op: Op,
    /// The values for filters; for JSON columns only whether they are null.
    pub row: Map<String, Value>,
    /// The row as clients get it.
    pub data: Box<RawValue>,
}

pub(crate) struct Feed {
    pub(super) ring: Ring<Arc<Event>>,
    /// The number of sockets of each key.
    seats: Mutex<HashMap<KeyId, (TenantId, usize)>>,
    /// Wakes the feed when a socket opens.
    came: Notify,
}

impl Default for Feed {
    fn default() -> Self {
        let ring = Ring::new(RING_BYTES, |event: &Arc<Event>| event.data.get().len() + 1_024);
        Self { ring, seats: Mutex::default(), came: Notify::new() }
    }
}

/// The registration of one socket, until dropped.
pub(super) struct Seat {
    app: App,
    key_id: KeyId,
}

impl Seat {
    /// Registers a socket. Returns `None` if the key has too many.
    pub fn take(app: &App, caller: &domain::Caller) -> Option<Self> {
        let mut seats = app.feed.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, taken) = seats.entry(caller.key_id).or_insert((caller.tenant_id, 0));
        if *taken >= MOST_SOCKETS {
            return None;
        }
        *taken += 1;
        app.feed.came.notify_one();
        metrics::gauge!("tributary_realtime_sockets").increment(1.0);
        Some(Self { app: app.clone(), key_id: caller.key_id })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.app.feed.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, taken)) = seats.get_mut(&self.key_id) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(&self.key_id);
            }
        }
        metrics::gauge!("tributary_realtime_sockets").decrement(1.0);
    }
}

/// Fills the ring until dropped.
///
/// A row is sent as it is when it is read. If it was inserted and then claimed, it is no longer `raw`, so subscribers to inserts of `raw`
/// rows do not get it: another agent has it already.
pub(crate) async fn fill(app: App) {
    let mut heard = app.env.db.bus().subscribe();
    let mut told = HashMap::new();
    let mut next_look = Instant::now();
    loop {
        let first = tokio::select! {
            notice = heard.recv() => Some(notice),
            () = tokio::time::sleep_until(next_look) => None,
            () = app.feed.came.notified() => None,
        };
        let listening = app.feed.listening();
        told.retain(|tenant_id, _| listening.contains(tenant_id));
        let mut changes = Changes { listening: &listening, rows: Vec::new(), is_any_missed: false };
        match first {
            Some(Err(broadcast::error::RecvError::Closed)) => return,
            Some(notice) => changes.add(notice.ok()),
            None => {}
        }
        while changes.rows.len() < BATCH {
            match heard.try_recv() {
                Ok(notice) => changes.add(Some(notice)),
                Err(broadcast::error::TryRecvError::Lagged(_)) => changes.add(None),
                Err(_) => break,
            }
        }
        let is_look_due = changes.is_any_missed || next_look <= Instant::now();
        if is_look_due {
            next_look = Instant::now() + LOOK;
        }
        if let Err(error) = tell(&app, &mut told, changes, is_look_due).await {
            tracing::debug!(error = ?error, "changed rows could not be loaded; new ones are looked for again");
        }
    }
}

/// Changes from the bus for tenants that have sockets.
struct Changes<'a> {
    listening: &'a HashSet<TenantId>,
    rows: Vec<(TenantId, Op, Uuid)>,
    is_any_missed: bool,
}

impl Changes<'_> {
    /// Adds a notice. `None` means that some were missed.
    fn add(&mut self, notice: Option<Notice>) {
        match notice {
            Some(notice) if notice.op == Op::Resync => {
                self.is_any_missed |= ["*", "activities"].contains(&notice.kind.as_str())
            }
            Some(Notice { tenant_id: Some(tenant_id), kind, op, ids, .. }) if kind == "activities" => {
                if self.listening.contains(&tenant_id) {
                    self.rows.extend(ids.into_iter().map(|id| (tenant_id, op, id)));
                }
            }
            Some(_) => {}
            None => self.is_any_missed = true,
        }
    }
}

/// The inserts of a tenant that were sent lately, so that looking for rows sends only the others. An insert that drops out of this list
/// may be sent twice. That is harmless, because claims decide who gets a row.
#[derive(Default)]
struct Told {
    now: HashSet<Uuid>,
    before: HashSet<Uuid>,
    turned: Option<Instant>,
}

impl Told {
    const MOST: usize = 65_536;

    fn has(&self, id: &Uuid) -> bool {
        self.now.contains(id) || self.before.contains(id)
    }

    fn add(&mut self, ids: impl IntoIterator<Item = Uuid>) {
        if self.turned.is_none_or(|turned| turned.elapsed() > NEW_FOR) || self.now.len() >= Self::MOST {
            (self.before, self.turned) = (std::mem::take(&mut self.now), Some(Instant::now()));
        }
        self.now.extend(ids);
    }
}

async fn tell(
    app: &App,
    told: &mut HashMap<TenantId, Told>,
    changes: Changes<'_>,
    is_look_due: bool,
) -> store::Result<()> {
    let mut by_tenant: HashMap<TenantId, Vec<(Op, Uuid)>> = HashMap::new();
    for tenant_id in changes.listening {
        let is_known = told.contains_key(tenant_id);
        let told = told.entry(*tenant_id).or_default();
        if !is_known {
            told.add(look(app, *tenant_id).await?); // rows from before anybody listened
        } else if is_look_due {
            let new = look(app, *tenant_id).await?.into_iter().map(|id| (Op::Insert, id));
            by_tenant.entry(*tenant_id).or_default().extend(new);
        }
    }
    for (tenant_id, op, id) in changes.rows {
        by_tenant.entry(tenant_id).or_default().push((op, id));
    }
    for (tenant_id, mut rows) in by_tenant {
        let told = told.entry(tenant_id).or_default();
        let mut seen = HashSet::new();
        rows.retain(|(op, id)| (*op != Op::Insert || !told.has(id)) && seen.insert((std::mem::discriminant(op), *id)));
        for rows in rows.chunks(CHUNK) {
            load(app, tenant_id, rows).await?;
            told.add(rows.iter().filter(|(op, _)| *op == Op::Insert).map(|(_, id)| *id));
        }
    }
    Ok(())
}

/// Finds new rows that wait for an agent.
async fn look(app: &App, tenant_id: TenantId) -> store::Result<Vec<Uuid>> {
    let at = app.env.clock.sql();
    app.env.db.session(async |conn| store::activities::new_and_raw(conn, at, tenant_id, NEW_FOR).await).await
}

async fn load(app: &App, tenant_id: TenantId, changes: &[(Op, Uuid)]) -> store::Result<()> {
    let table = Table::find("activities").ok_or(store::Error::Conflict("there are no activities"))?;
    let ids: Vec<Uuid> = changes.iter().map(|(_, id)| *id).collect::<HashSet<_>>().into_iter().collect();
    let most = ROW_BYTES as i32;
    let rows = app.env.db.session(async |conn| store::rest::rows(conn, table, tenant_id, &ids, most).await).await?;
    let rows: HashMap<Uuid, (Value, bool)> = rows.into_iter().map(|(id, row, is_cut)| (id, (row, is_cut))).collect();
    let at = app.env.clock.now();
    for (op, id) in changes {
        // A deleted row has a notice of its own.
        let found = rows.get(id).and_then(|(row, is_cut)| Some((row.as_object()?.clone(), *is_cut)));
        if found.is_some() || *op == Op::Delete {
            app.feed.ring.push(Arc::new(Event::new(table, tenant_id, *op, *id, found.unwrap_or_default(), at)));
        }
    }
    Ok(())
}

impl Feed {
    fn listening(&self) -> HashSet<TenantId> {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.values().map(|(tenant_id, _)| *tenant_id).collect()
    }
}

#[derive(Serialize)]
struct Data<'a> {
    schema: &'a str,
    table: &'a str,
    r#type: &'a str,
    commit_timestamp: String,
    columns: Vec<Column>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Map<String, Value>>,
    /// The key only, as PostgreSQL's replication does by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_record: Option<Key>,
    errors: Option<&'a [&'a str]>,
}

#[derive(Serialize)]
struct Column {
    name: &'static str,
    r#type: &'static str,
}

#[derive(Serialize)]
struct Key {
    id: Uuid,
}

impl Event {
    fn new(
        table: &Table,
        tenant_id: TenantId,
        op: Op,
        id: Uuid,
        (mut row, is_cut): (Map<String, Value>, bool),
        at: DateTime<Utc>,
    ) -> Self {
        let r#type = match op {
            Op::Insert => "INSERT",
            Op::Delete => "DELETE",
            Op::Update | Op::Resync => "UPDATE",
        };
        let written = |row: &Map<String, Value>, errors| {
            let data = Data {
                schema: "public",
                table: table.name,
                r#type,
                commit_timestamp: at.to_rfc3339_opts(SecondsFormat::Millis, true),
                columns: table.columns.iter().map(|(name, r#type)| Column { name, r#type }).collect(),
                record: (op != Op::Delete).then_some(row),
                old_record: (op != Op::Insert).then_some(Key { id }),
                errors,
            };
            to_raw_value(&data).unwrap_or_default()
        };
        let mut data = written(&row, is_cut.then_some(TOO_LARGE));
        if data.get().len() > ROW_BYTES {
            row.retain(|_, value| value.to_string().len() <= SMALL_BYTES);
            data = written(&row, Some(TOO_LARGE));
        }
        for value in row.values_mut().filter(|value| value.is_object() || value.is_array()) {
            *value = Value::Bool(true);
        }
        Self { tenant_id, op, row, data }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(op: Op, row: Value) -> (Event, Value) {
        let table = Table::find("activities").expect("a table");
        let at = "2026-11-15T07:00:00Z".parse().expect("a time");
        let row = row.as_object().expect("a row").clone();
        let event = Event::new(table, TenantId::new(), op, Uuid::nil(), (row, false), at);
        let data = serde_json::from_str(event.data.get()).expect("JSON");
        (event, data)
    }

    #[test]
    fn a_change_is_told_as_clients_read_it() {
        let (inserted, data) =
            event(Op::Insert, json!({ "id": "a", "lock_epoch": 0, "raw_data": { "content": "hello" } }));
        assert_eq!(data["commit_timestamp"], "2026-11-15T07:00:00.000Z");
        assert_eq!((&data["type"], &data["record"]["raw_data"]["content"]), (&json!("INSERT"), &json!("hello")));
        assert_eq!((data.get("old_record"), &data["errors"]), (None, &Value::Null));
        assert_eq!(data["columns"][0], json!({ "name": "id", "type": "uuid" }));
        assert_eq!(inserted.row["raw_data"], json!(true), "filters need no more of it");
        let (_, data) = event(Op::Update, json!({ "id": "a" }));
        assert_eq!((&data["type"], &data["old_record"]), (&json!("UPDATE"), &json!({ "id": Uuid::nil() })));
        let (_, data) = event(Op::Delete, json!({}));
        assert_eq!((&data["type"], data.get("record")), (&json!("DELETE"), None));
    }

    #[test]
    fn a_row_that_is_too_large_is_told_without_what_makes_it_so() {
        let (large, data) =
            event(Op::Insert, json!({ "id": "a", "processing_status": "raw", "raw_data": "x".repeat(ROW_BYTES) }));
        assert_eq!(data["record"], json!({ "id": "a", "processing_status": "raw" }));
        assert_eq!(data["errors"], json!(TOO_LARGE));
        assert!(large.data.get().len() < 4_096);
    }

    #[test]
    fn an_insert_that_was_told_is_known_for_a_while() {
        let (first, second, third) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        let mut told = Told::default();
        told.add([first]);
        assert!(told.has(&first) && !told.has(&second));
        told.turned = None;
        told.add([second]);
        assert!(told.has(&first) && told.has(&second), "also after the sets were turned");
        told.turned = None;
        told.add([third]);
        assert!(!told.has(&first) && told.has(&second) && told.has(&third), "and then forgotten");
    }
}
