//! Channels on mailboxes: they have no URL, and letters are their events.

use chrono::{DateTime, Utc};
use domain::{ChannelId, PersonId, SourceId, TenantId};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::channels::Settings;
use crate::{OnConstraint as _, Result, written};

/// A channel on a mailbox to create.
#[derive(Debug)]
pub struct NewOnMailbox<'a> {
    pub provider_code: &'a str,
    pub name: &'a str,
    pub person_id: Option<PersonId>,
    pub auto_create_contacts: bool,
    pub source_id: SourceId,
    pub query: &'a str,
}

/// Creates a channel on a mailbox, and the source that stands for it.
pub async fn create(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    new: NewOnMailbox<'_>,
) -> Result<ChannelId> {
    let id = ChannelId::new();
    let settings =
        Settings { source_id: Some(new.source_id.0), query: Some(new.query.to_owned()), ..Settings::default() };
    sqlx::query(
        "insert into public.connected_sources (id, tenant_id, provider, name, mailbox_id) values ($1, $2, 'channel', $3, $4)",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(new.name)
    .bind(new.source_id.0)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "insert into public.ingestion_providers (id, tenant_id, provider_code, name, sales_id, auto_create_contacts, config, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, coalesce($8, now()))",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(new.provider_code)
    .bind(new.name)
    .bind(new.person_id.map(|person| person.0))
    .bind(new.auto_create_contacts)
    .bind(sqlx::types::Json(&settings))
    .bind(at)
    .execute(conn)
    .await
    .on_constraint("ingestion_providers_name_key", "a channel has that name already")?;
    Ok(id)
}

/// A channel on a mailbox, as its letters need it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct OnMailbox {
    pub id: Uuid,
    #[sqlx(rename = "sales_id")]
    pub person_id: Option<i64>,
    pub auto_create_contacts: bool,
    pub query: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// Lists the active channels on a mailbox.
pub async fn of_mailbox(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Vec<OnMailbox>> {
    Ok(sqlx::query_as(
        "select id, sales_id, auto_create_contacts, config ->> 'query' as query, created_at from public.ingestion_providers
         where tenant_id = $1 and config ->> 'source_id' = $2 and is_active order by id",
    )
    .bind(tenant_id.0)
    .bind(source_id.0.to_string())
    .fetch_all(conn)
    .await?)
}

/// The result that an agent has for a letter.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Found {
    /// The letter's id.
    pub event_key: String,
    pub raw_data: Value,
    pub processed_data: Value,
}

/// Finds the results for letters of a mailbox, of channels that are switched off or deleted too.
pub async fn results(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    message_ids: &[&str],
) -> Result<Vec<Found>> {
    Ok(sqlx::query_as(
        "select a.event_key, a.raw_data, a.processed_data from public.connected_sources c
         join public.activities a on a.tenant_id = c.tenant_id and a.provider_id = c.id and a.event_key = any($3)
         where c.tenant_id = $1 and c.mailbox_id = $2 and a.processing_status = 'completed' and a.processed_data is not null
         order by a.id",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(message_ids)
    .fetch_all(conn)
    .await?)
}

/// A letter's document, as a result is added to it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredLetter {
    pub external_id: String,
    pub document_type: String,
    pub title: Option<String>,
    pub raw_payload: Option<Value>,
    pub thread_id: Option<String>,
    pub contact_id: Option<i64>,
    pub source_metadata: Value,
    pub source_version: Option<i64>,
    pub source_created_at: Option<DateTime<Utc>>,
    pub source_updated_at: Option<DateTime<Utc>>,
}

/// Reads a letter's document; none if it is deleted.
pub async fn stored(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_id: &str,
) -> Result<Option<StoredLetter>> {
    Ok(sqlx::query_as(
        "select external_id, document_type, title, raw_payload, thread_id, contact_id, source_metadata, source_version, source_created_at,
             source_updated_at
         from public.source_documents where tenant_id = $1 and source_id = $2 and external_id = $3 and deleted_at is null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_id)
    .fetch_optional(conn)
    .await?)
}

/// Keeps a letter's document as it is, and its contact from going, until the transaction ends. `false`: the document or the contact is gone.
pub async fn hold(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_id: &str,
    contact_id: Option<i64>,
) -> Result<bool> {
    let contacts: Vec<i64> = contact_id.into_iter().collect();
    if written::hold_contacts(conn, tenant_id, &contacts).await?.len() != contacts.len() {
        return Ok(false);
    }
    let held = sqlx::query(
        "select from public.source_documents where tenant_id = $1 and source_id = $2 and external_id = $3 and deleted_at is null for update",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(external_id)
    .execute(conn)
    .await?;
    Ok(held.rows_affected() == 1)
}
