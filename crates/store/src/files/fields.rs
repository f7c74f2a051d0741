//! The fields of papers: what was read of them, and what people said.

use chrono::{DateTime, NaiveDate, Utc};
use domain::{DocumentId, TenantId, words};
use serde::Serialize;
use sqlx::PgConnection;

use crate::Result;

words! {
    /// How much a field is worth.
    FieldState {
        Read = "read",
        /// Arithmetic confirms it.
        Checked = "checked",
        /// Arithmetic or another field contradicts it.
        Doubtful = "doubtful",
        /// A person said so.
        Said = "said",
    }
}

/// A field as it was read, to be written.
#[derive(Clone, Debug)]
pub struct NewField {
    pub name: String,
    pub ordinal: i32,
    pub value: String,
    pub on_date: Option<NaiveDate>,
    /// As a decimal number.
    pub amount: Option<String>,
    pub currency: Option<String>,
    pub page: Option<i32>,
    pub quote: Option<String>,
    pub confidence: Option<f32>,
    pub state: FieldState,
    pub note: Option<String>,
}

/// A field as people see it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct FieldRow {
    pub name: String,
    pub ordinal: i32,
    pub value: String,
    pub on_date: Option<NaiveDate>,
    /// As a decimal number.
    pub amount: Option<String>,
    pub currency: Option<String>,
    pub page: Option<i32>,
    /// Its words on that page.
    pub quote: Option<String>,
    pub confidence: Option<f32>,
    #[sqlx(try_from = "String")]
    pub state: FieldState,
    pub note: Option<String>,
    pub said_by: Option<String>,
    pub said_at: Option<DateTime<Utc>>,
}

/// Replaces what was read of a document's paper. What a person said stays.
pub async fn replace(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId, fields: &[NewField]) -> Result<()> {
    sqlx::query("delete from public.document_fields where tenant_id = $1 and document_id = $2 and said_by is null")
        .bind(tenant_id.0)
        .bind(id.0)
        .execute(&mut *conn)
        .await?;
    sqlx::query(include_str!("../sql/document_fields_insert.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.ordinal).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.value.as_str()).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.on_date).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.amount.as_deref()).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.currency.as_deref()).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.page).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.quote.as_deref()).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.confidence).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.state.as_str()).collect::<Vec<_>>())
        .bind(fields.iter().map(|field| field.note.as_deref()).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

/// Writes what a person says about a field, over what was read.
pub async fn say(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: DocumentId,
    field: &NewField,
    by: &str,
) -> Result<()> {
    sqlx::query(include_str!("../sql/document_field_say.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(&field.name)
        .bind(field.ordinal)
        .bind(&field.value)
        .bind(field.on_date)
        .bind(field.amount.as_deref())
        .bind(field.currency.as_deref())
        .bind(by)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes what a person said about a field. `false`: nobody had said anything.
pub async fn withdraw(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: DocumentId,
    name: &str,
    ordinal: i32,
) -> Result<bool> {
    let gone = sqlx::query(
        "delete from public.document_fields where tenant_id = $1 and document_id = $2 and name = $3 and ordinal = $4 and said_by is not null",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(name)
    .bind(ordinal)
    .execute(conn)
    .await?;
    Ok(gone.rows_affected() == 1)
}

/// Reads the fields of one of the caller's documents.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, id: DocumentId) -> Result<Vec<FieldRow>> {
    Ok(sqlx::query_as(
        "select name, ordinal, value, on_date, amount::text as amount, currency, page, quote, confidence, state, note, said_by, said_at
         from public.document_fields where tenant_id = $1 and document_id = $2 order by name, ordinal",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?)
}
