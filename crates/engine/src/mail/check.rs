//! Compares what a provider counts with what is stored, day by day (UTC): the proof that nothing was missed. Days are asked for here, by a
//! schedule, after a full pass or by a person; lane [`check_mailbox`](crate::lanes::check_mailbox) counts them. A day that differs says which letters
//! do, and [`fetch_missing`] reads just these.

pub mod words;

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use connectors::pull::mailbox::Mailbox;
use domain::mail::check::CheckState;
use domain::{Caller, Fault, SourceId, TenantId, Transport};
use serde_json::json;
use store::mail::checks::{self, Check};
use store::sources::Source;
use store::{Tx, sources};

use crate::act::OrMissing as _;
use crate::failures::Again;
use crate::lanes::check_mailbox::CheckMailbox;
use crate::lanes::queue_of;
use crate::pull::Provider;
use crate::pull::again::MOST_ITEMS;
use crate::pull::jobs::{self, Asked};
use crate::sources::requested_by;
use crate::{ActError, Env};

/// Days can be counted as long as their results are kept.
pub const KEPT_DAYS: i64 = 90;
/// The most days of one request.
pub const MOST_DAYS: usize = 31;
/// The days that are counted once a week, and after everything was read.
const WEEK: i64 = 7;
/// Daily counts begin at this hour, UTC, and are spread over the hours after it.
const NIGHT: TimeDelta = TimeDelta::hours(2);
const SPREAD_SECS: u64 = 4 * 3_600;

/// Asks for days of a mailbox to be counted, yesterday and today if none is named. Returns them. A day that is waited for already is counted once.
pub async fn ask(
    env: &Env,
    caller: &Caller,
    source_id: SourceId,
    days: &[NaiveDate],
) -> Result<Vec<NaiveDate>, ActError> {
    let today = env.clock.now().date_naive();
    let mut days = if days.is_empty() { last_days(today, 1) } else { days.to_vec() };
    days.sort_unstable();
    days.dedup();
    if days.len() > MOST_DAYS {
        return Err(ActError::invalid(format!("at most {MOST_DAYS} days are counted at once")));
    }
    let oldest = today - TimeDelta::days(KEPT_DAYS);
    if days.iter().any(|day| *day > today || *day < oldest) {
        return Err(ActError::invalid(format!("a day lies between {oldest} and {today} (UTC)")));
    }
    let tenant_id = caller.tenant_id;
    let asked = env.db.write(async |tx| -> Result<(), ActError> {
        let source = sources::load(tx, tenant_id, source_id).await?.or_missing("source")?;
        can_be_counted(env, &source)?;
        Ok(ask_for(env, tx, tenant_id, source_id, &days, requested_by(caller)).await?)
    });
    asked.await?;
    Ok(days)
}

/// Whether a source is a mailbox that its provider can count.
fn can_be_counted(env: &Env, source: &Source) -> Result<(), ActError> {
    let provider = env.providers.named(&source.provider).ok().filter(|provider| provider.mailbox.is_some());
    let Some(provider) = provider else {
        return Err(ActError::conflict("only the messages of a mailbox are counted at the provider"));
    };
    if at_provider(env, provider, source).is_none() {
        return Err(ActError::conflict(NO_PROVIDER));
    }
    Ok(jobs::must_be_synced(source)?)
}

/// The reason why sample data is not counted.
pub(crate) const NO_PROVIDER: &str = "sample data has no provider that could count it";

/// The provider's own API, if the mailbox is read by it.
pub(crate) fn at_provider(env: &Env, provider: Provider, source: &Source) -> Option<Arc<dyn Mailbox>> {
    env.providers.mailbox(provider).filter(|_| source.transport == Transport::Rest)
}

/// Adds days to those that are waited for, in the caller's transaction, and the message that has them counted. There is one message per mailbox: the
/// source's row is locked, as in the commit that ends with no day left.
pub(crate) async fn ask_for(
    env: &Env,
    tx: &mut Tx,
    tenant_id: TenantId,
    source_id: SourceId,
    days: &[NaiveDate],
    by: &str,
) -> store::Result<()> {
    if sources::locked_status(tx, tenant_id, source_id).await?.is_none() {
        return Ok(());
    }
    checks::ask(tx, env.clock.sql(), tenant_id, source_id, days, by).await?;
    let (queue, of_it) = (queue_of::<CheckMailbox>(), json!({ "tenant_id": tenant_id, "source_id": source_id }));
    if !queue.holds(tx, &of_it).await? && !queue.has_parked(tx, tenant_id, &of_it).await? {
        queue.send(tx, tenant_id, &[CheckMailbox { source_id }]).await?;
    }
    tx.notify(sources::changed(tenant_id, source_id));
    Ok(())
}

/// A pass over everything that a mailbox has came to its end, from `read_from` on if it was capped: its last days are counted.
pub(crate) async fn after_full(
    env: &Env,
    tx: &mut Tx,
    tenant_id: TenantId,
    source_id: SourceId,
    read_from: Option<DateTime<Utc>>,
) -> store::Result<()> {
    checks::set_read_from(tx, tenant_id, source_id, read_from).await?;
    let days = last_days(env.clock.now().date_naive(), WEEK);
    ask_with_unsettled(env, tx, tenant_id, source_id, days, "full pass").await
}

/// Asks for these days, and for those that did not come out equal before.
async fn ask_with_unsettled(
    env: &Env,
    tx: &mut Tx,
    tenant_id: TenantId,
    source_id: SourceId,
    mut days: Vec<NaiveDate>,
    by: &str,
) -> store::Result<()> {
    let most = i64::try_from(MOST_DAYS).unwrap_or(i64::MAX);
    days.extend(checks::unsettled(tx, tenant_id, source_id, most).await?);
    days.sort_unstable();
    days.dedup();
    ask_for(env, tx, tenant_id, source_id, &days, by).await
}

/// Asks for the days that are due: yesterday, today so far and days that did not come out equal once a day, and the last seven days once a week. Every
/// mailbox has its own time of the night, and its own day of the week.
pub(crate) async fn keep(env: &Env) -> Result<(), Fault> {
    let providers: Vec<&str> = env
        .providers
        .all()
        .iter()
        .filter(|provider| provider.mailbox.is_some())
        .map(|provider| provider.name)
        .collect();
    if providers.is_empty() {
        return Ok(());
    }
    let now = env.clock.now();
    let today = now.date_naive();
    let mailboxes =
        env.db.session(async |conn| checks::mailboxes(conn, &providers, today - TimeDelta::days(1)).await).await?;
    for mailbox in mailboxes {
        let (tenant_id, source_id) = (TenantId(mailbox.tenant_id), SourceId(mailbox.source_id));
        let Some(days) = due(now, source_id, mailbox.last) else { continue };
        let mut tx = env.db.begin().await?;
        ask_with_unsettled(env, &mut tx, tenant_id, source_id, days, "schedule").await?;
        tx.commit().await?;
    }
    Ok(())
}

/// The days of a mailbox that are to be counted now, if yesterday was counted or asked for at `last`.
fn due(now: DateTime<Utc>, source_id: SourceId, last: Option<DateTime<Utc>>) -> Option<Vec<NaiveDate>> {
    let own = source_id.0.as_u128() as u64;
    let today = now.date_naive();
    let seconds = TimeDelta::seconds(i64::try_from(own % SPREAD_SECS).unwrap_or(0));
    let turn = today.and_time(NaiveTime::MIN).and_utc() + NIGHT + seconds;
    if now < turn || last.is_some_and(|last| last >= turn) {
        return None;
    }
    let is_its_day = u64::from(chrono::Datelike::weekday(&today).num_days_from_monday()) == own / SPREAD_SECS % 7;
    Some(last_days(today, if is_its_day { WEEK } else { 1 }))
}

/// So many days before today, and today.
fn last_days(today: NaiveDate, before: i64) -> Vec<NaiveDate> {
    (0..=before).map(|n| today - TimeDelta::days(n)).collect()
}

/// The newest days of a mailbox that were counted or are waited for, the newest first.
pub async fn days(env: &Env, caller: &Caller, source_id: SourceId, limit: i64) -> Result<Vec<Check>, ActError> {
    let tenant_id = caller.tenant_id;
    let listed = env.db.read(caller, async |tx| {
        if sources::load(tx, tenant_id, source_id).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(checks::list(tx, tenant_id, source_id, false, limit).await?))
    });
    listed.await?.or_missing("source")
}

/// Has the letters read that differ on a day: those that are missing come in, those that the provider no longer has go. The day is counted again
/// after it. One job reads at most 500 letters.
pub async fn fetch_missing(env: &Env, caller: &Caller, source_id: SourceId, day: NaiveDate) -> Result<Again, ActError> {
    let (tenant_id, by) = (caller.tenant_id, requested_by(caller));
    let fetched = env.db.write(async |tx| -> Result<Again, ActError> {
        let check = checks::get(tx, tenant_id, source_id, day).await?;
        let Some(check) = check.filter(|check| check.state == CheckState::Differs) else {
            return Ok(Again::Unknown);
        };
        let mut names = [check.missing, check.surplus].concat();
        let n_differing = usize::try_from(check.n_missing + check.n_surplus).unwrap_or(0);
        names.truncate(MOST_ITEMS);
        let too_many = n_differing.saturating_sub(names.len());
        // First, as in the commit that ends a sync: the source's row is locked before its jobs' are.
        ask_for(env, tx, tenant_id, source_id, &[day], by).await?;
        let asked = jobs::read_again(env, tx, tenant_id, source_id, &names, by).await?;
        let (asked, left_out) = asked.or_missing("source")?;
        let left_out = left_out + too_many;
        Ok(match asked {
            Asked::Started(job_id) => Again::Started { job_id, n: names.len(), left_out },
            Asked::Running(job_id) => Again::Running { job_id, left_out },
        })
    });
    fetched.await
}

/// The same for every day of a mailbox that differs, the newest first, as far as one job goes. Returns how many days were asked for.
pub async fn fetch_all_missing(env: &Env, caller: &Caller, source_id: SourceId) -> Result<usize, ActError> {
    let tenant_id = caller.tenant_id;
    let red = env.db.read(caller, async |tx| checks::list(tx, tenant_id, source_id, true, KEPT_DAYS).await).await?;
    let mut n = 0;
    for check in red {
        match fetch_missing(env, caller, source_id, check.day).await? {
            Again::Started { left_out: 0, .. } | Again::Running { left_out: 0, .. } => n += 1,
            Again::Started { .. } | Again::Running { .. } => return Ok(n + 1), // the rest would be too many for one job
            Again::Unknown | Again::Nameless => {}
        }
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use uuid::Uuid;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn each_mailbox_is_counted_once_a_day_and_a_week_of_it_once_a_week() {
        let (mut turns, mut weeks) = (HashSet::new(), HashSet::new());
        for _ in 0..200 {
            let id = SourceId(Uuid::new_v4());
            assert_eq!(due(at("2026-11-16T01:59:59Z"), id, None), None, "not before the night");
            let (mut last, mut n_week) = (None, 0);
            for day in 16..23 {
                let mut n = 0;
                for quarter in 0..96 {
                    let now = at(&format!("2026-11-{day}T00:00:00Z")) + TimeDelta::minutes(15 * quarter);
                    let Some(days) = due(now, id, last) else { continue };
                    assert_eq!(days[0], now.date_naive());
                    turns.insert(quarter);
                    (n, n_week, last) = (n + 1, n_week + usize::from(days.len() == 8), Some(now));
                    if days.len() == 8 {
                        weeks.insert(day);
                    }
                }
                assert_eq!(n, 1, "{day}");
            }
            assert_eq!(n_week, 1);
        }
        assert!(turns.len() > 12 && weeks.len() == 7, "{turns:?} {weeks:?}");
    }

    #[test]
    fn a_day_that_a_person_asked_for_after_the_turn_is_not_asked_for_again() {
        let id = SourceId(Uuid::nil());
        assert!(due(at("2026-11-16T12:00:00Z"), id, Some(at("2026-11-15T23:00:00Z"))).is_some());
        assert_eq!(due(at("2026-11-16T12:00:00Z"), id, Some(at("2026-11-16T03:00:00Z"))), None);
    }
}
