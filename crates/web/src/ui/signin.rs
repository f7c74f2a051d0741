//! Signing in: with a key, or with the one-time link that `tributary signin` prints. The link's secret is in the fragment, which
//! reaches no server and no log; the page's script takes it out of the address and posts it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use domain::Secret;
use engine::intake::network;
use serde::Deserialize;

use super::layout::Layout;
use super::{Posted, html};
use crate::api::auth::{Credential, SESSION_COOKIE, authenticate};
use crate::api::error::ApiError;
use crate::api::extract::{Form, Query};
use crate::api::origin;
use crate::app::App;
use crate::server::{Peer, client_address};

const MOST_FAILURES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(60);
const MOST_ADDRESSES: usize = 4_096;
/// As long as the session itself (store::sessions).
const SESSION_SECS: u32 = 12 * 3_600;

#[derive(Template)]
#[template(path = "signin.html")]
struct SigninPage {
    layout: Layout,
    next: String,
    /// Why the last try failed, if one did.
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
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    Form(form): Form<KeyForm>,
) -> Result<Response, ApiError> {
    let address = check(&app, peer.ip(), &headers)?;
    let key = Secret::new(form.key.reveal().trim());
    let Some(caller) = authenticate(&app, &Credential::Key(key)).await? else {
        app.failures.count(address);
        return page(StatusCode::UNAUTHORIZED, &form.next, "This key is not known here, or was revoked.");
    };
    let session = app.env.db.session(async |conn| {
        store::sessions::new_session(conn, app.env.clock.sql(), caller.tenant_id, caller.key_id).await
    });
    Ok(enter(&app, &session.await?, &form.next))
}

pub(crate) async fn with_link(
    State(app): State<App>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    Form(form): Form<LinkForm>,
) -> Result<Response, ApiError> {
    let address = check(&app, peer.ip(), &headers)?;
    // One transaction: a link that is used up has made its session.
    let redeemed =
        app.env.db.write(async |tx| store::sessions::redeem_link(tx, app.env.clock.sql(), &form.once).await).await?;
    match redeemed {
        Some(session) => Ok(enter(&app, &session, &form.next)),
        None => {
            app.failures.count(address);
            let trouble = "This link was used or is older than 15 minutes. `tributary signin` prints a new one.";
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
        app.env.db.session(async |conn| store::sessions::end(conn, session).await).await?;
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

/// Checks that our own page asks, and that this address has not tried too many keys. Returns the address to count failures for.
fn check(app: &App, peer: IpAddr, headers: &HeaderMap) -> Result<IpAddr, ApiError> {
    let public_url = app.env.config.public_url.as_deref();
    if !origin::is_ours(headers, public_url) {
        return Err(ApiError::CrossSite);
    }
    let address = client_address(peer, headers, &app.env.config);
    if app.failures.is_over(address) { Err(ApiError::TooManyFailures) } else { Ok(address) }
}

fn page(status: StatusCode, next: &str, trouble: &'static str) -> Result<Response, ApiError> {
    let page = SigninPage { layout: Layout::bare("Sign in"), next: safe_next(next).to_owned(), trouble };
    Ok((status, html(&page)?).into_response())
}

fn enter(app: &App, session: &Secret, next: &str) -> Response {
    let cookie = cookie(session.reveal(), SESSION_SECS, app);
    (StatusCode::SEE_OTHER, [(LOCATION, safe_next(next).to_owned()), (SET_COOKIE, cookie)]).into_response()
}

fn cookie(value: &str, secs: u32, app: &App) -> String {
    let is_https = app.env.config.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    let site = same_site(is_https, !app.env.config.embed_origins.is_empty());
    format!("{SESSION_COOKIE}={value}; Path=/; Max-Age={secs}; HttpOnly; {site}")
}

/// Where a browser sends our cookie along.
fn same_site(is_https: bool, is_framed: bool) -> &'static str {
    match (is_https, is_framed) {
        (false, _) => "SameSite=Lax",
        (true, false) => "SameSite=Lax; Secure",
        // Also from another site's frame, but only within the site in which it was set: that is what partitions are.
        (true, true) => "SameSite=None; Secure; Partitioned",
    }
}

/// Wrong sign-ins of the last minute, by address.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Failures {
    fn is_over(&self, address: IpAddr) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&network(address)).is_some_and(|(since, n)| since.elapsed() < WINDOW && *n >= MOST_FAILURES)
    }

    fn count(&self, address: IpAddr) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_ADDRESSES {
            known.retain(|_, (since, _)| since.elapsed() < WINDOW);
        }
        if known.len() >= MOST_ADDRESSES {
            known.clear(); // so many at once are no typing mistakes; memory stays bounded all the same
        }
        let (since, n) = known.entry(network(address)).or_insert((Instant::now(), 0));
        if since.elapsed() >= WINDOW {
            (*since, *n) = (Instant::now(), 0);
        }
        *n += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_on_this_server_are_returned_to() {
        for safe in ["/", "/queues", "/queues/upkeep?state=dead&before=7", "/a//b"] {
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
        assert_eq!(address("/queues/upkeep?state=dead&x=1"), "/signin?next=/queues/upkeep%3Fstate%3Ddead%26x%3D1");
        assert_eq!(address("//evil"), "/signin");
    }

    #[test]
    fn twenty_wrong_keys_from_one_network_are_enough() {
        let failures = Failures::default();
        let (one, same, other): (IpAddr, IpAddr, IpAddr) = (
            "2001:db8::1".parse().expect("address"),
            "2001:db8::ffff".parse().expect("address"),
            "2001:db8:1::1".parse().expect("address"),
        );
        for _ in 0..MOST_FAILURES {
            assert!(!failures.is_over(same));
            failures.count(one);
        }
        assert!(failures.is_over(same));
        assert!(!failures.is_over(other));
    }

    #[test]
    fn cookies_are_secure_behind_https_and_leave_our_site_only_for_frames() {
        assert_eq!(same_site(false, false), "SameSite=Lax");
        assert_eq!(same_site(false, true), "SameSite=Lax", "browsers take `None` over https alone");
        assert_eq!(same_site(true, false), "SameSite=Lax; Secure");
        assert_eq!(same_site(true, true), "SameSite=None; Secure; Partitioned");
    }
}
