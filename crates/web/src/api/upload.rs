//! A document as it is sent here: as JSON, as a form with a file, or as the text itself.

use axum::body::Bytes;
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use engine::memory::door::Incoming;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;
use crate::app::App;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDocument {
    #[schema(example = "Ann prefers calls on Friday mornings.")]
    text: String,
    #[schema(example = "About Ann")]
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
    /// A file of any kind. Text, markdown and html are read at once, others by a worker.
    #[schema(format = Binary, value_type = String)]
    file: Vec<u8>,
    title: Option<String>,
    external_id: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Named {
    /// The title of a file or a plain text; JSON has its own.
    title: Option<String>,
    /// The external id of a file or a plain text; JSON has its own.
    external_id: Option<String>,
}

/// Reads what was sent, in one of the three ways. Refusals never quote it.
pub(crate) async fn read(app: &App, request: Request, named: Named) -> Result<Incoming, ApiError> {
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

/// Names of files are UTF-8, although headers were made for ASCII.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
