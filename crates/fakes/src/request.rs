//! A request as it came in, read whole: scripts and the ledger look at it before a provider does.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Query;
use axum::http::header::AUTHORIZATION;
use axum::http::{Request, Uri, request};
use serde_json::Value;

const BODY_BYTES: usize = 8 * 1024 * 1024;
const SECRET: [&str; 6] = ["code", "code_challenge", "code_verifier", "client_secret", "state", "token"];

pub(crate) struct Asked {
    pub parts: request::Parts,
    pub body: Bytes,
    /// The path in scripts and the ledger: without a secret, and with the method and tool of an MCP request.
    pub path: String,
    json: Option<Value>,
}

impl Asked {
    pub async fn read(request: Request<Body>) -> Option<Self> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, BODY_BYTES).await.ok()?;
        let json: Option<Value> = serde_json::from_slice(&body).ok();
        let path = path(&parts.uri, json.as_ref());
        Some(Self { parts, body, path, json })
    }

    pub fn into_request(self) -> Request<Body> {
        Request::from_parts(self.parts, Body::from(self.body))
    }

    pub fn bearer(&self) -> Option<&str> {
        self.parts.headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
    }

    /// The query without what is secret in it.
    pub fn plain_query(&self) -> String {
        let query = self.parts.uri.query().unwrap_or_default();
        let plain = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if SECRET.contains(&name) => format!("{name}=***"),
            _ => pair.to_owned(),
        };
        query.split('&').map(plain).collect::<Vec<_>>().join("&")
    }

    /// The token of the page that the client asks for.
    pub fn page_token(&self) -> Option<String> {
        let in_query = pairs(&self.parts.uri).into_iter().find_map(|(name, value)| match name.as_str() {
            "after" | "pageToken" | "$skiptoken" | "$deltatoken" => Some(value),
            "query" => start_position(&value).filter(|start| *start > 1).map(|start| start.to_string()),
            _ => None,
        });
        let in_body = || {
            let json = self.json.as_ref()?;
            let in_tool =
                || ["after", "pageToken"].iter().find_map(|name| json.pointer(&format!("/params/arguments/{name}")));
            let after = json.get("after").or_else(in_tool)?;
            after.as_str().map(str::to_owned).or_else(|| Some(after.as_u64()?.to_string()))
        };
        in_query.or_else(in_body)
    }
}

pub(crate) fn pairs(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default()
}

/// The row at which a statement begins.
fn start_position(statement: &str) -> Option<u64> {
    let lower = statement.to_lowercase();
    lower.split_once("startposition ")?.1.split_whitespace().next()?.parse().ok()
}

fn path(uri: &Uri, json: Option<&Value>) -> String {
    let path = uri.path();
    if let Some((before, _)) = path.split_once("/access-tokens/") {
        return format!("{before}/access-tokens/***");
    }
    let text = |pointer: &str| json.and_then(|json| json.pointer(pointer)).and_then(Value::as_str);
    match (path.starts_with("/mcp"), text("/method"), text("/params/name")) {
        (true, Some(method), Some(name)) => format!("{path}/{method}/{name}"),
        (true, Some(method), None) => format!("{path}/{method}"),
        _ => path.to_owned(),
    }
}
