//! Search: one field, and what memory has for it.

use std::collections::HashMap;
use std::time::Instant;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use domain::DocumentType;
use domain::shown::{clipped, counted, number, plural, shown};
use domain::text::Part;
use engine::memory::recall::{Hit, SearchAnswer};
use store::clients;
use store::memory::{Totals, documents};
use store::queue::MOST_COUNTED;
use store::sources::{self, AnySource};
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
    /// The amount of searchable data.
    size: String,
    is_empty: bool,
    found: Option<FoundPart>,
    /// The providers that can be connected, in words.
    providers: String,
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
    /// The number of hits and the time the search took.
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
        Ok((totals, types, sources::all(tx).await?))
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
        providers: super::sources::providers(&app),
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
    let documents = match totals.documents {
        1 => "1 document".into(),
        n if totals.is_of_last_count() => format!("about {} documents", number(n)),
        n => format!("{} documents", counted(n, MOST_COUNTED)),
    };
    match totals.pending {
        0 => documents,
        pending => {
            let pending = counted(pending, MOST_COUNTED);
            format!("{documents}, of which {pending} are found only by keyword until they have their vectors")
        }
    }
}

impl Fields {
    fn new(query: &SearchQuery, sources: &[AnySource], mut types: Vec<String>) -> Self {
        // What is asked for is chosen, also when no document has it.
        types.extend(query.r#type.iter().filter(|kind| !types.contains(kind)).cloned().collect::<Vec<_>>());
        let source = |source: &AnySource| Choice {
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
    fn new(answer: SearchAnswer, clients: &HashMap<Uuid, String>, millis: u128, now: DateTime<Utc>) -> Self {
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
            Some(page) if hit.document_type == DocumentType::Client => (page, None),
            client => (format!("/documents/{}#c-{}", hit.document_id, hit.chunk_id), client),
        };
        Self {
            href,
            client,
            title,
            kind: clipped(&hit.document_type.to_string(), 60),
            source: clipped(&hit.source_name, 60),
            at: When::new(hit.at, now),
            snippet: hit.snippet.into_iter().map(|part| Part { text: shown(&part.text), ..part }).collect(),
            why: hit.why,
        }
    }
}

#[cfg(test)]
mod tests {
    use store::memory::How;

    use super::*;

    fn hit(title: Option<&str>, document_type: &str) -> Hit {
        Hit {
            document_id: Uuid::from_u128(1),
            chunk_id: Uuid::from_u128(2),
            title: title.map(str::to_owned),
            document_type: document_type.parse().expect("a type"),
            source_id: Uuid::nil(),
            source_name: "Files".into(),
            external_id: "sha256:abc".into(),
            at: DateTime::UNIX_EPOCH,
            score: 1.0,
            keyword_rank: Some(1),
            vector_rank: None,
            similarity: None,
            why: "by its words".into(),
            snippet: vec![Part { text: "a\u{202e}b".into(), is_match: true }],
        }
    }

    #[test]
    fn a_result_is_called_by_its_title_else_by_its_name_and_leads_to_its_chunk() {
        let card = |hit| HitCard::new(hit, &HashMap::new(), DateTime::UNIX_EPOCH);
        assert_eq!(card(hit(Some("Lease"), "note")).title, "Lease");
        for none in [None, Some(""), Some("  ")] {
            assert_eq!(card(hit(none, "note")).title, "sha256:abc");
        }
        let made = card(hit(Some("Lease"), "note"));
        assert_eq!(made.href, format!("/documents/{}#c-{}", Uuid::from_u128(1), Uuid::from_u128(2)));
        assert_eq!(made.snippet[0].text, "a⟨U+202E⟩b");
    }

    #[test]
    fn a_clients_own_text_leads_to_its_page_and_a_record_names_it() {
        let clients = HashMap::from([(Uuid::from_u128(1), "/clients/7".to_owned())]);
        let own = HitCard::new(hit(None, "client"), &clients, DateTime::UNIX_EPOCH);
        assert_eq!((own.href.as_str(), own.client), ("/clients/7", None));
        let record = HitCard::new(hit(None, "hubspot.deal"), &clients, DateTime::UNIX_EPOCH);
        assert_eq!(record.client.as_deref(), Some("/clients/7"));
        assert!(record.href.starts_with("/documents/"));
    }

    #[test]
    fn how_many_and_how_long_is_said() {
        let found = |n: usize, note: Option<&str>| {
            let answer = SearchAnswer { hits: vec![hit(None, "note"); n], how: How::Exact, note: note.map(Into::into) };
            FoundPart::new(answer, &HashMap::new(), 12, DateTime::UNIX_EPOCH)
        };
        for (n, words) in [(0, "0 results in 12 ms"), (1, "1 result in 12 ms"), (20, "The best 20 in 12 ms")] {
            assert_eq!(found(n, None).summary, words);
        }
        assert_eq!(
            (found(1, Some("by keyword alone")).note.as_str(), found(1, None).note.as_str()),
            ("By keyword alone", "")
        );
        for (documents, pending, words) in [
            (0, 0, "0 documents"),
            (1, 0, "1 document"),
            (999, 3, "999 documents, of which 3 "),
            (1_000, 1_000, "1,000+ documents, of which 1,000+ "),
            (12_345, 0, "about 12,345 documents"),
        ] {
            let size = size(Totals { documents, pending });
            assert!(size.starts_with(words), "{size}");
        }
    }
}
