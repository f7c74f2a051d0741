//! What a person does about an activity: have it processed again, end it, say whose it is.

use domain::{ActivityId, ContactId, Notice, Op, TenantId};
use store::queue::Queue;
use store::{Tx, activities, contacts};
use uuid::Uuid;

use crate::Env;
use crate::work::Lane as _;
use crate::work::lanes::remember_activity::RememberActivity;

/// Has a failed activity processed again. `false`: none that failed.
pub async fn retry(env: &Env, tenant_id: TenantId, id: ActivityId) -> store::Result<bool> {
    let mut tx = env.db.begin().await?;
    let is_done = activities::retry(&mut tx, tenant_id, id).await?;
    tell(&mut tx, tenant_id, id, Op::Insert); // there is something to claim, as if it had come just now
    tx.commit().await?;
    Ok(is_done)
}

/// Ends an activity that nobody shall process. `false`: it is done already, or there is none.
pub async fn skip(env: &Env, tenant_id: TenantId, id: ActivityId, by: &str) -> store::Result<bool> {
    let mut tx = env.db.begin().await?;
    let is_done = activities::skip(&mut tx, tenant_id, id, by).await?;
    tell(&mut tx, tenant_id, id, Op::Update);
    tx.commit().await?;
    Ok(is_done)
}

/// What linking did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linked {
    /// Others of the same address, which are this contact's too now.
    pub others: usize,
}

/// Says whose an activity is. With `is_address_theirs` its address becomes the contact's, and other events of it are linked too. None: no such
/// activity or contact.
pub async fn link(
    env: &Env,
    tenant_id: TenantId,
    id: ActivityId,
    contact_id: ContactId,
    is_address_theirs: bool,
) -> store::Result<Option<Linked>> {
    let mut tx = env.db.begin().await?;
    let Some(activity) = activities::get(&mut tx, tenant_id, id).await? else { return Ok(None) };
    if !activities::link(&mut tx, tenant_id, id, contact_id).await? {
        return Ok(None);
    }
    let mut linked = vec![id.0];
    if let Some(party) = activity.party().filter(|_| is_address_theirs) {
        contacts::add_address(&mut tx, tenant_id, contact_id, party).await?;
        linked.extend(activities::match_again(&mut tx, tenant_id, Some(contact_id)).await?);
    }
    remember_again(&mut tx, tenant_id, &linked).await?;
    tx.commit().await?;
    Ok(Some(Linked { others: linked.len() - 1 }))
}

/// The documents of these activities are somebody's now.
pub(crate) async fn remember_again(tx: &mut Tx, tenant_id: TenantId, ids: &[Uuid]) -> store::Result<()> {
    let messages: Vec<RememberActivity> =
        ids.iter().map(|id| RememberActivity { activity_id: ActivityId(*id) }).collect();
    if !messages.is_empty() {
        Queue::new(RememberActivity::NAME)?.send(tx, tenant_id, &messages).await?;
        tx.notify(Notice { tenant_id: Some(tenant_id), kind: "activities".into(), id: String::new(), op: Op::Update });
    }
    Ok(())
}

fn tell(tx: &mut Tx, tenant_id: TenantId, id: ActivityId, op: Op) {
    tx.notify(Notice { tenant_id: Some(tenant_id), kind: "activities".into(), id: id.to_string(), op });
}
