//! Contacts as people correct them: changed, and deleted without what came from them.

use domain::shown::clipped;
use domain::text::has_nul;
use domain::{Caller, ContactId, Fault, Region, TenantId};
use serde_json::json;
use store::Tx;
use store::activities;
use store::contacts::{self, Contact, NewContact, merges, theirs};
use store::mail::letters;

use super::{MOST_TAGS, checked_email, checked_phone, plain};
use crate::act::OrMissing as _;
use crate::activities::remember_again;
use crate::lanes::forget::ForgetAll;
use crate::lanes::queue_of;
use crate::{ActError, Env};

/// So many activities change hands in one commit.
pub(super) const BITE: i64 = 1_000;
pub(super) const UNFINISHED: &str =
    "a merge of this contact is under way: wait for it, merge the two once more, or undo it";
/// The most addresses that one request adds or removes.
const MOST_ADDRESSES: usize = 50;

/// Changes to a contact. None: it stays as it is. An empty text removes it.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub email: Option<String>,
    pub phone_number: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub tags: Option<Vec<String>>,
    /// Further addresses by which it is recognised from now on.
    pub add_addresses: Vec<String>,
    /// Added addresses by which it is not recognised any more. Its activities stay.
    pub remove_addresses: Vec<String>,
}

impl Change {
    /// The contact's own fields afterwards, and the addresses to add, in the forms by which contacts are recognised. An error says what is wrong.
    fn applied(&self, contact: &Contact, region: Option<Region>) -> Result<(NewContact, Vec<String>), String> {
        let field = |new: &Option<String>, old: &Option<String>| match new {
            Some(new) => Some(plain(new)).filter(|text| !text.is_empty()),
            None => old.clone(),
        };
        let mut to = NewContact {
            email: field(&self.email, &contact.email),
            phone_number: field(&self.phone_number, &contact.phone_number),
            first_name: field(&self.first_name, &contact.first_name),
            last_name: field(&self.last_name, &contact.last_name),
            company: field(&self.company, &contact.company),
            tags: contact.tags.clone(),
            person_id: None,
        };
        // What is kept was checked when it came.
        if self.email.is_some() {
            to.email = to.email.as_deref().map(checked_email).transpose()?;
        }
        if self.phone_number.is_some() {
            to.phone_number = to.phone_number.as_deref().map(|number| checked_phone(number, region)).transpose()?;
        }
        if let Some(tags) = &self.tags {
            to.tags = tags.iter().map(|tag| plain(tag)).filter(|tag| !tag.is_empty()).take(MOST_TAGS).collect();
        }
        if self.add_addresses.len().max(self.remove_addresses.len()) > MOST_ADDRESSES {
            return Err(format!("at most {MOST_ADDRESSES} addresses at a time"));
        }
        if self.remove_addresses.iter().any(|text| text.is_empty() || has_nul(text)) {
            return Err("an address is some text".into());
        }
        let address = |text: &String| match plain(text) {
            text if text.contains('@') => checked_email(&text),
            text => checked_phone(&text, region),
        };
        let added = self.add_addresses.iter().map(address).collect::<Result<Vec<_>, _>>()?;
        Ok((to, added))
    }
}

/// Changes a contact's fields and addresses, and links unmatched activities of its new addresses to it.
pub async fn change(env: &Env, caller: &Caller, id: ContactId, change: Change) -> Result<Contact, ActError> {
    let (tenant_id, region) = (caller.tenant_id, env.config.phone_region);
    let changed = env.db.write(async |tx| -> Result<Contact, ActError> {
        let contact = settled(tx, tenant_id, id).await?;
        let (to, added) = change.applied(&contact, region).map_err(ActError::Invalid)?;
        for address in &change.remove_addresses {
            contacts::remove_address(tx, tenant_id, id, address).await?.or_missing("added address of this contact")?;
        }
        contacts::change(tx, tenant_id, id, &to).await?;
        for address in &added {
            contacts::add_address(tx, tenant_id, id, address).await?;
        }
        if is_blank(tx, tenant_id, id, [&to.first_name, &to.last_name]).await? {
            return Err(ActError::invalid("a contact needs a name or an address"));
        }
        let linked = activities::match_again(tx, tenant_id, Some(id)).await?;
        letters::match_again(tx, tenant_id, Some(id)).await?;
        remember_again(tx, tenant_id, &linked).await?;
        contacts::get(tx, tenant_id, id).await?.or_missing("contact")
    });
    let contact = changed.await?;
    tracing::info!(contact.id = %id, tenant.id = %tenant_id, "contact {id} was changed by key {}", caller.key_id);
    Ok(contact)
}

/// Deletes a contact and keeps what came from it: its activities and documents have no contact afterwards. Its name and addresses go in the first
/// commit, its activities lose it some thousands in a commit, and it goes with the last. Asking again after a crash goes on.
pub async fn delete(env: &Env, caller: &Caller, id: ContactId) -> Result<(), ActError> {
    let (env, caller) = (env.clone(), caller.clone());
    to_its_end(async move { delete_all(&env, &caller, id).await }).await
}

async fn delete_all(env: &Env, caller: &Caller, id: ContactId) -> Result<(), ActError> {
    let tenant_id = caller.tenant_id;
    let blanked = env.db.write(async |tx| -> Result<(), ActError> {
        settled(tx, tenant_id, id).await?;
        Ok(contacts::blank(tx, tenant_id, id).await?)
    });
    blanked.await?;
    loop {
        let gone = env.db.write(async |tx| -> Result<bool, ActError> {
            settled(tx, tenant_id, id).await?;
            let activities = theirs::move_activities(tx, tenant_id, (id, None), BITE).await?;
            let documents = theirs::move_documents(tx, tenant_id, (id, None), BITE).await?;
            remember_again(tx, tenant_id, &activities).await?;
            let is_last = activities.len().max(documents.len()) < BITE as usize;
            if is_last {
                contacts::delete(tx, tenant_id, id).await?;
            }
            Ok(is_last)
        });
        if gone.await? {
            break;
        }
    }
    tracing::info!(contact.id = %id, tenant.id = %tenant_id, "contact {id} was deleted by key {}", caller.key_id);
    Ok(())
}

/// Locks a contact and reads it. One that is being forgotten is not to be corrected.
pub(crate) async fn locked(tx: &mut Tx, tenant_id: TenantId, id: ContactId) -> Result<Contact, ActError> {
    contacts::lock(tx, tenant_id, id).await?.or_missing("contact")?;
    let message = json!({ "tenant_id": tenant_id, "contact_id": id });
    if queue_of::<ForgetAll>().holds(tx, &message).await? {
        return Err(ActError::conflict("this contact is being forgotten"));
    }
    contacts::get(tx, tenant_id, id).await?.or_missing("contact")
}

/// The same for a contact that no merge is moving.
pub(super) async fn settled(tx: &mut Tx, tenant_id: TenantId, id: ContactId) -> Result<Contact, ActError> {
    let contact = locked(tx, tenant_id, id).await?;
    if merges::is_unfinished(tx, tenant_id, id).await? {
        return Err(ActError::conflict(UNFINISHED));
    }
    Ok(contact)
}

/// Whether a contact has neither a name nor an address. Only a contact that is being deleted has none.
pub(super) async fn is_blank(
    tx: &mut Tx,
    tenant_id: TenantId,
    id: ContactId,
    names: [&Option<String>; 2],
) -> Result<bool, ActError> {
    let is_nameless = names.iter().all(|name| name.as_deref().is_none_or(|name| name.trim().is_empty()));
    Ok(is_nameless && contacts::addresses(tx, tenant_id, id).await?.is_empty())
}

/// Does it to its end, also if the request that asked for it ends before: a contact of very many activities takes longer than a request may.
pub(super) async fn to_its_end<T: Send + 'static>(
    act: impl Future<Output = Result<T, ActError>> + Send + 'static,
) -> Result<T, ActError> {
    tokio::spawn(act).await.unwrap_or_else(|error| Err(ActError::Failed(Fault::Transient(error.into()))))
}

/// The name under which an act is recorded.
pub(super) fn by(caller: &Caller) -> String {
    clipped(&caller.key_name, 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> Contact {
        Contact {
            id: 1,
            email: Some("ann@example.com".into()),
            phone_number: None,
            first_name: Some("Ann".into()),
            last_name: None,
            company: Some("Larkfield".into()),
            tags: vec!["vip".into()],
            created_at: chrono::Utc::now(),
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name_and_clears_what_is_empty() {
        let some = |text: &str| Some(text.to_owned());
        let us = Some("US".parse().expect("a region"));
        let change = Change {
            email: some(" Ann.Lark@Example.com "),
            phone_number: some("(415) 867-5309"),
            last_name: some("  Lark\u{0}  "),
            company: some(" "),
            add_addresses: vec!["ANN@home.example".into(), "+44 20 7946 0958".into()],
            ..Change::default()
        };
        let (to, added) = change.applied(&ann(), us).expect("a contact");
        assert_eq!(to.email, some("ann.lark@example.com"));
        assert_eq!(to.phone_number, some("+14158675309"));
        assert_eq!((to.first_name, to.last_name, to.company), (some("Ann"), some("Lark"), None));
        assert_eq!(
            (to.tags, added),
            (vec!["vip".to_owned()], vec!["ann@home.example".to_owned(), "+442079460958".into()])
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let some = |text: &str| Some(text.to_owned());
        for odd in [
            Change { email: some("ann"), ..Change::default() },
            Change { phone_number: some("12"), ..Change::default() },
            Change { add_addresses: vec!["nobody".into()], ..Change::default() },
            Change { add_addresses: vec![String::new()], ..Change::default() },
            Change { add_addresses: vec!["a@b.example".into(); 51], ..Change::default() },
            Change { remove_addresses: vec!["a\0b".into()], ..Change::default() },
        ] {
            assert!(odd.applied(&ann(), None).is_err(), "{odd:?}");
        }
    }
}
