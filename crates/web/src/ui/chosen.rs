//! A contact that a person chooses in a form: by a list of offers, or by typing a part of a name or an address.

use domain::shown::clipped;
use domain::{Caller, ContactId};
use engine::{ActError, contacts};
use store::contacts::Contact;

use crate::app::App;

/// The number of contacts that a field offers.
const OFFERED: i64 = 200;

/// The newest contacts, as a field offers them.
pub(super) async fn offers(app: &App, caller: &Caller) -> Result<Vec<String>, ActError> {
    let (known, _) = contacts::list(&app.env, caller, None, None, OFFERED).await?;
    Ok(known.iter().map(offer).collect())
}

/// A contact as the field offers it; its number comes first, and is what counts.
pub(super) fn offer(contact: &Contact) -> String {
    let address = contact.email.as_deref().or(contact.phone_number.as_deref()).unwrap_or_default();
    clipped(&format!("{} {} {address}", contact.id, contact.called()), 100)
}

/// Finds the contact that was typed: one of those offered, by its number, or the only one that the text finds.
pub(super) async fn chosen(app: &App, caller: &Caller, text: &str) -> Result<Option<ContactId>, ActError> {
    let number: Option<i64> = text.split_whitespace().next().and_then(|number| number.parse().ok());
    if let Some(number) = number {
        let contact = match contacts::get(&app.env, caller, ContactId(number)).await {
            Ok(contact) => Some(contact),
            Err(ActError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        if contact.is_some_and(|contact| text == offer(&contact) || text == number.to_string()) {
            return Ok(Some(ContactId(number)));
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let (found, _) = contacts::list(&app.env, caller, Some(text), None, 2).await?;
    Ok(if let [one] = found.as_slice() { Some(ContactId(one.id)) } else { None })
}
