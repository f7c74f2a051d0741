//! Indexes that are built concurrently with writes. Migrations build no index on a table that may be large.

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};

use crate::{Db, Result};

/// Schema, name and definition. The upkeep task `indexes` builds those that are missing.
pub const LATER: &[(&str, &str, &str)] = &[
    (
        "public",
        "activities_channel_idx",
        "public.activities (tenant_id, provider_id, created_at) where provider_id is not null",
    ),
    ("public", "activities_unmatched_idx", "public.activities (tenant_id, created_at) where contact_id is null"),
    ("public", "activities_failed_idx", "public.activities (tenant_id, created_at) where processing_status = 'failed'"),
];

/// Builds an index unless it is there, in a session of its own with the owner's rights. Safe to repeat.
pub async fn build(db: &Db, schema: &str, name: &str, on: &str) -> Result<()> {
    let mut conn = db.to().0.clone().application_name("tributary index").connect().await?;
    // A session of its own, with the owner's rights and no time limit, which end with it.
    sqlx::raw_sql("set role tributary_owner; set statement_timeout = 0; set maintenance_work_mem = '512MB'")
        .execute(&mut conn)
        .await?;
    build_on(&mut conn, schema, name, on).await?;
    Ok(conn.close().await?)
}

/// Builds an index unless it is there. One that an interrupted build left behind is dropped first.
pub(crate) async fn build_on(conn: &mut PgConnection, schema: &str, name: &str, on: &str) -> Result<()> {
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
