//! The page of one contact with its activities, and how a person corrects it: change, merge, undo, delete, forget.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, plural};
use domain::{ContactId, Scope};
use engine::ActError;
use engine::clients::{self, decide};
use engine::contacts::corrected::{self, Change};
use engine::contacts::merges;
use serde::Deserialize;
use store::activities::{Filter, Position};
use store::contacts::merges::Merge;
use store::contacts::{self, Contact};
use uuid::Uuid;

use super::activities::DoneQuery;
use super::card::Card;
use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, chosen, feed, forgotten, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

const LIST: &str = "/clients/people";

flashes! {
    Flash {
        Changed = "changed": "Saved.",
        AddressAdded = "address-added": "The address was added, and its unrecognised events were linked.",
        AddressRemoved = "address-removed": "The address was removed. Events that were linked before stay.",
        Merged = "merged": "They are one person now. Undo it below, if that is wrong.",
        Undone = "undone": "Undone. This is the person who had been merged, with everything as it was.",
        Unknown = "unknown": "Nothing was merged: nobody matches that, or several people do. Choose one from the list.",
        Same = "same": "Nothing was merged: that is the same person.",
        Belongs = "belongs": "Saved. If that is wrong, undo it below.",
        MatchedAgain = "matched-again": "Undone. The address and the company decide again.",
        NoClient = "no-client": "Nothing was changed: no client has that name, or several do. Give the id from the client's address.",
        SameClient = "same-client": "Nothing was changed: this person belongs to that client already, or is being forgotten.",
        Going = "going": "Nothing was changed: this person, or the other one, is being forgotten.",
    }
}

#[derive(Template)]
#[template(path = "contact.html")]
struct ContactPage {
    layout: Layout,
    id: String,
    name: String,
    facts: Vec<(&'static str, String)>,
    client: Option<ClientLink>,
    /// The person who said to which client it belongs, or that it belongs to none.
    said: Option<(String, When)>,
    addresses: Vec<String>,
    made: When,
    flash: &'static str,
    cards: Vec<Card>,
    is_narrow: bool,
    newest: Option<String>,
    older: Option<String>,
    /// The page to which an action returns.
    here: String,
    may_act: bool,
    may_forget: bool,
    is_being_forgotten: bool,
    /// How much forgetting it would remove.
    counted: String,
    typed: Typed,
    /// The reason why what was typed was not saved.
    trouble: String,
    /// Addresses that people added, which can be removed.
    added: Vec<String>,
    merges: Vec<MergeRow>,
    offered: Vec<String>,
    csrf: String,
}

/// The fields of the form that changes a contact.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Typed {
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    #[serde(default)]
    email: String,
    #[serde(default)]
    phone_number: String,
    #[serde(default)]
    company: String,
    #[serde(default)]
    tags: String,
}

struct ClientLink {
    href: String,
    name: String,
    why: String,
}

struct MergeRow {
    id: String,
    name: String,
    moved: String,
    by: String,
    at: When,
}

impl Typed {
    fn of(contact: &Contact) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self {
            first_name: text(&contact.first_name),
            last_name: text(&contact.last_name),
            email: text(&contact.email),
            phone_number: text(&contact.phone_number),
            company: text(&contact.company),
            tags: contact.tags.join(", "),
        }
    }
}

impl MergeRow {
    fn new(merge: &Merge, now: DateTime<Utc>) -> Self {
        let n = i64::try_from(merge.activities.len()).unwrap_or(i64::MAX);
        Self {
            id: merge.id.to_string(),
            name: clipped(&merge.merged.contact.called(), 80),
            moved: plural(n, "activity", "activities"),
            by: clipped(&merge.merged_by, 60),
            at: When::new(merge.merged_at, now),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct ContactQuery {
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<i64>,
    Query(query): Query<DoneQuery>,
    Query(own): Query<ContactQuery>,
) -> Result<Response, ApiError> {
    // Acts on the activities below return here too, with codes of their own.
    let flash = [own.done.in_words(), query.done.in_words()].into_iter().find(|words| !words.is_empty());
    page(&app, &visitor, ContactId(id), query.before, flash.unwrap_or_default(), None).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    id: ContactId,
    before: Option<Position>,
    flash: &'static str,
    refused: Option<(Typed, String)>,
) -> Result<Response, ApiError> {
    let tenant_id = visitor.tenant_id;
    let loaded = app.env.db.read(visitor, async |tx| {
        let Some(contact) = contacts::get(tx, tenant_id, id).await? else { return Ok(None) };
        let all = contacts::addresses(tx, tenant_id, id).await?;
        Ok(Some((contact, all, contacts::added_addresses(tx, tenant_id, id).await?)))
    });
    let (contact, addresses, added) = loaded.await?.ok_or(ApiError::NotFound("contact"))?;
    let timeline = feed::load(app, visitor, Filter { contact_id: Some(id), ..Filter::default() }, before).await?;
    let at = |before: Option<Position>| match before {
        Some(before) => format!("{LIST}/{id}?before={before}"),
        None => format!("{LIST}/{id}"),
    };
    let belongs = clients::of_contact(&app.env, visitor, id).await?;
    let counted = engine::contacts::count(&app.env, visitor, id).await?;
    let merged = merges::list(&app.env, visitor, id).await?;
    let now = app.env.clock.now();
    let text = |label, field: &Option<String>| {
        field.as_deref().filter(|text| !text.is_empty()).map(|text| (label, clipped(text, 100)))
    };
    let tags = (!contact.tags.is_empty()).then(|| ("Tags", clipped(&contact.tags.join(", "), 200)));
    let (typed, trouble) = refused.unwrap_or_else(|| (Typed::of(&contact), String::new()));
    let may_act = visitor.may(Scope::Write) && !visitor.csrf().is_empty();
    let page = ContactPage {
        layout: Layout::new(visitor, now, clipped(&contact.called(), 60), LIST),
        id: id.to_string(),
        name: clipped(&contact.called(), 100),
        facts: [text("Company", &contact.company), tags].into_iter().flatten().collect(),
        client: belongs.client.map(|of| ClientLink {
            href: format!("/clients/{}", of.client_id),
            name: clipped(&of.client_name, 100),
            why: clients::why(Some(&of.matched_by)).unwrap_or_default(),
        }),
        said: belongs.said.map(|said| (clipped(&said.decision.said_by, 60), When::new(said.decision.said_at, now))),
        addresses: addresses.iter().map(|address| clipped(address, 200)).collect(),
        made: When::new(contact.created_at, now),
        flash,
        cards: timeline.cards,
        is_narrow: false,
        newest: before.map(|_| at(None)),
        older: timeline.last.map(|last| at(Some(last))),
        here: at(before),
        may_act,
        may_forget: visitor.may(Scope::Service),
        is_being_forgotten: engine::contacts::is_being_forgotten(&app.env, visitor, id).await?,
        counted: engine::forgetting::counted(&counted),
        typed,
        trouble,
        added,
        merges: merged.iter().map(|merge| MergeRow::new(merge, now)).collect(),
        offered: if may_act { chosen::offers(app, visitor).await? } else { Vec::new() },
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// Saves a contact's fields. What cannot be saved is shown again as it was typed.
pub(crate) async fn change(
    State(app): State<App>,
    Path(id): Path<i64>,
    Posted { caller, form }: Posted<Typed>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (id, typed) = (ContactId(id), form.clone());
    let change = Change {
        email: Some(form.email),
        phone_number: Some(form.phone_number),
        first_name: Some(form.first_name),
        last_name: Some(form.last_name),
        company: Some(form.company),
        tags: Some(form.tags.split([',', ';']).map(str::to_owned).collect()),
        ..Change::default()
    };
    let here = format!("{LIST}/{id}");
    match corrected::change(&app.env, &caller, id, change).await {
        Ok(_) => Ok(Flash::Changed.back(&here)),
        Err(ActError::Conflict(_)) => Ok(Flash::Going.back(&here)),
        Err(ActError::Invalid(what)) => refuse(&app, Visitor(caller), id, typed, what).await,
        Err(error) => Err(error.into()),
    }
}

/// Shows the page with what was typed, and why it was not saved.
async fn refuse(app: &App, visitor: Visitor, id: ContactId, typed: Typed, what: String) -> Result<Response, ApiError> {
    let mut response = page(app, &visitor, id, None, "", Some((typed, what))).await?;
    *response.status_mut() = StatusCode::BAD_REQUEST;
    Ok(response)
}

#[derive(Deserialize)]
pub(crate) struct ActForm {
    #[serde(default)]
    address: String,
    /// The other contact, as the field offers it.
    #[serde(default)]
    other: String,
    #[serde(default, deserialize_with = "blank_is_none")]
    merge: Option<Uuid>,
    /// The name or the id of the client that it belongs to.
    #[serde(default)]
    client: String,
}

/// Adds or removes an address, says to which client it belongs, merges, undoes either, deletes or forgets.
pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(i64, String)>,
    Posted { caller, form }: Posted<ActForm>,
) -> Result<Response, ApiError> {
    let (env, id) = (&app.env, ContactId(id));
    caller.need(if action == "forget" { Scope::Service } else { Scope::Write })?;
    let one = async |change: Change| corrected::change(env, &caller, id, change).await;
    let done = match action.as_str() {
        "add-address" => one(Change { add_addresses: vec![form.address], ..Change::default() })
            .await
            .map(|_| (Flash::AddressAdded, id)),
        "remove-address" => one(Change { remove_addresses: vec![form.address], ..Change::default() })
            .await
            .map(|_| (Flash::AddressRemoved, id)),
        "merge" => {
            // Before a name is looked up, so that nobody learns whether there is one.
            engine::contacts::get(env, &caller, id).await?;
            match chosen::chosen(&app, &caller, form.other.trim()).await? {
                Some(other) if other == id => return Ok(Flash::Same.back(&format!("{LIST}/{id}"))),
                Some(other) => merges::merge(env, &caller, id, other).await.map(|_| (Flash::Merged, id)),
                None => return Ok(Flash::Unknown.back(&format!("{LIST}/{id}"))),
            }
        }
        "undo" => {
            let merge = form.merge.ok_or(ApiError::NotFound("merge of this contact"))?;
            merges::undo(env, &caller, id, merge).await.map(|back| (Flash::Undone, ContactId(back.id)))
        }
        "belongs" => {
            // Before a name is looked up, so that nobody learns whether there is one.
            engine::contacts::get(env, &caller, id).await?;
            let flash = match clients::find_one(env, &caller, &form.client).await {
                Ok(client) => match decide::add_contact(env, &caller, client, id).await {
                    Ok(_) => Flash::Belongs,
                    Err(ActError::Conflict(_)) => Flash::SameClient,
                    Err(error) => return Err(error.into()),
                },
                Err(ActError::NotFound(_) | ActError::Conflict(_) | ActError::Invalid(_)) => Flash::NoClient,
                Err(error) => return Err(error.into()),
            };
            Ok((flash, id))
        }
        "match-again" => match decide::undo_contact(env, &caller, id).await {
            // It was undone already.
            Err(ActError::NotFound("decision about this contact")) => Ok((Flash::MatchedAgain, id)),
            undone => undone.map(|()| (Flash::MatchedAgain, id)),
        },
        "delete" => {
            corrected::delete(env, &caller, id).await?;
            return Ok(super::contacts::Flash::Deleted.back(LIST));
        }
        "forget" => {
            engine::contacts::forget(env, &caller, id).await?;
            return Ok(forgotten::Flash::Asked.back(forgotten::HERE));
        }
        _ => return Err(ApiError::NotFound("page")),
    };
    match done {
        Ok((flash, id)) => Ok(flash.back(&format!("{LIST}/{id}"))),
        Err(ActError::Conflict(_)) => Ok(Flash::Going.back(&format!("{LIST}/{id}"))),
        Err(ActError::Invalid(what)) => {
            let contact = engine::contacts::get(env, &caller, id).await?;
            refuse(&app, Visitor(caller), id, Typed::of(&contact), what).await
        }
        Err(error) => Err(error.into()),
    }
}
