//! Browser sessions and one-time sign-in links. Both belong to a key, are stored as hashes, and end with the key.

use chrono::{DateTime, Utc};
use domain::{Caller, KeyId, Secret, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::keys::{CallerRow, hash, new_secret};

const SESSION_HOURS: i32 = 12;
const LINK_MINUTES: i32 = 15;

/// Creates the secret of a link. It is valid once, for a quarter of an hour.
pub async fn new_link(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: KeyId,
) -> Result<Secret> {
    insert(conn, at, tenant_id, key_id, "once", LINK_MINUTES).await
}

pub async fn new_session(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: KeyId,
) -> Result<Secret> {
    insert(conn, at, tenant_id, key_id, "session", SESSION_HOURS * 60).await
}

/// Exchanges a link for a session. The same statement removes the link.
pub async fn redeem_link(conn: &mut PgConnection, at: Option<DateTime<Utc>>, link: &Secret) -> Result<Option<Secret>> {
    let used: Option<(Uuid, Uuid, bool)> = sqlx::query_as(
        "delete from tributary.sessions where hash = $1 and kind = 'once' returning tenant_id, key_id, expires_at > coalesce($2, now())",
    )
    .bind(&hash(link)[..])
    .bind(at)
    .fetch_optional(&mut *conn)
    .await?;
    match used {
        Some((tenant_id, key_id, true)) => new_session(conn, at, TenantId(tenant_id), KeyId(key_id)).await.map(Some),
        _ => Ok(None),
    }
}

pub async fn caller(conn: &mut PgConnection, at: Option<DateTime<Utc>>, session: &Secret) -> Result<Option<Caller>> {
    let row: Option<CallerRow> = sqlx::query_as(include_str!("sql/session_caller.sql"))
        .bind(&hash(session)[..])
        .bind(at)
        .fetch_optional(conn)
        .await?;
    Ok(row.map(Caller::from))
}

pub async fn end(conn: &mut PgConnection, session: &Secret) -> Result<()> {
    sqlx::query("delete from tributary.sessions where hash = $1").bind(&hash(session)[..]).execute(conn).await?;
    Ok(())
}

async fn insert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    key_id: KeyId,
    kind: &str,
    minutes: i32,
) -> Result<Secret> {
    let secret = new_secret("");
    sqlx::query(
        "insert into tributary.sessions (hash, tenant_id, key_id, kind, expires_at)
         values ($1, $2, $3, $4, coalesce($5, now()) + make_interval(mins => $6))",
    )
    .bind(&hash(&secret)[..])
    .bind(tenant_id.0)
    .bind(key_id.0)
    .bind(kind)
    .bind(at)
    .bind(minutes)
    .execute(conn)
    .await?;
    Ok(secret)
}
