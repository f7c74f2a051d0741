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

/// Protects an object for a day that is known and is not being removed. `false`: there is none.
pub async fn touch_known(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key: &BlobKey,
) -> Result<bool> {
    let touched = sqlx::query(
        "update tributary.blobs set touched_at = coalesce($3, now()) where tenant_id = $1 and sha256 = $2 and removing_at is null",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(at)
    .execute(conn)
    .await?;
    Ok(touched.rows_affected() == 1)
}

/// Which of its two names an object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectName {
    pub is_second: bool,
}

impl ObjectName {
    pub const BOTH: [Self; 2] = [Self { is_second: false }, Self { is_second: true }];

    pub fn other(self) -> Self {
        Self { is_second: !self.is_second }
    }
}

/// Records an object and protects it for a day, before its bytes are written and before anything references it. Returns where to write them. An
/// object that is being removed gets its other name, which no removal under way can hit.
pub async fn touch(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key: &BlobKey,
    bytes: u64,
) -> Result<ObjectName> {
    let is_second = sqlx::query_scalar(
        "insert into tributary.blobs as b (tenant_id, sha256, bytes, touched_at) values ($1, $2, $3, coalesce($4, now()))
         on conflict (tenant_id, sha256) do update set touched_at = excluded.touched_at,
             is_second = b.is_second <> (b.removing_at is not null),
             stray_at = case when b.removing_at is not null then excluded.touched_at else b.stray_at end,
             removing_at = null, removed_at = null
         returning is_second",
    )
    .bind(tenant_id.0)
    .bind(key.to_string())
    .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
    .bind(at)
    .fetch_one(conn)
    .await?;
    Ok(ObjectName { is_second })
}

/// Marks up to `limit` objects for removal that are unreferenced and untouched for a day. Returns how many.
pub async fn mark(conn: &mut PgConnection, at: Option<DateTime<Utc>>, limit: i64) -> Result<u64> {
    let is_unnamed = is_unnamed(conn).await?;
    // The condition stands twice: a row that was touched while this waited for it is looked at again.
    let sql = format!(
        "update tributary.blobs b set removing_at = coalesce($1, now())
         where (b.tenant_id, b.sha256) in (select b.tenant_id, b.sha256 from tributary.blobs b where {is_unnamed} limit $2) and {is_unnamed}"
    );
    Ok(sqlx::query(AssertSqlSafe(sql)).bind(at).bind(limit).execute(conn).await?.rows_affected())
}

/// An object that is to leave the store, and the moment that its row was marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub tenant_id: TenantId,
    pub key: BlobKey,
    pub place: ObjectName,
    marked_at: DateTime<Utc>,
    /// Its row lives: this is the name that it had before.
    is_stray: bool,
}

impl Leaving {
    /// The object that is in use beside this one, if one is.
    pub fn used(&self) -> Option<ObjectName> {
        self.is_stray.then(|| self.place.other())
    }
}

/// Lists objects whose removal has to be asked for, in order, after the given one: those that were marked, and names that have been out of use for a
/// day.
pub async fn leaving(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    after: Option<&Leaving>,
    limit: i64,
) -> Result<Vec<Leaving>> {
    type Row = (Uuid, String, bool, Option<DateTime<Utc>>, Option<DateTime<Utc>>);
    let rows: Vec<Row> = sqlx::query_as(
        "select tenant_id, sha256, is_second, removing_at, stray_at from tributary.blobs
         where (removing_at is not null or stray_at is not null)
             and ((removing_at is not null and removed_at is null)
                 or (removing_at is null and stray_at < coalesce($1, now()) - interval '24 hours'))
             and ($2::uuid is null or (tenant_id, sha256) > ($2, $3))
         order by tenant_id, sha256 limit $4",
    )
    .bind(at)
    .bind(after.map(|leaving| leaving.tenant_id.0))
    .bind(after.map(|leaving| leaving.key.to_string()))
    .bind(limit)
    .fetch_all(conn)
    .await?;
    let read = |(tenant_id, key, is_second, removing_at, stray_at): Row| {
        let key = key.parse().map_err(|_| Error::Refused { what: format!("{key:?} in tributary.blobs is no hash") })?;
        let (used, is_stray) = (ObjectName { is_second }, removing_at.is_none());
        let place = if is_stray { used.other() } else { used };
        let marked_at = removing_at.or(stray_at).unwrap_or_default();
        Ok(Leaving { tenant_id: TenantId(tenant_id), key, place, marked_at, is_stray })
    };
    rows.into_iter().map(read).collect()
}

/// Whether this object may still be removed: nobody has put its bytes again since it was listed. Somebody may do so a moment later; then the bytes get
/// another name, so the removal needs no lock.
pub async fn may_leave(conn: &mut PgConnection, leaving: &Leaving) -> Result<bool> {
    let sql = "select true from tributary.blobs where tenant_id = $1 and sha256 = $2 and is_second = $3
        and case when $5 then removing_at is null and stray_at = $4 else removing_at = $4 end";
    let used = if leaving.is_stray { leaving.place.other() } else { leaving.place };
    let found: Option<bool> = sqlx::query_scalar(sql)
        .bind(leaving.tenant_id.0)
        .bind(leaving.key.to_string())
        .bind(used.is_second)
        .bind(leaving.marked_at)
        .bind(leaving.is_stray)
        .fetch_optional(conn)
        .await?;
    Ok(found.is_some())
}

/// Records that the store has confirmed a removal. The name is free again a day later: a row that lives counts as touched until then, and one that is
/// being removed goes after that.
pub async fn left(conn: &mut PgConnection, at: Option<DateTime<Utc>>, leaving: &Leaving) -> Result<()> {
    let sql = if leaving.is_stray {
        "update tributary.blobs set stray_at = null, touched_at = greatest(touched_at, coalesce($4, now()))
         where tenant_id = $1 and sha256 = $2 and stray_at = $3"
    } else {
        "update tributary.blobs set removed_at = coalesce($4, now()) where tenant_id = $1 and sha256 = $2 and removing_at = $3"
    };
    sqlx::query(sql)
        .bind(leaving.tenant_id.0)
        .bind(leaving.key.to_string())
        .bind(leaving.marked_at)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}

/// The name in use has no object, because its writer died: the old name is the one in use again, so that its object is collected like any other.
pub async fn use_again(conn: &mut PgConnection, leaving: &Leaving) -> Result<()> {
    sqlx::query(
        "update tributary.blobs set is_second = $4, stray_at = null
         where tenant_id = $1 and sha256 = $2 and stray_at = $3 and removing_at is null",
    )
    .bind(leaving.tenant_id.0)
    .bind(leaving.key.to_string())
    .bind(leaving.marked_at)
    .bind(leaving.place.is_second)
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes up to `limit` rows whose object was removed a day ago. Returns how many.
pub async fn remove_rows(conn: &mut PgConnection, at: Option<DateTime<Utc>>, limit: i64) -> Result<u64> {
    let gone = sqlx::query(
        "delete from tributary.blobs where removed_at < coalesce($1, now()) - interval '24 hours' and (tenant_id, sha256) in (
             select tenant_id, sha256 from tributary.blobs
             where (removing_at is not null or stray_at is not null) and removed_at < coalesce($1, now()) - interval '24 hours' limit $2)",
    )
    .bind(at)
    .bind(limit)
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}

/// The condition for marking a row `b` at the time `$1`.
async fn is_unnamed(conn: &mut PgConnection) -> Result<String> {
    let mut condition = String::from(
        "b.touched_at < coalesce($1, now()) - interval '24 hours' and b.removing_at is null and b.stray_at is null",
    );
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

/// Prevents the removal of objects until this session ends, so that all referenced objects can be copied. Waits for a round of removals to end, which
/// may take longer than a statement.
pub async fn keep_all(conn: &mut PgConnection) -> Result<()> {
    sqlx::raw_sql("set statement_timeout = 0").execute(&mut *conn).await?;
    sqlx::query("select pg_advisory_lock_shared($1)").bind(LOCK).execute(conn).await?;
    Ok(())
}

/// Takes the right to remove objects, until [`end_removal`] or the end of the session; `false` while another session copies or removes them. No
/// transaction holds it: the store may take minutes for one object, and the server ends a transaction that idles.
pub async fn begin_removal(conn: &mut PgConnection) -> Result<bool> {
    Ok(sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LOCK).fetch_one(conn).await?)
}

/// Gives the right to remove objects back.
pub async fn end_removal(conn: &mut PgConnection) -> Result<()> {
    sqlx::query("select pg_advisory_unlock($1)").bind(LOCK).execute(conn).await?;
    Ok(())
}
