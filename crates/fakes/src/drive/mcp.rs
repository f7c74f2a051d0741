//! Google's MCP server for Drive: its tools that read, as Google publishes them.

use std::sync::Arc;

use axum::Router;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, JsonObject};
use rmcp::schemars::{self, JsonSchema};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::{tool, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::drive::fake::DRIVE;
use crate::drive::filter::Filter;
use crate::drive::{File, Files};
use crate::manners::Manner;
use crate::tools::{self, Mannered, Tools, declared};
use crate::{Shared, lock, mcp};

pub(super) fn routes(shared: &Arc<Shared>, config: &StreamableHttpServerConfig) -> Router<Arc<Shared>> {
    let tools = DriveTools { shared: shared.clone() };
    let tools = Tools { server: ("drive-mcp", "1.0.0"), tools, router: DriveTools::tool_router() };
    mcp::routes(DRIVE, shared, config, tools)
}

#[derive(Clone)]
struct DriveTools {
    shared: Arc<Shared>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SearchArguments {
    query: Option<String>,
    page_token: Option<String>,
    page_size: Option<usize>,
    #[expect(dead_code, reason = "snippets are never sent")]
    exclude_content_snippets: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FileArguments {
    file_id: String,
}

fn search_schema() -> Arc<JsonObject> {
    declared(json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "pageToken": {"type": "string"},
            "pageSize": {"type": "integer", "format": "int32"},
            "excludeContentSnippets": {"type": "boolean"},
        },
    }))
}

fn file_schema() -> Arc<JsonObject> {
    declared(json!({"type": "object", "properties": {"fileId": {"type": "string"}}, "required": ["fileId"]}))
}

#[tool_router]
impl DriveTools {
    #[tool(
        name = "search_files",
        description = "Finds files",
        input_schema = search_schema(),
        annotations(read_only_hint = true)
    )]
    async fn search(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<SearchArguments>,
    ) -> CallToolResult {
        let Some(filter) = Filter::parse(asked.query.as_deref().unwrap_or_default()) else { return refused(400) };
        let start = match &asked.page_token {
            None => 0,
            Some(_) if manner == Some(Manner::LostToken) => return refused(400),
            Some(token) => match token.strip_prefix('~').and_then(|number| number.parse().ok()) {
                Some(start) => start,
                None => return refused(400),
            },
        };
        let drive = lock(self.shared.records::<Files>());
        let mut files: Vec<&File> = drive.files.values().filter(|file| filter.holds(file)).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.modified_at));
        let rows = asked.page_size.unwrap_or(10);
        let page: Vec<Value> = files.iter().skip(start).take(rows).map(|file| shown(file)).collect();
        // As Google does, without what is empty.
        let mut found = json!({});
        if !page.is_empty() {
            found["files"] = json!(page);
        }
        if start + rows < files.len() {
            found["nextPageToken"] = json!(format!("~{}", start + rows));
        }
        answered(manner.as_ref(), &found)
    }

    #[tool(
        name = "get_file_metadata",
        description = "Describes a file",
        input_schema = file_schema(),
        annotations(read_only_hint = true)
    )]
    async fn metadata(
        &self,
        Mannered(manner): Mannered,
        Parameters(asked): Parameters<FileArguments>,
    ) -> CallToolResult {
        match lock(self.shared.records::<Files>()).files.get(&asked.file_id) {
            Some(file) => answered(manner.as_ref(), &shown(file)),
            None => refused(404),
        }
    }

    #[tool(
        name = "read_file_content",
        description = "Reads the text of a file",
        input_schema = file_schema(),
        annotations(read_only_hint = true)
    )]
    async fn text(&self, Mannered(manner): Mannered, Parameters(asked): Parameters<FileArguments>) -> CallToolResult {
        match lock(self.shared.records::<Files>()).files.get(&asked.file_id) {
            Some(file) => answered(manner.as_ref(), &json!({"fileContent": file.text})),
            None => refused(404),
        }
    }
}

/// A file as the server shows it: its name is `title` here.
fn shown(file: &File) -> Value {
    let mut metadata = file.metadata.clone();
    if let Some(name) = metadata.as_object_mut().and_then(|fields| fields.remove("name")) {
        metadata["title"] = name;
    }
    metadata
}

/// One block of text that is JSON.
fn answered(manner: Option<&Manner>, found: &Value) -> CallToolResult {
    match manner {
        Some(Manner::ToolError(status)) => refused(*status),
        _ => tools::text(found.to_string()),
    }
}

/// The server quotes the status of the API behind it.
fn refused(status: u16) -> CallToolResult {
    tools::error(format!("Drive API Error: {status}"))
}
