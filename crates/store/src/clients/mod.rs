//! Clients. Table `client_intelligence` has what one record says of a client, or what a person wrote about it; records of one client have the same
//! `client_id`, the id of the one that leads.

pub mod curated;
pub mod decisions;
pub mod derived;
pub mod matching;

use chrono::{DateTime, Utc};
use domain::document::{self, CLIENT_PREFIX, CONTACT};
use domain::{ClientId, ContactId, DocumentType};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::queue::MOST_COUNTED;

/// A row: the words of one record, or of a person, about a client.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct ClientRecord {
    pub id: Uuid,
    pub client_id: Uuid,
    pub source_id: Option<Uuid>,
    pub source_name: Option<String>,
    pub source_provider: Option<String>,
    pub external_id: Option<String>,
    pub client_name: String,
    pub industry: Option<String>,
    pub summary: Option<String>,
    pub key_facts: Value,
    pub evidence: Value,
    pub document_id: Option<Uuid>,
    pub matched_by: Option<Value>,
    /// The author of each fact that a person wrote, and when: `{fact: {by, at}}`.
    pub said: Value,
    /// `organisation`, `person`, or `curated`: facts about another record's client. What a person wrote may be a client of its own.
    pub kind: String,
    pub emails: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The record's own document, and its title: the person, where the client is named after a company.
    pub record_document_id: Option<Uuid>,
    pub record_type: Option<String>,
    pub record_title: Option<String>,
}

impl ClientRecord {
    /// The name of the record in decisions, and among the keys of others.
    pub fn reference(&self) -> String {
        match (self.source_id, &self.external_id) {
            (Some(source), Some(name)) => format!("{source}/{name}"),
            _ => format!("hand/{}", self.id),
        }
    }

    pub fn is_person(&self) -> bool {
        self.kind == "person" || self.external_id.as_deref().and_then(document::record_kind) == Some(CONTACT)
    }

    /// Whether a person wrote it.
    pub fn is_curated(&self) -> bool {
        self.source_id.is_none()
    }
}

/// A client in a list.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Listed {
    pub id: Uuid,
    pub client_name: String,
    pub updated_at: DateTime<Utc>,
    pub n_people: i64,
}

/// Selects the clients of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Part of a name, a domain or an e-mail address of one of its records, in any case.
    pub text: Option<&'a str>,
    /// Exactly this name of one of its records, in any case.
    pub name: Option<&'a str>,
    /// Only clients after this one.
    pub after: Option<ClientId>,
    pub limit: i64,
}

/// Lists the caller's clients by name, without records that wait to be matched for the first time. Row security of the transaction decides which those are.
pub async fn list(conn: &mut PgConnection, filter: Filter<'_>) -> Result<Vec<Listed>> {
    Ok(sqlx::query_as(include_str!("../sql/clients_list.sql"))
        .bind(filter.text)
        .bind(filter.name)
        .bind(filter.after.map(|id| id.0))
        .bind(filter.limit)
        .fetch_all(conn)
        .await?)
}

/// Counts the caller's clients that a filter leaves, up to [`MOST_COUNTED`].
pub async fn count(conn: &mut PgConnection, filter: Filter<'_>) -> Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from (select from tributary.clients_found($1, $2) limit $3) c")
        .bind(filter.text)
        .bind(filter.name)
        .bind(MOST_COUNTED)
        .fetch_one(conn)
        .await?)
}

/// Counts the caller's records that were never matched, up to [`MOST_COUNTED`]. They are in no list.
pub async fn count_unmatched(conn: &mut PgConnection) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "select count(*) from (
             select from public.client_intelligence where marks <> matched_marks and matched_marks = 0 limit $1) c",
    )
    .bind(MOST_COUNTED)
    .fetch_one(conn)
    .await?)
}

/// The client that a record is of, by the id of any of its records.
pub async fn of_record(conn: &mut PgConnection, id: ClientId) -> Result<Option<ClientId>> {
    let found: Option<Uuid> = sqlx::query_scalar("select client_id from public.client_intelligence where id = $1")
        .bind(id.0)
        .fetch_optional(conn)
        .await?;
    Ok(found.map(ClientId))
}

/// The name of a client, by the id of any of its records.
pub async fn name_of(conn: &mut PgConnection, id: ClientId) -> Result<Option<String>> {
    let sql = "select l.client_name from public.client_intelligence c
               join public.client_intelligence l on l.tenant_id = c.tenant_id and l.id = c.client_id where c.id = $1";
    Ok(sqlx::query_scalar(sql).bind(id.0).fetch_optional(conn).await?)
}

/// Reads the records of clients, those that lead first, people after organisations: of each client at most `limit` of either.
pub async fn records(conn: &mut PgConnection, clients: &[Uuid], people: bool, limit: i64) -> Result<Vec<ClientRecord>> {
    Ok(sqlx::query_as(include_str!("../sql/clients_records.sql"))
        .bind(clients)
        .bind(people)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// Reads one record.
pub async fn record(conn: &mut PgConnection, id: Uuid) -> Result<Option<ClientRecord>> {
    let sql = include_str!("../sql/client_record.sql");
    Ok(sqlx::query_as(sql).bind(id).fetch_optional(conn).await?)
}

/// Counts a client's records of people.
pub async fn count_people(conn: &mut PgConnection, client: ClientId) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "select count(*) from public.client_intelligence where client_id = $1 and identity ->> 'kind' = 'person'",
    )
    .bind(client.0)
    .fetch_one(conn)
    .await?)
}

/// A contact of a client.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ClientContact {
    pub id: i64,
    pub email: Option<String>,
    pub phone_number: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub matched_by: Value,
}

impl ClientContact {
    pub fn called(&self) -> String {
        crate::people::called([&self.first_name, &self.last_name], [&self.email, &self.phone_number])
    }
}

/// The first contacts of one of the caller's clients.
pub async fn contacts(conn: &mut PgConnection, client: ClientId, limit: i64) -> Result<Vec<ClientContact>> {
    Ok(sqlx::query_as(
        "select c.id, c.email, c.phone_number, c.first_name, c.last_name, c.company, o.matched_by
         from tributary.client_contacts($1) o join public.contacts c on c.id = o.contact_id
         order by lower(coalesce(c.last_name, c.first_name, c.email, c.phone_number, '')), c.id limit $2",
    )
    .bind(client.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// A document of a client, for its timeline.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Dated {
    pub id: Uuid,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub title: Option<String>,
    pub source_name: String,
    pub at: DateTime<Utc>,
}

/// The documents of one of the caller's clients, newest first, before the one with the id `before`. Its own texts are left out. `files`: only
/// documents and files, not activities and records.
pub async fn timeline(
    conn: &mut PgConnection,
    client: ClientId,
    types: &[String],
    files: bool,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Dated>> {
    Ok(sqlx::query_as(include_str!("../sql/clients_timeline.sql"))
        .bind(client.0)
        .bind(files)
        .bind(types)
        .bind(before)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// A document that a fact cites.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Cited {
    pub id: Uuid,
    pub external_id: String,
    #[sqlx(try_from = "String")]
    pub document_type: DocumentType,
    pub title: Option<String>,
    pub source_updated_at: Option<DateTime<Utc>>,
}

/// Reads documents by id, as row security of the transaction allows.
pub async fn cited(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Cited>> {
    Ok(sqlx::query_as(
        "select id, external_id, document_type, title, source_updated_at from public.source_documents
         where id = any($1) and deleted_at is null order by source_updated_at desc nulls last, external_id",
    )
    .bind(ids)
    .fetch_all(conn)
    .await?)
}

/// Finds the clients of documents, as (document, client): a document may be a client's own text, or a record of the client. Row security of
/// the transaction applies.
pub async fn of_documents(conn: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<(Uuid, Uuid)>> {
    Ok(sqlx::query_as(
        "select d.id, c.client_id from public.source_documents d
         join public.client_intelligence c on c.tenant_id = d.tenant_id and c.document_id = d.id
         where d.id = any($1)
         union
         select d.id, c.client_id from public.source_documents d
         join public.client_intelligence c on c.source_id = d.source_id
             and c.external_id = case d.document_type when $2 then substr(d.external_id, length($3) + 1) else d.external_id end
         where d.id = any($1)",
    )
    .bind(ids)
    .bind(DocumentType::Client.to_string())
    .bind(CLIENT_PREFIX)
    .fetch_all(conn)
    .await?)
}

/// The client of a contact.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ClientOfContact {
    pub client_id: Uuid,
    pub client_name: String,
    /// Why the contact belongs to it.
    pub matched_by: Value,
}

/// The client of a contact of a tenant.
pub async fn of_contact(
    conn: &mut PgConnection,
    tenant_id: domain::TenantId,
    contact: ContactId,
) -> Result<Option<ClientOfContact>> {
    Ok(sqlx::query_as(
        "select o.client_id, l.client_name, o.matched_by from public.contacts c
         cross join lateral tributary.client_of_contact(c.tenant_id, c.id, c.email, c.company) o
         join public.client_intelligence l on l.tenant_id = c.tenant_id and l.id = o.client_id
         where c.tenant_id = $1 and c.id = $2",
    )
    .bind(tenant_id.0)
    .bind(contact.0)
    .fetch_optional(conn)
    .await?)
}

/// The name of a record or contact, by its reference: a person by their own name.
pub async fn named(conn: &mut PgConnection, reference: &str) -> Result<Option<String>> {
    if let Some(id) = reference.strip_prefix("contact/").and_then(|id| id.parse::<i64>().ok()) {
        type Word = Option<String>;
        let contact: Option<(Word, Word, Word, Word)> =
            sqlx::query_as("select first_name, last_name, email, phone_number from public.contacts where id = $1")
                .bind(id)
                .fetch_optional(conn)
                .await?;
        return Ok(contact.map(|(first, last, email, phone)| crate::people::called([&first, &last], [&email, &phone])));
    }
    Ok(sqlx::query_scalar(
        "select case when c.identity ->> 'kind' = 'person' then coalesce(d.title, c.client_name) else c.client_name end
             || coalesce(' (' || s.name || ')', '')
         from public.client_intelligence c
         left join public.connected_sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
         left join public.source_documents d on d.tenant_id = c.tenant_id and d.source_id = c.source_id and d.external_id = c.external_id
         where coalesce(c.source_id || '/' || c.external_id, 'hand/' || c.id) = $1 and c.keys @> array['ref:' || $1]
         limit 1",
    )
    .bind(reference)
    .fetch_optional(conn)
    .await?)
}
