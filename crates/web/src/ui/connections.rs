//! Connections: what is connected, and the gallery of everything that can be.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::Scope;
use domain::shown::{clipped, plural};
use engine::intake::providers;
use engine::mail::channel::{CODE, is_let_go};
use engine::mail::reading;
use serde::Deserialize;
use store::channels::{self, Channel};

use super::channels::{HERE as WEBHOOKS, kind, state};
use super::gallery::{Shelf, shelves};
use super::layout::Layout;
use super::sources::SourceCard;
use super::text::Badge;
use super::{Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::Query;
use crate::app::App;

pub(super) const HERE: &str = "/connections";

#[derive(Template)]
#[template(path = "connections.html")]
struct ConnectionsPage {
    layout: Layout,
    groups: [Group; 2],
    webhooks: Vec<WebhookRow>,
    shelves: Vec<Shelf>,
    n_found: usize,
    /// The words by which the gallery is narrowed.
    asked: String,
    /// The page that adds a webhook for any sender.
    any: String,
    may_act: bool,
}

/// Accounts of one kind.
struct Group {
    id: &'static str,
    title: &'static str,
    href: &'static str,
    /// Said where there is none.
    empty: &'static str,
    cards: Vec<SourceCard>,
}

struct WebhookRow {
    href: String,
    name: String,
    kind: String,
    badge: Badge,
    /// Empty: nothing was refused lately.
    refused: String,
}

#[derive(Deserialize)]
pub(crate) struct GalleryQuery {
    #[serde(default)]
    q: String,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<GalleryQuery>,
) -> Result<Response, ApiError> {
    let now = app.env.clock.now();
    let watched = engine::sources::watch(&app.env, &visitor, None).await?;
    let may_manage = visitor.may(Scope::Service);
    let loaded = app.env.db.session(async |conn| {
        let refusing = match may_manage {
            true => channels::refusing(conn, app.env.clock.sql(), visitor.tenant_id, 1).await?,
            false => Vec::new(),
        };
        Ok((channels::list(conn, visitor.tenant_id).await?, refusing))
    });
    let (listed, refusing) = loaded.await?;
    let row = |channel: &Channel| {
        let refused = refusing.iter().find(|refusing| refusing.channel_id == channel.id);
        WebhookRow {
            href: format!("{WEBHOOKS}/{}", channel.id),
            name: clipped(&channel.name, 100),
            kind: kind(&app, channel).0,
            badge: state(channel.is_active),
            refused: refused.map(|refused| plural(refused.n, "refusal", "refusals")).unwrap_or_default(),
        }
    };
    let asked = clipped(query.q.trim(), 100);
    let has_gmail = watched.iter().any(|watched| watched.source.provider == CODE && !is_let_go(&watched.source));
    let shelves = shelves(&app, &asked, has_gmail);
    let cards = |are_mailboxes: bool| {
        let of_kind = watched.iter().filter(|one| reading::is_mailbox(&app.env, &one.source.provider) == are_mailboxes);
        of_kind.map(|watched| SourceCard::new(&app, watched, now)).collect()
    };
    let page = ConnectionsPage {
        layout: Layout::new(&visitor, now, "Connections", HERE),
        groups: [
            Group {
                id: "accounts",
                title: "Accounts",
                href: super::sources::HERE,
                empty: "No account is connected yet.",
                cards: cards(false),
            },
            Group {
                id: "mailboxes",
                title: "Mailboxes",
                href: super::mail::HERE,
                empty: "No mailbox is connected yet.",
                cards: cards(true),
            },
        ],
        webhooks: listed.iter().map(row).collect(),
        n_found: shelves.iter().map(Shelf::n_shown).sum(),
        shelves,
        asked,
        any: format!("{WEBHOOKS}/new/{}", providers::DEFAULT),
        may_act: visitor.may(Scope::Write),
    };
    Ok(html(&page)?.into_response())
}
