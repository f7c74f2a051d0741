//! The language that a tenant fixes for its texts, and documents that get another one, some at a time.

use domain::TenantId;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// The most chunks of one bite, unless a single document has more: every word of them is written anew.
const MOST_CHUNKS: i64 = 1_000;
/// A text's language shows in its beginning.
const CHARS: i32 = 2_000;

/// The languages that PostgreSQL has rules for, by name.
pub async fn known(conn: &mut PgConnection) -> Result<Vec<String>> {
    let sql = "select cfgname::text from pg_ts_config where cfgnamespace = 'pg_catalog'::regnamespace order by cfgname";
    Ok(sqlx::query_scalar(sql).fetch_all(conn).await?)
}

/// Fixes the language of a tenant's texts, or has it detected again. Its documents are to be labelled from the first one on. False: it is set like that.
/// Writers have to be kept away ([`super::moves::free_pointer`]), or one of them writes a document of the language before.
pub async fn set(conn: &mut PgConnection, tenant_id: TenantId, lang: Option<&str>) -> Result<bool> {
    let set = sqlx::query(
        "update memory.tenants set lang = $2::text::regconfig, relabel_after = '00000000-0000-0000-0000-000000000000'
         where tenant_id = $1 and lang is distinct from $2::text::regconfig",
    );
    Ok(set.bind(tenant_id.0).bind(lang).execute(conn).await?.rows_affected() == 1)
}

/// A tenant whose documents are being labelled: after which document it goes on.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Relabelled {
    pub tenant_id: Uuid,
    pub relabel_after: Uuid,
}

/// Lists the tenants whose documents are being labelled.
pub async fn under_way(conn: &mut PgConnection) -> Result<Vec<Relabelled>> {
    let sql = "select tenant_id, relabel_after from memory.tenants where relabel_after is not null order by tenant_id";
    Ok(sqlx::query_as(sql).fetch_all(conn).await?)
}

/// A document to be labelled.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Labelled {
    pub id: Uuid,
    pub beginning: String,
    pub lang: String,
}

/// The setting of a tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Setting {
    /// The language that is fixed; none: it is detected.
    pub lang: Option<String>,
}

/// Locks the setting of a tenant. None: somebody else has gone on with its documents meanwhile, or the setting has changed.
pub async fn lock(conn: &mut PgConnection, at: Relabelled) -> Result<Option<Setting>> {
    let sql = "select lang::text as lang from memory.tenants where tenant_id = $1 and relabel_after = $2 for update";
    Ok(sqlx::query_as(sql).bind(at.tenant_id).bind(at.relabel_after).fetch_optional(conn).await?)
}

/// Locks the next documents to be labelled, in the order of their ids.
pub async fn next(conn: &mut PgConnection, at: Relabelled) -> Result<Vec<Labelled>> {
    Ok(sqlx::query_as(include_str!("../sql/languages_next.sql"))
        .bind(at.tenant_id)
        .bind(at.relabel_after)
        .bind(MOST_CHUNKS)
        .bind(CHARS)
        .fetch_all(conn)
        .await?)
}

/// Labels documents and their chunks, given as (document, language). Those that have the label are not written.
pub async fn label(conn: &mut PgConnection, tenant_id: Uuid, documents: &[(Uuid, &str)]) -> Result<()> {
    let (ids, langs): (Vec<Uuid>, Vec<&str>) = documents.iter().copied().unzip();
    let sql =
        "update public.source_documents d set lang = g.lang::regconfig from unnest($2::uuid[], $3::text[]) g (id, lang)
         where d.tenant_id = $1 and d.id = g.id and d.lang is distinct from g.lang::regconfig";
    sqlx::query(sql).bind(tenant_id).bind(&ids).bind(&langs).execute(&mut *conn).await?;
    // A document may have more chunks than one statement has time for.
    loop {
        let labelled = sqlx::query(include_str!("../sql/languages_label.sql"))
            .bind(tenant_id)
            .bind(&ids)
            .bind(&langs)
            .bind(MOST_CHUNKS)
            .execute(&mut *conn)
            .await?;
        if labelled.rows_affected() < MOST_CHUNKS as u64 {
            return Ok(());
        }
    }
}

/// Notes the last document of a bite, and the languages that searches must know for it. None: all documents have their label; if a language is fixed,
/// searches know no other one from now on.
pub async fn go_on(conn: &mut PgConnection, at: Relabelled, after: Option<Uuid>, langs: &[&str]) -> Result<()> {
    sqlx::query(include_str!("../sql/languages_go_on.sql"))
        .bind(at.tenant_id)
        .bind(after)
        .bind(langs)
        .execute(conn)
        .await?;
    Ok(())
}
