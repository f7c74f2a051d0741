//! Activities as agents see them: claimed, completed or failed, each write fenced by the claim's epoch.

use chrono::{DateTime, Utc};
use domain::{ActivityId, KeyId, PersonId, Scope, TenantId};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use crate::Result;

/// An activity in an agent's hands.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Claim {
    pub id: Uuid,
    pub raw_data: serde_json::Value,
    pub r#type: String,
    pub is_global: bool,
    pub lock_epoch: i32,
}

/// Claims up to `limit` activities in the name of the transaction's caller, of these kinds of content.
pub async fn claim(conn: &mut PgConnection, limit: i32, source_types: &[&str]) -> Result<Vec<Claim>> {
    Ok(sqlx::query_as(
        "select id, raw_data, type, is_global, lock_epoch from public.claim_next_pending_activity(null, $1, $2)",
    )
    .bind(limit)
    .bind(source_types)
    .fetch_all(conn)
    .await?)
}

/// Completes what is still held by this key at this epoch; returns those ids. A late result overwrites nothing.
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

/// Ends an activity with an error, where this key still holds it at this epoch. When it happened, and how often before, is ours to say.
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

/// Gives an activity back unprocessed, where this key still holds it.
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

/// Says that it is still being worked on. False: it is in other hands.
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

/// A statement on one activity in somebody's hands.
fn held(
    sql: &'static str,
    tenant_id: TenantId,
    id: Uuid,
    key_id: KeyId,
    lock_epoch: i32,
) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(sql).bind(tenant_id.0).bind(id).bind(key_id.0).bind(lock_epoch)
}

/// Tenants with raw activities.
pub async fn tenants_with_raw(conn: &mut PgConnection) -> Result<Vec<TenantId>> {
    let ids: Vec<Uuid> = sqlx::query_scalar(include_str!("sql/activities_tenants.sql")).fetch_all(conn).await?;
    Ok(ids.into_iter().map(TenantId).collect())
}

/// The address of a tenant's system person, at which nobody can be reached.
pub const BUILT_IN: &str = "built-in-agent@tributary.invalid";

/// The system person of a tenant, by whom the built-in agent claims, and its key. Made on first use; nobody can sign in with the key.
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

/// Tenants in which the built-in agent has worked.
pub async fn tenants_with_agent(conn: &mut PgConnection) -> Result<Vec<TenantId>> {
    let sql = "select tenant_id from public.sales where lower(email) = $1 order by tenant_id limit 1000";
    let ids: Vec<Uuid> = sqlx::query_scalar(sql).bind(BUILT_IN).fetch_all(conn).await?;
    Ok(ids.into_iter().map(TenantId).collect())
}

/// What is watched of a tenant's activities.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Watched {
    pub tenant_id: Uuid,
    /// In an agent's hands for over an hour.
    pub long_held: i64,
    /// Of its last 1,000, the share that matches no contact.
    pub unmatched_share: Option<f64>,
}

pub async fn watched(conn: &mut PgConnection, now: Option<DateTime<Utc>>) -> Result<Vec<Watched>> {
    Ok(sqlx::query_as(include_str!("sql/activities_watched.sql")).bind(now).fetch_all(conn).await?)
}

/// How many of a tenant's activities have been in an agent's hands for over an hour.
pub async fn long_held(conn: &mut PgConnection, now: Option<DateTime<Utc>>, tenant_id: TenantId) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "select count(*) from public.activities where processing_status = 'processing' and tenant_id = $1
         and claimed_at < coalesce($2, now()) - interval '1 hour'",
    )
    .bind(tenant_id.0)
    .bind(now)
    .fetch_one(conn)
    .await?)
}

/// An activity as it is remembered.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ToRemember {
    pub id: Uuid,
    pub r#type: String,
    pub direction: String,
    pub contact_id: Option<i64>,
    pub raw_data: serde_json::Value,
    pub processed_data: Option<serde_json::Value>,
    pub metadata: serde_json::Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Its channel, if that is a source still.
    pub source_id: Option<Uuid>,
}

pub async fn to_remember(conn: &mut PgConnection, tenant_id: TenantId, id: ActivityId) -> Result<Option<ToRemember>> {
    Ok(sqlx::query_as(include_str!("sql/activity_to_remember.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .fetch_optional(conn)
        .await?)
}

/// Gives back the locks of agents that went silent: `unlock_stale_locks` or `reset_stale_locks`. Returns whose they were.
pub async fn recover(conn: &mut PgConnection, is_reset: bool) -> Result<Vec<(TenantId, Uuid)>> {
    let held = held_long(conn).await?;
    let sql = if is_reset { "select public.reset_stale_locks()" } else { "select public.unlock_stale_locks()" };
    match sqlx::query_scalar::<_, i32>(sql).fetch_one(&mut *conn).await? {
        0 => Ok(Vec::new()),
        _ => no_longer(conn, &held, "processing").await,
    }
}

/// What such a function may take away. It counts and does not name; so its caller looks before, and with [`no_longer`] after.
pub(crate) async fn held_long(conn: &mut PgConnection) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "select id from public.activities where processing_status = 'processing' and locked_at < now() - interval '5 minutes'
         order by locked_at limit 1000",
    )
    .fetch_all(conn)
    .await?)
}

/// Which of these have left that state, by whomever.
pub(crate) async fn no_longer(conn: &mut PgConnection, ids: &[Uuid], state: &str) -> Result<Vec<(TenantId, Uuid)>> {
    let sql = "select tenant_id, id from public.activities where id = any ($1) and processing_status <> $2";
    let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(sql).bind(ids).bind(state).fetch_all(conn).await?;
    Ok(rows.into_iter().map(|(tenant_id, id)| (TenantId(tenant_id), id)).collect())
}

/// Has failed activities processed again when their time has come; those that failed too often become dead letters. Returns those that go round.
pub async fn retry_failed(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<Vec<(TenantId, Uuid)>> {
    let failed: Vec<Uuid> = sqlx::query_scalar(
        "select a.id from public.activities a
         where a.processing_status = 'failed' and coalesce(a.metadata -> 'error' ->> 'type', '') not in ('Skipped', 'Abandoned')
             and not exists (select from public.activity_failures f where f.tenant_id = a.tenant_id and f.original_activity_id = a.id)
         order by a.created_at limit 10000",
    )
    .fetch_all(&mut *conn)
    .await?;
    match sqlx::query_scalar::<_, i32>("select tributary.retry_failed($1)").bind(at).fetch_one(&mut *conn).await? {
        0 => Ok(Vec::new()),
        _ => no_longer(conn, &failed, "failed").await,
    }
}
