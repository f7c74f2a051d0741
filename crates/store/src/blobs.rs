//! The rows of the blob store: which objects exist, and which of them are no longer referenced.

use chrono::{DateTime, Utc};
use domain::{BlobKey, TenantId};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::{Error, Result};

/// Every column that references a blob, in a table with a `tenant_id`. A table that does not exist yet references nothing.
pub const REFERENCES: &[(&str, &str)] = &[
    ("public.source_documents", "blob_key"),
    ("tributary.activity_payloads", "blob_key"),
    ("tributary.activity_attachments", "blob_key"),
    ("tributary.activity_recordings", "blob_key"),
];

/// The advisory lock of the blob store: shared while objects are copied, exclusive while some are removed.
const LOCK: i64 = 0x7472_6962_626c_6f62;

/// Records an object and protects it for a day, before its bytes are written and before anything references it.
pub async fn touch(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key: &BlobKey,
    bytes: u64,
) -> Result<()> {
    sqlx::query(
        "insert into tributary.blobs (tenant_id, sha256, bytes, touched_at) values ($1, $2, $3, coalesce($4, now()))
         on conflict (tenant_id, sha256) do update set touched_at = excluded.touched_at",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Lists objects that are unreferenced and untouched for a day, in order, after the given one.
pub async fn unnamed(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    after: Option<(TenantId, BlobKey)>,
    limit: i64,
) -> Result<Vec<(TenantId, BlobKey)>> {
    let sql = format!(
        "select b.tenant_id, b.sha256 from tributary.blobs b where {}
             and ($2::uuid is null or (b.tenant_id, b.sha256) > ($2, $3))
         order by b.tenant_id, b.sha256 limit $4",
        is_unnamed(conn).await?
    );
    let (tenant_id, key) = after.map_or((None, None), |(tenant_id, key)| (Some(tenant_id.0), Some(key.to_string())));
    let rows: Vec<(Uuid, String)> =
        sqlx::query_as(AssertSqlSafe(sql)).bind(at).bind(tenant_id).bind(key).bind(limit).fetch_all(conn).await?;
    let parse = |(tenant_id, key): (Uuid, String)| {
        let key = key.parse().map_err(|_| Error::Refused { what: format!("{key:?} in tributary.blobs is no hash") })?;
        Ok((TenantId(tenant_id), key))
    };
    rows.into_iter().map(parse).collect()
}

/// Removes the row, unless the object was referenced or touched again. Until the transaction ends, a caller that touches it waits.
pub async fn remove_unnamed(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key: &BlobKey,
) -> Result<bool> {
    let sql = format!(
        "delete from tributary.blobs b where b.tenant_id = $2 and b.sha256 = $3 and {}",
        is_unnamed(&mut *conn).await?
    );
    let removed =
        sqlx::query(AssertSqlSafe(sql)).bind(at).bind(tenant_id.0).bind(key.to_string()).execute(conn).await?;
    Ok(removed.rows_affected() == 1)
}

/// The condition for removing a row `b` at the time `$1`.
async fn is_unnamed(conn: &mut PgConnection) -> Result<String> {
    let mut condition = String::from("b.touched_at < coalesce($1, now()) - interval '24 hours'");
    for (table, column) in REFERENCES {
        let exists: bool = sqlx::query_scalar(
            "select exists (select from pg_attribute where attrelid = to_regclass($1) and attname = $2 and not attisdropped)",
        )
        .bind(table)
        .bind(column)
        .fetch_one(&mut *conn)
        .await?;
        if exists {
            condition.push_str(&format!(
                " and not exists (select from {table} r where r.tenant_id = b.tenant_id and r.{column} = b.sha256)"
            ));
        }
    }
    Ok(condition)
}

/// Prevents the removal of objects until this session ends, so that all referenced objects can be copied.
pub async fn keep_all(conn: &mut PgConnection) -> Result<()> {
    sqlx::query("select pg_advisory_lock_shared($1)").bind(LOCK).execute(conn).await?;
    Ok(())
}

/// Whether this transaction may remove objects: no other session copies or removes them.
pub async fn may_remove(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("select pg_try_advisory_xact_lock($1)").bind(LOCK).fetch_one(conn).await?)
}
