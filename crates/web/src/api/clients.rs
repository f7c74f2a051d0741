//! Clients: companies and people of the tenant's records, each with its facts, the documents that say so, and what people decided about it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::{ClientId, ContactId};
use engine::clients::decide::{self, Part};
use engine::clients::{self, Decided, Summary, curated, merged};
use engine::pull::words::facts::{document_type, in_words, label};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::clients::{Cited, ClientContact as StoredContact, ClientRecord, Dated};
use store::queue::MOST_COUNTED;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path, Query, blank_is_none};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Clients {
    clients: Vec<Client>,
    /// Pass it as `after` to get the page after this one; none on the last.
    next_after: Option<Uuid>,
    /// The number of clients that `q` leaves.
    n: i64,
    /// There are more than were counted.
    is_at_least: bool,
    /// The number of records that are being matched with others, as during a first sync. They are listed when that is done. A thousand means at
    /// least so many.
    n_unmatched: i64,
}

#[derive(Serialize, ToSchema)]
pub struct Client {
    id: Uuid,
    #[schema(example = "Larkfield Landscaping")]
    name: String,
    #[schema(example = "Facilities services")]
    industry: Option<String>,
    summary: Option<String>,
    /// The names of the sources that know it.
    sources: Vec<String>,
    /// The number of its people in those sources.
    n_people: i64,
    updated_at: DateTime<Utc>,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClientsQuery {
    /// A part of a name, a domain or an e-mail address.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub q: Option<String>,
    /// Only clients after this one: `next_after` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub after: Option<Uuid>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub limit: Option<i64>,
}

/// Clients by name.
#[utoipa::path(get, path = "/api/v1/clients", tag = "clients", params(ClientsQuery), responses((status = 200, body = Clients)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<ClientsQuery>,
) -> Result<Json<Clients>, ApiError> {
    let (limit, after) = (query.limit.unwrap_or(50).clamp(1, 200), query.after.map(ClientId));
    Ok(Json(clients::list(&app.env, &caller, query.q.as_deref(), after, limit).await?.into()))
}

impl From<clients::Page> for Clients {
    fn from(page: clients::Page) -> Self {
        Self {
            clients: page.clients.into_iter().map(Client::from).collect(),
            next_after: page.next_after.map(|id| id.0),
            n: page.n,
            is_at_least: page.n >= MOST_COUNTED,
            n_unmatched: page.n_unmatched,
        }
    }
}

impl From<Summary> for Client {
    fn from(client: Summary) -> Self {
        let told =
            |name: &str| client.facts.iter().find(|fact| fact.name == name).map(|fact| in_words(name, &fact.value));
        Self {
            industry: told("industry"),
            summary: told("summary"),
            id: client.id.0,
            name: client.name,
            sources: client.sources,
            n_people: client.n_people,
            updated_at: client.updated_at,
        }
    }
}

/// A client with what is known of it.
#[derive(Serialize, ToSchema)]
pub struct WholeClient {
    #[serde(flatten)]
    client: Client,
    facts: Vec<Fact>,
    /// The records of it in the sources, and what people wrote about it; the one that leads first.
    records: Vec<RecordOfClient>,
    /// The first of its people.
    people: Vec<RecordOfClient>,
    /// Contacts that belong to it.
    contacts: Vec<ClientContact>,
    /// Decisions of people about it.
    decisions: Vec<Decision>,
}

#[derive(Serialize, ToSchema)]
pub struct Fact {
    #[schema(example = "open_deals")]
    name: String,
    /// The same for people.
    #[schema(example = "Open deals")]
    label: String,
    #[serde(flatten)]
    told: FactValue,
    /// Other values, by others.
    also: Vec<FactValue>,
}

#[derive(Serialize, ToSchema)]
pub struct FactValue {
    /// A text, a number, or a list or object of those. A sum of money is a list of `{amount, currency}`.
    value: Value,
    /// The same for people.
    text: String,
    /// The documents that say so.
    documents: Vec<CitedDocument>,
    /// The names of the sources that say so.
    sources: Vec<String>,
    /// The person who said so. Null: it is derived from records.
    said_by: Option<String>,
    said_at: Option<DateTime<Utc>>,
}

#[derive(Serialize, ToSchema)]
pub struct CitedDocument {
    id: Uuid,
    title: Option<String>,
    #[schema(example = "hubspot.deal")]
    document_type: String,
    external_id: String,
    /// The document's page.
    url: String,
}

/// A record of a client.
#[derive(Serialize, ToSchema)]
pub struct RecordOfClient {
    id: Uuid,
    /// The person, else the client, as the record names it.
    name: String,
    /// Null: a person wrote it.
    source: Option<String>,
    /// The kind of record, for people.
    #[schema(example = "HubSpot company")]
    kind: String,
    #[schema(example = "company:51")]
    external_id: Option<String>,
    emails: Vec<String>,
    /// Null: it leads the client.
    #[schema(example = "matched by domain acme.test")]
    why: Option<String>,
    document_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub struct ClientContact {
    id: i64,
    name: String,
    email: Option<String>,
    phone_number: Option<String>,
    #[schema(example = "matched by e-mail ann@acme.test")]
    why: Option<String>,
}

/// Something that a person decided about a client.
#[derive(Serialize, ToSchema)]
pub struct Decision {
    id: Uuid,
    /// merge: two records are one client, or a contact belongs to one. split: a record or a contact is not of a client.
    #[schema(example = "merge")]
    kind: String,
    record: String,
    other: Option<String>,
    said_by: String,
    said_at: DateTime<Utc>,
}

/// One client, by its id or by that of one of its records.
#[utoipa::path(get, path = "/api/v1/clients/{id}", tag = "clients", params(("id" = Uuid, Path)),
    responses((status = 200, body = WholeClient), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<WholeClient>, ApiError> {
    let whole = clients::whole(&app.env, &caller, ClientId(id)).await?;
    Ok(Json(WholeClient::new(&whole, &app.env.config.base_url())))
}

impl WholeClient {
    /// Makes the answer, with links to pages at `base_url`.
    pub fn new(whole: &clients::WholeClient, base_url: &str) -> Self {
        let document = |cited: &Cited| CitedDocument {
            id: cited.id,
            title: cited.title.clone(),
            document_type: cited.document_type.to_string(),
            external_id: cited.external_id.clone(),
            url: format!("{base_url}/documents/{}", cited.id),
        };
        let told = |fact: &merged::Fact| FactValue {
            text: in_words(&fact.name, &fact.value),
            value: fact.value.clone(),
            documents: whole.documents_of(fact).into_iter().map(document).collect(),
            sources: fact.sources.clone(),
            said_by: fact.said.as_ref().map(|said| said.by.clone()),
            said_at: fact.said.as_ref().and_then(|said| said.at),
        };
        let fact = |fact: &merged::Fact| Fact {
            name: fact.name.clone(),
            label: label(&fact.name),
            told: told(fact),
            also: fact.also.iter().map(told).collect(),
        };
        Self {
            facts: whole.facts.iter().map(fact).collect(),
            records: whole.records.iter().map(RecordOfClient::from).collect(),
            people: whole.people.iter().map(RecordOfClient::from).collect(),
            contacts: whole.contacts.iter().map(ClientContact::from).collect(),
            decisions: whole.decisions.iter().map(Decision::from).collect(),
            client: whole.summary().into(),
        }
    }
}

impl From<&ClientRecord> for RecordOfClient {
    fn from(record: &ClientRecord) -> Self {
        Self {
            id: record.id,
            name: name(record).to_owned(),
            source: record.source_name.clone(),
            kind: kind(record),
            external_id: record.external_id.clone(),
            emails: record.emails.clone(),
            why: clients::why(record.matched_by.as_ref()),
            document_id: record.record_document_id.or(record.document_id),
        }
    }
}

impl RecordOfClient {
    /// The record in one line, for a terminal.
    pub fn in_a_line(&self) -> String {
        let source = self.source.clone().unwrap_or_default();
        [self.id.to_string(), self.kind.clone(), self.name.clone(), source, self.why.clone().unwrap_or_default()]
            .join("  ")
    }
}

/// A person's own name, else the client's.
pub(crate) fn name(record: &ClientRecord) -> &str {
    let own = record.record_title.as_deref().filter(|title| record.is_person() && !title.trim().is_empty());
    own.unwrap_or(&record.client_name)
}

/// The kind of record, in words.
pub(crate) fn kind(record: &ClientRecord) -> String {
    match record.record_type.as_deref().and_then(|kind| kind.parse().ok()) {
        Some(kind) => document_type(&kind),
        None if record.is_curated() => "Written by a person".into(),
        None => "Record".into(),
    }
}

impl From<&StoredContact> for ClientContact {
    fn from(contact: &StoredContact) -> Self {
        Self {
            id: contact.id,
            name: contact.called(),
            email: contact.email.clone(),
            phone_number: contact.phone_number.clone(),
            why: clients::why(Some(&contact.matched_by)),
        }
    }
}

impl From<&Decided> for Decision {
    fn from(Decided { decision, record_name, other_name }: &Decided) -> Self {
        Self {
            id: decision.id,
            kind: decision.kind.clone(),
            record: record_name.clone(),
            other: other_name.clone(),
            said_by: decision.said_by.clone(),
            said_at: decision.said_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ClientDocuments {
    documents: Vec<ClientDocument>,
    /// Pass it as `before` to get the page after this one; none on the last.
    next_before: Option<Uuid>,
}

/// A document or an activity of a client.
#[derive(Serialize, ToSchema)]
pub struct ClientDocument {
    id: Uuid,
    title: Option<String>,
    #[schema(example = "activity.email")]
    document_type: String,
    source: String,
    at: DateTime<Utc>,
    url: String,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineQuery {
    /// Only documents before this one: `next_before` of the page before.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub before: Option<Uuid>,
    /// Only files, notes and documents, not activities and records.
    #[serde(default)]
    pub files: bool,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub limit: Option<i64>,
}

/// A client's documents and activities, newest first.
#[utoipa::path(get, path = "/api/v1/clients/{id}/documents", tag = "clients", params(("id" = Uuid, Path), TimelineQuery),
    responses((status = 200, body = ClientDocuments), (status = 404, body = Problem)))]
pub(crate) async fn documents(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
    Query(query): Query<TimelineQuery>,
) -> Result<Json<ClientDocuments>, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    let (listed, next_before) =
        clients::timeline(&app.env, &caller, ClientId(id), query.files, query.before, limit).await?;
    let base_url = app.env.config.base_url();
    let document = |dated: Dated| ClientDocument {
        url: format!("{base_url}/documents/{}", dated.id),
        id: dated.id,
        title: dated.title,
        document_type: dated.document_type.to_string(),
        source: dated.source_name,
        at: dated.at,
    };
    Ok(Json(ClientDocuments { documents: listed.into_iter().map(document).collect(), next_before }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeClient {
    /// The other client.
    client: Uuid,
}

/// Says that another client is this one. Both are one from now on, until that is undone.
#[utoipa::path(post, path = "/api/v1/clients/{id}/merge", tag = "clients", params(("id" = Uuid, Path)), request_body = MergeClient,
    responses((status = 200, body = WholeClient), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "They are one already")))]
pub(crate) async fn merge(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(other): extract::Json<MergeClient>,
) -> Result<Json<WholeClient>, ApiError> {
    let merged = decide::merge(&app.env, &caller, ClientId(id), ClientId(other.client)).await?;
    let whole = clients::whole(&app.env, &caller, merged).await?;
    Ok(Json(WholeClient::new(&whole, &app.env.config.base_url())))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddContactToClient {
    /// The contact's number.
    #[schema(example = 7)]
    contact: i64,
}

/// Says that a contact belongs to this client, whatever its addresses, its company or people said before. It can be undone.
#[utoipa::path(post, path = "/api/v1/clients/{id}/contacts", tag = "clients", params(("id" = Uuid, Path)), request_body = AddContactToClient,
    responses((status = 200, body = WholeClient), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "It belongs to this client already")))]
pub(crate) async fn add_contact(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(added): extract::Json<AddContactToClient>,
) -> Result<Json<WholeClient>, ApiError> {
    let client = decide::add_contact(&app.env, &caller, ClientId(id), ContactId(added.contact)).await?;
    let whole = clients::whole(&app.env, &caller, client).await?;
    Ok(Json(WholeClient::new(&whole, &app.env.config.base_url())))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitClient {
    /// One of the client's records or people.
    #[schema(example = "0198f0c2-7b1e-7c3a-9d55-2f6b8c1a4e77")]
    record: Option<Uuid>,
    /// Or one of its contacts.
    contact: Option<i64>,
}

/// Says that a record or a contact is not of this client. It is matched with nothing from now on, until that is undone.
#[utoipa::path(post, path = "/api/v1/clients/{id}/split", tag = "clients", params(("id" = Uuid, Path)), request_body = SplitClient,
    responses((status = 204), (status = 400, body = Problem), (status = 404, body = Problem),
        (status = 409, body = Problem, description = "A person said that it is of this client, or it was said before")))]
pub(crate) async fn split(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(which): extract::Json<SplitClient>,
) -> Result<StatusCode, ApiError> {
    let part = match (which.record, which.contact) {
        (Some(record), None) => Part::Record(record),
        (None, Some(contact)) => Part::Contact(ContactId(contact)),
        _ => return Err(engine::ActError::invalid("name a record or a contact").into()),
    };
    decide::split(&app.env, &caller, ClientId(id), part).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Undoes a decision about a client. Everything is as if it had never been made.
#[utoipa::path(delete, path = "/api/v1/clients/{id}/decisions/{decision}", tag = "clients",
    params(("id" = Uuid, Path), ("decision" = Uuid, Path)), responses((status = 204), (status = 404, body = Problem)))]
pub(crate) async fn undo(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, decision)): Path<(Uuid, Uuid)>,
) -> Result<StatusCode, ApiError> {
    decide::undo(&app.env, &caller, ClientId(id), decision).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SayFact {
    /// 1 to 5,000 characters.
    #[schema(example = "Landscaping")]
    value: String,
}

/// Writes a fact about a client, or corrects it: `industry`, `summary`, or a fact of any name. It is found by search, and nothing that is derived
/// overwrites it.
#[utoipa::path(put, path = "/api/v1/clients/{id}/facts/{fact}", tag = "clients",
    params(("id" = Uuid, Path), ("fact" = String, Path, description = "The name of the fact", example = "industry")), request_body = SayFact,
    responses((status = 200, body = WholeClient), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn say(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, fact)): Path<(Uuid, String)>,
    extract::Json(said): extract::Json<SayFact>,
) -> Result<Json<WholeClient>, ApiError> {
    let whole = curated::say(&app.env, &caller, ClientId(id), &fact, &said.value).await?;
    Ok(Json(WholeClient::new(&whole, &app.env.config.base_url())))
}

/// Withdraws a fact that a person wrote about a client. What is derived from records stays.
#[utoipa::path(delete, path = "/api/v1/clients/{id}/facts/{fact}", tag = "clients",
    params(("id" = Uuid, Path), ("fact" = String, Path, description = "The name of the fact", example = "industry")),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn withdraw(
    State(app): State<App>,
    Writing(caller): Writing,
    Path((id, fact)): Path<(Uuid, String)>,
) -> Result<StatusCode, ApiError> {
    curated::withdraw(&app.env, &caller, ClientId(id), &fact).await?;
    Ok(StatusCode::NO_CONTENT)
}
