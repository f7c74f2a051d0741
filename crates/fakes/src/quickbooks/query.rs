//! QuickBooks' query language, as far as it is needed here.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Value, json};

use crate::clock::parse_iso;
use crate::quickbooks::{Books, ENTITIES, Entity};
use crate::tokens::Tokens;

const MOST_A_PAGE: usize = 1000;

pub(crate) struct Statement {
    entity: &'static str,
    is_count: bool,
    conditions: Vec<Condition>,
    order: Vec<(String, bool)>,
    pub start: usize,
    pub most: usize,
}

struct Condition {
    field: String,
    operator: String,
    values: Vec<String>,
}

impl Statement {
    /// Parses a query. The error is in QuickBooks' words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens::of(text);
        let wrong =
            |near: &str| format!("Error parsing query: QueryParserError: Encountered a mistake near \"{near}\"");
        let expect = |tokens: &mut Tokens, wanted: &str| tokens.take(wanted).then_some(()).ok_or_else(|| wrong(wanted));
        expect(&mut tokens, "select")?;
        let is_count = tokens.take("count");
        if is_count {
            expect(&mut tokens, "(")?;
        }
        expect(&mut tokens, "*")?;
        if is_count {
            expect(&mut tokens, ")")?;
        }
        expect(&mut tokens, "from")?;
        let name = tokens.word().unwrap_or_default();
        let entity = ENTITIES.into_iter().find(|entity| entity.eq_ignore_ascii_case(&name));
        let entity = entity.ok_or_else(|| format!("Metadata not found for Entity: {name}"))?;
        let mut statement = Self { entity, is_count, conditions: Vec::new(), order: Vec::new(), start: 1, most: 100 };
        if tokens.take("where") {
            statement.conditions.push(condition(&mut tokens).ok_or_else(|| wrong("where"))?);
            while tokens.take("and") {
                statement.conditions.push(condition(&mut tokens).ok_or_else(|| wrong("and"))?);
            }
        }
        if tokens.take("orderby") || tokens.take("order") && tokens.take("by") {
            loop {
                let field = tokens.word().ok_or_else(|| wrong("orderby"))?;
                let is_falling = tokens.take("desc");
                let _ = !is_falling && tokens.take("asc"); // which changes nothing
                statement.order.push((field, is_falling));
                if !tokens.take(",") {
                    break;
                }
            }
        }
        let number =
            |tokens: &mut Tokens, name: &str| tokens.word().and_then(|n| n.parse().ok()).ok_or_else(|| wrong(name));
        if tokens.take("startposition") {
            statement.start = number(&mut tokens, "startposition")?;
        }
        if tokens.take("maxresults") {
            statement.most = number(&mut tokens, "maxresults")?;
        }
        if statement.most > MOST_A_PAGE {
            let most = statement.most;
            return Err(format!("QueryValidationError: value {most} for max results is greater than {MOST_A_PAGE}"));
        }
        if !tokens.is_empty() || statement.start == 0 {
            return Err(wrong(&tokens.value().unwrap_or_default()));
        }
        Ok(statement)
    }

    pub fn run(&self, books: &Books) -> Value {
        let hides_inactive = self.conditions.iter().all(|condition| !condition.field.eq_ignore_ascii_case("Active"));
        let is_shown = |row: &Entity| !(hides_inactive && row.record["Active"] == json!(false));
        let mut found: Vec<(u64, &Entity)> = books
            .live(self.entity)
            .filter(|(_, row)| is_shown(row) && self.conditions.iter().all(|condition| condition.holds(row)))
            .collect();
        if self.is_count {
            return json!({"totalCount": found.len()});
        }
        found.sort_by(|(a_id, a), (b_id, b)| self.compare(a, b).then(a_id.cmp(b_id)));
        let page = found.iter().skip(self.start - 1).take(self.most);
        let rows: Vec<&Value> = page.map(|(_, row)| &row.record).collect();
        if rows.is_empty() {
            return json!({});
        }
        json!({self.entity: rows, "startPosition": self.start, "maxResults": rows.len()})
    }

    fn compare(&self, a: &Entity, b: &Entity) -> Ordering {
        let by = |(field, is_falling): &(String, bool)| {
            let order = match is_updated_time(field) {
                true => a.updated_at.cmp(&b.updated_at),
                false => compare(&value_at(&a.record, field), &value_at(&b.record, field)),
            };
            if *is_falling { order.reverse() } else { order }
        };
        self.order.iter().map(by).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

fn condition(tokens: &mut Tokens) -> Option<Condition> {
    let field = tokens.word()?;
    if tokens.take("in") {
        tokens.take("(").then_some(())?;
        let mut values = vec![tokens.value()?];
        while tokens.take(",") {
            values.push(tokens.value()?);
        }
        tokens.take(")").then_some(())?;
        return Some(Condition { field, operator: "in".to_owned(), values });
    }
    let operator = ["=", "!=", "<=", ">=", "<", ">", "like"].into_iter().find(|operator| tokens.take(operator))?;
    Some(Condition { field, operator: operator.to_owned(), values: vec![tokens.value()?] })
}

impl Condition {
    fn holds(&self, row: &Entity) -> bool {
        let wanted = self.values.first().map(String::as_str).unwrap_or_default();
        let order = match is_updated_time(&self.field) {
            // To the millisecond, although the record shows seconds: a later change is never taken for an earlier one.
            true => parse_time(wanted).map_or(Ordering::Less, |wanted| row.updated_at.cmp(&wanted)),
            false => compare(&value_at(&row.record, &self.field), wanted),
        };
        match self.operator.as_str() {
            "=" => order.is_eq(),
            "!=" => order.is_ne(),
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "<" => order.is_lt(),
            ">" => order.is_gt(),
            "like" => value_at(&row.record, &self.field).contains(wanted.trim_matches('%')),
            _ => self.values.iter().any(|wanted| compare(&value_at(&row.record, &self.field), wanted).is_eq()),
        }
    }
}

fn is_updated_time(field: &str) -> bool {
    field.eq_ignore_ascii_case("MetaData.LastUpdatedTime")
}

/// A record spells `MetaData`, a statement often `Metadata`.
fn value_at(record: &Value, field: &str) -> String {
    let step = |value: Option<&'_ Value>, name: &str| {
        let fields = value?.as_object()?;
        fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone())
    };
    let mut found = Some(record.clone());
    for name in field.split('.') {
        found = step(found.as_ref(), name);
    }
    match found {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}

/// Parses a time with a zone, or a day alone.
pub(crate) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    let day = || Some(text.parse::<NaiveDate>().ok()?.and_hms_opt(0, 0, 0)?.and_utc());
    parse_iso(text).or_else(day)
}
