//! What a person does about an activity: retry it, skip it, link it to a contact.

use std::collections::HashMap;

use domain::{ActivityId, ContactId, Notice, Op, TenantId};
use store::claims::Changed;
use store::queue::Queue;
use store::{Tx, activities, contacts, dead_letters};
use uuid::Uuid;

use crate::Env;
use crate::lanes::remember_activity::RememberActivity;
use crate::work::Lane as _;

/// Has a failed activity processed again. `false`: there is none, or it has not failed.
pub async fn retry(env: &Env, tenant_id: TenantId, id: ActivityId) -> store::Result<bool> {
    let retried = env.db.write(async |tx| retry_all(tx, tenant_id, &[id.0]).await).await?;
    Ok(retried == 1)
}

/// Has those of these activities that are dead letters processed again; returns how many.
pub async fn replay(env: &Env, tenant_id: TenantId, ids: &[Uuid]) -> store::Result<usize> {
    let replayed = env.db.write(async |tx| {
        let dead = dead_letters::among(tx, tenant_id, ids).await?;
        retry_all(tx, tenant_id, &dead).await
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

/// Ends an activity unprocessed. `false`: it is completed, or there is none.
pub async fn skip(env: &Env, tenant_id: TenantId, id: ActivityId, by: &str) -> store::Result<bool> {
    let skipped = env.db.write(async |tx| {
        let is_done = activities::skip(tx, tenant_id, id, by).await?;
        if is_done {
            tx.notify_all(Notice::activities(tenant_id, &[id.0], Op::Update));
        }
        Ok(is_done)
    });
    skipped.await
}

/// The outcome of linking an activity to a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked {
    /// How many other activities of the same address were linked too.
    pub others: usize,
}

/// Links an activity to a contact. With `is_address_theirs` its address becomes the contact's, and other activities of that address are linked too.
/// None: there is no such activity or contact.
pub async fn link(
    env: &Env,
    tenant_id: TenantId,
    id: ActivityId,
    contact_id: ContactId,
    is_address_theirs: bool,
) -> store::Result<Option<Linked>> {
    let linked = env.db.write(async |tx| {
        let Some(activity) = activities::get(tx, tenant_id, id).await? else { return Ok(None) };
        if !activities::link(tx, tenant_id, id, contact_id).await? {
            return Ok(None);
        }
        let mut linked = vec![id.0];
        if let Some(party) = activity.party().filter(|_| is_address_theirs) {
            contacts::add_address(tx, tenant_id, contact_id, party).await?;
            linked.extend(activities::match_again(tx, tenant_id, Some(contact_id)).await?);
        }
        remember_again(tx, tenant_id, &linked).await?;
        Ok(Some(Linked { others: linked.len() - 1 }))
    });
    linked.await
}

/// Has activities remembered again whose contact has changed.
pub(crate) async fn remember_again(tx: &mut Tx, tenant_id: TenantId, ids: &[Uuid]) -> store::Result<()> {
    let messages: Vec<RememberActivity> =
        ids.iter().map(|id| RememberActivity { activity_id: ActivityId(*id) }).collect();
    if !messages.is_empty() {
        Queue::new(RememberActivity::NAME)?.send(tx, tenant_id, &messages).await?;
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
