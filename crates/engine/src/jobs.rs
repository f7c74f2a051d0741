//! Jobs as people look at them and act on them: every run of work on a source, watched, stopped and tried again.

use domain::{Caller, JobId};
use store::jobs::{self, Filter, Job};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::pull::jobs as syncs;
use crate::{ActError, Env};

/// A page of jobs, the newest first, and the one before which the next page begins.
pub async fn list(env: &Env, caller: &Caller, filter: Filter) -> Result<(Vec<Job>, Option<Uuid>), ActError> {
    let listed = env.db.read(caller, async |tx| jobs::list(tx, caller.tenant_id, filter).await).await?;
    let is_full = i64::try_from(listed.len()).is_ok_and(|n| n >= filter.limit);
    let next_before = listed.last().filter(|_| is_full).map(|last| last.id);
    Ok((listed, next_before))
}

pub async fn get(env: &Env, caller: &Caller, id: JobId) -> Result<Job, ActError> {
    let found = env.db.read(caller, async |tx| jobs::get(tx, caller.tenant_id, id).await).await?;
    found.or_missing("job")
}

/// Continues a failed or cancelled job where it stopped.
pub async fn retry(env: &Env, caller: &Caller, id: JobId) -> Result<(), ActError> {
    get(env, caller, id).await?;
    match syncs::retry(env, caller, id).await? {
        true => Ok(()),
        false => Err(ActError::conflict("only a job that failed or was cancelled can be tried again")),
    }
}

/// Cancels a job. Its documents stay; the next sync starts anew.
pub async fn cancel(env: &Env, caller: &Caller, id: JobId) -> Result<(), ActError> {
    get(env, caller, id).await?;
    match syncs::cancel(env, caller, id).await? {
        true => Ok(()),
        false => Err(ActError::conflict("the job is over already")),
    }
}
