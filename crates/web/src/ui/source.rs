//! One source: how it is and what to do, what it brought and what that took, what could not be read, and what happened.

use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::shown::{clipped, interval, number, shown_lines};
use domain::{JobKind, Scope, SourceId, SourceStatus, Transport};
use engine::failures::{self, Again};
use engine::pull::is_named;
use engine::pull::jobs::Asked;
use engine::pull::spec::Key;
use engine::pull::words::changes::{changes, until};
use engine::pull::words::facts::type_in_words;
use engine::pull::words::{cadence, is_synced, next_sync, read_by};
use engine::sources::{self, NewSource};
use engine::{ActError, Env};
use serde::Deserialize;
use store::failures::Failure;
use store::forgotten::{self, Subject};
use store::jobs::{self, Filter};
use store::memory::documents;
use store::sources::{self as accounts, Source};
use uuid::Uuid;

use super::channels::given;
use super::flash::flashes;
use super::flow::NewestRow;
use super::job::{JobRow, spend};
use super::layout::Layout;
use super::mailbox::{self, MailboxPart, MailboxQuery};
use super::sources::{EventRow, HERE, SourceCard, is_stopped, reconnect};
use super::text::When;
use super::{Posted, Visitor, html};
use crate::api::auth::Caller;
use crate::api::error::ApiError;
use crate::api::extract::{Path, Query};
use crate::app::App;

const DOCUMENTS: i64 = 10;
const JOBS: i64 = 20;
const FAILURES: i64 = 50;
const EVENTS: i64 = 20;

#[derive(Template)]
#[template(path = "source.html")]
struct SourcePage {
    layout: Layout,
    flash: Flash,
    card: SourceCard,
    facts: Vec<(&'static str, String)>,
    times: Vec<(&'static str, When)>,
    /// Says what is chosen there.
    cadence_label: String,
    cadences: Vec<Cadence>,
    /// The acts that a person may do now.
    can: Can,
    /// Says how much forgetting it would remove.
    forgets: String,
    may_forget: bool,
    types: Vec<(String, String)>,
    documents: Vec<NewestRow>,
    spend: Vec<(&'static str, String)>,
    jobs: Vec<JobRow>,
    failures: Vec<FailureRow>,
    /// The number of them that are shown; empty: all.
    shown: String,
    /// More than one of them can be read again.
    can_retry_all: bool,
    events: Vec<EventRow>,
    /// The part that only a mailbox has.
    mailbox: Option<MailboxPart>,
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
    take_key: Option<&'static Key>,
    /// It waits for that.
    needs_key: bool,
    /// It is sample data, which can be connected again.
    connect_sample: bool,
}

/// A sync interval that can be chosen.
struct Cadence {
    value: String,
    label: String,
    is_chosen: bool,
}

struct FailureRow {
    external_id: String,
    reason: String,
    times: String,
    at: When,
    payload: String,
    is_skipped: bool,
    /// It has an id to ask by: what has none is tried again by the next full sync.
    is_named: bool,
}

#[derive(Deserialize)]
pub(crate) struct SourceQuery {
    #[serde(default)]
    done: Flash,
    #[serde(flatten)]
    mailbox: MailboxQuery,
}

flashes! {
    Flash {
        Connected = "connected": "It is connected. Its records are being read; this page updates automatically.",
        Syncing = "syncing": "A sync was started.",
        Running = "running": "A sync is under way already. It will run again after this one.",
        Paused = "paused": "It is paused. A running sync stops after its page.",
        Resumed = "resumed": "It goes on where it stopped.",
        Disconnected = "disconnected": "It is disconnected and its tokens are removed. Its documents are kept.",
        Retried = "retried": "What could not be read is read again, by a job of its own.",
        RetriedSome = "retried-some": "The latest 500 are read again, by a job of their own. Ask for the others once it has ended.",
        Busy = "busy": "A sync is under way. What could not be read is read again after it.",
        BusyForSome = "busy-for-some": "A sync is under way. 500 records are read again after it. Ask for the others once that has ended.",
        NotSynced = "not-synced": "It is not synced now, so nothing was read.",
        Nameless = "nameless": "It has no id to ask for it by: the next full sync tries it again.",
        Skipped = "skipped": "The record is left out.",
        Cadence = "cadence": "It is synced that often from now on.",
        Counting = "counting": "Its provider is being asked. The days are counted in a moment.",
        Fetching = "fetching": "What differs is being read. The day is counted again after it.",
        Places = "places": "Saved. Everything is read again, in these places.",
        NoPlace = "no-place": "Nothing was changed: at least one place is read. Pause the mailbox to read none.",
        RuleOn = "rule-on": "It is on: it is asked about messages that come from now on.",
        RuleOff = "rule-off": "It is off. What it has left out stays out until you let it in.",
        RuleAdded = "rule-added": "It was added, and is asked about messages that come from now on.",
        RuleRemoved = "rule-removed": "It was removed. What it has left out stays out until you let it in.",
        NoRule = "no-rule": "Nothing was added: a rule has a name, and names senders or words of a subject.",
        LetIn = "let-in": "It is let in, and read in a moment. No rule is asked about it any more.",
        RuleExists = "rule-exists": "Nothing was added: a rule has that name already.",
        LetInAll = "let-in-all": "They are let in, and read in a moment. No rule is asked about them any more.",
        LetInSome = "let-in-some": "The latest 500 are let in. Ask for the others once these have come.",
        NotNow = "not-now": "Nothing was done: the mailbox is not read now, or that is not possible for it.",
        Moved = "moved": "It had changed meanwhile, so nothing was done. This is how it is now.",
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<Uuid>,
    Query(query): Query<SourceQuery>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let (id, tenant_id) = (SourceId(id), visitor.tenant_id);
    let watched = sources::watch(&app.env, &visitor, Some(id)).await?.pop().ok_or(ApiError::NotFound("source"))?;
    let loaded = app.env.db.read(&visitor, async |tx| {
        let counts = accounts::counts(tx, tenant_id, id).await?;
        let newest = documents::of_source(tx, id, DOCUMENTS).await?;
        let spend = jobs::spend(tx, tenant_id, id).await?;
        let of_source = Filter { source_id: Some(id), limit: JOBS, ..Filter::default() };
        let listed = jobs::list(tx, tenant_id, of_source).await?;
        let failed = store::failures::list(tx, tenant_id, id, FAILURES).await?;
        let n_failed = store::failures::count(tx, tenant_id, id).await?;
        let events = accounts::events(tx, tenant_id, id, EVENTS).await?;
        let counted = forgotten::count(tx, tenant_id, Subject::Source(id)).await?;
        Ok(((counts, newest), spend, listed, (failed, n_failed), events, counted))
    });
    let ((counts, newest), spent, listed, (failed, n_failed), events, counted) = loaded.await?;
    let now = app.env.clock.now();
    let card = SourceCard::new(&app, &watched, now);
    let (source, may_act) = (&watched.source, visitor.may(Scope::Write) && !watched.is_being_forgotten);
    let is_live = headers.get("x-requested-with").is_some_and(|by| by == "live");
    let mailbox = mailbox::load(&app, &visitor, source, &query.mailbox, is_live).await?;
    let failures: Vec<FailureRow> = failed.iter().map(|failure| FailureRow::new(failure, now)).collect();
    html(&SourcePage {
        layout: Layout::new(&visitor, now, format!("{} · Accounts", clipped(&source.name, 60)), HERE),
        flash: query.done,
        facts: facts(&app.env, source),
        times: times(source, now),
        cadence_label: match changes(&app.env, source) {
            Some(_) => format!("How often it is asked while {} does not tell of changes", card.provider),
            None => "How often it is synced".into(),
        },
        cadences: cadences(source),
        can: Can::new(&app, source),
        forgets: engine::forgetting::counted(&counted),
        may_forget: visitor.may(Scope::Service),
        types: counts.iter().map(|(kind, n)| (clipped(&type_in_words(kind), 60), number(*n))).collect(),
        documents: newest.iter().map(|document| NewestRow::remembered(document, now)).collect(),
        spend: spend(&spent),
        jobs: listed.iter().map(|job| JobRow::new(&card.provider, job, now)).collect(),
        shown: of_all(failures.len(), n_failed),
        can_retry_all: failures.iter().filter(|failure| failure.is_named && !failure.is_skipped).count() > 1,
        failures,
        events: events.iter().map(|event| EventRow::new(event, now)).collect(),
        mailbox,
        may_act,
        csrf: visitor.csrf(),
        card,
    })
}

impl Flash {
    /// The part of a mailbox's page that says it, where that is not the head: it is far down.
    pub fn part(self) -> Option<&'static str> {
        match self {
            Self::RuleOn | Self::RuleOff | Self::RuleAdded | Self::RuleRemoved | Self::NoRule | Self::RuleExists => {
                Some("#rules")
            }
            Self::LetIn | Self::LetInAll | Self::LetInSome => Some("#left-out"),
            _ => None,
        }
    }
}

impl Can {
    fn new(app: &App, source: &Source) -> Self {
        let status = source.status;
        let is_sample = source.transport == Transport::Fixtures;
        let provider = app.env.providers.named(&source.provider);
        let key = provider.ok().and_then(|provider| provider.key.as_ref()).filter(|_| !is_sample);
        let reconnect = reconnect(app, source);
        Self {
            sync: is_synced(source),
            pause: is_synced(source),
            resume: status == SourceStatus::Paused,
            disconnect: status != SourceStatus::Disconnected,
            take_key: key,
            needs_key: key.is_some() && is_stopped(source) && reconnect.is_none(),
            connect_sample: is_sample && is_stopped(source),
            reconnect,
        }
    }
}

fn facts(env: &Env, source: &Source) -> Vec<(&'static str, String)> {
    let account =
        source.account.as_deref().filter(|account| *account != source.name && source.transport != Transport::Fixtures);
    let account = account.map(|account| ("Account", clipped(account, 100)));
    let changes = match changes(env, source) {
        Some(changes) => ("Changes", changes),
        None => ("Synced every", interval(source.sync_every_secs as i64)),
    };
    account.into_iter().chain([("Read", read_by(source).to_owned()), changes]).collect()
}

fn times(source: &Source, now: DateTime<Utc>) -> Vec<(&'static str, When)> {
    let until = until(source, now);
    let times = [
        ("Connected", Some(source.created_at)),
        ("Last synced", source.last_successful_sync_at),
        (if until.is_some() { "Next sync, at the latest" } else { "Next sync" }, next_sync(source, now)),
        ("Token valid until", source.token_expires_at),
        ("Told of changes until", until.map(|(until, _)| until)),
        ("Renewed next", until.and_then(|(_, renewal)| renewal)),
        ("Last notice", source.last_notice_at),
    ];
    times.into_iter().filter_map(|(label, at)| Some((label, When::new(at?, now)))).collect()
}

/// The cadences that are offered, and the present one.
fn cadences(source: &Source) -> Vec<Cadence> {
    let now = Duration::try_from_secs_f64(source.sync_every_secs).unwrap_or_default();
    let offered = cadence::OFFERED.iter().filter_map(|text| cadence::parse(text).ok());
    let mut all: Vec<Duration> = offered.chain([now]).collect();
    all.sort();
    all.dedup();
    let choice = |every: Duration| Cadence {
        value: cadence::spelled(every),
        label: interval(i64::try_from(every.as_secs()).unwrap_or(i64::MAX)),
        is_chosen: every == now,
    };
    all.into_iter().map(choice).collect()
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
            is_named: is_named(&failure.external_id),
        }
    }
}

/// `50 of 312`, where not all are shown.
fn of_all(n_shown: usize, n: i64) -> String {
    let n_shown = i64::try_from(n_shown).unwrap_or(i64::MAX);
    if n_shown < n { format!("{} of {}", number(n_shown), number(n)) } else { String::new() }
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
    caller.need(if action == "forget" { Scope::Service } else { Scope::Write })?;
    let (id, here) = (SourceId(id), format!("{HERE}/{id}"));
    match did(&app.env, &caller, id, &action).await {
        Ok(Some(flash)) => Ok(flash.back(&here)),
        Ok(None) => Ok(super::sources::Flash::Forgotten.back(HERE)),
        Err(ActError::Conflict(_)) => Ok(Flash::Moved.back(&here)),
        Err(error) => Err(error.into()),
    }
}

/// Does the act; returns what the source's page says then, or none when there will be no such page.
async fn did(env: &Env, caller: &Caller, id: SourceId, action: &str) -> Result<Option<Flash>, ActError> {
    Ok(Some(match action {
        "sync" | "full" => {
            let kind = (action == "full").then_some(JobKind::Full);
            match sources::sync(env, caller, id, kind).await? {
                Asked::Started(_) => Flash::Syncing,
                Asked::Running(_) => Flash::Running,
            }
        }
        "pause" => sources::pause(env, caller, id).await.map(|()| Flash::Paused)?,
        "resume" => sources::resume(env, caller, id).await.map(|()| Flash::Resumed)?,
        "disconnect" => sources::disconnect(env, caller, id).await.map(|()| Flash::Disconnected)?,
        "forget" => {
            sources::forget(env, caller, id).await?;
            return Ok(None);
        }
        _ => return Err(ActError::NotFound("page")),
    }))
}

#[derive(Deserialize)]
pub(crate) struct CadenceForm {
    every: String,
}

/// Sets the interval between automatic syncs.
pub(crate) async fn set_cadence(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<CadenceForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let every = cadence::parse(&form.every).map_err(|what| ApiError::Malformed(StatusCode::BAD_REQUEST, what))?;
    sources::set_sync_every(&app.env, &caller, SourceId(id), every).await?;
    Ok(Flash::Cadence.back(&format!("{HERE}/{id}")))
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
    let source = sources::get(&app.env, &caller, SourceId(id)).await?;
    let key = given(form.key);
    if key.is_none() {
        return Ok(Flash::Nothing.back(&format!("{HERE}/{id}")));
    }
    let (provider, replaces) = (source.provider, Some(SourceId(id)));
    let new = NewSource { provider, key, fixtures: false, transport: None, replaces };
    sources::connect(&app.env, &caller, new).await?;
    Ok(Flash::Connected.back(&format!("{HERE}/{id}")))
}

#[derive(Deserialize)]
pub(crate) struct DecideForm {
    /// None of it: all.
    #[serde(default)]
    external_id: String,
    action: Decision,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Retry,
    RetryAll,
    Skip,
}

/// Decides about records that could not be read.
pub(crate) async fn decide(
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Posted { caller, form }: Posted<DecideForm>,
) -> Result<Response, ApiError> {
    caller.need(Scope::Write)?;
    let (id, here) = (SourceId(id), format!("{HERE}/{id}"));
    let DecideForm { external_id, action } = form;
    let decided = match action {
        Decision::Retry => failures::retry(&app.env, &caller, id, &external_id).await.map(Flash::from),
        Decision::RetryAll => failures::retry_all(&app.env, &caller, id).await.map(Flash::from),
        Decision::Skip => failures::skip(&app.env, &caller, id, &external_id).await.map(|()| Flash::Skipped),
    };
    match decided {
        Ok(flash) => Ok(flash.back(&here)),
        Err(ActError::Conflict(_)) => Ok(Flash::NotSynced.back(&here)),
        Err(ActError::NotFound(_)) => Ok(Flash::Moved.back(&here)),
        Err(error) => Err(error.into()),
    }
}

impl From<Again> for Flash {
    fn from(again: Again) -> Self {
        match again {
            Again::Started { left_out: 0, .. } => Self::Retried,
            Again::Started { .. } => Self::RetriedSome,
            Again::Running { left_out: 0, .. } => Self::Busy,
            Again::Running { .. } => Self::BusyForSome,
            Again::Unknown => Self::Moved,
            Again::Nameless => Self::Nameless,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sources::tests::{now, source};
    use super::*;

    #[test]
    fn how_often_it_is_synced_is_among_what_is_offered() {
        let offered = |sync_every_secs| {
            let source = Source { sync_every_secs, ..source(SourceStatus::Active, None) };
            let word = |choice: &Cadence| format!("{}{}", choice.label, if choice.is_chosen { " *" } else { "" });
            cadences(&source).iter().map(word).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(offered(86_400.0), "15 min, 1 h, 6 h, 1 d *, 7 d");
        assert_eq!(offered(7_200.0), "15 min, 1 h, 2 h *, 6 h, 1 d, 7 d");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        assert_eq!((of_all(50, 1_312).as_str(), of_all(3, 3).as_str(), of_all(0, 0).as_str()), ("50 of 1,312", "", ""));
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
    fn only_records_with_an_id_can_be_read_again() {
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
        assert!(row("contact:51").is_named && !row("answer").is_named && !row("contact:?1a2b3c4d").is_named);
        assert_eq!((row("contact:51").times.as_str(), row("contact:51").payload.as_str()), ("3×", "{\n  \"a\": 1\n}"));
    }
}
