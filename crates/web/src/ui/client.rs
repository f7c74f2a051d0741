//! The page of one client: its facts with who says so, its people, records, documents and timeline, and what people decided about it.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, day, plural, shown_lines};
use domain::{ActivityId, ClientId, Scope};
use engine::clients::merged::{Fact, Said};
use engine::clients::{self, Decided, WholeClient};
use engine::pull::words::facts::{document_type, in_words, label, said, sum, value_in_words};
use serde::Deserialize;
use serde_json::Value;
use store::clients::{Cited, ClientContact, ClientRecord, Dated};
use uuid::Uuid;

use super::client_acts::Flash;
use super::clients::HERE;
use super::document::{MOST_TEXT_CHARS, cut};
use super::layout::Layout;
use super::text::When;
use super::{Visitor, chosen, html};
use crate::api::clients::{kind, name};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

/// The number of documents of a fact that are named at once; the rest is folded away.
const NAMED: usize = 4;
const FILES: i64 = 10;
const TIMELINE: i64 = 20;

#[derive(Template)]
#[template(path = "client.html")]
struct ClientPage {
    layout: Layout,
    id: String,
    name: String,
    flash: &'static str,
    /// Other names that its records have.
    also_called: String,
    sources: String,
    industry: Option<FactPart>,
    summary: Option<FactPart>,
    at: When,
    facts: Vec<FactPart>,
    people: Vec<PersonRow>,
    more_people: Option<String>,
    records: Vec<RecordRow>,
    decisions: Vec<DecisionRow>,
    files: Vec<TimeRow>,
    timeline: Vec<TimeRow>,
    newest: Option<String>,
    older: Option<String>,
    may_act: bool,
    /// Contacts that can be added to it.
    offered: Vec<String>,
    csrf: String,
}

/// A fact, and who says so.
struct FactPart {
    name: String,
    label: String,
    /// Empty where it is a table.
    text: String,
    table: Option<Table>,
    documents: Vec<Link>,
    /// The others, folded away.
    more: Vec<Link>,
    more_title: String,
    /// The person who said so.
    said: Option<(String, When)>,
    /// Other values: the value, and who says so.
    also: Vec<(String, String)>,
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

struct PersonRow {
    key: String,
    name: String,
    href: Option<String>,
    role: String,
    address: String,
    from: String,
    why: String,
    /// The fields of the form that sets it apart.
    field: &'static str,
    value: String,
}

struct RecordRow {
    id: String,
    name: String,
    href: Option<String>,
    kind: String,
    source: String,
    why: String,
    /// It can be set apart: it does not stand alone, and a person did not write it.
    may_split: bool,
}

struct DecisionRow {
    id: String,
    what: String,
    by: String,
    at: When,
}

struct TimeRow {
    href: String,
    title: String,
    kind: String,
    source: String,
    at: When,
}

#[derive(Deserialize)]
pub(crate) struct ClientQuery {
    #[serde(default)]
    done: Flash,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<ClientQuery>,
) -> Result<Response, ApiError> {
    let whole = clients::whole(&app.env, &visitor, ClientId(id)).await?;
    if whole.id.0 != id {
        return Ok(axum::response::Redirect::to(&format!("{HERE}/{}", whole.id)).into_response());
    }
    let (now, client) = (app.env.clock.now(), whole.id);
    let (files, _) = clients::timeline(&app.env, &visitor, client, true, None, FILES).await?;
    let (timeline, next) = clients::timeline(&app.env, &visitor, client, false, query.before, TIMELINE).await?;
    let industry = whole.facts.iter().find(|fact| fact.name == "industry");
    // A summary keeps its lines.
    let lines = |fact: &Fact| shown_lines(&cut(&in_words(&fact.name, &fact.value), MOST_TEXT_CHARS));
    let told = |fact: &Fact| FactPart { text: lines(fact), ..FactPart::new(&whole, fact, now) };
    let mut names: Vec<&str> = whole.records.iter().map(|record| record.client_name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != whole.name);
    let n_shown = i64::try_from(whole.people.len()).unwrap_or(i64::MAX);
    let may_act = visitor.may(Scope::Write) && !visitor.csrf().is_empty();
    let page = ClientPage {
        layout: Layout::new(&visitor, now, clipped(&whole.name, 120), HERE),
        id: client.to_string(),
        name: clipped(&whole.name, 120),
        flash: query.done.in_words(),
        also_called: clipped(&names.join(", "), 300),
        sources: clipped(&whole.summary().sources.join(", "), 120),
        industry: industry.map(|fact| FactPart::new(&whole, fact, now)),
        summary: whole.facts.iter().find(|fact| fact.name == "summary").map(told),
        at: When::new(whole.updated_at, now),
        facts: whole
            .facts
            .iter()
            .filter(|fact| fact.name != "industry" && fact.name != "summary")
            .map(|fact| FactPart::new(&whole, fact, now))
            .filter(|part| !part.text.is_empty() || part.table.is_some())
            .collect(),
        people: whole
            .people
            .iter()
            .map(PersonRow::record)
            .chain(whole.contacts.iter().map(PersonRow::contact))
            .collect(),
        more_people: (whole.n_people > n_shown).then(|| plural(whole.n_people - n_shown, "more person", "more people")),
        records: whole.records.iter().map(|record| RecordRow::new(record, &whole)).collect(),
        decisions: whole.decisions.iter().map(|decided| DecisionRow::new(decided, now)).collect(),
        files: files.iter().map(|dated| TimeRow::new(dated, now)).collect(),
        timeline: timeline.iter().map(|dated| TimeRow::new(dated, now)).collect(),
        newest: query.before.map(|_| format!("{HERE}/{client}#timeline-title")),
        older: next.map(|before| format!("{HERE}/{client}?before={before}#timeline-title")),
        may_act,
        offered: if may_act { chosen::offers(&app, &visitor).await? } else { Vec::new() },
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

impl PersonRow {
    fn record(record: &ClientRecord) -> Self {
        let role = record.key_facts.get("contact_role").map(said).unwrap_or_default();
        Self {
            key: record.id.to_string(),
            name: clipped(name(record), 100),
            href: record.record_document_id.map(|id| format!("/documents/{id}")),
            role: clipped(&role, 80),
            address: clipped(&record.emails.join(", "), 100),
            from: clipped(record.source_name.as_deref().unwrap_or_default(), 60),
            why: clients::why(record.matched_by.as_ref()).unwrap_or_default(),
            field: "record",
            value: record.id.to_string(),
        }
    }

    fn contact(contact: &ClientContact) -> Self {
        let address = [&contact.email, &contact.phone_number].into_iter().flatten().cloned().collect::<Vec<_>>();
        Self {
            key: format!("contact-{}", contact.id),
            name: clipped(&contact.called(), 100),
            href: Some(format!("/clients/people/{}", contact.id)),
            role: String::new(),
            address: clipped(&address.join(", "), 100),
            from: "Contacts".into(),
            why: clients::why(Some(&contact.matched_by)).unwrap_or_default(),
            field: "contact",
            value: contact.id.to_string(),
        }
    }
}

impl RecordRow {
    fn new(record: &ClientRecord, whole: &WholeClient) -> Self {
        let others = whole.records.iter().chain(&whole.people).filter(|other| !other.is_curated()).count();
        let document = record.record_document_id.or(record.document_id);
        Self {
            id: record.id.to_string(),
            name: clipped(name(record), 100),
            href: document.map(|id| format!("/documents/{id}")),
            kind: kind(record),
            source: clipped(record.source_name.as_deref().unwrap_or_default(), 60),
            why: clients::why(record.matched_by.as_ref()).unwrap_or_default(),
            may_split: !record.is_curated() && others > 1,
        }
    }
}

impl DecisionRow {
    fn new(decided: &Decided, now: DateTime<Utc>) -> Self {
        Self {
            id: decided.decision.id.to_string(),
            what: clipped(&decided.in_words(), 300),
            by: clipped(&decided.decision.said_by, 60),
            at: When::new(decided.decision.said_at, now),
        }
    }
}

impl TimeRow {
    fn new(dated: &Dated, now: DateTime<Utc>) -> Self {
        let href = match ActivityId::from_external_id(&dated.external_id) {
            Some(activity) => format!("/activities/{activity}"),
            None => super::mail::page_of(&dated.document_type, dated.id)
                .unwrap_or_else(|| format!("/documents/{}", dated.id)),
        };
        let title = dated.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        Self {
            href,
            title: clipped(title.unwrap_or(&dated.external_id), 120),
            kind: document_type(&dated.document_type),
            source: clipped(&dated.source_name, 60),
            at: When::new(dated.at, now),
        }
    }
}

impl FactPart {
    fn new(whole: &WholeClient, fact: &Fact, now: DateTime<Utc>) -> Self {
        let said_by = whole.documents_of(fact);
        let table = table(&fact.name, &fact.value, &said_by);
        let mut documents: Vec<Link> = said_by.iter().map(|cited| Link::new(cited)).collect();
        let more = documents.split_off(documents.len().min(NAMED));
        let who = |other: &Fact| match &other.said {
            Some(Said { by, .. }) => clipped(by, 60),
            None => clipped(&other.sources.join(", "), 80),
        };
        let also = |other: &Fact| (clipped(&in_words(&other.name, &other.value), 200), who(other));
        Self {
            name: fact.name.clone(),
            label: label(&fact.name),
            text: if table.is_some() { String::new() } else { clipped(&in_words(&fact.name, &fact.value), 5_000) },
            table,
            documents,
            more_title: format!("{} more", more.len()),
            more,
            said: fact.said.as_ref().map(|said| (clipped(&said.by, 60), When::maybe(said.at, now))),
            also: fact.also.iter().map(also).collect(),
        }
    }
}

impl Link {
    fn new(cited: &Cited) -> Self {
        let title = cited.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let kind = document_type(&cited.document_type);
        Self { href: format!("/documents/{}", cited.id), title: clipped(title.unwrap_or(&kind), 80) }
    }
}

/// Facts that are lists of the same kind of thing.
fn table(fact: &str, value: &Value, said_by: &[&Cited]) -> Option<Table> {
    let rows = value.as_array().filter(|rows| rows.iter().all(Value::is_object))?;
    let heads: &'static [&'static str] = match fact {
        "open_deals" => &["Deal", "Stage", "Amount", "Closes"],
        "invoice_history" | "open_invoices" => &["Invoice", "Date", "Due", "Total", "Open"],
        _ => return None,
    };
    let row = |row: &Value| {
        let text = |name: &str| row.get(name).map(said).unwrap_or_default();
        let cell = |label, text: String| Cell { label, text: clipped(&text, 80), is_money: false };
        let money = |label, name: &str| Cell { is_money: true, ..cell(label, sum(row, name)) };
        let named = |of: &dyn Fn(&Cited) -> bool| {
            said_by.iter().find(|cited| of(cited)).map(|cited| format!("/documents/{}", cited.id))
        };
        if fact == "open_deals" {
            let id = format!("deal:{}", text("id"));
            TableRow {
                name: clipped(&first_of([text("name"), text("id")]), 120),
                href: named(&|cited| cited.external_id == id),
                cells: vec![
                    cell("Stage", value_in_words("deal_stage", &text("stage"))),
                    money("Amount", "amount"),
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
                    money("Total", "total"),
                    money("Open", "balance"),
                ],
            }
        }
    };
    Some(Table { heads, rows: rows.iter().map(row).collect() }).filter(|table| !table.rows.is_empty())
}

fn first_of(texts: [String; 2]) -> String {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
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
        let deals = json!([{ "id": "7", "name": "Anvils", "amount": "1200.50", "stage": "contractsent", "close_date": "2026-12-01T00:00:00Z" }]);
        let deal = cited("deal:7", "Anvils");
        let table = table("open_deals", &deals, &[&deal]).expect("a table");
        assert_eq!(shown(&table), [["Anvils", "Contract sent", "1,200.50", "1 Dec 2026"]]);
        assert!(table.rows[0].href.is_some());

        let invoices = json!([{ "doc_number": "1037", "total": 362.07, "balance": 0, "txn_date": "2026-11-01", "due_date": null, "currency": "EUR" }]);
        let table = super::table("invoice_history", &invoices, &[]).expect("a table");
        assert_eq!(shown(&table), [["1037", "1 Nov 2026", "", "362.07 EUR", "0 EUR"]]);
        assert!(table.rows[0].href.is_none());
    }

    #[test]
    fn what_is_no_list_of_things_is_no_table() {
        assert!(super::table("open_deals", &json!("odd"), &[]).is_none());
        assert!(super::table("open_deals", &json!([]), &[]).is_none());
    }
}
