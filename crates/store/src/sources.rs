//! Sources: where documents come from (table `connected_sources`). Most of this file is about accounts at providers; channels and the
//! tenant's own source for files and notes are rows of the same table.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{JobId, Notice, Op, SourceId, SourceStatus, TenantId, Transport};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::queue::MOST_COUNTED;
use crate::{OnConstraint as _, Result, Tx};

/// An account at a provider, without its tokens.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Source {
    pub id: Uuid,
    #[serde(skip)]
    pub tenant_id: Uuid,
    pub provider: String,
    pub name: String,
    pub account: Option<String>,
    #[sqlx(try_from = "String")]
    pub status: SourceStatus,
    pub status_message: Option<String>,
    pub status_at: DateTime<Utc>,
    #[sqlx(try_from = "String")]
    pub transport: Transport,
    pub token_expires_at: Option<DateTime<Utc>>,
    #[serde(skip)]
    pub cursors: Option<Value>,
    pub sync_every_secs: f64,
    pub next_sync_at: Option<DateTime<Utc>>,
    pub last_successful_sync_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    /// Until when the provider of a mailbox tells of changes; none while it does not.
    pub subscription_expires_at: Option<DateTime<Utc>>,
    /// The time at which that is renewed or, where it is missing, asked for.
    pub subscription_due_at: Option<DateTime<Utc>>,
    /// A code for why the last try failed.
    pub subscription_trouble: Option<String>,
    #[serde(skip)]
    pub provider_subscription_id: Option<String>,
    pub last_notice_at: Option<DateTime<Utc>>,
    /// Documents that are not deleted.
    pub n_documents: i64,
    /// Records that could not be read and that wait for a decision.
    pub n_failures: i64,
    /// The job that is pending, running or paused.
    pub live_job: Option<Uuid>,
}

/// Any row of `connected_sources`: an account, a channel, or the source for files and notes.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct AnySource {
    pub id: Uuid,
    pub provider: String,
    pub name: String,
    pub created_at: DateTime<Utc>,
}

/// Lists all sources that the caller's transaction may see, oldest first.
pub async fn all(conn: &mut PgConnection) -> Result<Vec<AnySource>> {
    Ok(sqlx::query_as("select id, provider, name, created_at from public.connected_sources order by created_at")
        .fetch_all(conn)
        .await?)
}

/// Returns the tenant's own source for files and notes, made on first use.
pub async fn ensure_manual(conn: &mut PgConnection, tenant_id: TenantId) -> Result<SourceId> {
    let known = "select id from public.connected_sources where tenant_id = $1 and provider = 'manual'";
    if let Some(id) = sqlx::query_scalar(known).bind(tenant_id.0).fetch_optional(&mut *conn).await? {
        return Ok(SourceId(id));
    }
    sqlx::query(
        "insert into public.connected_sources (id, tenant_id, provider, name) values ($1, $2, 'manual', 'Files and notes') on conflict do nothing",
    )
    .bind(SourceId::new().0)
    .bind(tenant_id.0)
    .execute(&mut *conn)
    .await?;
    Ok(SourceId(sqlx::query_scalar(known).bind(tenant_id.0).fetch_one(conn).await?))
}

/// A source to be added.
#[derive(Debug)]
pub struct NewSource<'a> {
    /// The provider's name.
    pub provider: &'a str,
    pub name: &'a str,
    pub account: &'a str,
    pub transport: Transport,
    pub scopes: &'a [String],
}

/// Adds a source. A conflict when the account is connected already.
pub async fn insert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    new: &NewSource<'_>,
) -> Result<SourceId> {
    let id = SourceId::new();
    sqlx::query(
        "insert into public.connected_sources (id, tenant_id, provider, name, account, transport, scopes, created_at, status_at)
         values ($1, $2, $3, $4, $5, $6, $7, coalesce($8, now()), coalesce($8, now()))",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(new.provider)
    .bind(new.name)
    .bind(new.account)
    .bind(new.transport.as_str())
    .bind(new.scopes)
    .bind(at)
    .execute(conn)
    .await
    .on_constraint("connected_sources_account_key", "this account is connected already")?;
    Ok(id)
}

/// Lists accounts at providers, oldest first, or only one: those that the transaction's row security allows, of this tenant.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, only: Option<SourceId>) -> Result<Vec<Source>> {
    select(conn, tenant_id, only, true, None).await
}

/// The same for pages, which look every few seconds: documents and failures are counted up to [`MOST_COUNTED`], which means "at least".
pub async fn list_for_page(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    only: Option<SourceId>,
) -> Result<Vec<Source>> {
    select(conn, tenant_id, only, true, Some(MOST_COUNTED)).await
}

async fn select(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    only: Option<SourceId>,
    is_counted: bool,
    most: Option<i64>,
) -> Result<Vec<Source>> {
    Ok(sqlx::query_as(include_str!("sql/sources_list.sql"))
        .bind(tenant_id.0)
        .bind(only.map(|id| id.0))
        .bind(is_counted)
        .bind(most)
        .fetch_all(conn)
        .await?)
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId) -> Result<Option<Source>> {
    Ok(list(conn, tenant_id, Some(id)).await?.pop())
}

/// Reads a source without counting its documents and failures: those numbers are 0.
pub async fn load(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId) -> Result<Option<Source>> {
    Ok(select(conn, tenant_id, Some(id), false, None).await?.pop())
}

/// Finds the source of an account: the connected one, else the newest disconnected one. One that is being forgotten does not count.
pub async fn of_account(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    provider: &str,
    account: &str,
) -> Result<Option<SourceId>> {
    let id: Option<Uuid> = sqlx::query_scalar(
        "select s.id from public.connected_sources s
         where s.tenant_id = $1 and s.provider = $2 and s.account = $3
             and not exists (select from pgmq.q_forget q where q.message ->> 'source_id' = s.id::text)
         order by s.status = 'disconnected', s.created_at desc limit 1",
    )
    .bind(tenant_id.0)
    .bind(provider)
    .bind(account)
    .fetch_optional(conn)
    .await?;
    Ok(id.map(SourceId))
}

/// Sets transport and scopes of a source that was connected again. Another transport has other cursors, so these are dropped.
pub async fn set_access(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: SourceId,
    transport: Transport,
    scopes: &[String],
) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set scopes = $4, transport = $3, cursors = case when transport = $3 then cursors end
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(transport.as_str())
    .bind(scopes)
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets a source's status; `false` when it was so already. Pages are notified after the commit.
pub async fn set_status(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: SourceId,
    status: SourceStatus,
    message: Option<&str>,
) -> Result<bool> {
    let set = sqlx::query(
        "update public.connected_sources set status = $3, status_message = $4, status_at = coalesce($5, now())
         where tenant_id = $1 and id = $2 and (status, status_message) is distinct from ($3, $4)",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(status.as_str())
    .bind(message)
    .bind(at)
    .execute(&mut **tx)
    .await
    .on_constraint("connected_sources_account_key", "this account is connected already, as another source")?;
    tx.notify(changed(tenant_id, id));
    Ok(set.rows_affected() == 1)
}

/// Marks a source as refused by its provider, with a code for why. Does nothing if a person has paused or disconnected it since.
pub async fn set_refused(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: SourceId,
    message: &str,
) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set status = 'provider_error', status_message = $3, status_at = coalesce($4, now())
         where tenant_id = $1 and id = $2 and status in ('active', 'provider_error', 'subscription_expired')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(message)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    tx.notify(changed(tenant_id, id));
    Ok(())
}

/// Reads a source's status and locks the row: status and tokens stay as they are until the transaction ends.
pub async fn locked_status(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId) -> Result<Option<SourceStatus>> {
    let sql = "select status from public.connected_sources where tenant_id = $1 and id = $2 for no key update";
    let status: Option<String> = sqlx::query_scalar(sql).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?;
    status.map(crate::word).transpose()
}

/// A source that needs a person.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Unwell {
    pub id: Uuid,
    pub provider: String,
    #[sqlx(try_from = "String")]
    pub status: SourceStatus,
    pub status_message: Option<String>,
}

/// Lists the tenant's sources that do not continue by themselves; not those that a person stopped. A mailbox that is polled because its subscription
/// is gone is one after an hour: until then another one is being made.
pub async fn unwell(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Unwell>> {
    Ok(sqlx::query_as(
        "select id, provider, status, status_message from public.connected_sources
         where tenant_id = $1 and status not in ('active', 'paused', 'disconnected')
             and (status <> 'subscription_expired' or status_at < now() - interval '1 hour') order by created_at, id",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}

/// Whether it may be synced.
pub async fn is_synced(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "select exists (select from public.connected_sources
             where tenant_id = $1 and id = $2 and status not in ('paused', 'disconnected'))",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_one(conn)
    .await?)
}

/// Sets when it is synced next; `None` means not by itself.
pub async fn set_next_sync(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: SourceId,
    next: Option<DateTime<Utc>>,
) -> Result<()> {
    sqlx::query("update public.connected_sources set next_sync_at = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(next)
        .execute(conn)
        .await?;
    Ok(())
}

/// Sets how often it is synced by itself; at least a minute.
pub async fn set_sync_every(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId, every: Duration) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set sync_every = make_interval(secs => greatest($3, 60)),
             next_sync_at = case when next_sync_at is not null then least(next_sync_at, now() + make_interval(secs => greatest($3, 60))) end
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(every.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Records that a pass has ended. The next delta starts from its cursors.
pub async fn finish_pass(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: SourceId,
    cursors: Option<&Value>,
) -> Result<()> {
    sqlx::query(
        "update public.connected_sources set cursors = $3, last_successful_sync_at = coalesce($4, now()),
             status = case when status = 'provider_error' then 'active' else status end,
             status_message = case when status = 'provider_error' then null else status_message end
         where tenant_id = $1 and id = $2",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(cursors)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// A source that is due for a sync.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Due {
    pub tenant_id: Uuid,
    pub id: Uuid,
}

/// Locks one source that is due. The caller sets its next time.
pub async fn take_due(conn: &mut PgConnection, at: Option<DateTime<Utc>>) -> Result<Option<Due>> {
    Ok(sqlx::query_as(
        "select s.tenant_id, s.id from public.connected_sources s
         where s.status in ('active', 'provider_error', 'subscription_expired') and s.next_sync_at <= coalesce($1, now())
         order by s.next_sync_at limit 1 for no key update of s skip locked",
    )
    .bind(at)
    .fetch_optional(conn)
    .await?)
}

/// An event in the life of a source, in words.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Event {
    pub id: Uuid,
    pub job_id: Option<Uuid>,
    pub tone: String,
    pub what: String,
    pub at: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Info,
    Trouble,
}

impl Tone {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Info => "info",
            Self::Trouble => "trouble",
        }
    }
}

/// Records an event. The same text within a minute is recorded once.
pub async fn tell(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: SourceId,
    job_id: Option<JobId>,
    tone: Tone,
    what: &str,
) -> Result<()> {
    sqlx::query(
        "insert into public.source_events (id, tenant_id, source_id, job_id, tone, what, at)
         select $1, $2, $3, $4, $5, left($6, 500), coalesce($7, now())
         where not exists (select from public.source_events e where e.tenant_id = $2 and e.source_id = $3 and e.what = left($6, 500)
             and e.at > coalesce($7, now()) - interval '1 minute')",
    )
    .bind(Uuid::now_v7())
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(job_id.map(|id| id.0))
    .bind(tone.as_str())
    .bind(what)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    tx.notify(changed(tenant_id, id));
    Ok(())
}

/// Lists a source's events, newest first.
pub async fn events(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    limit: i64,
) -> Result<Vec<Event>> {
    Ok(sqlx::query_as(
        "select id, job_id, tone, what, at from public.source_events
         where tenant_id = $1 and source_id = $2 order by id desc limit $3",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Counts a source's documents by type.
pub async fn counts(conn: &mut PgConnection, tenant_id: TenantId, id: SourceId) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "select document_type, count(*) from public.source_documents
         where tenant_id = $1 and source_id = $2 and deleted_at is null group by 1 order by 1",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_all(conn)
    .await?)
}

/// The notice that makes pages load the source again.
pub fn changed(tenant_id: TenantId, id: SourceId) -> Notice {
    Notice { tenant_id: Some(tenant_id), kind: "sources".into(), id: id.to_string(), op: Op::Update, ids: Vec::new() }
}
