//! HubSpot's CRM: objects of a few types, their properties and associations, and how a test changes them.

mod answers;
mod fake;
mod mcp;
mod rest;
mod search;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use crate::clock::{at_ms, iso, parse_iso};
use crate::{Fakes, Shared, lock};

pub use self::fake::HUBSPOT;

/// Singular and plural; HubSpot numbers each type apart, so a contact and a company may have the same id.
pub(crate) const TYPES: [(&str, &str); 3] = [("contact", "contacts"), ("company", "companies"), ("deal", "deals")];

/// The closed stages of the default pipeline and of the one for rentals. Stages that a person creates have numbers.
const CLOSED_STAGES: [&str; 4] = ["closedwon", "closedlost", "189340026", "189340027"];

#[derive(Default)]
pub(crate) struct Crm {
    types: BTreeMap<String, BTreeMap<u64, Object>>,
    /// Search does not know changes that are younger than this.
    search_lag: TimeDelta,
}

pub(crate) struct Object {
    pub properties: Map<String, Value>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub archived_at: Option<DateTime<Utc>>,
    /// The associated records by type; the first is the primary one.
    pub links: BTreeMap<String, Vec<u64>>,
}

/// The records of HubSpot, as a person working in it changes them. Every change has a later time than those before it.
#[derive(Clone)]
pub struct Hubspot {
    shared: Arc<Shared>,
}

impl Fakes {
    /// The records of HubSpot.
    pub fn hubspot(&self) -> Hubspot {
        Hubspot { shared: self.shared.clone() }
    }

    /// A bearer that does not expire, as an account makes for itself in HubSpot's settings.
    pub fn hubspot_private_app_token(&self) -> &'static str {
        fake::PRIVATE_APP_TOKEN
    }
}

impl Hubspot {
    fn crm(&self) -> &Mutex<Crm> {
        self.shared.records()
    }

    /// Creates an object, or replaces the one with its id; `object` is its properties, or `{"id", "properties"}`. Returns the id.
    pub fn put(&self, kind: &str, object: Value) -> String {
        let mut crm = lock(self.crm());
        let now = self.shared.clock.stamp();
        let objects = crm.types.entry(kind.to_owned()).or_default();
        let asked_id = object.get("id").and_then(|id| id.as_str()?.parse().ok());
        let id = asked_id.unwrap_or_else(|| objects.last_key_value().map_or(101, |(id, _)| id + 1));
        let properties = match object.get("properties") {
            Some(properties) => properties.clone(),
            None => object,
        };
        let known = objects.remove(&id);
        let (created_at, links) = known.map_or((now, BTreeMap::new()), |known| (known.created_at, known.links));
        let mut object = Object { properties: Map::new(), created_at, updated_at: now, archived_at: None, links };
        object.set(properties);
        objects.insert(id, object);
        id.to_string()
    }

    /// Sets these properties and leaves the others.
    pub fn patch(&self, kind: &str, id: &str, properties: Value) {
        self.change(kind, id, |object| object.set(properties));
    }

    pub fn archive(&self, kind: &str, id: &str) {
        self.change(kind, id, |object| object.archived_at = Some(object.updated_at));
    }

    /// Removes an object for good: no list and no archive tells of it.
    pub fn purge(&self, kind: &str, id: &str) {
        let mut crm = lock(self.crm());
        let objects = crm.types.get_mut(kind).expect("objects of this kind");
        objects.remove(&id.parse().expect("an id")).expect("an object that is there");
    }

    /// Associates two objects both ways. The first company of an object is its primary one.
    pub fn associate(&self, from_kind: &str, from_id: &str, to_kind: &str, to_id: &str) {
        let link = |object: &mut Object, kind: &str, id: &str| {
            let ids = object.links.entry(kind.to_owned()).or_default();
            ids.extend(id.parse().ok().filter(|id| !ids.contains(id)));
        };
        self.change(from_kind, from_id, |object| link(object, to_kind, to_id));
        self.change(to_kind, to_id, |object| link(object, from_kind, from_id));
    }

    /// Counts the objects that are not archived.
    pub fn count(&self, kind: &str) -> usize {
        self.ids(kind).len()
    }

    pub fn ids(&self, kind: &str) -> Vec<String> {
        let crm = lock(self.crm());
        let live = crm.objects(kind).filter(|(_, object)| object.archived_at.is_none());
        live.map(|(id, _)| id.to_string()).collect()
    }

    /// HubSpot's search learns of a change seconds to minutes after it; here at once, unless set.
    pub fn set_search_lag(&self, lag: Duration) {
        lock(self.crm()).search_lag = TimeDelta::from_std(lag).unwrap_or(TimeDelta::MAX);
    }

    /// Very many contacts, changed one after the other in the time that has just passed.
    pub fn fill_contacts(&self, n_contacts: usize) {
        let first_ms = self.shared.clock.stamp().timestamp_millis() - i64::try_from(n_contacts).unwrap_or(i64::MAX);
        let mut crm = lock(self.crm());
        let objects = crm.types.entry("contacts".to_owned()).or_default();
        let first_id = objects.last_key_value().map_or(101, |(id, _)| id + 1);
        let jobs = ["Owner", "Foreman", "Bookkeeper", "Buyer"];
        let stages = ["lead", "opportunity", "customer"];
        for (number, id) in (0..n_contacts).zip(first_id..) {
            let at = at_ms(first_ms + number as i64);
            let mut object = Object {
                properties: Map::new(),
                created_at: at,
                updated_at: at,
                archived_at: None,
                links: BTreeMap::new(),
            };
            object.set(json!({
                "firstname": format!("Given{number}"),
                "lastname": format!("Family{}", number % 997),
                "email": format!("contact{number}@bulk.example"),
                "company": format!("Bulk company {}", number % 211),
                "jobtitle": jobs[number % jobs.len()],
                "lifecyclestage": stages[number % stages.len()],
            }));
            objects.insert(id, object);
        }
    }

    /// Adds a record of a fixture, with its own times.
    pub(crate) fn load(&self, kind: &str, record: &Value) {
        let time = |key: &str| record[key].as_str().and_then(parse_iso).unwrap_or_default();
        let Some(id) = record["id"].as_str().and_then(|id| id.parse().ok()) else { return };
        let mut object = Object {
            properties: Map::new(),
            created_at: time("createdAt"),
            updated_at: time("updatedAt"),
            archived_at: None,
            links: BTreeMap::new(),
        };
        object.set(record["properties"].clone());
        let mut crm = lock(self.crm());
        let linked = record["associations"].as_object().into_iter().flatten();
        for (to_kind, list) in linked {
            let to_ids = list["results"].as_array().into_iter().flatten();
            for to_id in to_ids.filter_map(|to| to["id"].as_str()?.parse().ok()) {
                let ids = object.links.entry(to_kind.clone()).or_default();
                if !ids.contains(&to_id) {
                    ids.push(to_id);
                    let back = crm.types.get_mut(to_kind).and_then(|objects| objects.get_mut(&to_id));
                    back.into_iter().for_each(|to| to.links.entry(kind.to_owned()).or_default().push(id));
                }
            }
        }
        crm.types.entry(kind.to_owned()).or_default().insert(id, object);
    }

    fn change(&self, kind: &str, id: &str, change: impl FnOnce(&mut Object)) {
        let mut crm = lock(self.crm());
        let now = self.shared.clock.stamp();
        let objects = crm.types.get_mut(kind);
        let object = objects.and_then(|objects| objects.get_mut(&id.parse().ok()?)).expect("an object that is there");
        object.updated_at = now;
        change(object);
    }
}

impl Crm {
    pub fn objects(&self, kind: &str) -> impl Iterator<Item = (u64, &Object)> {
        self.types.get(kind).into_iter().flatten().map(|(id, object)| (*id, object))
    }

    /// The objects by id, beginning at this one.
    pub fn from(&self, kind: &str, first_id: u64) -> impl Iterator<Item = (u64, &Object)> {
        let objects = self.types.get(kind).into_iter();
        objects.flat_map(move |objects| objects.range(first_id..)).map(|(id, object)| (*id, object))
    }

    pub fn get(&self, kind: &str, id: u64) -> Option<&Object> {
        self.types.get(kind)?.get(&id)
    }

    /// The objects that it is associated with now.
    pub fn linked<'a>(&'a self, object: &'a Object, to_kind: &'a str) -> impl Iterator<Item = u64> + 'a {
        let ids = object.links.get(to_kind).into_iter().flatten().copied();
        ids.filter(move |id| self.get(to_kind, *id).is_some_and(|to| to.archived_at.is_none()))
    }
}

impl Object {
    /// Values are text or nothing, as HubSpot has them.
    fn set(&mut self, properties: Value) {
        for (name, value) in properties.as_object().cloned().into_iter().flatten() {
            let value = match value {
                Value::String(_) | Value::Null => value,
                other => Value::String(other.to_string()),
            };
            self.properties.insert(name, value);
        }
    }

    /// One property, with those that HubSpot keeps itself.
    pub fn property(&self, kind: &str, id: u64, name: &str) -> Value {
        match name {
            "hs_object_id" => json!(id.to_string()),
            "createdate" => json!(iso(self.created_at)),
            name if name == modified_property(kind) => json!(iso(self.updated_at)),
            "hs_is_closed" if kind == "deals" => {
                let stage = self.properties.get("dealstage").and_then(Value::as_str).unwrap_or_default();
                json!(CLOSED_STAGES.contains(&stage).to_string())
            }
            name => self.properties.get(name).cloned().unwrap_or_default(),
        }
    }
}

/// The property with the time of change. Contacts have another one than all other types.
pub(crate) fn modified_property(kind: &str) -> &'static str {
    if kind == "contacts" { "lastmodifieddate" } else { "hs_lastmodifieddate" }
}
