//! The event stream: hints that something changed, so that a page looks again. Never the change itself.
//!
//! One [`crate::ring::Ring`] per process holds the last notices; each stream has only its place in it. When the ring has turned past a slow
//! reader's place it is told to look at everything (`resync`), as is one that comes back with an id we no longer know.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use domain::notice::DOCUMENTS;
use domain::{Notice, Op};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Caller, Hearing, authenticate_anew};
use super::document_events;
use super::error::{ApiError, Problem};
use super::extract::Query;
use crate::app::App;
use crate::ring::{Ring, Since};

/// The number of notices that the ring holds.
pub(crate) const RING: usize = 4_096;
/// The least time between two batches of one stream, in which identical notices are told once: a busy lane settles thousands of items a second.
const PAUSE: Duration = Duration::from_millis(20);
/// Streams at once, of one key and of one tenant: each is one of the server's connections.
const MOST_OF_KEY: usize = 256;
const MOST_OF_TENANT: usize = 1_024;
/// The time until a stream tries again to read what it tells of.
const RETRY: Duration = Duration::from_secs(1);
/// The interval at which a stream checks that its caller may still read.
const CHECK: Duration = Duration::from_secs(4);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Resume {
    /// The last event id of the previous stream, for clients that cannot send the header `Last-Event-ID`.
    last_event_id: Option<String>,
}

/// A change as a stream tells it.
#[derive(Serialize, ToSchema)]
pub(crate) struct Change<'a> {
    /// `lane:<name>`, or what changed: activities, sources, jobs, nodes, alerts, workers …
    #[schema(example = "lane:upkeep")]
    kind: &'a str,
    id: &'a str,
    /// insert, update, delete or resync.
    #[schema(value_type = String, example = "insert")]
    op: Op,
}

/// Streams changes as server-sent events, from now on or from `Last-Event-ID`. `event: resync` means: load everything again.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", params(Resume),
    responses((status = 200, content_type = "text/event-stream", body = Change),
        (status = 429, body = Problem, description = "The key or its tenant has enough streams")))]
pub(crate) async fn stream(
    State(app): State<App>,
    Hearing(caller): Hearing,
    headers: HeaderMap,
    Query(resume): Query<Resume>,
) -> Result<impl IntoResponse, ApiError> {
    open(app, caller, &headers, resume, Of::Changes)
}

/// The things that a stream tells of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    Changes,
    Documents,
}

impl Of {
    fn ring(self, app: &App) -> &Ring<Notice> {
        match self {
            Self::Changes => &app.ring,
            Self::Documents => &app.documents,
        }
    }
}

/// Answers with a stream, if the caller has not enough of them.
pub(super) fn open(
    app: App,
    caller: Caller,
    headers: &HeaderMap,
    resume: Resume,
    of: Of,
) -> Result<impl IntoResponse + use<>, ApiError> {
    let enough = ApiError::AtOnce("this key, or its tenant, has enough event streams", 5);
    let hold = app.streams.take(&caller, MOST_OF_KEY, MOST_OF_TENANT).ok_or(enough)?;
    let given = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let listener = Listener::new(app, caller, of, given.or(resume.last_event_id).as_deref());
    let events = stream::unfold((listener, hold), |(mut listener, hold)| async {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), (listener, hold)))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)).text("still here")))
}

/// Fills the rings from the bus, until dropped.
pub(crate) async fn fill(app: App) {
    let mut heard = app.env.db.bus().subscribe();
    loop {
        let notice = match heard.recv().await {
            Ok(notice) => notice,
            Err(broadcast::error::RecvError::Lagged(_)) => Notice::resync("*"),
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if notice.kind == DOCUMENTS || notice.op == Op::Resync {
            app.documents.push(notice.clone());
        }
        app.ring.push(notice);
    }
}

/// One stream's place.
struct Listener {
    app: App,
    caller: Caller,
    of: Of,
    boot: Uuid,
    latest: watch::Receiver<u64>,
    seen: u64,
    ready: VecDeque<Event>,
    /// The earliest time of the next batch.
    next_batch: Instant,
    next_check: Instant,
}

impl Listener {
    fn new(app: App, caller: Caller, of: Of, last_event_id: Option<&str>) -> Self {
        let (boot, mut latest) = (app.env.db.bus().boot(), of.ring(&app).latest());
        let newest = *latest.borrow_and_update();
        // An id we do not know is a place before the ring: that says resync.
        let seen = last_event_id.map_or(Some(newest), |id| number(boot, id));
        let mut ready = VecDeque::new();
        match seen {
            // An id at once, so that a client that is cut off before the first event can resume too.
            Some(seen) => {
                ready.push_back(Event::default().id(id(boot, seen)).retry(Duration::from_secs(2)).comment("welcome"))
            }
            None => ready.push_back(resync(boot, newest).retry(Duration::from_secs(2))),
        }
        let now = Instant::now();
        Self {
            app,
            caller,
            of,
            boot,
            latest,
            seen: seen.unwrap_or(newest),
            ready,
            next_batch: now,
            next_check: now + CHECK,
        }
    }

    /// The next event; none when the server stops or the caller is no longer welcome.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let stop = self.app.stop.clone();
            tokio::select! {
                () = tokio::time::sleep_until(self.next_batch) => {}
                () = stop.stopped() => return None,
            }
            if Instant::now() >= self.next_check && !self.is_welcome().await {
                return None;
            }
            self.latest.borrow_and_update(); // before looking, so that what comes after wakes us
            match self.of.ring(&self.app).since(self.seen) {
                Since::Missed(latest) => {
                    self.seen = latest;
                    self.ready.push_back(resync(self.boot, latest));
                }
                Since::New(notices) => match notices.last() {
                    Some((number, _)) => {
                        let Some(events) = self.tell(&notices).await else {
                            self.next_batch = Instant::now() + RETRY;
                            continue;
                        };
                        self.seen = *number;
                        self.ready.extend(events);
                        self.next_batch = Instant::now() + PAUSE;
                    }
                    None => tokio::select! {
                        changed = self.latest.changed() => changed.ok()?,
                        () = tokio::time::sleep_until(self.next_check) => {}
                        () = stop.stopped() => return None,
                    },
                },
            }
        }
    }

    /// The events that notices make for this caller. None: they cannot be told now, and nothing is passed over.
    async fn tell(&self, notices: &[(u64, Notice)]) -> Option<Vec<Event>> {
        match self.of {
            Of::Changes => {
                let (told, may_name) = (told(&self.caller, notices), self.caller.sees_all_activities());
                Some(told.iter().map(|(n, notice)| event(self.boot, *n, notice, may_name)).collect())
            }
            Of::Documents => document_events::told(&self.app, &self.caller, self.boot, notices).await,
        }
    }

    async fn is_welcome(&mut self) -> bool {
        self.next_check = Instant::now() + CHECK;
        // A database that is away revokes nothing.
        !matches!(authenticate_anew(&self.app, &self.caller.credential).await, Ok(false))
    }
}

/// Whether a notice concerns this caller.
pub(super) fn concerns(caller: &domain::Caller, notice: &Notice) -> bool {
    match notice.tenant_id {
        Some(tenant_id) => tenant_id == caller.tenant_id,
        None => caller.operates() || notice.op == Op::Resync, // that something was missed concerns everyone
    }
}

/// The notices that concern this caller, the last one of each thing.
fn told<'a>(caller: &domain::Caller, notices: &'a [(u64, Notice)]) -> Vec<(u64, &'a Notice)> {
    let mut known = HashSet::new();
    let mut told: Vec<_> = notices
        .iter()
        .rev()
        .filter(|(_, notice)| concerns(caller, notice))
        .filter(|(_, notice)| known.insert((&notice.kind, &notice.id, std::mem::discriminant(&notice.op))))
        .map(|(number, notice)| (*number, notice))
        .collect();
    told.reverse();
    told
}

/// A notice as a stream tells it. An agent hears that activities changed, but not which ones: some may not be for it.
fn event(boot: Uuid, number: u64, notice: &Notice, may_name: bool) -> Event {
    if notice.op == Op::Resync {
        return resync(boot, number);
    }
    let changed = if may_name || notice.kind != "activities" { notice.id.as_str() } else { "" };
    let change = Change { kind: &notice.kind, id: changed, op: notice.op };
    // JSON has no raw line breaks, which an event's data must not have.
    Event::default().id(id(boot, number)).data(serde_json::to_string(&change).unwrap_or_default())
}

pub(super) fn resync(boot: Uuid, number: u64) -> Event {
    Event::default().id(id(boot, number)).event("resync").data(r#"{"kind":"*","id":"","op":"resync"}"#)
}

pub(super) fn id(boot: Uuid, number: u64) -> String {
    format!("{boot}-{number}")
}

/// The number in an id of this boot.
fn number(boot: Uuid, id: &str) -> Option<u64> {
    let (of, number) = id.rsplit_once('-')?;
    (Uuid::parse_str(of) == Ok(boot)).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use domain::{KeyId, Scope, TenantId};

    use super::*;

    fn caller(tenant_id: TenantId, is_operator: bool) -> domain::Caller {
        domain::Caller {
            tenant_id,
            tenant_name: "acme".into(),
            key_id: KeyId::new(),
            key_name: "test".into(),
            person_id: None,
            user_id: None,
            scopes: vec![Scope::Service],
            is_signed_in: false,
            is_operator,
        }
    }

    #[test]
    fn ids_of_another_boot_are_not_ours() {
        let boot = Uuid::now_v7();
        assert_eq!(number(boot, &id(boot, 7)), Some(7));
        for foreign in ["", "7", "x-7", &id(Uuid::now_v7(), 7), &format!("{boot}-x"), &boot.to_string()] {
            assert_eq!(number(boot, foreign), None, "{foreign:?}");
        }
    }

    #[test]
    fn a_caller_hears_of_its_own_tenant_and_each_thing_once() {
        let (ours, theirs) = (TenantId::new(), TenantId::new());
        let notices: Vec<(u64, Notice)> = [
            Notice::lane(Some(ours), "upkeep", Op::Insert),
            Notice::lane(Some(theirs), "upkeep", Op::Insert),
            Notice::lane(None, "upkeep", Op::Delete),
            Notice::lane(Some(ours), "upkeep", Op::Insert),
            Notice::resync("*"),
        ]
        .into_iter()
        .enumerate()
        .map(|(n, notice)| (n as u64 + 1, notice))
        .collect();
        let numbers = |caller: &domain::Caller| told(caller, &notices).iter().map(|(n, _)| *n).collect::<Vec<_>>();
        assert_eq!(numbers(&caller(ours, false)), [4, 5]);
        assert_eq!(numbers(&caller(ours, true)), [3, 4, 5]);
        assert_eq!(numbers(&caller(theirs, false)), [2, 5]);
    }
}
