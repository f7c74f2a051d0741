//! Intuit's MCP server for QuickBooks Online: its tools that read, as Intuit publishes them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::http::request::Parts;
use rmcp::handler::server::common::Extension;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, Implementation, JsonObject, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::manners::Manner;
use crate::mcp::{self, Versions, declared};
use crate::quickbooks::Books;
use crate::quickbooks::fake::QUICKBOOKS;
use crate::{Shared, lock};

pub(super) fn routes(shared: &Arc<Shared>, config: &StreamableHttpServerConfig) -> Router<Arc<Shared>> {
    mcp::routes(QUICKBOOKS, shared, config, |shared, versions| Tools { shared, versions })
}

#[derive(Clone)]
struct Tools {
    shared: Arc<Shared>,
    versions: Versions,
}

#[derive(Deserialize, JsonSchema)]
struct SearchArguments {
    params: Map<String, Value>,
}

fn customers_schema() -> Arc<JsonObject> {
    let fields = json!([
        "Id",
        "DisplayName",
        "GivenName",
        "FamilyName",
        "CompanyName",
        "PrimaryEmailAddr",
        "PrimaryPhone",
        "Balance",
        "Active",
        "MetaData.CreateTime",
        "MetaData.LastUpdatedTime",
    ]);
    let value = json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"},
        {"type": "array", "items": {"type": ["string", "number"]}},
    ]});
    let by_field = json!({
        "type": "object",
        "properties": {
            "field": {"type": "string", "enum": fields},
            "value": value,
            "operator": {"type": "string", "enum": ["=", "<", ">", "<=", ">=", "LIKE", "IN"]},
        },
        "required": ["field", "value"],
        "additionalProperties": false,
    });
    let by_key = json!({
        "type": "object",
        "properties": {"key": {"type": "string"}, "value": value},
        "required": ["key", "value"],
        "additionalProperties": false,
    });
    searched(json!({
        "criteria": {"type": "array", "items": {"anyOf": [by_field, by_key]}},
        "limit": {"type": "number"},
        "offset": {"type": "number"},
        "asc": {"type": "string"},
        "desc": {"type": "string"},
        "fetchAll": {"type": "boolean"},
        "count": {"type": "boolean"},
    }))
}

fn invoices_schema() -> Arc<JsonObject> {
    searched(json!({"criteria": {}}))
}

fn searched(properties: Value) -> Arc<JsonObject> {
    let params = json!({"type": "object", "properties": properties, "additionalProperties": false});
    declared(json!({
        "type": "object", "properties": {"params": params}, "required": ["params"], "additionalProperties": false,
    }))
}

#[tool_router]
impl Tools {
    #[tool(
        name = "search_customers",
        description = "Finds customers",
        input_schema = customers_schema(),
        annotations(read_only_hint = true)
    )]
    async fn customers(
        &self,
        Extension(parts): Extension<Parts>,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let how = Value::Object(asked.params);
        self.found("Customer", &how, &how["criteria"], parts.extensions.get())
    }

    /// The options of a search are in its criteria here.
    #[tool(
        name = "search_invoices",
        description = "Finds invoices",
        input_schema = invoices_schema(),
        annotations(read_only_hint = true)
    )]
    async fn invoices(
        &self,
        Extension(parts): Extension<Parts>,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let criteria = asked.params.get("criteria").cloned().unwrap_or_default();
        self.found("Invoice", &criteria, &criteria, parts.extensions.get())
    }

    /// A line that says how many, then a block of JSON for each. Errors are ordinary text.
    fn found(&self, entity: &str, how: &Value, criteria: &Value, manner: Option<&Manner>) -> CallToolResult {
        if let Some(Manner::ToolError(status)) = manner {
            let text = format!("Error searching {entity}s: QuickBooks API Error: {status}");
            return CallToolResult::success(vec![ContentBlock::text(text)]);
        }
        let number = |name: &str| how[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let wanted = criteria.pointer("/0/value").and_then(Value::as_array);
        let books = lock(self.shared.records::<Books>());
        let live = books.live(entity).map(|(_, row)| &row.record);
        let records: Vec<&Value> = match wanted {
            Some(wanted) => live.filter(|record| wanted.contains(&record["Id"])).collect(),
            None => live.skip(number("offset").unwrap_or(1) - 1).take(number("limit").unwrap_or(100)).collect(),
        };
        let line = format!("Found {} {}s:", records.len(), entity.to_lowercase());
        let blocks = std::iter::once(line).chain(records.into_iter().map(Value::to_string));
        CallToolResult::success(blocks.map(ContentBlock::text).collect())
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("quickbooks-mcp", "1.0.0"))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }
}
