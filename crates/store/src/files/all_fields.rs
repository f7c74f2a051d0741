//! The fields of all papers, as they are exported.

use chrono::NaiveDate;
use domain::SourceId;
use sqlx::PgConnection;
use uuid::Uuid;

use super::fields::FieldState;
use crate::Result;

/// The fields that are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub source_id: Option<SourceId>,
    pub document_type: Option<&'a str>,
    pub name: Option<&'a str>,
    pub limit: i64,
}

/// A field's place in the order in which they are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub document_id: Uuid,
    pub name: String,
    pub ordinal: i32,
}

/// A field with the document that has it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ListedField {
    pub document_id: Uuid,
    pub title: Option<String>,
    pub source_id: Uuid,
    pub source_name: String,
    pub name: String,
    pub ordinal: i32,
    pub value: String,
    pub on_date: Option<NaiveDate>,
    /// As a decimal number.
    pub amount: Option<String>,
    pub currency: Option<String>,
    pub page: Option<i32>,
    #[sqlx(try_from = "String")]
    pub state: FieldState,
}

impl ListedField {
    pub fn position(&self) -> Position {
        Position { document_id: self.document_id, name: self.name.clone(), ordinal: self.ordinal }
    }
}

/// Lists the fields of the caller's documents after one, by document and name.
pub async fn after(conn: &mut PgConnection, wanted: Wanted<'_>, after: Option<&Position>) -> Result<Vec<ListedField>> {
    Ok(sqlx::query_as(include_str!("../sql/document_fields_after.sql"))
        .bind(wanted.source_id.map(|id| id.0))
        .bind(wanted.document_type)
        .bind(wanted.name)
        .bind(after.map(|position| position.document_id))
        .bind(after.map(|position| position.name.as_str()))
        .bind(after.map(|position| position.ordinal))
        .bind(wanted.limit)
        .fetch_all(conn)
        .await?)
}

/// Whether any of the caller's documents has a field.
pub async fn is_any(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("select exists (select from public.document_fields)").fetch_one(conn).await?)
}
