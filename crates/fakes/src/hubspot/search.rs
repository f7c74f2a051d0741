//! HubSpot's search: filters, order, and an end after ten thousand results.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::clock::parse_iso;
use crate::hubspot::answers::paging;
use crate::hubspot::{Crm, Object};
use crate::manners::Manner;

/// No query goes further than this, however many it found.
const MOST_RESULTS: usize = 10_000;
const MOST_A_PAGE: usize = 200;

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Search {
    query: Option<String>,
    filter_groups: Vec<Group>,
    sorts: Vec<Sort>,
    properties: Vec<String>,
    limit: Option<usize>,
    /// Text or a number.
    after: Value,
}

#[derive(Deserialize, JsonSchema)]
struct Group {
    filters: Vec<Filter>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Filter {
    property_name: String,
    operator: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    values: Vec<Value>,
    #[serde(default)]
    high_value: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Sort {
    property_name: String,
    #[serde(default)]
    direction: String,
}

impl Crm {
    /// One page, or what is wrong with the question.
    pub fn search(
        &self,
        kind: &str,
        asked: &Search,
        manner: Option<&Manner>,
        now: DateTime<Utc>,
    ) -> Result<Value, String> {
        let limit = asked.limit.unwrap_or(10);
        if limit > MOST_A_PAGE {
            return Err(format!("limit must be at most {MOST_A_PAGE}, but was {limit}"));
        }
        let start: usize = match text(&asked.after) {
            None => 0,
            Some(after) => after.parse().map_err(|_| format!("The paging cursor '{after}' is not valid."))?,
        };
        if start + limit > MOST_RESULTS {
            return Err(format!("Search results are limited to {MOST_RESULTS}: after={start} goes beyond them."));
        }
        let mut found = Vec::new();
        for (id, object) in self.objects(kind) {
            let is_indexed = object.archived_at.is_none() && now - object.updated_at >= self.search_lag;
            if is_indexed && asked.matches(kind, id, object)? {
                found.push((id, object));
            }
        }
        found.sort_by(|(a_id, a), (b_id, b)| asked.order(kind, (*a_id, a), (*b_id, b)));
        let repeats = manner == Some(&Manner::RepeatToken);
        let limit = manner.map_or(limit, |manner| manner.page_rows(limit));
        let page = found.iter().skip(start).take(limit);
        let results: Vec<_> = page.map(|(id, object)| self.record(kind, *id, object, &asked.properties, &[])).collect();
        let mut answer = json!({"total": found.len(), "results": results});
        let next = if repeats { start } else { start + limit };
        if repeats || next < found.len() {
            answer["paging"] = json!(paging(Some(next.to_string()), &format!("/crm/v3/objects/{kind}/search")));
        }
        Ok(answer)
    }
}

impl Search {
    /// Any group, and in it every filter.
    fn matches(&self, kind: &str, id: u64, object: &Object) -> Result<bool, String> {
        let words = self.query.as_deref().unwrap_or_default().to_lowercase();
        let is_said = words.is_empty()
            || object.properties.values().any(|v| v.as_str().is_some_and(|v| v.to_lowercase().contains(&words)));
        let mut is_in_group = self.filter_groups.is_empty();
        for group in &self.filter_groups {
            let mut is_in_this = true;
            for filter in &group.filters {
                is_in_this &= filter.matches(&object.property(kind, id, &filter.property_name))?;
            }
            is_in_group |= is_in_this;
        }
        Ok(is_said && is_in_group)
    }

    fn order(&self, kind: &str, (a_id, a): (u64, &Object), (b_id, b): (u64, &Object)) -> Ordering {
        let by_sort = self.sorts.first().map_or(Ordering::Equal, |sort| {
            let value = |id: u64, object: &Object| object.property(kind, id, &sort.property_name);
            let order = compare(&value(a_id, a), &value(b_id, b)).unwrap_or(Ordering::Equal);
            if sort.direction == "DESCENDING" { order.reverse() } else { order }
        });
        by_sort.then(a_id.cmp(&b_id))
    }
}

impl Filter {
    fn matches(&self, property: &Value) -> Result<bool, String> {
        let order = compare(property, &self.value);
        Ok(match self.operator.as_str() {
            "EQ" => order == Some(Ordering::Equal),
            "NEQ" => order != Some(Ordering::Equal),
            "LT" => order == Some(Ordering::Less),
            "LTE" => order.is_some_and(Ordering::is_le),
            "GT" => order == Some(Ordering::Greater),
            "GTE" => order.is_some_and(Ordering::is_ge),
            "BETWEEN" => {
                order.is_some_and(Ordering::is_ge) && compare(property, &self.high_value).is_some_and(Ordering::is_le)
            }
            "IN" => self.values.iter().any(|value| compare(property, value) == Some(Ordering::Equal)),
            "HAS_PROPERTY" => !property.is_null(),
            "NOT_HAS_PROPERTY" => property.is_null(),
            unknown => return Err(format!("operator {unknown} is not one of this fake's")),
        })
    }
}

/// Numbers and times as such, the rest as text; nothing is neither more nor less than anything.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    let (a, b) = (text(a)?, text(b)?);
    match (number(&a), number(&b)) {
        (Some(a), Some(b)) => a.partial_cmp(&b),
        _ => Some(a.cmp(&b)),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A time is compared as the milliseconds that clients send.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().or_else(|| parse_iso(text).map(|at| at.timestamp_millis() as f64))
}
