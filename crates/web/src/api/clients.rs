//! Clients: what is known of whom the tenant does business with, and which documents say so.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::ClientId;
use engine::clients;
use engine::lanes::client_facts::label;
use engine::pull::words::facts::{in_order, place};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::clients::Cited;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::Reading;
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use super::search::SourceRef;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Clients {
    clients: Vec<Client>,
}

#[derive(Serialize, ToSchema)]
pub struct Client {
    id: Uuid,
    name: String,
    industry: Option<String>,
    summary: Option<String>,
    /// Null: a person wrote it.
    source: Option<SourceRef>,
    /// The record it is made of.
    #[schema(example = "company:51")]
    external_id: Option<String>,
    /// Its own text among the documents, where several records were rolled up.
    document_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<store::clients::Client> for Client {
    fn from(client: store::clients::Client) -> Self {
        let name = client.source_name.unwrap_or_default();
        Self {
            id: client.id,
            name: client.client_name,
            industry: client.industry,
            summary: client.summary,
            source: client.source_id.map(|id| SourceRef { id, name }),
            external_id: client.external_id,
            document_id: client.document_id,
            created_at: client.created_at,
            updated_at: client.updated_at,
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ClientsQuery {
    /// A part of a name.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub q: Option<String>,
    /// At most so many, 1 to 200. Default 50.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub limit: Option<i64>,
    /// One of each name: a company or customer, not the people there.
    #[serde(default)]
    pub grouped: bool,
}

/// Clients by name.
#[utoipa::path(get, path = "/api/v1/clients", tag = "clients", params(ClientsQuery), responses((status = 200, body = Clients)))]
pub(crate) async fn list(
    State(app): State<App>,
    Reading(caller): Reading,
    Query(query): Query<ClientsQuery>,
) -> Result<Json<Clients>, ApiError> {
    let limit = query.limit.unwrap_or(50).clamp(1, 200);
    Ok(Json(clients::list(&app.env, &caller, query.q.as_deref(), query.grouped, limit).await?.into()))
}

impl From<Vec<store::clients::Client>> for Clients {
    fn from(clients: Vec<store::clients::Client>) -> Self {
        Self { clients: clients.into_iter().map(Client::from).collect() }
    }
}

/// A client with what is known of it.
#[derive(Serialize, ToSchema)]
pub struct WholeClient {
    #[serde(flatten)]
    client: Client,
    facts: Vec<Fact>,
    /// Others of the same name, from this source or another.
    also_known_as: Vec<Client>,
}

#[derive(Serialize, ToSchema)]
pub struct Fact {
    #[schema(example = "open_deals")]
    name: String,
    /// The same for people.
    #[schema(example = "Open deals")]
    label: String,
    /// A text, a number, or a list or object of those.
    value: Value,
    /// The documents that say so.
    documents: Vec<CitedDocument>,
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

/// One client.
#[utoipa::path(get, path = "/api/v1/clients/{id}", tag = "clients", params(("id" = Uuid, Path)),
    responses((status = 200, body = WholeClient), (status = 404, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Reading(caller): Reading,
    Path(id): Path<Uuid>,
) -> Result<Json<WholeClient>, ApiError> {
    let whole = clients::whole(&app.env, &caller, ClientId(id)).await?;
    Ok(Json(WholeClient::new(whole, &app.env.config.base_url())))
}

impl WholeClient {
    /// Makes the answer, with links to pages at `base_url`.
    pub fn new(whole: clients::WholeClient, base_url: &str) -> Self {
        let document = |cited: &Cited| CitedDocument {
            id: cited.id,
            title: cited.title.clone(),
            document_type: cited.document_type.to_string(),
            external_id: cited.external_id.clone(),
            url: format!("{base_url}/documents/{}", cited.id),
        };
        let fact = |(name, value): (&str, Value)| Fact {
            label: label(name),
            documents: whole.documents_of(name).into_iter().map(document).collect(),
            name: name.to_owned(),
            value,
        };
        let client = &whole.client;
        let told = [("industry", &client.industry), ("summary", &client.summary)];
        let told = told.into_iter().filter_map(|(name, text)| Some((name, Value::from(text.clone()?))));
        let derived = in_order(&client.key_facts).into_iter().map(|(name, value)| (name, value.clone()));
        let mut all: Vec<(&str, Value)> = told.chain(derived).collect();
        all.sort_by_key(|(name, _)| place(name));
        let facts = all.into_iter().map(fact).collect();
        let also_known_as = whole.alike.into_iter().map(Client::from).collect();
        Self { facts, client: whole.client.into(), also_known_as }
    }
}
