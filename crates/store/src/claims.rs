//! Activities as agents see them: claimed, completed or failed, each write fenced by the claim's epoch.

use chrono::{DateTime, Utc};
use domain::{ActivityId, KeyId, PersonId, Scope, TenantId};
use sqlx::PgConnection;
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

/// Claims up to `limit` activities in the name of the transaction's caller.
pub async fn claim(conn: &mut PgConnection, limit: i32) -> Result<Vec<Claim>> {
    Ok(sqlx::query_as(
        "select id, raw_data, type, is_global, lock_epoch from public.claim_next_pending_activity(null, $1)",
    )
    .bind(limit)
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

/// Tenants with raw activities that an agent which processes only text could claim.
pub async fn tenants_with_text(conn: &mut PgConnection) -> Result<Vec<TenantId>> {
    let ids: Vec<Uuid> = sqlx::query_scalar(include_str!("sql/activities_tenants.sql")).fetch_all(conn).await?;
    Ok(ids.into_iter().map(TenantId).collect())
}

/// The system person of a tenant, by whom the built-in agent claims, and its key. Made on first use; nobody can sign in with the key.
pub async fn ensure_agent(conn: &mut PgConnection, tenant_id: TenantId) -> Result<(PersonId, Uuid, KeyId)> {
    const EMAIL: &str = "built-in-agent@tributary.invalid";
    sqlx::query(
        "insert into public.sales (tenant_id, email, first_name, processes) values ($1, $2, 'Built-in agent', '{text}')
         on conflict (tenant_id, lower(email)) do nothing",
    )
    .bind(tenant_id.0)
    .bind(EMAIL)
    .execute(&mut *conn)
    .await?;
    let (person, user): (i64, Uuid) =
        sqlx::query_as("select id, user_id from public.sales where tenant_id = $1 and lower(email) = $2")
            .bind(tenant_id.0)
            .bind(EMAIL)
            .fetch_one(&mut *conn)
            .await?;
    let key =
        crate::keys::ensure_unusable(conn, tenant_id, Some(PersonId(person)), "built-in agent", Scope::Agent).await?;
    Ok((PersonId(person), user, key))
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

/// Gives back the locks of agents that went silent: `unlock_stale_locks` or `reset_stale_locks`.
pub async fn recover(conn: &mut PgConnection, is_reset: bool) -> Result<i32> {
    let sql = if is_reset { "select public.reset_stale_locks()" } else { "select public.unlock_stale_locks()" };
    Ok(sqlx::query_scalar(sql).fetch_one(conn).await?)
}

/// Has failed activities processed again when their time has come; those that failed too often become dead letters. Returns how many go round.
pub async fn retry_failed(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<i32> {
    Ok(sqlx::query_scalar("select tributary.retry_failed($1)").bind(at).fetch_one(conn).await?)
}
