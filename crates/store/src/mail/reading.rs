//! Lists of letters, conversations and single letters, for people. A letter is a document whose type ends with `.message`; three indexes are of those.

use chrono::{DateTime, Utc};
use domain::mail::Place;
use domain::{ClientId, SourceId, TenantId};
use serde_json::Value;
use sqlx::{PgConnection, QueryBuilder};
use uuid::Uuid;

use crate::Result;
pub use crate::activities::Position;
use crate::memory::Document;

/// The letters that are looked at for a page where no index decides which ones fit.
pub const LOOKED_AT: i64 = 10_000;

/// The letters that a list shows. Every field narrows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    pub source_id: Option<SourceId>,
    pub place: Option<Place>,
    /// The name of a folder or label, as its owner wrote it.
    pub folder: Option<&'a str>,
    /// Part of the name or the address of somebody in its head, in either case.
    pub person: Option<&'a str>,
    /// Only letters whose head has one of these, as [`addressed`] makes it a pattern.
    pub addresses: Option<&'a str>,
    /// In its subject, its people or its text, in either case.
    pub text: Option<&'a str>,
    pub has_files: bool,
    pub since: Option<DateTime<Utc>>,
    /// Before this time.
    pub until: Option<DateTime<Utc>>,
}

/// A page of letters, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    pub filter: Filter<'a>,
    /// Older than this place.
    pub before: Option<Position>,
    pub limit: i64,
}

/// A letter as lists show it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Listed {
    pub id: Uuid,
    pub source_id: Uuid,
    pub source_name: String,
    pub external_id: String,
    pub thread_id: Option<String>,
    /// Its subject.
    pub title: Option<String>,
    /// The beginning of its document's text: head lines, then what its sender wrote.
    pub text: String,
    pub source_metadata: Value,
    pub contact_id: Option<i64>,
    pub n_chunks: i32,
    pub is_embedded: bool,
    /// When it came in.
    pub at: DateTime<Utc>,
}

impl Listed {
    /// Whether it waits for vectors; it is found by keyword meanwhile.
    pub fn is_pending(&self) -> bool {
        self.n_chunks > 0 && !self.is_embedded
    }

    pub fn position(&self) -> Position {
        Position { created_at: self.at, id: self.id }
    }
}

/// A letter of a conversation.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct InThread {
    #[sqlx(flatten)]
    pub listed: Listed,
    /// Without its HTML and its headers.
    pub payload: Option<Value>,
}

/// A letter with all of its document.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Stored {
    #[sqlx(flatten)]
    pub document: Document,
    pub thread_id: Option<String>,
    pub contact_id: Option<i64>,
    /// When it came in.
    pub at: DateTime<Utc>,
}

/// The document of a letter's file.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct FileDocument {
    pub id: Uuid,
    pub external_id: String,
    /// As in [`Document::status`].
    pub status: String,
    pub skip_reason: Option<String>,
    pub blob_key: Option<String>,
    pub is_deleted: bool,
}

/// A person that an address of a letter is known to be: a contact, a client, or both.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Known {
    pub address: String,
    pub contact_id: Option<i64>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub email: Option<String>,
    pub phone_number: Option<String>,
    pub client_id: Option<Uuid>,
    pub client_name: Option<String>,
}

impl Known {
    /// The contact's name; none without a contact.
    pub fn called(&self) -> Option<String> {
        self.contact_id?;
        Some(crate::people::called([&self.first_name, &self.last_name], [&self.email, &self.phone_number]))
    }
}

/// The people in the head of a row `d`.
const PEOPLE: &str =
    "lower(concat_ws(' ', d.source_metadata ->> 'from', d.source_metadata ->> 'to', d.source_metadata ->> 'cc'))";
/// The time of a row `d`. The indexes have it in these words; see migration 0035 for why it is not `coalesce`.
const AT: &str = "case when d.source_created_at is null then d.created_at else d.source_created_at end";
const NEWEST_FIRST: &str = " order by case when d.source_created_at is null then d.created_at else d.source_created_at end desc, d.id desc limit ";

impl Wanted<'_> {
    /// Whether rows are looked at one by one, [`LOOKED_AT`] of them at most.
    pub fn is_sifted(&self) -> bool {
        let Filter { place, folder, person, addresses, text, has_files, .. } = self.filter;
        place.is_some() || folder.or(person).or(addresses).or(text).is_some() || has_files
    }

    /// Adds what an index decides: the tenant, the mailbox and the time.
    fn narrow(&self, sql: &mut QueryBuilder<sqlx::Postgres>, tenant_id: TenantId) {
        sql.push(" where d.document_type like '%.message' and d.deleted_at is null and d.tenant_id = ")
            .push_bind(tenant_id.0);
        if let Some(id) = self.filter.source_id {
            sql.push(" and d.source_id = ").push_bind(id.0);
        }
        // There was nothing before this, and PostgreSQL's times do not go back as far as ours.
        if let Some(since) = self.filter.since {
            sql.push(format!(" and {AT} >= ")).push_bind(since.max(DateTime::UNIX_EPOCH));
        }
        if let Some(until) = self.filter.until {
            sql.push(format!(" and {AT} < ")).push_bind(until.max(DateTime::UNIX_EPOCH));
        }
        if let Some(before) = self.before {
            let at = before.created_at.max(DateTime::UNIX_EPOCH);
            sql.push(format!(" and ({AT}, d.id) < (")).push_bind(at).push(", ").push_bind(before.id).push(")");
        }
    }

    /// Adds what each row says itself.
    fn sift(&self, sql: &mut QueryBuilder<sqlx::Postgres>) {
        let Filter { place, folder, person, addresses, text, has_files, .. } = self.filter;
        if let Some(place) = place {
            sql.push(" and d.source_metadata -> 'place' = ").push_bind(serde_json::json!(place));
        }
        if let Some(folder) = folder {
            sql.push(" and d.source_metadata -> 'folders' ? ").push_bind(folder.to_owned());
        }
        if let Some(person) = person {
            sql.push(format!(" and strpos({PEOPLE}, lower(")).push_bind(person.to_owned()).push(")) > 0");
        }
        if let Some(pattern) = addresses {
            sql.push(format!(" and {PEOPLE} ~ ")).push_bind(pattern.to_owned());
        }
        if let Some(text) = text {
            sql.push(" and strpos(lower(concat_ws(' ', d.title, d.text)), lower(")
                .push_bind(text.to_owned())
                .push(")) > 0");
        }
        if has_files {
            sql.push(" and d.source_metadata -> 'n_files' > '0'::jsonb");
        }
    }
}

/// A pattern of heads that have one of these addresses; a domain is written as `@acme.test`. None: there are none.
pub fn addressed(addresses: &[String]) -> Option<String> {
    let each = addresses.iter().map(|address| {
        let plain: String = address.to_lowercase().chars().fold(String::new(), |mut plain, c| {
            // What is neither a letter nor a digit may mean something in a pattern.
            if !c.is_alphanumeric() {
                plain.push('\\');
            }
            plain.push(c);
            plain
        });
        if address.starts_with('@') { plain } else { format!("(?:^|[^[:alnum:]._%+-]){plain}") }
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("(?:{})(?:$|[^[:alnum:]_.-])", each.join("|")))
}

/// Lists a tenant's letters, as the transaction's row security allows.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, wanted: Wanted<'_>) -> Result<Vec<Listed>> {
    Ok(listing(tenant_id, wanted).build_query_as().fetch_all(conn).await?)
}

/// The statement of a list, for a look at its plan.
pub fn list_sql(wanted: Wanted<'_>) -> String {
    listing(TenantId(Uuid::nil()), wanted).into_string()
}

fn listing(tenant_id: TenantId, wanted: Wanted<'_>) -> QueryBuilder<sqlx::Postgres> {
    let mut sql = QueryBuilder::new(format!(
        "select d.id, d.source_id, s.name as source_name, d.external_id, d.thread_id, d.title, left(d.text, 2000) as text, d.source_metadata,
             d.contact_id, d.n_chunks, d.embedding_model is not null as is_embedded, {AT} as at
         from "
    ));
    // By itself first, because the mailboxes would otherwise lead. Both are in the same order, so this stops at the last row of the page.
    sql.push("(select d.* from public.source_documents d");
    wanted.narrow(&mut sql, tenant_id);
    let looked_at = if wanted.is_sifted() { LOOKED_AT } else { wanted.limit };
    sql.push(NEWEST_FIRST).push_bind(looked_at);
    sql.push(") d join public.connected_sources s on s.tenant_id = d.tenant_id and s.id = d.source_id where true");
    wanted.sift(&mut sql);
    sql.push(NEWEST_FIRST).push_bind(wanted.limit);
    sql
}

/// Finds the place of the last of the letters that were looked at, if there are more behind it.
pub async fn last_looked_at(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    wanted: Wanted<'_>,
) -> Result<Option<Position>> {
    let mut sql = QueryBuilder::new(format!("select {AT} as created_at, d.id from public.source_documents d"));
    wanted.narrow(&mut sql, tenant_id);
    sql.push(NEWEST_FIRST).push("1 offset ").push_bind(LOOKED_AT - 1);
    Ok(sql.build_query_as().fetch_optional(conn).await?)
}

/// The place of a letter.
pub async fn position(conn: &mut PgConnection, tenant_id: TenantId, id: Uuid) -> Result<Option<Position>> {
    let sql = "select coalesce(source_created_at, created_at) as created_at, id from public.source_documents where tenant_id = $1 and id = $2";
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(id).fetch_optional(conn).await?)
}

/// Reads the newest letters of a conversation, the newest first.
pub async fn of_thread(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    thread_id: &str,
    limit: i64,
) -> Result<Vec<InThread>> {
    Ok(sqlx::query_as(include_str!("../sql/letters_of_thread.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(thread_id)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// Counts the letters of a conversation, up to `most`.
pub async fn count_thread(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    thread_id: &str,
    most: i64,
) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "select count(*) from (
             select from public.source_documents d
             where d.tenant_id = $1 and d.source_id = $2 and d.thread_id = $3 and d.document_type like '%.message' and d.deleted_at is null
             limit $4) letters",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(thread_id)
    .bind(most)
    .fetch_one(conn)
    .await?)
}

/// Reads a letter, a deleted one too. Row security of the transaction decides whose it may be.
pub async fn get(conn: &mut PgConnection, id: Uuid) -> Result<Option<Stored>> {
    Ok(sqlx::query_as(include_str!("../sql/letter_get.sql")).bind(id).fetch_optional(conn).await?)
}

/// Reads the documents of files, by their names at the source.
pub async fn files(conn: &mut PgConnection, source_id: SourceId, external_ids: &[String]) -> Result<Vec<FileDocument>> {
    Ok(sqlx::query_as(
        "select id, external_id, status, skip_reason, blob_key, deleted_at is not null as is_deleted from public.source_documents
         where source_id = $1 and external_id = any($2)",
    )
    .bind(source_id.0)
    .bind(external_ids)
    .fetch_all(conn)
    .await?)
}

/// Finds the letter that has one of these names at its source, and its subject.
pub async fn letter_named(
    conn: &mut PgConnection,
    source_id: SourceId,
    external_ids: &[String],
) -> Result<Option<(Uuid, Option<String>)>> {
    Ok(sqlx::query_as(
        "select id, title from public.source_documents
         where source_id = $1 and external_id = any($2) and document_type like '%.message' and deleted_at is null limit 1",
    )
    .bind(source_id.0)
    .bind(external_ids)
    .fetch_optional(conn)
    .await?)
}

/// Finds the contacts and clients that have these addresses, in a session of the service. Addresses of strangers are left out.
pub async fn people(conn: &mut PgConnection, tenant_id: TenantId, addresses: &[String]) -> Result<Vec<Known>> {
    let sql = include_str!("../sql/letters_people.sql");
    Ok(sqlx::query_as(sql).bind(tenant_id.0).bind(addresses).fetch_all(conn).await?)
}

/// The addresses and domains of one of the caller's clients, as [`addressed`] takes them.
pub async fn client_addresses(conn: &mut PgConnection, client: ClientId, limit: i64) -> Result<Vec<String>> {
    let sql = include_str!("../sql/client_addresses.sql");
    Ok(sqlx::query_scalar(sql).bind(client.0).bind(limit).fetch_all(conn).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_as_it_is_and_not_as_a_part_of_another() {
        let of = |addresses: &[&str]| addressed(&addresses.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), None);
        assert_eq!(
            of(&["Ann+1@acme.test", "@mill.test"]).as_deref(),
            Some(r"(?:(?:^|[^[:alnum:]._%+-])ann\+1\@acme\.test|\@mill\.test)(?:$|[^[:alnum:]_.-])")
        );
        // No word of a name reaches the pattern as anything else than letters.
        assert!(of(&["(?i)x|y$@z"]).is_some_and(|pattern| pattern.contains(r"\(\?i\)x\|y\$\@z")));
    }

    #[test]
    fn a_list_of_a_mailbox_in_a_time_is_decided_by_an_index() {
        let by_index =
            Filter { source_id: Some(SourceId::new()), since: Some(DateTime::UNIX_EPOCH), ..Filter::default() };
        let sifted = |filter| Wanted { filter, before: None, limit: 1 }.is_sifted();
        assert!(!sifted(by_index));
        assert!(sifted(Filter { text: Some("x"), ..by_index }) && sifted(Filter { has_files: true, ..by_index }));
    }
}
