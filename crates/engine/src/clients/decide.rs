//! Decisions of people about clients: two are one (merge), a record is not of this client (split). A decision is stored, matching honours it, and undoing
//! it leaves nothing behind: the records are matched again as if it had never been made.

use domain::{Caller, ClientId, ContactId};
use store::clients::{self, ClientRecord, decisions, matching as rows};
use uuid::Uuid;

use super::matching::rematch;
use crate::act::OrMissing as _;
use crate::contacts::corrected::locked;
use crate::{ActError, Env};

/// The name of a contact in decisions.
pub fn contact_reference(id: ContactId) -> String {
    format!("contact/{id}")
}

/// Whether a decision with this name is about a contact.
pub(super) fn is_contact(reference: &str) -> bool {
    reference.starts_with("contact/")
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

/// A contact belongs to a client from now on, whatever people said about it before. Returns the client.
pub async fn add_contact(
    env: &Env,
    caller: &Caller,
    client: ClientId,
    contact: ContactId,
) -> Result<ClientId, ActError> {
    let leads = leading(env, caller, client).await?;
    contact_of(env, caller, contact).await?;
    let of = super::of_contact(env, caller, contact).await?.client;
    if of.is_some_and(|of| of.client_id == leads.id) {
        return Err(ActError::conflict("it belongs to this client already"));
    }
    say_of_contact(env, caller, contact, Some(&leads.reference())).await?;
    Ok(ClientId(leads.id))
}

/// Undoes what people said about a contact's client: its addresses and its company decide again.
pub async fn undo_contact(env: &Env, caller: &Caller, contact: ContactId) -> Result<(), ActError> {
    contact_of(env, caller, contact).await?;
    let (tenant_id, reference) = (caller.tenant_id, contact_reference(contact));
    let undone = env.db.write(async |tx| -> Result<(), ActError> {
        rows::lock(tx, tenant_id).await?;
        decisions::remove_about(tx, tenant_id, &reference).await?.or_missing("decision about this contact")
    });
    undone.await?;
    tracing::info!(contact.id = %contact, "what was said about the client of contact {contact} was undone, as key {} asked", caller.key_id);
    Ok(())
}

/// Stores what a person says about a contact's client, instead of what was said before. None: it belongs to no client.
async fn say_of_contact(env: &Env, caller: &Caller, contact: ContactId, client: Option<&str>) -> Result<(), ActError> {
    let (tenant_id, reference) = (caller.tenant_id, contact_reference(contact));
    let said = env.db.write(async |tx| -> Result<(), ActError> {
        // In the order in which a merge of contacts takes them.
        rows::lock(tx, tenant_id).await?;
        locked(tx, tenant_id, contact).await?;
        decisions::remove_about(tx, tenant_id, &reference).await?;
        decisions::insert(tx, env.clock.sql(), tenant_id, (&reference, client), &caller.key_name).await?;
        Ok(())
    });
    said.await
}

/// The reason why what a person joined is not set apart.
const SAID: &str = "a person said that it is of this client: undo that instead";

/// Whether a person said that a record is of a client.
async fn is_merged(env: &Env, caller: &Caller, reference: &str) -> Result<bool, ActError> {
    let about = [reference.to_owned()];
    let said = env.db.read(caller, async |tx| decisions::about(tx, &about).await).await?;
    // A contact that was added to it joins no records.
    Ok(said.iter().any(|decision| decision.kind == "merge" && !is_contact(&decision.record)))
}

/// A record or a contact is not of this client: it is matched with nothing until that is undone. Returns the client that the record is now; a
/// contact is of none.
pub async fn split(env: &Env, caller: &Caller, client: ClientId, part: Part) -> Result<Option<ClientId>, ActError> {
    let client = leading(env, caller, client).await?;
    match part {
        Part::Contact(id) => {
            contact_of(env, caller, id).await?;
            let of = super::of_contact(env, caller, id).await?;
            if of.client.is_none_or(|of| of.client_id != client.id) {
                return Err(ActError::NotFound("contact of this client"));
            }
            if of.said.is_some() {
                return Err(ActError::conflict(SAID));
            }
            say_of_contact(env, caller, id, None).await?;
            Ok(None)
        }
        Part::Record(id) => {
            let record = env.db.read(caller, async |tx| clients::record(tx, id).await).await?;
            let record = record.filter(|record| record.client_id == client.id).or_missing("record of this client")?;
            if record.is_curated() {
                return Err(ActError::invalid("a person wrote these facts about this client: withdraw them instead"));
            }
            if is_merged(env, caller, &record.reference()).await? {
                return Err(ActError::conflict(SAID));
            }
            // The others are matched again as well: a record that goes may have been what joined them.
            decide(env, caller, &[id, client.id], (&record.reference(), None)).await?;
            Ok(env.db.read(caller, async |tx| clients::of_record(tx, ClientId(id)).await).await?)
        }
    }
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
