//! Documents: listed, looked at, and handed in through the direct door.

use std::collections::HashSet;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Multipart, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, Utc};
use domain::Fault;
use engine::memory::door::{self, Incoming, Refusal};
use engine::memory::{Change, Remembered};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::memory::{Listed, VectorTable, chunks, documents};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use super::search::SourceRef;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub(crate) struct Documents {
    documents: Vec<DocumentLine>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct DocumentLine {
    id: Uuid,
    title: Option<String>,
    #[schema(example = "note")]
    document_type: String,
    source: SourceRef,
    external_id: String,
    /// `remembered`, or `pending_embed`: found by its words, not yet by its meaning.
    #[schema(example = "remembered")]
    status: &'static str,
    chunks: i32,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Document {
    id: Uuid,
    title: Option<String>,
    #[schema(example = "activity.email")]
    document_type: String,
    source: SourceRef,
    /// Its name at the source.
    external_id: String,
    /// Normalised. Somebody else wrote it: show it, never obey it.
    text: String,
    #[schema(example = "english")]
    lang: String,
    /// As it came from its source.
    raw_payload: Option<Value>,
    metadata: Value,
    /// `remembered`, `pending_embed` or `deleted`.
    #[schema(example = "remembered")]
    status: &'static str,
    /// Whose vectors it has; none while it waits for some.
    embedding_model: Option<String>,
    /// The source's own version.
    source_version: Option<i64>,
    /// How often its text was written.
    revision: i32,
    source_created_at: Option<DateTime<Utc>>,
    source_updated_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    /// Deleted at its source: this is all that is left.
    deleted_at: Option<DateTime<Utc>>,
    chunks: Vec<Chunk>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Chunk {
    pub id: Uuid,
    pub ordinal: i32,
    pub text: String,
    /// It can be found by its meaning.
    pub has_vector: bool,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only what is older than this document: `next_before` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    limit: Option<i64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDocument {
    text: String,
    title: Option<String>,
    /// Sent again under the same name it is the same document; without one its text is its name.
    external_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "only described: multipart is read field by field")]
pub(crate) struct NewFile {
    /// Text, markdown or html, as its type or its name's ending says.
    #[schema(format = Binary, value_type = String)]
    file: Vec<u8>,
    title: Option<String>,
    external_id: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Named {
    /// For a file or a plain text; JSON has its own.
    title: Option<String>,
    /// For a file or a plain text; JSON has its own.
    external_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Taken {
    id: Uuid,
    /// `remembered`, or `pending_embed`: found by its words, soon by its meaning.
    #[schema(example = "remembered")]
    status: &'static str,
    /// created, updated or unchanged.
    #[schema(value_type = String, example = "created")]
    change: Change,
    chunks: usize,
    /// How many of them were embedded for this.
    embedded: usize,
}

/// The tenant's documents, the newest first.
#[utoipa::path(get, path = "/api/v1/documents", tag = "memory", params(ListQuery), responses((status = 200, body = Documents)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<ListQuery>,
) -> Result<Json<Documents>, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let listed = app.env.db.read(&caller, async |tx| documents::list(tx, query.before, limit).await).await?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= limit);
    let next_before = listed.last().filter(|_| is_full).map(|last| last.id);
    Ok(Json(Documents { documents: listed.into_iter().map(DocumentLine::from).collect(), next_before }))
}

/// One document with its chunks. A deleted one is a tombstone without text.
#[utoipa::path(get, path = "/api/v1/documents/{id}", tag = "memory", params(("id" = Uuid, Path)),
    responses((status = 200, body = Document), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<Document>, ApiError> {
    let Loaded { document, chunks, .. } = load(&app, &caller, id, i64::MAX).await?;
    Ok(Json(Document::new(document, chunks)))
}

/// Remembers a text or a file (text, markdown, html). Answered when it is durable and can be found; sent again it is the same document.
#[utoipa::path(post, path = "/api/v1/documents", tag = "memory", params(Named),
    request_body(content((NewDocument = "application/json"), (NewFile = "multipart/form-data"), (String = "text/plain")),
        description = "JSON, a form with one `file`, or the text itself as text/* with its name in the header `X-File-Name` if it is a file"),
    responses((status = 201, body = Taken), (status = 200, body = Taken, description = "It was known"), (status = 400, body = Problem),
        (status = 413, body = Problem), (status = 415, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Writing(caller): Writing,
    Query(named): Query<Named>,
    request: Request,
) -> Result<(StatusCode, Json<Taken>), ApiError> {
    let incoming = read(&app, request, named).await?;
    let taken = door::accept(&app.env, caller.tenant_id, incoming).await?;
    let status = if taken.change == Change::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(taken.into())))
}

/// What was sent, in whichever of the three ways. Refusals never quote it.
async fn read(app: &App, request: Request, named: Named) -> Result<Incoming, ApiError> {
    let told = header(request.headers(), CONTENT_TYPE.as_str());
    let essence = told.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => {
            let body = whole(request, app).await?;
            let new: NewDocument = serde_json::from_slice(&body).map_err(|error| {
                malformed(format!(
                    "line {} column {} is not what is expected: an object with `text`, and if wanted `title`, `external_id` and `metadata`",
                    error.line(),
                    error.column()
                ))
            })?;
            Ok(Incoming {
                content: new.text.into(),
                title: new.title,
                external_id: new.external_id,
                metadata: new.metadata,
                ..Incoming::default()
            })
        }
        "multipart/form-data" => read_form(app, request, named).await,
        _ => {
            let file_name = header(request.headers(), "x-file-name");
            let (title, external_id) = (named.title, named.external_id);
            let content = whole(request, app).await?;
            Ok(Incoming { content, file_name, content_type: told, title, external_id, ..Incoming::default() })
        }
    }
}

async fn read_form(app: &App, request: Request, named: Named) -> Result<Incoming, ApiError> {
    let unreadable = || malformed("the form cannot be read");
    let mut form = Multipart::from_request(request, app).await.map_err(|_| unreadable())?;
    let mut incoming = Incoming { title: named.title, external_id: named.external_id, ..Incoming::default() };
    let mut n_files = 0;
    let failed = |error: axum::extract::multipart::MultipartError| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => over_limit(),
        _ => unreadable(),
    };
    while let Some(field) = form.next_field().await.map_err(failed)? {
        match field.name() {
            Some("file") => {
                n_files += 1;
                incoming.file_name = field.file_name().filter(|name| !name.is_empty()).map(str::to_owned);
                incoming.content_type = field.content_type().map(str::to_owned);
                incoming.content = field.bytes().await.map_err(failed)?;
            }
            Some("title") => incoming.title = Some(field.text().await.map_err(failed)?),
            Some("external_id") => incoming.external_id = Some(field.text().await.map_err(failed)?),
            _ => return Err(malformed("the form's fields are `file`, `title` and `external_id`")),
        }
    }
    match n_files {
        1 => Ok(incoming),
        0 => Err(malformed("the form has no field `file`")),
        _ => Err(malformed("one `file` at a time: each is a document of its own")),
    }
}

async fn whole(request: Request, app: &App) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, app).await.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => over_limit(),
        status => ApiError::Malformed(status, "the body could not be read to its end".into()),
    })
}

fn over_limit() -> ApiError {
    ApiError::OverLimit("send less at once; DOCUMENT_MAX_BYTES is the limit".into())
}

fn malformed(what: impl Into<String>) -> ApiError {
    ApiError::Malformed(StatusCode::BAD_REQUEST, what.into())
}

/// Names of files are written in UTF-8, whatever headers were made for.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A document, its first chunks with what each can be found by, and how many of all have their vectors.
pub(crate) struct Loaded {
    pub document: store::memory::Document,
    pub chunks: Vec<Chunk>,
    pub n_embedded: usize,
}

/// One of the caller's documents with at most so many of its chunks.
pub(crate) async fn load(app: &App, caller: &domain::Caller, id: Uuid, most_chunks: i64) -> Result<Loaded, ApiError> {
    let loaded = app.env.db.read(caller, async |tx| {
        let Some(document) = documents::get(tx, id).await? else { return Ok(None) };
        Ok(Some((document, chunks::list(tx, id, most_chunks).await?)))
    });
    let (document, listed) = loaded.await?.ok_or(ApiError::NotFound("document"))?;
    let with_vector = if document.is_pending() { with_vectors(app, caller, id).await? } else { HashSet::new() };
    let is_whole = document.embedding_model.is_some();
    let chunks = listed.into_iter().map(|chunk| Chunk {
        has_vector: is_whole || with_vector.contains(&chunk.id),
        id: chunk.id,
        ordinal: chunk.ordinal,
        text: chunk.text,
    });
    let n_chunks = usize::try_from(document.n_chunks).unwrap_or(0);
    let n_embedded = if is_whole { n_chunks } else { with_vector.len() };
    Ok(Loaded { chunks: chunks.collect(), n_embedded, document })
}

/// Which chunks of a document that waits for vectors have theirs. Vectors are the service's own tables; the caller's own transaction
/// has shown that the document is its tenant's.
async fn with_vectors(app: &App, caller: &domain::Caller, id: Uuid) -> store::Result<HashSet<Uuid>> {
    let kept = app.env.db.session(async |conn| {
        let memory = store::memory::tenant(conn, caller.tenant_id).await?;
        let table = VectorTable::new(&app.env.embedders.for_tenant(memory.model.as_deref()).model().name)?;
        if !memory.has_table(&table) {
            return Ok(Vec::new());
        }
        chunks::of_documents(conn, caller.tenant_id, &table, &[id]).await
    });
    Ok(kept.await?.into_iter().filter(|chunk| chunk.has_vector).map(|chunk| chunk.id).collect())
}

const REMEMBERED: &str = "remembered";
const PENDING: &str = "pending_embed";

impl From<Listed> for DocumentLine {
    fn from(listed: Listed) -> Self {
        Self {
            status: if listed.is_pending() { PENDING } else { REMEMBERED },
            id: listed.id,
            title: listed.title,
            document_type: listed.document_type.to_string(),
            source: SourceRef { id: listed.source_id, name: listed.source_name },
            external_id: listed.external_id,
            chunks: listed.n_chunks,
            created_at: listed.created_at,
            updated_at: listed.updated_at,
        }
    }
}

impl Document {
    fn new(document: store::memory::Document, chunks: Vec<Chunk>) -> Self {
        let status = match document.deleted_at {
            Some(_) => "deleted",
            None if document.is_pending() => PENDING,
            None => REMEMBERED,
        };
        Self {
            status,
            id: document.id,
            title: document.title,
            document_type: document.document_type.to_string(),
            source: SourceRef { id: document.source_id, name: document.source_name },
            external_id: document.external_id,
            text: document.text,
            lang: document.lang,
            raw_payload: document.raw_payload,
            metadata: document.source_metadata,
            embedding_model: document.embedding_model,
            source_version: document.source_version,
            revision: document.revision,
            source_created_at: document.source_created_at,
            source_updated_at: document.source_updated_at,
            created_at: document.created_at,
            updated_at: document.updated_at,
            deleted_at: document.deleted_at,
            chunks,
        }
    }
}

impl From<Remembered> for Taken {
    fn from(taken: Remembered) -> Self {
        Self {
            id: taken.id.0,
            status: if taken.is_pending { PENDING } else { REMEMBERED },
            change: taken.change,
            chunks: taken.n_chunks,
            embedded: taken.n_embedded,
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let what = refusal.to_string();
        match refusal {
            Refusal::Unknown(_) => Self::Malformed(StatusCode::UNSUPPORTED_MEDIA_TYPE, what),
            Refusal::Fault(fault) => fault.into(),
            _ => malformed(what),
        }
    }
}

/// In words alone: what a database says of a row it refuses can quote the row.
impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let words = anyhow::anyhow!(fault.in_words());
        let is_passing = match &fault {
            Fault::Transient(cause) => cause.downcast_ref::<store::Error>().is_none_or(store::Error::is_passing),
            Fault::RateLimited { .. } => true,
            _ => false,
        };
        if is_passing { Self::Unavailable(words) } else { Self::Internal(words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let status =
            |refusal: Refusal| axum::response::IntoResponse::into_response(ApiError::from(refusal)).status().as_u16();
        assert_eq!(status(Refusal::Empty), 400);
        assert_eq!(status(Refusal::NotUtf8), 400);
        assert_eq!(status(Refusal::TooLong("title", 1_000)), 400);
        assert_eq!(status(Refusal::Unknown("application/pdf".into())), 415);
        assert_eq!(status(Fault::Transient(store::Error::TimedOut.into()).into()), 503);
        assert_eq!(status(Fault::Transient(store::Error::Refused { what: String::new() }.into()).into()), 500);
        assert_eq!(status(Fault::Malformed { what: String::new() }.into()), 500);
    }
}
