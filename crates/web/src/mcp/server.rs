//! The server as `rmcp` calls it. It has no state: who asks is in each request.

use std::time::Instant;

use axum::http::request::Parts;
use engine::assistants::calls::{Called, Outcome};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, DiscoverResult, Implementation, InitializeRequestParams,
    InitializeResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use super::answer::Refusal;
use super::{Asking, instructions, resources, tools};

/// The time for which a client may keep a list: the tools change with the key's rights alone.
const LIST_TTL_MS: u64 = 300_000;
/// The same for what changes as documents arrive.
const DISCOVER_TTL_MS: u64 = 60_000;
const DOCUMENTS_TTL_MS: u64 = 10_000;

#[derive(Clone, Copy)]
pub(super) struct Server;

/// The caller of a request.
fn asking(context: &RequestContext<RoleServer>) -> Result<Asking, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let asking = parts.and_then(|parts| parts.extensions.get::<Asking>()).cloned();
    asking.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
}

/// For how long a client may keep a list. Only the newest revision knows of that.
type Kept = (Option<u64>, Option<CacheScope>);

fn kept(context: &RequestContext<RoleServer>, ttl_ms: u64) -> Kept {
    let is_told = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    // Private: it depends on the key.
    if is_told { (Some(ttl_ms), Some(CacheScope::Private)) } else { (None, None) }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("tributary", env!("CARGO_PKG_VERSION"));
        server.title = Some("Tributary".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(server)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let asking = asking(&context)?;
        context.peer.set_peer_info(request.clone());
        let info = self.negotiate_initialize(&request)?;
        Ok(info.with_instructions(instructions::of(&asking).await))
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let asking = asking(&context)?;
        let info = self.get_info().with_instructions(instructions::of(&asking).await);
        let versions = self.supported_protocol_versions().into_owned();
        let mut discovered = DiscoverResult::from_server_info(versions, info);
        (discovered.ttl_ms, discovered.cache_scope) = (DISCOVER_TTL_MS, CacheScope::Private);
        Ok(discovered)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let asking = asking(&context)?;
        let mut listed = ListToolsResult::with_all_items(tools::of(&asking.caller));
        (listed.ttl_ms, listed.cache_scope) = kept(&context, LIST_TTL_MS);
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asking = asking(&context)?;
        let unknown = || ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None);
        let tool = tools::named(&request.name).ok_or_else(unknown)?;
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let (app, caller, begun) = (asking.app.clone(), asking.caller.clone(), Instant::now());
        let most = app.env.config.mcp_calls_per_minute;
        let answered = match app.mcp.rate.count(caller.key_id, most) {
            Err(wait) => {
                let secs = wait.as_secs() + 1;
                Err(Refusal::mend(format!("this key has made {most} calls within a minute: wait {secs} s, then go on")))
            }
            Ok(()) => tokio::select! {
                answered = tool.call(&asking, arguments.clone()) => answered,
                () = context.ct.cancelled() => return Err(ErrorData::invalid_request("it was cancelled", None)),
            },
        };
        let (outcome, n_hits) = match &answered {
            Ok(answer) => (Outcome::Ok, answer.n_hits),
            Err(Refusal::Mend(_)) => (Outcome::Refused, None),
            Err(Refusal::Failed(_)) => (Outcome::Failed, None),
        };
        let called = Called { tool: tool.name, outcome, took: begun.elapsed(), n_hits, arguments: &arguments };
        app.mcp.calls.note(&app.env, &caller, called);
        Ok(answered.map_or_else(Refusal::into_result, super::answer::Answer::into_result).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = resources::list(&asking(&context)?, request.and_then(|request| request.cursor)).await?;
        (listed.ttl_ms, listed.cache_scope) = kept(&context, DOCUMENTS_TTL_MS);
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        asking(&context)?;
        let mut listed = resources::templates();
        (listed.ttl_ms, listed.cache_scope) = kept(&context, LIST_TTL_MS);
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let mut read = resources::read(&asking(&context)?, &request.uri).await?;
        (read.ttl_ms, read.cache_scope) = kept(&context, DOCUMENTS_TTL_MS);
        Ok(read.into())
    }
}
