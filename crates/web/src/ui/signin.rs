//! Signing in: with a key, or with the one-time link that `tributary signin` prints. The link's secret is in the fragment, which
//! reaches no server and no log; the page's script takes it out of the address and posts it.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::header::{LOCATION, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use domain::Secret;
use domain::shown::device;
use engine::intake::network;
use engine::sessions::{self, Begun, Browser};
use serde::Deserialize;

use super::layout::Layout;
use super::{Posted, html};
use crate::api::auth::{Credential, SESSION_COOKIE, authenticate};
use crate::api::error::ApiError;
use crate::api::extract::{Form, Query};
use crate::api::origin;
use crate::app::App;
use crate::server::CallerAddress;

/// Wrong sign-ins of one address within a minute.
const MOST_FAILURES: u32 = 20;
/// The life of the cookie: as long as the session may last (store::sessions), which the server decides.
const SESSION_SECS: u32 = 12 * 3_600;
const PERSONS_SESSION_SECS: u32 = 365 * 24 * 3_600;

#[derive(Template)]
#[template(path = "signin.html")]
struct SigninPage {
    layout: Layout,
    next: String,
    /// The reason why the last try failed, if one did.
    trouble: &'static str,
}

#[derive(Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub(crate) struct KeyForm {
    key: Secret,
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub(crate) struct LinkForm {
    once: Secret,
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn show(Query(query): Query<Next>) -> Result<Response, ApiError> {
    page(StatusCode::OK, &query.next, "")
}

pub(crate) async fn with_key(
    State(app): State<App>,
    Extension(address): Extension<CallerAddress>,
    headers: HeaderMap,
    Form(form): Form<KeyForm>,
) -> Result<Response, ApiError> {
    check(&app, address, &headers)?;
    let key = Secret::new(form.key.reveal().trim());
    let Some(caller) = authenticate(&app, &Credential::Key(key), address).await? else {
        count_failure(&app, address);
        return page(StatusCode::UNAUTHORIZED, &form.next, "This key is not known here, or was revoked.");
    };
    let begun = sessions::begin(&app.env, &caller, &browser(&headers, address)).await?;
    Ok(enter(&app, &begun, &form.next))
}

pub(crate) async fn with_link(
    State(app): State<App>,
    Extension(address): Extension<CallerAddress>,
    headers: HeaderMap,
    Form(form): Form<LinkForm>,
) -> Result<Response, ApiError> {
    check(&app, address, &headers)?;
    match sessions::redeem_link(&app.env, &form.once, &browser(&headers, address)).await? {
        Some(begun) => Ok(enter(&app, &begun, &form.next)),
        None => {
            count_failure(&app, address);
            let trouble = "This link was used already, was replaced or is too old. An owner can make you a new one under Settings, People; on the server, the command tributary signin prints one.";
            page(StatusCode::UNAUTHORIZED, &form.next, trouble)
        }
    }
}

/// The page after a link that did not work, reloaded.
pub(crate) async fn again() -> Redirect {
    Redirect::to("/signin")
}

pub(crate) async fn sign_out(State(app): State<App>, posted: Posted<Nothing>) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    if let Credential::Session(session) = &caller.credential {
        sessions::sign_out(&app.env, session).await?;
        app.callers.forget(caller.key_id);
    }
    let cookie = cookie("", 0, &app);
    Ok((StatusCode::SEE_OTHER, [(LOCATION, "/signin".to_owned()), (SET_COOKIE, cookie)]).into_response())
}

/// The address to which a visitor who is not signed in is sent, to come back afterwards.
pub(crate) fn address(path_and_query: &str) -> String {
    match safe_next(path_and_query) {
        "/" => "/signin".into(),
        next => {
            let mut address = String::from("/signin?next=");
            for byte in next.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                        address.push(char::from(byte))
                    }
                    _ => address.push_str(&format!("%{byte:02X}")),
                }
            }
            address
        }
    }
}

/// A place on this server, or Home. Browsers read `//host` and `/\host` as another server, and skip tabs and line breaks.
pub(super) fn safe_next(next: &str) -> &str {
    let is_safe = next.len() <= 2_000
        && next.starts_with('/')
        && !next.starts_with("//")
        && !next.chars().any(|c| c == '\\' || c.is_control() || !c.is_ascii());
    if is_safe { next } else { "/" }
}

/// Checks that our own page asks, and that this address has not tried too many keys.
fn check(app: &App, CallerAddress(address): CallerAddress, headers: &HeaderMap) -> Result<(), ApiError> {
    let public_url = app.env.config.public_url.as_deref();
    if !origin::is_ours(headers, public_url) {
        return Err(ApiError::CrossSite);
    }
    match app.failures.is_over(&network(address), MOST_FAILURES) {
        Some(_) => Err(ApiError::TooManyFailures),
        None => Ok(()),
    }
}

fn count_failure(app: &App, CallerAddress(address): CallerAddress) {
    let _ = app.failures.count(network(address), MOST_FAILURES); // the next one is told
}

fn page(status: StatusCode, next: &str, trouble: &'static str) -> Result<Response, ApiError> {
    let page = SigninPage { layout: Layout::bare("Sign in"), next: safe_next(next).to_owned(), trouble };
    Ok((status, html(&page)?).into_response())
}

/// The browser of a request: what it says of itself, and its address.
fn browser(headers: &HeaderMap, CallerAddress(address): CallerAddress) -> Browser {
    let said = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Browser { device: Some(device(said)), address: Some(address.to_string()) }
}

fn enter(app: &App, begun: &Begun, next: &str) -> Response {
    let secs = if begun.is_persons { PERSONS_SESSION_SECS } else { SESSION_SECS };
    let cookie = cookie(begun.secret.reveal(), secs, app);
    (StatusCode::SEE_OTHER, [(LOCATION, safe_next(next).to_owned()), (SET_COOKIE, cookie)]).into_response()
}

fn cookie(value: &str, secs: u32, app: &App) -> String {
    let is_https = app.env.config.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    let site = same_site(is_https, !app.env.config.embed_origins.is_empty());
    format!("{SESSION_COOKIE}={value}; Path=/; Max-Age={secs}; HttpOnly; {site}")
}

/// The `SameSite` value of our cookie.
fn same_site(is_https: bool, is_framed: bool) -> &'static str {
    match (is_https, is_framed) {
        (false, _) => "SameSite=Lax",
        (true, false) => "SameSite=Lax; Secure",
        // Also from another site's frame, but only within the site in which it was set: that is what partitions are.
        (true, true) => "SameSite=None; Secure; Partitioned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S22.
    #[test]
    fn only_places_on_this_server_are_returned_to() {
        for safe in ["/", "/system/queues", "/system/queues/upkeep?state=dead&before=7", "/a//b"] {
            assert_eq!(safe_next(safe), safe);
        }
        let odd = [
            "",
            "queues",
            "//evil.example",
            "/\\evil.example",
            "\\/evil",
            "https://evil.example",
            "/\t/evil",
            "/a\nb",
            "/é",
            "javascript:x",
        ];
        for odd in odd {
            assert_eq!(safe_next(odd), "/", "{odd:?} was returned to");
        }
        assert_eq!(safe_next(&format!("/{}", "a".repeat(2_000))), "/");
    }

    #[test]
    fn the_way_back_survives_in_the_address() {
        assert_eq!(address("/"), "/signin");
        assert_eq!(
            address("/system/queues/upkeep?state=dead&x=1"),
            "/signin?next=/system/queues/upkeep%3Fstate%3Ddead%26x%3D1"
        );
        assert_eq!(address("//evil"), "/signin");
    }

    #[test]
    fn cookies_are_secure_behind_https_and_leave_our_site_only_for_frames() {
        assert_eq!(same_site(false, false), "SameSite=Lax");
        assert_eq!(same_site(false, true), "SameSite=Lax", "browsers take `None` over https alone");
        assert_eq!(same_site(true, false), "SameSite=Lax; Secure");
        assert_eq!(same_site(true, true), "SameSite=None; Secure; Partitioned");
    }
}
