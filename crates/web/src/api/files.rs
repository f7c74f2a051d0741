//! The fields of papers: corrected by people, and exported for all documents, as CSV or JSON, page by page while they are sent.

use std::future::ready;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use chrono::NaiveDate;
use domain::{Caller, DocumentId, SourceId, words};
use engine::files;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use store::files::all_fields::{ListedField, Position, Wanted};
use store::files::fields::FieldState;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::documents::FileField;
use super::error::{ApiError, Problem};
use super::extract::{self, Path, Query, blank_is_none};
use super::search::SourceRef;
use crate::app::App;
use crate::ui::export::quoted;

/// Fields that are read at once.
const PAGE: i64 = 500;
const COLUMNS: [&str; 12] = [
    "document_id",
    "title",
    "source",
    "name",
    "ordinal",
    "value",
    "date",
    "amount",
    "currency",
    "page",
    "state",
    "source_id",
];

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SayField {
    /// An ISO date, or a decimal number with a currency's code, is also understood as one.
    #[schema(example = "805.00 EUR")]
    value: String,
    /// Of several fields with one name, such as lines. Default 0.
    #[serde(default)]
    ordinal: i32,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhichQuery {
    /// Of several fields with one name, such as lines. Default 0.
    #[serde(default, deserialize_with = "blank_is_none")]
    ordinal: Option<i32>,
}

/// Says what a field of a document's paper is, or corrects it. What a person says stays when the file is read again.
#[utoipa::path(put, path = "/api/v1/documents/{id}/fields/{name}", tag = "memory",
    params(("id" = Uuid, Path), ("name" = String, Path, description = "The name of the field", example = "invoice_number")), request_body = SayField,
    responses((status = 200, body = FileField), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn say(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, name)): Path<(Uuid, String)>,
    extract::Json(said): extract::Json<SayField>,
) -> Result<Json<FileField>, ApiError> {
    let field = files::say(&app.env, &caller, DocumentId(id), &name, said.ordinal, &said.value).await?;
    Ok(Json(field.into()))
}

/// Takes back what a person said about a field. What stands in the file is looked for again.
#[utoipa::path(delete, path = "/api/v1/documents/{id}/fields/{name}", tag = "memory",
    params(("id" = Uuid, Path), ("name" = String, Path, description = "The name of the field", example = "invoice_number"), WhichQuery),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn withdraw(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, name)): Path<(Uuid, String)>,
    Query(which): Query<WhichQuery>,
) -> Result<StatusCode, ApiError> {
    files::withdraw(&app.env, &caller, DocumentId(id), &name, which.ordinal.unwrap_or(0)).await?;
    Ok(StatusCode::NO_CONTENT)
}

words! {
    /// The form of an export.
    #[derive(Default)]
    ExportForm {
        #[default]
        Json = "json",
        Csv = "csv",
    }
}

#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FieldsQuery {
    /// json or csv. Default json.
    #[serde(default, deserialize_with = "blank_is_none")]
    #[param(value_type = Option<String>, example = "csv")]
    format: Option<ExportForm>,
    /// Only documents of this source.
    #[serde(default, deserialize_with = "blank_is_none")]
    source: Option<Uuid>,
    /// Only documents of this type, for example `file`.
    #[serde(default, deserialize_with = "blank_is_none")]
    r#type: Option<String>,
    /// Only fields of this name, for example `total`.
    #[serde(default, deserialize_with = "blank_is_none")]
    name: Option<String>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "only described: it is written field by field")]
pub(crate) struct FieldsOfDocuments {
    fields: Vec<FieldOfDocument>,
}

/// A field with the document that has it.
#[derive(Serialize, ToSchema)]
pub(crate) struct FieldOfDocument {
    document_id: Uuid,
    title: Option<String>,
    source: SourceRef,
    #[schema(example = "total")]
    name: String,
    /// Of several with one name, such as lines.
    ordinal: i32,
    #[schema(example = "805.00 EUR")]
    value: String,
    date: Option<NaiveDate>,
    /// As a decimal number.
    amount: Option<String>,
    currency: Option<String>,
    page: Option<i32>,
    /// read, checked (arithmetic confirms it), doubtful, or said (by a person).
    #[schema(value_type = String, example = "checked")]
    state: FieldState,
}

impl From<ListedField> for FieldOfDocument {
    fn from(field: ListedField) -> Self {
        Self {
            document_id: field.document_id,
            title: field.title,
            source: SourceRef { id: field.source_id, name: field.source_name },
            name: field.name,
            ordinal: field.ordinal,
            value: field.value,
            date: field.on_date,
            amount: field.amount,
            currency: field.currency,
            page: field.page,
            state: field.state,
        }
    }
}

/// The fields of all documents' papers, by document and name, as one file. What somebody else wrote is never a formula in the CSV.
#[utoipa::path(get, path = "/api/v1/documents/fields", tag = "memory", params(FieldsQuery),
    responses((status = 200, content((FieldsOfDocuments = "application/json"), (String = "text/csv"))), (status = 400, body = Problem)))]
pub(crate) async fn fields(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<FieldsQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let form = query.format.unwrap_or_default();
    let caller: Caller = (*caller).clone();
    let export = Export { app, caller, query, form };
    let (head, kind) = match form {
        ExportForm::Csv => (format!("{}\r\n", COLUMNS.join(",")), "text/csv; charset=utf-8"),
        ExportForm::Json => ("{\"fields\":[".to_owned(), "application/json"),
    };
    // Before the answer begins: a refusal is an answer, not a file that breaks off.
    let (first, next) = export.piece(None).await?;
    let rest = stream::try_unfold(next, move |next| {
        let export = export.clone();
        async move {
            let Some(after) = next else { return Ok(None) };
            let piece = export.piece(Some(after)).await.map_err(|error| {
                tracing::error!(error = ?error, "an export of fields broke off");
                // The body is cut off without its end, so that whoever saves it sees a download that failed.
                std::io::Error::other(error)
            });
            piece.map(|(text, next)| Some((Bytes::from(text), next)))
        }
    });
    let begun = stream::once(ready(Ok::<_, std::io::Error>(Bytes::from(head + &first))));
    let headers =
        [(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"fields.{form}\""))];
    Ok((headers, Body::from_stream(begun.chain(rest))))
}

#[derive(Clone)]
struct Export {
    app: App,
    caller: Caller,
    query: FieldsQuery,
    form: ExportForm,
}

impl Export {
    /// The next fields, with the end of the file if they are the last.
    async fn piece(&self, after: Option<Position>) -> Result<(String, Option<Position>), ApiError> {
        let wanted = Wanted {
            source_id: self.query.source.map(SourceId),
            document_type: self.query.r#type.as_deref(),
            name: self.query.name.as_deref(),
            limit: PAGE,
        };
        let (listed, next) = files::all_fields(&self.app.env, &self.caller, wanted, after.as_ref()).await?;
        let mut text = match self.form {
            ExportForm::Csv => listed.iter().map(line).collect(),
            ExportForm::Json => {
                // After the first page there is a field before each.
                let rows: Result<Vec<String>, _> =
                    listed.into_iter().map(|field| serde_json::to_string(&FieldOfDocument::from(field))).collect();
                let rows = rows.map_err(|error| ApiError::Internal(error.into()))?;
                let joint = if after.is_some() && !rows.is_empty() { ",\n" } else { "" };
                format!("{joint}{}", rows.join(",\n"))
            }
        };
        if next.is_none() && self.form == ExportForm::Json {
            text.push_str("]}");
        }
        Ok((text, next))
    }
}

/// A field as a line of CSV. Figures of ours stay figures, so that a spreadsheet adds up what is below zero, too.
fn line(field: &ListedField) -> String {
    let figure = |figure: Option<String>| figure.unwrap_or_default();
    let cells = [
        field.document_id.to_string(),
        quoted(field.title.as_deref().unwrap_or_default()),
        quoted(&field.source_name),
        quoted(&field.name),
        field.ordinal.to_string(),
        quoted(&field.value),
        figure(field.on_date.map(|day| day.to_string())),
        figure(field.amount.clone()),
        quoted(field.currency.as_deref().unwrap_or_default()),
        figure(field.page.map(|page| page.to_string())),
        field.state.to_string(),
        field.source_id.to_string(),
    ];
    format!("{}\r\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_line_whose_cells_are_no_formulas() {
        let field = ListedField {
            document_id: Uuid::nil(),
            title: Some("=cmd|' /C calc'!A0".into()),
            source_id: Uuid::nil(),
            source_name: "Files".into(),
            name: "total".into(),
            ordinal: 0,
            value: "1 \"x\"\n2".into(),
            on_date: NaiveDate::from_ymd_opt(2026, 3, 9),
            amount: Some("-805.00".into()),
            currency: Some("EUR".into()),
            page: Some(2),
            state: FieldState::Checked,
        };
        let id = Uuid::nil();
        assert_eq!(
            line(&field),
            format!(
                "{id},\"'=cmd|' /C calc'!A0\",\"Files\",\"total\",0,\"1 \"\"x\"\"\n2\",2026-03-09,-805.00,\"EUR\",2,checked,{id}\r\n"
            )
        );
        let bare = ListedField { value: "a".into(), title: None, on_date: None, amount: None, currency: None, ..field };
        assert_eq!(line(&bare), format!("{id},\"\",\"Files\",\"total\",0,\"a\",,,\"\",2,checked,{id}\r\n"));
        assert_eq!(line(&bare).split(',').count(), COLUMNS.len());
    }
}
