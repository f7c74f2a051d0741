//! Days of a mailbox, as counted there and here (table `mailbox_checks`).

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use domain::mail::check::{CheckState, Compared, Known, MOST_NAMED, Suspects};
use domain::{SourceId, TenantId};
use sqlx::PgConnection;
use sqlx::postgres::PgArguments;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Error, Result};

/// Letters that one look-up asks for.
const LOOKED_UP: usize = 5_000;

/// One day of a mailbox.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Check {
    /// UTC.
    pub day: NaiveDate,
    #[sqlx(try_from = "String")]
    pub state: CheckState,
    /// Somebody waits for it to be counted.
    pub asked_at: Option<DateTime<Utc>>,
    pub checked_at: Option<DateTime<Utc>>,
    pub n_provider: i32,
    pub n_stored: i32,
    /// By the rule that left them out.
    #[sqlx(json)]
    pub skipped: BTreeMap<String, i64>,
    pub n_skipped: i32,
    pub n_kept_out: i32,
    pub n_failed: i32,
    pub n_waiting: i32,
    pub n_leaving: i32,
    pub n_not_read: i32,
    pub n_missing: i32,
    pub n_surplus: i32,
    /// External ids; at most a thousand.
    pub missing: Vec<String>,
    pub surplus: Vec<String>,
    /// Why it could not be counted.
    pub note: Option<String>,
    #[sqlx(json(nullable))]
    pub suspects: Option<Pending>,
}

/// Differences of a day that a sync is to settle.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pending {
    #[serde(flatten)]
    pub suspects: Suspects,
    /// The newest job that had begun when the letters were counted. A later one settles them.
    pub after_job: Option<Uuid>,
}

const COLUMNS: &str = "day, state, asked_at, checked_at, n_provider, n_stored, skipped, n_skipped, n_kept_out, n_failed, n_waiting, n_leaving, n_not_read,
    n_missing, n_surplus, missing, surplus, note, suspects";

/// Asks for days to be counted. A day that somebody has asked for already stays as it is.
pub async fn ask(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    days: &[NaiveDate],
    by: &str,
) -> Result<()> {
    sqlx::query(
        "insert into public.mailbox_checks as c (tenant_id, source_id, day, asked_at, asked_by)
         select $1, $2, d.day, coalesce($5, now()), left($4, 100) from unnest($3::date[]) d (day)
         on conflict (source_id, day) do update set asked_at = excluded.asked_at, asked_by = excluded.asked_by where c.asked_at is null",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(days)
    .bind(by)
    .bind(at)
    .execute(conn)
    .await?;
    Ok(())
}

/// The days of a mailbox that somebody waits for, the newest first.
pub async fn asked(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Vec<Check>> {
    let sql = format!(
        "select {COLUMNS} from public.mailbox_checks where tenant_id = $1 and source_id = $2 and asked_at is not null order by day desc"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(source_id.0).fetch_all(conn).await?)
}

/// The newest days of a mailbox, the newest first; only those that differ, if `is_red`.
pub async fn list(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    is_red: bool,
    limit: i64,
) -> Result<Vec<Check>> {
    let sql = format!(
        "select {COLUMNS} from public.mailbox_checks
         where tenant_id = $1 and source_id = $2 and (not $3 or state = 'differs') order by day desc limit $4"
    );
    let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(source_id.0);
    Ok(query.bind(is_red).bind(limit).fetch_all(conn).await?)
}

pub async fn get(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    day: NaiveDate,
) -> Result<Option<Check>> {
    let sql =
        format!("select {COLUMNS} from public.mailbox_checks where tenant_id = $1 and source_id = $2 and day = $3");
    let query = sqlx::query_as(sqlx::AssertSqlSafe(sql)).bind(tenant_id.0).bind(source_id.0);
    Ok(query.bind(day).fetch_optional(conn).await?)
}

/// The traces here of these letters, by external id. A letter of which nothing is known is not among them.
pub async fn known(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[&str],
) -> Result<HashMap<String, Known>> {
    let mut known = HashMap::new();
    for ids in external_ids.chunks(LOOKED_UP) {
        let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(include_str!("../sql/checks_known.sql"))
            .bind(tenant_id.0)
            .bind(source_id.0)
            .bind(ids)
            .fetch_all(&mut *conn)
            .await?;
        for (id, word, rule) in rows {
            let is = match (word.as_str(), rule) {
                ("stored", _) => Known::Stored,
                ("kept_out", _) => Known::KeptOut,
                ("failed", _) => Known::Failed,
                ("lost", _) => Known::Lost,
                ("skipped", Some(rule)) => Known::Skipped(rule),
                _ => return Err(Error::Refused { what: format!("{word:?} is no trace of a letter") }),
            };
            known.insert(id, is);
        }
    }
    Ok(known)
}

/// The letters of a mailbox that are stored and came in from `from` until before `to`.
pub async fn stored(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    document_type: &str,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<Vec<String>> {
    // By the index source_documents_time_idx.
    Ok(sqlx::query_scalar(
        "select d.external_id from public.source_documents d
         where d.tenant_id = $1 and d.source_id = $2 and d.document_type = $3 and d.deleted_at is null and d.source_created_at is not null
             and coalesce(d.source_created_at, d.created_at) >= $4 and coalesce(d.source_created_at, d.created_at) < $5",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(document_type)
    .bind(from)
    .bind(to)
    .fetch_all(conn)
    .await?)
}

/// The newest job of a mailbox that has begun.
pub async fn newest_begun(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Option<Uuid>> {
    let sql = "select id from public.sync_jobs where tenant_id = $1 and source_id = $2 and started_at is not null order by id desc limit 1";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(source_id.0).fetch_optional(conn).await?)
}

/// How far the syncs are that began after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Since {
    /// One that reads everything that changed has come to its end.
    pub is_done: bool,
    pub is_live: bool,
    /// One that reads single letters is to come, or under way.
    pub reads_single: bool,
}

pub async fn sync_since(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    job: Option<Uuid>,
) -> Result<Since> {
    let query = sqlx::query_as(include_str!("../sql/checks_sync_since.sql")).bind(tenant_id.0).bind(source_id.0);
    Ok(query.bind(job).fetch_one(conn).await?)
}

/// Keeps a day's differences until a sync has settled them. The numbers are told as those of a day that is being read.
pub async fn suspect(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    day: NaiveDate,
    pending: &Pending,
    compared: &Compared,
) -> Result<()> {
    let query = sqlx::query(include_str!("../sql/checks_suspect.sql")).bind(at).bind(tenant_id.0).bind(source_id.0);
    numbers(query.bind(day).bind(Json(pending)), compared).execute(conn).await?;
    Ok(())
}

/// Writes a day's outcome.
pub async fn settle(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    day: NaiveDate,
    state: CheckState,
    compared: &Compared,
) -> Result<()> {
    let query = sqlx::query(include_str!("../sql/checks_settle.sql")).bind(at).bind(tenant_id.0).bind(source_id.0);
    let named = |ids: &[String]| ids.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>();
    numbers(query.bind(day).bind(state.as_str()), compared)
        .bind(number(compared.missing.len()))
        .bind(number(compared.surplus.len()))
        .bind(named(&compared.missing))
        .bind(named(&compared.surplus))
        .execute(conn)
        .await?;
    Ok(())
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Postgres, PgArguments>;

fn numbers<'q>(query: Query<'q>, compared: &Compared) -> Query<'q> {
    query
        .bind(number(compared.n_provider))
        .bind(number(compared.n_stored))
        .bind(Json(compared.skipped.clone()))
        .bind(number(compared.n_skipped()))
        .bind(number(compared.n_kept_out))
        .bind(number(compared.n_failed))
        .bind(number(compared.n_waiting))
        .bind(number(compared.n_leaving))
        .bind(number(compared.n_not_read))
}

fn number(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Nobody waits for these days any more, which could not be counted (none: all days that were asked for). A day keeps what was known of it.
pub async fn put_aside(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    day: Option<NaiveDate>,
    why: &str,
) -> Result<()> {
    sqlx::query(
        "update public.mailbox_checks
         set asked_at = null, asked_by = null, suspects = null, note = left($4, 500), state = case when state = 'new' then 'unknown' else state end
         where tenant_id = $1 and source_id = $2 and asked_at is not null and ($3::date is null or day = $3)",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(day)
    .bind(why)
    .execute(conn)
    .await?;
    Ok(())
}

/// A mailbox, and when one of its days was counted or asked for last.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Mailbox {
    pub tenant_id: Uuid,
    pub source_id: Uuid,
    pub last: Option<DateTime<Utc>>,
}

/// The mailboxes of these providers that were read once and are read on, with their state of this day.
pub async fn mailboxes(conn: &mut PgConnection, providers: &[&str], day: NaiveDate) -> Result<Vec<Mailbox>> {
    Ok(sqlx::query_as(
        "select s.tenant_id, s.id as source_id, greatest(c.asked_at, c.checked_at) as last
         from public.connected_sources s left join public.mailbox_checks c on c.source_id = s.id and c.day = $2
         where s.provider = any($1) and s.transport <> 'fixtures' and s.last_successful_sync_at is not null
             and s.status in ('active', 'provider_error', 'subscription_expired') order by s.id",
    )
    .bind(providers)
    .bind(day)
    .fetch_all(conn)
    .await?)
}

/// The newest days of a mailbox whose last comparison did not end with equal numbers, at most `limit`.
pub async fn unsettled(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    limit: i64,
) -> Result<Vec<NaiveDate>> {
    let sql = "select day from public.mailbox_checks
        where tenant_id = $1 and source_id = $2 and state in ('reading', 'differs', 'unknown') order by day desc limit $3";
    Ok(sqlx::query_scalar(sql).bind(tenant_id.0).bind(source_id.0).bind(limit).fetch_all(conn).await?)
}

/// A mailbox some of whose days differ.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Differing {
    pub source_id: Uuid,
    pub provider: String,
    pub n_days: i64,
    pub n_missing: i64,
    pub n_surplus: i64,
}

/// The tenant's mailboxes some of whose days differ. A person has stopped the others' syncs.
pub async fn differing(conn: &mut PgConnection, tenant_id: TenantId) -> Result<Vec<Differing>> {
    Ok(sqlx::query_as(
        "select s.id as source_id, s.provider, count(*) as n_days, sum(c.n_missing)::bigint as n_missing, sum(c.n_surplus)::bigint as n_surplus
         from public.mailbox_checks c join public.connected_sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
         where c.tenant_id = $1 and c.state = 'differs' and s.status not in ('paused', 'disconnected')
         group by s.id, s.provider, s.created_at order by s.created_at, s.id",
    )
    .bind(tenant_id.0)
    .fetch_all(conn)
    .await?)
}

/// Letters that came in before this time were not read. None: there are none of these.
pub async fn read_from(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
) -> Result<Option<DateTime<Utc>>> {
    let sql = "select read_from from public.connected_sources where tenant_id = $1 and id = $2";
    let from: Option<Option<DateTime<Utc>>> =
        sqlx::query_scalar(sql).bind(tenant_id.0).bind(source_id.0).fetch_optional(conn).await?;
    Ok(from.flatten())
}

/// Sets from when on letters were read, once a pass over all of them has come to its end.
pub async fn set_read_from(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    from: Option<DateTime<Utc>>,
) -> Result<()> {
    let sql = "update public.connected_sources set read_from = $3 where tenant_id = $1 and id = $2 and read_from is distinct from $3";
    sqlx::query(sql).bind(tenant_id.0).bind(source_id.0).bind(from).execute(conn).await?;
    Ok(())
}
