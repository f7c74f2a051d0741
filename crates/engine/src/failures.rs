//! Records of a source that could not be read, and what a person decides about them: read again, or left out.

use domain::text::has_nul;
use domain::{Caller, JobId, SourceId};
use store::failures::{self, Failure};
use store::sources;

use crate::act::OrMissing as _;
use crate::pull::again::MOST_ITEMS;
use crate::pull::is_named;
use crate::pull::jobs::{self, Asked};
use crate::sources::requested_by;
use crate::{ActError, Env};

/// The number of failures that are examined to find those that one job reads again.
const LOOKED_AT: i64 = 10_000;

/// The latest of a source's failures, skipped ones last, and how many there are.
pub async fn list(
    env: &Env,
    caller: &Caller,
    source_id: SourceId,
    limit: i64,
) -> Result<(Vec<Failure>, i64), ActError> {
    let tenant_id = caller.tenant_id;
    let loaded = env.db.read(caller, async |tx| {
        if sources::get(tx, tenant_id, source_id).await?.is_none() {
            return Ok(None);
        }
        let total = failures::count(tx, tenant_id, source_id).await?;
        Ok(Some((failures::list(tx, tenant_id, source_id, limit).await?, total)))
    });
    loaded.await?.or_missing("source")
}

/// The outcome of asking for records to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// A job of their own reads `n`. So many others are left out, because they are too many for one job.
    Started { job_id: JobId, n: usize, left_out: usize },
    /// This sync is under way; they are read after it, but for so many.
    Running { job_id: JobId, left_out: usize },
    /// No record of that name failed.
    Unknown,
    /// It has no id that the provider could be asked by.
    Nameless,
}

/// Reads one record again, also one that was left out. A conflict while its source is not synced.
pub async fn retry(env: &Env, caller: &Caller, source_id: SourceId, external_id: &str) -> Result<Again, ActError> {
    let tenant_id = caller.tenant_id;
    let is_there = !has_nul(external_id)
        && env.db.session(async |conn| failures::exists(conn, tenant_id, source_id, external_id).await).await?;
    if !is_there {
        return Ok(Again::Unknown);
    }
    start(env, caller, source_id, vec![external_id.to_owned()]).await
}

/// Reads again what nobody skipped, by one job: the latest 500 of those that can be asked for.
pub async fn retry_all(env: &Env, caller: &Caller, source_id: SourceId) -> Result<Again, ActError> {
    let tenant_id = caller.tenant_id;
    let open = env.db.session(async |conn| failures::open(conn, tenant_id, source_id, LOOKED_AT).await).await?;
    if open.is_empty() {
        return Ok(Again::Unknown);
    }
    start(env, caller, source_id, open).await
}

async fn start(env: &Env, caller: &Caller, source_id: SourceId, mut names: Vec<String>) -> Result<Again, ActError> {
    names.retain(|name| is_named(name));
    let too_many = names.len().saturating_sub(MOST_ITEMS);
    names.truncate(MOST_ITEMS);
    if names.is_empty() {
        return Ok(Again::Nameless);
    }
    // Boxed: it is large, and the stack of a program's first thread is small.
    let asked = Box::pin(jobs::retry_failures(env, caller.tenant_id, source_id, &names, requested_by(caller))).await?;
    Ok(match asked {
        Some((Asked::Started(job_id), _)) => Again::Started { job_id, n: names.len(), left_out: too_many },
        Some((Asked::Running(job_id), left_out)) => Again::Running { job_id, left_out: left_out + too_many },
        None => Again::Unknown,
    })
}

/// Skips a record: it no longer counts as open. Not found: it did not fail, or is skipped already.
pub async fn skip(env: &Env, caller: &Caller, source_id: SourceId, external_id: &str) -> Result<(), ActError> {
    if has_nul(external_id) {
        return Err(ActError::NotFound("record"));
    }
    let (at, tenant_id) = (env.clock.sql(), caller.tenant_id);
    let skipped = env.db.write(async |tx| {
        tx.notify(sources::changed(tenant_id, source_id));
        failures::skip(tx, at, tenant_id, source_id, external_id).await?.or_missing("record")
    });
    skipped.await
}
