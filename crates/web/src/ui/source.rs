//! One source: how it is and what to do, what it brought and what that took, what could not be read, and what happened.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::{JobKind, Provider, Scope, SourceId, SourceStatus};
use engine::pull::jobs::Asked;
use serde::Deserialize;
use store::forgotten::{self, Counted};
use store::jobs::{self, Failure, Filter};
use store::sources::{self as accounts, Source};
use uuid::Uuid;

use super::channels::given;
use super::flash::flashes;
use super::job::{JobRow, spend};
use super::layout::Layout;
use super::sources::{self, EventRow, HERE, SourceCard, is_synced, reconnect, watch};
use super::text::{When, clipped, number, plural, shown_lines, span};
use super::{Posted, Visitor, html};
use crate::api::auth::Caller;
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::api::sources::{AddSource, add, leave_out, let_go, load, read_again, set_paused, start_sync};
use crate::app::{App, DB_LIMIT};

const JOBS: i64 = 20;
const FAILURES: i64 = 50;
const EVENTS: i64 = 20;

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage {
    layout: Layout,
    flash: &'static str,
    card: SourceCard,
    facts: Vec<(&'static str, String)>,
    times: Vec<(&'static str, When)>,
    /// What a person may do now.
    can: Can,
    /// What forgetting it would remove.
    forgets: String,
    types: Vec<(String, String)>,
    spend: Vec<(&'static str, String)>,
    jobs: Vec<JobRow>,
    failures: Vec<FailureRow>,
    events: Vec<EventRow>,
    may_act: bool,
    csrf: String,
}

struct Can {
    sync: bool,
    pause: bool,
    resume: bool,
    disconnect: bool,
    /// Allow it again by the provider's own pages.
    reconnect: Option<String>,
    take_key: bool,
    /// It waits for that.
    needs_key: bool,
}

struct FailureRow {
    external_id: String,
    reason: String,
    times: String,
    at: When,
    payload: String,
    is_skipped: bool,
    /// It is a record: what was no record at all is tried again with its page.
    can_retry: bool,
}

#[derive(Deserialize)]
pub(crate) struct SourceQuery {
    #[serde(default)]
    done: Flash,
}

flashes! {
    Flash {
        Connected = "connected": "It is connected. What it has is being read; this page follows by itself.",
        Syncing = "syncing": "A sync was started.",
        Running = "running": "A sync is under way already.",
        Paused = "paused": "It is paused. What runs stops at its next page.",
        Resumed = "resumed": "It goes on where it stopped.",
        Disconnected = "disconnected": "It is disconnected and its tokens are removed. What it brought is kept.",
        Retried = "retried": "The record is read again, by a job of its own.",
        Busy = "busy": "A sync is under way, which may read it. Try again when it has ended.",
        Skipped = "skipped": "The record is left out.",
        Moved = "moved": "It had changed meanwhile, so nothing was done. This is how it is now.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<SourceQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let (id, tenant_id) = (SourceId(id), visitor.tenant_id);
    let loaded = store::within(DB_LIMIT, async {
        let Some(watched) = watch(&app, &visitor, Some(id)).await?.pop() else { return Ok(None) };
        let mut tx = app.env.db.begin_as(&visitor).await?;
        let counts = accounts::counts(&mut tx, tenant_id, id).await?;
        let spend = jobs::spend(&mut tx, tenant_id, id).await?;
        let of_source = Filter { source_id: Some(id), limit: JOBS, ..Filter::default() };
        let listed = jobs::list(&mut tx, tenant_id, of_source).await?;
        let failures = jobs::failures(&mut tx, tenant_id, id, FAILURES).await?;
        let events = accounts::events(&mut tx, tenant_id, Some(id), EVENTS).await?;
        let counted = forgotten::count(&mut tx, tenant_id, id).await?;
        Ok(Some((watched, counts, spend, listed, failures, events, counted)))
    });
    let loaded = loaded.await?.ok_or(ApiError::NotFound("source"))?;
    let (watched, counts, spent, listed, failures, events, counted) = loaded;
    let now = app.env.clock.now();
    let card = SourceCard::new(&app, &watched, now);
    let (source, may_act) = (&watched.source, visitor.may(Scope::Write) && !watched.is_being_forgotten);
    html(&SourcePage {
        layout: Layout::new(&visitor, now, format!("{} · Sources", clipped(&source.name, 60)), HERE),
        flash: query.done.in_words(),
        facts: facts(source),
        times: times(source, now),
        can: Can::new(&app, source),
        forgets: forgets(counted),
        types: counts.iter().map(|(kind, n)| (clipped(kind, 60), number(*n))).collect(),
        spend: spend(&spent),
        jobs: listed.iter().map(|job| JobRow::new(job, now)).collect(),
        failures: failures.iter().map(|failure| FailureRow::new(failure, now)).collect(),
        events: events.iter().map(|event| EventRow::new(event, now)).collect(),
        may_act,
        csrf: visitor.csrf(),
        card,
    })
}

impl Can {
    fn new(app: &App, source: &Source) -> Self {
        let status = source.status();
        let is_keyed = source.provider() == Some(Provider::Hubspot) && source.transport == "rest";
        let is_stopped = matches!(
            status,
            SourceStatus::TokenRefreshFailed | SourceStatus::SubscriptionExpired | SourceStatus::Disconnected
        );
        let reconnect = reconnect(app, source);
        Self {
            sync: is_synced(source),
            pause: is_synced(source),
            resume: status == SourceStatus::Paused,
            disconnect: status != SourceStatus::Disconnected,
            take_key: is_keyed,
            needs_key: is_keyed && is_stopped && reconnect.is_none(),
            reconnect,
        }
    }
}

fn facts(source: &Source) -> Vec<(&'static str, String)> {
    let read = match source.transport.as_str() {
        "mcp" => format!("{}'s MCP server", source.label()),
        "fixtures" => "sample data that ships with this program".into(),
        _ => format!("{}'s API", source.label()),
    };
    let account = source.account.as_deref().filter(|account| *account != source.name && source.transport != "fixtures");
    let account = account.map(|account| ("Account", clipped(account, 100)));
    let every = ("Synced every", span(source.sync_every_secs as i64));
    account.into_iter().chain([("Read from", read), every]).collect()
}

fn times(source: &Source, now: DateTime<Utc>) -> Vec<(&'static str, When)> {
    let times = [
        ("Connected", Some(source.created_at)),
        ("Last synced", source.last_successful_sync_at),
        ("Next sync", source.next_sync_at.filter(|_| is_synced(source))),
        ("Token good until", source.token_expires_at),
    ];
    times.into_iter().filter_map(|(label, at)| Some((label, When::new(at?, now)))).collect()
}

fn forgets(counted: Counted) -> String {
    let Counted { documents, chunks, clients, jobs } = counted;
    format!(
        "{} in {}, {} and {}",
        plural(documents, "document", "documents"),
        plural(chunks, "chunk", "chunks"),
        plural(clients, "client", "clients"),
        plural(jobs, "job", "jobs")
    )
}

impl FailureRow {
    fn new(failure: &Failure, now: DateTime<Utc>) -> Self {
        let payload = failure.payload.as_ref().filter(|payload| !payload.is_null());
        Self {
            external_id: failure.external_id.clone(),
            reason: clipped(&failure.reason, 300),
            times: if failure.n_failed > 1 { format!("{}×", number(failure.n_failed.into())) } else { String::new() },
            at: When::new(failure.failed_at, now),
            payload: payload
                .map(|payload| shown_lines(&serde_json::to_string_pretty(payload).unwrap_or_default()))
                .map(|text| super::document::cut(&text, 5_000))
                .unwrap_or_default(),
            is_skipped: failure.skipped_at.is_some(),
            can_retry: failure.external_id.contains(':') && failure.skipped_at.is_none(),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

/// sync, full, pause, resume, disconnect or forget.
pub(crate) async fn act(
    State(app): State<App>,
    Path((id, action)): Path<(Uuid, String)>,
    posted: Posted<Nothing>,
) -> Result<Response, ApiError> {
    let Posted { caller, form: Nothing {} } = posted;
    caller.need(Scope::Write)?;
    let (id, here) = (SourceId(id), format!("{HERE}/{id}"));
    match did(&app, &caller, id, &action).await {
        Ok(Some(flash)) => Ok(flash.back(&here)),
        Ok(None) => Ok(sources::Flash::Forgotten.back(HERE)),
        Err(ApiError::Conflict(_)) => Ok(Flash::Moved.back(&here)),
        Err(error) => Err(error),
    }
}

/// What the source's page says then; none when there will be no such page.
async fn did(app: &App, caller: &Caller, id: SourceId, action: &str) -> Result<Option<Flash>, ApiError> {
    Ok(Some(match action {
        "sync" | "full" => {
            let kind = (action == "full").then_some(JobKind::Full);
            match start_sync(app, caller, id, kind).await? {
                Asked::Started(_) => Flash::Syncing,
                Asked::Running(_) => Flash::Running,
            }
        }
        "pause" | "resume" => {
            let is_paused = action == "pause";
            set_paused(app, caller, id, is_paused).await?;
            if is_paused { Flash::Paused } else { Flash::Resumed }
        }
        "disconnect" => {
            let_go(app, caller, id, false).await?;
            Flash::Disconnected
        }
        "forget" => {
            let_go(app, caller, id, true).await?;
            return Ok(None);
        }
        _ => return Err(ApiError::NotFound("page")),
    }))
}

#[derive(Deserialize)]
pub(crate) struct KeyForm {
    #[serde(default)]
    key: String,
}

/// A new key of the same account.
pub(crate) async fn replace_key(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<KeyForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let source = load(&app, &caller, SourceId(id)).await?;
    let provider = source.provider().ok_or(ApiError::NotFound("source"))?;
    let key = given(form.key);
    if key.is_none() {
        return Ok(Flash::Nothing.back(&format!("{HERE}/{id}")));
    }
    let new = AddSource { provider, key, fixtures: false, transport: None, source_id: Some(id) };
    add(&app, &caller, new).await?;
    Ok(Flash::Connected.back(&format!("{HERE}/{id}")))
}

#[derive(Deserialize)]
pub(crate) struct DecideForm {
    external_id: String,
    action: Decision,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Retry,
    Skip,
}

/// What becomes of a record that could not be read.
pub(crate) async fn decide(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<DecideForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (id, here) = (SourceId(id), format!("{HERE}/{id}"));
    let flash = match form.action {
        Decision::Retry => match read_again(&app, &caller, id, form.external_id).await {
            Ok(_) => Flash::Retried,
            Err(ApiError::Conflict(_)) => Flash::Busy,
            Err(ApiError::NotFound(_)) => Flash::Moved,
            Err(error) => return Err(error),
        },
        Decision::Skip => match leave_out(&app, &caller, id, &form.external_id).await {
            Ok(()) => Flash::Skipped,
            Err(ApiError::NotFound(_)) => Flash::Moved,
            Err(error) => return Err(error),
        },
    };
    Ok(flash.back(&here))
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::{now, source};
    use super::*;

    #[test]
    fn forgetting_counts_what_goes() {
        let counted = Counted { documents: 1_204, chunks: 3_400, clients: 1, jobs: 2 };
        assert_eq!(forgets(counted), "1,204 documents in 3,400 chunks, 1 client and 2 jobs");
    }

    #[test]
    fn the_next_sync_of_a_source_that_is_not_synced_is_not_promised() {
        let next = |status| {
            let source = Source { next_sync_at: Some(now()), ..source(status, None) };
            times(&source, now()).iter().any(|(label, _)| *label == "Next sync")
        };
        assert!(next(SourceStatus::Active));
        assert!(!next(SourceStatus::Paused) && !next(SourceStatus::TokenRefreshFailed));
    }

    #[test]
    fn only_records_can_be_read_again() {
        let row = |external_id: &str| {
            let failure = Failure {
                external_id: external_id.into(),
                job_id: None,
                reason: "it has no id".into(),
                payload: Some(serde_json::json!({ "a": 1 })),
                n_failed: 3,
                failed_at: now(),
                skipped_at: None,
            };
            FailureRow::new(&failure, now())
        };
        assert!(row("contact:51").can_retry && !row("answer").can_retry);
        assert_eq!((row("contact:51").times.as_str(), row("contact:51").payload.as_str()), ("3×", "{\n  \"a\": 1\n}"));
    }
}
