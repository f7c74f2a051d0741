//! The server as `rmcp` calls it. It has no state: who asks is in each request.

use std::time::Instant;

use axum::http::request::Parts;
use engine::assistants::calls::{Called, Outcome};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, DiscoverResult, ErrorCode, Implementation,
    InitializeRequestParams, InitializeResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::{Asking, instructions, resources, tools};

/// The time for which a client may keep a list: the tools change with the key's rights alone.
const LIST_TTL_MS: u64 = 300_000;
/// The same for what changes as documents arrive.
const DISCOVER_TTL_MS: u64 = 60_000;
const DOCUMENTS_TTL_MS: u64 = 10_000;

#[derive(Clone, Copy)]
pub(super) struct Server;

/// A call that was stopped before its end.
enum Stopped {
    Over(String),
    Cancelled,
}

impl From<Stopped> for ErrorData {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Over(what) => Self::invalid_request(what, None),
            Stopped::Cancelled => Self::invalid_request("it was cancelled", None),
        }
    }
}

/// A call under way. It is noted when it is dropped, so also when its client goes away.
struct Call<'a> {
    asking: &'a Asking,
    name: &'static str,
    arguments: &'a Value,
    begun: Instant,
    outcome: Outcome,
    n_hits: Option<usize>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let Self { name: tool, outcome, n_hits, arguments, .. } = *self;
        let called = Called { tool, outcome, took: self.begun.elapsed(), n_hits, arguments };
        self.asking.app.mcp.calls.note(&self.asking.app.env, &self.asking.caller, called);
    }
}

/// Answers a call, if its key has not made too many within a minute. `ended` says how it ended and how much was found.
async fn call<T>(
    asking: &Asking,
    context: &RequestContext<RoleServer>,
    (name, arguments): (&'static str, &Value),
    answering: impl Future<Output = T>,
    ended: impl FnOnce(&T) -> (Outcome, Option<usize>),
) -> Result<T, Stopped> {
    let begun = Instant::now();
    let mut call = Call { asking, name, arguments, begun, outcome: Outcome::Cancelled, n_hits: None };
    let most = asking.app.env.config.mcp_calls_per_minute;
    if let Err(wait) = asking.app.mcp.rate.count(asking.caller.key_id, most) {
        call.outcome = Outcome::Refused;
        let secs = wait.as_secs() + 1;
        return Err(Stopped::Over(format!(
            "this key has made {most} calls within a minute: wait {secs} s, then go on"
        )));
    }
    let answered = tokio::select! {
        answered = answering => answered,
        () = context.ct.cancelled() => return Err(Stopped::Cancelled),
    };
    (call.outcome, call.n_hits) = ended(&answered);
    Ok(answered)
}

/// How a request for resources ended.
fn ended<T>(answered: &Result<T, ErrorData>) -> (Outcome, Option<usize>) {
    match answered {
        Ok(_) => (Outcome::Ok, None),
        Err(error) if error.code == ErrorCode::INTERNAL_ERROR => (Outcome::Failed, None),
        Err(_) => (Outcome::Refused, None),
    }
}

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
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let Some(tool) = tools::named(&request.name) else {
            let refused = |(): &()| (Outcome::Refused, None);
            call(&asking, &context, ("unknown", &arguments), async {}, refused).await?;
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        let ended = |answered: &Result<Answer, Refusal>| match answered {
            Ok(answer) => (Outcome::Ok, answer.n_hits),
            Err(Refusal::Mend(_)) => (Outcome::Refused, None),
            Err(Refusal::Failed(_)) => (Outcome::Failed, None),
        };
        let answering = tool.call(&asking, arguments.clone());
        let answered = match call(&asking, &context, (tool.name, &arguments), answering, ended).await {
            Ok(answered) => answered,
            Err(Stopped::Over(what)) => Err(Refusal::Mend(what)),
            Err(stopped @ Stopped::Cancelled) => return Err(stopped.into()),
        };
        Ok(answered.map_or_else(Refusal::into_result, Answer::into_result).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let asking = asking(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let answering = resources::list(&asking, cursor);
        let mut listed = call(&asking, &context, ("resources/list", &Value::Null), answering, ended).await??;
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
        let asking = asking(&context)?;
        let arguments = json!({ "uri": request.uri });
        let answering = resources::read(&asking, &request.uri);
        let mut read = call(&asking, &context, ("resources/read", &arguments), answering, ended).await??;
        (read.ttl_ms, read.cache_scope) = kept(&context, DOCUMENTS_TTL_MS);
        Ok(read.into())
    }
}
