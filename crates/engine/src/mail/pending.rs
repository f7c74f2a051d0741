//! Mailboxes of which something was heard, until a sync has read it. A notice makes a row and a job of kind `push` in one commit, or moves the time
//! of the row that is there. The sync claims the row as it begins, and its last commit removes it, unless something was heard since: then
//! that commit starts another sync.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{Fault, JobKind, SourceId, TenantId};
use store::crash::{self, Point};
use store::mail::pending::{self, Heard, Mailbox};
use store::{Tx, jobs, sources};

use crate::lanes::ingest::Ingest;
use crate::lanes::queue_of;
use crate::pull::jobs as syncs;
use crate::{Config, Env};

/// The task that starts syncs which nobody has started.
pub const SCHEDULE: &str = "mail_notices";
/// Stored in the jobs that notices ask for.
pub const BY: &str = "notice";
/// So many mailboxes get their jobs in the commit that notes what was heard. Beyond it, the providers that wait for an answer come first.
const MOST_AT_ONCE: usize = 100;
/// Mailboxes whose syncs one commit starts.
const BITE: i64 = 200;
/// After the last attempt that counts, a mailbox is tried again this much later at first, and ever more rarely.
const SLOWLY: Duration = Duration::from_secs(300);

/// The wait before a failed attempt is tried again, as its row tells it. The queue waits at least as long.
pub(crate) fn after_failure(attempt: i32) -> Duration {
    Duration::from_millis(500 << u32::try_from(attempt.clamp(1, 10) - 1).unwrap_or(0))
}

/// The wait of a mailbox whose attempts are used up, by the number of its job's failures: five minutes to forty.
pub(crate) fn slowly(failures: i32, most_attempts: i32) -> Duration {
    SLOWLY * 2_u32.pow(u32::try_from((failures - most_attempts).clamp(0, 3)).unwrap_or(0))
}

fn rest(config: &Config) -> Duration {
    Duration::from_secs(config.mailbox_rest_secs)
}

/// Notes in the caller's transaction that something was heard of these mailboxes, each named once, and starts their syncs. False: some are still
/// to be started, by [`keep`].
pub(crate) async fn hear(env: &Env, tx: &mut Tx, mailboxes: &[Mailbox]) -> store::Result<bool> {
    if mailboxes.is_empty() {
        return Ok(true);
    }
    let is_waking = env.config.mailbox_wake;
    let pace = if is_waking { 0 } else { env.config.mailbox_pending_secs };
    let (at, pace) = (env.clock.sql(), Duration::from_secs(pace));
    let heard = pending::hear(tx, at, mailboxes, rest(&env.config), pace).await?;
    let mut new: Vec<Mailbox> = heard.into_iter().filter(|heard| heard.is_new).map(Heard::mailbox).collect();
    if new.is_empty() || !is_waking {
        return Ok(true);
    }
    if new.len() > MOST_AT_ONCE {
        return Ok(false);
    }
    new.sort_unstable_by_key(|(_, source_id)| source_id.0); // jobs are locked in this order
    let started = start(env, tx, &new).await?;
    for (tenant_id, source_id) in new {
        // A job that is under way may have read past what was heard of: it is asked to run again.
        if !started.contains(&(tenant_id, source_id))
            && let Some(source) = sources::load(tx, tenant_id, source_id).await?
        {
            syncs::queue(env, tx, &source, Some(JobKind::Push), BY).await?;
        }
    }
    Ok(true)
}

/// Adds jobs with their messages for those of these mailboxes that have no live one, and returns these.
async fn start(env: &Env, tx: &mut Tx, mailboxes: &[Mailbox]) -> store::Result<Vec<Mailbox>> {
    let (at, kind) = (env.clock.sql(), JobKind::Push);
    let started = pending::start(tx, at, mailboxes, kind, BY).await?;
    let message = |((tenant_id, source_id), job_id)| (tenant_id, Ingest { source_id, job_id, kind });
    let messages: Vec<(TenantId, Ingest)> = started.iter().copied().map(message).collect();
    queue_of::<Ingest>().send_each(tx, &messages).await?;
    for ((tenant_id, _), job_id) in &started {
        tx.notify(jobs::changed(*tenant_id, *job_id));
    }
    Ok(started.into_iter().map(|(mailbox, _)| mailbox).collect())
}

/// Starts the syncs of mailboxes of which something was heard and that none is to read: notices that do not wake, floods of them, rows that other
/// programs wrote, and syncs that were given up.
pub async fn keep(env: &Env) -> Result<(), Fault> {
    loop {
        let mut tx = env.db.begin().await?;
        let mut due = pending::due(&mut tx, env.clock.sql(), BITE).await?;
        if due.is_empty() {
            return Ok(());
        }
        due.sort_unstable_by_key(|(_, source_id)| source_id.0);
        let started = start(env, &mut tx, &due).await?;
        crash::at(Point::MailStarted)?;
        tx.commit().await?;
        if !started.is_empty() {
            tracing::info!("syncs of {} mailboxes were begun, of which something was heard", started.len());
        }
        if started.is_empty() || due.len() < BITE as usize {
            return Ok(());
        }
    }
}

/// Claims what was heard of a mailbox, in the transaction that begins its sync. `since`: the sync goes on, and began to read then.
pub(crate) async fn claim(
    env: &Env,
    tx: &mut Tx,
    (tenant_id, source_id): Mailbox,
    since: Option<DateTime<Utc>>,
    attempt: i32,
) -> Result<(), Fault> {
    pending::claim(tx, env.clock.sql(), tenant_id, source_id, since, attempt).await?;
    Ok(crash::at(Point::MailClaimed)?)
}

/// Ends what a sync had claimed, in the transaction that ends its job. What was heard since leads to another sync.
pub(crate) async fn finish(env: &Env, tx: &mut Tx, (tenant_id, source_id): Mailbox) -> Result<(), Fault> {
    let config = &env.config;
    let pause = if config.mailbox_wake { rest(config) } else { Duration::from_secs(config.mailbox_pending_secs) };
    let is_again = pending::finish(tx, env.clock.sql(), tenant_id, source_id, pause).await?;
    if is_again
        && config.mailbox_wake
        && let Some(source) = sources::load(tx, tenant_id, source_id).await?
    {
        syncs::queue(env, tx, &source, Some(JobKind::Push), BY).await?;
    }
    Ok(crash::at(Point::MailRead)?)
}

/// Gives back what a sync had claimed: it waits or has failed.
pub(crate) async fn put_back(
    env: &Env,
    tx: &mut Tx,
    (tenant_id, source_id): (TenantId, SourceId),
    error: Option<&str>,
    wait: Duration,
) -> Result<(), Fault> {
    Ok(pending::put_back(tx, env.clock.sql(), tenant_id, source_id, error, wait).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_that_fails_is_tried_ever_more_rarely_and_never_given_up() {
        let secs: Vec<u64> = [5, 6, 7, 8, 9, 100].map(|failures| slowly(failures, 5).as_secs()).to_vec();
        assert_eq!(secs, [300, 600, 1_200, 2_400, 2_400, 2_400]);
        assert_eq!([1, 2, 5].map(|attempt| after_failure(attempt).as_millis()), [500, 1_000, 8_000]);
    }
}
