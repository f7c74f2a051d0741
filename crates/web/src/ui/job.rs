//! One job: what it does now, how far it is, what went wrong, and what it took.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::item::Action;
use domain::shown::{clipped, dollars, number, plural, span};
use domain::{JobId, JobStatus, Scope};
use engine::pull::words::{self, Trouble};
use engine::{ActError, jobs};
use serde::Deserialize;
use serde_json::Value;
use store::jobs::{Job, Spend};
use uuid::Uuid;

use super::card::Doing;
use super::flash::flashes;
use super::lane::Button;
use super::layout::Layout;
use super::sources;
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    layout: Layout,
    flash: &'static str,
    source: String,
    source_href: String,
    provider: String,
    class: &'static str,
    word: &'static str,
    story: String,
    todo: String,
    doing: Option<Doing>,
    /// The job will still change automatically.
    is_live: bool,
    note: String,
    facts: Vec<Fact>,
    troubles: Vec<TroubleRow>,
    spend: Vec<(&'static str, String)>,
    actions: Vec<Button>,
    csrf: String,
}

struct Fact {
    label: &'static str,
    text: String,
    times: Vec<When>,
}

/// A reason why a job did not go on for a while.
struct TroubleRow {
    kind: &'static str,
    what: String,
    at: Option<When>,
}

/// A job in a table.
pub(super) struct JobRow {
    pub id: String,
    pub href: String,
    pub kind: String,
    pub class: &'static str,
    pub word: &'static str,
    pub asked: String,
    pub begun: When,
    pub took: String,
    pub records: String,
    /// Records that could not be read; empty: none.
    pub failed: String,
    /// The reason why it failed, or its current step; empty: it went well.
    pub why: String,
}

impl JobRow {
    pub fn new(who: &str, job: &Job, now: DateTime<Utc>) -> Self {
        let (class, word) = state(job.status);
        let why = match words::of_job(who, job) {
            Some(Trouble { what, .. }) => what,
            None => job.step.clone().map(|step| sentence(&step)).or(job.note.clone()).unwrap_or_default(),
        };
        Self {
            id: job.id.to_string(),
            href: format!("/jobs/{}", job.id),
            kind: sentence(words::kind(job.kind)),
            class,
            word,
            asked: clipped(words::asked_by(job), 60),
            begun: When::new(job.started_at.unwrap_or(job.created_at), now),
            took: secs(job, now).map(span).unwrap_or_default(),
            records: number(job.items_processed),
            failed: match words::records_failed(job) {
                0 => String::new(),
                n => number(n),
            },
            why: clipped(&why, 240),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct JobQuery {
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Retried = "retried": "It goes on where it stopped, with the next free worker.",
        Cancelled = "cancelled": "It was cancelled. What it has brought stays; Retry goes on from there.",
        Moved = "moved": "It had moved on meanwhile, or its source is not synced now, so nothing was changed.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<JobQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let job = jobs::get(&app.env, &visitor, JobId(id)).await?;
    let (now, source) = (app.env.clock.now(), clipped(&job.source_name, 100));
    let (class, word) = state(job.status);
    let is_live = !job.status.is_over();
    let Trouble { what, todo } = words::of_job(app.env.providers.label(&job.source_provider), &job)
        .filter(|_| job.status == JobStatus::Failed)
        .unwrap_or(Trouble { what: story(job.status).into(), todo: String::new() });
    html(&JobPage {
        layout: Layout::new(&visitor, now, format!("Sync of {}", clipped(&source, 60)), sources::HERE),
        flash: query.done.in_words(),
        source_href: format!("{}/{}", sources::HERE, job.source_id),
        source,
        provider: app.env.providers.label(&job.source_provider).to_owned(),
        class,
        word,
        story: what,
        todo,
        doing: is_live.then(|| doing(&job, now)),
        is_live,
        note: job.note.as_deref().map(|note| sentence(&clipped(note, 400))).unwrap_or_default(),
        facts: facts(&job, now),
        troubles: troubles(&job.error_details, now),
        spend: spend(&Spend::from(&job)),
        actions: if visitor.may(Scope::Write) { actions(&job) } else { Vec::new() },
        csrf: visitor.csrf(),
    })
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, Action)>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    let (id, here) = (JobId(id), format!("/jobs/{id}"));
    let (done, flash) = match action {
        Action::Retry => (jobs::retry(&app.env, &caller, id).await, Flash::Retried),
        Action::Cancel => (jobs::cancel(&app.env, &caller, id).await, Flash::Cancelled),
        Action::Skip => return Err(ApiError::NotFound("page")),
    };
    match done {
        Ok(()) => Ok(flash.back(&here)),
        Err(ActError::Conflict(_)) => Ok(Flash::Moved.back(&here)),
        Err(error) => Err(error.into()),
    }
}

/// Its status as a coloured word.
fn state(status: JobStatus) -> (&'static str, &'static str) {
    match status {
        JobStatus::Pending => ("waiting", "waiting"),
        JobStatus::Running => ("working", "running"),
        JobStatus::Completed => ("completed", "completed"),
        JobStatus::Failed => ("dead", "failed"),
        JobStatus::Paused => ("parked", "paused"),
        JobStatus::Cancelled => ("cancelled", "cancelled"),
    }
}

fn story(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "It waits for its turn.",
        JobStatus::Running => "A worker runs it. If that worker dies, another goes on from the last page.",
        JobStatus::Completed => "Finished.",
        JobStatus::Failed => "It was given up. The records read until then are kept; Retry goes on where it stopped.",
        JobStatus::Paused => "It is stopped, and goes on from there when its source is resumed.",
        JobStatus::Cancelled => "A person ended it. The records read until then are kept.",
    }
}

/// Says what a live job does now, and how far it is.
pub(super) fn doing(job: &Job, now: DateTime<Utc>) -> Doing {
    let status = job.status;
    let words = match (&job.step, status) {
        (_, JobStatus::Paused) => "Paused".to_owned(),
        (Some(step), _) => sentence(&clipped(step, 300)),
        (None, JobStatus::Pending) => "Waits for a free worker".to_owned(),
        (None, _) => "Begins".to_owned(),
    };
    let so_far = match (job.items_processed, job.items_total) {
        (0, _) => String::new(),
        (n, Some(total)) if total > 0 => format!("{} of {}", number(n), plural(total, "record", "records")),
        (n, _) => format!("{} so far", plural(n, "record", "records")),
    };
    let rate = rate(job, now).filter(|_| status == JobStatus::Running).map(|rate| format!("{rate} a second"));
    let note: Vec<String> = [Some(so_far).filter(|words| !words.is_empty()), rate].into_iter().flatten().collect();
    Doing {
        words,
        note: note.join(", "),
        times: Vec::new(),
        // One that waits says why, if it was stopped by something.
        is_moving: status == JobStatus::Running || (status == JobStatus::Pending && job.step.is_none()),
    }
}

fn facts(job: &Job, now: DateTime<Utc>) -> Vec<Fact> {
    let text = |label, text: String| Some(Fact { label, text, times: Vec::new() });
    let time = |label, at: Option<DateTime<Utc>>| {
        at.map(|at| Fact { label, text: String::new(), times: vec![When::new(at, now)] })
    };
    let some = |label, n: i64| if n == 0 { None } else { text(label, number(n)) };
    [
        text("Reads", words::kind(job.kind).to_owned()),
        text("Records so far", number(job.items_processed)).filter(|_| !job.status.is_over()),
        text("Records read", number(job.items_processed)).filter(|_| job.status.is_over()),
        some("New", job.n_created),
        some("Changed", job.n_updated),
        some("Unchanged", job.n_unchanged),
        some("Deleted", job.n_deleted),
        some("Kept out, as a person deleted them", job.n_kept_out),
        some("Could not be read", words::records_failed(job)),
        some("Failed attempts", job.error_count.into()),
        time("Asked for", Some(job.created_at)),
        text("By", clipped(words::asked_by(job), 60)),
        time("Began", job.started_at),
        time("Ended", job.finished_at),
        secs(job, now).and_then(|secs| text("Took", span(secs))),
        rate(job, now).and_then(|rate| text("Records a second", rate)),
        time("Last sign of life", job.last_heartbeat.filter(|_| !job.status.is_over())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The seconds it took, or has taken so far; none before it began.
fn secs(job: &Job, now: DateTime<Utc>) -> Option<i64> {
    let began = job.started_at?;
    Some((job.finished_at.unwrap_or(now) - began).num_seconds().max(0))
}

/// Records a second, waits included.
fn rate(job: &Job, now: DateTime<Utc>) -> Option<String> {
    let millis = (job.finished_at.unwrap_or(now) - job.started_at?).num_milliseconds();
    if millis <= 0 || job.items_processed == 0 {
        return None;
    }
    Some(domain::shown::rate(job.items_processed as f64 * 1_000.0 / millis as f64))
}

/// The newest first.
fn troubles(details: &Value, now: DateTime<Utc>) -> Vec<TroubleRow> {
    let row = |detail: &Value| {
        let said = |name: &str| detail.get(name).and_then(Value::as_str).unwrap_or_default();
        TroubleRow {
            kind: match said("kind") {
                "rate_limited" => "Asked to wait",
                "provider" => "The provider was in trouble",
                "unreadable" => "An answer that is none",
                "cursor" => "Our place was lost",
                "unauthorized" => "A token was refused",
                "token" => "No token",
                "forbidden" => "Refused",
                _ => "Here",
            },
            what: sentence(&clipped(said("what"), 400)),
            at: said("at").parse().ok().map(|at| When::new(at, now)),
        }
    };
    details.as_array().into_iter().flatten().rev().map(row).collect()
}

/// Says what embedding took.
pub(super) fn spend(spend: &Spend) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("Embedding calls", number(spend.embed_calls)),
        ("Texts", number(spend.embed_texts)),
        ("Tokens, about", number(spend.embed_tokens)),
        ("Cost, about", dollars(spend.cost_micros)),
    ];
    rows.extend(spend.per_thousand().map(|micros| ("Per 1,000 documents", dollars(micros))));
    rows
}

fn actions(job: &Job) -> Vec<Button> {
    let button = |label, action: Action| vec![Button { label, href: format!("/jobs/{}/{}", job.id, action.as_str()) }];
    match job.status {
        JobStatus::Failed | JobStatus::Cancelled => button("Retry", Action::Retry),
        JobStatus::Completed => Vec::new(),
        _ => button("Cancel", Action::Cancel),
    }
}

pub(super) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use serde_json::json;

    use super::super::sources::tests::{job, now};
    use super::*;

    #[test]
    fn a_running_job_says_what_it_does_and_how_far_it_is() {
        let running = Job {
            step: Some("reads everything that HubSpot has".into()),
            items_processed: 1_234,
            started_at: Some(now() - TimeDelta::seconds(20)),
            ..job(JobStatus::Running)
        };
        let told = doing(&running, now());
        assert_eq!(told.words, "Reads everything that HubSpot has");
        assert_eq!(told.note, "1,234 records so far, 62 a second");
        assert!(told.is_moving);
        let counted = Job { items_total: Some(2_000), ..running };
        assert!(doing(&counted, now()).note.starts_with("1,234 of 2,000 records"), "{}", doing(&counted, now()).note);
    }

    #[test]
    fn failed_attempts_are_no_records() {
        let told = |items_failed, error_count| {
            let job = Job { items_failed, error_count, ..job(JobStatus::Completed) };
            let of = |label| facts(&job, now()).into_iter().find(|fact| fact.label == label).map(|fact| fact.text);
            (of("Could not be read"), of("Failed attempts"), JobRow::new("HubSpot", &job, now()).failed)
        };
        assert_eq!(told(2, 2), (None, Some("2".into()), String::new()));
        assert_eq!(told(3, 1), (Some("2".into()), Some("1".into()), "2".into()));
        assert_eq!(told(0, 0), (None, None, String::new()));
    }

    #[test]
    fn a_job_that_waits_says_for_what() {
        let waits = Job { step: Some("HubSpot asked us to wait 30 s".into()), ..job(JobStatus::Pending) };
        let told = doing(&waits, now());
        assert_eq!((told.words.as_str(), told.is_moving), ("HubSpot asked us to wait 30 s", false));
        let new = doing(&job(JobStatus::Pending), now());
        assert_eq!((new.words.as_str(), new.is_moving), ("Waits for a free worker", true));
    }

    #[test]
    fn slow_jobs_have_their_rate_with_a_decimal_and_unbegun_ones_none() {
        let took = |n, millis| Job {
            items_processed: n,
            started_at: Some(now() - TimeDelta::milliseconds(millis)),
            finished_at: Some(now()),
            ..job(JobStatus::Completed)
        };
        assert_eq!(rate(&took(6, 4_000), now()).as_deref(), Some("1.5"));
        assert_eq!(rate(&took(5_000, 2_000), now()).as_deref(), Some("2,500"));
        assert_eq!(rate(&took(0, 2_000), now()), None);
        assert_eq!(rate(&job(JobStatus::Pending), now()), None);
    }

    #[test]
    fn troubles_are_told_newest_first_whatever_is_in_them() {
        let details = json!([
            { "at": "2026-11-15T11:59:00Z", "kind": "rate_limited", "what": "HubSpot asked us to wait 30 s" },
            { "kind": "new", "what": "something else" },
            "odd",
        ]);
        let rows = troubles(&details, now());
        let told: Vec<_> = rows.iter().map(|row| (row.kind, row.what.as_str(), row.at.is_some())).collect();
        assert_eq!(
            told,
            [
                ("Here", "", false),
                ("Here", "Something else", false),
                ("Asked to wait", "HubSpot asked us to wait 30 s", true)
            ]
        );
        assert!(troubles(&json!({}), now()).is_empty());
    }

    #[test]
    fn spend_is_told_per_thousand_where_there_is_something_to_divide_by() {
        let none = Spend::default();
        assert_eq!(spend(&none).last(), Some(&("Cost, about", "nothing".to_owned())));
        let some = Spend { cost_micros: 4_000, documents: 2_000, ..none };
        assert_eq!(spend(&some).last(), Some(&("Per 1,000 documents", "$0.0020".to_owned())));
    }
}
