//! Counts the days of a mailbox that somebody waits for, and compares them with what is stored. The provider is asked first, then our rows are read. A
//! difference is not told at once: a sync is asked for, and once that has come to its end the day is counted again. Only what differs both times,
//! and is not on its way, differs.

mod at_provider;
mod trouble;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use domain::mail::check::{CheckState, Compared, Counted, Known, Suspects};
use domain::{Fault, SourceId, TenantId};
use serde::{Deserialize, Serialize};
use store::crash::{self, Point};
use store::mail::checks::{self, Check, Pending};
use store::sources::{self, Source};
use uuid::Uuid;

use self::at_provider::AtProvider;
use self::trouble::Trouble;
use crate::Env;
use crate::pull::jobs;
use crate::work::{Lane, Lease, Outcome};

/// After so long a mailbox makes room for others; it goes on with its next day.
const TURN: Duration = Duration::from_secs(60);
/// How long a day waits before we look again how far its sync is.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// A day whose sync takes longer is counted another time.
const PATIENCE: TimeDelta = TimeDelta::hours(2);
/// A day is compared at most so often while letters come in all the time.
const MOST_ROUNDS: u32 = 3;
/// Stored letters that the provider no longer counts and that are asked for by name.
const MOST_FOUND: usize = 500;

/// One message for each mailbox some of whose days are waited for.
#[derive(Serialize, Deserialize)]
pub struct CheckMailbox {
    pub source_id: SourceId,
}

impl Lane for CheckMailbox {
    const NAME: &'static str = "mailbox_check";
    const MAX_ATTEMPTS: i32 = 5;
    /// Others are asking the same providers for letters.
    const SLOTS: Option<u32> = Some(2);
    const IS_LONG: bool = true;
    const MAX_RUN: Duration = Duration::from_secs(1_800);

    /// Safe to repeat: a day is counted from its beginning, and its outcome is one commit. What a sync is to settle is in the row, so that a later claim
    /// goes on there.
    async fn run(self, env: &Env, lease: &Lease) -> Result<Outcome, Fault> {
        let tenant_id = lease.tenant_id()?;
        let source = env
            .db
            .session(async |conn| sources::load(conn, tenant_id, self.source_id).await)
            .await
            .map_err(Fault::from)?;
        let Some(source) = source else { return Ok(Outcome::Cancel("its source is gone")) };
        let there = AtProvider::new(env, tenant_id, &source);
        let run = Run { env, lease, tenant_id, source_id: self.source_id };
        let there = match there {
            Ok(there) => there,
            Err(why) => return run.put_all_aside(&why).await,
        };
        match run.go(&there, &source).await {
            Ok(outcome) => Ok(outcome),
            Err(trouble) => run.settle(&there, trouble).await,
        }
    }
}

/// One claim of a mailbox's message.
struct Run<'a> {
    env: &'a Env,
    lease: &'a Lease,
    tenant_id: TenantId,
    source_id: SourceId,
}

impl Run<'_> {
    async fn go(&self, there: &AtProvider, source: &Source) -> Result<Outcome, Trouble> {
        if !jobs::is_synced(source) {
            return Ok(self.put_all_aside(jobs::why_not(source)).await?);
        }
        if let Some(wait) = there.left_alone(self.env).await? {
            return Ok(Outcome::Snooze(wait, "its provider is left alone for a while"));
        }
        let until = Instant::now() + TURN;
        loop {
            let mut conn = self.env.db.acquire().await?;
            let asked = checks::asked(&mut conn, self.tenant_id, self.source_id).await?;
            drop(conn);
            if asked.is_empty() {
                return self.finish().await;
            }
            let mut is_any_done = false;
            for check in asked {
                is_any_done |= self.one(there, &check).await?;
                if Instant::now() > until {
                    return Ok(Outcome::Snooze(Duration::ZERO, "made room for other mailboxes"));
                }
            }
            if !is_any_done {
                return Ok(Outcome::Snooze(LOOK_AGAIN, "a sync is under way, and settles what differs"));
            }
        }
    }

    /// Takes a day one step further. `false`: it waits for a sync.
    async fn one(&self, there: &AtProvider, check: &Check) -> Result<bool, Trouble> {
        let (tenant_id, source_id) = (self.tenant_id, self.source_id);
        let mut conn = self.env.db.acquire().await?;
        let after_job = check.suspects.as_ref().and_then(|pending| pending.after_job);
        let since = checks::sync_since(&mut conn, tenant_id, source_id, after_job).await?;
        let read_from = checks::read_from(&mut conn, tenant_id, source_id).await?;
        // Before the letters are counted: a sync that begins from now on hears of all of them.
        let newest_job = checks::newest_begun(&mut conn, tenant_id, source_id).await?;
        drop(conn);
        let is_settled = check.suspects.is_none() || since.is_done;
        if since.reads_single || (!is_settled && since.is_live) {
            let has_waited_long = check.asked_at.is_some_and(|at| self.env.clock.now() - at > PATIENCE);
            if has_waited_long {
                self.put_aside(check, "a sync that would settle what differs has been under way for hours").await?;
            }
            return Ok(has_waited_long);
        }
        if !is_settled {
            self.put_aside(check, "the sync that would settle what differs did not come to its end").await?;
            return Ok(true);
        }
        let (from, to) = bounds(check);
        let since = self.env.clock.now();
        let mut counted = there.count(self.env, from, to).await?;
        crash::at(Point::CheckCounted)?;
        let ours = self.ours(there, &counted, (from, to)).await?;
        let mut compared = Compared::new(&counted, &ours.known, &ours.here, read_from);
        let Some(Pending { suspects, .. }) = &check.suspects else {
            if !compared.is_equal() {
                return self.suspect(check, compared, newest_job, since, 1).await;
            }
            self.write(check, compared.state(), &compared).await?;
            return Ok(true);
        };
        let undated = compared.undated(&ours.known, &counted, suspects);
        if !undated.is_empty() {
            let asked = undated.get(..MOST_FOUND).unwrap_or(&undated);
            let found = there.find(self.env, asked).await?;
            for id in asked {
                match found.get(id) {
                    Some(came_in) => drop(counted.letters.insert(id.clone(), *came_in)),
                    None => drop(counted.letters.remove(id)), // gone meanwhile
                }
            }
            compared = Compared::new(&counted, &ours.known, &ours.here, read_from);
        }
        let fresh = compared.clone();
        let mut judged = compared.judged(suspects, &counted);
        if !judged.surplus.is_empty() {
            let found = there.find(self.env, judged.surplus.get(..MOST_FOUND).unwrap_or(&judged.surplus)).await?;
            judged = judged.without_surplus(&found.into_keys().collect());
        }
        if judged.state() == CheckState::Reading && suspects.rounds < MOST_ROUNDS {
            return self.suspect(check, fresh, newest_job, since, suspects.rounds + 1).await;
        }
        self.write(check, judged.state(), &judged).await?;
        Ok(true)
    }

    /// Our own rows, read after the provider was asked.
    async fn ours(
        &self,
        there: &AtProvider,
        counted: &Counted,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<Ours, Trouble> {
        let names: Vec<&str> = counted.letters.keys().map(String::as_str).collect();
        let mut conn = self.env.db.acquire().await?;
        let known = checks::known(&mut conn, self.tenant_id, self.source_id, &names).await?;
        let message_type = there.message_type();
        let here = checks::stored(&mut conn, self.tenant_id, self.source_id, message_type, from, to).await?;
        Ok(Ours { known, here })
    }

    /// Differences that the next sync is to settle: the row and the sync are one commit. `false`: the mailbox is no longer synced, and nothing was done.
    async fn suspect(
        &self,
        check: &Check,
        compared: Compared,
        after_job: Option<Uuid>,
        since: DateTime<Utc>,
        rounds: u32,
    ) -> Result<bool, Trouble> {
        let pending = Pending { suspects: Suspects::of(&compared, since, rounds), after_job };
        let (at, tenant_id, source_id) = (self.env.clock.sql(), self.tenant_id, self.source_id);
        let mut step = self.lease.begin_step(self.env).await?;
        let Some(source) = sources::load(&mut step, tenant_id, source_id).await?.filter(jobs::is_synced) else {
            return Ok(false); // the next look finds out why
        };
        checks::suspect(&mut step, at, tenant_id, source_id, check.day, &pending, &compared.unjudged()).await?;
        jobs::queue(self.env, &mut step, &source, None, "count of letters").await?;
        step.notify(sources::changed(tenant_id, source_id));
        crash::at(Point::CheckBeforeCommit)?;
        step.commit().await?;
        crash::at(Point::CheckAfterCommit)?;
        Ok(true)
    }

    async fn write(&self, check: &Check, state: CheckState, compared: &Compared) -> Result<(), Trouble> {
        let (at, tenant_id, source_id, day) = (self.env.clock.sql(), self.tenant_id, self.source_id, check.day);
        let mut step = self.lease.begin_step(self.env).await?;
        checks::settle(&mut step, at, tenant_id, source_id, day, state, compared).await?;
        step.notify(sources::changed(tenant_id, source_id));
        crash::at(Point::CheckBeforeCommit)?;
        step.commit().await?;
        crash::at(Point::CheckAfterCommit)?;
        metrics::counter!("tributary_mailbox_days_total", "state" => state.as_str()).increment(1);
        if state == CheckState::Differs {
            let (missing, surplus) = (compared.missing.len(), compared.surplus.len());
            tracing::error!(
                source.id = %source_id,
                tenant.id = %tenant_id,
                "mailbox {source_id} differs from its provider's count on {day}: {missing} missing, {surplus} surplus"
            );
        }
        Ok(())
    }

    /// A day that cannot be counted now.
    async fn put_aside(&self, check: &Check, why: &str) -> Result<(), Fault> {
        let mut step = self.lease.begin_step(self.env).await?;
        checks::put_aside(&mut step, self.tenant_id, self.source_id, Some(check.day), why).await?;
        step.notify(sources::changed(self.tenant_id, self.source_id));
        step.commit().await?;
        Ok(())
    }

    /// No day can be counted now. The schedule asks again tomorrow, and a person at any time.
    async fn put_all_aside(&self, why: &str) -> Result<Outcome, Fault> {
        let mut effect = self.lease.begin(self.env).await?;
        sources::locked_status(&mut effect, self.tenant_id, self.source_id).await?;
        checks::put_aside(&mut effect, self.tenant_id, self.source_id, None, why).await?;
        effect.notify(sources::changed(self.tenant_id, self.source_id));
        effect.commit().await
    }

    /// The message goes if nobody waits for another day. Who asks for one at this moment has the source's row, or waits for it.
    async fn finish(&self) -> Result<Outcome, Trouble> {
        let mut effect = self.lease.begin(self.env).await?;
        sources::locked_status(&mut effect, self.tenant_id, self.source_id).await?;
        if !checks::asked(&mut effect, self.tenant_id, self.source_id).await?.is_empty() {
            return Ok(Outcome::Snooze(Duration::ZERO, "another day is to be counted"));
        }
        Ok(effect.commit().await?)
    }
}

/// A day begins and ends at midnight, UTC.
fn bounds(check: &Check) -> (DateTime<Utc>, DateTime<Utc>) {
    let from = check.day.and_time(NaiveTime::MIN).and_utc();
    (from, from + TimeDelta::days(1))
}

/// The traces of a day here.
struct Ours {
    known: HashMap<String, Known>,
    /// The letters that are stored as of that day.
    here: Vec<String>,
}

/// Letters that were found by name, and when they came in, if that could be read.
type Found = HashMap<String, Option<DateTime<Utc>>>;
