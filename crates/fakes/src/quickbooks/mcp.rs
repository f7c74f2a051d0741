//! Intuit's MCP server for QuickBooks Online: its tools that read, as Intuit publishes them.

use std::sync::Arc;

use axum::Router;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::{tool, tool_router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::manners::Manner;
use crate::quickbooks::Books;
use crate::quickbooks::fake::QUICKBOOKS;
use crate::tools::{self, Mannered, Tools, closed, declared};
use crate::{Shared, lock, mcp};

pub(super) fn routes(shared: &Arc<Shared>, config: &StreamableHttpServerConfig) -> Router<Arc<Shared>> {
    let tools = QuickbooksTools { shared: shared.clone() };
    let tools = Tools { server: ("quickbooks-mcp", "1.0.0"), tools, router: QuickbooksTools::tool_router() };
    mcp::routes(QUICKBOOKS, shared, config, tools)
}

#[derive(Clone)]
struct QuickbooksTools {
    shared: Arc<Shared>,
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
        "field": {"type": "string", "enum": fields},
        "value": value,
        "operator": {"type": "string", "enum": ["=", "<", ">", "<=", ">=", "LIKE", "IN"]},
    });
    let by_field = closed(by_field, &["field", "value"]);
    let by_key = closed(json!({"key": {"type": "string"}, "value": value}), &["key", "value"]);
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
    declared(closed(json!({"params": params}), &["params"]))
}

#[tool_router]
impl QuickbooksTools {
    #[tool(
        name = "search_customers",
        description = "Finds customers",
        input_schema = customers_schema(),
        annotations(read_only_hint = true)
    )]
    async fn customers(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let how = Value::Object(asked.params);
        self.found("Customer", &how, &how["criteria"], manner.as_ref())
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
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let criteria = asked.params.get("criteria").cloned().unwrap_or_default();
        self.found("Invoice", &criteria, &criteria, manner.as_ref())
    }

    /// A line that says how many, then a block of JSON for each. Errors are ordinary text.
    fn found(&self, entity: &str, how: &Value, criteria: &Value, manner: Option<&Manner>) -> CallToolResult {
        if let Some(Manner::ToolError(status)) = manner {
            return tools::text(format!("Error searching {entity}s: QuickBooks API Error: {status}"));
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
