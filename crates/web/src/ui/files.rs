//! Files: a person hands in files from the browser, and watches them being read.

use askama::Template;
use axum::Json;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::shown::{bytes, clipped};
use domain::{DocumentStatus, Scope, SourceId};
use engine::memory::Change;
use engine::memory::door::{self, Incoming};
use serde::{Deserialize, Serialize};
use store::memory::documents;

use super::flash::flashes;
use super::layout::Layout;
use super::reading::{self, ReadRow};
use super::{Visitor, html};
use crate::api::auth::{Caller, Credential, address_of};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::api::origin;
use crate::app::App;

const HERE: &str = "/connections/files";
const NEWEST: i64 = 40;
/// The reason why a file that a person deleted is not added.
const KEPT_OUT: &str = "somebody deleted it here. Documents, Deleted lets it in again";

#[derive(Template)]
#[template(path = "files.html")]
struct FilesPage {
    layout: Layout,
    flash: &'static str,
    trouble: String,
    /// The words for files that search finds at once, and for those that are still to be read. The script says them, too.
    added: &'static str,
    awaited: &'static str,
    /// The largest file that is taken: in bytes, and in words.
    most_bytes: usize,
    most: String,
    rows: Vec<ReadRow>,
    /// The list of all of them; none before the first.
    all: Option<String>,
    may_add: bool,
    csrf: String,
}

flashes! {
    Flash {
        Added = "added": "Added. Search finds it now.",
        Awaited = "awaited": "Added. Search finds what is in a file as soon as it is read, which you can watch below.",
        Again = "again": "It will be read again.",
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<Response, ApiError> {
    page(&app, &visitor, query.done, String::new()).await
}

async fn page(app: &App, visitor: &Visitor, flash: Flash, trouble: String) -> Result<Response, ApiError> {
    let loaded = app.env.db.read(visitor, async |tx| {
        let sources = store::sources::all(tx).await?;
        let Some(own) = sources.into_iter().find(|source| source.provider == "manual") else { return Ok(None) };
        Ok(Some((own.id, documents::of_source(tx, SourceId(own.id), NEWEST).await?)))
    });
    let loaded = loaded.await?;
    let now = app.env.clock.now();
    let (id, listed) = loaded.map_or((None, Vec::new()), |(id, listed)| (Some(id), listed));
    let most_bytes = app.env.config.document_max_bytes;
    let page = FilesPage {
        layout: Layout::new(visitor, now, "Files", HERE),
        flash: flash.in_words(),
        trouble,
        added: Flash::Added.in_words(),
        awaited: Flash::Awaited.in_words(),
        most_bytes,
        most: bytes(u64::try_from(most_bytes).unwrap_or(u64::MAX)),
        rows: reading::rows(app, visitor, &listed, now).await?,
        all: id.map(|id| format!("/documents?source={id}")),
        may_add: visitor.may(Scope::Write) && !visitor.csrf().is_empty(),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// Opens a form with files. The token is its first field, so nothing is read of a foreign form.
async fn open(app: &App, request: Request) -> Result<(Caller, Multipart), ApiError> {
    let headers = request.headers().clone();
    let caller = Caller::of(&headers, address_of(request.extensions()), app).await?;
    let Credential::Session(session) = &caller.credential else { return Err(ApiError::CrossSite) };
    caller.need(Scope::Write)?;
    let mut form = Multipart::from_request(request, app).await.map_err(|_| unreadable())?;
    let csrf = match form.next_field().await.map_err(failed)? {
        Some(field) if field.name() == Some("csrf") => field.text().await.map_err(failed)?,
        _ => String::new(),
    };
    origin::check(&headers, app.env.config.public_url.as_deref(), session, &csrf)?;
    Ok((caller, form))
}

/// Takes the files of the form, each a document of its own.
pub(crate) async fn add(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let (caller, mut form) = open(&app, request).await?;
    let (mut n_files, mut flash) = (0, Flash::Added);
    while let Some(field) = form.next_field().await.map_err(failed)? {
        let Some(incoming) = read(field).await? else { continue };
        let name = clipped(incoming.file_name.as_deref().unwrap_or("A file"), 100);
        let refused = match door::accept(&app.env, caller.tenant_id, incoming).await {
            Ok(taken) if taken.change == Change::KeptOut => Some((StatusCode::CONFLICT, KEPT_OUT.to_owned())),
            Ok(taken) => {
                if taken.status != DocumentStatus::Completed {
                    flash = Flash::Awaited;
                }
                None
            }
            Err(refusal) => match ApiError::from(refusal) {
                ApiError::Malformed(status, what) => Some((status, what)),
                error => return Err(error),
            },
        };
        if let Some((status, what)) = refused {
            let before = if n_files > 0 { " Those before it were added." } else { "" };
            let trouble = format!("{name} was not added: {}.{before}", what.trim_end_matches('.'));
            let mut response = page(&app, &Visitor(caller), Flash::Nothing, trouble).await?;
            *response.status_mut() = status;
            return Ok(response);
        }
        n_files += 1;
    }
    if n_files == 0 {
        let mut response = page(&app, &Visitor(caller), Flash::Nothing, "Choose a file first.".into()).await?;
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    }
    Ok(flash.back(HERE))
}

/// A file that the page's script has sent.
#[derive(Serialize)]
pub(crate) struct Added {
    /// The page of its document.
    href: String,
    /// It was here before, and is as it was.
    is_known: bool,
    /// Search finds what is in it now.
    is_read: bool,
}

/// Takes one file, as the page's script sends each by itself. It answers in JSON, also why it takes none.
pub(crate) async fn add_one(State(app): State<App>, request: Request) -> Result<Json<Added>, ApiError> {
    let (caller, mut form) = open(&app, request).await?;
    while let Some(field) = form.next_field().await.map_err(failed)? {
        let Some(incoming) = read(field).await? else { continue };
        let taken = door::accept(&app.env, caller.tenant_id, incoming).await?;
        if taken.change == Change::KeptOut {
            return Err(ApiError::Conflict(KEPT_OUT.into()));
        }
        return Ok(Json(Added {
            href: format!("/documents/{}", taken.id),
            is_known: taken.change == Change::Unchanged,
            is_read: taken.status == DocumentStatus::Completed,
        }));
    }
    Err(unreadable())
}

/// Where a form of this page leads back to, once a file is read again.
pub(super) fn back_to_list() -> Response {
    Flash::Again.back(HERE)
}

/// A file of the form; none where nothing was chosen.
async fn read(field: Field<'_>) -> Result<Option<Incoming>, ApiError> {
    let file_name = field.file_name().filter(|name| !name.is_empty()).map(str::to_owned);
    if file_name.is_none() || field.name() != Some("file") {
        return Ok(None);
    }
    let content_type = field.content_type().map(str::to_owned);
    let content = field.bytes().await.map_err(failed)?;
    Ok(Some(Incoming { content, file_name, content_type, ..Incoming::default() }))
}

fn failed(error: MultipartError) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::OverLimit("send less at once; DOCUMENT_MAX_BYTES is the limit".into())
        }
        _ => unreadable(),
    }
}

fn unreadable() -> ApiError {
    ApiError::Malformed(StatusCode::BAD_REQUEST, "the form cannot be read".into())
}
