//! Recordings that were fetched from the URL in an event, one per activity.

use domain::{ActivityId, BlobKey, TenantId};
use sqlx::PgConnection;

use crate::{Error, Result};

/// A stored recording. Its bytes are in the blob store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub key: BlobKey,
    pub bytes: u64,
    pub content_type: String,
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<Recording>> {
    let row: Option<(String, i64, String)> = sqlx::query_as(
        "select blob_key, bytes, content_type from tributary.activity_recordings where tenant_id = $1 and activity_id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(conn)
    .await?;
    let Some((key, bytes, content_type)) = row else { return Ok(None) };
    let key =
        key.parse().map_err(|_| Error::Refused { what: format!("the recording of activity {id} has no hash") })?;
    Ok(Some(Recording { key, bytes: bytes.unsigned_abs(), content_type }))
}

/// Whether an activity still has this recording. It can be removed only after the transaction then, so that what was heard of it goes with it.
pub async fn is_wanted(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId, key: &BlobKey) -> Result<bool> {
    let wanted = sqlx::query(
        "select from tributary.activity_recordings where tenant_id = $1 and activity_id = $2 and blob_key = $3 for share",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(key.to_string())
    .execute(conn)
    .await?;
    Ok(wanted.rows_affected() == 1)
}

/// Records the recording of an activity. If there already is one, that one stays and is returned.
pub async fn keep(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId, new: Recording) -> Result<Recording> {
    sqlx::query(
        "insert into tributary.activity_recordings (tenant_id, activity_id, content_type, bytes, blob_key) values ($1, $2, $3, $4, $5)
         on conflict (tenant_id, activity_id) do nothing",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(&new.content_type)
    .bind(i64::try_from(new.bytes).unwrap_or(i64::MAX))
    .bind(new.key.to_string())
    .execute(&mut *conn)
    .await?;
    Ok(get(conn, tenant_id, id).await?.unwrap_or(new))
}
