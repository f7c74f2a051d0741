//! Activities that a program inserts with a key that may write (`POST /rest/v1/activities`). They wait for an agent like those that come by a channel.

use domain::text::{has_nul, replace_nul_in};
use domain::{ActivityId, ActivityType, Caller, ContactId, Direction, Op, PersonId, ProcessingStatus, normal_address};
use serde_json::{Map, Value};
use store::activities;
use store::written::{self, NewActivity};
use uuid::Uuid;

use crate::intake::normalise::object::RESERVED;
use crate::{ActError, Env};

/// The most rows that one request inserts.
pub const MOST_ROWS: usize = 100;
/// The columns that a program may set.
pub const COLUMNS: [&str; 7] = ["id", "type", "direction", "sales_id", "contact_id", "raw_data", "metadata"];
/// The fields of `raw_data`.
const RAW: [&str; 5] = ["source_type", "content", "subject", "sender", "format"];
/// Fields of `metadata` by which an activity is known as what a person wrote.
const WRITTEN: [&str; 3] = ["written_by", "at", "about"];
const MOST_BYTES: usize = 1_048_576;

/// An activity as a program gives it.
#[derive(Clone, Debug)]
pub struct Inserted {
    /// Made by the program: sent again, it is the same activity.
    pub id: Option<ActivityId>,
    pub r#type: ActivityType,
    pub direction: Direction,
    pub person_id: Option<PersonId>,
    pub contact_id: Option<ContactId>,
    pub raw_data: Map<String, Value>,
    pub metadata: Map<String, Value>,
}

/// The activities of a request, in its order.
#[derive(Clone, Debug)]
pub struct Insertion {
    pub ids: Vec<Uuid>,
    /// Those whose ids were taken, so that nothing was inserted for them.
    pub taken: Vec<Uuid>,
}

impl Inserted {
    /// An error says what is wrong.
    fn checked(&self) -> Result<(), String> {
        let size = |fields: &Map<String, Value>| serde_json::to_vec(fields).map_or(usize::MAX, |json| json.len());
        if size(&self.raw_data) > MOST_BYTES || size(&self.metadata) > MOST_BYTES {
            return Err("raw_data and metadata have at most 1 MiB each".into());
        }
        for fields in [&self.raw_data, &self.metadata] {
            let (given, mut clean) = (Value::Object(fields.clone()), Value::Object(fields.clone()));
            replace_nul_in(&mut clean);
            if given != clean {
                return Err("it has a NUL character".into());
            }
        }
        if let Some((odd, _)) = self.raw_data.iter().find(|(name, _)| !RAW.contains(&name.as_str())) {
            return Err(format!("there is no field {odd:?} in raw_data; it has {}", RAW.join(", ")));
        }
        let text = |name: &str| self.raw_data.get(name).and_then(Value::as_str);
        if self.raw_data.values().any(|value| !value.is_string()) {
            return Err("the fields of raw_data are texts".into());
        }
        if !matches!(text("source_type"), Some("text" | "url")) {
            return Err("raw_data.source_type is text or url".into());
        }
        let is_blank = |name: &str| text(name).is_none_or(|text| text.trim().is_empty());
        if is_blank("content") && (text("source_type") == Some("url") || is_blank("subject")) {
            return Err("raw_data.content is empty".into());
        }
        if let Some(ours) = RESERVED.iter().chain(&WRITTEN).find(|name| self.metadata.contains_key(**name)) {
            return Err(format!("only the server writes metadata.{ours}"));
        }
        Ok(())
    }
}

/// Inserts activities, all of them or none. Those whose ids are taken in this tenant or another are not inserted, and named.
pub async fn insert(
    env: &Env,
    caller: &Caller,
    rows: Vec<Inserted>,
    ignores_taken: bool,
) -> Result<Insertion, ActError> {
    let (tenant_id, region) = (caller.tenant_id, env.config.phone_region);
    if rows.len() > MOST_ROWS {
        return Err(ActError::Invalid(format!("at most {MOST_ROWS} rows at once")));
    }
    let (mut new, mut contacts, mut people) = (Vec::with_capacity(rows.len()), Vec::new(), Vec::new());
    for row in rows {
        row.checked().map_err(ActError::Invalid)?;
        contacts.extend(row.contact_id.map(|id| id.0));
        people.extend(row.person_id.map(|id| id.0));
        let mut metadata = row.metadata;
        let (party, key) = match row.direction {
            Direction::Inbound => ("from", "from_key"),
            Direction::Outbound => ("to", "to_key"),
        };
        let normal = metadata.get(party).and_then(Value::as_str).filter(|text| !has_nul(text));
        if let Some(normal) = normal.and_then(|party| normal_address(party, region)) {
            metadata.insert(key.into(), normal.into());
        }
        new.push(NewActivity {
            id: row.id.unwrap_or_else(ActivityId::new),
            r#type: row.r#type,
            direction: row.direction,
            person_id: row.person_id,
            contact_id: row.contact_id,
            status: ProcessingStatus::Raw,
            raw_data: Value::Object(row.raw_data),
            processed_data: None,
            metadata: Value::Object(metadata),
        });
    }
    let ids: Vec<Uuid> = new.iter().map(|row| row.id.0).collect();
    let inserted = env.db.write(async |tx| -> Result<Vec<Uuid>, ActError> {
        crate::contacts::hold(tx, tenant_id, &contacts).await?;
        let held = written::hold_people(tx, tenant_id, &people).await?;
        if people.iter().any(|id| !held.contains(id)) {
            return Err(ActError::NotFound("person"));
        }
        let inserted = written::insert(tx, tenant_id, &new).await?;
        if inserted.len() < new.len() && !ignores_taken {
            return Err(ActError::conflict("an activity with that id is there already"));
        }
        tx.notify_all(activities::notices(tenant_id, &inserted, Op::Insert));
        Ok(inserted)
    });
    let inserted = inserted.await?;
    let (ids, taken) = ids.into_iter().partition(|id| inserted.contains(id));
    Ok(Insertion { ids, taken })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(raw: Value, metadata: Value) -> Inserted {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        Inserted {
            id: None,
            r#type: ActivityType::Note,
            direction: Direction::Inbound,
            person_id: None,
            contact_id: None,
            raw_data: object(raw),
            metadata: object(metadata),
        }
    }

    #[test]
    fn a_row_is_what_an_agent_can_process() {
        let text = json!({ "source_type": "text", "content": "x" });
        assert_eq!(row(text.clone(), json!({ "from": "ann@example.com", "deep": { "a": [1] } })).checked(), Ok(()));
        assert_eq!(row(json!({ "source_type": "text", "subject": "x" }), json!({})).checked(), Ok(()));
        for (raw, metadata, why) in [
            (json!({ "content": "x" }), json!({}), "raw_data.source_type is text or url"),
            (json!({ "source_type": "file", "content": "x" }), json!({}), "raw_data.source_type is text or url"),
            (json!({ "source_type": "text", "content": " " }), json!({}), "raw_data.content is empty"),
            (json!({ "source_type": "url", "subject": "x" }), json!({}), "raw_data.content is empty"),
            (json!({ "source_type": "text", "content": 7 }), json!({}), "the fields of raw_data are texts"),
            (json!({ "source_type": "text", "content": "a\0" }), json!({}), "it has a NUL character"),
            (text.clone(), json!({ "a": { "b\0": 1 } }), "it has a NUL character"),
            (text.clone(), json!({ "from_key": "x" }), "only the server writes metadata.from_key"),
            (text.clone(), json!({ "written_by": "Ben" }), "only the server writes metadata.written_by"),
            (text, json!({ "error": {} }), "only the server writes metadata.error"),
        ] {
            assert_eq!(row(raw, metadata).checked(), Err(why.to_owned()));
        }
        let odd = row(json!({ "source_type": "text", "content": "x", "body": "y" }), json!({})).checked();
        assert!(odd.is_err_and(|why| why.starts_with("there is no field \"body\" in raw_data")));
    }
}
