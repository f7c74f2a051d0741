//! Alerts on Home: one line for each kind of trouble, with what can be done about it there.

use axum::extract::State;
use axum::response::Response;
use domain::Scope;
use domain::shown::{capitalised, clipped};
use engine::ActError;
use engine::findings::{self, Group};
use engine::sources::Watched;
use serde::Deserialize;
use store::alerts::Finding;

use super::Posted;
use super::flash::flashes;
use super::sources::reconnect;
use super::text::with_code;
use crate::api::error::ApiError;
use crate::api::extract::Path;
use crate::app::App;

/// A kind of trouble, in one line.
pub(super) struct AlertRow {
    pub kind: &'static str,
    /// Drawn as broken or waiting.
    pub tone: &'static str,
    pub what: String,
    /// The action to take, in parts; true for a part that a person types.
    pub todo: Vec<(bool, String)>,
    /// A link that acts, or leads to where one acts.
    pub link: Option<(String, String)>,
    /// The words on the button that acts on all of them.
    pub retry: Option<&'static str>,
    /// Each of several, with its own link.
    pub each: Vec<(String, Option<(String, String)>)>,
}

impl AlertRow {
    /// An alert names no source, since a name may be somebody's address; this page does.
    pub fn new(app: &App, group: &Group, watched: &[Watched]) -> Self {
        let link = |finding: &Finding| {
            let is_meant = |watched: &&Watched| watched.source.id.to_string() == finding.subject;
            let source = watched.iter().find(is_meant).map(|watched| &watched.source);
            let again = source.filter(|_| finding.kind == "source_reconnect").and_then(|source| reconnect(app, source));
            again.map(|href| (href, "Reconnect".to_owned())).or_else(|| {
                let name = source.map(|source| clipped(&source.name, 100));
                place(finding.kind, &finding.subject).map(|(href, label)| (href, name.unwrap_or(label.to_owned())))
            })
        };
        let is_one = group.findings.len() == 1;
        let each = |finding: &Finding| (sentence(&finding.what), link(finding));
        Self {
            kind: group.kind,
            tone: if group.is_broken { "broken" } else { "waits" },
            what: sentence(&group.what),
            todo: with_code(&sentence(&group.todo)),
            link: match is_one {
                true => group.findings.first().and_then(link),
                false => all(group.kind).map(|(href, label)| (href.to_owned(), label.to_owned())),
            },
            retry: group.retry,
            each: if is_one { Vec::new() } else { group.findings.iter().map(each).collect() },
        }
    }
}

/// Where one finding is dealt with; none when that is not on a page.
fn place(kind: &str, subject: &str) -> Option<(String, &'static str)> {
    Some(match kind {
        "dead_letters" => ("/system/dead-letters".to_owned(), "Dead letters"),
        "dead_items" => (format!("/system/queues/{subject}?state=dead"), "Show them"),
        "worker_dead" | "worker_stalled" | "no_worker" => ("/system/workers".to_owned(), "Workers"),
        "schedule_late" | "schedule_failing" => ("/system/schedules".to_owned(), "Schedules"),
        "channel_refuses" => (format!("/connections/webhooks/{subject}#refusals"), "What it refused"),
        "source_reconnect" | "source_error" | "mail_differs" => (format!("/connections/accounts/{subject}"), "Open it"),
        "sync_failed" => (format!("/jobs/{subject}"), "Open it"),
        "memory_model" | "memory_stuck" => ("/settings/spend#model".to_owned(), "Search model"),
        "budget_spent" | "embedding_price" => ("/settings/spend".to_owned(), "Spend"),
        "provider_client" => ("/connections/accounts".to_owned(), "Accounts"),
        "activities_held" => ("/system/agents".to_owned(), "Agents"),
        _ => return None,
    })
}

/// Where several findings of a kind are dealt with.
fn all(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "dead_items" => ("/system/queues", "Queues"),
        "worker_dead" | "worker_stalled" => ("/system/workers", "Workers"),
        "schedule_late" | "schedule_failing" => ("/system/schedules", "Schedules"),
        "channel_refuses" => ("/connections/webhooks", "Webhooks"),
        "source_reconnect" | "source_error" | "sync_failed" | "provider_client" | "mail_differs" => {
            ("/connections/accounts", "Accounts")
        }
        _ => return None,
    })
}

/// The first letter of a sentence is a capital.
fn sentence(text: &str) -> String {
    capitalised(&clipped(text, 400))
}

flashes! {
    Flash {
        Retried = "retried": "Everything that was given up is being tried again.",
        Fetched = "fetched": "These letters are being read. Their days are counted again after it.",
        Part = "part": "A part of it is being tried again. Press Retry all once more for the rest.",
        Moved = "moved": "Nothing was left to try again.",
        Dismissed = "dismissed": "Dismissed for a day. It is shown again earlier if it goes away and comes back.",
        Restored = "restored": "It is shown again.",
        Samples = "samples": "Sample data is being read. It can be searched while it arrives.",
    }
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

/// Retries, dismisses or shows again all findings of a kind.
pub(crate) async fn act(
    State(app): State<App>,
    Path((kind, action)): Path<(String, String)>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    let flash = match action.as_str() {
        "retry" => match findings::retry(&app.env, &caller, &kind).await? {
            0 => Flash::Moved,
            n if n >= findings::MOST_AT_ONCE => Flash::Part,
            _ if kind == "mail_differs" => Flash::Fetched,
            _ => Flash::Retried,
        },
        "dismiss" => gone_is(findings::dismiss(&app.env, &caller, &kind).await, Flash::Dismissed)?,
        "restore" => gone_is(findings::restore(&app.env, &caller, &kind).await, Flash::Restored)?,
        _ => return Err(ApiError::NotFound("page")),
    };
    Ok(flash.back("/"))
}

/// Counts a finding that is no longer there as done.
fn gone_is(done: Result<(), ActError>, flash: Flash) -> Result<Flash, ApiError> {
    match done {
        Ok(()) | Err(ActError::NotFound(_)) => Ok(flash),
        Err(error) => Err(error.into()),
    }
}

/// Connects the sample data of all providers.
pub(crate) async fn add_samples(State(app): State<App>, posted: Posted<Nothing>) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    engine::sources::connect_samples(&app.env, &caller).await?;
    Ok(Flash::Samples.back("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_leads_to_where_it_is_dealt_with() {
        assert_eq!(place("dead_items", "upkeep"), Some(("/system/queues/upkeep?state=dead".to_owned(), "Show them")));
        assert_eq!(place("source_reconnect", "7"), Some(("/connections/accounts/7".to_owned(), "Open it")));
        assert_eq!(place("long_transaction", "pid 7"), None);
        assert_eq!(all("source_reconnect"), Some(("/connections/accounts", "Accounts")));
    }

    #[test]
    fn a_sentence_begins_with_a_capital_whatever_its_letter() {
        assert_eq!((sentence("été"), sentence("2 items"), sentence("")), ("Été".into(), "2 items".into(), "".into()));
    }
}
