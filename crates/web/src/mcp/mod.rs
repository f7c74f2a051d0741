//! This memory for assistants: an MCP server at `/mcp`, and the OAuth by which people let programs in.
//!
//! A request passes [`serve`]: Host and Origin, the caller, its share. Then `rmcp` reads it, in whichever revision of the protocol it is, and calls
//! [`server`]. There are no sessions, so any process answers any request. Tools are in [`tools`], one file each.

mod answer;
mod hosts;
mod instructions;
pub(crate) mod oauth;
mod pages;
mod resources;
mod room;
mod server;
mod tools;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use domain::{KeyId, Scope};
use engine::assistants;
use engine::assistants::calls::Calls;
use engine::assistants::programs::Documents;
use engine::intake::PerMinute;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use self::server::Server;
use crate::api::auth::{Caller, Credential};
use crate::api::error::ApiError;
use crate::app::App;
use crate::caps::{PerCaller, holding};
use crate::server::CallerAddress;

/// Requests under way at once, of one key and of one tenant.
const MOST_OF_KEY: usize = 256;
const MOST_OF_TENANT: usize = 512;
/// Requests in a minute for each call that a key may make: a client also asks what there is.
const REQUESTS_PER_CALL: u32 = 4;

/// The parts of the server that all requests share.
pub(crate) struct Mcp {
    service: StreamableHttpService<Server, NeverSessionManager>,
    requests: PerMinute<KeyId>,
    /// Calls, by key.
    rate: PerMinute<KeyId>,
    under_way: PerCaller,
    lines: room::Lines,
    pub calls: Calls,
    pub documents: Documents,
    pub doors: oauth::Doors,
}

impl Mcp {
    pub fn new(config: &engine::Config) -> Self {
        // Host and Origin are checked before, by `hosts`.
        let served = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(config.request_max_bytes)
            .disable_allowed_hosts();
        Self {
            service: StreamableHttpService::new(|| Ok(Server), Arc::default(), served),
            requests: PerMinute::default(),
            rate: PerMinute::default(),
            under_way: PerCaller::default(),
            lines: room::Lines::default(),
            calls: Calls::default(),
            documents: Documents::default(),
            doors: oauth::Doors::default(),
        }
    }
}

/// A request's caller, for the server behind `rmcp`.
#[derive(Clone)]
struct Asking {
    app: App,
    caller: Caller,
}

/// Takes a request of a program with a key, or of an assistant with a token.
pub(crate) async fn serve(
    State(app): State<App>,
    Extension(address): Extension<CallerAddress>,
    mut request: Request,
) -> Response {
    let caller = match admitted(&app, address, request.headers()).await {
        Ok(caller) => caller,
        Err(error) => return refused(&app, error, Credential::of(request.headers()).is_some()),
    };
    let most = app.env.config.mcp_calls_per_minute.saturating_mul(REQUESTS_PER_CALL);
    if let Err(wait) = app.mcp.requests.count(caller.key_id, most) {
        return ApiError::TooMany(wait).into_response();
    }
    let Some(hold) = app.mcp.under_way.take(&caller, MOST_OF_KEY, MOST_OF_TENANT) else {
        return ApiError::AtOnce("this key, or its tenant, has enough requests under way", 1).into_response();
    };
    request.extensions_mut().insert(Asking { app: app.clone(), caller });
    let response = app.mcp.service.handle(request).await;
    response.map(|body| holding(Body::new(body), hold))
}

/// The caller of a request. A browser's session is not enough: any page may send requests here.
async fn admitted(app: &App, address: CallerAddress, headers: &HeaderMap) -> Result<Caller, ApiError> {
    hosts::check(&app.env.config, headers)?;
    let is_on = assistants::is_on(&app.env.config);
    let credential = match Credential::of(headers) {
        Some(Credential::Key(secret)) if is_on && secret.reveal().starts_with(store::assistants::ACCESS_PREFIX) => {
            Credential::Assistant(secret)
        }
        Some(key @ Credential::Key(_)) => key,
        _ => return Err(ApiError::Unauthenticated),
    };
    let caller = Caller::with(credential, address, app).await?;
    if !assistants::SCOPES.into_iter().any(|scope| caller.may(scope)) {
        caller.need(Scope::Read)?;
    }
    Ok(caller)
}

/// Writes a refusal. Where OAuth is on, a program that is not known learns how it is let in.
fn refused(app: &App, error: ApiError, has_shown: bool) -> Response {
    let is_unknown = matches!(error, ApiError::Unauthenticated | ApiError::UnknownKey);
    let mut response = error.into_response();
    if is_unknown && assistants::is_on(&app.env.config) {
        let base_url = app.env.config.base_url();
        let error = if has_shown { "error=\"invalid_token\", " } else { "" };
        let document = format!("{base_url}{}", oauth::RESOURCE_DOCUMENT);
        let challenge = format!("Bearer {error}resource_metadata=\"{document}\", scope=\"read write\"");
        if let Ok(challenge) = HeaderValue::try_from(challenge) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
    }
    response
}
