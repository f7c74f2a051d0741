//! Activities as agents see them: claimed, completed, failed, released, recovered, retried. Every write of an agent is fenced by the claim's epoch.

use chrono::{DateTime, Utc};
use domain::activity::HELD_LONG;
use domain::{ActivityId, ActivityType, Direction, KeyId, PersonId, Scope, TenantId};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{FromRow, PgConnection, Postgres, Row as _};
use uuid::Uuid;

use crate::Result;

/// A claimed activity.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Claim {
    pub id: Uuid,
    pub raw_data: serde_json::Value,
    pub r#type: String,
    pub is_global: bool,
    pub lock_epoch: i32,
}

/// Has what this transaction claims held in the name of a worker: it goes back when that worker is found dead.
pub async fn hold_as(conn: &mut PgConnection, worker: &str) -> Result<()> {
    sqlx::query("select set_config('tributary.worker', $1, true)").bind(worker).execute(conn).await?;
    Ok(())
}

/// Claims up to `limit` activities of these kinds of content for the transaction's caller.
pub async fn claim(conn: &mut PgConnection, limit: i32, source_types: &[&str]) -> Result<Vec<Claim>> {
    Ok(sqlx::query_as(
        "select id, raw_data, type, is_global, lock_epoch from public.claim_next_pending_activity(null, $1, $2)",
    )
    .bind(limit)
    .bind(source_types)
    .fetch_all(conn)
    .await?)
}

/// Returns what came in with an activity, if this key still holds it at this epoch.
pub async fn raw_data(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: KeyId,
    id: Uuid,
    lock_epoch: i32,
) -> Result<Option<serde_json::Value>> {
    Ok(sqlx::query_scalar(
        "select raw_data from public.activities
         where tenant_id = $1 and id = $2 and processing_status = 'processing' and locked_key = $3 and lock_epoch = $4",
    )
    .bind(tenant_id.0)
    .bind(id)
    .bind(key_id.0)
    .bind(lock_epoch)
    .fetch_optional(conn)
    .await?)
}

/// Completes the activities that this key still holds at these epochs, and returns their ids. A late result overwrites nothing.
pub async fn complete(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: KeyId,
    results: &[(Uuid, i32, serde_json::Value)],
) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(include_str!("sql/activities_complete.sql"))
        .bind(tenant_id.0)
        .bind(key_id.0)
        .bind(results.iter().map(|(id, ..)| *id).collect::<Vec<_>>())
        .bind(results.iter().map(|(_, epoch, _)| *epoch).collect::<Vec<_>>())
        .bind(results.iter().map(|(.., data)| data.clone()).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?)
}

/// Fails an activity if this key still holds it at this epoch. We write the error's time and retry count, not the agent.
pub async fn fail(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: KeyId,
    id: Uuid,
    lock_epoch: i32,
    error: &serde_json::Value,
) -> Result<bool> {
    let sql = "update public.activities set processing_status = 'failed', metadata = metadata || jsonb_build_object('error',
            $5::jsonb || jsonb_build_object('timestamp', now(), 'retry_count', coalesce(metadata -> 'retry_count', '0')))
        where tenant_id = $1 and id = $2 and processing_status = 'processing' and locked_key = $3 and lock_epoch = $4";
    let failed = held(sql, tenant_id, id, key_id, lock_epoch).bind(error).execute(conn).await?;
    Ok(failed.rows_affected() == 1)
}

/// Releases an activity unprocessed, if this key still holds it at this epoch.
pub async fn release(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: KeyId,
    id: Uuid,
    lock_epoch: i32,
) -> Result<bool> {
    let sql = "update public.activities set processing_status = 'raw'
        where tenant_id = $1 and id = $2 and processing_status = 'processing' and locked_key = $3 and lock_epoch = $4";
    Ok(held(sql, tenant_id, id, key_id, lock_epoch).execute(conn).await?.rows_affected() == 1)
}

/// Renews the lock of an activity. False: this key no longer holds it.
pub async fn renew(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    key_id: KeyId,
    id: Uuid,
    lock_epoch: i32,
) -> Result<bool> {
    let sql = "update public.activities set locked_at = now()
        where tenant_id = $1 and id = $2 and processing_status = 'processing' and locked_key = $3 and lock_epoch = $4";
    Ok(held(sql, tenant_id, id, key_id, lock_epoch).execute(conn).await?.rows_affected() == 1)
}

/// A statement on one claimed activity.
fn held(
    sql: &'static str,
    tenant_id: TenantId,
    id: Uuid,
    key_id: KeyId,
    lock_epoch: i32,
) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(sql).bind(tenant_id.0).bind(id).bind(key_id.0).bind(lock_epoch)
}

/// The tenants in service that have raw activities.
pub async fn tenants_with_raw(conn: &mut PgConnection) -> Result<Vec<TenantId>> {
    let ids: Vec<Uuid> = sqlx::query_scalar(include_str!("sql/activities_tenants.sql")).fetch_all(conn).await?;
    Ok(ids.into_iter().map(TenantId).collect())
}

/// The address of a tenant's system person. Nobody can be reached there.
pub const BUILT_IN: &str = "built-in-agent@tributary.invalid";

/// Returns the tenant's system person, for whom the built-in agent claims, its user id and its key. They are made on first use; nobody can sign in
/// with the key.
pub async fn ensure_agent(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_types: &[&str],
) -> Result<(PersonId, Uuid, KeyId)> {
    sqlx::query(
        "insert into public.sales (tenant_id, email, first_name, processes) values ($1, $2, 'Built-in agent', $3)
         on conflict (tenant_id, lower(email)) do update
         set processes = (select array_agg(distinct t order by t) from unnest(sales.processes || excluded.processes) t)
         where not sales.processes @> excluded.processes",
    )
    .bind(tenant_id.0)
    .bind(BUILT_IN)
    .bind(source_types)
    .execute(&mut *conn)
    .await?;
    let (person, user): (i64, Uuid) =
        sqlx::query_as("select id, user_id from public.sales where tenant_id = $1 and lower(email) = $2")
            .bind(tenant_id.0)
            .bind(BUILT_IN)
            .fetch_one(&mut *conn)
            .await?;
    let key =
        crate::keys::ensure_unusable(conn, tenant_id, Some(PersonId(person)), "built-in agent", Scope::Agent).await?;
    Ok((PersonId(person), user, key))
}

/// The tenants in service in which the built-in agent has worked.
pub async fn tenants_with_agent(conn: &mut PgConnection) -> Result<Vec<TenantId>> {
    let sql =
        "select s.tenant_id from public.sales s join public.tenants t on t.id = s.tenant_id and t.forgetting_at is null
         where lower(s.email) = $1 order by s.tenant_id limit 1000";
    let ids: Vec<Uuid> = sqlx::query_scalar(sql).bind(BUILT_IN).fetch_all(conn).await?;
    Ok(ids.into_iter().map(TenantId).collect())
}

/// The figures of a tenant's activities that metrics report.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Watched {
    pub tenant_id: Uuid,
    /// The number of activities that have been claimed for longer than [`HELD_LONG`].
    pub long_held: i64,
    /// The share of its last 1,000 that matches no contact.
    pub unmatched_share: Option<f64>,
}

pub async fn watched(conn: &mut PgConnection, now: Option<DateTime<Utc>>) -> Result<Vec<Watched>> {
    Ok(sqlx::query_as(include_str!("sql/activities_watched.sql"))
        .bind(now)
        .bind(HELD_LONG.as_seconds_f64())
        .fetch_all(conn)
        .await?)
}

/// Counts the tenant's activities that have been claimed for longer than [`HELD_LONG`].
pub async fn long_held(conn: &mut PgConnection, now: Option<DateTime<Utc>>, tenant_id: TenantId) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "select count(*) from public.activities where processing_status = 'processing' and tenant_id = $1
         and claimed_at < coalesce($2, now()) - make_interval(secs => $3)",
    )
    .bind(tenant_id.0)
    .bind(now)
    .bind(HELD_LONG.as_seconds_f64())
    .fetch_one(conn)
    .await?)
}

/// An activity as memory needs it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ToRemember {
    pub id: Uuid,
    #[sqlx(try_from = "String")]
    pub r#type: ActivityType,
    #[sqlx(try_from = "String")]
    pub direction: Direction,
    pub contact_id: Option<i64>,
    pub raw_data: serde_json::Value,
    pub processed_data: Option<serde_json::Value>,
    pub metadata: serde_json::Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Its channel, if that is still a source.
    pub source_id: Option<Uuid>,
    /// The mailbox whose letter it is, if its channel is or was on one.
    pub mailbox_id: Option<Uuid>,
    pub event_key: Option<String>,
}

pub async fn to_remember(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<ToRemember>> {
    Ok(sqlx::query_as(include_str!("sql/activity_to_remember.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .fetch_optional(conn)
        .await?)
}

/// Keeps an activity from being removed until the transaction ends. `false`: it is gone.
pub async fn hold(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<bool> {
    let held = sqlx::query("select from public.activities where tenant_id = $1 and id = $2 for key share")
        .bind(tenant_id.0)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(held.rows_affected() == 1)
}

/// An activity that was recovered or retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    pub tenant_id: TenantId,
    pub id: Uuid,
    /// It is a dead letter now.
    pub is_dead: bool,
}

impl FromRow<'_, PgRow> for Changed {
    fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            tenant_id: TenantId(row.try_get("tenant_id")?),
            id: row.try_get("id")?,
            is_dead: row.try_get("is_dead")?,
        })
    }
}

/// Gives back the locks that nobody renewed for [`UNLOCK_AFTER`], or with `is_reset` for [`RESET_AFTER`]. With claims only those of the caller's
/// tenant.
///
/// [`UNLOCK_AFTER`]: domain::activity::UNLOCK_AFTER
/// [`RESET_AFTER`]: domain::activity::RESET_AFTER
pub async fn recover(conn: &mut PgConnection, is_reset: bool) -> Result<Vec<Changed>> {
    let sql = "select tenant_id, id, is_dead from tributary.recover_activities($1)";
    Ok(sqlx::query_as(sql).bind(is_reset).fetch_all(conn).await?)
}

/// Gives back what the built-in agents of these dead workers hold, up to 1,000 at a time. It counts like a lock that nobody renewed.
pub async fn take_over(conn: &mut PgConnection, dead: &[String]) -> Result<Vec<Changed>> {
    let sql = "select tenant_id, id, is_dead from tributary.recover_activities(false, $1)";
    Ok(sqlx::query_as(sql).bind(dead).fetch_all(conn).await?)
}

/// Retries failed activities that are due, by the rules of [`domain::activity::after_failure`]; those that failed too often become
/// dead letters. Returns both.
pub async fn retry_failed(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<Vec<Changed>> {
    let sql = "select tenant_id, id, is_dead from tributary.retry_activities($1)";
    Ok(sqlx::query_as(sql).bind(at).fetch_all(conn).await?)
}
