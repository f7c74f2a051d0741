//! Objects and lists as HubSpot writes them.

use serde_json::{Map, Value, json};

use crate::clock::iso;
use crate::hubspot::{Crm, Object, TYPES, modified_property};

impl Crm {
    /// One object with the properties that were named, or with HubSpot's own choice when none was.
    pub fn record(&self, kind: &str, id: u64, object: &Object, named: &[String], associated: &[String]) -> Value {
        let mut properties = Map::new();
        for name in named.iter().map(String::as_str).chain(kept_properties(kind)) {
            properties.insert(name.to_owned(), object.property(kind, id, name));
        }
        if named.is_empty() {
            for name in default_properties(kind) {
                properties.insert((*name).to_owned(), object.property(kind, id, name));
            }
        }
        let mut record = json!({
            "id": id.to_string(),
            "properties": properties,
            "createdAt": iso(object.created_at),
            "updatedAt": iso(object.updated_at),
            "archived": object.archived_at.is_some(),
        });
        if let Some(archived_at) = object.archived_at {
            record["archivedAt"] = json!(iso(archived_at));
        }
        for to_kind in associated {
            let results = self.association_list(kind, object, to_kind);
            if !results.is_empty() {
                record["associations"][to_kind] = json!({"results": results});
            }
        }
        record
    }

    /// The primary company comes twice, once for each type that its association has.
    fn association_list(&self, kind: &str, object: &Object, to_kind: &str) -> Vec<Value> {
        let (from, to) = (singular(kind), singular(to_kind));
        let mut results = Vec::new();
        for (index, id) in self.linked(object, to_kind).enumerate() {
            let id = id.to_string();
            if to != "company" {
                results.push(json!({"id": id, "type": format!("{from}_to_{to}")}));
                continue;
            }
            if index == 0 {
                results.push(json!({"id": id, "type": format!("{from}_to_{to}")}));
            }
            results.push(json!({"id": id, "type": format!("{from}_to_{to}_unlabeled")}));
        }
        results
    }

    /// The associations of one object; `None` when it has none.
    pub fn associations(&self, kind: &str, id: u64, to_kind: &str) -> Option<Value> {
        let object = self.get(kind, id).filter(|object| object.archived_at.is_none())?;
        let to = |(index, to_id): (usize, u64)| {
            let kinds = association_types(kind, to_kind, index == 0);
            let kinds: Vec<_> = kinds
                .iter()
                .map(|(type_id, label)| json!({"category": "HUBSPOT_DEFINED", "typeId": type_id, "label": label}))
                .collect();
            json!({"toObjectId": to_id, "associationTypes": kinds})
        };
        let to: Vec<Value> = self.linked(object, to_kind).enumerate().map(to).collect();
        (!to.is_empty()).then(|| json!({"from": {"id": id.to_string()}, "to": to}))
    }
}

/// The part of a list that says how it goes on.
pub(crate) fn paging(next: Option<String>, link: &str) -> Option<Value> {
    let after = next?;
    let joint = if link.contains('?') { '&' } else { '?' };
    Some(json!({"next": {"after": after, "link": format!("{link}{joint}after={after}")}}))
}

fn singular(kind: &str) -> &str {
    TYPES.iter().find(|(_, plural)| *plural == kind).map_or(kind, |(singular, _)| singular)
}

fn association_types(from: &str, to: &str, is_first: bool) -> Vec<(u32, Option<&'static str>)> {
    let unlabelled = match (from, to) {
        ("contacts", "companies") => 279,
        ("companies", "contacts") => 280,
        ("deals", "companies") => 341,
        ("companies", "deals") => 342,
        ("deals", "contacts") => 3,
        ("contacts", "deals") => 4,
        _ => 450,
    };
    let primary = match (from, to) {
        ("contacts", "companies") if is_first => Some(1),
        ("deals", "companies") if is_first => Some(5),
        _ => None,
    };
    let primary = primary.map(|type_id| (type_id, Some("Primary")));
    primary.into_iter().chain([(unlabelled, None)]).collect()
}

fn kept_properties(kind: &str) -> [&'static str; 3] {
    ["hs_object_id", "createdate", modified_property(kind)]
}

fn default_properties(kind: &str) -> &'static [&'static str] {
    match kind {
        "contacts" => &["email", "firstname", "lastname"],
        "companies" => &["domain", "name"],
        _ => &["amount", "closedate", "dealname", "dealstage", "pipeline"],
    }
}
