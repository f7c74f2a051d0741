//! The list of contacts, and the form that adds one.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::shown::clipped;
use domain::{ContactId, Scope};
use engine::ActError;
use serde::Deserialize;
use store::contacts::{Contact, NewContact};

use super::flash::flashes;
use super::layout::Layout;
use super::{Posted, Visitor, html};
use crate::api::contacts::ContactsQuery;
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

flashes! {
    Flash {
        Deleted = "deleted": "The person was deleted. Activities and documents stay, without a person.",
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

#[derive(Template)]
#[template(path = "contacts.html")]
struct ContactsPage {
    layout: Layout,
    flash: &'static str,
    q: String,
    rows: Vec<ContactRow>,
    older: Option<String>,
    trouble: String,
    may_add: bool,
    csrf: String,
}

struct ContactRow {
    href: String,
    name: String,
    email: String,
    phone: String,
    company: String,
    tags: String,
}

impl ContactRow {
    fn new(contact: &Contact) -> Self {
        let text = |field: &Option<String>| clipped(field.as_deref().unwrap_or_default(), 80);
        Self {
            href: format!("/clients/people/{}", contact.id),
            name: clipped(&contact.called(), 80),
            email: text(&contact.email),
            phone: text(&contact.phone_number),
            company: text(&contact.company),
            tags: clipped(&contact.tags.join(", "), 80),
        }
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<ContactsQuery>,
    Query(done): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    page(&app, &visitor, &query, done.done, String::new()).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    query: &ContactsQuery,
    flash: Flash,
    trouble: String,
) -> Result<Response, ApiError> {
    let (limit, before) = (query.limit.unwrap_or(50).clamp(1, 200), query.before.map(ContactId));
    let (listed, next) = engine::contacts::list(&app.env, visitor, query.q.as_deref(), before, limit).await?;
    let q = query.q.clone().unwrap_or_default();
    let older = next.map(|before| {
        let q = percent_encoding::utf8_percent_encode(&q, percent_encoding::NON_ALPHANUMERIC);
        format!("/clients/people?q={q}&before={before}")
    });
    let page = ContactsPage {
        layout: Layout::new(visitor, app.env.clock.now(), "People", "/clients/people"),
        flash: flash.in_words(),
        rows: listed.iter().map(ContactRow::new).collect(),
        q,
        older,
        trouble,
        may_add: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct AddForm {
    #[serde(default)]
    email: String,
    #[serde(default)]
    phone_number: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    #[serde(default)]
    company: String,
}

pub(crate) async fn create(
    State(app): State<App>,
    Posted { caller, form }: Posted<AddForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let new = NewContact {
        email: Some(form.email),
        phone_number: Some(form.phone_number),
        first_name: Some(form.first_name),
        last_name: Some(form.last_name),
        company: Some(form.company),
        ..NewContact::default()
    };
    match engine::contacts::create(&app.env, &caller, new).await {
        Ok(id) => Ok((StatusCode::SEE_OTHER, [(LOCATION, format!("/clients/people/{id}"))]).into_response()),
        Err(ActError::Invalid(what)) => {
            let none = ContactsQuery { q: None, before: None, limit: None };
            let mut response = page(&app, &Visitor(caller), &none, Flash::Nothing, what).await?;
            *response.status_mut() = StatusCode::BAD_REQUEST;
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}
