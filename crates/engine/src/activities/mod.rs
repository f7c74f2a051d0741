//! Activities as a person sees them and acts on them: listed, written, retried, skipped, linked to a contact.

pub mod inserted;
pub mod processed;
pub mod written;

use std::collections::HashMap;

use domain::shown::clipped;
use domain::text::has_nul;
use domain::{ActivityId, Caller, ContactId, Notice, Op, TenantId};
use store::activities::{Activity, Position, Wanted};
use store::claims::Changed;
use store::dead_letters::DeadLetter;
use store::mail::letters;
use store::{Tx, activities, contacts, dead_letters};
use uuid::Uuid;

use crate::act::OrMissing as _;
use crate::lanes::queue_of;
use crate::lanes::remember_activity::RememberActivity;
use crate::{ActError, Env};

/// A page of activities, the newest first, and the place before which the next page begins, which stays good whatever is deleted meanwhile. Texts
/// are cut, unless whole ones are wanted. Where no index decides, a page ends after so many were looked at, so it may have few rows or none and
/// still lead on.
pub async fn list(
    env: &Env,
    caller: &Caller,
    wanted: Wanted<'_>,
) -> Result<(Vec<Activity>, Option<Position>), ActError> {
    if wanted.filter.text.is_some_and(has_nul) {
        return Err(ActError::invalid("q has a NUL character"));
    }
    let tenant_id = caller.tenant_id;
    let page = env.db.read(caller, async |tx| {
        let listed = activities::list(tx, tenant_id, wanted).await?;
        let next_before = match listed.last() {
            Some(last) if listed.len() as i64 == wanted.limit => Some(last.position()),
            _ if wanted.is_sifted() => activities::last_looked_at(tx, tenant_id, wanted).await?,
            _ => None,
        };
        Ok((listed, next_before))
    });
    Ok(page.await?)
}

/// The place of an activity after which a list goes on. One that is gone is refused: an empty page would look like the end of the list.
pub async fn position(env: &Env, caller: &Caller, id: ActivityId) -> Result<Position, ActError> {
    let found = env.db.read(caller, async |tx| activities::position(tx, caller.tenant_id, id).await).await?;
    found.or_missing("activity to go on from")
}

/// One activity, whole.
pub async fn get(env: &Env, caller: &Caller, id: ActivityId) -> Result<Activity, ActError> {
    let found = env.db.read(caller, async |tx| activities::get(tx, caller.tenant_id, id).await).await?;
    found.or_missing("activity")
}

/// Retries a failed activity.
pub async fn retry(env: &Env, caller: &Caller, id: ActivityId) -> Result<(), ActError> {
    let retried = env.db.write(async |tx| {
        let n = retry_all(tx, caller.tenant_id, &[id.0]).await?;
        settled(tx, caller, id, n == 1, "only what failed is tried again").await
    });
    retried.await
}

/// Skips an activity: no agent will process it.
pub async fn skip(env: &Env, caller: &Caller, id: ActivityId) -> Result<(), ActError> {
    let (tenant_id, by) = (caller.tenant_id, clipped(&caller.key_name, 60));
    let skipped = env.db.write(async |tx| {
        let is_done = activities::skip(tx, tenant_id, id, &by).await?;
        if is_done {
            tx.notify_all(Notice::activities(tenant_id, &[id.0], Op::Update));
        }
        settled(tx, caller, id, is_done, "it is completed already").await
    });
    skipped.await
}

/// Tells an activity whose state does not allow the act from one that is not there.
async fn settled(tx: &mut Tx, caller: &Caller, id: ActivityId, is_done: bool, why: &str) -> Result<(), ActError> {
    if is_done {
        return Ok(());
    }
    activities::get(tx, caller.tenant_id, id).await?.or_missing("activity")?;
    Err(ActError::conflict(why))
}

/// A page of activities that failed for good, the latest first, and where the next page begins.
pub async fn dead_letters(
    env: &Env,
    caller: &Caller,
    before: Option<i64>,
    limit: i64,
) -> Result<(Vec<DeadLetter>, Option<i64>), ActError> {
    let listed = env.db.read(caller, async |tx| dead_letters::list(tx, caller.tenant_id, before, limit).await).await?;
    let next_before = listed.last().filter(|_| listed.len() as i64 == limit).map(|last| last.letter_id);
    Ok((listed, next_before))
}

/// Replays activities that failed for good; returns how many of `ids` were such.
pub async fn replay(env: &Env, caller: &Caller, ids: &[Uuid]) -> Result<usize, ActError> {
    let replayed = env.db.write(async |tx| {
        let dead = dead_letters::among(tx, caller.tenant_id, ids).await?;
        Ok(retry_all(tx, caller.tenant_id, &dead).await?)
    });
    replayed.await
}

async fn retry_all(tx: &mut Tx, tenant_id: TenantId, ids: &[Uuid]) -> store::Result<usize> {
    let retried = activities::retry(tx, tenant_id, ids).await?;
    if !retried.is_empty() {
        tx.notify_all(Notice::activities(tenant_id, &retried, Op::Update));
        tx.notify(something_to_claim(tenant_id));
    }
    Ok(retried.len())
}

/// The outcome of linking an activity to a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The number of other activities of the same address that were linked too.
    pub others: usize,
}

/// Links an activity to a contact. With `is_address_theirs` its address becomes the contact's, and other activities of that address are linked too.
pub async fn link(
    env: &Env,
    caller: &Caller,
    id: ActivityId,
    contact_id: ContactId,
    is_address_theirs: bool,
) -> Result<Linked, ActError> {
    let (tenant_id, missing) = (caller.tenant_id, "activity or contact");
    let linked = env.db.write(async |tx| {
        let activity = activities::get(tx, tenant_id, id).await?.or_missing(missing)?;
        crate::contacts::hold(tx, tenant_id, &[contact_id.0]).await?;
        activities::link(tx, tenant_id, id, contact_id).await?.or_missing(missing)?;
        let mut linked = vec![id.0];
        if let Some(party) = activity.party().filter(|_| is_address_theirs) {
            contacts::add_address(tx, tenant_id, contact_id, party).await?;
            linked.extend(activities::match_again(tx, tenant_id, Some(contact_id)).await?);
            letters::match_again(tx, tenant_id, Some(contact_id)).await?;
        }
        remember_again(tx, tenant_id, &linked).await?;
        Ok(Linked { others: linked.len() - 1 })
    });
    linked.await
}

/// Queues activities for memory again whose contact has changed.
pub(crate) async fn remember_again(tx: &mut Tx, tenant_id: TenantId, ids: &[Uuid]) -> store::Result<()> {
    let messages: Vec<RememberActivity> =
        ids.iter().map(|id| RememberActivity { activity_id: ActivityId(*id) }).collect();
    if !messages.is_empty() {
        queue_of::<RememberActivity>().send(tx, tenant_id, &messages).await?;
        tx.notify_all(Notice::activities(tenant_id, ids, Op::Update));
    }
    Ok(())
}

/// The notices of activities, of one tenant or several, that wait for an agent again.
pub(crate) fn waiting_again(rows: &[Changed]) -> Vec<Notice> {
    let mut by_tenant: HashMap<TenantId, Vec<Uuid>> = HashMap::new();
    for row in rows {
        by_tenant.entry(row.tenant_id).or_default().push(row.id);
    }
    let told = |(tenant_id, ids): (&TenantId, &Vec<Uuid>)| {
        let mut notices: Vec<Notice> = Notice::activities(*tenant_id, ids, Op::Update).collect();
        notices.push(something_to_claim(*tenant_id));
        notices
    };
    by_tenant.iter().flat_map(told).collect()
}

/// Wakes agents as if an activity had arrived. It names no row, so that no reader takes it for an insert.
fn something_to_claim(tenant_id: TenantId) -> Notice {
    Notice { tenant_id: Some(tenant_id), kind: "activities".into(), id: String::new(), op: Op::Insert, ids: Vec::new() }
}
