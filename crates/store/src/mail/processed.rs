//! Letters that a sync has dealt with: let in, or left out with the reason.

use chrono::{DateTime, Utc};
use domain::{SourceId, TenantId};
use serde::Serialize;
use serde_json::Value;
use sqlx::PgConnection;

use crate::Result;
use crate::queue::MOST_COUNTED;

/// The reason of letters that came from a contact that was forgotten, or went to it. No rule has this name.
pub const FORGOTTEN: &str = "forgotten";

/// An earlier decision about a letter.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Known {
    /// The provider's own id.
    pub message_id: String,
    /// The name of the rule that left it out.
    pub skip_reason: Option<String>,
    /// A person wants it all the same.
    pub is_let_in: bool,
}

impl Known {
    /// Its contact was forgotten, and nobody has let it in since.
    pub fn is_forgotten(&self) -> bool {
        !self.is_let_in && self.skip_reason.as_deref() == Some(FORGOTTEN)
    }
}

/// Finds the earlier decisions about letters.
pub async fn known(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    message_ids: &[&str],
) -> Result<Vec<Known>> {
    Ok(sqlx::query_as(
        "select message_id, skip_reason, let_in_at is not null as is_let_in from public.processed_messages
         where tenant_id = $1 and source_id = $2 and message_id = any($3)",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(message_ids)
    .fetch_all(conn)
    .await?)
}

/// A letter that was dealt with.
#[derive(Clone, Debug)]
pub struct Processed {
    pub message_id: String,
    /// None: it was let in.
    pub skip_reason: Option<String>,
    /// Its own time where the letter has none.
    pub received_at: DateTime<Utc>,
    /// Kept of a letter that was left out, so that a person can decide.
    pub sender: Option<String>,
    pub subject: Option<String>,
}

/// Marks letters as dealt with, in the order of their ids. A letter that a person let in meanwhile stays so.
pub async fn mark(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    tenant_id: TenantId,
    source_id: SourceId,
    letters: &[Processed],
) -> Result<()> {
    sqlx::query(include_str!("../sql/processed_mark.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(at)
        .bind(letters.iter().map(|letter| letter.message_id.as_str()).collect::<Vec<_>>())
        .bind(letters.iter().map(|letter| letter.skip_reason.as_deref()).collect::<Vec<_>>())
        .bind(letters.iter().map(|letter| letter.received_at).collect::<Vec<_>>())
        .bind(letters.iter().map(|letter| letter.sender.as_deref()).collect::<Vec<_>>())
        .bind(letters.iter().map(|letter| letter.subject.as_deref()).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

/// Counts those of these letters that were forgotten. None of them is forgotten, or let in, until the transaction ends.
pub async fn count_forgotten(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    message_ids: &[&str],
) -> Result<usize> {
    let held: Vec<bool> = sqlx::query_scalar(
        "select coalesce(skip_reason = $4 and let_in_at is null, false) from public.processed_messages
         where tenant_id = $1 and source_id = $2 and message_id = any($3) order by message_id for update",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(message_ids)
    .bind(FORGOTTEN)
    .fetch_all(conn)
    .await?;
    Ok(held.into_iter().filter(|is_forgotten| *is_forgotten).count())
}

/// Forgets what was decided about letters that are gone. A letter that a person let in is let in again when it comes back, and one that was forgotten
/// stays out.
pub async fn unmark(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    message_ids: &[&str],
) -> Result<()> {
    let sql = "with gone as (
            delete from public.processed_messages where tenant_id = $1 and source_id = $2 and message_id = any($3) and let_in_at is null
                and skip_reason is distinct from 'forgotten')
        update public.processed_messages set skip_reason = null, sender = null, subject = null
        where tenant_id = $1 and source_id = $2 and message_id = any($3) and let_in_at is not null and skip_reason is not null";
    sqlx::query(sql).bind(tenant_id.0).bind(source_id.0).bind(message_ids).execute(&mut *conn).await?;
    sqlx::query("delete from public.mail_facts where tenant_id = $1 and source_id = $2 and message_id = any($3)")
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(message_ids)
        .execute(conn)
        .await?;
    Ok(())
}

/// A letter that was left out, as a person sees it.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct LeftOutLetter {
    pub message_id: String,
    pub skip_reason: String,
    pub sender: Option<String>,
    pub subject: Option<String>,
    pub received_at: DateTime<Utc>,
    pub processed_at: DateTime<Utc>,
    /// A person asked for it, and it is on its way.
    pub let_in_at: Option<DateTime<Utc>>,
    pub let_in_by: Option<String>,
}

/// The place in the list after which a page begins: the time and the id of its last line.
pub type After = (DateTime<Utc>, String);

/// Lists letters that were left out, the latest first.
pub async fn left_out(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    reason: Option<&str>,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<LeftOutLetter>> {
    let sql = "select message_id, skip_reason, sender, subject, received_at, processed_at, let_in_at, let_in_by
        from public.processed_messages
        where tenant_id = $1 and source_id = $2 and skip_reason is not null and ($3::text is null or skip_reason = $3)
            and received_at is not null and ($4::timestamptz is null or (received_at, message_id) < ($4, $5))
        order by received_at desc, message_id desc limit $6";
    Ok(sqlx::query_as(sql)
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(reason)
        .bind(after.map(|(at, _)| *at))
        .bind(after.map(|(_, id)| id.as_str()).unwrap_or_default())
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// The number of letters that one rule left out. A number of [`MOST_COUNTED`] in all means "at least".
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
pub struct ReasonCount {
    pub skip_reason: String,
    pub letters: i64,
}

/// Counts what was left out by reason, the commonest first.
pub async fn reasons(conn: &mut PgConnection, tenant_id: TenantId, source_id: SourceId) -> Result<Vec<ReasonCount>> {
    Ok(sqlx::query_as(
        "select skip_reason, count(*) as letters from (
             select skip_reason from public.processed_messages
             where tenant_id = $1 and source_id = $2 and skip_reason is not null limit $3
         ) some_letters group by skip_reason order by letters desc, skip_reason",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(MOST_COUNTED)
    .fetch_all(conn)
    .await?)
}

/// Which letters a person lets in.
#[derive(Clone, Copy, Debug)]
pub enum LetIn<'a> {
    Letter(&'a str),
    /// Those that one rule left out, the latest first.
    Reason(&'a str),
}

/// Notes that a person wants letters that were left out; returns their ids. Those that were asked for before come last.
pub async fn let_in(
    conn: &mut PgConnection,
    at: Option<DateTime<Utc>>,
    (tenant_id, source_id): (TenantId, SourceId),
    which: LetIn<'_>,
    by: &str,
    limit: i64,
) -> Result<Vec<String>> {
    let (letter, reason) = match which {
        LetIn::Letter(id) => (Some(id), None),
        LetIn::Reason(reason) => (None, Some(reason)),
    };
    Ok(sqlx::query_scalar(include_str!("../sql/processed_let_in.sql"))
        .bind(tenant_id.0)
        .bind(source_id.0)
        .bind(at)
        .bind(by)
        .bind(letter)
        .bind(reason)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// A letter as rules see it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub message_id: String,
    pub received_at: DateTime<Utc>,
    pub facts: Value,
}

/// Keeps what rules see of letters.
pub async fn keep_facts(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    letters: &[Seen],
) -> Result<()> {
    sqlx::query(
        "insert into public.mail_facts (tenant_id, source_id, message_id, received_at, facts)
         select $1, $2, r.message_id, r.received_at, r.facts
         from unnest($3::text[], $4::timestamptz[], $5::jsonb[]) r (message_id, received_at, facts) order by r.message_id
         on conflict (source_id, message_id) do update set received_at = excluded.received_at, facts = excluded.facts",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(letters.iter().map(|letter| letter.message_id.as_str()).collect::<Vec<_>>())
    .bind(letters.iter().map(|letter| letter.received_at).collect::<Vec<_>>())
    .bind(letters.iter().map(|letter| letter.facts.clone()).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    Ok(())
}

/// A letter of the last days, as rules see it, and what was decided about it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Past {
    pub message_id: String,
    pub received_at: DateTime<Utc>,
    pub facts: Value,
    pub skip_reason: Option<String>,
    pub is_let_in: bool,
}

/// Lists the letters since a time, the latest first.
pub async fn past(
    conn: &mut PgConnection,
    tenant_id: TenantId,
    source_id: SourceId,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Past>> {
    Ok(sqlx::query_as(
        "select f.message_id, f.received_at, f.facts, p.skip_reason, p.let_in_at is not null as is_let_in
         from public.mail_facts f join public.processed_messages p on p.source_id = f.source_id and p.message_id = f.message_id
         where f.tenant_id = $1 and f.source_id = $2 and f.received_at >= $3
         order by f.received_at desc limit $4",
    )
    .bind(tenant_id.0)
    .bind(source_id.0)
    .bind(since)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}
