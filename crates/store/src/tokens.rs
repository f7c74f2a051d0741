//! Tokens of sources, and the protocol by which any number of workers refresh a token exactly once. No transaction spans a call to a
//! provider: taking the lease is one UPDATE, and the reply is stored only if the version has not changed since.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Secret, SourceId, SourceStatus, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::crash::{self, Point};
use crate::vault::Vault;
use crate::{Result, Tx};

/// The stored facts about a source's pair of tokens, without the tokens.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Held {
    pub version: i64,
    pub access_id: Option<Uuid>,
    pub refresh_id: Option<Uuid>,
    /// Seconds by the database's clock: what is left of the token, how long it lives in all, and since when it is stored.
    pub left_secs: Option<f64>,
    pub life_secs: Option<f64>,
    pub age_secs: Option<f64>,
    #[sqlx(try_from = "String")]
    pub status: SourceStatus,
    pub status_message: Option<String>,
    /// A process refreshes it now.
    pub is_leased: bool,
}

pub async fn held(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
) -> Result<Option<Held>> {
    Ok(sqlx::query_as(
        "select token_version as version, access_token_vault_id as access_id, refresh_token_vault_id as refresh_id,
             extract(epoch from token_expires_at - coalesce($3, clock_timestamp()))::float8 as left_secs,
             extract(epoch from token_expires_at - token_stored_at)::float8 as life_secs,
             extract(epoch from coalesce($3, clock_timestamp()) - token_stored_at)::float8 as age_secs, status, status_message,
             coalesce(refresh_until > clock_timestamp(), false) as is_leased
         from public.connected_sources where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .fetch_optional(conn)
    .await?)
}

/// The result of taking the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// Ours. `is_second`: an earlier refresh with the same pair ended nobody knows how.
    Taken { is_second: bool },
    /// Another process has the lease, or the version has changed.
    Theirs,
}

/// Step 1: takes the lease of version `seen`, unless somebody holds it.
pub async fn take_lease(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    seen: i64,
    me: Uuid,
    lease: Duration,
) -> Result<Lease> {
    // `before` locks the row and is what it was: who held the lease last is told together with taking it.
    let before: Option<bool> = sqlx::query_scalar(
        "with before as (
             select id, refresh_by from public.connected_sources where tenant_id = $1 and id = $2 for update)
         update public.connected_sources s
         set refresh_by = $4, refresh_until = clock_timestamp() + make_interval(secs => $5)
         from before
         where s.tenant_id = $1 and s.id = before.id and s.token_version = $3
             and (s.refresh_until is null or s.refresh_until < clock_timestamp())
         returning before.refresh_by is not null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(seen)
    .bind(me)
    .bind(lease.as_secs_f64())
    .fetch_optional(conn)
    .await?;
    Ok(before.map_or(Lease::Theirs, |is_second| Lease::Taken { is_second }))
}

/// While the reply is awaited the lease stays ours.
pub async fn keep_lease(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    me: Uuid,
    lease: Duration,
) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set refresh_until = clock_timestamp() + make_interval(secs => $4)
         where tenant_id = $1 and id = $2 and refresh_by = $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(me)
    .bind(lease.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Releases the lease. `is_known`: the pair was certainly not exchanged; otherwise the next holder learns that it may have been.
pub async fn end_lease(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    me: Uuid,
    is_known: bool,
) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set refresh_until = null, refresh_by = case when $4 then null else refresh_by end
         where tenant_id = $1 and id = $2 and refresh_by = $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(me)
    .bind(is_known)
    .execute(conn)
    .await?;
    Ok(())
}

/// A pair as a provider gave it.
#[derive(Debug)]
pub struct Pair<'a> {
    pub access: &'a Secret,
    /// None: the provider gave no new one, and the old one stays good.
    pub refresh: Option<&'a Secret>,
    pub expires_in: Option<Duration>,
}

/// Step 3: puts the pair into the vault and swings the source to it, where its version is still `seen`. **The write compares the version,
/// not the lease**: a late reply is still the only good pair. `false`: somebody stored a newer one.
pub async fn store(
    tx: &mut Tx,
    vault: &Vault,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    seen: i64,
    pair: &Pair<'_>,
) -> Result<bool> {
    let access_id = put(tx, vault, tenant_id, source_id, pair.access).await?;
    let refresh_id = match pair.refresh {
        Some(refresh) => Some(put(tx, vault, tenant_id, source_id, refresh).await?),
        None => None,
    };
    crash::at(Point::TokenInVault)?;
    let swung = sqlx::query(
        "update public.connected_sources
         set access_token_vault_id = $4, refresh_token_vault_id = coalesce($5, refresh_token_vault_id), token_version = token_version + 1,
             token_expires_at = coalesce($7, now()) + make_interval(secs => $6), token_stored_at = coalesce($7, now()),
             refresh_by = null, refresh_until = null
         where tenant_id = $1 and id = $2 and token_version = $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(seen)
    .bind(access_id)
    .bind(refresh_id)
    .bind(pair.expires_in.map(|left| left.as_secs_f64()))
    .bind(at)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "update tributary.vault v set replaced_at = coalesce($3, now())
         where v.tenant_id = $1 and v.source_id = $2 and v.replaced_at is null
             and not exists (select from public.connected_sources s where s.tenant_id = v.tenant_id and s.id = v.source_id
                 and v.id in (s.access_token_vault_id, s.refresh_token_vault_id))",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    Ok(swung.rows_affected() == 1)
}

/// A pair came after all of a refresh that ended nobody knew how: the source need not be reconnected. `false`: that was not why, or it is
/// active.
pub async fn revive(tx: &mut Tx, at: Option<DateTime<Utc>>, tenant_id: TenantId, source_id: SourceId) -> Result<bool> {
    let revived = sqlx::query(
        "update public.connected_sources set status = 'active', status_message = null, status_at = coalesce($3, now())
         where tenant_id = $1 and id = $2 and status = 'token_refresh_failed' and status_message = 'refresh_outcome_unknown'",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    tx.notify(crate::sources::changed(tenant_id, source_id));
    Ok(revived.rows_affected() == 1)
}

async fn put(tx: &mut Tx, vault: &Vault, tenant_id: TenantId, source_id: SourceId, secret: &Secret) -> Result<Uuid> {
    let id = Uuid::now_v7();
    vault.put(tx, tenant_id, id, secret).await?;
    sqlx::query("update tributary.vault set source_id = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id)
        .bind(source_id.0)
        .execute(&mut **tx)
        .await?;
    Ok(id)
}

/// The pair of this version is no longer good, and a person has to reconnect: says so, unless a newer one is stored. Ends the lease.
pub async fn refuse(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    seen: i64,
    message: &str,
) -> Result<bool> {
    let refused = sqlx::query(
        "update public.connected_sources
         set status = 'token_refresh_failed', status_message = $4, status_at = coalesce($5, now()), refresh_by = null, refresh_until = null
         where tenant_id = $1 and id = $2 and token_version = $3 and status <> 'disconnected'",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(seen)
    .bind(message)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    tx.notify(crate::sources::changed(tenant_id, source_id));
    Ok(refused.rows_affected() == 1)
}

/// The provider refused the token of this version: the next claim refreshes it. Nothing when a newer one is stored.
pub async fn expire(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId, used: i64) -> Result<bool> {
    let expired = sqlx::query(
        "update public.connected_sources set token_expires_at = null where tenant_id = $1 and id = $2 and token_version = $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(used)
    .execute(conn)
    .await?;
    Ok(expired.rows_affected() == 1)
}

/// Removes up to 1,000 secrets of pairs that were replaced a day ago; returns how many went.
pub async fn collect(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<u64> {
    let gone = sqlx::query(
        "delete from tributary.vault where ctid = any (array(
             select v.ctid from tributary.vault v
             where v.replaced_at < coalesce($1, now()) - interval '24 hours'
                 and not exists (select from public.connected_sources s where s.tenant_id = v.tenant_id and s.id = v.source_id
                     and v.id in (s.access_token_vault_id, s.refresh_token_vault_id))
             limit 1000))",
    )
    .bind(at)
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}

/// A source that gets a key has no refresh token any more; the old one's secret goes with the pair it belonged to.
pub async fn drop_refresh(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<()> {
    sqlx::query("update public.connected_sources set refresh_token_vault_id = null where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// A disconnected source has no tokens.
pub async fn remove(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set access_token_vault_id = null, refresh_token_vault_id = null, token_expires_at = null,
             token_version = token_version + 1, refresh_by = null, refresh_until = null
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .execute(&mut *conn)
    .await?;
    sqlx::query("delete from tributary.vault where tenant_id = $1 and source_id = $2")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .execute(conn)
        .await?;
    Ok(())
}
