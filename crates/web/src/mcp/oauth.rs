//! OAuth for programs: what they are told of us (RFC 9728, 8414), registration (RFC 7591), tokens, and giving them back (RFC 7009). All of it is there
//! only while OAuth is on. What a person sees of it is in `ui::consent`.

use std::net::IpAddr;

use axum::extract::State;
use axum::http::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Secret;
use engine::assistants::programs::{self, Registration};
use engine::assistants::tokens::{self, OauthError, Wanted};
use engine::assistants::{self, SCOPES};
use engine::intake::{PerMinute, network};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::error::ApiError;
use crate::api::extract::{self, Form};
use crate::app::App;
use crate::server::CallerAddress;

/// Where the document about the resource is. Clients also look at the root.
pub(crate) const RESOURCE_DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";
pub(crate) const AUTHORIZE: &str = "/assistants/authorize";
const TOKEN: &str = "/assistants/token";
const REGISTER: &str = "/assistants/register";
const REVOKE: &str = "/assistants/revoke";

/// Registrations, and refused requests for tokens, of one address within a minute.
const MOST_REGISTRATIONS: u32 = 20;
const MOST_REFUSED: u32 = 60;

/// Counts at the open doors, by network.
#[derive(Default)]
pub(crate) struct Doors {
    registrations: PerMinute<IpAddr>,
    refused: PerMinute<IpAddr>,
}

/// Refuses everything while OAuth is off, as if it did not exist: a client that finds a document goes on and fails.
pub(crate) fn need(app: &App) -> Result<(), ApiError> {
    if assistants::is_on(&app.env.config) { Ok(()) } else { Err(ApiError::NotFound("page")) }
}

fn scopes() -> [&'static str; 3] {
    SCOPES.map(|scope| scope.as_str())
}

/// Describes `/mcp` to a program that has no token (RFC 9728).
pub(crate) async fn resource(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    need(&app)?;
    let base_url = app.env.config.base_url();
    Ok(Json(json!({
        "resource": assistants::resource(&app.env.config),
        "resource_name": "Tributary",
        "authorization_servers": [base_url],
        "scopes_supported": scopes(),
        "bearer_methods_supported": ["header"],
    })))
}

/// Describes the server that gives tokens, which is this one (RFC 8414).
pub(crate) async fn server(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    need(&app)?;
    let base_url = app.env.config.base_url();
    let at = |path: &str| format!("{base_url}{path}");
    let methods = ["none", "client_secret_post", "client_secret_basic"];
    Ok(Json(json!({
        "issuer": base_url,
        "authorization_endpoint": at(AUTHORIZE),
        "token_endpoint": at(TOKEN),
        "registration_endpoint": at(REGISTER),
        "revocation_endpoint": at(REVOKE),
        "scopes_supported": scopes(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    })))
}

/// Registers a program. It may do nothing until a person lets it in.
pub(crate) async fn register(
    State(app): State<App>,
    Extension(CallerAddress(address)): Extension<CallerAddress>,
    registration: Result<extract::Json<Registration>, ApiError>,
) -> Result<Response, ApiError> {
    need(&app)?;
    app.mcp.doors.registrations.count(network(address), MOST_REGISTRATIONS).map_err(ApiError::TooMany)?;
    let Ok(extract::Json(registration)) = registration else {
        return Ok(refusal(&OauthError::InvalidMetadata("the registration is not a JSON object with redirect_uris")));
    };
    match programs::register(&app.env, registration).await {
        Ok(registered) => Ok((StatusCode::CREATED, Json(registered)).into_response()),
        Err(error) => Ok(refusal(&error)),
    }
}

/// Gives tokens for a code, or newer ones for a refresh token.
pub(crate) async fn token(
    State(app): State<App>,
    Extension(CallerAddress(address)): Extension<CallerAddress>,
    headers: HeaderMap,
    wanted: Result<Form<Wanted>, ApiError>,
) -> Result<Response, ApiError> {
    need(&app)?;
    let from = network(address);
    if let Some(wait) = app.mcp.doors.refused.is_over(&from, MOST_REFUSED) {
        return Err(ApiError::TooMany(wait));
    }
    let Ok(Form(mut wanted)) = wanted else {
        return Ok(refusal(&OauthError::InvalidRequest("the request is not a form with grant_type")));
    };
    if let Some((id, secret)) = basic(&headers) {
        (wanted.client_id, wanted.client_secret) = (id, Some(secret));
    }
    let outcome = tokens::grant(&app.env, &wanted).await;
    if let Some(key_id) = outcome.revoked {
        app.callers.forget(key_id);
    }
    match outcome.granted {
        Ok(granted) => Ok(Json(granted).into_response()),
        Err(error) => {
            let _ = app.mcp.doors.refused.count(from, MOST_REFUSED); // the next one is told
            Ok(refusal(&error))
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct GivenBack {
    token: Secret,
    #[serde(default)]
    client_id: String,
    client_secret: Option<Secret>,
}

/// Takes a token back that a program no longer needs. Its assistant is revoked.
pub(crate) async fn revoke(
    State(app): State<App>,
    Extension(CallerAddress(address)): Extension<CallerAddress>,
    headers: HeaderMap,
    given: Result<Form<GivenBack>, ApiError>,
) -> Result<Response, ApiError> {
    need(&app)?;
    let from = network(address);
    if let Some(wait) = app.mcp.doors.refused.is_over(&from, MOST_REFUSED) {
        return Err(ApiError::TooMany(wait));
    }
    let Ok(Form(GivenBack { token, mut client_id, mut client_secret })) = given else {
        return Ok(refusal(&OauthError::InvalidRequest("the request is not a form with token")));
    };
    if let Some((id, secret)) = basic(&headers) {
        (client_id, client_secret) = (id, Some(secret));
    }
    match tokens::give_back(&app.env, &client_id, client_secret.as_ref(), &token).await {
        Ok(revoked) => {
            revoked.into_iter().for_each(|key_id| app.callers.forget(key_id));
            Ok(StatusCode::OK.into_response())
        }
        Err(error) => {
            let _ = app.mcp.doors.refused.count(from, MOST_REFUSED);
            Ok(refusal(&error))
        }
    }
}

/// The id and secret of a program that shows them in the header.
fn basic(headers: &HeaderMap) -> Option<(String, Secret)> {
    let (scheme, shown) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let shown = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(shown.trim()).ok())??;
    let shown = String::from_utf8(shown).ok()?;
    let (id, secret) = shown.split_once(':')?;
    let decoded =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
    Some((decoded(id)?, Secret::new(decoded(secret)?)))
}

/// An error as OAuth's clients read it.
fn refusal(error: &OauthError) -> Response {
    let status = match error {
        OauthError::InvalidClient => StatusCode::UNAUTHORIZED,
        OauthError::Full | OauthError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    if let OauthError::Store(cause) = error {
        tracing::warn!(error = ?cause, "a program got no token: the database could not do it");
    }
    let body = json!({ "error": error.code(), "error_description": error.to_string() });
    let mut response = (status, Json(body)).into_response();
    let headers = response.headers_mut();
    match status {
        StatusCode::UNAUTHORIZED => _ = headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic")),
        StatusCode::SERVICE_UNAVAILABLE => _ = headers.insert(RETRY_AFTER, HeaderValue::from_static("2")),
        _ => {}
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_the_header_as_oauth_writes_it() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
            basic(&headers).map(|(id, secret)| (id, secret.reveal().to_owned()))
        };
        assert_eq!(of(&format!("Basic {}", STANDARD.encode("a%20b:c%3Ad"))), Some(("a b".into(), "c:d".into())));
        for odd in ["", "Bearer x", "Basic", "Basic !", &format!("Basic {}", STANDARD.encode("none"))] {
            assert_eq!(of(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn errors_have_the_codes_and_statuses_of_the_standards() {
        for (error, status, code) in [
            (OauthError::InvalidClient, 401, "invalid_client"),
            (OauthError::InvalidGrant("x"), 400, "invalid_grant"),
            (OauthError::InvalidTarget, 400, "invalid_target"),
            (OauthError::UnsupportedGrant, 400, "unsupported_grant_type"),
            (OauthError::InvalidRedirect, 400, "invalid_redirect_uri"),
            (OauthError::Store(store::Error::TimedOut), 503, "temporarily_unavailable"),
        ] {
            assert_eq!((refusal(&error).status().as_u16(), error.code()), (status, code));
        }
    }
}
