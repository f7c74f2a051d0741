//! Home: what needs a person, the first steps, what arrives, and how the connections are.

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::Scope;
use domain::shown::clipped;
use engine::findings;
use engine::sources::watch;
use serde::Deserialize;
use store::channels::Channel;

use super::alerts::{AlertRow, Flash};
use super::chart::Span;
use super::flow::{self, FlowPart};
use super::layout::Layout;
use super::sources::{self, SourceCard};
use super::start::{Known, Steps};
use super::text::{Badge, Figure};
use super::{Visitor, channels, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: Layout,
    flash: &'static str,
    alerts: Vec<AlertRow>,
    /// Alerts that a person has dismissed.
    dismissed: Vec<AlertRow>,
    /// None when all are done.
    start: Option<Steps>,
    flow: FlowPart,
    sources: Vec<SourceCard>,
    webhooks: Vec<WebhookLine>,
    may_act: bool,
    csrf: String,
}

struct WebhookLine {
    href: String,
    name: String,
    /// "Twilio webhook".
    kind: String,
    badge: Badge,
    is_active: bool,
}

/// A number with what it means, and a link to what it counts.
pub(super) struct Tile {
    pub href: String,
    pub label: &'static str,
    pub value: Figure,
    pub note: String,
    /// Draws the eye when it should.
    pub tone: &'static str,
}

#[derive(Deserialize)]
pub(crate) struct HomeQuery {
    #[serde(default)]
    span: Span,
    #[serde(default)]
    done: Flash,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<HomeQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let found = engine::health::overview(&app.env, &visitor).await?.findings;
    let (seen, hidden) = findings::groups(&app.env, &visitor, found).await?;
    let flow = flow::load(&app, &visitor, query.span).await?;
    let watched = watch(&app.env, &visitor, None).await?;
    let known = Known {
        has_account: !watched.is_empty(),
        has_event: flow.has_any,
        has_document: flow.documents > 0,
        providers: sources::providers(&app),
    };
    let start = Steps::load(&app, &visitor, known).await?;
    let webhooks = engine::channels::list(&app.env, &visitor).await?;
    let now = app.env.clock.now();
    html(&HomePage {
        layout: Layout::new(&visitor, now, "Home", "/"),
        flash: query.done.in_words(),
        alerts: seen.iter().map(|group| AlertRow::new(&app, group, &watched)).collect(),
        dismissed: hidden.iter().map(|group| AlertRow::new(&app, group, &watched)).collect(),
        start,
        flow,
        sources: watched.iter().map(|watched| SourceCard::new(&app, watched, now)).collect(),
        webhooks: webhooks.iter().map(|channel| WebhookLine::new(&app, channel)).collect(),
        may_act: visitor.may(Scope::Write) && !visitor.csrf().is_empty(),
        csrf: visitor.csrf(),
    })
}

impl WebhookLine {
    fn new(app: &App, channel: &Channel) -> Self {
        let (label, _) = channels::kind(app, channel);
        let is_plain = label.ends_with("webhook") || channel.settings.source_id.is_some();
        Self {
            href: format!("{}/{}", channels::HERE, channel.id),
            name: clipped(&channel.name, 100),
            kind: if is_plain { label } else { format!("{label} webhook") },
            badge: channels::state(channel.is_active),
            is_active: channel.is_active,
        }
    }
}
