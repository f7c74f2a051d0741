//! A subscription's filter: `column=operator.value` joined by commas, in the syntax of [`rest::condition`]. It is evaluated here on the
//! row that was read, not by PostgreSQL, so a filter costs the database nothing.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use store::rest::{Condition, Operator, Table};
use uuid::Uuid;

use crate::api::rest;

const MOST_BYTES: usize = 2_000;
/// The largest size of a compiled pattern. Matching takes time in proportion to the text, for every pattern.
const PATTERN_BYTES: usize = 64 * 1024;

/// A filter. All of its tests must hold.
#[derive(Debug, Default)]
pub(super) struct Filter(Vec<Test>);

#[derive(Debug)]
struct Test {
    column: (&'static str, &'static str),
    is_not: bool,
    check: Check,
}

#[derive(Debug)]
enum Check {
    /// The value compares to ours in one of these ways.
    Compare(&'static [Ordering], Typed),
    In(Vec<Typed>),
    Pattern(Regex),
    IsNull,
    IsDistinct(Option<Typed>),
}

/// A value that compares as in PostgreSQL for the type of its column.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Typed {
    Text(String),
    Number(i64),
    Id(Uuid),
    Time(DateTime<Utc>),
}

impl Filter {
    pub fn new(table: &Table, text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("a filter has at most {MOST_BYTES} bytes"));
        }
        split(text).into_iter().map(|part| Test::new(table, part)).collect::<Result<_, _>>().map(Self)
    }

    pub fn patterns(&self) -> usize {
        self.0.iter().filter(|test| matches!(test.check, Check::Pattern(_))).count()
    }

    pub fn holds(&self, row: &Map<String, Value>) -> bool {
        self.0.iter().all(|test| test.holds(row) == Some(true))
    }
}

impl Test {
    fn new(table: &Table, text: &str) -> Result<Self, String> {
        let (name, rest) =
            text.split_once('=').ok_or_else(|| format!("{text:?} is not a filter such as column=eq.value"))?;
        let column =
            table.column(name.trim()).ok_or_else(|| format!("there is no column {name:?} in {}", table.name))?;
        let Condition { is_not, operator, values, .. } =
            rest::condition(column, rest).map_err(|error| error.to_string())?;
        let (given, kind) = (values.first().map_or("", String::as_str), column.1);
        let value = unquoted(given);
        let typed = || Typed::new(kind, &value).ok_or_else(|| format!("{value:?} is not of type {kind}, as {name} is"));
        let compare = |are: &'static [Ordering]| Ok::<_, String>(Check::Compare(are, typed()?));
        let text_only = || match kind {
            "text" | "uuid" => Ok(()),
            _ => Err(format!("{name} is not a text: patterns do not apply")),
        };
        let check = match operator {
            Operator::Is if value == "null" => Check::IsNull,
            Operator::Is => return Err(format!("{name} can be null, and not {value:?}")),
            _ if kind == "jsonb" => return Err(format!("{name} can be filtered by is.null alone")),
            Operator::Eq => compare(&[Ordering::Equal])?,
            Operator::Neq => compare(&[Ordering::Less, Ordering::Greater])?,
            Operator::Lt => compare(&[Ordering::Less])?,
            Operator::Lte => compare(&[Ordering::Less, Ordering::Equal])?,
            Operator::Gt => compare(&[Ordering::Greater])?,
            Operator::Gte => compare(&[Ordering::Greater, Ordering::Equal])?,
            Operator::In => {
                let one = |value: &String| {
                    Typed::new(kind, value).ok_or_else(|| format!("{value:?} is not of type {kind}, as {name} is"))
                };
                Check::In(values.iter().map(one).collect::<Result<_, _>>()?)
            }
            Operator::IsDistinct if given == "null" => Check::IsDistinct(None),
            Operator::IsDistinct => Check::IsDistinct(Some(typed()?)),
            Operator::Like | Operator::Ilike => {
                text_only()?;
                Check::Pattern(pattern(&like(&value), operator == Operator::Ilike)?)
            }
            Operator::Match | Operator::Imatch => {
                text_only()?;
                Check::Pattern(pattern(&value, operator == Operator::Imatch)?)
            }
        };
        Ok(Self { column, is_not, check })
    }

    /// Returns `None` for unknown, as in SQL when a value is null.
    fn holds(&self, row: &Map<String, Value>) -> Option<bool> {
        let (name, kind) = self.column;
        let value = row.get(name).filter(|value| !value.is_null());
        let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let typed = || Typed::new(kind, text.as_deref()?);
        let is = match &self.check {
            Check::Compare(are, other) => are.contains(&typed()?.partial_cmp(other)?),
            Check::In(list) => list.contains(&typed()?),
            Check::Pattern(pattern) => pattern.is_match(text.as_deref()?),
            Check::IsNull => value.is_none(),
            Check::IsDistinct(other) => typed() != *other,
        };
        Some(is != self.is_not)
    }
}

impl Typed {
    fn new(kind: &str, text: &str) -> Option<Self> {
        Some(match kind {
            "uuid" => Self::Id(text.trim().parse().ok()?),
            "int4" | "int8" => Self::Number(text.trim().parse().ok()?),
            "timestamptz" => {
                let day = || text.trim().parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN).and_utc());
                Self::Time(text.trim().parse().ok().or_else(day)?)
            }
            _ => Self::Text(text.to_owned()),
        })
    }
}

/// Splits at commas that are neither in quotes nor in a list.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut is_quoted, mut is_escaped) = (Vec::new(), 0, 0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Unquotes a value. Newer clients quote values that contain commas, quotes or brackets.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return text.to_owned() };
    let mut chars = inner.chars();
    let mut value = String::new();
    while let Some(c) = chars.next() {
        value.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    value
}

/// Converts LIKE's `%` and `_`, and PostgREST's `*`, to a regular expression.
fn like(text: &str) -> String {
    let mut pattern = String::from("(?s)^");
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '*' => pattern.push_str(".*"),
            '_' => pattern.push('.'),
            '\\' => pattern.push_str(&regex::escape(&chars.next().map(String::from).unwrap_or_default())),
            _ => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern + "$"
}

fn pattern(text: &str, is_any_case: bool) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    builder.case_insensitive(is_any_case).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    builder.build().map_err(|_| format!("{text:?} is not a pattern, or is too large"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table() -> &'static Table {
        Table::find("activities").expect("a table")
    }

    fn holds(filter: &str) -> bool {
        let row = json!({
            "id": "0190a5b8-7d2c-7a10-8c1e-000000000001", "type": "note, short", "sales_id": 10, "lock_epoch": 0, "locked_by": null,
            "processing_status": "raw", "raw_data": {}, "created_at": "2026-11-15T12:00:00.25+00:00", "event_key": "Order (7)",
        });
        let row = row.as_object().expect("a row");
        Filter::new(table(), filter).unwrap_or_else(|why| panic!("{filter}: {why}")).holds(row)
    }

    #[test]
    fn a_row_is_told_when_every_test_holds() {
        for yes in [
            "",
            "processing_status=eq.raw",
            "processing_status=neq.completed",
            "processing_status=in.(raw,failed)",
            "processing_status=not.in.(completed,failed)",
            "processing_status=eq.raw,sales_id=gte.9,lock_epoch=eq.0",
            "sales_id=gt.9", // as numbers: 10 is less than 9 as text
            "sales_id=in.(9,10)",
            "id=eq.0190A5B8-7D2C-7A10-8C1E-000000000001",
            "created_at=gt.2026-11-15T12:00:00Z",
            "created_at=lte.2026-11-15T13:00:00.25+01:00",
            "created_at=gte.2026-11-15",
            "locked_by=is.null",
            "raw_data=not.is.null",
            "locked_by=isdistinct.0190a5b8-7d2c-7a10-8c1e-000000000001",
            "sales_id=isdistinct.null",
            "locked_by=not.isdistinct.null",
            "event_key=like.Order%",
            "event_key=ilike.order*",
            "event_key=like._rder%",
            r#"event_key=like."Order (7)""#,
            "event_key=match.^O.*[0-9]",
            "event_key=imatch.^order",
            r#"type=eq."note, short",processing_status=eq.raw"#,
            r#"type=in.("note, short",call)"#,
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            "processing_status=eq.completed",
            "processing_status=eq.raw,sales_id=eq.11",
            "processing_status=not.eq.raw",
            "sales_id=lt.9",
            "created_at=lt.2026-11-15",
            "event_key=like.order%",
            "event_key=like.rder",
            "event_key=match.^[0-9]",
            // Null is neither equal nor unequal to any value, and `not` does not change that.
            "locked_by=eq.0190a5b8-7d2c-7a10-8c1e-000000000001",
            "locked_by=neq.0190a5b8-7d2c-7a10-8c1e-000000000001",
            "locked_by=not.eq.0190a5b8-7d2c-7a10-8c1e-000000000001",
            "locked_by=not.in.(0190a5b8-7d2c-7a10-8c1e-000000000001)",
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn what_cannot_be_decided_is_refused_with_a_reason() {
        for bad in [
            "nothing=eq.1",
            "tenant_id=eq.1",
            "processing_status",
            "processing_status=raw",
            "processing_status=near.raw",
            "sales_id=eq.many",
            "id=eq.7",
            "created_at=gt.yesterday",
            "lock_epoch=is.true",
            "raw_data=eq.{}",
            "sales_id=like.1%",
            "event_key=match.(",
            r"event_key=match.(\w{100}){100}",
            "type=eq.Hello, world",
            "sales_id=in.1",
            &format!("type=eq.{}", "x".repeat(MOST_BYTES)),
        ] {
            let refused = Filter::new(table(), bad);
            assert!(refused.as_ref().is_err_and(|why| !why.is_empty()), "{bad}: {refused:?}");
        }
    }
}
