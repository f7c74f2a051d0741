//! The event stream: hints that something changed, so that a page looks again. Never the change itself.
//!
//! One ring per process holds the last notices; each stream has only its place in it. So a slow reader costs nothing: when the
//! ring has turned past its place it is told to look at everything (`resync`), as is one that comes back with an id we no
//! longer know.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use domain::{Notice, Op};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Caller, Reading, authenticate_anew};
use super::error::ApiError;
use super::extract::Query;
use crate::app::App;

const RING: usize = 4_096;
/// Most read from the ring at once; identical ones among them are told once.
const BATCH: usize = 512;
/// The least time between two batches of one stream: a busy lane settles thousands of items a second.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a stream asks whether its caller is still welcome.
const CHECK: Duration = Duration::from_secs(4);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Resume {
    /// Where the last stream ended, for clients that cannot send the header `Last-Event-ID`.
    last_event_id: Option<String>,
}

/// What a stream says about a change.
#[derive(Serialize, ToSchema)]
pub(crate) struct Change<'a> {
    /// `lane:<name>`, or a kind of page: alerts, workers …
    #[schema(example = "lane:upkeep")]
    kind: &'a str,
    id: &'a str,
    /// insert, update, delete or resync.
    #[schema(value_type = String, example = "insert")]
    op: Op,
}

/// Tells what changed as server-sent events, from now on or from `Last-Event-ID`. `event: resync` means: look at everything.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", params(Resume),
    responses((status = 200, content_type = "text/event-stream", body = Change)))]
pub(crate) async fn stream(
    State(app): State<App>,
    Reading(caller): Reading,
    headers: HeaderMap,
    Query(resume): Query<Resume>,
) -> Result<impl IntoResponse, ApiError> {
    let given = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let listener = Listener::new(app, caller, given.or(resume.last_event_id).as_deref());
    let events = stream::unfold(listener, |mut listener| async {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)).text("still here")))
}

/// Fills the ring from the bus, until dropped.
pub(crate) async fn fill(app: App) {
    let mut heard = app.env.db.bus().subscribe();
    loop {
        match heard.recv().await {
            Ok(notice) => app.ring.push(notice),
            Err(broadcast::error::RecvError::Lagged(_)) => app.ring.push(Notice::resync("*")),
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// The last notices of this process, numbered from 1.
pub(crate) struct Ring {
    boot: Uuid,
    kept: Mutex<VecDeque<Notice>>,
    /// The number of the newest; whoever waits for more waits here.
    latest: watch::Sender<u64>,
}

#[derive(Debug, PartialEq)]
enum Since {
    /// With their numbers, oldest first; empty when there is nothing new.
    Notices(Vec<(u64, Notice)>),
    /// Some are gone; the newest is this one.
    Missed(u64),
}

impl Ring {
    pub fn new(boot: Uuid) -> Self {
        Self { boot, kept: Mutex::default(), latest: watch::Sender::new(0) }
    }

    fn push(&self, notice: Notice) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == RING {
            kept.pop_front();
        }
        kept.push_back(notice);
        self.latest.send_modify(|latest| *latest += 1);
    }

    /// What came after number `seen`.
    fn since(&self, seen: u64) -> Since {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = *self.latest.borrow();
        let first = latest - kept.len() as u64 + 1;
        if seen > latest || seen + 1 < first {
            return Since::Missed(latest);
        }
        let skip = usize::try_from(seen + 1 - first).unwrap_or(usize::MAX);
        Since::Notices((seen + 1..).zip(kept.iter().skip(skip).cloned()).take(BATCH).collect())
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.boot)
    }

    /// The number in an id of this boot.
    fn number(&self, id: &str) -> Option<u64> {
        let (boot, number) = id.rsplit_once('-')?;
        (Uuid::parse_str(boot) == Ok(self.boot)).then(|| number.parse().ok()).flatten()
    }
}

/// One stream's place.
struct Listener {
    app: App,
    caller: Caller,
    latest: watch::Receiver<u64>,
    seen: u64,
    ready: VecDeque<Event>,
    /// When the next batch may be read.
    next_batch: Instant,
    next_check: Instant,
}

impl Listener {
    fn new(app: App, caller: Caller, last_event_id: Option<&str>) -> Self {
        let mut latest = app.ring.latest.subscribe();
        let newest = *latest.borrow_and_update();
        // An id we do not know is a place before the ring: that says resync.
        let seen = last_event_id.map_or(Some(newest), |id| app.ring.number(id));
        let mut ready = VecDeque::new();
        match seen {
            // An id at once, so that whoever is cut off before the first event can resume too.
            Some(seen) => {
                ready.push_back(Event::default().id(app.ring.id(seen)).retry(Duration::from_secs(2)).comment("welcome"))
            }
            None => ready.push_back(resync(&app.ring, newest).retry(Duration::from_secs(2))),
        }
        let now = Instant::now();
        Self { app, caller, latest, seen: seen.unwrap_or(newest), ready, next_batch: now, next_check: now + CHECK }
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
            match self.app.ring.since(self.seen) {
                Since::Missed(latest) => {
                    self.seen = latest;
                    self.ready.push_back(resync(&self.app.ring, latest));
                }
                Since::Notices(notices) => match notices.last() {
                    Some((number, _)) => {
                        self.seen = *number;
                        self.ready.extend(
                            told(&self.caller, &notices).iter().map(|(n, notice)| event(&self.app.ring, *n, notice)),
                        );
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

    async fn is_welcome(&mut self) -> bool {
        self.next_check = Instant::now() + CHECK;
        // A database that is away revokes nothing.
        !matches!(authenticate_anew(&self.app, &self.caller.credential).await, Ok(false))
    }
}

/// What of it concerns this caller, each thing once, as its last notice.
fn told<'a>(caller: &domain::Caller, notices: &'a [(u64, Notice)]) -> Vec<(u64, &'a Notice)> {
    let mut known = HashSet::new();
    let mut told: Vec<_> = notices
        .iter()
        .rev()
        .filter(|(_, notice)| match notice.tenant_id {
            Some(tenant_id) => tenant_id == caller.tenant_id,
            None => caller.operates() || notice.op == Op::Resync, // that something was missed concerns everyone
        })
        .filter(|(_, notice)| known.insert((&notice.kind, &notice.id, std::mem::discriminant(&notice.op))))
        .map(|(number, notice)| (*number, notice))
        .collect();
    told.reverse();
    told
}

fn event(ring: &Ring, number: u64, notice: &Notice) -> Event {
    if notice.op == Op::Resync {
        return resync(ring, number);
    }
    let change = Change { kind: &notice.kind, id: &notice.id, op: notice.op };
    // JSON has no raw line breaks, which an event's data must not have.
    Event::default().id(ring.id(number)).data(serde_json::to_string(&change).unwrap_or_default())
}

fn resync(ring: &Ring, number: u64) -> Event {
    Event::default().id(ring.id(number)).event("resync").data(r#"{"kind":"*","id":"","op":"resync"}"#)
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
            is_operator,
        }
    }

    #[test]
    fn a_reader_resumes_where_it_was_or_is_told_to_look_at_everything() {
        let ring = Ring::new(Uuid::now_v7());
        assert_eq!(ring.since(0), Since::Notices(vec![]));
        assert_eq!(ring.since(1), Since::Missed(0), "a number nobody has given yet");
        for n in 1..=RING + 10 {
            ring.push(Notice::resync(n.to_string()));
        }
        let latest = RING as u64 + 10;
        assert_eq!(ring.since(latest), Since::Notices(vec![]));
        assert_eq!(ring.since(latest - 1), Since::Notices(vec![(latest, Notice::resync(latest.to_string()))]));
        assert_eq!(ring.since(9), Since::Missed(latest), "number 10 is gone");
        let Since::Notices(oldest) = ring.since(10) else { panic!("number 11 is still there") };
        assert_eq!((oldest.len(), oldest[0].0, oldest[0].1.kind.as_str()), (BATCH, 11, "11"));
    }

    #[test]
    fn ids_of_another_boot_are_not_ours() {
        let ring = Ring::new(Uuid::now_v7());
        assert_eq!(ring.number(&ring.id(7)), Some(7));
        for foreign in
            ["", "7", "x-7", &format!("{}-7", Uuid::now_v7()), &format!("{}-x", ring.boot), &ring.boot.to_string()]
        {
            assert_eq!(ring.number(foreign), None, "{foreign:?}");
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
