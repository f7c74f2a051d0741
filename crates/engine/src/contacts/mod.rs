//! Contacts as people look at them, add them (one by one, or as a table) and correct them. An import never overwrites known fields.

pub mod corrected;
pub mod merges;

use anyhow::Context as _;
use domain::text::has_nul;
use domain::{ActivityId, Caller, ContactId, Region, TenantId, normal_email, normal_phone};
use serde_json::{Value, json};
use store::contacts::{self, Contact, Imported, NewContact, Wanted};
use store::forgotten::{self, Counted, Subject};
use store::mail::letters;
use store::{Tx, activities};

use crate::act::OrMissing as _;
use crate::activities::remember_again;
use crate::lanes::forget::ForgetAll;
use crate::lanes::queue_of;
use crate::{ActError, Env};

/// Rows in one transaction.
const BATCH: usize = 500;
const MOST_TAGS: usize = 50;

/// The result of an import.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    /// Unmatched activities that are linked now.
    pub linked: usize,
    /// Lines that were left out, and why.
    pub left_out: Vec<(u64, String)>,
}

/// Brings a contact's fields to the forms by which contacts are recognised. An error says what is wrong.
pub fn checked(mut contact: NewContact, region: Option<Region>) -> Result<NewContact, String> {
    let fields = [
        &mut contact.email,
        &mut contact.phone_number,
        &mut contact.first_name,
        &mut contact.last_name,
        &mut contact.company,
    ];
    for field in fields {
        *field = field.as_deref().map(plain).filter(|text| !text.is_empty());
    }
    contact.email = contact.email.as_deref().map(checked_email).transpose()?;
    contact.phone_number = contact.phone_number.as_deref().map(|number| checked_phone(number, region)).transpose()?;
    if contact.email.is_none() && contact.phone_number.is_none() {
        return Err("it has neither an e-mail address nor a telephone number".into());
    }
    contact.tags = contact.tags.iter().map(|tag| plain(tag)).filter(|tag| !tag.is_empty()).take(MOST_TAGS).collect();
    Ok(contact)
}

fn checked_email(email: &str) -> Result<String, String> {
    normal_email(email).ok_or_else(|| format!("{email:?} is not an e-mail address"))
}

/// A number without a country is still recognised by its last ten digits, but not by fewer.
fn checked_phone(number: &str, region: Option<Region>) -> Result<String, String> {
    let digits = number.chars().filter(char::is_ascii_digit).count();
    match normal_phone(number, region) {
        Some(normal) => Ok(normal),
        None if digits < 10 => Err(format!("{number:?} is not a telephone number")),
        None => Ok(number.to_owned()),
    }
}

/// The text on one line, without characters that cannot be seen or stored.
fn plain(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A page of contacts, the newest first, and the one before which the next page begins. `text` is part of a name, a company or an address.
pub async fn list(
    env: &Env,
    caller: &Caller,
    text: Option<&str>,
    before: Option<ContactId>,
    limit: i64,
) -> Result<(Vec<Contact>, Option<i64>), ActError> {
    if text.is_some_and(has_nul) {
        return Err(ActError::invalid("q has a NUL character"));
    }
    let wanted = Wanted { text, before, limit };
    let listed = env.db.read(caller, async |tx| contacts::list(tx, caller.tenant_id, &wanted).await).await?;
    let next_before = listed.last().filter(|_| listed.len() as i64 == limit).map(|last| last.id);
    Ok((listed, next_before))
}

pub async fn get(env: &Env, caller: &Caller, id: ContactId) -> Result<Contact, ActError> {
    let found = env.db.read(caller, async |tx| contacts::get(tx, caller.tenant_id, id).await).await?;
    found.or_missing("contact")
}

/// Every address by which a contact is recognised.
pub async fn addresses(env: &Env, caller: &Caller, id: ContactId) -> Result<Vec<String>, ActError> {
    Ok(env.db.read(caller, async |tx| contacts::addresses(tx, caller.tenant_id, id).await).await?)
}

/// Creates a contact, and links unmatched activities and letters of its addresses to it.
pub async fn create(env: &Env, caller: &Caller, new: NewContact) -> Result<ContactId, ActError> {
    let (tenant_id, new) = (caller.tenant_id, checked(new, env.config.phone_region).map_err(ActError::Invalid)?);
    let created = env.db.write(async |tx| {
        let id = contacts::create(tx, tenant_id, &new).await?;
        let linked = activities::match_again(tx, tenant_id, Some(id)).await?;
        remember_again(tx, tenant_id, &linked).await?;
        letters::match_again(tx, tenant_id, Some(id)).await?;
        Ok(id)
    });
    created.await
}

/// The contact who has an activity's address by now, else a new one of it.
pub async fn of_activity(env: &Env, caller: &Caller, id: ActivityId) -> Result<ContactId, ActError> {
    let found = env.db.session(async |conn| {
        let Some(activity) = activities::get(conn, caller.tenant_id, id).await? else { return Ok(None) };
        let party = activity.party().unwrap_or_default().to_owned();
        let known = contacts::find(conn, caller.tenant_id, &party).await?;
        Ok(Some((activity, party, known)))
    });
    let (activity, party, known) = found.await?.or_missing("activity")?;
    if let Some(known) = known {
        return Ok(known);
    }
    let name = activity.metadata.get("from_name").and_then(Value::as_str).map(str::to_owned);
    let (email, phone_number) = if party.contains('@') { (Some(party), None) } else { (None, Some(party)) };
    let first_name = name.or_else(|| email.as_deref()?.split('@').next().map(str::to_owned));
    create(env, caller, NewContact { email, phone_number, first_name, ..NewContact::default() }).await
}

/// Counts what would go with a contact.
pub async fn count(env: &Env, caller: &Caller, id: ContactId) -> Result<Counted, ActError> {
    let counted = env.db.session(async |conn| {
        let Some(_) = contacts::get(conn, caller.tenant_id, id).await? else { return Ok(None) };
        forgotten::count(conn, caller.tenant_id, Subject::Contact(id)).await.map(Some)
    });
    counted.await?.or_missing("contact")
}

/// Whether a contact is being forgotten.
pub async fn is_being_forgotten(env: &Env, caller: &Caller, id: ContactId) -> Result<bool, ActError> {
    let message = json!({ "tenant_id": caller.tenant_id, "contact_id": id });
    Ok(env.db.session(async |conn| queue_of::<ForgetAll>().holds(conn, &message).await).await?)
}

/// Keeps these contacts from going until the transaction ends. An error: one is not there, or is being forgotten, and what is added would go with it.
pub(crate) async fn hold(tx: &mut Tx, tenant_id: TenantId, ids: &[i64]) -> Result<(), ActError> {
    let held = store::written::hold_contacts(tx, tenant_id, ids).await?;
    for id in ids {
        held.contains(id).or_missing("contact")?;
        if queue_of::<ForgetAll>().holds(tx, &json!({ "tenant_id": tenant_id, "contact_id": id })).await? {
            return Err(ActError::conflict("this contact is being forgotten"));
        }
    }
    Ok(())
}

/// Has everything removed that came from a contact, and returns how much that is. The contact's own name and addresses go at once, so that no event is
/// linked to it any more. Asked twice, it is done once.
pub async fn forget(env: &Env, caller: &Caller, id: ContactId) -> Result<Counted, ActError> {
    let (tenant_id, subject, queue) = (caller.tenant_id, Subject::Contact(id), queue_of::<ForgetAll>());
    let message = json!({ "tenant_id": tenant_id, "contact_id": id });
    let asked = env.db.write(async |tx| {
        if !contacts::lock(tx, tenant_id, id).await? {
            return Err(ActError::NotFound("contact"));
        }
        let counted = forgotten::count(tx, tenant_id, subject).await?;
        if queue.holds(tx, &message).await? {
            return Ok(counted);
        }
        // What a merge still moves would escape.
        if contacts::merges::is_unfinished(tx, tenant_id, id).await? {
            return Err(ActError::conflict(corrected::UNFINISHED));
        }
        let forgotten_id =
            forgotten::begin(tx, tenant_id, &format!("Contact {id}"), &caller.key_name, &counted).await?;
        forgotten::keep_addresses(tx, tenant_id, forgotten_id, id).await?;
        contacts::blank(tx, tenant_id, id).await?;
        queue.send(tx, tenant_id, &[ForgetAll { subject, forgotten_id }]).await?;
        Ok(counted)
    });
    let counted = asked.await?;
    tracing::info!(contact.id = %id, tenant.id = %tenant_id, "contact {id} is being forgotten, as key {} asked", caller.key_id);
    Ok(counted)
}

/// Imports a table with a heading: email, phone (or phone_number), first_name, last_name (or name), company, tags. Safe to repeat.
pub async fn import(env: &Env, tenant_id: TenantId, table: &[u8]) -> anyhow::Result<Report> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(table);
    let heading = reader.byte_headers().context("the table has no heading")?.clone();
    let name_of = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').to_lowercase().replace([' ', '-'], "_")
    };
    let names: Vec<String> = heading.iter().map(name_of).collect();
    let known = ["email", "e_mail", "email_address", "phone", "phone_number", "mobile"];
    anyhow::ensure!(
        names.iter().any(|name| known.contains(&name.as_str())),
        "the table's first line names no column `email` or `phone`; it has: {}",
        names.join(", ")
    );
    let mut report = Report::default();
    let mut batch: Vec<NewContact> = Vec::new();
    let mut record = csv::ByteRecord::new();
    loop {
        let line = reader.position().line();
        let is_more = match reader.read_byte_record(&mut record) {
            Ok(is_more) => is_more,
            Err(error) => {
                report.left_out.push((line, format!("it cannot be read: {error}")));
                continue;
            }
        };
        if is_more {
            match row(&names, &record).and_then(|contact| checked(contact, env.config.phone_region)) {
                Ok(contact) => batch.push(contact),
                Err(why) => report.left_out.push((line, why)),
            }
        }
        if batch.len() >= BATCH || (!is_more && !batch.is_empty()) {
            write(env, tenant_id, &std::mem::take(&mut batch), &mut report).await?;
        }
        if !is_more {
            break;
        }
    }
    let mut tx = env.db.begin().await?;
    let linked = activities::match_again(&mut tx, tenant_id, None).await?;
    letters::match_again(&mut tx, tenant_id, None).await?;
    remember_again(&mut tx, tenant_id, &linked).await?;
    tx.commit().await?;
    report.linked = linked.len();
    Ok(report)
}

fn row(names: &[String], record: &csv::ByteRecord) -> Result<NewContact, String> {
    let mut contact = NewContact::default();
    for (name, value) in names.iter().zip(record) {
        let text = std::str::from_utf8(value).map_err(|_| "it is not UTF-8".to_owned())?.trim();
        if text.is_empty() {
            continue;
        }
        let own = || Some(text.to_owned());
        match name.as_str() {
            "email" | "e_mail" | "email_address" => contact.email = own(),
            "phone" | "phone_number" | "mobile" => contact.phone_number = contact.phone_number.or_else(own),
            "first_name" => contact.first_name = own(),
            "last_name" => contact.last_name = own(),
            "name" | "full_name" => {
                let (first, last) = text.split_once(' ').unwrap_or((text, ""));
                contact.first_name = contact.first_name.or(Some(first.to_owned()));
                contact.last_name = contact.last_name.or(Some(last.to_owned()));
            }
            "company" | "organization" | "organisation" => contact.company = own(),
            "tags" => contact.tags = text.split([',', ';']).map(str::to_owned).collect(),
            _ => {}
        }
    }
    Ok(contact)
}

async fn write(env: &Env, tenant_id: TenantId, batch: &[NewContact], report: &mut Report) -> anyhow::Result<()> {
    let mut tx = env.db.begin().await?;
    for contact in batch {
        match contacts::import(&mut tx, tenant_id, contact).await? {
            Imported::Created => report.created += 1,
            Imported::Updated => report.updated += 1,
            Imported::Unchanged => report.unchanged += 1,
        }
    }
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(email: Option<&str>, phone: Option<&str>) -> NewContact {
        NewContact { email: email.map(str::to_owned), phone_number: phone.map(str::to_owned), ..NewContact::default() }
    }

    #[test]
    fn addresses_are_brought_to_the_form_by_which_they_are_matched() {
        let us = Some("US".parse().expect("a region"));
        let made = checked(contact(Some(" Ann <ANN@Example.com> "), Some("(415) 867-5309")), us).expect("a contact");
        assert_eq!(
            (made.email.as_deref(), made.phone_number.as_deref()),
            (Some("ann@example.com"), Some("+14158675309"))
        );
        let without_region = checked(contact(None, Some("(415) 867-5309")), None).expect("a contact");
        assert_eq!(without_region.phone_number.as_deref(), Some("(415) 867-5309"));
        for bad in [
            contact(None, None),
            contact(Some("ann"), None),
            contact(None, Some("867-5309")),
            contact(Some("sip:+14158675309@pbx.example"), None),
            contact(None, Some("+ann@example.com")),
            contact(Some(" "), Some(" ")),
        ] {
            assert!(checked(bad.clone(), us).is_err(), "{bad:?}");
        }
    }
}
