//! The set-up of an account at a provider: the steps there in order, checks on the way, and what to do about each refusal.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::shown::clipped;
use domain::{Scope, Transport};
use engine::pull::Provider;
use engine::pull::connect::{self, ConnectError};
use engine::pull::guide::{Advice, Gives, Mark, by_code, oauth};
use engine::pull::spec::Key;
use engine::setup;
use serde::Deserialize;

use super::layout::Layout;
use super::sources::{HERE, SourceCard};
use super::walk::{Check, Explained, Shown, StepView, steps};
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Path;
use crate::app::App;

#[derive(Template)]
#[template(path = "connect.html")]
struct ConnectPage {
    layout: Layout,
    provider: Provider,
    name: &'static str,
    mark: Mark,
    brings: &'static str,
    /// Says when changes come in.
    follows: &'static str,
    /// The reason why the last try failed, and what to do about it; empty: none did.
    trouble: String,
    remedy: Vec<Explained>,
    connected: Vec<SourceCard>,
    checks: Vec<Check>,
    /// The address at the provider where a person allows it. None while our app there is not set up.
    connect: Option<String>,
    /// The same through the MCP server that the settings name.
    connect_mcp: Option<String>,
    has_oauth: bool,
    /// The steps to our app at the provider.
    steps: Vec<StepView>,
    key: Option<&'static Key>,
    key_steps: Vec<StepView>,
    has_samples: bool,
    refusals: Vec<Explained>,
    is_operator: bool,
    may_act: bool,
    csrf: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(provider): Path<String>,
) -> Result<Response, ApiError> {
    let provider = known(&app, &provider)?;
    page(&app, &visitor, provider, Tried::Nothing).await
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

/// Runs the checks that ask somebody else.
pub(crate) async fn check(
    State(app): State<App>,
    Path(provider): Path<String>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    let provider = known(&app, &provider)?;
    page(&app, &Visitor(caller), provider, Tried::Checks).await
}

fn known(app: &App, name: &str) -> Result<Provider, ApiError> {
    app.env.providers.named(name).map_err(|_| ApiError::NotFound("page"))
}

/// The page after a try that failed, with the answer's status.
pub(super) async fn refused(
    app: &App,
    visitor: &Visitor,
    provider: Provider,
    error: ConnectError,
) -> Result<Response, ApiError> {
    let code = error.code().map(str::to_owned);
    let (status, what) = match ApiError::from(error) {
        ApiError::Malformed(status, what) | ApiError::NotConnected(status, what) => (status, what),
        error => return Err(error),
    };
    refused_with(app, visitor, provider, status, &what, code.as_deref()).await
}

pub(super) async fn refused_with(
    app: &App,
    visitor: &Visitor,
    provider: Provider,
    status: StatusCode,
    what: &str,
    code: Option<&str>,
) -> Result<Response, ApiError> {
    let what = format!("It was not connected: {}.", clipped(what, 300).trim_end_matches('.'));
    let remedy = code.and_then(|code| provider.explain(code));
    let mut response = page(app, visitor, provider, Tried::Refused(what, remedy)).await?;
    *response.status_mut() = status;
    Ok(response)
}

/// The checks that were made before the page is shown.
enum Tried {
    Nothing,
    Checks,
    Refused(String, Option<&'static Advice>),
}

async fn page(app: &App, visitor: &Visitor, provider: Provider, tried: Tried) -> Result<Response, ApiError> {
    let (env, now) = (&app.env, app.env.clock.now());
    let watched = engine::sources::watch(env, visitor, None).await?;
    let is_set_up = env.providers.app(provider).is_some();
    let has_mcp = !env.providers.uses_fixtures() && env.providers.connector(provider, Transport::Mcp).is_some();
    let address = format!("/oauth/{provider}/authorize");
    let mut checks = Vec::new();
    if provider.oauth.is_some() {
        checks.push(setup::address(&env.config));
        checks.extend(setup::has_settings(env, provider));
        if matches!(tried, Tried::Checks) {
            let (reached, known) = tokio::join!(setup::reach(env), setup::knows_app(env, provider));
            checks.push(reached);
            checks.extend(known);
        }
    }
    let (trouble, remedy) = match tried {
        Tried::Refused(trouble, remedy) => (trouble, remedy),
        Tried::Nothing | Tried::Checks => (String::new(), None),
    };
    let connected: Vec<SourceCard> = watched
        .iter()
        .filter(|watched| watched.source.provider == provider.name)
        .map(|watched| SourceCard::new(app, watched, now))
        .collect();
    let is_new = connected.is_empty();
    let page = ConnectPage {
        layout: Layout::new(visitor, now, format!("Connect {}", provider.label), HERE),
        provider,
        name: provider.label,
        mark: provider.guide.mark,
        brings: provider.brings,
        follows: match provider.mailbox {
            Some(_) => {
                "new mail follows within seconds of its provider telling of it, or within a minute or so where that is not set up"
            }
            None => "changes follow every night and whenever you ask",
        },
        trouble,
        remedy: remedy.map(Explained::from).into_iter().collect(),
        connected,
        checks: checks.into_iter().map(Check::from).collect(),
        connect_mcp: (is_set_up && has_mcp).then(|| format!("{address}?transport=mcp")),
        connect: is_set_up.then_some(address),
        has_oauth: provider.oauth.is_some(),
        steps: steps(provider.guide.steps, |gives| values(app, provider, gives)),
        key: provider.key.as_ref(),
        key_steps: steps(provider.guide.key_steps, |_| Vec::new()),
        has_samples: provider.has_samples() && (is_new || env.providers.uses_fixtures()),
        refusals: refusals(provider),
        is_operator: visitor.operates(),
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// The values that a step at the provider needs.
fn values(app: &App, provider: Provider, gives: Gives) -> Vec<Shown> {
    let scopes = provider.oauth.as_ref().map_or(&[][..], |oauth| oauth.scopes);
    match gives {
        Gives::RedirectUrl => vec![Shown::plain("Redirect URL", connect::redirect_uri(&app.env, provider))],
        Gives::Scopes => {
            scopes.iter().enumerate().map(|(nth, scope)| Shown::plain(format!("Scope {}", nth + 1), *scope)).collect()
        }
        Gives::Settings => {
            let needed = setup::settings(&app.env, provider).into_iter().flatten();
            let line = |(name, needed): (&str, setup::Needed)| {
                let state = if needed.is_set { "set" } else { "missing" };
                Shown::plain(format!("{name}, {state}"), format!("{}=paste-the-value-here", needed.env))
            };
            ["Client id", "Client secret"].into_iter().zip(needed).map(line).collect()
        }
        Gives::Nothing | Gives::WebhookUrl | Gives::Secret(_) => Vec::new(),
    }
}

/// Every refusal that a person can meet: the provider's own, then OAuth's that it does not word in its own way.
fn refusals(provider: Provider) -> Vec<Explained> {
    let own = provider.guide.refusals;
    let common: &'static [Advice] = if provider.oauth.is_some() { &oauth::REFUSALS } else { &[] };
    let common = common.iter().filter(|advice| by_code(own, advice.says).is_none());
    own.iter().chain(common).map(Explained::from).collect()
}
