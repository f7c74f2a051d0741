//! Contacts: the people that events come from.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::ContactId;
use engine::contacts;
use serde::{Deserialize, Serialize};
use store::contacts::NewContact;
use utoipa::{IntoParams, ToSchema};

use super::auth::{Reading, Writing};
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

/// One contact.
#[utoipa::path(get, path = "/api/v1/contacts/{id}", tag = "contacts", params(("id" = i64, Path)),
    responses((status = 200, body = Contact), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<i64>,
) -> Result<Json<Contact>, ApiError> {
    Ok(Json(contacts::get(&app.env, &caller, ContactId(id)).await?.into()))
}
