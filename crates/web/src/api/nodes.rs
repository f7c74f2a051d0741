//! Devices that claim activities: who is there, how much waits for whom, and what a device is told.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::NodeId;
use engine::nodes;
use engine::waiting::{self, Overview};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Reading, Writing};
use super::error::{ApiError, Problem};
use super::extract::{self, Path};
use crate::app::App;

#[derive(Serialize, ToSchema)]
pub struct Nodes {
    nodes: Vec<Node>,
    /// Whether the built-in agent claims too.
    is_built_in_on: bool,
    claimable: Claimable,
}

#[derive(Serialize, ToSchema)]
pub struct Node {
    id: Uuid,
    person_id: i64,
    person: String,
    app_name: String,
    device_name: String,
    /// idle, processing or offline.
    #[schema(example = "idle")]
    state: &'static str,
    /// Whether it shall claim.
    enabled: bool,
    /// On how many activities at once it shall work.
    concurrency: i32,
    current_activity_id: Option<Uuid>,
    /// Activities in its person's hands, on whichever device.
    held: i64,
    /// Since it started, by its own count.
    processed_count: i32,
    last_heartbeat: DateTime<Utc>,
    created_at: DateTime<Utc>,
}

/// The number of activities waiting for each group of agents, among the oldest 1,000.
#[derive(Serialize, ToSchema)]
pub struct Claimable {
    /// Could be claimed now: the sum of the next three.
    now: usize,
    /// Activities that agents of their owners can claim.
    own: usize,
    /// Activities without an owner, which any agent can claim.
    global: usize,
    /// Activities that other agents can claim: their owners' agents left them waiting.
    stale: usize,
    /// Activities that other agents can claim later.
    later: usize,
    /// No agent is online that could.
    nobody: usize,
    /// More wait than were looked at.
    is_more: bool,
}

/// Lists the devices that claim activities, the latest heartbeat first, and counts the waiting activities.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes", responses((status = 200, body = Nodes)))]
pub(crate) async fn list(State(app): State<App>, Reading(caller): Reading) -> Result<Json<Nodes>, ApiError> {
    Ok(Json(Nodes::from(&waiting::overview(&app.env, &caller).await?)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeNode {
    /// Whether it shall claim.
    pub enabled: Option<bool>,
    /// On how many activities at once it shall work, 1 to 64.
    #[schema(minimum = 1, maximum = 64, example = 2)]
    pub concurrency: Option<i32>,
}

/// Switches a device on or off, or says on how many activities at once it shall work. It reads that with its next heartbeat.
#[utoipa::path(patch, path = "/api/v1/nodes/{id}", tag = "nodes", params(("id" = Uuid, Path)), request_body = ChangeNode,
    responses((status = 200, body = Node), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn change(
    State(app): State<App>,
    Writing(caller): Writing,
    Path(id): Path<Uuid>,
    extract::Json(change): extract::Json<ChangeNode>,
) -> Result<Json<Node>, ApiError> {
    let ChangeNode { enabled, concurrency } = change;
    nodes::change(&app.env, &caller, NodeId(id), nodes::Change { enabled, concurrency }).await?;
    let overview = waiting::overview(&app.env, &caller).await?;
    let node = overview.nodes.iter().find(|node| node.id == id).ok_or(ApiError::NotFound("device"))?;
    Ok(Json(Node::new(node, &overview)))
}

impl From<&Overview> for Nodes {
    fn from(overview: &Overview) -> Self {
        let waiting::Claimable { own, global, stale, later, nobody, is_more } = overview.claimable;
        Self {
            nodes: overview.nodes.iter().map(|node| Node::new(node, overview)).collect(),
            is_built_in_on: overview.is_built_in_on,
            claimable: Claimable { now: overview.claimable.now(), own, global, stale, later, nobody, is_more },
        }
    }
}

impl Node {
    fn new(node: &store::nodes::Node, overview: &Overview) -> Self {
        Self {
            id: node.id,
            person_id: node.person_id,
            person: overview.person(node.person_id).map(|person| person.called()).unwrap_or_default(),
            app_name: node.app_name.clone(),
            device_name: node.device_name.clone(),
            state: node.state().as_str(),
            enabled: node.enabled,
            concurrency: node.concurrency,
            current_activity_id: node.current_activity_id,
            held: node.held,
            processed_count: node.processed_count,
            last_heartbeat: node.last_heartbeat,
            created_at: node.created_at,
        }
    }
}
