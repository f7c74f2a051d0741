//! Indexes that are built concurrently with writes. Migrations build no index on a table that may be large.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{Db, Result};

/// Schema, name and definition. The upkeep task `indexes` builds those that are missing.
pub const LATER: &[(&str, &str, &str)] = &[
    // By which upkeep finds files that came before they were read.
    (
        "tributary",
        "activity_attachments_unremembered_idx",
        "tributary.activity_attachments (activity_id) where remembered_at is null",
    ),
    (
        "public",
        "activities_channel_idx",
        "public.activities (tenant_id, provider_id, created_at) where provider_id is not null",
    ),
    ("public", "activities_unmatched_idx", "public.activities (tenant_id, created_at) where contact_id is null"),
    // By which unrecognised senders are found, one after the other, however many activities each has.
    (
        "public",
        "activities_sender_idx",
        "public.activities (tenant_id, (tributary.party(direction, metadata)) collate \"C\", created_at, id)
         where contact_id is null and octet_length(tributary.party(direction, metadata)) between 1 and 1000",
    ),
    (
        "public",
        "activities_claim_idx",
        "public.activities (tenant_id, (raw_data ->> 'source_type'), (coalesce(sales_id, 0)), created_at) where processing_status = 'raw'",
    ),
    (
        "public",
        "source_documents_title_idx",
        "public.source_documents using gin (to_tsvector('pg_catalog.simple', tributary.fold(title))) where not starts_with(document_type, 'activity.')",
    ),
    ("public", "client_intelligence_client_idx", "public.client_intelligence (tenant_id, client_id)"),
    (
        "public",
        "client_intelligence_leaders_idx",
        "public.client_intelligence (tenant_id, lower(client_name), id) where id = client_id",
    ),
    (
        "public",
        "client_intelligence_unmatched_idx",
        "public.client_intelligence (tenant_id) where marks <> matched_marks",
    ),
    ("public", "client_intelligence_keys_idx", "public.client_intelligence using gin (keys)"),
    ("public", "client_intelligence_owns_idx", "public.client_intelligence using gin (owns)"),
    (
        "public",
        "client_intelligence_document_idx",
        "public.client_intelligence (tenant_id, document_id) where document_id is not null",
    ),
    (
        "public",
        "client_intelligence_embedding_text_sha256_idx",
        "public.client_intelligence (embedding_text_sha256) where embedding_text_sha256 is not null",
    ),
    // By which a client finds its contacts.
    ("public", "contacts_email_idx", "public.contacts (tenant_id, lower(trim(email)))"),
    ("public", "contacts_domain_idx", "public.contacts (tenant_id, tributary.client_domain(email))"),
    ("public", "contacts_company_idx", "public.contacts (tenant_id, tributary.client_name_key(company))"),
    ("tributary", "activity_payloads_activity_idx", "tributary.activity_payloads (activity_id)"),
    ("public", "activities_failed_idx", "public.activities (tenant_id, created_at) where processing_status = 'failed'"),
    ("public", "contacts_person_idx", "public.contacts (tenant_id, sales_id) where sales_id is not null"),
    ("tributary", "sessions_key_idx", "tributary.sessions (tenant_id, key_id)"),
    (
        "public",
        "source_documents_waiting_idx",
        "public.source_documents (tenant_id, id) where embedding_model is null and n_chunks > 0",
    ),
    (
        "public",
        "source_documents_removed_idx",
        "public.source_documents (tenant_id, removed_at) where removed_at is not null",
    ),
    // By which letters that rules left out are found when their sender is forgotten.
    (
        "public",
        "processed_messages_sender_idx",
        "public.processed_messages (tenant_id, ((tributary.address_key(sender)).key)) where sender is not null",
    ),
    // By which mail is listed, of all mailboxes and of one, and a conversation is read.
    (
        "public",
        "source_documents_letters_idx",
        "public.source_documents (tenant_id, (case when source_created_at is null then created_at else source_created_at end), id)
         where document_type like '%.message' and deleted_at is null",
    ),
    (
        "public",
        "source_documents_mailbox_idx",
        "public.source_documents (tenant_id, source_id, (case when source_created_at is null then created_at else source_created_at end), id)
         where document_type like '%.message' and deleted_at is null",
    ),
    (
        "public",
        "source_documents_thread_idx",
        "public.source_documents (tenant_id, source_id, thread_id) where thread_id is not null",
    ),
    // By which a document is found whose file is being read and whose message is lost.
    (
        "public",
        "source_documents_reading_idx",
        "public.source_documents (updated_at)
         where status in ('pending', 'classifying', 'transcribing', 'extracting') and blob_key is not null and deleted_at is null",
    ),
    // By which files are listed and counted, by how far they are read.
    (
        "public",
        "source_documents_status_idx",
        "public.source_documents (tenant_id, status, id) where blob_key is not null and deleted_at is null",
    ),
];

/// Builds an index unless it is there, in a session of its own with the owner's rights. Safe to repeat.
pub async fn build(db: &Db, schema: &str, name: &str, on: &str) -> Result<()> {
    let mut conn = owners_session(db).await?;
    build_on(&mut conn, schema, name, on).await?;
    Ok(conn.close().await?)
}

/// Drops an index without blocking anybody. Safe to repeat.
pub async fn drop(db: &Db, schema: &str, name: &str) -> Result<()> {
    let mut conn = owners_session(db).await?;
    lock(&mut conn, schema, name).await?; // the session's end releases it
    let sql = format!("drop index concurrently if exists {schema}.{name}");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await?;
    Ok(conn.close().await?)
}

/// A session of its own, with the owner's rights and no time limit, which end with it.
async fn owners_session(db: &Db) -> Result<PgConnection> {
    let mut conn = db.to().connect("tributary index").await?;
    sqlx::raw_sql("set role tributary_owner; set statement_timeout = 0; set maintenance_work_mem = '512MB'")
        .execute(&mut conn)
        .await?;
    Ok(conn)
}

/// Builds an index unless it is there. One that an interrupted build left behind is dropped first. One process at a time: an index that another is
/// still building looks like one that was left behind.
pub(crate) async fn build_on(conn: &mut PgConnection, schema: &str, name: &str, on: &str) -> Result<()> {
    lock(conn, schema, name).await?;
    let built = build_locked(conn, schema, name, on).await;
    sqlx::query("select pg_advisory_unlock(hashtextextended($1, $2))")
        .bind(format!("{schema}.{name}"))
        .bind(SEED)
        .execute(conn)
        .await?;
    built
}

/// Any number: it keeps these locks apart from others.
const SEED: i64 = 0x0069_6e64_6578;

/// Takes the lock of an index. It asks again and again instead of waiting in PostgreSQL: a build waits for the end of every older statement, and that
/// one would be waiting for the build.
async fn lock(conn: &mut PgConnection, schema: &str, name: &str) -> Result<()> {
    loop {
        let sql = "select pg_try_advisory_lock(hashtextextended($1, $2))";
        let is_ours: bool =
            sqlx::query_scalar(sql).bind(format!("{schema}.{name}")).bind(SEED).fetch_one(&mut *conn).await?;
        if is_ours {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

async fn build_locked(conn: &mut PgConnection, schema: &str, name: &str, on: &str) -> Result<()> {
    let is_valid: Option<bool> = sqlx::query_scalar(
        "select i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
         where c.relnamespace = $1::regnamespace and c.relname = $2",
    )
    .bind(schema)
    .bind(name)
    .fetch_optional(&mut *conn)
    .await?;
    if is_valid == Some(false) {
        sqlx::raw_sql(AssertSqlSafe(format!("drop index concurrently {schema}.{name}"))).execute(&mut *conn).await?;
    }
    if is_valid != Some(true) {
        sqlx::raw_sql(AssertSqlSafe(format!("create index concurrently {name} on {on}"))).execute(conn).await?;
    }
    Ok(())
}
