//! Documents that people deleted: listed, and let in again.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::shown::clipped;
use domain::{DocumentId, Scope};
use engine::pull::words::facts::document_type;
use engine::{ActError, documents};
use serde::Deserialize;
use store::memory::removed::Removed;
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::mail::is_message;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const HERE: &str = "/documents/deleted";
const MOST: i64 = 200;

flashes! {
    Flash {
        Deleted = "deleted": "Deleted. Search does not find it any more, and it stays deleted when its source sends it again.",
        Restored = "restored": "It may come in again: with the next event or full sync of its source, or when you add it again.",
        Made = "made": "It is made from its client's facts, so it cannot be deleted alone. Correct the client instead.",
        Moved = "moved": "Nobody had deleted it. This is how it is now.",
    }
}

#[derive(Template)]
#[template(path = "deleted.html")]
struct DeletedPage {
    layout: Layout,
    flash: &'static str,
    rows: Vec<Row>,
    may_act: bool,
    csrf: String,
}

struct Row {
    id: String,
    name: String,
    /// When it was made at its source: all that tells one letter from another.
    made: Option<When>,
    kind: String,
    source: String,
    by: String,
    at: When,
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    pub done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let now = app.env.clock.now();
    let removed = documents::removed(&app.env, &visitor, MOST).await?;
    html(&DeletedPage {
        layout: Layout::new(&visitor, now, "Deleted documents", HERE),
        flash: query.done.in_words(),
        rows: removed
            .iter()
            .map(|removed| Row {
                id: removed.id.to_string(),
                name: name(removed),
                made: removed.made_at.map(|at| When::new(at, now)),
                kind: clipped(&document_type(&removed.document_type), 60),
                source: clipped(&removed.source_name, 60),
                by: clipped(&removed.removed_by, 60),
                at: When::new(removed.removed_at, now),
            })
            .collect(),
        may_act: visitor.may(Scope::Write) && !visitor.csrf().is_empty(),
        csrf: visitor.csrf(),
    })
}

/// The words for what was deleted. The name of a letter, or of its file, is a code of its provider's, and its subject is gone.
fn name(removed: &Removed) -> String {
    if is_message(&removed.document_type) {
        return "A message".into();
    }
    match removed.external_id.starts_with("attachment:") {
        true => "A file of a message".into(),
        false => clipped(&removed.external_id, 120),
    }
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn delete(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    let flash = match documents::delete(&app.env, &caller, DocumentId(id)).await {
        Ok(()) => Flash::Deleted,
        Err(ActError::Conflict(_)) => Flash::Made,
        Err(error) => return Err(error.into()),
    };
    Ok(flash.back(&format!("/documents/{id}")))
}

pub(crate) async fn restore(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    let flash = match documents::restore(&app.env, &caller, DocumentId(id)).await {
        Ok(()) => Flash::Restored,
        Err(ActError::NotFound(_)) => Flash::Moved,
        Err(error) => return Err(error.into()),
    };
    Ok(flash.back(HERE))
}
