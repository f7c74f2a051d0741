//! Starts, stops and retries syncs, for people and schedules.

use chrono::{DateTime, TimeDelta, Utc};
use connectors::pull::is_named;
use domain::item::Action;
use domain::{Caller, Fault, JobId, JobKind, JobStatus, SourceId, SourceStatus, TenantId};
use serde_json::json;
use store::jobs::AskedAgain;
use store::sources::{self, Source, Tone};
use store::{Tx, jobs};

use super::again::{add, is_covered};
use crate::Env;
use crate::lanes::ingest::Ingest;
use crate::lanes::queue_of;
use crate::mail::subscriptions;

/// Nightly syncs begin at this hour, UTC, and are spread over the hours after it.
const NIGHT: u32 = 1;
const SPREAD_SECS: u64 = 4 * 3_600;
/// A week, and some hours less: the night of a full pass stays the same.
const FULL_EVERY: TimeDelta = TimeDelta::hours(7 * 24 - 12);

/// The outcome of asking for a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Started(JobId),
    /// This one is under way already; what was asked for runs after it.
    Running(JobId),
}

/// Queues a sync: of everything where nothing was read to the end yet, else of what changed. One runs at a time; an ask that meets a running
/// one is remembered and runs after it.
pub async fn sync(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    kind: Option<JobKind>,
    by: &str,
) -> store::Result<Option<Asked>> {
    let asked = env.db.write(async |tx| {
        let Some(source) = sources::load(tx, tenant_id, source_id).await? else { return Ok(None) };
        if !is_synced(&source) {
            return Err(store::Error::Conflict(why_not(&source)));
        }
        let asked = queue(env, tx, &source, kind, by).await?;
        Ok(Some(asked))
    });
    asked.await
}

/// Refuses a source that is not synced now.
pub(crate) fn must_be_synced(source: &Source) -> store::Result<()> {
    if is_synced(source) { Ok(()) } else { Err(store::Error::Conflict(why_not(source))) }
}

pub(crate) fn is_synced(source: &Source) -> bool {
    source.status.is_synced()
}

pub(crate) fn why_not(source: &Source) -> &'static str {
    match source.status {
        SourceStatus::Paused => "the source is paused: resume it first",
        SourceStatus::Disconnected => "the source is disconnected: connect it again first",
        _ => "the source has to be reconnected first",
    }
}

/// Adds a job and its message, in the caller's transaction, for a source that is synced; of just these records, or (none) of all. While
/// another job is under way it is asked to run again.
pub(crate) async fn queue(
    env: &Env,
    tx: &mut Tx,
    source: &Source,
    kind: Option<JobKind>,
    by: &str,
) -> store::Result<Asked> {
    Ok(Box::pin(queue_for(env, tx, source, kind, by, &[])).await?.0)
}

/// The same for some records only. Returns also how many of them are left out, because one job reads only so many.
async fn queue_for(
    env: &Env,
    tx: &mut Tx,
    source: &Source,
    kind: Option<JobKind>,
    by: &str,
    items: &[String],
) -> store::Result<(Asked, usize)> {
    let (tenant_id, source_id) = (TenantId(source.tenant_id), SourceId(source.id));
    let kind = kind.unwrap_or(if source.cursors.is_some() { JobKind::Delta } else { JobKind::Full });
    let checkpoint = if items.is_empty() { json!({}) } else { json!({ "items": items }) };
    loop {
        let Some(job_id) = jobs::live(tx, tenant_id, source_id).await? else {
            // None: somebody else has just started one.
            match jobs::insert(tx, env.clock.sql(), tenant_id, source_id, kind, by, &checkpoint).await? {
                Some(job_id) => {
                    send(tx, tenant_id, Ingest { source_id, job_id, kind }).await?;
                    tx.notify(jobs::changed(tenant_id, job_id));
                    return Ok((Asked::Started(job_id), 0));
                }
                None => continue,
            }
        };
        let Some(job) = jobs::get(tx, tenant_id, job_id).await? else { continue };
        if job.status == JobStatus::Paused {
            // The source is not paused: its job was left behind.
            resume(env, tx, tenant_id, job_id, source_id, job.kind).await?;
            if items.is_empty() && (kind != JobKind::Full || job.kind == JobKind::Full) {
                return Ok((Asked::Started(job_id), 0));
            }
        } else if is_covered(&job, kind, items) {
            return Ok((Asked::Running(job_id), 0));
        }
        // None: it has just come to its end, so there is nothing to wait for.
        if let Some(mut asked) = jobs::lock_asked_again(tx, tenant_id, job_id).await? {
            let left_out =
                add(&mut asked, AskedAgain { id: JobId::new(), kind, by: by.to_owned(), items: items.to_vec() });
            jobs::ask_again(tx, tenant_id, job_id, &asked).await?;
            return Ok((Asked::Running(job_id), left_out));
        }
    }
}

async fn send(tx: &mut Tx, tenant_id: TenantId, message: Ingest) -> store::Result<()> {
    queue_of::<Ingest>().send(tx, tenant_id, &[message]).await?;
    Ok(())
}

/// Starts a sync of every source whose time has come, each in its own transaction; returns how many. Missed nights are one sync.
pub async fn sync_due(env: &Env) -> Result<usize, Fault> {
    let mut started = 0;
    loop {
        let mut tx = env.db.begin().await?;
        let Some(due) = sources::take_due(&mut tx, env.clock.sql()).await? else { return Ok(started) };
        let (tenant_id, source_id) = (TenantId(due.tenant_id), SourceId(due.id));
        let source = sources::load(&mut tx, tenant_id, source_id).await?;
        if source.is_none() {
            sources::set_next_sync(&mut tx, tenant_id, source_id, None).await?;
        }
        if let Some(source) = source {
            let next = next_sync(env.clock.now(), subscriptions::sync_every_secs(env, &source), source_id);
            sources::set_next_sync(&mut tx, tenant_id, source_id, Some(next)).await?;
            let kind = is_full_due(env, &mut tx, &source).await?.then_some(JobKind::Full);
            queue(env, &mut tx, &source, kind, "schedule").await?;
        }
        tx.commit().await?;
        started += 1;
    }
}

/// Whether everything is read again, for what no delta tells: records that were purged or merged, and which records belong together. A full
/// pass that was given up is not due at once: changes come in meanwhile.
async fn is_full_due(env: &Env, tx: &mut Tx, source: &Source) -> store::Result<bool> {
    if env.providers.named(&source.provider).is_ok_and(|provider| provider.has_complete_deltas) {
        return Ok(false);
    }
    let since = env.clock.now() - FULL_EVERY;
    Ok(!jobs::has_full_since(tx, TenantId(source.tenant_id), SourceId(source.id), since).await?)
}

/// The time of a source's next sync. Daily syncs run at night, each at its own time, so that they do not all begin together.
pub fn next_sync(now: DateTime<Utc>, every_secs: f64, source_id: SourceId) -> DateTime<Utc> {
    let own = source_id.0.as_u128() as u64 % SPREAD_SECS;
    let every = TimeDelta::milliseconds((every_secs * 1_000.0) as i64);
    if every < TimeDelta::days(1) {
        return now + every;
    }
    let midnight = (now + every).date_naive().and_time(chrono::NaiveTime::MIN).and_utc();
    midnight + TimeDelta::hours(i64::from(NIGHT)) + TimeDelta::seconds(i64::try_from(own).unwrap_or(0))
}

/// Continues a failed or cancelled job where it stopped. False: there is no such job, or it is not over.
pub async fn retry(env: &Env, caller: &Caller, id: JobId) -> store::Result<bool> {
    let retried = env.db.write(async |tx| {
        let Some(job) = jobs::get(tx, caller.tenant_id, id).await? else { return Ok(false) };
        if !matches!(job.status, JobStatus::Failed | JobStatus::Cancelled) {
            return Ok(false);
        }
        let source_id = SourceId(job.source_id);
        if let Some(source) = sources::load(tx, caller.tenant_id, source_id).await?
            && !is_synced(&source)
        {
            return Err(store::Error::Conflict(why_not(&source)));
        }
        if jobs::live(tx, caller.tenant_id, source_id).await?.is_some() {
            return Err(store::Error::Conflict("another sync of this source is under way"));
        }
        resume(env, tx, caller.tenant_id, id, source_id, job.kind).await?;
        Ok(true)
    });
    retried.await
}

/// Sends a job's message again: the archived one where there is one, else a new one.
pub(crate) async fn resume(
    env: &Env,
    tx: &mut Tx,
    tenant_id: TenantId,
    id: JobId,
    source_id: SourceId,
    kind: JobKind,
) -> store::Result<()> {
    match jobs::item(tx, tenant_id, id).await? {
        Some(item) => {
            let us = Caller::local("a new try", tenant_id, false);
            queue_of::<Ingest>().act(tx, env.clock.sql(), &us, item, Action::Retry).await?;
        }
        None => send(tx, tenant_id, Ingest { source_id, job_id: id, kind }).await?,
    }
    tx.notify(jobs::changed(tenant_id, id));
    Ok(())
}

/// Cancels a job; its documents stay. The worker that runs it notices at its next page. False: there is no such job, or it is over.
pub async fn cancel(env: &Env, caller: &Caller, id: JobId) -> store::Result<bool> {
    let cancelled = env.db.write(async |tx| {
        let is_ended = stop(env, tx, caller.tenant_id, id).await?;
        Ok(is_ended)
    });
    cancelled.await
}

/// The same in the caller's transaction. It locks the message before the job, in the order in which pages are written.
pub(crate) async fn stop(env: &Env, tx: &mut Tx, tenant_id: TenantId, id: JobId) -> store::Result<bool> {
    let at = env.clock.sql();
    let job = jobs::get(tx, tenant_id, id).await?;
    let Some(job) = job.filter(|job| !job.status.is_over()) else { return Ok(false) };
    let item = if job.status == JobStatus::Paused { None } else { jobs::item(tx, tenant_id, id).await? };
    let mut is_ended = false;
    if let Some(item) = item {
        let us = Caller::local("the caller that stopped its job", tenant_id, false);
        is_ended = match queue_of::<Ingest>().act(tx, at, &us, item, Action::Cancel).await {
            Err(store::Error::Conflict(_)) => false, // it has just come to its end
            acted => acted?,
        };
    }
    // The job has gone with its message; what is left is what it met, and jobs without one.
    Ok(jobs::end(tx, at, tenant_id, id, JobStatus::Cancelled, None).await? || is_ended)
}

/// Reads these records again, which could not be read: a job of its own.
pub async fn retry_failures(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[String],
    by: &str,
) -> store::Result<Option<(Asked, usize)>> {
    let asked = env.db.write(async |tx| {
        if external_ids.iter().any(|id| !is_named(id)) {
            return Err(store::Error::Conflict("it has no id to ask for it by: the next full sync tries it again"));
        }
        read_again(env, tx, tenant_id, source_id, external_ids, by).await
    });
    asked.await
}

/// Reads these records again, in the caller's transaction.
pub(crate) async fn read_again(
    env: &Env,
    tx: &mut Tx,
    tenant_id: TenantId,
    source_id: SourceId,
    external_ids: &[String],
    by: &str,
) -> store::Result<Option<(Asked, usize)>> {
    let Some(source) = sources::load(tx, tenant_id, source_id).await? else { return Ok(None) };
    must_be_synced(&source)?;
    Ok(Some(queue_for(env, tx, &source, Some(JobKind::Delta), by, external_ids).await?))
}

/// Pauses a source. A running sync stops at its next page; `resume_source` continues from there.
pub async fn pause_source(env: &Env, tenant_id: TenantId, source_id: SourceId) -> store::Result<bool> {
    let paused = env.db.write(async |tx| {
        let at = env.clock.sql();
        let Some(source) = sources::load(tx, tenant_id, source_id).await? else { return Ok(false) };
        if !is_synced(&source) {
            return Err(store::Error::Conflict("only a source that is synced can be paused"));
        }
        sources::set_status(tx, at, tenant_id, source_id, SourceStatus::Paused, None).await?;
        sources::tell(tx, at, tenant_id, source_id, None, Tone::Info, "Paused").await?;
        Ok(true)
    });
    paused.await
}

/// Resumes a paused source: its job continues where it stopped, or a new one reads the changes.
pub async fn resume_source(env: &Env, tenant_id: TenantId, source_id: SourceId) -> store::Result<bool> {
    let resumed = env.db.write(async |tx| {
        let at = env.clock.sql();
        let Some(source) = sources::load(tx, tenant_id, source_id).await? else { return Ok(false) };
        if source.status != SourceStatus::Paused {
            return Err(store::Error::Conflict("the source is not paused"));
        }
        sources::set_status(tx, at, tenant_id, source_id, SourceStatus::Active, None).await?;
        sources::tell(tx, at, tenant_id, source_id, None, Tone::Good, "Resumed").await?;
        go_on(env, tx, &source, "person").await?;
        Ok(true)
    });
    resumed.await
}

/// Continues a job that a pause or a bad token stopped; otherwise reads the changes since.
pub(crate) async fn go_on(env: &Env, tx: &mut Tx, source: &Source, by: &str) -> store::Result<()> {
    let (tenant_id, source_id) = (TenantId(source.tenant_id), SourceId(source.id));
    if jobs::live(tx, tenant_id, source_id).await?.is_none() {
        let filter = jobs::Filter { source_id: Some(source_id), limit: 1, ..Default::default() };
        let newest = jobs::list(tx, tenant_id, filter).await?.pop();
        if let Some(job) = newest.filter(|job| job.status == JobStatus::Failed) {
            return resume(env, tx, tenant_id, JobId(job.id), source_id, job.kind).await;
        }
    }
    queue(env, tx, source, None, by).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daily_syncs_are_spread_over_the_night_and_others_follow_their_own_beat() {
        let now: DateTime<Utc> = "2026-11-15T13:00:00Z".parse().expect("a time");
        let times: std::collections::HashSet<DateTime<Utc>> =
            (0..50).map(|_| next_sync(now, 86_400.0, SourceId(uuid::Uuid::new_v4()))).collect();
        let (first, last) = ("2026-11-16T01:00:00Z", "2026-11-16T05:00:00Z");
        assert!(times.iter().all(|at| *at >= first.parse::<DateTime<Utc>>().expect("a time")));
        assert!(times.iter().all(|at| *at < last.parse::<DateTime<Utc>>().expect("a time")));
        assert!(times.len() > 40, "they begin together: {times:?}");
        assert_eq!(next_sync(now, 900.0, SourceId::new()), now + TimeDelta::minutes(15));
    }
}
