//! MCP servers over rmcp's own, one for each provider: at one path in the era without a handshake and at another in the one with it. The
//! tools are in the providers' folders.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::HeaderValue;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;

use crate::Shared;
use crate::oauth::grants::Caller;
use crate::provider::Provider;
use crate::shapes::answer;
use crate::tools::{Tools, Versions};

const RESOURCES: &str = "/.well-known/oauth-protected-resource";

/// The routes of a provider's server. `config` carries the token that ends the sessions.
pub(crate) fn routes<T: Clone + Send + Sync + 'static>(
    provider: Provider,
    shared: &Arc<Shared>,
    config: &StreamableHttpServerConfig,
    tools: Tools<T>,
) -> Router<Arc<Shared>> {
    let service = |versions: Versions, config: StreamableHttpServerConfig| {
        let server = tools.speaking(versions);
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config)
    };
    // Each era answers in one of the two forms that a client must read: a JSON object here, a stream of events there.
    let modern = service(
        &[ProtocolVersion::V_2026_07_28],
        config.clone().with_legacy_session_mode(false).with_json_response(true),
    );
    let legacy = service(
        ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25),
        config.clone().with_legacy_session_mode(true),
    );
    let name = provider.name;
    let legacy = Router::new()
        .route_service(&format!("/mcp-legacy/{name}"), legacy)
        .route_layer(middleware::from_fn(know_no_modern));
    let guarded = Router::new().route_service(&format!("/mcp/{name}"), modern).merge(legacy);
    let resource = move |State(shared): State<Arc<Shared>>, Path(era): Path<String>| async move {
        protected_resource(&shared, &era, provider)
    };
    let server = move |State(shared): State<Arc<Shared>>| async move { authorization_server(&shared, provider) };
    guarded
        .route_layer(middleware::from_fn_with_state((shared.clone(), provider), guard))
        .route(&format!("{RESOURCES}/{{era}}/{name}"), get(resource))
        .route(&format!("/.well-known/oauth-authorization-server/oauth/{name}"), get(server))
}

/// A client that has no token is told where to get one.
async fn guard(State((shared, provider)): State<(Arc<Shared>, Provider)>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let caller = request.extensions().get::<Caller>();
    if caller.is_some_and(|caller| caller.provider == provider && caller.is_valid) {
        return next.run(request).await;
    }
    let mut response = answer(401, json!({"error": "invalid_token"}));
    let document = format!("{}{RESOURCES}{path}", shared.url);
    if let Ok(challenge) = HeaderValue::from_str(&format!("Bearer resource_metadata=\"{document}\"")) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Answers as servers do that were written before the era without a handshake.
async fn know_no_modern(request: Request, next: Next) -> Response {
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    if version.is_none_or(|version| version <= ProtocolVersion::V_2025_11_25.as_str()) {
        return next.run(request).await;
    }
    let error = json!({"code": -32000, "message": "Bad Request: Server not initialized"});
    answer(400, json!({"jsonrpc": "2.0", "error": error, "id": null}))
}

fn protected_resource(shared: &Shared, era: &str, provider: Provider) -> Response {
    let (url, name) = (&shared.url, provider.name);
    let resource = format!("{url}/{era}/{name}");
    answer(200, json!({"resource": resource, "authorization_servers": [format!("{url}/oauth/{name}")]}))
}

fn authorization_server(shared: &Shared, provider: Provider) -> Response {
    let issuer = format!("{}/oauth/{}", shared.url, provider.name);
    answer(
        200,
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }),
    )
}
