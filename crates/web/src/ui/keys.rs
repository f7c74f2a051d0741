//! Keys: the programs and devices that may come in, each with its own key.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::clipped;
use domain::{KeyId, Scope};
use engine::ActError;
use engine::keys::{self, MadeKey, NewKey};
use serde::Deserialize;
use store::keys::Key;
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const HERE: &str = "/settings/keys";

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    layout: Layout,
    flash: &'static str,
    /// The key that was just made: its name and its secret.
    made: Option<(String, String)>,
    rows: Vec<Row>,
    revoked: Vec<Row>,
    trouble: String,
    typed: Typed,
    csrf: String,
}

/// Values that a person typed into the form.
#[derive(Default)]
struct Typed {
    name: String,
    person: String,
}

struct Row {
    id: String,
    href: String,
    name: String,
    scopes: String,
    person: String,
    made: When,
    used: When,
    revoked: When,
    /// The visitor is signed in with it.
    is_own: bool,
}

impl Row {
    fn new(key: &Key, own: KeyId, now: DateTime<Utc>) -> Self {
        Self {
            id: key.id.to_string(),
            href: format!("{HERE}/{}/revoke", key.id),
            name: clipped(&key.name, 100),
            scopes: key.scopes.join(", "),
            person: clipped(key.person.as_deref().unwrap_or_default(), 100),
            made: When::new(key.created_at, now),
            used: When::maybe(key.last_used_at, now),
            revoked: When::maybe(key.revoked_at, now),
            is_own: key.id == own.0,
        }
    }
}

flashes! {
    Flash {
        Revoked = "revoked": "The key was revoked. Every server refuses it within five seconds.",
    }
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<Response, ApiError> {
    page(&app, &visitor, query.done, None, String::new(), Typed::default()).await
}

async fn page(
    app: &App,
    visitor: &Visitor,
    flash: Flash,
    made: Option<MadeKey>,
    trouble: String,
    typed: Typed,
) -> Result<Response, ApiError> {
    visitor.0.need(Scope::Service)?;
    let now = app.env.clock.now();
    let all = keys::list(&app.env, visitor).await?;
    let (revoked, good): (Vec<&Key>, Vec<&Key>) = all.iter().partition(|key| key.revoked_at.is_some());
    let rows = |keys: Vec<&Key>| keys.into_iter().map(|key| Row::new(key, visitor.key_id, now)).collect();
    let page = KeysPage {
        layout: Layout::new(visitor, now, "Keys", HERE),
        flash: flash.in_words(),
        made: made.map(|made| (clipped(&made.name, 100), made.secret.reveal().to_owned())),
        rows: rows(good),
        revoked: rows(revoked),
        trouble,
        typed,
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

#[derive(Deserialize)]
pub(crate) struct CreateForm {
    #[serde(default)]
    name: String,
    #[serde(default)]
    person: String,
    read: Option<String>,
    write: Option<String>,
    agent: Option<String>,
    service: Option<String>,
}

/// Creates a key and shows it, this once. Where something is wrong, the form comes back with the values that were typed.
pub(crate) async fn create(
    State(app): State<App>,
    Posted { caller, form }: Posted<CreateForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let chosen = [
        (&form.read, Scope::Read),
        (&form.write, Scope::Write),
        (&form.agent, Scope::Agent),
        (&form.service, Scope::Service),
    ];
    let scopes: Vec<Scope> = chosen.into_iter().filter(|(field, _)| field.is_some()).map(|(_, scope)| scope).collect();
    let person = Some(form.person.trim()).filter(|person| !person.is_empty());
    let made = keys::create(&app.env, &caller, &NewKey { name: &form.name, scopes: &scopes, person }).await;
    let visitor = Visitor(caller);
    match made {
        Ok(made) => page(&app, &visitor, Flash::Nothing, Some(made), String::new(), Typed::default()).await,
        Err(ActError::Invalid(what)) => {
            let typed = Typed { name: clipped(&form.name, 100), person: clipped(&form.person, 254) };
            let trouble = format!("No key was made: {what}.");
            let mut response = page(&app, &visitor, Flash::Nothing, None, trouble, typed).await?;
            *response.status_mut() = StatusCode::BAD_REQUEST;
            Ok(response)
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn revoke(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Service)?;
    keys::revoke(&app.env, &caller, KeyId(id)).await?;
    app.callers.forget(KeyId(id));
    Ok(Flash::Revoked.back(HERE))
}
