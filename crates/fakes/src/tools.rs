//! The parts that the MCP servers of all providers share: the server around a provider's tools, a request's manner, and the forms of
//! schemas and results.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::handler::server::common::{AsRequestContext, FromContextPart};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ProtocolVersion,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool_handler};
use serde_json::{Value, json};

use crate::manners::Manner;

/// The versions of the protocol that a server speaks.
pub(crate) type Versions = &'static [ProtocolVersion];

/// A provider's tools, before it is known which versions of the protocol they are served in.
pub(crate) struct Tools<T> {
    /// The name and version that the server states.
    pub server: (&'static str, &'static str),
    pub tools: T,
    pub router: ToolRouter<T>,
}

/// A server of these tools.
#[derive(Clone)]
pub(crate) struct Server<T> {
    info: (&'static str, &'static str),
    tools: T,
    router: ToolRouter<T>,
    versions: Versions,
}

impl<T: Clone> Tools<T> {
    pub fn speaking(&self, versions: Versions) -> Server<T> {
        Server { info: self.server, tools: self.tools.clone(), router: self.router.clone(), versions }
    }
}

#[tool_handler(router = self.router)]
impl<T: Send + Sync + 'static> ServerHandler for Server<T> {
    fn get_info(&self) -> ServerConfig {
        let (name, version) = self.info;
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(name, version))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(self.versions)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.router.call(ToolCallContext::new(&self.tools, request, context)).await
    }
}

/// The manner in which a call is answered, if a test has set one for its request.
pub(crate) struct Mannered(pub Option<Manner>);

impl<C: AsRequestContext> FromContextPart<C> for Mannered {
    fn from_context_part(context: &mut C) -> Result<Self, ErrorData> {
        let parts = context.as_request_context().extensions.get::<Parts>();
        Ok(Self(parts.and_then(|parts| parts.extensions.get()).cloned()))
    }
}

/// A schema that a server declares word for word: clients pin it.
pub(crate) fn declared(schema: Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// The schema of an object with these properties and no others.
pub(crate) fn closed(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// A result of one block of text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// An error of one block of text.
pub(crate) fn error(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}
