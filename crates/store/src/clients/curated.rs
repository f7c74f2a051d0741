//! Facts that people wrote about clients: rows of `client_intelligence` without a source. Nothing that is derived touches them.

use chrono::{DateTime, Utc};
use domain::TenantId;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// Everything that one row of a person's facts has.
#[derive(Clone, Debug)]
pub struct Curated {
    pub id: Uuid,
    pub client_name: String,
    pub industry: Option<String>,
    pub summary: Option<String>,
    pub key_facts: Value,
    /// The person who said each fact, and when.
    pub said: Value,
    /// Belongs to the first of these records that is there ([`domain::matching::Identity`]).
    pub identity: Value,
    pub document_id: Option<Uuid>,
}

/// Writes a row, if what people said so far is still `before`; a new row is written where `before` is none. `false`: somebody else wrote meanwhile.
pub async fn write(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    row: &Curated,
    before: Option<&Value>,
) -> Result<bool> {
    let written = sqlx::query(include_str!("../sql/clients_curate.sql"))
        .bind(tenant_id.0)
        .bind(row.id)
        .bind(&row.client_name)
        .bind(&row.industry)
        .bind(&row.summary)
        .bind(&row.key_facts)
        .bind(&row.said)
        .bind(&row.identity)
        .bind(row.document_id)
        .bind(at)
        .bind(before)
        .execute(conn)
        .await?;
    Ok(written.rows_affected() == 1)
}

/// Removes a row whose last fact was withdrawn. `false`: somebody else wrote meanwhile.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid, before: &Value) -> Result<bool> {
    let gone = sqlx::query(
        "delete from public.client_intelligence where tenant_id = $1 and id = $2 and source_id is null and said = $3",
    )
    .bind(tenant_id.0)
    .bind(id)
    .bind(before)
    .execute(conn)
    .await?;
    Ok(gone.rows_affected() == 1)
}
