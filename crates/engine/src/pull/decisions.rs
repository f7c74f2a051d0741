//! A person's decisions about a source, for the pages, the API and the command line: retry or skip records that could not be read, and how
//! often it is synced.

use std::time::Duration;

use domain::text::has_nul;
use domain::{JobId, SourceId, SourceStatus, TenantId};
use store::failures;
use store::sources::{self, Tone};

use super::is_named;
use super::jobs::{self, Asked};
use super::words::cadence;
use crate::Env;

/// How many records one job reads again: as many as one commit writes.
pub const MOST: usize = 500;
/// How many failures are looked at to find them.
const LOOKED_AT: i64 = 10_000;

/// The outcome of a retry of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// A job reads so many records again.
    Started(JobId, usize),
    /// This sync is under way; they are read after it.
    Running(JobId),
    /// No failure has that name.
    Unknown,
    /// It has no id that the provider could be asked by.
    Nameless,
}

/// Reads one record again, also one that was left out; a conflict while its source is not synced.
pub async fn retry(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    external_id: &str,
    by: &str,
) -> store::Result<Again> {
    let is_there = !has_nul(external_id)
        && env.db.session(async |conn| failures::exists(conn, tenant_id, source_id, external_id).await).await?;
    if !is_there {
        return Ok(Again::Unknown);
    }
    start(env, tenant_id, source_id, vec![external_id.to_owned()], by).await
}

/// Reads what nobody skipped again, by one job: the latest [`MOST`] of those that can be asked for.
pub async fn retry_all(env: &Env, tenant_id: TenantId, source_id: SourceId, by: &str) -> store::Result<Again> {
    let open = env.db.session(async |conn| failures::open(conn, tenant_id, source_id, LOOKED_AT).await).await?;
    if open.is_empty() {
        return Ok(Again::Unknown);
    }
    start(env, tenant_id, source_id, open, by).await
}

async fn start(
    env: &Env,
    tenant_id: TenantId,
    source_id: SourceId,
    mut names: Vec<String>,
    by: &str,
) -> store::Result<Again> {
    names.retain(|name| is_named(name));
    names.truncate(MOST);
    if names.is_empty() {
        return Ok(Again::Nameless);
    }
    Ok(match jobs::retry_failures(env, tenant_id, source_id, &names, by).await? {
        Some(Asked::Started(job_id)) => Again::Started(job_id, names.len()),
        Some(Asked::Running(job_id)) => Again::Running(job_id),
        None => Again::Unknown,
    })
}

/// Leaves a record out: it no longer counts as open. False: it is none of those that could not be read, or is left out already.
pub async fn skip(env: &Env, tenant_id: TenantId, source_id: SourceId, external_id: &str) -> store::Result<bool> {
    if has_nul(external_id) {
        return Ok(false);
    }
    let skipped = env.db.write(async |tx| {
        tx.notify(sources::changed(tenant_id, source_id));
        failures::skip(tx, env.clock.sql(), tenant_id, source_id, external_id).await
    });
    skipped.await
}

/// Sets how often a source is synced, counted from now. False: there is no such source.
pub async fn set_sync_every(env: &Env, tenant_id: TenantId, id: SourceId, every: Duration) -> store::Result<bool> {
    let set = env.db.write(async |tx| {
        let Some(source) = sources::get(tx, tenant_id, id).await? else { return Ok(false) };
        sources::set_sync_every(tx, tenant_id, id, every).await?;
        if source.status != SourceStatus::Disconnected {
            let next = jobs::next_sync(env.clock.now(), every.as_secs_f64(), id);
            sources::set_next_sync(tx, tenant_id, id, Some(next)).await?;
        }
        let what = format!("Synced every {} from now on", cadence::spelled(every));
        sources::tell(tx, env.clock.sql(), tenant_id, id, None, Tone::Info, &what).await?;
        Ok(true)
    });
    set.await
}
