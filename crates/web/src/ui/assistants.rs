//! Connected assistants: the programs that people let in, what they asked for, and the latest calls of all programs over MCP.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, number};
use engine::assistants;
use serde::Deserialize;
use store::assistants::Assistant;
use store::assistants::calls::Call;
use uuid::Uuid;

use super::flash::flashes;
use super::layout::Layout;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query, blank_is_none};
use crate::app::App;

pub(super) const HERE: &str = "/settings/assistants";
const CALLS: i64 = 50;

#[derive(Template)]
#[template(path = "assistants.html")]
struct AssistantsPage {
    layout: Layout,
    flash: &'static str,
    rows: Vec<Row>,
    revoked: Vec<Row>,
    calls: Vec<CallRow>,
    /// Where the next page of calls begins.
    older: Option<String>,
    csrf: String,
}

struct Row {
    id: String,
    href: String,
    name: String,
    place: String,
    whose: String,
    scopes: String,
    asked: String,
    used: When,
    since: When,
    revoked: When,
    why: &'static str,
}

impl Row {
    fn new(assistant: &Assistant, now: DateTime<Utc>) -> Self {
        let asked: Vec<String> =
            assistant.asked().iter().take(6).map(|asked| format!("{} {}", number(asked.n), asked.tool)).collect();
        Self {
            id: assistant.id.to_string(),
            href: format!("{HERE}/{}/revoke", assistant.id),
            name: clipped(&assistant.client_name, 80),
            place: clipped(&assistant.redirect_host, 80),
            whose: assistant.whose().map_or_else(|| "a key of nobody’s".into(), |name| clipped(&name, 80)),
            scopes: assistant.scopes.join(", "),
            asked: if asked.is_empty() { "nothing in 30 days".into() } else { asked.join(", ") },
            used: When::maybe(assistant.last_used_at, now),
            since: When::new(assistant.created_at, now),
            revoked: When::maybe(assistant.revoked_at, now),
            why: match assistant.revoked_by.as_deref() {
                Some("reuse") => "A code or token was used twice, so somebody else may have had it.",
                Some("client") => "The program gave its access back.",
                Some("key") => "The key with which it was let in is no longer good.",
                Some(_) => "A person revoked it.",
                None => "",
            },
        }
    }
}

struct CallRow {
    id: String,
    who: String,
    tool: String,
    outcome: &'static str,
    took: String,
    hits: String,
    arguments: String,
    at: When,
}

impl CallRow {
    fn new(call: &Call, now: DateTime<Utc>) -> Self {
        Self {
            id: call.id.to_string(),
            who: clipped(&call.who, 60),
            tool: clipped(&call.tool, 40),
            outcome: match call.outcome.as_str() {
                "ok" => "answered",
                "refused" => "refused",
                "cancelled" => "given up by the program",
                _ => "failed",
            },
            took: format!("{} ms", number(call.duration_ms.into())),
            hits: call.n_hits.map_or_else(|| "–".into(), |n| number(n.into())),
            arguments: call
                .arguments
                .as_ref()
                .map(|arguments| clipped(&arguments.to_string(), 300))
                .unwrap_or_default(),
            at: When::new(call.at, now),
        }
    }
}

flashes! {
    Flash {
        Revoked = "revoked": "It was revoked. Every server refuses it within five seconds.",
        Gone = "gone": "It was revoked already.",
    }
}

#[derive(Deserialize)]
pub(crate) struct PageQuery {
    #[serde(default)]
    done: Flash,
    #[serde(default, deserialize_with = "blank_is_none")]
    before: Option<Uuid>,
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(query): Query<PageQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let now = app.env.clock.now();
    let listed = assistants::list(&app.env, &visitor).await?;
    let (calls, older) = assistants::called(&app.env, &visitor, None, query.before, CALLS).await?;
    let (revoked, good): (Vec<&Assistant>, Vec<&Assistant>) =
        listed.iter().partition(|assistant| assistant.revoked_at.is_some());
    let rows = |some: Vec<&Assistant>| some.into_iter().map(|assistant| Row::new(assistant, now)).collect();
    html(&AssistantsPage {
        layout: Layout::new(&visitor, now, "Assistants", HERE),
        flash: query.done.in_words(),
        rows: rows(good),
        revoked: rows(revoked),
        calls: calls.iter().map(|call| CallRow::new(call, now)).collect(),
        older: older.map(|id| format!("{HERE}?before={id}")),
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn revoke(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(domain::Scope::Read)?;
    match assistants::revoke(&app.env, &caller, id).await {
        Ok(key_id) => {
            app.callers.forget(key_id);
            Ok(Flash::Revoked.back(HERE))
        }
        Err(engine::ActError::NotFound(_)) => Ok(Flash::Gone.back(HERE)),
        Err(error) => Err(error.into()),
    }
}
