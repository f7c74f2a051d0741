//! Queries as PostgREST's clients write them. Columns and operators are of a list; everything else is refused.

use domain::text::has_nul;
use store::rest::{Condition, Operator, Table, Wanted};

use super::error::RestError;

const MOST_ROWS: i64 = 1_000;

/// Reads `select=`, `order=`, `limit=`, `offset=`, and filters `column=operator.value`.
pub(super) fn parse(table: &Table, query: &str) -> Result<Wanted, RestError> {
    let mut wanted = Wanted { limit: MOST_ROWS, ..Wanted::default() };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_encoding::percent_decode_str(&spaced).decode_utf8().map(|text| text.into_owned())
        };
        let malformed = |_| RestError::bad("PGRST100", "the query is not UTF-8");
        let (name, value) = (decoded(name).map_err(malformed)?, decoded(value).map_err(malformed)?);
        if has_nul(&value) {
            return Err(RestError::bad("PGRST100", "the query has a NUL character"));
        }
        let number = || value.parse::<i64>().map_err(|_| RestError::bad("PGRST100", format!("{name} is a number")));
        let column = |name: &str| {
            let known = table.column(name.trim().trim_matches('"'));
            known.ok_or_else(|| RestError::bad("42703", format!("there is no column {name:?} in {}", table.name)))
        };
        match name.as_str() {
            "select" => {
                for name in value.split(',').filter(|name| !name.is_empty() && *name != "*") {
                    wanted.columns.push(column(name)?.0);
                }
            }
            "order" => {
                for part in value.split(',') {
                    let mut words = part.split('.');
                    let name = column(words.next().unwrap_or_default())?.0;
                    wanted.order.push((name, words.any(|word| word == "desc")));
                }
            }
            "limit" => wanted.limit = number()?.clamp(0, MOST_ROWS),
            "offset" => wanted.offset = number()?.max(0),
            "columns" | "on_conflict" => {}
            filter => wanted.conditions.push(condition(column(filter)?, &value)?),
        }
    }
    Ok(wanted)
}

/// Reads `operator.value`, or `not.operator.value`.
pub(crate) fn condition(column: (&'static str, &'static str), text: &str) -> Result<Condition, RestError> {
    let malformed = || RestError::bad("PGRST100", format!("{text:?} is not a filter such as eq.value"));
    let (is_not, rest) = text.strip_prefix("not.").map_or((false, text), |rest| (true, rest));
    let (operator, value) = rest.split_once('.').ok_or_else(malformed)?;
    let operator = match operator {
        "eq" => Operator::Eq,
        "neq" => Operator::Neq,
        "gt" => Operator::Gt,
        "gte" => Operator::Gte,
        "lt" => Operator::Lt,
        "lte" => Operator::Lte,
        "like" => Operator::Like,
        "ilike" => Operator::Ilike,
        "match" => Operator::Match,
        "imatch" => Operator::Imatch,
        "in" => Operator::In,
        "is" => Operator::Is,
        "isdistinct" => Operator::IsDistinct,
        _ => return Err(malformed()),
    };
    let values = match operator {
        Operator::In => listed(value).ok_or_else(malformed)?,
        _ => vec![value.to_owned()],
    };
    Ok(Condition { column, is_not, operator, values })
}

/// Reads a list such as `(a,"b,c")`.
fn listed(text: &str) -> Option<Vec<String>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let (mut values, mut value, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => value.extend(chars.next()),
            ',' if !is_quoted => values.push(std::mem::take(&mut value)),
            _ => value.push(c),
        }
    }
    if is_quoted {
        return None;
    }
    if !inner.is_empty() {
        values.push(value);
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> &'static Table {
        Table::find("activities").expect("a table")
    }

    #[test]
    fn queries_are_read_as_the_client_writes_them() {
        let query = "select=id%2Cprocessing_status&processing_status=in.%28raw%2C%22b%2Cc%22%29&locked_by=is.null&lock_epoch=not.gte.3&order=created_at.desc&offset=0&limit=10";
        let wanted = parse(table(), query).expect("a query");
        assert_eq!(wanted.columns, ["id", "processing_status"]);
        assert_eq!(wanted.order, [("created_at", true)]);
        assert_eq!((wanted.limit, wanted.offset), (10, 0));
        let values: Vec<&[String]> = wanted.conditions.iter().map(|condition| condition.values.as_slice()).collect();
        assert_eq!(values, [&["raw".to_owned(), "b,c".to_owned()][..], &["null".to_owned()], &["3".to_owned()]]);
        assert!(wanted.conditions[2].is_not);
        assert_eq!(parse(table(), "select=*").expect("a query").columns.len(), 0);
    }

    #[test]
    fn what_is_no_column_or_filter_is_refused() {
        for bad in [
            "nothing=eq.1",
            "id=1",
            "id=regexp.x",
            "select=id,tenant_id",
            "order=1;drop table x",
            "id=in.(a",
            "limit=many",
            "id=eq.%00",
            "tenant_id=eq.x",
        ] {
            assert!(parse(table(), bad).is_err(), "{bad}");
        }
        assert_eq!(listed("()"), Some(vec![]));
        assert_eq!(listed(r#"("a\"b",c)"#), Some(vec!["a\"b".into(), "c".into()]));
        assert_eq!(listed(r#"("a)"#), None);
    }
}
