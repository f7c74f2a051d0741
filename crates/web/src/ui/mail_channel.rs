//! A channel on a mailbox: the form that adds one, and its own page. It has no URL and no secrets: letters that fit its query are its events.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::shown::clipped;
use domain::{ChannelId, PersonId, Scope, SourceId};
use engine::ActError;
use engine::mail::channel::{self, CODE, LABEL, NewMailChannel, Standing, USUAL_QUERY};
use engine::pull::guide::Mark;
use serde::Deserialize;
use store::activities::{self, Filter, Wanted};
use store::people;
use store::sources::Source;
use uuid::Uuid;

use super::activities::Row;
use super::channels::{Flash, HERE, Owner, owners, state};
use super::layout::Layout;
use super::sources::HERE as ACCOUNTS;
use super::text::{Badge, When};
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::blank_is_none;
use crate::app::App;

/// The newest events that its page lists.
const EVENTS: i64 = 20;

#[derive(Template)]
#[template(path = "new_mail_channel.html")]
struct NewPage {
    layout: Layout,
    mark: Option<Mark>,
    mailboxes: Vec<Choice>,
    owners: Vec<Owner>,
    usual_query: &'static str,
    trouble: String,
    typed: Typed,
    may_manage: bool,
    csrf: String,
}

/// A mailbox that a channel can stand on.
struct Choice {
    id: Uuid,
    name: String,
    is_chosen: bool,
}

/// Values that a person typed into the form.
#[derive(Default)]
struct Typed {
    mailbox: Option<Uuid>,
    name: String,
    query: String,
    is_auto: bool,
    owner: Option<i64>,
}

#[derive(Template)]
#[template(path = "mail_channel.html")]
struct MailChannelPage {
    layout: Layout,
    flash: &'static str,
    href: String,
    name: String,
    /// The name as it is, for its field.
    raw_name: String,
    mark: Option<Mark>,
    kind: &'static str,
    badge: Badge,
    is_active: bool,
    made: When,
    /// The name and the page of its mailbox. None: the mailbox is gone.
    mailbox: Option<(String, String)>,
    /// The mailbox is read no more.
    is_let_go: bool,
    query: String,
    owner: String,
    owners: Vec<Owner>,
    auto_create: bool,
    rows: Vec<Row>,
    may_manage: bool,
    csrf: String,
}

pub(crate) async fn form(State(app): State<App>, visitor: Visitor) -> Result<Response, ApiError> {
    new_page(&app, &visitor, String::new(), Typed::default()).await
}

async fn new_page(app: &App, visitor: &Visitor, trouble: String, typed: Typed) -> Result<Response, ApiError> {
    let people = app.env.db.session(async |conn| people::list(conn, visitor.tenant_id).await).await?;
    let mailboxes = channel::mailboxes(&app.env, visitor).await?;
    let choice =
        |source: Source| Choice { id: source.id, name: called(&source), is_chosen: typed.mailbox == Some(source.id) };
    let page = NewPage {
        layout: Layout::new(visitor, app.env.clock.now(), format!("{LABEL} · Webhooks"), HERE),
        mark: mark(app),
        mailboxes: mailboxes.into_iter().map(choice).collect(),
        owners: owners(&people, typed.owner),
        usual_query: USUAL_QUERY,
        trouble,
        typed,
        may_manage: visitor.may(Scope::Service),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// A mailbox's name, with its account where that says more.
fn called(source: &Source) -> String {
    let name = clipped(&source.name, 80);
    match source.account.as_deref().filter(|account| *account != source.name) {
        Some(account) => format!("{name} ({})", clipped(account, 80)),
        None => name,
    }
}

/// The mark of the provider whose letters are the events.
fn mark(app: &App) -> Option<Mark> {
    app.env.providers.named(CODE).ok().map(|provider| provider.guide.mark)
}

#[derive(Deserialize)]
pub(crate) struct AddForm {
    /// Empty: none was chosen.
    #[serde(default, deserialize_with = "blank_is_none")]
    mailbox: Option<Uuid>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    query: String,
    /// The number of its owner; empty: its events are everyone's.
    #[serde(default, deserialize_with = "blank_is_none")]
    person_id: Option<i64>,
    auto_create_contacts: Option<String>,
}

/// Adds a channel on a mailbox. Where something is wrong, the form comes back with the values that were typed.
pub(crate) async fn create(
    State(app): State<App>,
    Posted { caller, form }: Posted<AddForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Service)?;
    let is_auto = form.auto_create_contacts.is_some();
    let new = NewMailChannel {
        name: form.name.clone(),
        query: Some(form.query.clone()),
        person_id: form.person_id.map(PersonId),
        auto_create_contacts: is_auto,
    };
    let added = match form.mailbox {
        Some(mailbox) => channel::add(&app.env, &caller, SourceId(mailbox), new).await,
        None => Err(ActError::invalid("choose a mailbox")),
    };
    let (status, what) = match added {
        Ok(id) => return Ok(Flash::Added.back(&format!("{HERE}/{id}"))),
        Err(ActError::Invalid(what)) => (StatusCode::BAD_REQUEST, what),
        Err(ActError::Conflict(what)) => (StatusCode::CONFLICT, what), // its name is taken
        Err(error) => return Err(error.into()),
    };
    let typed = Typed {
        mailbox: form.mailbox,
        name: clipped(&form.name, 100),
        query: clipped(&form.query, 500),
        is_auto,
        owner: form.person_id,
    };
    let mut response = new_page(&app, &Visitor(caller), what, typed).await?;
    *response.status_mut() = status;
    Ok(response)
}

/// The page of a channel on a mailbox.
pub(super) async fn page(
    app: &App,
    visitor: &Visitor,
    Standing { channel, mailbox }: Standing,
    flash: Flash,
) -> Result<Response, ApiError> {
    let (tenant_id, id) = (visitor.tenant_id, ChannelId(channel.id));
    let loaded = app.env.db.session(async |conn| {
        let filter = Filter { channel_id: Some(id), ..Filter::default() };
        let events = activities::list(conn, tenant_id, Wanted { filter, limit: EVENTS, ..Wanted::default() }).await?;
        Ok((events, people::list(conn, tenant_id).await?))
    });
    let (events, people) = loaded.await?;
    let now = app.env.clock.now();
    let owners = owners(&people, channel.person_id);
    let page = MailChannelPage {
        layout: Layout::new(visitor, now, format!("{} · Webhooks", clipped(&channel.name, 60)), HERE),
        flash: in_words(flash),
        href: format!("{HERE}/{id}"),
        name: clipped(&channel.name, 100),
        mark: mark(app),
        kind: LABEL,
        badge: state(channel.is_active),
        is_active: channel.is_active,
        made: When::new(channel.created_at, now),
        is_let_go: mailbox.as_ref().is_some_and(channel::is_let_go),
        mailbox: mailbox.map(|source| (called(&source), format!("{ACCOUNTS}/{}", source.id))),
        query: channel.settings.query.unwrap_or_else(|| USUAL_QUERY.to_owned()),
        owner: owners.iter().find(|owner| owner.is_chosen).map(|owner| owner.name.clone()).unwrap_or_default(),
        owners,
        auto_create: channel.auto_create_contacts,
        raw_name: channel.name,
        rows: events.iter().map(|activity| Row::new(activity, now)).collect(),
        may_manage: visitor.may(Scope::Service),
        csrf: visitor.csrf(),
    };
    Ok(html(&page)?.into_response())
}

/// The outcome of the last action, where the words for webhooks do not fit.
fn in_words(flash: Flash) -> &'static str {
    match flash {
        Flash::Added => "It is ready. Each letter that comes from now on and fits the query is an activity.",
        Flash::Enabled => "Letters that come from now on are activities again.",
        Flash::Disabled => "Letters are no activities until you enable it. They are read and found all the same.",
        Flash::Taken => "It was not saved: another webhook or mailbox has that name. Choose another one.",
        other => other.in_words(),
    }
}
