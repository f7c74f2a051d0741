//! The page on which a person lets a program in. It names the program, the person, the rights and the place to which the person goes back, and is never
//! shown in a frame.

use askama::Template;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderValue, LOCATION};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use domain::Scope;
use domain::shown::{clipped, shown};
use engine::assistants::consent::{self, Asked, NotAsked};
use engine::assistants::tokens::OauthError;
use serde::Deserialize;

use super::layout::Layout;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;
use crate::mcp::oauth;

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage {
    layout: Layout,
    program: String,
    /// The host that answers for the program's name; empty if nobody does.
    vouched_by: String,
    person: String,
    tenant: String,
    place: String,
    rights: Vec<Right>,
    /// Rights that it asks for and that the person does not have.
    beyond: String,
    asked: Asked,
    csrf: String,
}

/// A request that cannot be granted, of a program that nobody answers for.
#[derive(Template)]
#[template(path = "not_asked.html")]
struct NotAskedPage {
    layout: Layout,
    what: &'static str,
    place: String,
    /// Tells the program, if the person goes there.
    address: String,
}

struct Right {
    name: &'static str,
    words: &'static str,
    /// It cannot be left out.
    is_fixed: bool,
}

impl Right {
    fn new(scope: Scope) -> Self {
        let words = match scope {
            Scope::Read => "Search and read everything that you can read",
            Scope::Write => "Add notes and other texts",
            Scope::Agent => "Process events in your name: claim them, and store what it makes of them",
            Scope::Service => "Everything",
        };
        Self { name: scope.as_str(), words, is_fixed: scope == Scope::Read }
    }
}

/// Asks a person whether to let a program in.
pub(crate) async fn show(
    State(app): State<App>,
    visitor: Result<Visitor, ApiError>,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    oauth::need(&app)?;
    let visitor = visitor?;
    let request = match consent::check(&app.env, &visitor, &app.mcp.documents, &asked).await {
        Ok(request) => request,
        Err(NotAsked::There { address, unknown_place: Some(place), what }) => {
            let (layout, place) = (Layout::bare("Nothing was let in"), clipped(&place, 200));
            let page = html(&NotAskedPage { layout, place, address, what })?;
            return Ok((StatusCode::BAD_REQUEST, page).into_response());
        }
        Err(not_asked) => return told(not_asked),
    };
    if visitor.csrf().is_empty() {
        return Err(ApiError::Forbidden("programs are let in by a person in a browser: sign in at /signin first"));
    }
    let beyond: Vec<&str> = request.beyond.iter().map(|scope| scope.as_str()).collect();
    let page = ConsentPage {
        layout: Layout::bare("Let a program in"),
        program: clipped(&request.program.name, 100),
        vouched_by: shown(request.program.vouched_by.as_deref().unwrap_or_default()),
        person: clipped(&visitor.key_name, 100),
        tenant: clipped(&visitor.tenant_name, 100),
        place: clipped(&request.redirect.place(), 200),
        rights: request.scopes.iter().copied().map(Right::new).collect(),
        beyond: beyond.join(" and "),
        csrf: visitor.csrf(),
        asked,
    };
    let mut response = html(&page)?.into_response();
    // The answer to the form leads to the program, which browsers allow only if the policy names it.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self' {}; base-uri 'none'; frame-ancestors 'none'",
        request.redirect.source()
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response.headers_mut().insert(HeaderName::from_static("x-frame-options"), HeaderValue::from_static("DENY"));
    Ok(response)
}

#[derive(Deserialize)]
pub(crate) struct Decision {
    #[serde(flatten)]
    asked: Asked,
    #[serde(default)]
    decision: String,
    write: Option<String>,
    agent: Option<String>,
}

/// Does what the person decided. The request is checked again: nothing was kept since.
pub(crate) async fn decide(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    oauth::need(&app)?;
    let Posted { caller, form } = Posted::<Decision>::from_request(request, &app).await?;
    caller.need(Scope::Read)?;
    let Decision { asked, decision, write, agent } = form;
    let request = match consent::check(&app.env, &caller, &app.mcp.documents, &asked).await {
        Ok(request) => request,
        Err(not_asked) => return told(not_asked),
    };
    if decision != "allow" {
        return Ok(away(&consent::deny(&app.env, &request)));
    }
    let chosen = [(write, Scope::Write), (agent, Scope::Agent)];
    let allowed: Vec<Scope> = chosen.into_iter().filter(|(field, _)| field.is_some()).map(|(_, scope)| scope).collect();
    let to = consent::allow(&app.env, &caller, &request, &allowed).await.map_err(not_done)?;
    Ok(away(&to))
}

/// Tells the program, or the person where it is not known who sent them.
fn told(not_asked: NotAsked) -> Result<Response, ApiError> {
    match not_asked {
        NotAsked::There { address, .. } => Ok(away(&address)),
        NotAsked::Here(error) => Err(not_done(error)),
    }
}

fn not_done(error: OauthError) -> ApiError {
    match error {
        OauthError::Store(error) => error.into(),
        other => ApiError::Malformed(StatusCode::BAD_REQUEST, other.to_string()),
    }
}

fn away(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, address.to_owned())]).into_response()
}
