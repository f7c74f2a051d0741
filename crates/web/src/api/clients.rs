//! Clients: what is known of whom the tenant does business with, and which documents say so.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use domain::ClientId;
use domain::text::has_nul;
use engine::lanes::client_facts::label;
use engine::pull::words::facts::{in_order, place};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::clients::{self, Cited, Filter};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::Reading;
use super::error::{ApiError, Problem};
use super::extract::{Path, Query, blank_is_none};
use super::search::SourceRef;
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub(crate) struct Clients {
    clients: Vec<Client>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Client {
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

impl From<clients::Client> for Client {
    fn from(client: clients::Client) -> Self {
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
    let listed = load_list(&app, &caller, &query).await?;
    Ok(Json(Clients { clients: listed.into_iter().map(Client::from).collect() }))
}

pub(crate) async fn load_list(
    app: &App,
    caller: &domain::Caller,
    query: &ClientsQuery,
) -> Result<Vec<clients::Client>, ApiError> {
    if query.q.as_ref().is_some_and(|q| has_nul(q)) {
        return Err(ApiError::Malformed(StatusCode::BAD_REQUEST, "q has a NUL character".into()));
    }
    let named = query.q.as_deref().map(str::trim).filter(|q| !q.is_empty());
    let filter = Filter {
        named,
        limit: query.limit.unwrap_or(50).clamp(1, 200),
        is_grouped: query.grouped,
        ..Filter::default()
    };
    Ok(app.env.db.read(caller, async |tx| clients::list(tx, filter).await).await?)
}

/// A client with what is known of it.
#[derive(Serialize, ToSchema)]
pub(crate) struct WholeClient {
    #[serde(flatten)]
    client: Client,
    facts: Vec<Fact>,
    /// Others of the same name, from this source or another.
    also_known_as: Vec<Client>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Fact {
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
pub(crate) struct CitedDocument {
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
    let Loaded { client, cited, alike, .. } = load(&app, &caller, ClientId(id)).await?;
    let base_url = app.env.config.base_url();
    let document = |cited: &&Cited| CitedDocument {
        id: cited.id,
        title: cited.title.clone(),
        document_type: cited.document_type.to_string(),
        external_id: cited.external_id.clone(),
        url: format!("{base_url}/documents/{}", cited.id),
    };
    let fact = |(name, value): (&str, Value)| Fact {
        label: label(name),
        documents: said_by(&client, &cited, name).iter().map(document).collect(),
        name: name.to_owned(),
        value,
    };
    let told = [("industry", &client.industry), ("summary", &client.summary)];
    let told = told.into_iter().filter_map(|(name, text)| Some((name, Value::from(text.clone()?))));
    let derived = in_order(&client.key_facts).into_iter().map(|(name, value)| (name, value.clone()));
    let mut all: Vec<(&str, Value)> = told.chain(derived).collect();
    all.sort_by_key(|(name, _)| place(name));
    let facts = all.into_iter().map(fact).collect();
    Ok(Json(WholeClient { facts, client: client.into(), also_known_as: alike.into_iter().map(Client::from).collect() }))
}

/// A client, the documents that its facts cite, and others of its name.
pub(crate) struct Loaded {
    pub client: clients::Client,
    pub cited: HashMap<Uuid, Cited>,
    /// The first of them, people last.
    pub alike: Vec<clients::Client>,
    /// How many there are.
    pub n_alike: i64,
}

/// How many others of a name are shown.
const MOST_ALIKE: i64 = 50;

pub(crate) async fn load(app: &App, caller: &domain::Caller, id: ClientId) -> Result<Loaded, ApiError> {
    let loaded = app.env.db.read(caller, async |tx| {
        let only = Filter { only: Some(id), limit: 1, ..Filter::default() };
        let Some(client) = clients::list(tx, only).await?.pop() else { return Ok(None) };
        let ids: Vec<Uuid> =
            client.evidence.as_object().into_iter().flatten().flat_map(|(_, ids)| named(ids)).collect();
        let cited = clients::cited(tx, &ids).await?;
        let same = Filter { alike: Some(&client.client_name), limit: MOST_ALIKE + 1, ..Filter::default() };
        let alike = clients::list(tx, same).await?;
        Ok(Some((client, cited, alike)))
    });
    let (client, cited, mut alike) = loaded.await?.ok_or(ApiError::NotFound("client"))?;
    let n_alike = alike.first().map_or(0, |first| first.n_alike - 1); // itself is one of them
    alike.retain(|other| other.id != client.id);
    Ok(Loaded { client, cited: cited.into_iter().map(|cited| (cited.id, cited)).collect(), alike, n_alike })
}

/// The documents that say a fact of a client, as far as they are still there.
pub(crate) fn said_by<'a>(client: &clients::Client, cited: &'a HashMap<Uuid, Cited>, fact: &str) -> Vec<&'a Cited> {
    let ids = client.evidence.get(fact).into_iter().flat_map(named);
    ids.filter_map(|id| cited.get(&id)).collect()
}

fn named(ids: &Value) -> impl Iterator<Item = Uuid> {
    ids.as_array().into_iter().flatten().filter_map(|id| id.as_str()?.parse().ok())
}
