//! HubSpot's MCP server: the tools of its local server, version 0.4.0. Writing tools are there, work, and show in the ledger: nobody who
//! only reads may call them.

use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::http::StatusCode;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, JsonObject};
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::{tool, tool_router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::clock::iso;
use crate::hubspot::fake::HUBSPOT;
use crate::hubspot::rest::{Batch, ListQuery, Refused, known_type};
use crate::hubspot::search::Search;
use crate::hubspot::{Crm, Hubspot};
use crate::manners::Manner;
use crate::tools::{self, Mannered, Tools, closed, declared};
use crate::{Shared, lock, mcp, shapes};

const MOST_A_PAGE: usize = 500;

pub(super) fn routes(shared: &Arc<Shared>, config: &StreamableHttpServerConfig) -> Router<Arc<Shared>> {
    let tools = HubspotTools { shared: shared.clone() };
    let tools = Tools { server: ("hubspot-mcp", "0.4.0"), tools, router: HubspotTools::tool_router() };
    mcp::routes(HUBSPOT, shared, config, tools)
}

#[derive(Clone)]
struct HubspotTools {
    shared: Arc<Shared>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListArguments {
    /// contacts, companies or deals
    object_type: String,
    /// 1 to 500; 100 unless given
    limit: Option<usize>,
    /// The token of the next page, from the page before it
    after: Option<String>,
    properties: Option<Vec<String>>,
    associations: Option<Vec<String>>,
    #[serde(default)]
    archived: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReadArguments {
    object_type: String,
    #[serde(flatten)]
    batch: Batch,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SearchArguments {
    object_type: String,
    #[serde(flatten)]
    search: Search,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WriteArguments {
    object_type: String,
    inputs: Vec<Written>,
}

#[derive(Deserialize, JsonSchema)]
struct Written {
    /// The id of an existing object
    id: Option<String>,
    properties: Map<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AssociationArguments {
    object_type: String,
    object_id: String,
    to_object_type: String,
}

fn list_schema() -> Arc<JsonObject> {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let properties = json!({
        "objectType": {"type": "string", "description": "contacts, companies or deals"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
        "after": {"type": "string", "description": "The token of the next page, from the page before it"},
        "properties": texts,
        "associations": texts,
        "archived": {"type": "boolean", "default": false},
    });
    declared(closed(properties, &["objectType"]))
}

fn read_schema() -> Arc<JsonObject> {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let input = closed(json!({"id": {"type": "string"}}), &["id"]);
    let properties = json!({
        "objectType": {"type": "string"},
        "inputs": {"type": "array", "items": input, "minItems": 1, "maxItems": 100},
        "properties": texts,
        "propertiesWithHistory": texts,
    });
    declared(closed(properties, &["objectType", "inputs"]))
}

fn association_schema() -> Arc<JsonObject> {
    let text = json!({"type": "string"});
    let properties = json!({"objectType": text, "objectId": text, "toObjectType": text, "after": text});
    declared(closed(properties, &["objectType", "objectId", "toObjectType"]))
}

#[tool_router]
impl HubspotTools {
    #[tool(
        name = "hubspot-list-objects",
        description = "Lists the objects of a type, page by page",
        input_schema = list_schema(),
        annotations(read_only_hint = true)
    )]
    async fn list(&self, Mannered(manner): Mannered, Parameters(asked): Parameters<ListArguments>) -> CallToolResult {
        let limit = asked.limit.unwrap_or(100).clamp(1, MOST_A_PAGE);
        let query = ListQuery {
            limit: manner.as_ref().map_or(limit, |manner| manner.page_rows(limit)),
            after: asked.after,
            properties: asked.properties.unwrap_or_default(),
            associations: asked.associations.unwrap_or_default(),
            is_archived: asked.archived,
            repeats: manner == Some(Manner::RepeatToken),
        };
        let link = format!("https://api.hubapi.com/crm/v3/objects/{}?limit={limit}", asked.object_type);
        let page = known_type(&asked.object_type)
            .and_then(|kind| lock(self.shared.records::<Crm>()).list(kind, &query, &link));
        self.result("listing objects", manner.as_ref(), page).await
    }

    #[tool(
        name = "hubspot-batch-read-objects",
        description = "Reads up to 100 objects of a type by their ids",
        input_schema = read_schema(),
        annotations(read_only_hint = true)
    )]
    async fn read(&self, Mannered(manner): Mannered, Parameters(asked): Parameters<ReadArguments>) -> CallToolResult {
        let now = iso(self.shared.clock.now());
        let kind = known_type(&asked.object_type);
        let batch = kind.and_then(|kind| lock(self.shared.records::<Crm>()).read(kind, &asked.batch, now));
        self.result("reading objects", manner.as_ref(), batch.map(|(batch, _)| batch)).await
    }

    #[tool(
        name = "hubspot-list-associations",
        description = "Lists the objects of another type that an object is associated with",
        input_schema = association_schema(),
        annotations(read_only_hint = true)
    )]
    async fn associations(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<AssociationArguments>,
    ) -> CallToolResult {
        let known = known_type(&asked.object_type).and_then(|from| Ok((from, known_type(&asked.to_object_type)?)));
        let listed = known.map(|(from, to)| {
            let id = asked.object_id.parse().unwrap_or_default();
            let said = lock(self.shared.records::<Crm>()).associations(from, id, to);
            json!({"results": said.map_or_else(|| json!([]), |said| said["to"].clone())})
        });
        self.result("listing associations", manner.as_ref(), listed).await
    }

    #[tool(
        name = "hubspot-search-objects",
        description = "Finds objects of a type by their properties",
        annotations(read_only_hint = true)
    )]
    async fn search(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let now = self.shared.clock.now();
        let search = |kind| {
            lock(self.shared.records::<Crm>())
                .search(kind, &asked.search, manner.as_ref(), now)
                .map_err(Refused::invalid)
        };
        let page = known_type(&asked.object_type).and_then(search);
        self.result("searching objects", manner.as_ref(), page).await
    }

    #[tool(name = "hubspot-batch-create-objects", description = "Creates objects of a type")]
    async fn create(&self, Parameters(asked): Parameters<WriteArguments>) -> CallToolResult {
        let crm = Hubspot { shared: self.shared.clone() };
        let created = known_type(&asked.object_type).map(|kind| {
            let ids: Vec<_> =
                asked.inputs.into_iter().map(|input| crm.put(kind, Value::Object(input.properties))).collect();
            json!({"status": "COMPLETE", "results": ids})
        });
        self.result("creating objects", None, created).await
    }

    #[tool(
        name = "hubspot-batch-update-objects",
        description = "Changes objects of a type",
        annotations(destructive_hint = true)
    )]
    async fn update(&self, Parameters(asked): Parameters<WriteArguments>) -> CallToolResult {
        let crm = Hubspot { shared: self.shared.clone() };
        let updated = known_type(&asked.object_type).map(|kind| {
            let known = crm.ids(kind);
            let inputs = asked.inputs.into_iter().filter_map(|input| Some((input.id?, input.properties)));
            for (id, properties) in inputs.filter(|(id, _)| known.contains(id)) {
                crm.patch(kind, &id, Value::Object(properties));
            }
            json!({"status": "COMPLETE"})
        });
        self.result("changing objects", None, updated).await
    }

    /// One block of text that is JSON; or, when HubSpot refuses, words with HubSpot's answer at their end.
    async fn result(&self, doing: &str, manner: Option<&Manner>, page: Result<Value, Refused>) -> CallToolResult {
        let now = self.shared.clock.now();
        let refusal = match (manner, page) {
            (Some(Manner::ToolError(status)), _) => shapes::error("/hubspot", *status, now),
            (Some(Manner::LostToken), _) => (HUBSPOT.words.lost_token)(now),
            (_, Err(refused)) => refused.answer(),
            (_, Ok(page)) => return tools::text(page.to_string()),
        };
        let status: StatusCode = refusal.status();
        let body = to_bytes(refusal.into_body(), usize::MAX).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        tools::error(format!("Error {doing}: HubSpot API Error: {status} - {body}"))
    }
}
