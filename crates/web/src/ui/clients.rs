//! Clients: whom the tenant does business with, and one with what is known of it, fact by fact with the documents that say so.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, NaiveDate, Utc};
use domain::ClientId;
use domain::document::CONTACT;
use domain::shown::{clipped, money, plural, shown_lines};
use engine::clients::{self, WholeClient};
use engine::lanes::client_facts::{label, said};
use engine::pull::words::facts::{in_order, in_words};
use engine::pull::words::in_a_row;
use serde_json::Value;
use store::clients::{Cited, Client};
use uuid::Uuid;

use super::layout::Layout;
use super::text::When;
use super::{Visitor, html};
use crate::api::clients::ClientsQuery;
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const HERE: &str = "/clients";
const LISTED: i64 = 200;
/// The number of people of a client that are shown.
const PEOPLE: usize = 25;
/// The number of documents of a fact that are named at once; the rest is folded away.
const NAMED: usize = 4;

#[derive(Template)]
#[template(path = "clients.html")]
struct ClientsPage {
    layout: Layout,
    q: String,
    rows: Vec<ClientRow>,
    /// There are more than are shown.
    is_cut: bool,
    /// The providers whose records tell of clients, in words.
    providers: String,
}

/// A client in a table.
struct ClientRow {
    href: String,
    name: String,
    industry: String,
    kind: &'static str,
    source: String,
    known: String,
    /// The number of other clients of its name.
    others: Option<String>,
    at: When,
}

impl ClientRow {
    fn new(client: &Client, now: DateTime<Utc>) -> Self {
        Self {
            href: format!("{HERE}/{}", client.id),
            name: clipped(&client.client_name, 100),
            industry: clipped(client.industry.as_deref().unwrap_or_default(), 60),
            kind: kind(client),
            source: source(client),
            known: highlights(&client.key_facts),
            others: (client.n_alike > 1).then(|| plural(client.n_alike - 1, "other record", "other records")),
            at: When::new(client.updated_at, now),
        }
    }
}

impl ClientRow {
    /// A person there, by their own name.
    fn person(client: &Client, now: DateTime<Utc>) -> Self {
        let name = client.record_title.as_deref().filter(|title| !title.trim().is_empty());
        Self { name: clipped(name.unwrap_or(&client.client_name), 100), ..Self::new(client, now) }
    }
}

/// The kind of record it is made of.
fn kind(client: &Client) -> &'static str {
    match client.record_kind() {
        Some("company") => "Company",
        Some(CONTACT) => "Contact",
        Some("customer") => "Customer",
        Some(_) => "Record",
        None => "Written by hand",
    }
}

fn source(client: &Client) -> String {
    clipped(client.source_name.as_deref().unwrap_or_default(), 60)
}

/// The facts that matter first, on one line.
fn highlights(facts: &Value) -> String {
    let mut known = Vec::new();
    if let Some(n) = facts.get("open_deals").and_then(Value::as_array).map(Vec::len).filter(|n| *n > 0) {
        known.push(plural(i64::try_from(n).unwrap_or(i64::MAX), "open deal", "open deals"));
    }
    for (fact, words) in [("ar_balance", "owes"), ("total_lifetime_value", "billed")] {
        known.extend(facts.get(fact).and_then(money).filter(|sum| sum != "0").map(|sum| format!("{words} {sum}")));
    }
    for fact in ["contact_role", "lifecycle"] {
        known.extend(facts.get(fact).map(said).filter(|text| !text.is_empty()));
    }
    clipped(&known.join(", "), 120)
}

pub(crate) async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ClientsQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let listed = clients::list(&app.env, &visitor, query.q.as_deref(), true, LISTED).await?;
    let now = app.env.clock.now();
    let providers = app.env.providers.all().iter().filter(|provider| !provider.clients.is_empty());
    let providers: Vec<&str> = providers.map(|provider| provider.label).collect();
    html(&ClientsPage {
        providers: in_a_row(&providers, "and"),
        layout: Layout::new(&visitor, now, "Clients", HERE),
        is_cut: i64::try_from(listed.len()).is_ok_and(|n| n >= LISTED),
        rows: listed.iter().map(|client| ClientRow::new(client, now)).collect(),
        q: query.q.unwrap_or_default(),
    })
}

#[derive(Template)]
#[template(path = "client.html")]
struct ClientPage {
    layout: Layout,
    name: String,
    kind: &'static str,
    industry: Option<FactPart>,
    summary: Option<FactPart>,
    /// Its name and its page; none: a person wrote it.
    source: Option<(String, String)>,
    /// The record that it is made of, and its own document.
    records: Vec<(String, &'static str)>,
    at: When,
    facts: Vec<FactPart>,
    /// The people who work there, and how many of them are not shown.
    people: Vec<ClientRow>,
    more_people: Option<String>,
    alike: Vec<ClientRow>,
}

/// A fact, and who says so.
struct FactPart {
    label: String,
    /// Empty where it is a table.
    text: String,
    table: Option<Table>,
    documents: Vec<Link>,
    /// The others, folded away.
    more: Vec<Link>,
    more_title: String,
}

struct Link {
    href: String,
    title: String,
}

struct Table {
    heads: &'static [&'static str],
    rows: Vec<TableRow>,
}

struct TableRow {
    /// The first column, and its document where that is known.
    name: String,
    href: Option<String>,
    cells: Vec<Cell>,
}

struct Cell {
    label: &'static str,
    text: String,
    is_money: bool,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
) -> Result<impl IntoResponse, ApiError> {
    let whole = clients::whole(&app.env, &visitor, ClientId(id)).await?;
    let WholeClient { client, cited, alike, n_alike } = &whole;
    let (now, name) = (app.env.clock.now(), clipped(&client.client_name, 120));
    let told = |fact: &str, text: &Option<String>| {
        let text = text.as_deref().filter(|text| !text.trim().is_empty())?;
        Some(FactPart { text: shown_lines(text), ..FactPart::new(&whole, fact, &Value::Null) })
    };
    let record = cited.values().find(|cited| Some(&cited.external_id) == client.external_id.as_ref());
    let record = record.map(|cited| (format!("/documents/{}", cited.id), "its record"));
    let text = client.document_id.map(|id| (format!("/documents/{id}"), "its document"));
    let (people, others): (Vec<&Client>, Vec<&Client>) = alike.iter().partition(|other| other.is_contact());
    html(&ClientPage {
        layout: Layout::new(&visitor, now, name.clone(), HERE),
        name,
        kind: kind(client),
        industry: told("industry", &client.industry),
        summary: told("summary", &client.summary),
        source: client.source_id.map(|id| (source(client), format!("/sources/{id}"))),
        records: [record, text].into_iter().flatten().collect(),
        at: When::new(client.updated_at, now),
        facts: in_order(&client.key_facts)
            .into_iter()
            .map(|(fact, value)| FactPart::new(&whole, fact, value))
            .filter(|part| !part.text.is_empty() || part.table.is_some())
            .collect(),
        people: people.iter().take(PEOPLE).map(|person| ClientRow::person(person, now)).collect(),
        more_people: more_people(people.len(), others.len(), *n_alike),
        alike: others.iter().map(|other| ClientRow::new(other, now)).collect(),
    })
}

/// People come last, so that where there are any all others are among what was loaded.
fn more_people(n_people: usize, n_others: usize, n_alike: i64) -> Option<String> {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let more = n_alike - count(n_others) - count(n_people.min(PEOPLE));
    (n_people > 0 && more > 0).then(|| plural(more, "more person", "more people"))
}

impl FactPart {
    fn new(whole: &WholeClient, fact: &str, value: &Value) -> Self {
        let said_by = whole.documents_of(fact);
        let table = table(fact, value, &said_by);
        let mut documents: Vec<Link> = said_by.iter().map(|cited| Link::new(cited)).collect();
        let more = documents.split_off(documents.len().min(NAMED));
        Self {
            label: label(fact),
            text: if table.is_some() { String::new() } else { clipped(&in_words(fact, value), 500) },
            table,
            documents,
            more_title: format!("{} more", more.len()),
            more,
        }
    }
}

impl Link {
    fn new(cited: &Cited) -> Self {
        let title = cited.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        Self { href: format!("/documents/{}", cited.id), title: clipped(title.unwrap_or(&cited.external_id), 80) }
    }
}

/// Facts that are lists of the same kind of thing.
fn table(fact: &str, value: &Value, said_by: &[&Cited]) -> Option<Table> {
    let rows = value.as_array().filter(|rows| rows.iter().all(Value::is_object))?;
    let heads: &'static [&'static str] = match fact {
        "open_deals" => &["Deal", "Stage", "Amount", "Closes"],
        "invoice_history" => &["Invoice", "Date", "Due", "Total", "Open"],
        _ => return None,
    };
    let row = |row: &Value| {
        let text = |name: &str| row.get(name).map(said).unwrap_or_default();
        let cell = |label, text: String| Cell { label, text: clipped(&text, 80), is_money: false };
        let sum = |label, name: &str| {
            let sum = row.get(name).and_then(money).unwrap_or_else(|| text(name));
            Cell { is_money: true, ..cell(label, sum) }
        };
        let named = |of: &dyn Fn(&Cited) -> bool| {
            said_by.iter().find(|cited| of(cited)).map(|cited| format!("/documents/{}", cited.id))
        };
        if fact == "open_deals" {
            let id = format!("deal:{}", text("id"));
            TableRow {
                name: clipped(&first_of([text("name"), text("id")]), 120),
                href: named(&|cited| cited.external_id == id),
                cells: vec![
                    cell("Stage", text("stage")),
                    sum("Amount", "amount"),
                    cell("Closes", day(&text("close_date"))),
                ],
            }
        } else {
            let title = format!("Invoice {}", text("doc_number"));
            TableRow {
                name: clipped(&first_of([text("doc_number"), "without a number".into()]), 60),
                href: named(&|cited| cited.title.as_deref() == Some(title.as_str())),
                cells: vec![
                    cell("Date", day(&text("txn_date"))),
                    cell("Due", day(&text("due_date"))),
                    sum("Total", "total"),
                    sum("Open", "balance"),
                ],
            }
        }
    };
    Some(Table { heads, rows: rows.iter().map(row).collect() }).filter(|table| !table.rows.is_empty())
}

fn first_of(texts: [String; 2]) -> String {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// Shows a provider's date as people write one, anything else as it is.
fn day(text: &str) -> String {
    let date = text.get(..10).and_then(|day| day.parse::<NaiveDate>().ok());
    date.map_or_else(|| text.to_owned(), |date| date.format("%-d %b %Y").to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cited(external_id: &str, title: &str) -> Cited {
        Cited {
            id: Uuid::from_u128(7),
            external_id: external_id.into(),
            document_type: "hubspot.deal".parse().expect("a type"),
            title: Some(title.into()),
            source_updated_at: None,
        }
    }

    fn shown(table: &Table) -> Vec<Vec<String>> {
        let row = |row: &TableRow| {
            std::iter::once(row.name.clone()).chain(row.cells.iter().map(|cell| cell.text.clone())).collect()
        };
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn deals_and_invoices_are_tables_whose_rows_lead_to_their_documents() {
        let deals = json!([{ "id": "7", "name": "Anvils", "amount": "1200.50", "stage": "offer", "close_date": "2026-12-01T00:00:00Z" }]);
        let deal = cited("deal:7", "Anvils");
        let table = table("open_deals", &deals, &[&deal]).expect("a table");
        assert_eq!(shown(&table), [["Anvils", "offer", "1,200.50", "1 Dec 2026"]]);
        assert!(table.rows[0].href.is_some());

        let invoices = json!([{ "doc_number": "1037", "total": 362.07, "balance": 0, "txn_date": "2026-11-01", "due_date": null }]);
        let table = super::table("invoice_history", &invoices, &[]).expect("a table");
        assert_eq!(shown(&table), [["1037", "1 Nov 2026", "", "362.07", "0"]]);
        assert!(table.rows[0].href.is_none());
    }

    #[test]
    fn what_is_no_list_of_things_is_no_table() {
        assert!(super::table("open_deals", &json!("odd"), &[]).is_none());
        assert!(super::table("open_deals", &json!([]), &[]).is_none());
        assert_eq!((day("2026-12-01"), day("soon"), day("")), ("1 Dec 2026".into(), "soon".into(), String::new()));
    }

    #[test]
    fn people_that_are_not_shown_are_counted_also_where_they_were_not_loaded() {
        assert_eq!(more_people(25, 1, 26), None);
        assert_eq!(more_people(26, 1, 27).as_deref(), Some("1 more person"));
        assert_eq!(more_people(49, 1, 1_201).as_deref(), Some("1,175 more people"));
        assert_eq!(more_people(0, 50, 80), None);
    }

    #[test]
    fn highlights_say_what_one_wants_to_know_first() {
        let facts =
            json!({ "open_deals": [{}, {}], "ar_balance": 1250.5, "total_lifetime_value": 12_000, "domain": "x" });
        assert_eq!(highlights(&facts), "2 open deals, owes 1,250.50, billed 12,000");
        assert_eq!(highlights(&json!({ "ar_balance": 0, "open_deals": [] })), "");
        assert_eq!(highlights(&json!({ "contact_role": "Buyer", "lifecycle": "lead" })), "Buyer, lead");
    }
}
