//! The tables and functions that agents written for Supabase use, as PostgREST offers them. Names come from a fixed list, and values are
//! bound. Everything runs in the caller's own transaction, so row security, column grants and triggers decide what is allowed.

mod offered;

use domain::{PersonId, TenantId};
use serde_json::{Map, Value};
use sqlx::{PgConnection, Postgres, QueryBuilder};
use uuid::Uuid;

use self::offered::Does;
use crate::{Error, Result, claims};

pub use self::offered::{FUNCTIONS, Function, TABLES, Table};

/// A row that was written.
#[derive(Debug, sqlx::FromRow)]
pub struct Written {
    pub id: Uuid,
    /// Its columns, as JSON.
    pub row: Value,
    /// Whether pages have something new to show.
    pub is_news: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Eq,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
    Like,
    Ilike,
    Match,
    Imatch,
    In,
    Is,
    IsDistinct,
}

/// A condition on a column from the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub column: (&'static str, &'static str),
    pub is_not: bool,
    pub operator: Operator,
    /// One value, except for `in`.
    pub values: Vec<String>,
}

impl Condition {
    /// The row of this person in a table of people; without one no row.
    pub fn of_person(table: &Table, person_id: Option<PersonId>) -> Option<Self> {
        let column = table.column("id")?;
        let (operator, value) = match person_id {
            Some(id) => (Operator::Eq, id.to_string()),
            None => (Operator::Is, "null".to_owned()),
        };
        Some(Self { column, is_not: false, operator, values: vec![value] })
    }
}

/// A parsed query.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The selected columns; empty means all.
    pub columns: Vec<&'static str>,
    pub conditions: Vec<Condition>,
    /// The column, and whether the order is descending.
    pub order: Vec<(&'static str, bool)>,
    pub limit: i64,
    pub offset: i64,
}

fn push_columns(sql: &mut QueryBuilder<Postgres>, table: &Table, columns: &[&'static str]) {
    let all: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    let chosen = if columns.is_empty() { all.as_slice() } else { columns };
    let pairs: Vec<String> = chosen.iter().map(|name| format!("'{name}', t.{name}")).collect();
    sql.push(format!("jsonb_build_object({})", pairs.join(", ")));
}

fn push_returning(sql: &mut QueryBuilder<Postgres>, table: &Table, columns: &[&'static str]) {
    sql.push(format!(" returning t.id, {} as is_news, ", table.is_news));
    push_columns(sql, table, columns);
    sql.push(" as \"row\"");
}

fn push_conditions(sql: &mut QueryBuilder<Postgres>, conditions: &[Condition]) -> Result<()> {
    for (nth, condition) in conditions.iter().enumerate() {
        let (name, kind) = condition.column;
        sql.push(if nth == 0 { " where " } else { " and " });
        if condition.is_not {
            sql.push("not ");
        }
        sql.push(format!("(t.{name}"));
        let value = || condition.values.first().cloned().unwrap_or_default();
        let compared = match condition.operator {
            Operator::Eq => " = ",
            Operator::Neq => " <> ",
            Operator::Gt => " > ",
            Operator::Gte => " >= ",
            Operator::Lt => " < ",
            Operator::Lte => " <= ",
            Operator::IsDistinct => " is distinct from ",
            Operator::Like | Operator::Ilike => {
                sql.push(if condition.operator == Operator::Like { "::text like " } else { "::text ilike " });
                sql.push_bind(value().replace('*', "%")).push(")");
                continue;
            }
            Operator::Match | Operator::Imatch => {
                sql.push(if condition.operator == Operator::Match { "::text ~ " } else { "::text ~* " });
                sql.push_bind(value()).push(")");
                continue;
            }
            Operator::In => {
                sql.push(" = any (").push_bind(condition.values.clone()).push(format!("::text[]::{kind}[]))"));
                continue;
            }
            Operator::Is => {
                let known = match value().as_str() {
                    "null" => " is null)",
                    "true" => " is true)",
                    "false" => " is false)",
                    other => return Err(Error::Refused { what: format!("{other:?} is neither null, true nor false") }),
                };
                sql.push(known);
                continue;
            }
        };
        sql.push(compared).push_bind(value()).push(format!("::text::{kind})"));
    }
    Ok(())
}

/// Returns rows as JSON objects.
pub async fn select(conn: &mut PgConnection, table: &Table, wanted: &Wanted) -> Result<Vec<Value>> {
    let mut sql = QueryBuilder::new("select ");
    push_columns(&mut sql, table, &wanted.columns);
    sql.push(format!(" from public.{} t", table.name));
    push_conditions(&mut sql, &wanted.conditions)?;
    for (nth, (column, is_descending)) in wanted.order.iter().enumerate() {
        let direction = if *is_descending { "desc" } else { "asc" };
        sql.push(if nth == 0 { " order by " } else { ", " }).push(format!("t.{column} {direction}"));
    }
    sql.push(" limit ").push_bind(wanted.limit).push(" offset ").push_bind(wanted.offset);
    Ok(sql.build_query_scalar().fetch_all(conn).await?)
}

pub async fn count(conn: &mut PgConnection, table: &Table, conditions: &[Condition]) -> Result<i64> {
    let mut sql = QueryBuilder::new(format!("select count(*) from public.{} t", table.name));
    push_conditions(&mut sql, conditions)?;
    Ok(sql.build_query_scalar().fetch_one(conn).await?)
}

/// Whether the conditions on `id` name a row that is there. An activity counts although the caller does not see it: another agent may have claimed it.
pub async fn is_there(conn: &mut PgConnection, table: &Table, conditions: &[Condition]) -> Result<bool> {
    let by_id: Vec<Condition> = conditions.iter().filter(|condition| condition.column.0 == "id").cloned().collect();
    if by_id.is_empty() {
        return Ok(false);
    }
    if count(&mut *conn, table, &by_id).await? > 0 {
        return Ok(true);
    }
    let is_name =
        |condition: &&Condition| !condition.is_not && [Operator::Eq, Operator::In].contains(&condition.operator);
    let named: Vec<Uuid> =
        by_id.iter().filter(is_name).flat_map(|condition| &condition.values).filter_map(|id| id.parse().ok()).collect();
    if table.name != "activities" || named.is_empty() {
        return Ok(false);
    }
    Ok(sqlx::query_scalar("select tributary.has_activity($1)").bind(named).fetch_one(conn).await?)
}

/// Converts a JSON value to the text that PostgreSQL parses for that type.
fn as_text(value: &Value, kind: &str) -> Option<String> {
    match value {
        Value::Null => None,
        other if kind == "jsonb" => Some(other.to_string()),
        Value::Array(items) if kind.ends_with("[]") => {
            let item = |item: &Value| match item {
                Value::Null => "null".to_owned(),
                Value::String(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
                other => other.to_string(),
            };
            Some(format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(",")))
        }
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn known<'a>(table: &Table, body: &'a Map<String, Value>) -> Result<Vec<((&'static str, &'static str), &'a Value)>> {
    let of = |(name, value): (&String, &'a Value)| match table.column(name) {
        Some(column) => Ok((column, value)),
        None => Err(Error::Refused { what: format!("there is no column {name:?} in {}", table.name) }),
    };
    body.iter().map(of).collect()
}

/// Loads a tenant's rows by id. JSON columns of more than `most_bytes` are left out, and the result says so.
pub async fn rows(
    conn: &mut PgConnection,
    table: &Table,
    tenant_id: TenantId,
    ids: &[Uuid],
    most_bytes: i32,
) -> Result<Vec<(Uuid, Value, bool)>> {
    let (large, plain): (Vec<_>, Vec<_>) = table.columns.iter().partition(|(_, kind)| *kind == "jsonb");
    let mut sql = QueryBuilder::new("select t.id, jsonb_build_object(");
    for (nth, (name, _)) in plain.iter().enumerate() {
        sql.push(if nth == 0 { "" } else { ", " }).push(format!("'{name}', t.{name}"));
    }
    sql.push(")");
    for (name, _) in &large {
        sql.push(format!(" || case when coalesce(octet_length(t.{name}::text), 0) <= ")).push_bind(most_bytes);
        sql.push(format!(" then jsonb_build_object('{name}', t.{name}) else '{{}}' end"));
    }
    sql.push(", false");
    for (name, _) in &large {
        sql.push(format!(" or coalesce(octet_length(t.{name}::text), 0) > ")).push_bind(most_bytes);
    }
    sql.push(format!(" from public.{} t where t.id = any (", table.name)).push_bind(ids);
    // Written so that no index applies: with the one on (tenant_id, created_at), PostgreSQL might read all rows of the tenant.
    sql.push(") and (t.tenant_id = ").push_bind(tenant_id.0).push(") is true");
    Ok(sql.build_query_as().fetch_all(conn).await?)
}

/// Updates the matching rows with the columns of the body.
pub async fn update(
    conn: &mut PgConnection,
    table: &Table,
    body: &Map<String, Value>,
    wanted: &Wanted,
) -> Result<Vec<Written>> {
    let mut sql = QueryBuilder::new(format!("update public.{} t set ", table.name));
    for (nth, ((name, kind), value)) in known(table, body)?.into_iter().enumerate() {
        sql.push(if nth == 0 { "" } else { ", " }).push(format!("{name} = "));
        sql.push_bind(as_text(value, kind)).push(format!("::text::{kind}"));
    }
    push_conditions(&mut sql, &wanted.conditions)?;
    push_returning(&mut sql, table, &wanted.columns);
    Ok(sql.build_query_as().fetch_all(conn).await?)
}

/// Inserts one row. With `is_upsert`, an existing device gets a heartbeat instead.
pub async fn insert(
    conn: &mut PgConnection,
    table: &Table,
    body: &Map<String, Value>,
    is_upsert: bool,
    columns: &[&'static str],
) -> Result<Written> {
    let given = known(table, body)?;
    let names: Vec<&str> = given.iter().map(|((name, _), _)| *name).collect();
    let mut sql = QueryBuilder::new(format!("insert into public.{} as t ({}) values (", table.name, names.join(", ")));
    for (nth, ((_, kind), value)) in given.iter().enumerate() {
        sql.push(if nth == 0 { "" } else { ", " });
        sql.push_bind(as_text(value, kind)).push(format!("::text::{kind}"));
    }
    sql.push(")");
    if is_upsert && table.name == "crm_processing_nodes" {
        let set: Vec<String> = ["status", "current_activity_id", "processed_count"]
            .into_iter()
            .filter(|name| names.contains(name))
            .map(|name| format!("{name} = excluded.{name}"))
            .chain(["last_heartbeat = excluded.last_heartbeat".to_owned()])
            .collect();
        sql.push(format!(" on conflict (sales_id, app_name, device_name) do update set {}", set.join(", ")));
    }
    push_returning(&mut sql, table, columns);
    Ok(sql.build_query_as().fetch_one(conn).await?)
}

/// The result of a function, and the activities that it changed.
#[derive(Debug)]
pub struct Called {
    /// An array of rows, or the value.
    pub value: Value,
    pub changed: Vec<Uuid>,
}

/// Calls a function with named arguments.
pub async fn call(conn: &mut PgConnection, function: &Function, arguments: &Map<String, Value>) -> Result<Called> {
    let mut sql =
        QueryBuilder::new(format!("select coalesce(jsonb_agg(to_jsonb(r)), '[]') from public.{}(", function.name));
    for (nth, (name, value)) in arguments.iter().enumerate() {
        let known = function.arguments.iter().find(|(known, _)| known == name);
        let (name, kind) = known
            .ok_or_else(|| Error::Refused { what: format!("there is no argument {name:?} of {}", function.name) })?;
        sql.push(if nth == 0 { "" } else { ", " }).push(format!("{name} => "));
        sql.push_bind(as_text(value, kind)).push(format!("::text::{kind}"));
    }
    if let Does::Recover { is_reset } = function.does {
        let recovered = claims::recover(conn, is_reset).await?;
        return Ok(Called { value: recovered.len().into(), changed: recovered.iter().map(|row| row.id).collect() });
    }
    sql.push(") r");
    let value: Value = sql.build_query_scalar().fetch_one(conn).await?;
    let rows = value.as_array().into_iter().flatten();
    let changed = rows.filter_map(|row| row["id"].as_str()?.parse().ok()).collect();
    Ok(Called { value, changed })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACTIVITIES: &Table = &TABLES[0];

    fn statement(conditions: &[Condition]) -> Result<String> {
        let mut sql = QueryBuilder::new("");
        push_conditions(&mut sql, conditions)?;
        Ok(sql.into_string())
    }

    fn on(column: &str, operator: Operator, values: &[&str]) -> Condition {
        let column = ACTIVITIES.column(column).expect("a column");
        Condition { column, is_not: false, operator, values: values.iter().map(|&value| value.to_owned()).collect() }
    }

    /// S19.
    #[test]
    fn only_names_of_the_list_are_tables_and_columns() {
        assert_eq!(Table::find("activities").map(|table| table.name), Some("activities"));
        for odd in ["", "Activities", "public.activities", "activities;", "pg_class", "secrets"] {
            assert!(Table::find(odd).is_none(), "{odd:?} was taken for a table");
        }
        for odd in
            ["", "tenant_id", "locked_key", "claimed_key", "id; drop table activities", "ID", "raw_data->content"]
        {
            assert!(ACTIVITIES.column(odd).is_none(), "{odd:?} was taken for a column");
        }
    }

    #[test]
    fn every_operator_binds_its_value_and_casts_it_to_the_columns_type() {
        for (condition, expected) in [
            (on("type", Operator::Eq, &["call"]), " where (t.type = $1::text::text)"),
            (on("sales_id", Operator::Neq, &["1"]), " where (t.sales_id <> $1::text::int8)"),
            (on("created_at", Operator::Gt, &["x"]), " where (t.created_at > $1::text::timestamptz)"),
            (on("lock_epoch", Operator::Gte, &["1"]), " where (t.lock_epoch >= $1::text::int4)"),
            (on("lock_epoch", Operator::Lt, &["1"]), " where (t.lock_epoch < $1::text::int4)"),
            (on("lock_epoch", Operator::Lte, &["1"]), " where (t.lock_epoch <= $1::text::int4)"),
            (on("id", Operator::IsDistinct, &["x"]), " where (t.id is distinct from $1::text::uuid)"),
            (on("event_key", Operator::Like, &["a*"]), " where (t.event_key::text like $1)"),
            (on("event_key", Operator::Ilike, &["a*"]), " where (t.event_key::text ilike $1)"),
            (on("event_key", Operator::Match, &["^a"]), " where (t.event_key::text ~ $1)"),
            (on("event_key", Operator::Imatch, &["^a"]), " where (t.event_key::text ~* $1)"),
            (on("sales_id", Operator::In, &["1", "2"]), " where (t.sales_id = any ($1::text[]::int8[]))"),
            (on("locked_by", Operator::Is, &["null"]), " where (t.locked_by is null)"),
            (on("locked_by", Operator::Is, &["true"]), " where (t.locked_by is true)"),
            (on("locked_by", Operator::Is, &["false"]), " where (t.locked_by is false)"),
        ] {
            assert_eq!(statement(std::slice::from_ref(&condition)).expect("a statement"), expected);
            let negated = Condition { is_not: true, ..condition };
            assert_eq!(statement(&[negated]).expect("a statement"), expected.replacen(" (", " not (", 1));
        }
    }

    /// S19.
    #[test]
    fn conditions_are_joined_and_nothing_of_a_value_reaches_the_statement() {
        let evil = "'; drop table activities; --";
        let all = [
            on("type", Operator::Eq, &[evil]),
            on("event_key", Operator::In, &[evil]),
            on("id", Operator::Like, &[evil]),
        ];
        let sql = statement(&all).expect("a statement");
        assert_eq!(
            sql,
            " where (t.type = $1::text::text) and (t.event_key = any ($2::text[]::text[])) and (t.id::text like $3)"
        );
        assert_eq!(statement(&[]).expect("nothing"), "");
        let refused = statement(&[on("id", Operator::Is, &[evil])]).expect_err("neither null, true nor false");
        assert!(refused.to_string().ends_with("is neither null, true nor false"), "{refused}");
    }

    #[test]
    fn the_columns_asked_for_are_returned_and_without_any_all() {
        let listed = |columns: &[&'static str]| {
            let mut sql = QueryBuilder::new("");
            push_columns(&mut sql, ACTIVITIES, columns);
            sql.into_string()
        };
        assert_eq!(listed(&["id", "type"]), "jsonb_build_object('id', t.id, 'type', t.type)");
        let all = listed(&[]);
        assert_eq!(all.matches("', t.").count(), ACTIVITIES.columns.len());
    }

    #[test]
    fn json_becomes_text_as_postgresql_reads_it() {
        for (value, kind, expected) in [
            (json!(null), "text", None),
            (json!(null), "jsonb", None),
            (json!("plain"), "text", Some("plain")),
            (json!("plain"), "jsonb", Some("\"plain\"")),
            (json!(7), "int8", Some("7")),
            (json!(true), "bool", Some("true")),
            (json!({ "a": [1, null] }), "jsonb", Some(r#"{"a":[1,null]}"#)),
            (json!([]), "text[]", Some("{}")),
            (json!(["a", "b,c", "d\"e", "f\\g", "{}", ""]), "text[]", Some(r#"{"a","b,c","d\"e","f\\g","{}",""}"#)),
            (json!([1, null]), "int4[]", Some("{1,null}")),
            (json!(["a"]), "text", Some(r#"["a"]"#)),
        ] {
            assert_eq!(as_text(&value, kind).as_deref(), expected, "{value} as {kind}");
        }
    }

    #[test]
    fn a_body_with_an_unknown_column_is_refused_by_name() {
        let body = json!({ "metadata": {}, "tenant_id": "x" });
        let refused = known(ACTIVITIES, body.as_object().expect("an object")).expect_err("an unknown column");
        assert_eq!(refused.to_string(), "there is no column \"tenant_id\" in activities");
        let body = json!({ "metadata": {}, "type": "call" });
        let found = known(ACTIVITIES, body.as_object().expect("an object")).expect("columns");
        assert_eq!(
            found.iter().map(|(column, _)| *column).collect::<Vec<_>>(),
            [("metadata", "jsonb"), ("type", "text")]
        );
    }
}
