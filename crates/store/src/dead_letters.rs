//! Activities that failed for good (table `activity_failures`). The activity stays `failed` until a person replays or skips it.

use chrono::{DateTime, Utc};
use domain::TenantId;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::Result;
use crate::activities::{Activity, listed};
use crate::queue::MOST_COUNTED;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DeadLetter {
    /// The cursor of lists.
    pub letter_id: i64,
    pub reason: String,
    pub buried_at: DateTime<Utc>,
    /// The activity, as lists show it.
    #[sqlx(flatten)]
    pub activity: Activity,
}

/// Lists dead letters, newest first, each activity once.
pub async fn list(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<DeadLetter>> {
    let sql = format!(
        "select f.id as letter_id, f.failure_reason as reason, f.created_at as buried_at, {}
         from public.activity_failures f
         join public.activities a on a.tenant_id = f.tenant_id and a.id = f.original_activity_id and a.processing_status = 'failed'
         where f.tenant_id = $1 and f.id < coalesce($2, 9223372036854775807) and not exists (
             select from public.activity_failures later
             where later.tenant_id = f.tenant_id and later.original_activity_id = f.original_activity_id and later.id > f.id)
         order by f.id desc limit $3",
        listed()
    );
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(tenant_id.0).bind(before).bind(limit).fetch_all(conn).await?)
}

/// Counts dead letters, each activity once, up to [`MOST_COUNTED`].
pub async fn count(conn: &mut PgConnection, tenant_id: TenantId) -> Result<i64> {
    let counted = sqlx::query_scalar(include_str!("sql/dead_letters_count.sql")).bind(tenant_id.0).bind(MOST_COUNTED);
    Ok(counted.fetch_one(conn).await?)
}

/// Returns those of the given activities that are dead letters.
pub async fn among(conn: &mut PgConnection, tenant_id: TenantId, ids: &[Uuid]) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "select distinct original_activity_id from public.activity_failures where tenant_id = $1 and original_activity_id = any($2)",
    )
    .bind(tenant_id.0)
    .bind(ids)
    .fetch_all(conn)
    .await?)
}
