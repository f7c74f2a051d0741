//! Mailboxes of which something was heard that no sync has read yet (table `pending_syncs`). Its row says what its sync's message says: the
//! sync writes both in one commit.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{JobId, JobKind, SourceId, TenantId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A mailbox, by its two ids.
pub type Mailbox = (TenantId, SourceId);

/// A row, after something was heard.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Heard {
    pub tenant_id: Uuid,
    pub source_id: Uuid,
    /// Nothing had been heard before that is not read yet.
    pub is_new: bool,
}

impl Heard {
    pub fn mailbox(self) -> Mailbox {
        (TenantId(self.tenant_id), SourceId(self.source_id))
    }
}

/// Notes that something was heard of these mailboxes, each named once. A new row waits until `rest` has passed since the mailbox was last read,
/// and for `pace` from now. A mailbox that is not synced has no row: all of it is read when somebody resumes it.
pub async fn hear(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    mailboxes: &[Mailbox],
    rest: Duration,
    pace: Duration,
) -> Result<Vec<Heard>> {
    let (tenants, sources) = columns(mailboxes);
    Ok(sqlx::query_as(include_str!("../sql/pending_hear.sql"))
        .bind(tenants)
        .bind(sources)
        .bind(at)
        .bind(rest.as_secs_f64())
        .bind(pace.as_secs_f64())
        .fetch_all(conn)
        .await?)
}

fn columns(mailboxes: &[Mailbox]) -> (Vec<Uuid>, Vec<Uuid>) {
    mailboxes.iter().map(|(tenant_id, source_id)| (tenant_id.0, source_id.0)).unzip()
}

/// Adds a job for each of these mailboxes that has no live one, and returns those that were added. Their messages are the caller's to send, in
/// the same transaction.
pub async fn start(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    mailboxes: &[Mailbox],
    kind: JobKind,
    by: &str,
) -> Result<Vec<(Mailbox, JobId)>> {
    let (tenants, sources) = columns(mailboxes);
    let ids: Vec<Uuid> = mailboxes.iter().map(|_| JobId::new().0).collect();
    let started: Vec<(Uuid, Uuid, Uuid)> = sqlx::query_as(
        "insert into public.sync_jobs (id, tenant_id, source_id, kind, requested_by, created_at, updated_at)
         select id, tenant_id, source_id, $4, $5, coalesce($6, now()), coalesce($6, now())
         from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as wanted (id, tenant_id, source_id) order by source_id
         on conflict do nothing returning tenant_id, source_id, id",
    )
    .bind(ids)
    .bind(tenants)
    .bind(sources)
    .bind(kind.as_str())
    .bind(by)
    .bind(at)
    .fetch_all(conn)
    .await?;
    let named = |(tenant_id, source_id, id)| ((TenantId(tenant_id), SourceId(source_id)), JobId(id));
    Ok(started.into_iter().map(named).collect())
}

/// Lists mailboxes of which something was heard and that no sync is to read.
pub async fn due(conn: &mut PgConnection, at: Option<DateTime<Utc>>, limit: i64) -> Result<Vec<Mailbox>> {
    let due: Vec<(Uuid, Uuid)> =
        sqlx::query_as(include_str!("../sql/pending_due.sql")).bind(at).bind(limit).fetch_all(conn).await?;
    Ok(due.into_iter().map(|(tenant_id, source_id)| (TenantId(tenant_id), SourceId(source_id))).collect())
}

/// The time for which a mailbox that was read rests; none if it does not, or if nothing was heard of it. After a failure it is the message that waits,
/// and whoever makes that one due has it tried at once.
pub async fn left_alone(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
) -> Result<Option<Duration>> {
    let secs: Option<f64> = sqlx::query_scalar(
        "select extract(epoch from not_before - coalesce($3, now()))::float8 from public.pending_syncs
         where tenant_id = $1 and source_id = $2 and status = 'pending' and attempts = 0 and not_before > coalesce($3, now())",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .fetch_optional(conn)
    .await?;
    Ok(secs.and_then(|secs| Duration::try_from_secs_f64(secs).ok()))
}

/// Claims what was heard of a mailbox for its sync, which reads all that changed until now, or until `since` if it goes on where another claim
/// had stopped. `attempt` is the sync's own.
pub async fn claim(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    since: Option<DateTime<Utc>>,
    attempt: i32,
) -> Result<()> {
    sqlx::query(
        "update public.pending_syncs set status = 'processing', attempts = $5, not_before = null,
             claimed_at = coalesce($4, greatest(coalesce($3, now()), requested_at))
         where tenant_id = $1 and source_id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .bind(since)
    .bind(attempt)
    .execute(conn)
    .await?;
    Ok(())
}

/// Gives back what was heard of a mailbox: its sync waits, or has failed with `error`. It is left alone for `wait`.
pub async fn put_back(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    error: Option<&str>,
    wait: Duration,
) -> Result<()> {
    sqlx::query(
        "update public.pending_syncs set status = 'pending', claimed_at = null, last_error = coalesce(left($4, 500), last_error),
             not_before = coalesce($3, now()) + make_interval(secs => nullif($5::float8, 0))
         where tenant_id = $1 and source_id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .bind(error)
    .bind(wait.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Records that a sync has read all that it had claimed. True: something was heard since the claim, so another sync has to follow, after `rest`
/// at the earliest.
pub async fn finish(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    rest: Duration,
) -> Result<bool> {
    sqlx::query(
        "with read as (
             delete from public.pending_syncs where tenant_id = $1 and source_id = $2 and requested_at <= claimed_at returning requested_at)
         update public.connected_sources s set last_notice_at = greatest(s.last_notice_at, read.requested_at)
         from read where s.tenant_id = $1 and s.id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .execute(&mut *conn)
    .await?;
    let again = sqlx::query(
        "update public.pending_syncs set status = 'pending', claimed_at = null, attempts = 0, last_error = null,
             not_before = coalesce($3, now()) + make_interval(secs => nullif($4::float8, 0))
         where tenant_id = $1 and source_id = $2 and status = 'processing'",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(at)
    .bind(rest.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(again.rows_affected() == 1)
}

/// Forgets what was heard of a mailbox that is no longer read.
pub async fn forget(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<()> {
    sqlx::query("delete from public.pending_syncs where tenant_id = $1 and source_id = $2")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// A mailbox's row, as it is.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Pending {
    pub status: String,
    pub claimed_at: Option<DateTime<Utc>>,
    pub attempts: i32,
    pub last_error: Option<String>,
    pub requested_at: DateTime<Utc>,
    pub not_before: Option<DateTime<Utc>>,
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Option<Pending>> {
    Ok(sqlx::query_as(
        "select status, claimed_at, attempts, last_error, requested_at, not_before from public.pending_syncs
         where tenant_id = $1 and source_id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .fetch_optional(conn)
    .await?)
}
