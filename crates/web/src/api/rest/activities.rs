//! Inserts activities as PostgREST does: one row or several, all of them or none.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use domain::{ActivityId, ContactId, Direction, PersonId};
use engine::ActError;
use engine::activities::inserted::{self, COLUMNS, Inserted, MOST_ROWS};
use serde_json::{Map, Value};
use store::rest::{self, Condition, Operator, Table, Wanted};

use super::error::RestError;
use super::{prefers, shaped};
use crate::api::auth::Caller;
use crate::app::App;

pub(super) async fn insert(
    app: &App,
    caller: &Caller,
    table: &Table,
    wanted: Wanted,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, RestError> {
    let rows = rows(body)?.iter().map(|row| read(table, row)).collect::<Result<Vec<_>, _>>()?;
    let ignores_taken = prefers(headers, "resolution=ignore-duplicates");
    let inserted = inserted::insert(&app.env, caller, rows, ignores_taken).await.map_err(refusal)?;
    if !prefers(headers, "return=representation") {
        return Ok(StatusCode::CREATED.into_response());
    }
    // In the order in which they were given, whichever columns are wanted.
    let is_id_wanted = wanted.columns.is_empty() || wanted.columns.contains(&"id");
    let mut columns = wanted.columns;
    if !is_id_wanted {
        columns.push("id");
    }
    let ids: Vec<String> = inserted.ids.iter().map(ToString::to_string).collect();
    let column = table.column("id").unwrap_or(("id", "uuid"));
    let of_these = Condition { column, is_not: false, operator: Operator::In, values: ids.clone() };
    let written = Wanted { columns, conditions: vec![of_these], limit: MOST_ROWS as i64, ..Wanted::default() };
    let mut found = app.env.db.read(caller, async |tx| rest::select(tx, table, &written).await).await?;
    found.sort_by_key(|row| ids.iter().position(|id| row["id"] == id.as_str()));
    if !is_id_wanted {
        for row in found.iter_mut().filter_map(Value::as_object_mut) {
            row.remove("id");
        }
    }
    shaped(StatusCode::CREATED, found, headers)
}

fn rows(body: &Bytes) -> Result<Vec<Map<String, Value>>, RestError> {
    let malformed = || RestError::bad("PGRST102", "the body is not a JSON object or a list of them");
    let rows = match serde_json::from_slice(body).map_err(|_| malformed())? {
        Value::Object(row) => vec![row],
        Value::Array(rows) => {
            let row = |row| if let Value::Object(row) = row { Ok(row) } else { Err(malformed()) };
            rows.into_iter().map(row).collect::<Result<Vec<_>, _>>()?
        }
        _ => return Err(malformed()),
    };
    if rows.len() > MOST_ROWS {
        return Err(RestError::bad("PGRST102", format!("at most {MOST_ROWS} rows at once")));
    }
    Ok(rows)
}

/// Reads a row. Columns that there are not, and those that only the server sets, are refused by name.
fn read(table: &Table, row: &Map<String, Value>) -> Result<Inserted, RestError> {
    for name in row.keys() {
        if table.column(name).is_none() {
            return Err(RestError::bad("PGRST204", format!("there is no column {name:?} in {}", table.name)));
        }
        if !COLUMNS.contains(&name.as_str()) {
            let what = format!("column {name:?} cannot be set; {} can", COLUMNS.join(", "));
            return Err(RestError::new(StatusCode::FORBIDDEN, "42501", what));
        }
    }
    let given = |name: &str| row.get(name).filter(|value| !value.is_null());
    let missing = |name: &str| RestError::bad("23502", format!("{name} is missing"));
    let odd = |name: &str, what: &str| RestError::bad("22P02", format!("{name} is {what}"));
    let number = |name: &str| match given(name) {
        Some(value) => value.as_i64().map(Some).ok_or_else(|| odd(name, "a number")),
        None => Ok(None),
    };
    let fields = |name: &str| match given(name) {
        Some(value) => value.as_object().cloned().map(Some).ok_or_else(|| odd(name, "an object")),
        None => Ok(None),
    };
    let word = |name: &str| given(name).map(|value| value.as_str().unwrap_or_default());
    let kinds = "email, call, sms, meeting, note, task, whatsapp or other";
    Ok(Inserted {
        id: match word("id") {
            Some(text) => Some(text.parse::<ActivityId>().map_err(|_| odd("id", "a uuid"))?),
            None => None,
        },
        r#type: word("type").ok_or_else(|| missing("type"))?.parse().map_err(|_| odd("type", kinds))?,
        direction: match word("direction") {
            Some(text) => text.parse().map_err(|_| odd("direction", "inbound or outbound"))?,
            None => Direction::Inbound,
        },
        person_id: number("sales_id")?.map(PersonId),
        contact_id: number("contact_id")?.map(ContactId),
        raw_data: fields("raw_data")?.ok_or_else(|| missing("raw_data"))?,
        metadata: fields("metadata")?.unwrap_or_default(),
    })
}

fn refusal(error: ActError) -> RestError {
    match error {
        ActError::Invalid(what) => RestError::bad("23514", what),
        ActError::NotFound(what) => RestError::new(StatusCode::CONFLICT, "23503", format!("there is no such {what}")),
        ActError::Conflict(what) => RestError::new(StatusCode::CONFLICT, "23505", what),
        ActError::Store(error) => error.into(),
        error @ ActError::Failed(_) => crate::api::error::ApiError::from(error).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(row: Value) -> Result<Inserted, String> {
        let table = Table::find("activities").expect("a table");
        read(table, row.as_object().expect("an object")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_row_has_the_columns_that_a_program_may_set() {
        let raw = json!({ "source_type": "text", "content": "x" });
        let read = told(json!({ "type": "task", "raw_data": raw, "contact_id": null, "sales_id": 7 })).expect("a row");
        assert_eq!((read.r#type, read.direction), (domain::ActivityType::Task, Direction::Inbound));
        assert_eq!((read.person_id, read.contact_id, read.id), (Some(PersonId(7)), None, None));
        for (row, why) in [
            (json!({ "raw_data": raw }), "type is missing"),
            (json!({ "type": "note" }), "raw_data is missing"),
            (
                json!({ "type": "pigeon", "raw_data": raw }),
                "type is email, call, sms, meeting, note, task, whatsapp or other",
            ),
            (json!({ "type": 7, "raw_data": raw }), "type is email, call, sms, meeting, note, task, whatsapp or other"),
            (json!({ "type": "note", "raw_data": "x" }), "raw_data is an object"),
            (json!({ "type": "note", "raw_data": raw, "contact_id": "7" }), "contact_id is a number"),
            (json!({ "type": "note", "raw_data": raw, "id": "x" }), "id is a uuid"),
            (
                json!({ "type": "note", "raw_data": raw, "tenant_id": "x" }),
                "there is no column \"tenant_id\" in activities",
            ),
        ] {
            assert_eq!(told(row).err().as_deref(), Some(why));
        }
        for ours in
            ["processing_status", "processed_data", "locked_by", "lock_epoch", "provider_id", "event_key", "created_at"]
        {
            let refused = told(json!({ "type": "note", "raw_data": raw, ours: "x" })).expect_err(ours);
            assert!(refused.starts_with(&format!("column {ours:?} cannot be set; id, type, ")), "{refused}");
        }
    }

    #[test]
    fn a_body_is_one_row_or_a_list() {
        let of = |body: &'static str| rows(&Bytes::from_static(body.as_bytes())).map(|rows| rows.len()).ok();
        assert_eq!((of("{}"), of("[{},{}]"), of("[]")), (Some(1), Some(2), Some(0)));
        assert_eq!((of(""), of("7"), of("[7]"), of("{")), (None, None, None, None));
        let many = Bytes::from(format!("[{}]", vec!["{}"; 101].join(",")));
        assert!(rows(&many).is_err());
    }
}
