//! Decisions of people about clients: two are one (merge), a record is not of this client (split). A decision is stored, matching honours it, and undoing
//! it leaves nothing behind: the records are matched again as if it had never been made.

use domain::{Caller, ClientId, ContactId};
use store::clients::{self, ClientRecord, decisions, matching as rows};
use uuid::Uuid;

use super::matching::rematch;
use crate::act::OrMissing as _;
use crate::{ActError, Env};

/// The name of a contact in decisions.
pub fn contact_reference(id: ContactId) -> String {
    format!("contact/{id}")
}

/// The record or contact that is set apart from its client.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Record(Uuid),
    Contact(ContactId),
}

/// Two clients are one from now on. Returns the client that they are.
pub async fn merge(env: &Env, caller: &Caller, one: ClientId, other: ClientId) -> Result<ClientId, ActError> {
    let (a, b) = (leading(env, caller, one).await?, leading(env, caller, other).await?);
    if a.id == b.id {
        return Err(ActError::conflict("they are one client already"));
    }
    decide(env, caller, &[a.id, b.id], (&b.reference(), Some(&a.reference()))).await?;
    Ok(ClientId(leading(env, caller, ClientId(a.id)).await?.id))
}

/// A contact belongs to a client from now on.
pub async fn add_contact(env: &Env, caller: &Caller, client: ClientId, contact: ContactId) -> Result<(), ActError> {
    let leads = leading(env, caller, client).await?;
    contact_of(env, caller, contact).await?;
    let reference = contact_reference(contact);
    if is_merged(env, caller, &reference).await? {
        return Err(ActError::conflict("a person said of which client it is: undo that first"));
    }
    decide(env, caller, &[], (&reference, Some(&leads.reference()))).await
}

/// Whether a person said that a record or contact is of a client.
async fn is_merged(env: &Env, caller: &Caller, reference: &str) -> Result<bool, ActError> {
    let about = [reference.to_owned()];
    let said = env.db.read(caller, async |tx| decisions::about(tx, &about).await).await?;
    Ok(said.iter().any(|decision| decision.kind == "merge"))
}

/// A record or a contact is not of this client: it is matched with nothing until that is undone. Returns the client that the record is now; a
/// contact is of none.
pub async fn split(env: &Env, caller: &Caller, client: ClientId, part: Part) -> Result<Option<ClientId>, ActError> {
    let client = leading(env, caller, client).await?;
    let (reference, id) = match part {
        Part::Contact(id) => {
            contact_of(env, caller, id).await?;
            let of = super::of_contact(env, caller, id).await?;
            if of.is_none_or(|(of, _)| of.0 != client.id) {
                return Err(ActError::NotFound("contact of this client"));
            }
            (contact_reference(id), None)
        }
        Part::Record(id) => {
            let record = env.db.read(caller, async |tx| clients::record(tx, id).await).await?;
            let record = record.filter(|record| record.client_id == client.id).or_missing("record of this client")?;
            if record.is_curated() {
                return Err(ActError::invalid("a person wrote these facts about this client: withdraw them instead"));
            }
            (record.reference(), Some(id))
        }
    };
    if is_merged(env, caller, &reference).await? {
        return Err(ActError::conflict("a person said that it is of this client: undo that instead"));
    }
    // The others are matched again as well: a record that goes may have been what joined them.
    let seeds: Vec<Uuid> = id.into_iter().chain([client.id]).collect();
    decide(env, caller, &seeds, (&reference, None)).await?;
    Ok(match id {
        Some(id) => env.db.read(caller, async |tx| clients::of_record(tx, ClientId(id)).await).await?,
        None => None,
    })
}

/// Undoes a decision about one of a client's records. Returns the client that its record is of now.
pub async fn undo(env: &Env, caller: &Caller, client: ClientId, decision: Uuid) -> Result<ClientId, ActError> {
    let whole = super::whole(env, caller, client).await?;
    if !whole.decisions.iter().any(|decided| decided.decision.id == decision) {
        return Err(ActError::NotFound("decision about this client"));
    }
    let (tenant_id, providers) = (caller.tenant_id, env.providers.all());
    let undone = env.db.write(async |tx| -> Result<(), ActError> {
        rows::lock(tx, tenant_id).await?;
        let gone = decisions::remove(tx, tenant_id, decision).await?.or_missing("decision about this client")?;
        let keys: Vec<String> =
            [Some(gone.record), gone.other].into_iter().flatten().map(|name| format!("ref:{name}")).collect();
        rematch(tx, providers, tenant_id, &[whole.id.0], &keys).await?;
        Ok(())
    });
    undone.await?;
    tracing::info!(client.id = %whole.id, "a decision about client {} was undone, as key {} asked", whole.id, caller.key_id);
    Ok(ClientId(leading(env, caller, client).await?.id))
}

/// Stores a decision and matches what it concerns, in one transaction.
async fn decide(env: &Env, caller: &Caller, ids: &[Uuid], about: (&str, Option<&str>)) -> Result<(), ActError> {
    let (tenant_id, providers) = (caller.tenant_id, env.providers.all());
    let decided = env.db.write(async |tx| -> Result<(), ActError> {
        rows::lock(tx, tenant_id).await?;
        if !decisions::insert(tx, env.clock.sql(), tenant_id, about, &caller.key_name).await? {
            return Err(ActError::conflict("that was decided before"));
        }
        rematch(tx, providers, tenant_id, ids, &[]).await?;
        Ok(())
    });
    decided.await
}

/// The record that leads a client.
async fn leading(env: &Env, caller: &Caller, id: ClientId) -> Result<ClientRecord, ActError> {
    let found = env.db.read(caller, async |tx| {
        let Some(id) = clients::of_record(tx, id).await? else { return Ok(None) };
        clients::record(tx, id.0).await
    });
    found.await?.or_missing("client")
}

async fn contact_of(env: &Env, caller: &Caller, id: ContactId) -> Result<(), ActError> {
    crate::contacts::get(env, caller, id).await.map(drop)
}

/// The name of a record or contact that a decision is about, for people.
pub(super) async fn name_of(tx: &mut store::Tx, reference: &str) -> store::Result<String> {
    Ok(store::clients::named(tx, reference).await?.unwrap_or_else(|| "a record that is gone".to_owned()))
}
