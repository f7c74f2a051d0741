//! "Use with…": how each known program is set up, with this server's own address, and a fresh key behind a button.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::Scope;
use engine::assistants::setup::{Client, PROGRAM, Server, Step};
use engine::keys::{self, NewKey};
use engine::{assistants, people};
use serde::Deserialize;

use super::layout::Layout;
use super::text::with_code;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::app::App;

const HERE: &str = "/settings/assistants/use";

#[derive(Template)]
#[template(path = "use_with.html")]
struct UseWithPage {
    layout: Layout,
    clients: Vec<Shown>,
    /// The address that programs are given.
    url: String,
    /// Programs are let in by OAuth.
    has_oauth: bool,
    /// This visitor can make a key here.
    may_make: bool,
    csrf: String,
}

struct Shown {
    word: &'static str,
    title: &'static str,
    steps: Vec<ShownStep>,
    takes_key: bool,
    /// A key was just made for it.
    is_made: bool,
}

struct ShownStep {
    says: Vec<(bool, String)>,
    copy: String,
}

impl ShownStep {
    fn new(step: Step) -> Self {
        Self { says: with_code(&step.says), copy: step.copy.unwrap_or_default() }
    }
}

pub(crate) async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    page(&app, &visitor, None)
}

/// `made`: the program for which a key was made, and the key.
fn page(app: &App, visitor: &Visitor, made: Option<(Client, String)>) -> Result<Response, ApiError> {
    let config = &app.env.config;
    let (base_url, has_oauth) = (config.base_url(), assistants::is_on(config));
    let shown = |client: Client| {
        let key = made.as_ref().filter(|(of, _)| *of == client).map(|(_, key)| key.as_str());
        let steps = client.steps(Server { base_url: &base_url, has_oauth, key, program: PROGRAM });
        Shown {
            word: client.word(),
            title: client.title(),
            steps: steps.into_iter().map(ShownStep::new).collect(),
            takes_key: client.takes_key(),
            is_made: key.is_some(),
        }
    };
    let page = UseWithPage {
        layout: Layout::new(visitor, app.env.clock.now(), "Use with…", HERE),
        clients: Client::ALL.into_iter().map(shown).collect(),
        url: assistants::resource(config),
        has_oauth,
        may_make: visitor.may(Scope::Service) && !visitor.csrf().is_empty(),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct KeyForm {
    client: String,
    write: Option<String>,
}

/// Makes a key for a program, and shows the set-up with it, this once.
pub(crate) async fn make(
    State(app): State<App>,
    Posted { caller, form }: Posted<KeyForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let client: Client = form.client.parse().map_err(|_| ApiError::NotFound("program"))?;
    let scopes: &[Scope] = if form.write.is_some() { &[Scope::Read, Scope::Write] } else { &[Scope::Read] };
    let person = match caller.person_id {
        Some(id) => people::get(&app.env, &caller, id).await?.email,
        None => None,
    };
    let name = format!("{} over MCP", client.title());
    let made = keys::create(&app.env, &caller, &NewKey { name: &name, scopes, person: person.as_deref() }).await?;
    page(&app, &Visitor(caller), Some((client, made.secret.reveal().to_owned())))
}
