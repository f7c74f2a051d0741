//! The stream of documents: the state of each one that changed, as soon as the change is committed. It has a ring, caps and ids as the stream of changes
//! has ([`super::events`]); the rows are read in the caller's own transaction.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::Event;
use chrono::{DateTime, Utc};
use domain::{Notice, Op};
use serde::Serialize;
use store::memory::documents;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, Reading};
use super::error::{ApiError, Problem};
use super::events::{self, Of, Resume, concerns, id, resync};
use super::extract::Query;
use crate::app::App;

/// Documents that are read at once.
const CHUNK: usize = 1_000;

/// The state of a document, as a stream tells it.
#[derive(Serialize, ToSchema)]
pub(crate) struct DocumentEvent {
    id: Uuid,
    title: Option<String>,
    /// pending, classifying, transcribing, extracting, completed, skipped or failed; deleted for one that is gone.
    #[schema(example = "completed")]
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    skip_reason: Option<String>,
    updated_at: DateTime<Utc>,
}

/// Streams the documents that are added or change, as server-sent events named `document`, from now on or from `Last-Event-ID`. One may come
/// twice, always as it is now. `event: resync` means: load everything again.
#[utoipa::path(get, path = "/documents/events", tag = "memory", params(Resume),
    responses((status = 200, content_type = "text/event-stream", body = DocumentEvent),
        (status = 429, body = Problem, description = "The key or its tenant has enough streams")))]
pub(crate) async fn document_events(
    State(app): State<App>,
    Reading(caller): Reading,
    headers: HeaderMap,
    Query(resume): Query<Resume>,
) -> Result<impl IntoResponse, ApiError> {
    events::open(app, caller, &headers, resume, Of::Documents)
}

/// The events of these notices. None: the rows cannot be read now.
pub(super) async fn told(app: &App, caller: &Caller, boot: Uuid, notices: &[(u64, Notice)]) -> Option<Vec<Event>> {
    let notices: Vec<&(u64, Notice)> = notices.iter().filter(|(_, notice)| concerns(caller, notice)).collect();
    // Each document once, with the last notice that names it.
    let mut last: HashMap<Uuid, u64> = HashMap::new();
    for (number, notice) in &notices {
        last.extend(notice.ids.iter().map(|id| (*id, *number)));
    }
    let ids: Vec<Uuid> = last.keys().copied().collect();
    let mut rows: HashMap<u64, Vec<DocumentEvent>> = HashMap::new();
    for ids in ids.chunks(CHUNK) {
        let read = app.env.db.read(caller, async |tx| documents::states(tx, ids).await).await;
        let states = match read {
            Ok(states) => states,
            Err(error) => {
                tracing::debug!(error = ?error, "changed documents could not be read; they are read again");
                return None;
            }
        };
        for state in states {
            let Some(number) = last.get(&state.id) else { continue };
            rows.entry(*number).or_default().push(DocumentEvent {
                id: state.id,
                title: state.title,
                status: if state.is_deleted { "deleted".to_owned() } else { state.status },
                skip_reason: state.skip_reason.filter(|_| !state.is_deleted),
                updated_at: state.updated_at,
            });
        }
    }
    let mut told = Vec::new();
    for (number, notice) in notices {
        // Who names no rows, such as an older program, says that some changed.
        if notice.op == Op::Resync || notice.ids.is_empty() {
            told.push(resync(boot, *number));
            continue;
        }
        let mut rows = rows.remove(number).unwrap_or_default();
        rows.sort_unstable_by_key(|row| row.id);
        let n = rows.len();
        for (nth, row) in rows.into_iter().enumerate() {
            // Only the last one moves a reader on: who is cut off before it hears of all of them again.
            let place = if nth + 1 == n { *number } else { number.saturating_sub(1) };
            // JSON has no raw line breaks, which an event's data must not have.
            let data = serde_json::to_string(&row).unwrap_or_default();
            told.push(Event::default().id(id(boot, place)).event("document").data(data));
        }
    }
    Some(told)
}
