//! Jobs: one run of work on a source each (table `sync_jobs`). A job's message in `ingestion_queue` says that there is work; its row says
//! where it stands, and is written in the commits of the work itself.

use chrono::{DateTime, Utc};
use domain::{ItemId, JobId, JobKind, JobStatus, Notice, Op, ParkedId, SourceId, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::spend::{Spent, per_thousand};
use crate::{Result, Tx, bites};

/// The number of problems that a job stores.
const MOST_DETAILS: i32 = 50;

#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct Job {
    pub id: Uuid,
    #[serde(skip)]
    pub tenant_id: Uuid,
    pub source_id: Uuid,
    pub source_name: String,
    pub source_provider: String,
    #[sqlx(try_from = "String")]
    pub kind: JobKind,
    #[sqlx(try_from = "String")]
    pub status: JobStatus,
    pub requested_by: String,
    pub step: Option<String>,
    pub note: Option<String>,
    pub items_processed: i64,
    pub items_failed: i64,
    pub items_total: Option<i64>,
    pub n_created: i64,
    pub n_updated: i64,
    pub n_unchanged: i64,
    pub n_deleted: i64,
    pub n_kept_out: i64,
    #[serde(skip)]
    pub checkpoint_data: Value,
    pub error_message: Option<String>,
    pub error_details: Value,
    pub error_count: i32,
    pub embed_calls: i64,
    pub embed_texts: i64,
    pub embed_tokens: i64,
    pub cost_micros: i64,
    pub last_heartbeat: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Adds a pending job; a conflict when the source has a live one. Its message is the caller's to send, in the same transaction.
pub async fn insert(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    kind: JobKind,
    requested_by: &str,
    checkpoint: &Value,
) -> Result<Option<JobId>> {
    let id = JobId::new();
    let inserted = sqlx::query(
        "insert into public.sync_jobs (id, tenant_id, source_id, kind, requested_by, checkpoint_data, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, coalesce($7, now()), coalesce($7, now()))
         on conflict do nothing",
    )
    .bind(id.0)
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(kind.as_str())
    .bind(requested_by)
    .bind(checkpoint)
    .bind(at)
    .execute(conn)
    .await?;
    Ok((inserted.rows_affected() == 1).then_some(id))
}

/// A sync that was asked for while another one was under way: a job-to-be with its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedAgain {
    pub id: JobId,
    pub kind: JobKind,
    pub by: String,
    /// Just these records; the whole source when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
}

/// Locks a job and returns the syncs that run after it; none when it is over or paused.
pub async fn lock_asked_again(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    id: JobId,
) -> Result<Option<Vec<AskedAgain>>> {
    let asked: Option<Option<Json<Vec<AskedAgain>>>> = sqlx::query_scalar(
        "select asked_again from public.sync_jobs where tenant_id = $1 and id = $2 and status in ('pending', 'running') for update",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .fetch_optional(conn)
    .await?;
    Ok(asked.map(|asked| asked.map(|Json(asked)| asked).unwrap_or_default()))
}

/// Sets the syncs that run after a job, in order. They start in the commit that ends it.
pub async fn ask_again(tx: &mut Tx, tenant_id: TenantId, id: JobId, asked: &[AskedAgain]) -> Result<()> {
    sqlx::query("update public.sync_jobs set asked_again = $3 where tenant_id = $1 and id = $2")
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(Json(asked))
        .execute(&mut **tx)
        .await?;
    tx.notify(changed(tenant_id, id));
    Ok(())
}

/// Selects the jobs of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    pub only: Option<JobId>,
    pub source_id: Option<SourceId>,
    pub status: Option<JobStatus>,
    /// Only older ones than this.
    pub before: Option<JobId>,
    pub limit: i64,
}

/// The tenant's jobs, the newest first.
pub async fn list(conn: &mut PgConnection, tenant_id: TenantId, filter: Filter) -> Result<Vec<Job>> {
    Ok(sqlx::query_as(include_str!("sql/jobs_list.sql"))
        .bind(tenant_id.0)
        .bind(filter.only.map(|id| id.0))
        .bind(filter.source_id.map(|id| id.0))
        .bind(filter.status.map(JobStatus::as_str))
        .bind(filter.before.map(|id| id.0))
        .bind(filter.limit)
        .fetch_all(conn)
        .await?)
}

pub async fn get(conn: &mut PgConnection, tenant_id: TenantId, id: JobId) -> Result<Option<Job>> {
    Ok(list(conn, tenant_id, Filter { only: Some(id), limit: 1, ..Filter::default() }).await?.pop())
}

/// A source that is well but whose last job failed.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct GivenUp {
    pub job_id: Uuid,
    pub provider: String,
}

pub async fn given_up(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<GivenUp>> {
    Ok(sqlx::query_as(
        "select j.id as job_id, s.provider from public.connected_sources s
         cross join lateral (select id, status from public.sync_jobs j where j.tenant_id = s.tenant_id and j.source_id = s.id
             order by id desc limit 1) j
         where s.tenant_id = $1 and s.status = 'active' and j.status = 'failed' order by s.created_at, s.id",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}

/// The source's live job that is no backfill.
pub async fn live(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Option<JobId>> {
    let id: Option<Uuid> = sqlx::query_scalar(
        "select id from public.sync_jobs where tenant_id = $1 and source_id = $2 and kind <> 'backfill'
             and status in ('pending', 'running', 'paused')",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .fetch_optional(conn)
    .await?;
    Ok(id.map(JobId))
}

/// Whether a full pass of the source came to its end since then, or was given up.
pub async fn has_full_since(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    since: DateTime<Utc>,
) -> Result<bool> {
    let sql = "select exists (select from public.sync_jobs
                   where tenant_id = $1 and source_id = $2 and kind = 'full' and coalesce(finished_at, created_at) > $3)";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(source_id.0).bind(since).fetch_one(conn).await?)
}

/// Whether a job has met no record at all.
pub async fn is_empty(conn: &mut PgConnection, tenant_id: TenantId, id: JobId) -> Result<bool> {
    let sql = "select items_processed + items_failed = 0 from public.sync_jobs where tenant_id = $1 and id = $2";
    let is_empty: Option<bool> = sqlx::query_scalar(sql).bind(tenant_id.0).bind(id.0).fetch_optional(conn).await?;
    Ok(is_empty == Some(true))
}

/// Marks a job as running, with its present step. `false`: it is over, or a person stopped it.
pub async fn begin(tx: &mut Tx, at: Option<DateTime<Utc>>, tenant_id: TenantId, id: JobId, step: &str) -> Result<bool> {
    let begun = sqlx::query(
        "update public.sync_jobs set status = 'running', step = $3, started_at = coalesce(started_at, $4, now()),
             last_heartbeat = coalesce($4, now()), updated_at = coalesce($4, now())
         where tenant_id = $1 and id = $2 and status in ('pending', 'running')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(step)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    tx.notify(changed(tenant_id, id));
    Ok(begun.rows_affected() == 1)
}

/// The counts that one page adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub created: i64,
    pub updated: i64,
    pub unchanged: i64,
    pub deleted: i64,
    /// Records whose documents a person has deleted.
    pub kept_out: i64,
    pub failed: i64,
    pub spent: Spent,
}

/// Moves a job on in the commit of its page. `kind` changes when a delta has to become a full pass.
#[expect(clippy::too_many_arguments, reason = "one statement, written in one place")]
pub async fn advance(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: JobId,
    kind: JobKind,
    checkpoint: &Value,
    step: &str,
    note: Option<&str>,
    added: &Progress,
) -> Result<bool> {
    let moved = sqlx::query(include_str!("sql/job_advance.sql"))
        .bind(tenant_id.0)
        .bind(id.0)
        .bind(kind.as_str())
        .bind(checkpoint)
        .bind(step)
        .bind(note)
        .bind(added.created)
        .bind(added.updated)
        .bind(added.unchanged)
        .bind(added.deleted)
        .bind(added.failed)
        .bind(added.spent.calls)
        .bind(added.spent.texts)
        .bind(added.spent.tokens)
        .bind(added.spent.cost_micros)
        .bind(at)
        .bind(added.kept_out)
        .execute(&mut **tx)
        .await?;
    tx.notify(changed(tenant_id, id));
    Ok(moved.rows_affected() == 1)
}

/// Ends a job well, or as a person wished; `false` when it was over already. What it met is not needed any more, nor, once one came to its
/// end, what earlier ones of the source met that failed.
pub async fn end(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: JobId,
    status: JobStatus,
    error: Option<&str>,
) -> Result<bool> {
    let ended = sqlx::query(
        "update public.sync_jobs set status = $3, step = null, error_message = $4, finished_at = coalesce($5, now()), updated_at = coalesce($5, now())
         where tenant_id = $1 and id = $2 and status in ('pending', 'running', 'paused')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(status.as_str())
    .bind(error)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "delete from tributary.sync_seen where ctid = any (array(
             select s.ctid from public.sync_jobs j join public.sync_jobs o on o.tenant_id = j.tenant_id and o.source_id = j.source_id
             join tributary.sync_seen s on s.tenant_id = o.tenant_id and s.job_id = o.id
             where j.tenant_id = $1 and j.id = $2 and (o.id = j.id or ($3 = 'completed' and o.status = 'failed'))
             limit 10000)) -- of a very long pass the rest goes with retention",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(status.as_str())
    .execute(&mut **tx)
    .await?;
    tx.notify(changed(tenant_id, id));
    Ok(ended.rows_affected() == 1)
}

/// A live job stops where it is: it has no message any more, and goes on from its checkpoint when it is sent again.
pub async fn pause(tx: &mut Tx, at: Option<DateTime<Utc>>, tenant_id: TenantId, id: JobId, why: &str) -> Result<bool> {
    let paused = sqlx::query(
        "update public.sync_jobs set status = 'paused', step = $3, updated_at = coalesce($4, now())
         where tenant_id = $1 and id = $2 and status in ('pending', 'running')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(why)
    .bind(at)
    .execute(&mut **tx)
    .await?;
    tx.notify(changed(tenant_id, id));
    Ok(paused.rows_affected() == 1)
}

/// Records why a job does not go on now. `is_failure`: an attempt was used up by it.
pub async fn trouble(
    tx: &mut Tx,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    id: JobId,
    kind: &str,
    what: &str,
    is_failure: bool,
) -> Result<()> {
    let detail = json!({ "at": at.unwrap_or_else(Utc::now), "kind": kind, "what": what });
    sqlx::query(
        "update public.sync_jobs
         set status = 'pending', step = $3, error_count = error_count + $5::int, items_failed = items_failed + $5::int, updated_at = coalesce($6, now()),
             error_details = case when jsonb_array_length(error_details) >= $7 then (error_details - 0) else error_details end || $4
         where tenant_id = $1 and id = $2 and status in ('pending', 'running')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(what)
    .bind(detail)
    .bind(i32::from(is_failure))
    .bind(at)
    .bind(MOST_DETAILS)
    .execute(&mut **tx)
    .await?;
    tx.notify(changed(tenant_id, id));
    Ok(())
}

/// Sets the code a job will have failed with when its message is archived, unless it is for too many attempts.
pub async fn fail_with(conn: &mut PgConnection, tenant_id: TenantId, id: JobId, code: &str) -> Result<()> {
    sqlx::query(
        "update public.sync_jobs set error_message = $3 where tenant_id = $1 and id = $2 and status in ('pending', 'running')",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(code)
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes the records that a full pass has met.
pub async fn note_seen(conn: &mut PgConnection, tenant_id: TenantId, id: JobId, external_ids: &[&str]) -> Result<()> {
    sqlx::query(
        "insert into tributary.sync_seen (tenant_id, job_id, external_id) select $1, $2, unnest($3::text[]) on conflict do nothing",
    )
    .bind(tenant_id.0)
    .bind(id.0)
    .bind(external_ids)
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets up to `limit` of the records that a full pass has met, when it begins from the start. Returns how many.
pub async fn forget_seen(conn: &mut PgConnection, tenant_id: TenantId, id: JobId, limit: i64) -> Result<u64> {
    let sql = AssertSqlSafe(bites::delete("tributary.sync_seen", "t.tenant_id = $1 and t.job_id = $2"));
    Ok(sqlx::query(sql).bind(tenant_id.0).bind(id.0).bind(limit).execute(conn).await?.rows_affected())
}

/// Documents of these types that a full pass did not meet, after `after` in the order of their names.
pub async fn unseen(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    id: JobId,
    types: &[&str],
    after: &str,
    limit: i64,
) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar(
        "select d.external_id from public.source_documents d
         where d.tenant_id = $1 and d.source_id = $2 and d.deleted_at is null and d.document_type = any($4) and d.external_id > $5
             and not exists (select from tributary.sync_seen s where s.job_id = $3 and s.external_id = d.external_id)
         order by d.external_id limit $6",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(id.0)
    .bind(types)
    .bind(after)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// Finds a job's message: in the queue, parked, or in the archive.
pub async fn item(conn: &mut PgConnection, tenant_id: TenantId, id: JobId) -> Result<Option<ItemId>> {
    let found: Option<(Option<i64>, Option<Uuid>)> = sqlx::query_as(include_str!("sql/job_item.sql"))
        .bind(tenant_id.to_string())
        .bind(id.to_string())
        .bind(tenant_id.0)
        .fetch_optional(conn)
        .await?;
    Ok(found.and_then(|(message, parked)| {
        message.map(ItemId::Message).or_else(|| parked.map(|id| ItemId::Parked(ParkedId(id))))
    }))
}

/// The cost of reading a source so far, over its jobs that are still known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct Spend {
    pub embed_calls: i64,
    pub embed_texts: i64,
    pub embed_tokens: i64,
    /// Millionths of a dollar, estimated.
    pub cost_micros: i64,
    /// Documents that were new or had changed: what it was spent on.
    pub documents: i64,
}

impl Spend {
    /// The cost of a thousand documents, in millionths of a dollar; none while there are no documents.
    pub fn per_thousand(&self) -> Option<i64> {
        per_thousand(self.cost_micros, self.documents)
    }
}

impl From<&Job> for Spend {
    fn from(job: &Job) -> Self {
        Self {
            embed_calls: job.embed_calls,
            embed_texts: job.embed_texts,
            embed_tokens: job.embed_tokens,
            cost_micros: job.cost_micros,
            documents: job.n_created + job.n_updated,
        }
    }
}

pub async fn spend(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Spend> {
    Ok(sqlx::query_as(
        "select coalesce(sum(embed_calls), 0)::bigint as embed_calls, coalesce(sum(embed_texts), 0)::bigint as embed_texts,
             coalesce(sum(embed_tokens), 0)::bigint as embed_tokens, coalesce(sum(cost_micros), 0)::bigint as cost_micros,
             coalesce(sum(n_created + n_updated), 0)::bigint as documents
         from public.sync_jobs where tenant_id = $1 and source_id = $2",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .fetch_one(conn)
    .await?)
}

/// Pages look again.
pub fn changed(tenant_id: TenantId, id: JobId) -> Notice {
    Notice { tenant_id: Some(tenant_id), kind: "jobs".into(), id: id.to_string(), op: Op::Update, ids: Vec::new() }
}
