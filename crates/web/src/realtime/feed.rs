//! Loads changed rows once for all sockets, and only for tenants that have one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use domain::activity::open_to_others_at;
use domain::{KeyId, Notice, Op, PersonId, TenantId};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use store::activities::Opening;
use store::rest::Table;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;
use crate::caps::{OfCaller, PerCaller};
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
/// Sockets at once, of one key and of one tenant: each is one of the server's connections.
const MOST_OF_KEY: usize = 32;
const MOST_OF_TENANT: usize = 1_024;
/// The interval at which we look for new rows without a notice, because other programs write too.
const LOOK: Duration = Duration::from_secs(5);
/// The age up to which a row counts as new for that. A commit may come later than its row's time.
const NEW_FOR: Duration = Duration::from_secs(60);

/// A row that changed.
pub(super) struct Event {
    pub tenant_id: TenantId,
    pub op: Op,
    /// The agents that see it. Unknown for a row that is gone.
    audience: Option<Audience>,
    /// The values for filters; for JSON columns only whether they are null.
    pub row: Map<String, Value>,
    /// The row as clients get it.
    pub data: Box<RawValue>,
}

/// The agents that see an activity.
#[derive(Clone, Copy, Debug)]
struct Audience {
    owner: Owner,
    /// The key that claimed it last.
    claimed_key: Option<KeyId>,
}

/// Whose activity it is, and from when on others may process it. Only an activity that waits is ever open to them.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Everyone,
    Person(PersonId, Option<DateTime<Utc>>),
}

impl Audience {
    fn of(opening: &Opening) -> Self {
        let owner = match &opening.owner {
            None => Owner::Everyone,
            Some(owner) if !opening.is_raw => Owner::Person(owner.id, None),
            Some(owner) => {
                let (minutes, is_allowed) = (owner.stale_threshold_minutes, owner.allow_remote_processing);
                Owner::Person(owner.id, open_to_others_at(opening.created_at, minutes, is_allowed))
            }
        };
        Self { owner, claimed_key: opening.claimed_key }
    }

    fn has(&self, caller: &domain::Caller, now: DateTime<Utc>) -> bool {
        let may_process = match self.owner {
            Owner::Everyone => true,
            Owner::Person(id, open_at) => caller.person_id == Some(id) || open_at.is_some_and(|at| at < now),
        };
        may_process || self.claimed_key == Some(caller.key_id)
    }
}

impl Event {
    /// Whether a caller may see this row now, by the rule that row security has for rows that are asked for.
    pub fn is_for(&self, caller: &domain::Caller, now: DateTime<Utc>) -> bool {
        let is_seen = || self.audience.is_some_and(|audience| audience.has(caller, now));
        self.tenant_id == caller.tenant_id && (caller.sees_all_activities() || is_seen())
    }
}

pub(crate) struct Feed {
    pub(super) ring: Ring<Arc<Event>>,
    /// The open sockets.
    seats: PerCaller,
    /// Wakes the feed when a socket opens.
    came: Notify,
}

impl Default for Feed {
    fn default() -> Self {
        let ring = Ring::new(RING_BYTES, |event: &Arc<Event>| event.data.get().len() + 1_024);
        Self { ring, seats: PerCaller::default(), came: Notify::new() }
    }
}

/// The registration of one socket, until dropped.
pub(super) struct Seat {
    _held: OfCaller,
}

impl Seat {
    /// Registers a socket. Returns `None` if the key or its tenant has too many.
    pub fn take(feed: &Feed, caller: &domain::Caller) -> Option<Self> {
        let held = feed.seats.take(caller, MOST_OF_KEY, MOST_OF_TENANT)?;
        feed.came.notify_one();
        metrics::gauge!("tributary_realtime_sockets").increment(1.0);
        Some(Self { _held: held })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
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
        let listening = app.feed.seats.tenants();
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
    /// The rows that the first look found. Later looks leave them out. A notice about one of them is sent all the same: it was inserted while
    /// the first socket was being opened.
    old: HashSet<Uuid>,
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
        let is_first = !told.contains_key(tenant_id);
        // Known from now on, also if the look fails: the rows it would have found are then announced by the next one.
        let told = told.entry(*tenant_id).or_default();
        if is_first && !changes.is_any_missed {
            told.old = look(app, *tenant_id).await?.into_iter().collect();
        } else if is_first || is_look_due {
            let found = look(app, *tenant_id).await?.into_iter().filter(|id| !told.old.contains(id));
            by_tenant.entry(*tenant_id).or_default().extend(found.map(|id| (Op::Insert, id)));
        }
    }
    for (tenant_id, op, id) in changes.rows {
        by_tenant.entry(tenant_id).or_default().push((op, id));
    }
    for (tenant_id, mut rows) in by_tenant {
        let told = told.entry(tenant_id).or_default();
        let mut seen = HashSet::new();
        rows.retain(|(op, id)| (*op != Op::Insert || !told.has(id)) && seen.insert((std::mem::discriminant(op), *id)));
        // One that cannot be loaded now is found by the next look.
        for (_, id) in rows.iter().filter(|(op, _)| *op == Op::Insert) {
            told.old.remove(id);
        }
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
    let loaded = app.env.db.session(async |conn| {
        // The rows first: one that is claimed in between is kept from those who may no longer see it.
        let rows = store::rest::rows(conn, table, tenant_id, &ids, most).await?;
        let openings = store::activities::openings(conn, tenant_id, &ids).await?;
        Ok((rows, openings))
    });
    let (rows, openings) = loaded.await?;
    let rows: HashMap<Uuid, (Value, bool)> = rows.into_iter().map(|(id, row, is_cut)| (id, (row, is_cut))).collect();
    let at = app.env.clock.now();
    for (op, id) in changes {
        // A deleted row has a notice of its own.
        let found = rows.get(id).and_then(|(row, is_cut)| Some((row.as_object()?.clone(), *is_cut)));
        if found.is_some() || *op == Op::Delete {
            let mut event = Event::new(table, tenant_id, *op, *id, found.unwrap_or_default(), at);
            event.audience = openings.get(id).map(Audience::of);
            app.feed.ring.push(Arc::new(event));
        }
    }
    Ok(())
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
        Self { tenant_id, op, audience: None, row, data }
    }
}

#[cfg(test)]
mod tests {
    use domain::Scope;
    use serde_json::json;
    use store::activities::OpeningOwner;

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
    fn an_agent_hears_of_what_it_may_process_and_a_reader_of_everything() {
        let (mut told, _) = event(Op::Insert, json!({ "id": "a" }));
        let now: DateTime<Utc> = "2026-11-15T07:00:00Z".parse().expect("a time");
        let (ann, bob, anns_key) = (PersonId(1), PersonId(2), KeyId::new());
        let caller = |scope, tenant_id| domain::Caller {
            key_id: anns_key,
            person_id: Some(ann),
            scopes: vec![scope],
            ..domain::Caller::local("test", tenant_id, false)
        };
        let tenant_id = told.tenant_id;
        let of = |id, allow_remote_processing| {
            Some(OpeningOwner { id, stale_threshold_minutes: 15, allow_remote_processing })
        };
        let opening = |owner, minutes, is_raw, claimed_key| {
            Some(Opening { created_at: now - chrono::TimeDelta::minutes(minutes), owner, is_raw, claimed_key })
        };
        let somebodys = Some(KeyId::new());
        for (opening, is_heard) in [
            (opening(None, 0, true, None), true),
            (opening(None, 90, false, somebodys), true), // everyone's
            (opening(of(ann, false), 0, true, None), true),
            (opening(of(ann, false), 90, false, somebodys), true),
            (opening(of(bob, true), 6, true, None), true),
            (opening(of(bob, true), 6, true, somebodys), true), // given back
            (opening(of(bob, true), 4, true, None), false),
            (opening(of(bob, false), 90, true, None), false),
            (opening(of(bob, true), 90, false, None), false), // completed or failed before keys were written down
            (opening(of(bob, true), 90, false, somebodys), false),
            (opening(of(bob, true), 90, false, Some(anns_key)), true), // claimed by her, or completed
            (None, false),
        ] {
            told.audience = opening.as_ref().map(Audience::of);
            assert_eq!(told.is_for(&caller(Scope::Agent, tenant_id), now), is_heard, "{opening:?}");
            assert!(told.is_for(&caller(Scope::Read, tenant_id), now), "{opening:?}");
            assert!(!told.is_for(&caller(Scope::Service, TenantId::new()), now), "another tenant's");
        }
    }

    /// S32.
    #[test]
    fn the_keys_of_one_tenant_cannot_take_all_connections_with_sockets() {
        let (feed, tenant_id) = (Feed::default(), TenantId::new());
        let caller = |tenant_id| domain::Caller {
            key_id: domain::KeyId(Uuid::now_v7()),
            ..domain::Caller::local("test", tenant_id, false)
        };
        let mut seats = Vec::new();
        for _ in 0..MOST_OF_TENANT / MOST_OF_KEY {
            let caller = caller(tenant_id);
            seats.extend((0..=MOST_OF_KEY).map_while(|_| Seat::take(&feed, &caller)));
        }
        assert_eq!(seats.len(), MOST_OF_TENANT);
        assert!(Seat::take(&feed, &caller(tenant_id)).is_none(), "another key of the same tenant");
        assert!(Seat::take(&feed, &caller(TenantId::new())).is_some(), "another tenant has its own");
        assert_eq!(feed.seats.tenants(), HashSet::from([tenant_id]));
        seats.pop();
        assert!(Seat::take(&feed, &caller(tenant_id)).is_some(), "a place is free again");
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
