//! QuickBooks' company file: customers and invoices, and how a test changes them.

mod fake;
mod mcp;
mod query;
mod rest;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::clock::parse_iso;
use crate::{Fakes, Shared, lock};

pub use self::fake::QUICKBOOKS;

pub(crate) const ENTITIES: [&str; 2] = ["Customer", "Invoice"];

#[derive(Default)]
pub(crate) struct Books {
    entities: BTreeMap<String, BTreeMap<u64, Entity>>,
    faults_with_200: bool,
}

pub(crate) struct Entity {
    record: Value,
    updated_at: DateTime<Utc>,
    is_deleted: bool,
}

/// The records of QuickBooks, as a person working in it changes them. Every change has a later time than those before it.
#[derive(Clone)]
pub struct Quickbooks {
    shared: Arc<Shared>,
}

impl Fakes {
    /// The records of QuickBooks.
    pub fn quickbooks(&self) -> Quickbooks {
        Quickbooks { shared: self.shared.clone() }
    }
}

impl Quickbooks {
    fn books(&self) -> &Mutex<Books> {
        self.shared.records()
    }

    /// Creates a record of `Customer` or `Invoice`, or replaces the one with its `Id`. Returns the id.
    pub fn put(&self, entity: &str, record: Value) -> String {
        let mut books = lock(self.books());
        let now = self.shared.clock.stamp();
        let rows = books.entities.entry(entity.to_owned()).or_default();
        let asked_id = record.get("Id").and_then(|id| id.as_str()?.parse().ok());
        let id: u64 = asked_id.unwrap_or_else(|| rows.last_key_value().map_or(1, |(id, _)| id + 1));
        let known = rows.get(&id).map(|row| row.record.clone());
        let mut new = json!({"domain": "QBO", "sparse": false, "Active": true, "Balance": 0, "SyncToken": "-1",
            "MetaData": {"CreateTime": local(now)}});
        if entity != "Customer" {
            new.as_object_mut().expect("an object").remove("Active");
        }
        for kept in ["SyncToken", "MetaData"] {
            if let Some(known) = known.as_ref().and_then(|known| known.get(kept)) {
                new[kept] = known.clone();
            }
        }
        set(&mut new, record);
        new["Id"] = json!(id.to_string());
        let mut row = Entity { record: new, updated_at: now, is_deleted: false };
        row.touch(now);
        rows.insert(id, row);
        id.to_string()
    }

    /// Sets these fields and leaves the others.
    pub fn patch(&self, entity: &str, id: &str, fields: Value) {
        self.change(entity, id, |row| set(&mut row.record, fields));
    }

    /// Deletes a record. Only change data capture still tells of it.
    pub fn delete(&self, entity: &str, id: &str) {
        self.change(entity, id, |row| row.is_deleted = true);
    }

    /// Counts the records that are not deleted.
    pub fn count(&self, entity: &str) -> usize {
        self.ids(entity).len()
    }

    pub fn ids(&self, entity: &str) -> Vec<String> {
        let books = lock(self.books());
        books.live(entity).map(|(id, _)| id.to_string()).collect()
    }

    /// Its own refusals come under status 200, as they sometimes do; not those of a token.
    pub fn fault_with_200(&self, is_on: bool) {
        lock(self.books()).faults_with_200 = is_on;
    }

    /// Adds a record of a fixture, with its own times.
    pub(crate) fn load(&self, entity: &str, record: Value) {
        let Some(id) = record["Id"].as_str().and_then(|id| id.parse().ok()) else { return };
        let updated_at = record["MetaData"]["LastUpdatedTime"].as_str().and_then(parse_iso).unwrap_or_default();
        let row = Entity { record, updated_at, is_deleted: false };
        lock(self.books()).entities.entry(entity.to_owned()).or_default().insert(id, row);
    }

    fn change(&self, entity: &str, id: &str, change: impl FnOnce(&mut Entity)) {
        let mut books = lock(self.books());
        let now = self.shared.clock.stamp();
        let rows = books.entities.get_mut(entity);
        let row = rows.and_then(|rows| rows.get_mut(&id.parse().ok()?)).expect("a record that is there");
        change(row);
        row.touch(now);
    }
}

impl Books {
    pub fn all(&self, entity: &str) -> impl Iterator<Item = (u64, &Entity)> {
        self.entities.get(entity).into_iter().flatten().map(|(id, row)| (*id, row))
    }

    pub fn live(&self, entity: &str) -> impl Iterator<Item = (u64, &Entity)> {
        self.all(entity).filter(|(_, row)| !row.is_deleted)
    }
}

impl Entity {
    fn touch(&mut self, now: DateTime<Utc>) {
        let token: i64 = self.record["SyncToken"].as_str().and_then(|token| token.parse().ok()).unwrap_or_default();
        self.record["SyncToken"] = json!((token + 1).to_string());
        self.record["MetaData"]["LastUpdatedTime"] = json!(local(now));
        self.updated_at = now;
    }
}

fn set(record: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().cloned().into_iter().flatten() {
        record[name] = value;
    }
}

/// Records have no fraction of a second.
fn local(at: DateTime<Utc>) -> String {
    at.with_timezone(&pacific()).to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// Answers have a fraction of a second.
pub(crate) fn local_ms(at: DateTime<Utc>) -> String {
    at.with_timezone(&pacific()).to_rfc3339_opts(SecondsFormat::Millis, false)
}

/// The time zone of QuickBooks, in winter.
fn pacific() -> FixedOffset {
    FixedOffset::west_opt(8 * 3600).expect("less than a day")
}
