//! Documents: everything that is remembered, the newest first, by source, type, and how far a file is read.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::shown::{clipped, counted, number};
use domain::{DocumentStatus, SourceId};
use engine::documents;
use engine::pull::words::facts::types_in_words;
use engine::sources::Names;
use serde::Deserialize;
use store::files;
use store::memory::documents::Wanted;
use store::memory::{Totals, documents as stored};
use store::queue::MOST_COUNTED;
use uuid::Uuid;

use super::layout::Layout;
use super::reading::{self, ReadRow, state_in_words};
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
    rows: Vec<ReadRow>,
    count: String,
    sources: Vec<Choice>,
    types: Vec<Choice>,
    states: Vec<Choice>,
    /// Files that are not read: their states and numbers, as links.
    unread: Vec<(String, String)>,
    /// The fields of papers as files; none before the first.
    exports: Option<String>,
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
    status: Option<DocumentStatus>,
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
        status: query.status,
        before: query.before,
        limit: PAGE,
    };
    let is_narrow = query.source.is_some() || query.r#type.is_some() || query.status.is_some();
    let (mut listed, next) = documents::list(&app.env, &visitor, wanted).await?;
    let loaded = app.env.db.read(&visitor, async |tx| {
        let totals = match is_narrow {
            true => Totals { documents: stored::count(tx, wanted).await?, pending: 0 },
            false => stored::totals(tx).await?,
        };
        let (by_status, has_fields) = (files::by_status(tx).await?, files::all_fields::is_any(tx).await?);
        Ok((totals, stored::types(tx).await?, store::sources::all(tx).await?, by_status, has_fields))
    });
    let (totals, types, mut sources, by_status, has_fields) = loaded.await?;
    let names = Names::new(&app.env, &sources);
    listed.iter_mut().for_each(|one| names.tell_apart(one.source_id, &mut one.source_name));
    sources.iter_mut().for_each(|source| names.tell_apart(source.id, &mut source.name));
    let (now, labels) = (app.env.clock.now(), types_in_words(&types));
    html(&DocumentsPage {
        layout: Layout::new(&visitor, now, "Documents", HERE),
        rows: reading::rows(&app, &visitor, &listed, now).await?,
        count: count(totals),
        states: states(query.status),
        unread: unread(&by_status),
        exports: has_fields.then(|| exports(&query)),
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
            .zip(labels)
            .map(|(kind, label)| Choice {
                is_chosen: query.r#type.as_ref() == Some(&kind),
                label: clipped(&label, 60),
                value: kind,
            })
            .collect(),
        is_narrow,
        newest: query.before.map(|_| address(&query, None)),
        older: next.map(|last| address(&query, Some(last))),
    })
}

/// The states that the filter offers, and the chosen one where it is another.
fn states(chosen: Option<DocumentStatus>) -> Vec<Choice> {
    use DocumentStatus::{Completed, Failed, Pending, Skipped, Transcribing};
    let mut offered = vec![Pending, Transcribing, Completed, Skipped, Failed];
    offered.extend(chosen.filter(|chosen| !offered.contains(chosen)));
    let choice = |status: DocumentStatus| Choice {
        value: status.to_string(),
        label: state_in_words(status).to_owned(),
        is_chosen: chosen == Some(status),
    };
    offered.into_iter().map(choice).collect()
}

/// Links to the files that are not read, what needs a person first: "Failed 2".
fn unread(by_status: &[(String, i64)]) -> Vec<(String, String)> {
    use DocumentStatus::{Classifying, Extracting, Failed, Pending, Skipped, Transcribing};
    let link = |status: DocumentStatus| {
        let (_, n) = by_status.iter().find(|(word, n)| word == status.as_str() && *n > 0)?;
        Some((format!("{HERE}?status={status}"), format!("{} {}", state_in_words(status), number(*n))))
    };
    [Failed, Skipped, Transcribing, Extracting, Classifying, Pending].into_iter().filter_map(link).collect()
}

/// The address of the fields of papers, without the form in which they come.
fn exports(query: &DocumentsQuery) -> String {
    let narrow = DocumentsQuery { status: None, before: None, ..query.clone() };
    let asked = address(&narrow, None);
    let (_, fields) = asked.split_once('?').unwrap_or_default();
    let joint = if fields.is_empty() { "" } else { "&" };
    format!("/api/v1/documents/fields?{fields}{joint}format=")
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
        query.status.map(|status| format!("status={status}")),
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
        let failed = DocumentsQuery { status: Some(DocumentStatus::Failed), ..query };
        assert_eq!(address(&failed, None), "/documents?type=hubspot%2Edeal%26x&status=failed");
        assert_eq!(exports(&failed), "/api/v1/documents/fields?type=hubspot%2Edeal%26x&format=");
        assert_eq!(exports(&DocumentsQuery::default()), "/api/v1/documents/fields?format=");
    }

    #[test]
    fn files_that_are_not_read_are_counted_by_state() {
        let of = |given: &[(&str, i64)]| -> Vec<String> {
            let by_status: Vec<(String, i64)> = given.iter().map(|(word, n)| ((*word).to_owned(), *n)).collect();
            unread(&by_status).into_iter().map(|(href, words)| format!("{words} {href}")).collect()
        };
        assert_eq!(of(&[("completed", 70), ("pending", 0)]), [] as [&str; 0]);
        assert_eq!(
            of(&[("completed", 70), ("failed", 2), ("odd", 9), ("skipped", 5_000), ("transcribing", 1)]),
            [
                "Failed 2 /documents?status=failed",
                "Skipped 5,000 /documents?status=skipped",
                "Being read 1 /documents?status=transcribing"
            ]
        );
    }

    #[test]
    fn the_filter_offers_the_usual_states_and_the_chosen_one() {
        let of = |chosen| states(chosen).into_iter().map(|choice| (choice.value, choice.is_chosen)).collect::<Vec<_>>();
        assert_eq!(of(None).len(), 5);
        assert_eq!(of(Some(DocumentStatus::Extracting))[5], ("extracting".to_owned(), true));
        assert_eq!(of(Some(DocumentStatus::Failed))[4], ("failed".to_owned(), true));
    }

    #[test]
    fn a_count_says_how_exact_it_is() {
        let of = |documents| count(Totals { documents, pending: 0 });
        assert_eq!((of(0), of(1), of(999)), ("0 documents".into(), "1 document".into(), "999 documents".into()));
        assert_eq!((of(1_000), of(48_600)), ("1,000+ documents".into(), "About 48,600 documents".into()));
    }
}
