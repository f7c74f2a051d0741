//! The set-up of a webhook: the form that fits its provider, and the steps that follow. The channel's own page goes on from there.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::Scope;
use domain::shown::clipped;
use engine::intake::ChannelSpec;
use engine::intake::providers::{GivenSecret, Sender};
use engine::pull::guide::Mark;
use engine::setup;
use serde::Deserialize;
use store::people;

use super::channels::{Flash, HERE, Owner, given, owners};
use super::layout::Layout;
use super::walk::{Check, Explained, StepView, steps};
use super::{Posted, Visitor, html};
use crate::api::channels::{AddChannel, add};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

#[derive(Template)]
#[template(path = "new_channel.html")]
struct NewChannelPage {
    layout: Layout,
    code: &'static str,
    /// The known sender, as addresses spell it; empty: none.
    sender: &'static str,
    name: &'static str,
    mark: Mark,
    sends: String,
    example: &'static str,
    secret: Option<GivenSecret>,
    needs_secret: bool,
    owners: Vec<Owner>,
    checks: Vec<Check>,
    steps: Vec<StepView>,
    refusals: Vec<Explained>,
    trouble: String,
    typed: Typed,
    may_manage: bool,
    csrf: String,
}

/// Values that a person typed into the form.
#[derive(Default)]
struct Typed {
    name: String,
    is_auto: bool,
    owner: Option<i64>,
}

#[derive(Deserialize)]
pub(crate) struct SenderQuery {
    #[serde(default)]
    sender: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(code): Path<String>,
    Query(query): Query<SenderQuery>,
) -> Result<Response, ApiError> {
    let spec = app.env.channel_providers.find(&code).map_err(|_| ApiError::NotFound("page"))?;
    page(&app, &visitor, spec, spec.guide.sender(&query.sender), String::new(), Typed::default()).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    spec: &'static ChannelSpec,
    sender: Option<&'static Sender>,
    trouble: String,
    typed: Typed,
) -> Result<Response, ApiError> {
    let people = app.env.db.session(async |conn| people::list(conn, visitor.tenant_id).await).await?;
    let guide = &spec.guide;
    let name = sender.map_or(guide.who, |sender| sender.label);
    let page = NewChannelPage {
        layout: Layout::new(visitor, app.env.clock.now(), format!("{name} · Webhooks"), HERE),
        code: spec.code,
        sender: sender.map_or("", |sender| sender.code),
        name,
        mark: sender.map_or(guide.mark, |sender| sender.mark),
        sends: domain::shown::capitalised(sender.map_or(spec.choice.1, |sender| sender.sends)),
        example: sender.map_or(guide.example, |sender| sender.example),
        // A known sender takes the secret that is made here, or its own is entered once it has the URL.
        secret: guide.secret.filter(|_| sender.is_none()),
        needs_secret: spec.needs_secret(),
        owners: owners(&people, typed.owner),
        checks: vec![setup::address(&app.env.config).into()],
        steps: steps(sender.map_or(guide.steps, |sender| sender.steps), |_| Vec::new()),
        refusals: guide.refusals.iter().map(Explained::from).collect(),
        trouble,
        typed,
        may_manage: visitor.may(Scope::Service),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct AddForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    sender: String,
    #[serde(default)]
    secret: String,
    /// The number of its owner; empty: its events are everyone's.
    #[serde(default, deserialize_with = "blank_is_none")]
    person_id: Option<i64>,
    auto_create_contacts: Option<String>,
}

/// Adds a channel. Where something is wrong, the form comes back with the values that were typed, except the secret.
pub(crate) async fn create(
    State(app): State<App>,
    Posted { caller, form }: Posted<AddForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let spec = app.env.channel_providers.find(&form.provider).map_err(|_| ApiError::NotFound("page"))?;
    let sender = spec.guide.sender(&form.sender);
    let is_auto = form.auto_create_contacts.is_some();
    let new = AddChannel {
        name: form.name.clone(),
        provider: form.provider,
        max_per_minute: sender.filter(|sender| sender.has_no_limit).map(|_| None),
        secret: given(form.secret),
        person_id: form.person_id,
        auto_create_contacts: is_auto,
        settings: None,
    };
    let (status, what) = match add(&app, &caller, new).await {
        Ok(made) => {
            let mark = sender.map(|sender| format!("?sender={}", sender.code)).unwrap_or_default();
            return Ok(Flash::Added.back(&format!("{HERE}/{}{mark}", made.id)));
        }
        Err(ApiError::Malformed(status, what)) => (status, what),
        Err(ApiError::Conflict(what)) => (StatusCode::CONFLICT, what), // its name is taken
        Err(error) => return Err(error),
    };
    let typed = Typed { name: clipped(&form.name, 100), is_auto, owner: form.person_id };
    let mut response = page(&app, &Visitor(caller), spec, sender, what, typed).await?;
    *response.status_mut() = status;
    Ok(response)
}
