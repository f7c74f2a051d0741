//! The columns of a source that tell of its subscription: by what its provider tells of changes, and until when.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Secret, SourceId, SourceStatus, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::pending::Mailbox;
use crate::Result;

/// A mailbox that a notice names.
#[derive(Debug, sqlx::FromRow)]
pub struct Named {
    pub tenant_id: Uuid,
    pub id: Uuid,
    /// The name by which the notice calls it.
    pub name: String,
    #[sqlx(try_from = "String")]
    pub status: SourceStatus,
    /// The name is its own, not that of another source of the same account.
    pub is_own: bool,
    client_state: Option<String>,
}

impl Named {
    pub fn mailbox(&self) -> Mailbox {
        (TenantId(self.tenant_id), SourceId(self.id))
    }

    /// The secret that a notice of its subscription repeats.
    pub fn client_state(&self) -> Option<Secret> {
        self.client_state.clone().map(Secret::new)
    }
}

/// Finds the mailboxes of these subscriptions, in any tenant, and the other sources of the same accounts: a provider may tell of an account only
/// once, whoever connected it.
pub async fn of_subscriptions(conn: &mut PgConnection, provider: &str, ids: &[&str]) -> Result<Vec<Named>> {
    Ok(sqlx::query_as(
        "select o.tenant_id, o.id, s.provider_subscription_id as name, o.status, o.id = s.id as is_own, s.webhook_client_state as client_state
         from public.connected_sources s
         join public.connected_sources o on o.provider = s.provider and o.account = s.account and (o.id = s.id or o.status <> 'disconnected')
         where s.provider = $1 and s.provider_subscription_id = any($2)",
    )
    .bind(provider)
    .bind(ids)
    .fetch_all(conn)
    .await?)
}

/// Finds the mailboxes of these accounts, in any tenant. One account may be connected in several.
pub async fn of_accounts(conn: &mut PgConnection, provider: &str, accounts: &[&str]) -> Result<Vec<Named>> {
    Ok(sqlx::query_as(
        "select tenant_id, id, account as name, status, true as is_own, null::text as client_state
         from public.connected_sources where provider = $1 and account = any($2) and status <> 'disconnected'",
    )
    .bind(provider)
    .bind(accounts)
    .fetch_all(conn)
    .await?)
}

/// A mailbox whose subscription is to be made or renewed.
#[derive(Debug, sqlx::FromRow)]
pub struct Due {
    pub tenant_id: Uuid,
    pub id: Uuid,
    pub provider: String,
    pub account: String,
    pub provider_subscription_id: Option<String>,
    /// None: there is no subscription.
    pub subscription_expires_at: Option<DateTime<Utc>>,
    client_state: Option<String>,
    /// Tries in a row that failed.
    pub failures: i32,
}

impl Due {
    pub fn client_state(&self) -> Option<Secret> {
        self.client_state.clone().map(Secret::new)
    }
}

/// Takes mailboxes of these providers whose subscription is to be looked after. Nobody else takes them for `lease`.
pub async fn take_due(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    providers: &[&str],
    limit: i64,
    lease: Duration,
) -> Result<Vec<Due>> {
    Ok(sqlx::query_as(include_str!("../sql/subscription_take.sql"))
        .bind(at)
        .bind(providers)
        .bind(limit)
        .bind(lease.as_secs_f64())
        .fetch_all(conn)
        .await?)
}

/// Sets the secret of a mailbox that has none, and returns the one that it has.
pub async fn keep_client_state(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: SourceId,
    new: &Secret,
) -> Result<Option<Secret>> {
    let kept: Option<Option<String>> = sqlx::query_scalar(
        "update public.connected_sources set webhook_client_state = coalesce(webhook_client_state, $3)
         where tenant_id = $1 and id = $2 returning webhook_client_state",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(new.reveal())
    .fetch_optional(conn)
    .await?;
    Ok(kept.flatten().map(Secret::new))
}

/// Stores a subscription that was made or renewed, and when it is renewed next. False: the source is no longer synced, and nothing was stored.
pub async fn store(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: SourceId,
    subscription_id: Option<&str>,
    expires_at: DateTime<Utc>,
    due_at: DateTime<Utc>,
) -> Result<bool> {
    let stored = sqlx::query(
        "update public.connected_sources
         set provider_subscription_id = $4, subscription_expires_at = $5, subscription_due_at = $6, subscription_failures = 0,
             subscription_trouble = null, status_at = case when status = 'subscription_expired' then coalesce($3, now()) else status_at end,
             status_message = case when status = 'subscription_expired' then null else status_message end,
             status = case when status = 'subscription_expired' then 'active' else status end
         where tenant_id = $1 and id = $2 and status in ('active', 'provider_error', 'subscription_expired')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(at)
    .bind(subscription_id)
    .bind(expires_at)
    .bind(due_at)
    .execute(conn)
    .await?;
    Ok(stored.rows_affected() == 1)
}

/// Records a failed try, with a code, and when the next one is due.
pub async fn fail(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: SourceId,
    trouble: &str,
    due_at: DateTime<Utc>,
) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set subscription_failures = subscription_failures + 1, subscription_trouble = left($3, 200),
             subscription_due_at = $4 where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(trouble)
    .bind(due_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Puts the next look at a mailbox's subscription off, or brings it forward (none: now).
pub async fn set_due(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: SourceId,
    due_at: Option<DateTime<Utc>>,
) -> Result<()> {
    sqlx::query("update public.connected_sources set subscription_due_at = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(due_at)
        .execute(conn)
        .await?;
    Ok(())
}

/// Records that a mailbox has no subscription any more: another one is made at once. The mailbox is polled until then. With `only`, no other
/// subscription than this one is meant. False: there was none.
pub async fn lose(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: SourceId,
    only: Option<&str>,
) -> Result<bool> {
    let lost = sqlx::query(
        "update public.connected_sources
         set provider_subscription_id = null, subscription_expires_at = null, subscription_due_at = null, subscription_trouble = 'removed',
             status_at = case when status = 'active' then coalesce($3, now()) else status_at end,
             status_message = case when status = 'active' then 'removed' else status_message end,
             next_sync_at = least(next_sync_at, coalesce($3, now()) + sync_every),
             status = case when status = 'active' then 'subscription_expired' else status end
         where tenant_id = $1 and id = $2 and subscription_expires_at is not null and ($4::text is null or provider_subscription_id = $4)",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(at)
    .bind(only)
    .execute(conn)
    .await?;
    Ok(lost.rows_affected() == 1)
}

/// Forgets the subscription of a source that is let go. Its secret stays, for a subscription that could not be removed at the provider.
pub async fn forget(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set provider_subscription_id = null, subscription_expires_at = null, subscription_due_at = null,
             subscription_failures = 0, subscription_trouble = null where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// The tenant's sources whose provider tells of changes, up to a number.
pub async fn of_tenant(conn: &mut PgConnection, tenant_id: TenantId, limit: i64) -> Result<Vec<SourceId>> {
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "select id from public.connected_sources where tenant_id = $1 and subscription_expires_at is not null order by id limit $2",
    )
    .bind(tenant_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    Ok(ids.into_iter().map(SourceId).collect())
}

/// Brings forward the look at the subscriptions of the other sources of an account that is let go, in any tenant, and returns how many there are. Its
/// provider may have told of the account only once.
pub async fn look_at_others(conn: &mut PgConnection, provider: &str, account: &str, but: SourceId) -> Result<u64> {
    let others = sqlx::query(
        "update public.connected_sources set subscription_due_at = null
         where provider = $1 and account = $2 and id <> $3 and status in ('active', 'provider_error', 'subscription_expired')",
    )
    .bind(provider)
    .bind(account)
    .bind(but.0)
    .execute(conn)
    .await?;
    Ok(others.rows_affected())
}

/// Marks mailboxes of these providers whose subscription has ended or could not be made, and returns them.
pub async fn mark_lapsed(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    providers: &[&str],
) -> Result<Vec<Mailbox>> {
    let lapsed: Vec<(Uuid, Uuid)> =
        sqlx::query_as(include_str!("../sql/subscription_lapse.sql")).bind(at).bind(providers).fetch_all(conn).await?;
    Ok(lapsed.into_iter().map(|(tenant_id, id)| (TenantId(tenant_id), SourceId(id))).collect())
}

/// Returns mailboxes of these providers to active that miss a subscription which is no longer to be made, and returns how many.
pub async fn unmark(conn: &mut PgConnection, at: Option<DateTime<Utc>>, providers: &[&str]) -> Result<u64> {
    let unmarked = sqlx::query(
        "update public.connected_sources set status = 'active', status_message = null, status_at = coalesce($1, now()),
             subscription_failures = 0, subscription_trouble = null
         where provider = any($2) and status = 'subscription_expired'",
    )
    .bind(at)
    .bind(providers)
    .execute(conn)
    .await?;
    Ok(unmarked.rows_affected())
}
