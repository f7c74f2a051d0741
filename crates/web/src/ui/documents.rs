//! Documents: everything that is remembered, the newest first, by source and type.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::SourceId;
use domain::shown::{clipped, counted, number};
use engine::documents;
use engine::pull::words::facts::type_in_words;
use serde::Deserialize;
use store::memory::documents::Wanted;
use store::memory::{Totals, documents as stored};
use store::queue::MOST_COUNTED;
use uuid::Uuid;

use super::flow::NewestRow;
use super::layout::Layout;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Query, blank_is_none};
use crate::app::App;

const HERE: &str = "/documents";
const PAGE: i64 = 50;

#[derive(Template)]
#[template(path = "documents.html")]
struct DocumentsPage {
    layout: Layout,
    rows: Vec<NewestRow>,
    count: String,
    sources: Vec<Choice>,
    types: Vec<Choice>,
    /// Something is filtered.
    is_narrow: bool,
    newest: Option<String>,
    older: Option<String>,
}

/// A value that a filter offers.
struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct DocumentsQuery {
    #[serde(default, deserialize_with = "blank_is_none")]
    source: Option<Uuid>,
    #[serde(default, deserialize_with = "blank_is_none")]
    r#type: Option<String>,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DocumentsQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let wanted = Wanted {
        source_id: query.source.map(SourceId),
        document_type: query.r#type.as_deref(),
        before: query.before,
        limit: PAGE,
    };
    let is_narrow = query.source.is_some() || query.r#type.is_some();
    let (listed, next) = documents::list(&app.env, &visitor, wanted).await?;
    let loaded = app.env.db.read(&visitor, async |tx| {
        let totals = match is_narrow {
            true => Totals { documents: stored::count(tx, wanted).await?, pending: 0 },
            false => stored::totals(tx).await?,
        };
        Ok((totals, stored::types(tx).await?, store::sources::all(tx).await?))
    });
    let (totals, types, sources) = loaded.await?;
    let now = app.env.clock.now();
    html(&DocumentsPage {
        layout: Layout::new(&visitor, now, "Documents", HERE),
        rows: listed.iter().map(|listed| NewestRow::remembered(listed, now)).collect(),
        count: count(totals),
        sources: sources
            .iter()
            .map(|source| Choice {
                value: source.id.to_string(),
                label: clipped(&source.name, 60),
                is_chosen: query.source == Some(source.id),
            })
            .collect(),
        types: types
            .into_iter()
            .map(|kind| Choice {
                is_chosen: query.r#type.as_ref() == Some(&kind),
                label: clipped(&type_in_words(&kind), 60),
                value: kind,
            })
            .collect(),
        is_narrow,
        newest: query.before.map(|_| address(&query, None)),
        older: next.map(|last| address(&query, Some(last))),
    })
}

fn count(totals: Totals) -> String {
    match totals.documents {
        1 => "1 document".into(),
        n if totals.is_of_last_count() => format!("About {} documents", number(n)),
        n => format!("{} documents", counted(n, MOST_COUNTED)),
    }
}

fn address(query: &DocumentsQuery, before: Option<Uuid>) -> String {
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let fields = [
        query.source.map(|id| format!("source={id}")),
        query.r#type.as_deref().map(|kind| format!("type={}", encoded(kind))),
        before.map(|id| format!("before={id}")),
    ];
    let fields: Vec<String> = fields.into_iter().flatten().collect();
    if fields.is_empty() { HERE.to_owned() } else { format!("{HERE}?{}", fields.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_the_filters() {
        let query = DocumentsQuery { r#type: Some("hubspot.deal&x".into()), ..DocumentsQuery::default() };
        assert_eq!(address(&DocumentsQuery::default(), None), "/documents");
        assert_eq!(
            address(&query, Some(Uuid::nil())),
            format!("/documents?type=hubspot%2Edeal%26x&before={}", Uuid::nil())
        );
    }

    #[test]
    fn a_count_says_how_exact_it_is() {
        let of = |documents| count(Totals { documents, pending: 0 });
        assert_eq!((of(0), of(1), of(999)), ("0 documents".into(), "1 document".into(), "999 documents".into()));
        assert_eq!((of(1_000), of(48_600)), ("1,000+ documents".into(), "About 48,600 documents".into()));
    }
}
