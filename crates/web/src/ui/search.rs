//! Search: one field, and what memory has for it, with its filters, and the searches that were saved.

use std::collections::HashMap;
use std::time::Instant;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, NaiveDate, Utc};
use domain::papers::{Decimal, PaperKind};
use domain::shown::{capitalised, clipped, counted, number};
use domain::{ClientId, ContactId, Scope};
use engine::pull::words::facts::type_in_words;
use engine::searches::{self, Listed as Saved, SavedSearch};
use engine::sources::Names;
use serde::Deserialize;
use store::files::all_fields;
use store::memory::{PaperFilters, Sort, Totals, documents};
use store::people::{self, Person};
use store::queue::MOST_COUNTED;
use store::sources::{self, AnySource};
use store::{clients, contacts};
use uuid::Uuid;

use super::examples::{Example, examples_of};
use super::found::{FoundPart, View};
use super::layout::Layout;
use super::searches::Flash;
use super::text::When;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Query, blank_is_none};
use crate::api::search::{Moment, SearchQuery, ask, hold};
use crate::app::App;

const HITS: i64 = 20;
/// Examples are made from so many of the newest documents.
const NEWEST: i64 = 40;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    layout: Layout,
    flash: &'static str,
    q: String,
    shown_q: String,
    /// The controls of the filters, folded away.
    filters: Fields,
    /// The filters in force, each with the address without it.
    chosen: Vec<Chosen>,
    /// The same search without any filter.
    without: String,
    /// The amount of searchable data.
    size: String,
    is_empty: bool,
    found: Option<FoundPart>,
    /// The saved search that is shown.
    shown_search: Option<ShownSearch>,
    saved: Vec<SavedRow>,
    examples: Vec<Example>,
    /// The providers that can be connected, in words.
    providers: String,
    may_save: bool,
    csrf: String,
}

struct Fields {
    sources: Vec<Choice>,
    types: Vec<Choice>,
    channels: Vec<Choice>,
    people: Vec<Choice>,
    since: String,
    until: String,
    /// The controls by what papers say; none before the first paper.
    says: Option<Says>,
    is_by_date: bool,
    /// Fields that have no control of their own.
    hidden: Vec<(&'static str, String)>,
    /// All fields, for saving the search.
    all: Vec<(&'static str, String)>,
}

struct Says {
    papers: Vec<Choice>,
    supplier: String,
    amount_min: String,
    amount_max: String,
    since: String,
    until: String,
}

struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

struct Chosen {
    label: String,
    href: String,
}

struct ShownSearch {
    id: Uuid,
    name: String,
    news: String,
    since: When,
    /// The time of the hits, as the form that marks them sends it.
    until: String,
    has_news: bool,
}

struct SavedRow {
    id: Uuid,
    href: String,
    name: String,
    q: String,
    news: String,
    has_news: bool,
}

#[derive(Deserialize)]
pub(crate) struct PageQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    saved: Option<Uuid>,
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<SearchQuery>,
    Query(page): Query<PageQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let query = SearchQuery { q: query.q.trim().to_owned(), ..query };
    let mut known = Known::load(&app, &visitor, &query).await?;
    let names = Names::new(&app.env, &known.sources);
    known.sources.iter_mut().for_each(|source| names.tell_apart(source.id, &mut source.name));
    let (now, q) = (app.env.clock.now(), query.q.clone());
    let filters = Fields::new(&query, &known);
    let shown_search = match page.saved.filter(|_| !q.is_empty()) {
        Some(id) => Some(searches::get(&app.env, &visitor, id).await?),
        None => None,
    };
    let found = if q.is_empty() {
        None
    } else {
        let begun = Instant::now();
        let asked = SearchQuery { k: Some(HITS), facets: Some(true), ..query.clone() };
        let mut answer = ask(&app, &visitor, asked).await?;
        let millis = begun.elapsed().as_millis();
        for hit in answer.hits.iter_mut().chain(&mut answer.closest) {
            names.tell_apart(hit.source_id, &mut hit.source_name);
        }
        for facet in answer.facets.iter_mut().flat_map(|facets| &mut facets.sources) {
            names.tell_apart(facet.value, &mut facet.name);
        }
        let ids: Vec<Uuid> = answer.hits.iter().chain(&answer.closest).map(|hit| hit.document_id).collect();
        let view = View {
            clients: &clients_of(&app, &visitor, &ids).await?,
            query: &query,
            saved: shown_search.as_ref(),
            now,
        };
        Some(FoundPart::new(answer, &view, millis))
    };
    let shown_search = match &shown_search {
        Some(search) => Some(ShownSearch::new(search, searches::news(&app.env, &visitor, search).await?, now)),
        None => None,
    };
    let (mut saved, mut examples) = (Vec::new(), Vec::new());
    if q.is_empty() {
        let _hold = hold(&app, &visitor)?;
        saved = searches::list(&app.env, &visitor).await?.into_iter().map(SavedRow::new).collect();
        let newest = app.env.db.read(&visitor, async |tx| documents::newest(tx, NEWEST).await).await?;
        examples = examples_of(&newest);
    }
    let title = if q.is_empty() { "Search".to_owned() } else { format!("{} · Search", clipped(&q, 60)) };
    html(&SearchPage {
        providers: super::sources::providers(&app),
        layout: Layout::new(&visitor, now, title, "/search"),
        flash: page.done.in_words(),
        chosen: chosen(&query, &known),
        without: address(&SearchQuery { q: q.clone(), ..SearchQuery::default() }),
        filters,
        size: size(known.totals),
        is_empty: known.totals.documents == 0,
        found,
        shown_search,
        saved,
        examples,
        may_save: visitor.may(Scope::Write) && !visitor.csrf().is_empty(),
        csrf: visitor.csrf(),
        shown_q: clipped(&q, 200),
        q,
    })
}

/// The names of the controls and filters.
struct Known {
    totals: Totals,
    types: Vec<String>,
    sources: Vec<AnySource>,
    people: Vec<Person>,
    /// Some paper has fields.
    has_papers: bool,
    contact: Option<String>,
    client: Option<String>,
}

impl Known {
    async fn load(app: &App, visitor: &Visitor, query: &SearchQuery) -> Result<Self, ApiError> {
        let loaded = app.env.db.read(visitor, async |tx| {
            let contact = match query.contact {
                Some(id) => contacts::get(tx, visitor.tenant_id, ContactId(id)).await?,
                None => None,
            };
            let client = match query.client {
                Some(id) => clients::name_of(tx, ClientId(id)).await?,
                None => None,
            };
            Ok(Self {
                totals: documents::totals(tx).await?,
                types: documents::types(tx).await?,
                sources: sources::all(tx).await?,
                people: people::list(tx, visitor.tenant_id).await?,
                has_papers: all_fields::is_any(tx).await?,
                contact: contact.map(|contact| contact.called()),
                client,
            })
        });
        Ok(loaded.await?)
    }

    fn source(&self, id: Uuid) -> String {
        let known = self.sources.iter().find(|source| source.id == id);
        known.map_or_else(|| "unknown".to_owned(), |source| clipped(&source.name, 60))
    }

    fn person(&self, id: i64) -> String {
        let known = self.people.iter().find(|person| person.id == id);
        known.map_or_else(|| "unknown".to_owned(), |person| clipped(&person.called(), 60))
    }
}

/// The pages of clients that documents are of, by document.
pub(super) async fn clients_of(
    app: &App,
    visitor: &Visitor,
    documents: &[Uuid],
) -> Result<HashMap<Uuid, String>, ApiError> {
    let found = app.env.db.read(visitor, async |tx| clients::of_documents(tx, documents).await).await?;
    Ok(found.into_iter().map(|(document, client)| (document, format!("/clients/{client}"))).collect())
}

fn size(totals: Totals) -> String {
    let documents = match totals.documents {
        1 => "1 document".into(),
        n if totals.is_of_last_count() => format!("about {} documents", number(n)),
        n => format!("{} documents", counted(n, MOST_COUNTED)),
    };
    match totals.pending {
        0 => documents,
        pending => {
            let pending = counted(pending, MOST_COUNTED);
            format!("{documents}, {pending} of them found only by keyword until they have their vectors")
        }
    }
}

/// The fields of a search that are set, as its address has them.
fn fields(query: &SearchQuery) -> Vec<(&'static str, String)> {
    let id = |id: Option<Uuid>| id.map(|id| id.to_string());
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
    [
        ("q", Some(query.q.clone()).filter(|q| !q.is_empty())),
        ("mode", query.mode.map(|mode| mode.to_string())),
        ("source", id(query.source)),
        ("type", query.r#type.clone()),
        ("channel", id(query.channel)),
        ("person", query.person.map(|id| id.to_string())),
        ("contact", query.contact.map(|id| id.to_string())),
        ("client", id(query.client)),
        ("since", moment(query.since)),
        ("until", moment(query.until)),
        ("paper", query.paper.map(|paper| paper.to_string())),
        ("supplier", query.supplier.clone()),
        ("amount_min", query.amount_min.map(|amount| amount.to_string())),
        ("amount_max", query.amount_max.map(|amount| amount.to_string())),
        ("paper_since", query.paper_since.map(|day| day.to_string())),
        ("paper_until", query.paper_until.map(|day| day.to_string())),
        ("sort", query.sort.filter(|sort| *sort != Sort::Relevance).map(|sort| sort.to_string())),
        ("cursor", query.cursor.clone()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}

/// The address of a search.
pub(super) fn address(query: &SearchQuery) -> String {
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let fields: Vec<String> =
        fields(query).into_iter().map(|(name, value)| format!("{name}={}", encoded(&value))).collect();
    if fields.is_empty() { "/search".to_owned() } else { format!("/search?{}", fields.join("&")) }
}

/// The filters in force, each with the same search without it.
fn chosen(query: &SearchQuery, known: &Known) -> Vec<Chosen> {
    let plain = || SearchQuery { cursor: None, ..query.clone() };
    let some = |name: &Option<String>| name.as_deref().map_or_else(|| "unknown".to_owned(), |name| clipped(name, 60));
    let filters = [
        query.source.map(|id| (known.source(id), SearchQuery { source: None, ..plain() })),
        query.r#type.as_ref().map(|kind| (clipped(kind, 60), SearchQuery { r#type: None, ..plain() })),
        query.channel.map(|id| (format!("by {}", known.source(id)), SearchQuery { channel: None, ..plain() })),
        query.person.map(|id| (format!("of {}", known.person(id)), SearchQuery { person: None, ..plain() })),
        query.contact.map(|_| (format!("with {}", some(&known.contact)), SearchQuery { contact: None, ..plain() })),
        query.client.map(|_| (format!("about {}", some(&known.client)), SearchQuery { client: None, ..plain() })),
        query.since.map(|since| (format!("since {since}"), SearchQuery { since: None, ..plain() })),
        query.until.map(|until| (format!("until {until}"), SearchQuery { until: None, ..plain() })),
        query.paper.map(|paper| (paper_in_words(paper), SearchQuery { paper: None, ..plain() })),
        query
            .supplier
            .as_ref()
            .map(|name| (format!("supplier {}", clipped(name, 60)), SearchQuery { supplier: None, ..plain() })),
        query
            .amount_min
            .map(|amount| (format!("{} or more", amount.as_money()), SearchQuery { amount_min: None, ..plain() })),
        query
            .amount_max
            .map(|amount| (format!("{} or less", amount.as_money()), SearchQuery { amount_max: None, ..plain() })),
        query.paper_since.map(|day| (format!("issued since {day}"), SearchQuery { paper_since: None, ..plain() })),
        query.paper_until.map(|day| (format!("issued until {day}"), SearchQuery { paper_until: None, ..plain() })),
    ];
    filters.into_iter().flatten().map(|(label, query)| Chosen { label, href: address(&query) }).collect()
}

/// "Credit note".
fn paper_in_words(paper: PaperKind) -> String {
    capitalised(&paper.as_str().replace('_', " "))
}

impl Says {
    fn new(query: &SearchQuery) -> Self {
        let paper = |paper: PaperKind| Choice {
            value: paper.to_string(),
            label: paper_in_words(paper),
            is_chosen: query.paper == Some(paper),
        };
        let amount = |amount: Option<Decimal>| amount.map(|amount| amount.to_string()).unwrap_or_default();
        let day = |day: Option<NaiveDate>| day.map(|day| day.to_string()).unwrap_or_default();
        Self {
            papers: PaperKind::ALL.into_iter().filter(|kind| *kind != PaperKind::Other).map(paper).collect(),
            supplier: query.supplier.clone().unwrap_or_default(),
            amount_min: amount(query.amount_min),
            amount_max: amount(query.amount_max),
            since: day(query.paper_since),
            until: day(query.paper_until),
        }
    }
}

impl Fields {
    fn new(query: &SearchQuery, known: &Known) -> Self {
        let mut types = known.types.clone();
        // What is asked for is chosen, also when no document has it.
        types.extend(query.r#type.iter().filter(|kind| !known.types.contains(kind)).cloned());
        let source = |source: &AnySource, chosen: Option<Uuid>| Choice {
            value: source.id.to_string(),
            label: clipped(&source.name, 60),
            is_chosen: chosen == Some(source.id),
        };
        let kind = |kind: String| Choice {
            label: clipped(&type_in_words(&kind), 60),
            is_chosen: query.r#type.as_ref() == Some(&kind),
            value: kind,
        };
        let person = |person: &Person| Choice {
            value: person.id.to_string(),
            label: clipped(&person.called(), 60),
            is_chosen: query.person == Some(person.id),
        };
        let day = |moment: Option<Moment>| moment.map(|moment| moment.to_string()).unwrap_or_default();
        let channels = known.sources.iter().filter(|source| source.provider == "channel");
        let people = known.people.iter().filter(|person| !person.is_built_in());
        let all = fields(&SearchQuery { cursor: None, ..query.clone() });
        Self {
            sources: known.sources.iter().map(|known| source(known, query.source)).collect(),
            types: types.into_iter().map(kind).collect(),
            channels: channels.map(|known| source(known, query.channel)).collect(),
            people: people.map(person).collect(),
            since: day(query.since),
            until: day(query.until),
            says: (known.has_papers || query.says() != PaperFilters::default()).then(|| Says::new(query)),
            is_by_date: query.sort == Some(Sort::Date),
            hidden: all.iter().filter(|(name, _)| ["mode", "contact", "client"].contains(name)).cloned().collect(),
            all,
        }
    }
}

impl ShownSearch {
    fn new(search: &SavedSearch, news: searches::News, now: DateTime<Utc>) -> Self {
        Self {
            id: search.id,
            name: clipped(&search.name, 100),
            news: new(news),
            since: When::new(search.seen_at, now),
            until: search.read_at.to_rfc3339(),
            has_news: news.n > 0,
        }
    }
}

impl SavedRow {
    fn new(Saved { search, news }: Saved) -> Self {
        Self {
            id: search.id,
            href: format!("/searches/{}", search.id),
            name: clipped(&search.name, 100),
            q: clipped(&search.asked.text, 100),
            news: news.map(new).unwrap_or_default(),
            has_news: news.is_some_and(|news| news.n > 0),
        }
    }
}

fn new(news: searches::News) -> String {
    match (news.n, news.is_at_least) {
        (0, _) => "nothing new".into(),
        (n, is_at_least) => format!("{}{} new", number(n as i64), if is_at_least { "+" } else { "" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_every_field_that_is_set_and_quotes_it() {
        let query = SearchQuery {
            q: "a&b \"c\"".into(),
            r#type: Some("note".into()),
            since: Some("2026-11-01".parse().expect("a day")),
            person: Some(7),
            sort: Some(Sort::Date),
            ..SearchQuery::default()
        };
        assert_eq!(address(&query), "/search?q=a%26b%20%22c%22&type=note&person=7&since=2026%2D11%2D01&sort=date");
        assert_eq!(address(&SearchQuery::default()), "/search");
    }

    #[test]
    fn the_size_of_a_memory_is_said_in_words() {
        for (documents, pending, words) in [
            (0, 0, "0 documents"),
            (1, 0, "1 document"),
            (999, 3, "999 documents, 3 of them "),
            (1_000, 1_000, "1,000+ documents, 1,000+ of them "),
            (12_345, 0, "about 12,345 documents"),
        ] {
            let size = size(Totals { documents, pending });
            assert!(size.starts_with(words), "{size}");
        }
    }
}
