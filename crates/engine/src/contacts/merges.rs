//! Two contacts who are one person: the addresses, activities and documents of one become the other's. It can be undone without a trace.

use domain::{Caller, ContactId};
use store::clients::matching;
use store::contacts::merges::{self, Merge, MergeState};
use store::contacts::{self, Contact, theirs};
use uuid::Uuid;

use super::corrected::{BITE, UNFINISHED, by, is_blank, locked, settled, to_its_end};
use crate::act::OrMissing as _;
use crate::activities::remember_again;
use crate::{ActError, Env};

/// Lists the contacts that were made part of this one, the latest first.
pub async fn list(env: &Env, caller: &Caller, id: ContactId) -> Result<Vec<Merge>, ActError> {
    Ok(env.db.read(caller, async |tx| merges::list(tx, caller.tenant_id, id).await).await?)
}

/// Makes `other` part of `into`. The first commit records it and moves addresses, so that new events go to `into`; activities and documents follow some
/// thousands in a commit, and `other` goes with the last. Asking again after a crash goes on.
pub async fn merge(env: &Env, caller: &Caller, into: ContactId, other: ContactId) -> Result<Contact, ActError> {
    let (env, caller) = (env.clone(), caller.clone());
    to_its_end(async move { merge_all(&env, &caller, into, other).await }).await
}

async fn merge_all(env: &Env, caller: &Caller, into: ContactId, other: ContactId) -> Result<Contact, ActError> {
    let tenant_id = caller.tenant_id;
    if into == other {
        return Err(ActError::invalid("a contact cannot be merged with itself"));
    }
    let begun = env.db.write(async |tx| -> Result<Uuid, ActError> {
        // Decisions about clients move too; their writers take this lock first.
        matching::lock(tx, tenant_id).await?;
        // In the order of their ids, so that two merges never wait for each other in a ring.
        let (first, second) = if into.0 < other.0 { (into, other) } else { (other, into) };
        for id in [first, second] {
            locked(tx, tenant_id, id).await?;
        }
        if let Some(id) = merges::unfinished(tx, tenant_id, (into, other)).await? {
            return Ok(id);
        }
        let (one, two) = (settled(tx, tenant_id, first).await?, settled(tx, tenant_id, second).await?);
        for contact in [&one, &two] {
            let names = [&contact.first_name, &contact.last_name];
            if is_blank(tx, tenant_id, ContactId(contact.id), names).await? {
                return Err(ActError::conflict(
                    "one of the two contacts is being deleted: it has neither a name nor an address",
                ));
            }
        }
        let gone = if first == other { one } else { two };
        Ok(merges::begin(tx, env.clock.sql(), tenant_id, (into, &gone), &by(caller)).await?)
    });
    let id = begun.await?;
    loop {
        let moved = env.db.write(async |tx| -> Result<bool, ActError> {
            contacts::lock(tx, tenant_id, other).await?.or_missing("contact")?;
            let merge = merges::lock(tx, tenant_id, id).await?.or_missing("merge of this contact")?;
            if merge.state != MergeState::Merging {
                return Err(ActError::conflict(UNFINISHED)); // somebody undoes it
            }
            let activities = theirs::move_activities(tx, tenant_id, (other, Some(into)), BITE).await?;
            let documents = theirs::move_documents(tx, tenant_id, (other, Some(into)), BITE).await?;
            merges::note(tx, tenant_id, id, &activities, &documents).await?;
            remember_again(tx, tenant_id, &activities).await?;
            let is_last = activities.len().max(documents.len()) < BITE as usize;
            if is_last {
                contacts::delete(tx, tenant_id, other).await?;
                merges::set_state(tx, tenant_id, id, MergeState::Merged).await?;
            }
            Ok(is_last)
        });
        if moved.await? {
            break;
        }
    }
    tracing::info!(contact.id = %into, tenant.id = %tenant_id, "contact {other} became part of contact {into}, as key {} asked", caller.key_id);
    super::get(env, caller, into).await
}

/// Undoes a merge: the contact is there again under its old number, with what it had and still belongs to the other one. Asking again after a crash goes
/// on.
pub async fn undo(env: &Env, caller: &Caller, id: ContactId, merge: Uuid) -> Result<Contact, ActError> {
    let (env, caller) = (env.clone(), caller.clone());
    to_its_end(async move { undo_all(&env, &caller, id, merge).await }).await
}

async fn undo_all(env: &Env, caller: &Caller, id: ContactId, merge: Uuid) -> Result<Contact, ActError> {
    let (tenant_id, bite) = (caller.tenant_id, BITE as usize);
    let again = env.db.write(async |tx| -> Result<Merge, ActError> {
        matching::lock(tx, tenant_id).await?;
        locked(tx, tenant_id, id).await?;
        let found = merges::lock(tx, tenant_id, merge).await?;
        let found = found.filter(|merge| merge.contact_id == id.0).or_missing("merge of this contact")?;
        merges::set_state(tx, tenant_id, merge, MergeState::Undoing).await?;
        merges::take_back(tx, tenant_id, &found).await?;
        Ok(found)
    });
    let found = again.await?;
    let back = ContactId(found.merged.contact.id);
    let rounds = found.activities.len().max(found.documents.len()).div_ceil(bite).max(1);
    for round in 0..rounds {
        let of = |all: &[Uuid]| all.iter().skip(round * bite).take(bite).copied().collect::<Vec<_>>();
        let (activities, documents) = (of(&found.activities), of(&found.documents));
        let given = env.db.write(async |tx| -> Result<(), ActError> {
            // Another that undoes it may have come to the end.
            if merges::lock(tx, tenant_id, merge).await?.is_none() {
                return Ok(());
            }
            let moved = theirs::give_back_activities(tx, tenant_id, &activities, (id, back)).await?;
            theirs::give_back_documents(tx, tenant_id, &documents, (id, back)).await?;
            remember_again(tx, tenant_id, &moved).await?;
            if round + 1 == rounds {
                merges::remove(tx, tenant_id, merge).await?;
            }
            Ok(())
        });
        given.await?;
    }
    tracing::info!(contact.id = %id, tenant.id = %tenant_id, "contact {back} is no longer part of contact {id}, as key {} asked", caller.key_id);
    super::get(env, caller, back).await
}
