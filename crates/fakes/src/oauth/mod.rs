//! Consent and tokens for every provider. Consent is given at once, and the token endpoint speaks as the provider's does.

pub(crate) mod grants;
pub(crate) mod switches;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Path, Query, State};
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Shared;
use crate::oauth::grants::{Book, Code, InvalidGrant, Issued};
use crate::provider::{Fake, Provider};
use crate::shapes::{answer, error};

/// The only known client, at every provider.
pub const CLIENT_ID: &str = "fakes-client";
pub const CLIENT_SECRET: &str = "fakes-client-secret";

type Fields = HashMap<String, String>;

pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/oauth/{provider}/authorize", get(authorize)).route("/oauth/{provider}/token", post(token))
}

async fn authorize(
    State(shared): State<Arc<Shared>>,
    Path(provider): Path<String>,
    Query(asked): Query<Fields>,
) -> Response {
    let Some(provider) = Fake::named(&provider) else { return StatusCode::NOT_FOUND.into_response() };
    let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let provider = provider.meant_by(field("scope"));
    let redirect_uri = field("redirect_uri");
    let now = shared.clock.now();
    shared.grants.with(|book| {
        // Without a known client and address there is nobody to send the person back to.
        let is_allowed = book.redirects.is_empty() || book.redirects.iter().any(|known| known == redirect_uri);
        if !is_allowed || redirect_uri.is_empty() {
            return (StatusCode::BAD_REQUEST, "redirect_uri is not registered for this client").into_response();
        }
        if field("client_id") != CLIENT_ID {
            return (StatusCode::BAD_REQUEST, "client_id is not known").into_response();
        }
        let back = |pairs: &[(&str, &str)]| {
            let state = asked.get("state").map(|state| ("state", state.as_str()));
            redirect(redirect_uri, pairs.iter().copied().chain(state))
        };
        if std::mem::take(&mut book.denies_next) {
            return back(&[("error", "access_denied")]);
        }
        if asked.get("response_type").is_some_and(|kind| kind != "code") {
            return back(&[("error", "unsupported_response_type")]);
        }
        if asked.get("code_challenge_method").is_some_and(|method| method != "S256") {
            return back(&[("error", "invalid_request")]);
        }
        let account = book.account(provider);
        let with_refresh = (provider.oauth.gives_refresh)(&asked, book.has_grant(provider, &account));
        let code = book.give_code(Code {
            provider,
            account: account.clone(),
            redirect_uri: redirect_uri.to_owned(),
            challenge: asked.get("code_challenge").cloned(),
            scope: field("scope").to_owned(),
            with_refresh,
            given_at: now,
        });
        match provider.oauth.account_parameter {
            Some(name) => back(&[("code", &code), (name, &provider.account_id(&account))]),
            None => back(&[("code", &code)]),
        }
    })
}

fn redirect<'a>(uri: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Response {
    let pairs: Vec<_> =
        pairs.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC))).collect();
    let joint = if uri.contains('?') { '&' } else { '?' };
    (StatusCode::FOUND, [(LOCATION, format!("{uri}{joint}{}", pairs.join("&")))]).into_response()
}

async fn token(
    State(shared): State<Arc<Shared>>,
    Path(provider): Path<String>,
    headers: HeaderMap,
    Form(asked): Form<Fields>,
) -> Response {
    let Some(provider) = Fake::named(&provider) else { return StatusCode::NOT_FOUND.into_response() };
    let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let now = shared.clock.now();
    shared.grants.with(|book| {
        let provider = book.meant(provider, field("code"), field("refresh_token"));
        book.count(provider, "").token_requests += 1;
        let is_client = match provider.oauth.is_basic {
            true => headers.get(AUTHORIZATION).is_some_and(|header| *header == basic()),
            false => field("client_id") == CLIENT_ID && field("client_secret") == CLIENT_SECRET,
        };
        if !is_client || book.rejects_clients {
            book.count(provider, "").invalid_clients += 1;
            return error("/oauth", 401, now);
        }
        let issued = match field("grant_type") {
            "authorization_code" => {
                let issued = exchange(book, provider, &asked, now);
                if issued.is_err() {
                    book.count(provider, "").invalid_grants += 1;
                }
                issued
            }
            "refresh_token" => book.refresh(provider, field("refresh_token"), now),
            _ => return answer(400, json!({"error": "unsupported_grant_type"})),
        };
        match issued {
            Ok(issued) => answer(200, pair(provider, &issued)),
            Err(InvalidGrant) => (provider.oauth.invalid_grant)(field("grant_type")),
        }
    })
}

fn basic() -> String {
    format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")))
}

fn exchange(
    book: &mut Book,
    provider: Provider,
    asked: &Fields,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<Issued, InvalidGrant> {
    let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let code = book.take_code(provider, field("code"), now)?;
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
    let is_proven = code.challenge.is_none_or(|challenge| challenge == digest);
    if !is_proven || code.redirect_uri != field("redirect_uri") {
        return Err(InvalidGrant);
    }
    book.count(provider, &code.account).exchanges += 1;
    Ok(book.issue(provider, &code.account, &code.scope, code.with_refresh, now))
}

fn pair(provider: Provider, issued: &Issued) -> Value {
    let mut pair = (provider.oauth.pair)(issued);
    pair["access_token"] = json!(issued.access_token);
    pair["expires_in"] = json!(issued.expires_in);
    if let Some(refresh_token) = &issued.refresh_token {
        pair["refresh_token"] = json!(refresh_token);
    }
    pair
}
