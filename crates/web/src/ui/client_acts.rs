//! The forms of a client's page: merge, split, add a contact, undo, and what people write about it.

use axum::extract::State;
use axum::response::Response;
use domain::{ClientId, ContactId, Scope};
use engine::ActError;
use engine::clients::decide::{self, Part};
use engine::clients::{self, curated};
use serde::Deserialize;
use uuid::Uuid;

use super::clients::HERE;
use super::flash::flashes;
use super::{Posted, chosen};
use crate::api::error::ApiError;
use crate::api::extract::{Path, blank_is_none};
use crate::app::App;

flashes! {
    Flash {
        Merged = "merged": "They are one client now. Undo it below, if that is wrong.",
        Split = "split": "That record is a client of its own now. Undo it below, if that is wrong.",
        SplitContact = "split-contact": "That contact is not of this client any more. Undo it on the contact's own page, if that is wrong.",
        ContactAdded = "contact-added": "That contact belongs to this client now. If that is wrong, undo it below.",
        ContactUnknown = "contact-unknown": "Nothing was done: no contact matches that, or several do. Choose one from the list.",
        ContactKnown = "contact-known": "Nothing was done: that contact is of this client already, or is being forgotten.",
        Undone = "undone": "Undone. Everything is as it was before.",
        Said = "said": "Saved. It is found by search, and no record overwrites it.",
        Withdrawn = "withdrawn": "Withdrawn. What records say stays.",
        NotFound = "not-found": "Nothing was done: there is no client of that name.",
        Several = "several": "Nothing was done: several clients have that name, or it is this one. Give the id from the client's address.",
        Decided = "decided": "Nothing was done: a person decided about it before. Undo that below first.",
        Meanwhile = "meanwhile": "Nothing was saved: somebody else wrote about this client meanwhile. Look, and try again.",
        Invalid = "invalid": "Nothing was saved: a fact needs a plain name of up to 60 letters and a text of up to 5,000.",
    }
}

/// The forms of the page, each with the fields of its own.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ActForm {
    other: String,
    #[serde(deserialize_with = "blank_is_none")]
    record: Option<Uuid>,
    #[serde(deserialize_with = "blank_is_none")]
    contact: Option<i64>,
    #[serde(deserialize_with = "blank_is_none")]
    decision: Option<Uuid>,
    /// A contact as the field offers it, or a part of a name or an address.
    person: String,
    fact: String,
    value: String,
}

pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, String)>,
    Posted { caller, form }: Posted<ActForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (env, id) = (&app.env, ClientId(id));
    let here = |id: ClientId| format!("{HERE}/{id}");
    let done = match action.as_str() {
        "merge" => {
            // Before a name is looked up, so that nobody learns whether there is one.
            let client = clients::whole(env, &caller, id).await?.id;
            match clients::find_one(env, &caller, &form.other).await {
                Ok(other) => decide::merge(env, &caller, client, other).await.map(|id| (Flash::Merged, id)),
                Err(error) => Err(error),
            }
        }
        "add-contact" => {
            let client = clients::whole(env, &caller, id).await?.id;
            match chosen::chosen(&app, &caller, form.person.trim()).await? {
                Some(contact) => {
                    decide::add_contact(env, &caller, client, contact).await.map(|id| (Flash::ContactAdded, id))
                }
                None => return Ok(Flash::ContactUnknown.back(&here(client))),
            }
        }
        "split" => {
            let (part, flash) = match (form.record, form.contact) {
                (Some(record), _) => (Part::Record(record), Flash::Split),
                (None, Some(contact)) => (Part::Contact(ContactId(contact)), Flash::SplitContact),
                (None, None) => return Err(ApiError::NotFound("record of this client")),
            };
            decide::split(env, &caller, id, part).await.map(|now| (flash, now.unwrap_or(id)))
        }
        "undo" => {
            let decision = form.decision.ok_or(ApiError::NotFound("decision about this client"))?;
            decide::undo(env, &caller, id, decision).await.map(|id| (Flash::Undone, id))
        }
        "say" => curated::say(env, &caller, id, &form.fact, &form.value).await.map(|whole| (Flash::Said, whole.id)),
        "withdraw" => curated::withdraw(env, &caller, id, &form.fact).await.map(|whole| (Flash::Withdrawn, whole.id)),
        _ => return Err(ApiError::NotFound("page")),
    };
    match done {
        Ok((flash, id)) => Ok(flash.back(&here(id))),
        Err(ActError::NotFound("client")) if action == "merge" => {
            clients::whole(env, &caller, id).await?;
            Ok(Flash::NotFound.back(&here(id)))
        }
        Err(ActError::Conflict(_)) => {
            let flash = match action.as_str() {
                "merge" => Flash::Several,
                "add-contact" => Flash::ContactKnown,
                "say" | "withdraw" => Flash::Meanwhile,
                _ => Flash::Decided,
            };
            Ok(flash.back(&here(id)))
        }
        Err(ActError::Invalid(_)) if action == "merge" => Ok(Flash::NotFound.back(&here(id))),
        Err(ActError::Invalid(_)) => Ok(Flash::Invalid.back(&here(id))),
        Err(error) => Err(error.into()),
    }
}
