//! Nodes: people's devices that claim activities, what each is told, and how much waits for whom.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, number, plural};
use domain::{NodeId, Scope};
use engine::ActError;
use engine::enrich::Hearing;
use engine::nodes::{self, Change};
use engine::waiting::{self, Overview};
use serde::Deserialize;
use store::nodes::{Node, State as NodeState};
use uuid::Uuid;

use super::flash::flashes;
use super::home::Tile;
use super::layout::Layout;
use super::text::{Figure, When};
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

const HERE: &str = "/system/agents";

#[derive(Template)]
#[template(path = "nodes.html")]
struct NodesPage {
    layout: Layout,
    flash: &'static str,
    tiles: Vec<Tile>,
    built_in: &'static str,
    /// The transcriber of calls, and its speed.
    hearing: String,
    cards: Vec<NodeCard>,
    /// A person's device has connected; the built-in agent does not count.
    has_device: bool,
    /// The URL at which agents find this server.
    url: String,
    may_act: bool,
    csrf: String,
}

struct NodeCard {
    id: String,
    href: String,
    device: String,
    person: String,
    app: String,
    state: &'static str,
    /// `processing 3`.
    words: String,
    current: Option<String>,
    is_enabled: bool,
    concurrency: i32,
    processed: String,
    heard: When,
    known: When,
}

#[derive(Deserialize)]
pub(crate) struct DoneQuery {
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Enabled = "enabled": "It is on, and takes work again with its next heartbeat.",
        Disabled = "disabled": "It is off. It finishes what it has, and takes nothing more after its next heartbeat.",
        Saved = "saved": "Saved. The device reads it with its next heartbeat.",
        Refused = "refused": "How many at once is a number from 1 to 64.",
        Gone = "gone": "There is no such device any more.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<DoneQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let overview = waiting::overview(&app.env, &visitor).await?;
    let now = app.env.clock.now();
    let hearing = if overview.is_built_in_on { Hearing::told(&app.env).await? } else { String::new() };
    html(&NodesPage {
        layout: Layout::new(&visitor, now, "Agents", HERE),
        flash: query.done.in_words(),
        tiles: tiles(&overview),
        built_in: if overview.is_built_in_on {
            "The built-in agent is on. It takes activities that belong to everyone, those of people for whom it works, and those that others left waiting."
        } else {
            "The built-in agent is off, or no worker is running. Everything waits for people's agents."
        },
        hearing,
        cards: overview.nodes.iter().map(|node| NodeCard::new(node, &overview, now)).collect(),
        has_device: overview
            .nodes
            .iter()
            .any(|node| overview.person(node.person_id).is_some_and(|person| !person.is_built_in())),
        url: app.env.config.base_url(),
        may_act: visitor.may(Scope::Write),
        csrf: visitor.csrf(),
    })
}

fn tiles(overview: &Overview) -> Vec<Tile> {
    let claimable = overview.claimable;
    let count = |n: usize| match claimable.is_more {
        true => Figure::words(format!("{}+", number(n as i64))),
        false => Figure::new(n as i64),
    };
    let parts = [
        (claimable.global, "for everyone"),
        (claimable.own, "for their own agents"),
        (claimable.stale, "left by others"),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, whose)| format!("{} {whose}", number(n as i64))).collect();
    let online = overview.nodes.iter().filter(|node| node.enabled && node.state() != NodeState::Offline);
    let (n_online, hands) = online.fold((0, 0), |(n, hands), node| (n + 1, hands + i64::from(node.concurrency)));
    let tile = |label, value: Figure, note: String, tone| Tile { href: "/inbox".into(), label, value, note, tone };
    vec![
        tile(
            "Ready for an agent",
            count(claimable.now()),
            if parts.is_empty() { "nothing waits for the agents online".into() } else { parts.join(", ") },
            "",
        ),
        tile("Reserved for their owner", count(claimable.later), "others may take them later".into(), ""),
        tile(
            "Without an agent",
            count(claimable.nobody),
            "no suitable agent is online".into(),
            if claimable.nobody > 0 { "warn" } else { "" },
        ),
        tile(
            "Devices online",
            Figure::new(n_online),
            match n_online {
                0 => "no device takes work".into(),
                _ => format!("take {} at once", plural(hands, "activity", "activities")),
            },
            if n_online > 0 { "good" } else { "" },
        ),
    ]
}

impl NodeCard {
    fn new(node: &Node, overview: &Overview, now: DateTime<Utc>) -> Self {
        let state = node.state();
        // What is in hand is known by person: with two busy devices of one, nobody can say which has how many.
        let busy = overview
            .nodes
            .iter()
            .filter(|other| other.person_id == node.person_id && other.state() == NodeState::Processing);
        let words = match state {
            NodeState::Processing if node.held > 0 && busy.count() == 1 => format!("processing {}", number(node.held)),
            state => state.as_str().to_owned(),
        };
        let current = node.current_activity_id.filter(|_| state == NodeState::Processing);
        Self {
            id: node.id.to_string(),
            href: format!("{HERE}/{}", node.id),
            device: clipped(&node.device_name, 80),
            person: overview.person(node.person_id).map(|person| clipped(&person.called(), 80)).unwrap_or_default(),
            app: clipped(&node.app_name, 60),
            state: state.as_str(),
            words,
            current: current.map(|id| format!("/activities/{id}")),
            is_enabled: node.enabled,
            concurrency: node.concurrency,
            processed: number(node.processed_count.into()),
            heard: When::new(node.last_heartbeat, now),
            known: When::new(node.created_at, now),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct ChangeForm {
    #[serde(default, deserialize_with = "blank_is_none")]
    enabled: Option<bool>,
    /// The number as it was typed.
    concurrency: Option<String>,
}

pub(crate) async fn change(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<ChangeForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let concurrency = match form.concurrency.as_deref().map(|typed| typed.trim().parse::<i32>()) {
        Some(Ok(n)) => Some(n),
        Some(Err(_)) => return Ok(Flash::Refused.back(HERE)),
        None => None,
    };
    let flash = match form.enabled {
        Some(true) => Flash::Enabled,
        Some(false) => Flash::Disabled,
        None => Flash::Saved,
    };
    match nodes::change(&app.env, &caller, NodeId(id), Change { enabled: form.enabled, concurrency }).await {
        Ok(()) => Ok(flash.back(HERE)),
        Err(ActError::Invalid(_)) => Ok(Flash::Refused.back(HERE)),
        Err(ActError::NotFound(_)) => Ok(Flash::Gone.back(HERE)),
        Err(error) => Err(error.into()),
    }
}
