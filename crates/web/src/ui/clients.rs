//! The list of clients: whom the tenant does business with, one line for each, whichever sources know it.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::ClientId;
use domain::shown::{clipped, counted, plural};
use engine::clients::merged::Fact;
use engine::clients::{self, Summary};
use engine::pull::words::facts::in_words;
use engine::pull::words::in_a_row;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use store::queue::MOST_COUNTED;

use super::layout::Layout;
use super::text::When;
use super::{Visitor, html};
use crate::api::clients::ClientsQuery;
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

pub(super) const HERE: &str = "/clients";

#[derive(Template)]
#[template(path = "clients.html")]
struct ClientsPage {
    layout: Layout,
    q: String,
    rows: Vec<ClientRow>,
    /// How many there are, in words.
    n: String,
    /// The records that are in no list yet, in words; empty if there are none.
    unmatched: String,
    next: Option<String>,
    /// The first page, from a later one.
    first: Option<String>,
    /// The providers whose records tell of clients, in words.
    providers: String,
}

/// A client in a table.
struct ClientRow {
    href: String,
    name: String,
    industry: String,
    sources: String,
    people: String,
    known: String,
    at: When,
}

impl ClientRow {
    fn new(client: &Summary, now: DateTime<Utc>) -> Self {
        let industry = fact(client, "industry").map(|fact| in_words("industry", &fact.value));
        let by_hand = client.facts.iter().any(|fact| fact.said.is_some()).then(|| "a person".to_owned());
        let sources: Vec<String> = client.sources.iter().cloned().chain(by_hand).collect();
        Self {
            href: format!("{HERE}/{}", client.id),
            name: clipped(&client.name, 100),
            industry: clipped(&industry.unwrap_or_default(), 60),
            sources: clipped(&sources.join(", "), 80),
            people: match client.n_people {
                0 => String::new(),
                n => plural(n, "person", "people"),
            },
            known: highlights(&client.facts),
            at: When::new(client.updated_at, now),
        }
    }
}

fn fact<'a>(client: &'a Summary, name: &str) -> Option<&'a Fact> {
    client.facts.iter().find(|fact| fact.name == name)
}

/// The facts that matter first, on one line.
fn highlights(facts: &[Fact]) -> String {
    let of = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| &fact.value);
    let mut known = Vec::new();
    if let Some(n) = of("open_deals").and_then(Value::as_array).map(Vec::len).filter(|n| *n > 0) {
        known.push(plural(i64::try_from(n).unwrap_or(i64::MAX), "open deal", "open deals"));
    }
    for (name, words) in [("ar_balance", "owes"), ("total_lifetime_value", "billed")] {
        let sum = of(name).filter(|sum| !is_nothing(sum)).map(|sum| in_words(name, sum));
        known.extend(sum.map(|sum| format!("{words} {sum}")));
    }
    for name in ["contact_role", "lifecycle"] {
        known.extend(of(name).map(|value| in_words(name, value)).filter(|text| !text.is_empty()));
    }
    clipped(&known.join(", "), 120)
}

fn is_nothing(sum: &Value) -> bool {
    match sum {
        Value::Array(sums) => sums.iter().all(is_nothing),
        Value::Object(sum) => sum.get("amount").is_none_or(is_nothing),
        amount => amount.as_f64() == Some(0.0),
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ClientsQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let page = clients::list(&app.env, &visitor, query.q.as_deref(), query.after.map(ClientId), limit).await?;
    let now = app.env.clock.now();
    let providers = app.env.providers.all().iter().filter(|provider| !provider.clients.is_empty());
    let providers: Vec<&str> = providers.map(|provider| provider.label).collect();
    let q = query.q.unwrap_or_default();
    let of_q = format!("{HERE}?q={}", utf8_percent_encode(&q, NON_ALPHANUMERIC));
    html(&ClientsPage {
        providers: in_a_row(&providers, "and"),
        layout: Layout::new(&visitor, now, "Clients", HERE),
        n: match page.n {
            1 => "1 client".into(),
            n => format!("{} clients", counted(n, MOST_COUNTED)),
        },
        unmatched: match page.n_unmatched {
            0 => String::new(),
            1 => "1 record is being matched".into(),
            n => format!("{} records are being matched", counted(n, MOST_COUNTED)),
        },
        next: page.next_after.map(|after| format!("{of_q}&after={after}")),
        first: query.after.map(|_| of_q),
        rows: page.clients.iter().map(|client| ClientRow::new(client, now)).collect(),
        q,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(values: Value) -> Vec<Fact> {
        let Value::Object(values) = values else { panic!("no object") };
        let fact = |(name, value)| Fact {
            name,
            value,
            documents: Vec::new(),
            sources: Vec::new(),
            said: None,
            also: Vec::new(),
        };
        values.into_iter().map(fact).collect()
    }

    #[test]
    fn highlights_say_what_one_wants_to_know_first() {
        let known = json!({ "open_deals": [{}, {}], "ar_balance": [{ "amount": 1250.5, "currency": "EUR" }],
            "total_lifetime_value": 12_000, "domain": "x" });
        assert_eq!(highlights(&facts(known)), "2 open deals, owes 1,250.50 EUR, billed 12,000");
        let none = json!({ "ar_balance": [{ "amount": 0, "currency": "EUR" }], "open_deals": [] });
        assert_eq!(highlights(&facts(none)), "");
        let person = json!({ "contact_role": "Buyer", "lifecycle": "lead" });
        assert_eq!(highlights(&facts(person)), "Buyer, Lead");
    }
}
