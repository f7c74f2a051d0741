//! Search: one field, and what memory has for it.

use std::collections::HashMap;
use std::time::Instant;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::shown::{clipped, plural, shown};
use domain::text::Part;
use engine::memory::recall::{Answer, Hit};
use store::clients;
use store::memory::sources::Source;
use store::memory::{Totals, documents, sources};
use uuid::Uuid;

use super::layout::Layout;
use super::text::When;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::api::search::{SearchQuery, ask};
use crate::app::App;

const HITS: i64 = 20;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    layout: Layout,
    q: String,
    shown_q: String,
    /// Their fields, folded away while none is set.
    filters: Fields,
    has_filters: bool,
    /// How much there is to be found.
    size: String,
    is_empty: bool,
    found: Option<FoundPart>,
}

struct Fields {
    sources: Vec<Choice>,
    types: Vec<Choice>,
    since: String,
    until: String,
}

struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

struct FoundPart {
    /// How many in how long.
    summary: String,
    note: String,
    hits: Vec<HitCard>,
}

struct HitCard {
    href: String,
    title: String,
    kind: String,
    source: String,
    at: When,
    snippet: Vec<Part>,
    why: String,
    /// The client that it is a record of.
    client: Option<String>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<SearchQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let loaded = app.env.db.read(&visitor, async |tx| {
        let (totals, types) = (documents::totals(tx).await?, documents::types(tx).await?);
        Ok((totals, types, sources::list(tx).await?))
    });
    let (totals, types, sources) = loaded.await?;
    let (now, q) = (app.env.clock.now(), query.q.trim().to_owned());
    let filters = Fields::new(&query, &sources, types);
    let has_filters =
        query.source.is_some() || query.r#type.is_some() || query.since.is_some() || query.until.is_some();
    let found = if q.is_empty() {
        None
    } else {
        let begun = Instant::now();
        let answer = ask(&app, &visitor, SearchQuery { k: Some(HITS), ..query }).await?;
        let millis = begun.elapsed().as_millis();
        let ids: Vec<Uuid> = answer.hits.iter().map(|hit| hit.document_id).collect();
        Some(FoundPart::new(answer, &clients_of(&app, &visitor, &ids).await?, millis, now))
    };
    let title = if q.is_empty() { "Search".to_owned() } else { format!("{} · Search", clipped(&q, 60)) };
    html(&SearchPage {
        layout: Layout::new(&visitor, now, title, "/search"),
        filters,
        has_filters,
        size: size(totals),
        is_empty: totals.documents == 0,
        found,
        shown_q: clipped(&q, 200),
        q,
    })
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
    let documents = plural(totals.documents, "document", "documents");
    match totals.pending {
        0 => documents,
        pending => {
            format!("{documents}, of which {pending} can be found by their words alone until they have their vectors")
        }
    }
}

impl Fields {
    fn new(query: &SearchQuery, sources: &[Source], mut types: Vec<String>) -> Self {
        // What is asked for is chosen, also when no document has it.
        types.extend(query.r#type.iter().filter(|kind| !types.contains(kind)).cloned().collect::<Vec<_>>());
        let source = |source: &Source| Choice {
            value: source.id.to_string(),
            label: clipped(&source.name, 60),
            is_chosen: query.source == Some(source.id),
        };
        let kind = |kind: String| Choice {
            label: clipped(&kind, 60),
            is_chosen: query.r#type.as_ref() == Some(&kind),
            value: kind,
        };
        let day =
            |moment: Option<crate::api::search::Moment>| moment.map(|moment| moment.to_string()).unwrap_or_default();
        Self {
            sources: sources.iter().map(source).collect(),
            types: types.into_iter().map(kind).collect(),
            since: day(query.since),
            until: day(query.until),
        }
    }
}

impl FoundPart {
    fn new(answer: Answer, clients: &HashMap<Uuid, String>, millis: u128, now: DateTime<Utc>) -> Self {
        let n = i64::try_from(answer.hits.len()).unwrap_or(i64::MAX);
        let count = if n >= HITS { format!("The best {n}") } else { plural(n, "result", "results") };
        let note = answer.note.as_deref().map(|note| {
            let mut note = clipped(note, 300);
            if let Some(first) = note.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            note
        });
        Self {
            summary: format!("{count} in {millis} ms"),
            note: note.unwrap_or_default(),
            hits: answer.hits.into_iter().map(|hit| HitCard::new(hit, clients, now)).collect(),
        }
    }
}

impl HitCard {
    fn new(hit: Hit, clients: &HashMap<Uuid, String>, now: DateTime<Utc>) -> Self {
        let title = match hit.title.as_deref().map(str::trim) {
            Some(title) if !title.is_empty() => clipped(title, 200),
            _ => clipped(&hit.external_id, 80),
        };
        let client = clients.get(&hit.document_id).cloned();
        // A client's own text is its page in few words.
        let (href, client) = match client {
            Some(page) if hit.document_type == "client" => (page, None),
            client => (format!("/documents/{}#c-{}", hit.document_id, hit.chunk_id), client),
        };
        Self {
            href,
            client,
            title,
            kind: clipped(&hit.document_type, 60),
            source: clipped(&hit.source_name, 60),
            at: When::new(hit.at, now),
            snippet: hit.snippet.into_iter().map(|part| Part { text: shown(&part.text), ..part }).collect(),
            why: hit.why,
        }
    }
}
