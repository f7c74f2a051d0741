//! One account's connection to a provider's server, of either era. The modern era has no sessions and begins with `server/discover`; the old
//! one begins with `initialize`. The era is a property of the server: it is found out once and remembered.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Secret;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    JsonObject, PaginatedRequestParams, ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};

use super::answer::{failed, is_about_arguments, unreadable, who};
use super::tools::Tool as OurTool;
use super::wire::{LastWords, Quiet, Wire};
use crate::Http;
use crate::pull::PullError;
use crate::pull::spec::{Mcp, Provider};

/// Most pages of a list of tools: more are a circle.
const MOST_TOOL_PAGES: usize = 50;

/// A provider's server: its address, and its era once known.
pub(super) struct Server {
    pub provider: Provider,
    pub mcp: &'static Mcp,
    pub url: Arc<str>,
    pub http: Http,
    pub era: Mutex<Option<Era>>,
    /// A server that is silent for so long belongs to the old era.
    pub silence: Duration,
    /// The time limit of one call, of the whole list of tools, and of connecting.
    pub deadline: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
}

/// The reasons why a call gave nothing.
pub(super) enum Broken {
    /// The server has forgotten the session: a new connection may help.
    SessionGone,
    /// The server refuses an argument, or the token of a page.
    BadArguments(PullError),
    Said(PullError),
}

pub(super) struct Connection {
    provider: Provider,
    mcp: &'static Mcp,
    client: RunningService<RoleClient, ClientConfig>,
    last_words: LastWords,
    deadline: Duration,
}

impl Server {
    /// Connects, and checks that the tools are those we know.
    pub async fn connect(&self, token: &Secret) -> Result<Connection, PullError> {
        let connection = match self.era() {
            None => self.open(token, None).await?,
            Some(era) => match self.open(token, Some(era)).await {
                // It may have become another server since.
                Err(PullError::Forbidden { .. } | PullError::Unreadable { .. }) => self.open(token, None).await?,
                // Perhaps only for now: the next connection finds out.
                Err(error @ PullError::Passing(_)) => {
                    *self.era.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    return Err(error);
                }
                settled => settled?,
            },
        };
        connection.check().await?;
        Ok(connection)
    }

    pub fn era(&self) -> Option<Era> {
        *self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, token: &Secret, era: Option<Era>) -> Result<Connection, PullError> {
        let last_words = LastWords::default();
        let wire = Wire {
            http: self.http.clone(),
            provider: self.provider,
            token: token.clone(),
            deadline: self.deadline,
            probe_for: era.is_none().then_some(self.silence),
            last_words: last_words.clone(),
        };
        let mut patience = ExponentialBackoff::default();
        patience.max_times = Some(3);
        // After a session is gone the tools are looked at again, which rmcp would not do by itself.
        let mut config =
            StreamableHttpClientTransportConfig::with_uri(self.url.clone()).reinit_on_expired_session(false);
        config.retry_config = Arc::new(patience);
        let transport = StreamableHttpClientTransport::with_client(wire, config);

        let us = Implementation::new("tributary", env!("CARGO_PKG_VERSION"));
        let (modern, legacy) = (ProtocolVersion::V_2026_07_28, ProtocolVersion::LATEST_WITH_INITIALIZE);
        let client = ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(legacy.clone());
        let preferred_versions = vec![modern];
        let mode = match era {
            None => ClientLifecycleMode::Auto { preferred_versions, legacy_version: Some(legacy) },
            Some(Era::Modern) => ClientLifecycleMode::Discover { preferred_versions },
            Some(Era::Legacy) => ClientLifecycleMode::Initialize,
        };
        let opened = tokio::time::timeout(self.deadline, client.serve_with_lifecycle(transport, mode)).await;
        let client = match opened {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(not_opened(self.provider, error, &last_words)),
            Err(_) => return Err(too_slow(self.provider)),
        };
        last_words.take(); // of a probe that was not answered
        let version = client.peer_info().map(|server| server.protocol_version.clone());
        let found = if version.is_some_and(|version| version.has_initialize()) { Era::Legacy } else { Era::Modern };
        *self.era.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(Connection { provider: self.provider, mcp: self.mcp, client, last_words, deadline: self.deadline })
    }
}

impl Connection {
    /// Calls a tool once. Its result may still be an error.
    pub async fn call(&self, tool: &OurTool, arguments: JsonObject) -> Result<CallToolResult, Broken> {
        let call = CallToolRequestParams::new(tool.name).with_arguments(arguments);
        let forbidden =
            |code: &str| PullError::Forbidden { who: who(self.provider), code: format!("{code}: {}", tool.name) };
        match tokio::time::timeout(self.deadline, self.client.peer().call_tool_once(call)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(result),
            // No person is here to answer.
            Ok(Ok(CallToolResponse::InputRequired(_))) => Err(Broken::Said(forbidden("mcp_input_required"))),
            Ok(Ok(_)) => Err(Broken::Said(forbidden("mcp_task"))),
            Ok(Err(error)) => Err(self.broken(error)),
            Err(_) => Err(Broken::Said(too_slow(self.provider))),
        }
    }

    /// Checks that all tools are there and declare the arguments that we know. Otherwise nothing is called at all.
    async fn check(&self) -> Result<(), PullError> {
        let listed = tokio::time::timeout(self.deadline, self.tools()).await;
        let tools = listed.unwrap_or_else(|_| Err(too_slow(self.provider)))?;
        for ours in self.mcp.tools {
            let code = match tools.iter().find(|tool| tool.name == ours.name) {
                Some(tool) if ours.is_pinned(&tool.input_schema) => continue,
                Some(_) => "mcp_schema_changed",
                None => "mcp_tool_missing",
            };
            return Err(PullError::Forbidden { who: who(self.provider), code: format!("{code}: {}", ours.name) });
        }
        Ok(())
    }

    async fn tools(&self) -> Result<Vec<Tool>, PullError> {
        let (mut tools, mut cursor, mut seen) = (Vec::new(), None, HashSet::new());
        for _ in 0..MOST_TOOL_PAGES {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.client.peer().list_tools(Some(asked)).await.map_err(|error| match self.broken(error) {
                Broken::SessionGone => PullError::Passing(format!("{} lost our session", who(self.provider))),
                Broken::BadArguments(error) | Broken::Said(error) => error,
            })?;
            tools.extend(page.tools);
            let Some(next) = page.next_cursor else { return Ok(tools) };
            if !seen.insert(next.clone()) {
                break;
            }
            cursor = Some(next);
        }
        Err(unreadable(self.provider, "has a list of tools without an end", ""))
    }

    fn broken(&self, error: ServiceError) -> Broken {
        let provider = self.provider;
        Broken::Said(match error {
            ServiceError::McpError(error) if is_about_arguments(&error) => {
                return Broken::BadArguments(failed(provider, &error));
            }
            ServiceError::McpError(error) => failed(provider, &error),
            ServiceError::TransportSend(error) => match sent(provider, error) {
                Some(error) => error,
                None => return Broken::SessionGone,
            },
            ServiceError::UnexpectedResponse => unreadable(provider, "answered something else than it was asked", ""),
            _ => self.last_words.take().unwrap_or_else(|| broke_off(provider)),
        })
    }
}

fn not_opened(provider: Provider, error: ClientInitializeError, last_words: &LastWords) -> PullError {
    use ClientInitializeError as E;
    let said = |otherwise: PullError| last_words.take().unwrap_or(otherwise);
    match error {
        E::TransportError { error, .. } => sent(provider, error).unwrap_or_else(|| broke_off(provider)),
        E::LegacyFallbackFailed { fallback, .. } => not_opened(provider, *fallback, last_words),
        E::JsonRpcError(error) => said(failed(provider, &error)),
        E::ConnectionClosed(_) | E::Cancelled => said(broke_off(provider)),
        _ => said(unreadable(provider, "speaks no MCP that we speak", "")),
    }
}

/// The reason why a request could not be sent; none: the session is gone.
fn sent(provider: Provider, error: DynamicTransportError) -> Option<PullError> {
    match error.error.downcast::<StreamableHttpError<Quiet>>().map(|error| *error) {
        Ok(StreamableHttpError::Client(Quiet(error))) => Some(error),
        Ok(StreamableHttpError::SessionExpired) => None,
        _ => Some(broke_off(provider)),
    }
}

fn broke_off(provider: Provider) -> PullError {
    PullError::Passing(format!("{} broke off its answer", who(provider)))
}

fn too_slow(provider: Provider) -> PullError {
    PullError::Passing(format!("{} did not answer in time", who(provider)))
}
