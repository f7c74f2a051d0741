//! The list of contacts, and the page of one with its activities.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::shown::clipped;
use domain::{ActivityId, ContactId, Scope};
use engine::ActError;
use serde::Deserialize;
use store::activities::Filter;
use store::contacts::{self, Contact, NewContact};

use super::activities::DoneQuery;
use super::card::Card;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, feed, forgotten, html};
use crate::api::contacts::ContactsQuery;
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

#[derive(Template)]
#[template(path = "contacts.html")]
struct ContactsPage {
    layout: Layout,
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
) -> Result<impl IntoResponse, ApiError> {
    page(&app, &visitor, &query, String::new()).await
}

async fn page(app: &App, visitor: &Visitor, query: &ContactsQuery, trouble: String) -> Result<Response, ApiError> {
    let (limit, before) = (query.limit.unwrap_or(50).clamp(1, 200), query.before.map(ContactId));
    let (listed, next) = engine::contacts::list(&app.env, visitor, query.q.as_deref(), before, limit).await?;
    let q = query.q.clone().unwrap_or_default();
    let older = next.map(|before| {
        let q = percent_encoding::utf8_percent_encode(&q, percent_encoding::NON_ALPHANUMERIC);
        format!("/clients/people?q={q}&before={before}")
    });
    let page = ContactsPage {
        layout: Layout::new(visitor, app.env.clock.now(), "People", "/clients/people"),
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
            let mut response = page(&app, &Visitor(caller), &none, what).await?;
            *response.status_mut() = StatusCode::BAD_REQUEST;
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Template)]
#[template(path = "contact.html")]
struct ContactPage {
    layout: Layout,
    name: String,
    facts: Vec<(&'static str, String)>,
    /// Its client's page, and its name.
    client: Option<(String, String)>,
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
    /// Where its form goes, and how much forgetting it would remove.
    forget_href: String,
    counted: String,
    csrf: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<i64>,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let (id, tenant_id) = (ContactId(id), visitor.tenant_id);
    let loaded = app.env.db.read(&visitor, async |tx| {
        let Some(contact) = contacts::get(tx, tenant_id, id).await? else { return Ok(None) };
        Ok(Some((contact, contacts::addresses(tx, tenant_id, id).await?)))
    });
    let (contact, addresses) = loaded.await?.ok_or(ApiError::NotFound("contact"))?;
    let before = query.before.map(ActivityId);
    let timeline = feed::load(&app, &visitor, Filter { contact_id: Some(id), ..Filter::default() }, before).await?;
    let at = |before: Option<ActivityId>| match before {
        Some(before) => format!("/clients/people/{id}?before={before}"),
        None => format!("/clients/people/{id}"),
    };
    let client = engine::clients::of_contact(&app.env, &visitor, id).await?;
    let counted = engine::contacts::count(&app.env, &visitor, id).await?;
    let now = app.env.clock.now();
    let text = |label, field: &Option<String>| {
        field.as_deref().filter(|text| !text.is_empty()).map(|text| (label, clipped(text, 100)))
    };
    let tags = (!contact.tags.is_empty()).then(|| ("Tags", clipped(&contact.tags.join(", "), 200)));
    html(&ContactPage {
        layout: Layout::new(&visitor, now, clipped(&contact.called(), 60), "/clients/people"),
        name: clipped(&contact.called(), 100),
        facts: [text("Company", &contact.company), tags].into_iter().flatten().collect(),
        client: client.map(|(id, name)| (format!("/clients/{id}"), clipped(&name, 100))),
        addresses: addresses.iter().map(|address| clipped(address, 200)).collect(),
        made: When::new(contact.created_at, now),
        flash: query.done.in_words(),
        cards: timeline.cards,
        is_narrow: false,
        newest: before.map(|_| at(None)),
        older: timeline.last.map(|last| at(Some(ActivityId(last)))),
        here: at(before),
        may_act: visitor.may(Scope::Write),
        may_forget: visitor.may(Scope::Service),
        is_being_forgotten: engine::contacts::is_being_forgotten(&app.env, &visitor, id).await?,
        forget_href: format!("/clients/people/{id}/forget"),
        counted: engine::forgetting::counted(&counted),
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn forget(
    State(app): State<App>,
    Path(id): Path<i64>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Service)?;
    engine::contacts::forget(&app.env, &caller, ContactId(id)).await?;
    Ok(forgotten::Flash::Asked.back(forgotten::HERE))
}
