//! The forms about a document's file: it is read again, and a field of its paper is corrected, or the correction withdrawn.

use axum::extract::State;
use axum::response::Response;
use domain::reading::Step;
use domain::{DocumentId, Scope};
use engine::{ActError, files};
use serde::Deserialize;
use uuid::Uuid;

use super::Posted;
use super::files::back_to_list;
use super::flash::flashes;
use crate::api::error::ApiError;
use crate::api::extract::{Path, blank_is_none};
use crate::app::App;

flashes! {
    Flash {
        Again = "again": "It will be read again. You can watch it here.",
        Said = "said": "Saved. It stays when the file is read again.",
        Withdrawn = "withdrawn": "Withdrawn. What stands in the file is looked for again.",
        Invalid = "invalid": "Nothing was saved: a field needs a text of up to 2,000 characters.",
        Meanwhile = "meanwhile": "Nothing was saved: the document changed meanwhile. Look, and try again.",
    }
}

/// The word of the last form, and the page of the file that is wanted.
#[derive(Deserialize)]
pub(crate) struct ShownQuery {
    #[serde(default)]
    pub done: Flash,
    #[serde(default, deserialize_with = "blank_is_none")]
    pub page: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgainForm {
    /// `files`: the button stands in the list of files.
    back: String,
}

pub(crate) async fn read_again(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<AgainForm>,
) -> Result<Response, ApiError> {
    let Posted { caller, form } = posted;
    caller.need(Scope::Write)?;
    files::again(&app.env, &caller, DocumentId(id), Step::Transcribe).await?;
    match form.back.as_str() {
        "files" => Ok(back_to_list()),
        _ => Ok(Flash::Again.back(&format!("/documents/{id}"))),
    }
}

#[derive(Deserialize)]
pub(crate) struct FieldForm {
    name: String,
    /// Of several fields with one name.
    #[serde(default, deserialize_with = "blank_is_none")]
    ordinal: Option<i32>,
    #[serde(default)]
    value: String,
}

pub(crate) async fn field(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, String)>,
    posted: Posted<FieldForm>,
) -> Result<Response, ApiError> {
    let Posted { caller, form } = posted;
    caller.need(Scope::Write)?;
    let (env, document, ordinal) = (&app.env, DocumentId(id), form.ordinal.unwrap_or(0));
    let done = match action.as_str() {
        "say" => files::say(env, &caller, document, &form.name, ordinal, &form.value).await.map(|_| Flash::Said),
        "withdraw" => files::withdraw(env, &caller, document, &form.name, ordinal).await.map(|()| Flash::Withdrawn),
        _ => return Err(ApiError::NotFound("page")),
    };
    let flash = match done {
        Ok(flash) => flash,
        Err(ActError::Invalid(_)) => Flash::Invalid,
        Err(ActError::Conflict(_)) => Flash::Meanwhile,
        Err(error) => return Err(error.into()),
    };
    Ok(flash.back(&format!("/documents/{id}")))
}
