//! Contacts: the people that events come from. They are added, changed, merged and deleted; `forget` removes what came from them too.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::ContactId;
use engine::clients::{self, decide};
use engine::contacts::corrected::{self, Change};
use engine::contacts::{self, merges};
use serde::{Deserialize, Serialize};
use store::contacts::NewContact;
use store::contacts::merges::Merge;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::clients::Decision;
use super::error::{ApiError, Problem};
use super::extract::{self, Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Contacts {
    contacts: Vec<Contact>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct Contact {
    id: i64,
    email: Option<String>,
    phone_number: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    company: Option<String>,
    tags: Vec<String>,
    created_at: DateTime<Utc>,
}

impl From<store::contacts::Contact> for Contact {
    fn from(contact: store::contacts::Contact) -> Self {
        Self {
            id: contact.id,
            email: contact.email,
            phone_number: contact.phone_number,
            first_name: contact.first_name,
            last_name: contact.last_name,
            company: contact.company,
            tags: contact.tags,
            created_at: contact.created_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ContactsQuery {
    /// A part of a name, a company or an address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub q: Option<String>,
    /// Only contacts after this one: `next_before` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub before: Option<i64>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub limit: Option<i64>,
}

/// Contacts, newest first.
#[utoipa::path(get, path = "/api/v1/contacts", tag = "contacts", params(ContactsQuery), responses((status = 200, body = Contacts)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<ContactsQuery>,
) -> Result<Json<Contacts>, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let before = query.before.map(ContactId);
    Ok(Json(contacts::list(&app.env, &caller, query.q.as_deref(), before, limit).await?.into()))
}

/// Makes the answer of a page and of the contact before which the next page begins.
impl From<(Vec<store::contacts::Contact>, Option<i64>)> for Contacts {
    fn from((contacts, next_before): (Vec<store::contacts::Contact>, Option<i64>)) -> Self {
        Self { contacts: contacts.into_iter().map(Contact::from).collect(), next_before }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddContact {
    /// An e-mail address, a telephone number, or both.
    #[schema(example = "ann@larkfield.example")]
    pub email: Option<String>,
    pub phone_number: Option<String>,
    #[schema(example = "Ann")]
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Creates a contact, and links unmatched activities of its addresses to it.
#[utoipa::path(post, path = "/api/v1/contacts", tag = "contacts", request_body = AddContact,
    responses((status = 201, body = Contact), (status = 400, body = Problem)))]
pub(crate) async fn create(
    State(app): State<App>,
    Writing(caller): Writing,
    extract::Json(new): extract::Json<AddContact>,
) -> Result<(StatusCode, Json<Contact>), ApiError> {
    let AddContact { email, phone_number, first_name, last_name, company, tags } = new;
    let new = NewContact { email, phone_number, first_name, last_name, company, tags, person_id: None };
    let id = contacts::create(&app.env, &caller, new).await?;
    Ok((StatusCode::CREATED, Json(contacts::get(&app.env, &caller, id).await?.into())))
}

/// A contact with every address by which it is recognised, and the contacts that were made part of it.
#[derive(Serialize, ToSchema)]
pub struct ContactInFull {
    #[serde(flatten)]
    contact: Contact,
    addresses: Vec<String>,
    merges: Vec<MergedContact>,
    /// The client that it belongs to.
    client: Option<ClientOfContact>,
    /// The decision of a person about its client. Its addresses and its company decide nothing as long as this stands.
    client_said: Option<Decision>,
}

/// The client that a contact belongs to.
#[derive(Serialize, ToSchema)]
pub struct ClientOfContact {
    id: Uuid,
    #[schema(example = "Larkfield Landscaping")]
    name: String,
    #[schema(example = "matched by e-mail ann@larkfield.example")]
    why: Option<String>,
}

/// A contact that was made part of another.
#[derive(Serialize, ToSchema)]
pub struct MergedContact {
    id: Uuid,
    /// The contact as it was.
    contact: Contact,
    /// The number of activities that came with it.
    activities: usize,
    merged_by: String,
    merged_at: DateTime<Utc>,
}

impl From<Merge> for MergedContact {
    fn from(merge: Merge) -> Self {
        Self {
            id: merge.id,
            contact: merge.merged.contact.into(),
            activities: merge.activities.len(),
            merged_by: merge.merged_by,
            merged_at: merge.merged_at,
        }
    }
}

impl ContactInFull {
    pub async fn load(env: &engine::Env, caller: &domain::Caller, id: ContactId) -> Result<Self, engine::ActError> {
        let contact = contacts::get(env, caller, id).await?.into();
        let addresses = contacts::addresses(env, caller, id).await?;
        let merges = merges::list(env, caller, id).await?.into_iter().map(MergedContact::from).collect();
        let belongs = clients::of_contact(env, caller, id).await?;
        let client = belongs.client.map(|of| ClientOfContact {
            id: of.client_id,
            why: clients::why(Some(&of.matched_by)),
            name: of.client_name,
        });
        Ok(Self { contact, addresses, merges, client, client_said: belongs.said.as_ref().map(Decision::from) })
    }
}

/// One contact.
#[utoipa::path(get, path = "/api/v1/contacts/{id}", tag = "contacts", params(("id" = i64, Path)),
    responses((status = 200, body = ContactInFull), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<i64>,
) -> Result<Json<ContactInFull>, ApiError> {
    Ok(Json(ContactInFull::load(&app.env, &caller, ContactId(id)).await?))
}

/// Changes to a contact; what is left out stays as it is, and an empty text removes it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeContact {
    #[schema(example = "ann@larkfield.example")]
    email: Option<String>,
    phone_number: Option<String>,
    #[schema(example = "Ann")]
    first_name: Option<String>,
    last_name: Option<String>,
    company: Option<String>,
    tags: Option<Vec<String>>,
    /// Further addresses by which it is recognised from now on. Unmatched activities of them are linked to it.
    #[serde(default)]
    add_addresses: Vec<String>,
    /// Added addresses by which it is not recognised any more. Its activities stay.
    #[serde(default)]
    remove_addresses: Vec<String>,
}

/// Changes a contact.
#[utoipa::path(patch, path = "/api/v1/contacts/{id}", tag = "contacts", params(("id" = i64, Path)), request_body = ChangeContact,
    responses((status = 200, body = ContactInFull), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn change(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<i64>,
    extract::Json(change): extract::Json<ChangeContact>,
) -> Result<Json<ContactInFull>, ApiError> {
    let change = Change {
        email: change.email,
        phone_number: change.phone_number,
        first_name: change.first_name,
        last_name: change.last_name,
        company: change.company,
        tags: change.tags,
        add_addresses: change.add_addresses,
        remove_addresses: change.remove_addresses,
    };
    corrected::change(&app.env, &caller, ContactId(id), change).await?;
    Ok(Json(ContactInFull::load(&app.env, &caller, ContactId(id)).await?))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeWith {
    /// The contact that becomes part of this one.
    other_id: i64,
}

/// Makes another contact part of this one: its addresses, activities and documents are this one's from now on. It can be undone.
#[utoipa::path(post, path = "/api/v1/contacts/{id}/merge", tag = "contacts", params(("id" = i64, Path)), request_body = MergeWith,
    responses((status = 200, body = ContactInFull), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn merge(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<i64>,
    extract::Json(with): extract::Json<MergeWith>,
) -> Result<Json<ContactInFull>, ApiError> {
    merges::merge(&app.env, &caller, ContactId(id), ContactId(with.other_id)).await?;
    Ok(Json(ContactInFull::load(&app.env, &caller, ContactId(id)).await?))
}

/// Undoes a merge. Answers with the contact that is there again, under its old number.
#[utoipa::path(post, path = "/api/v1/contacts/{id}/merges/{merge}/undo", tag = "contacts", params(("id" = i64, Path), ("merge" = Uuid, Path)),
    responses((status = 200, body = ContactInFull), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn undo_merge(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, merge)): Path<(i64, Uuid)>,
) -> Result<Json<ContactInFull>, ApiError> {
    let back = merges::undo(&app.env, &caller, ContactId(id), merge).await?;
    Ok(Json(ContactInFull::load(&app.env, &caller, ContactId(back.id)).await?))
}

/// Undoes what a person said about a contact's client. Its addresses and its company decide again.
#[utoipa::path(delete, path = "/api/v1/contacts/{id}/client", tag = "contacts", params(("id" = i64, Path)),
    responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn undo_client(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<i64>,
) -> Result<StatusCode, ApiError> {
    decide::undo_contact(&app.env, &caller, ContactId(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
