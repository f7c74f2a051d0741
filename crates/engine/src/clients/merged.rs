//! One client's facts, merged from its records. A person's word is first, and what the records say otherwise stands beside it. Lists are joined, and
//! money is added up by currency.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::sums::{billionths, decimal};
use serde_json::{Value, json};
use store::clients::ClientRecord;
use uuid::Uuid;

use crate::pull::words::facts::place;

/// Facts that are sums of money: what several records say is added up.
const SUMS: [&str; 2] = ["ar_balance", "total_lifetime_value"];

/// A fact with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub name: String,
    pub value: Value,
    /// The documents that say so.
    pub documents: Vec<Uuid>,
    /// The sources that say so, by name.
    pub sources: Vec<String>,
    /// The person who said so. None: it is derived.
    pub said: Option<Said>,
    /// Other values, by other records.
    pub also: Vec<Fact>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub by: String,
    pub at: Option<DateTime<Utc>>,
}

/// The facts of a client, in the order in which people ask for them. The records come in their own order: the one that leads first.
pub fn facts(records: &[ClientRecord]) -> Vec<Fact> {
    let mut all: BTreeMap<(usize, String), Vec<Fact>> = BTreeMap::new();
    for record in records {
        let text = |name: &str, text: &Option<String>| Some((name.to_owned(), Value::from(text.clone()?)));
        let currency = record.key_facts.get("currency").and_then(Value::as_str);
        let named = record.key_facts.as_object().into_iter().flatten();
        let named = named.filter(|(name, _)| record.is_curated() || *name != "currency").map(|(name, value)| {
            let value = if record.is_curated() { value.clone() } else { with_currency(name, value, currency) };
            (name.clone(), value)
        });
        for (name, value) in
            [text("industry", &record.industry), text("summary", &record.summary)].into_iter().flatten().chain(named)
        {
            all.entry((place(&name), name.clone())).or_default().push(fact(record, name, value));
        }
    }
    all.into_values().filter_map(merged).collect()
}

fn fact(record: &ClientRecord, name: String, value: Value) -> Fact {
    let documents = record.evidence.get(&name).and_then(Value::as_array).into_iter().flatten();
    let said = record.said.get(&name).map(|said| Said {
        by: said["by"].as_str().unwrap_or_default().to_owned(),
        at: said["at"].as_str().and_then(|at| at.parse().ok()),
    });
    let by_hand = || Said { by: "a person".into(), at: Some(record.updated_at) };
    Fact {
        documents: documents.filter_map(|id| id.as_str()?.parse().ok()).collect(),
        sources: record.source_name.clone().into_iter().collect(),
        said: if record.is_curated() { said.or_else(|| Some(by_hand())) } else { None },
        also: Vec::new(),
        name,
        value,
    }
}

/// Sums name their currency, so that sums of several records can stand together.
fn with_currency(name: &str, value: &Value, currency: Option<&str>) -> Value {
    let Some(currency) = currency else { return value.clone() };
    match value {
        amount if SUMS.contains(&name) => json!({ "amount": amount, "currency": currency }),
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::Object(fields) if fields.contains_key("total") => {
                    let mut fields = fields.clone();
                    fields.insert("currency".into(), currency.into());
                    Value::Object(fields)
                }
                other => other.clone(),
            })
            .collect(),
        other => other.clone(),
    }
}

/// One fact of all that say something of one name: a person's word, with what the records say beside it; else what the records say. None: there is none.
fn merged(told: Vec<Fact>) -> Option<Fact> {
    let (said, derived): (Vec<Fact>, Vec<Fact>) = told.into_iter().partition(|fact| fact.said.is_some());
    let mut derived = joined(derived);
    let others = derived.as_mut().map(|fact| std::mem::take(&mut fact.also)).unwrap_or_default();
    let mut all = said.into_iter().chain(derived).chain(others);
    let mut first = all.next()?;
    for other in all {
        stand_beside(&mut first, other);
    }
    Some(first)
}

/// Joins the values of several records: sums are added up, lists are joined, and of other values the first one stands before the rest.
fn joined(derived: Vec<Fact>) -> Option<Fact> {
    let mut derived = derived.into_iter();
    let mut first = derived.next()?;
    let is_sum = SUMS.contains(&first.name.as_str());
    for other in derived {
        match (&mut first.value, other.value.clone()) {
            // Before they are compared: two accounts may owe the same.
            (_, theirs) if is_sum => {
                first.value = total(&[std::mem::take(&mut first.value), theirs]);
                add(&mut first, other);
            }
            (Value::Array(mine), Value::Array(theirs)) => {
                mine.extend(theirs.into_iter().filter(|one| !mine.contains(one)).collect::<Vec<_>>());
                add(&mut first, other);
            }
            _ => stand_beside(&mut first, other),
        }
    }
    if is_sum && first.value.is_object() {
        first.value = json!([first.value]);
    }
    Some(first)
}

/// Adds what another one says: the same, or another value.
fn stand_beside(first: &mut Fact, other: Fact) {
    if first.value == other.value {
        return add(first, other);
    }
    match first.also.iter_mut().find(|known| known.value == other.value && known.said == other.said) {
        Some(known) => add(known, other),
        None => first.also.push(other),
    }
}

fn add(fact: &mut Fact, other: Fact) {
    fact.documents.extend(other.documents.into_iter().filter(|id| !fact.documents.contains(id)).collect::<Vec<_>>());
    fact.sources.extend(other.sources.into_iter().filter(|name| !fact.sources.contains(name)).collect::<Vec<_>>());
}

/// Sums by currency: `[{amount, currency}]`, in the order of the currencies.
fn total(values: &[Value]) -> Value {
    let mut sums: BTreeMap<Option<String>, i128> = BTreeMap::new();
    let each = values.iter().flat_map(|value| match value {
        Value::Array(sums) => sums.clone(),
        one => vec![one.clone()],
    });
    for one in each {
        let (amount, currency) = match &one {
            Value::Object(fields) => {
                (fields.get("amount").cloned().unwrap_or_default(), one["currency"].as_str().map(str::to_owned))
            }
            amount => (amount.clone(), None),
        };
        if let Some(amount) = billionths(&amount) {
            *sums.entry(currency).or_default() += amount;
        }
    }
    let sum = |(currency, amount): (Option<String>, i128)| json!({ "amount": decimal(amount), "currency": currency });
    sums.into_iter().map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(source: Option<&str>, facts: Value) -> ClientRecord {
        let (key_facts, said) = match source {
            Some(_) => (facts, json!({})),
            None => (facts, json!({ "employees": { "by": "Ann", "at": "2026-11-18T00:00:00Z" } })),
        };
        ClientRecord {
            id: Uuid::nil(),
            client_id: Uuid::nil(),
            source_id: source.map(|_| Uuid::nil()),
            source_name: source.map(str::to_owned),
            source_provider: None,
            external_id: source.map(|_| "company:1".into()),
            client_name: "Acme".into(),
            industry: None,
            summary: None,
            key_facts,
            evidence: json!({}),
            document_id: None,
            matched_by: None,
            said,
            kind: "organisation".into(),
            emails: Vec::new(),
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
            record_document_id: None,
            record_type: None,
            record_title: None,
        }
    }

    fn value(records: &[ClientRecord], name: &str) -> Value {
        facts(records).into_iter().find(|fact| fact.name == name).map(|fact| fact.value).unwrap_or_default()
    }

    #[test]
    fn money_is_added_up_by_currency_and_lists_are_joined() {
        let records = [
            record(Some("Books"), json!({ "ar_balance": 0.1, "currency": "EUR", "open_invoices": [{ "total": 1 }] })),
            record(
                Some("Old books"),
                json!({ "ar_balance": 0.2, "currency": "EUR", "open_invoices": [{ "total": 2 }] }),
            ),
            record(Some("Abroad"), json!({ "ar_balance": 7, "currency": "USD" })),
        ];
        let alike = [records[2].clone(), records[2].clone()];
        assert_eq!(value(&alike, "ar_balance"), json!([{ "amount": 14, "currency": "USD" }]), "two that owe the same");
        let sums = json!([{ "amount": 0.3, "currency": "EUR" }, { "amount": 7, "currency": "USD" }]);
        assert_eq!(value(&records, "ar_balance"), sums);
        let joined = json!([{ "total": 1, "currency": "EUR" }, { "total": 2, "currency": "EUR" }]);
        assert_eq!(value(&records, "open_invoices"), joined);
        let one = json!([{ "amount": 0.1, "currency": "EUR" }]);
        assert_eq!((value(&records[..1], "ar_balance"), value(&records, "currency")), (one, Value::Null));
        assert_eq!(facts(&records)[0].sources, ["Books", "Old books", "Abroad"]);
    }

    #[test]
    fn a_persons_word_is_first_and_what_is_derived_stands_beside_it() {
        let records = [
            record(Some("CRM"), json!({ "employees": "42" })),
            record(Some("Books"), json!({ "employees": "40" })),
            record(None, json!({ "employees": "43" })),
        ];
        let all = facts(&records);
        let first = &all[0];
        assert_eq!((first.value.as_str(), first.said.as_ref().map(|said| said.by.as_str())), (Some("43"), Some("Ann")));
        let also: Vec<&str> = first.also.iter().filter_map(|fact| fact.value.as_str()).collect();
        assert_eq!(also, ["42", "40"]);
        assert_eq!(value(&records[..2], "employees"), "42", "the record that leads is first");
        // Sums stand beside it as one sum.
        let owes = |source, sum: Value| record(source, json!({ "ar_balance": sum, "currency": "EUR" }));
        let owed =
            facts(&[owes(Some("Books"), json!(1)), owes(Some("Old books"), json!(1)), owes(None, json!("nothing"))]);
        let owed = owed.iter().find(|fact| fact.name == "ar_balance").expect("a balance");
        let also: Vec<&Value> = owed.also.iter().map(|fact| &fact.value).collect();
        assert_eq!((&owed.value, also), (&json!("nothing"), vec![&json!([{ "amount": 2, "currency": "EUR" }])]));
    }
}
