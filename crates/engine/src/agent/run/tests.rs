//! The loop's decisions, at a desk that the test fills and watches.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};

use connectors::Http;
use serde_json::json;
use tokio::sync::Notify;
use uuid::Uuid;

use super::*;
use crate::config::tests::of_flags;
use crate::recordings::Audio;

const HEARS: [&str; 2] = ["--transcribe-base-url", "http://127.0.0.1:9/v1"];
const SOON: Duration = Duration::from_secs(10);

/// The calls that the desk received.
#[derive(Default)]
struct Seen {
    waiting: Vec<Work<()>>,
    /// The number of activities that each claim asked for.
    claims: Vec<usize>,
    settled: Vec<(Uuid, String)>,
    /// The number of claims when results were first written.
    claims_before_results: Option<usize>,
    beats: Vec<(usize, i64, bool)>,
}

#[derive(Clone)]
struct Fake {
    seen: Arc<Mutex<Seen>>,
    orders: Orders,
    /// So many calls fail before one works.
    failing_claims: Arc<AtomicUsize>,
    failing_settles: Arc<AtomicUsize>,
    /// A recording that never comes, or one whose fetching breaks down.
    is_broken: bool,
    /// It hands out only the kinds of content that are asked for, as desks do.
    is_exact: bool,
    woken: Arc<Notify>,
}

impl Fake {
    fn new(waiting: &[&str]) -> Self {
        let waiting = waiting.iter().enumerate().map(|(nth, source_type)| Work {
            of: (),
            id: Uuid::from_u128(nth as u128),
            r#type: "note".into(),
            raw_data: json!({ "source_type": source_type, "content": "hello" }),
            lock_epoch: 1,
        });
        Self {
            seen: Arc::new(Mutex::new(Seen { waiting: waiting.collect(), ..Seen::default() })),
            orders: Orders { is_enabled: true, concurrency: 8 },
            failing_claims: Arc::default(),
            failing_settles: Arc::default(),
            is_broken: false,
            is_exact: false,
            woken: Arc::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("the desk")
    }

    async fn shows(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + SOON;
        while !is_so(&self.seen()) {
            let seen = self.seen();
            assert!(Instant::now() < deadline, "{what}: claims {:?}, settled {:?}", seen.claims, seen.settled);
            drop(seen);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn fails(left: &AtomicUsize) -> Result<(), Fault> {
    match left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
        Ok(_) => Err(Fault::Transient(anyhow::anyhow!("the desk is away"))),
        Err(_) => Ok(()),
    }
}

impl Desk for Fake {
    type Of = ();
    const POLL: Duration = Duration::from_millis(20);

    async fn claim(
        &self,
        source_types: &'static [&'static str],
        most: usize,
        _: &[()],
    ) -> Result<Vec<Work<()>>, Fault> {
        let mut seen = self.seen();
        seen.claims.push(most);
        fails(&self.failing_claims)?;
        let (meant, others): (Vec<_>, Vec<_>) = std::mem::take(&mut seen.waiting)
            .into_iter()
            .partition(|work| !self.is_exact || source_types.iter().any(|kind| work.raw_data["source_type"] == *kind));
        let mut meant = meant.into_iter();
        let claimed = meant.by_ref().take(most).collect();
        seen.waiting = meant.chain(others).collect();
        Ok(claimed)
    }

    async fn settle(&self, settled: &mut Vec<Settled<()>>) -> Result<usize, Fault> {
        fails(&self.failing_settles)?;
        let told = settled.drain(..).map(|(work, outcome)| match outcome {
            Outcome::Completed(made) => {
                (work.id, format!("completed: {}", made["summary"].as_str().unwrap_or_default()))
            }
            Outcome::Failed(failure) => (work.id, failure.kind.to_owned()),
            Outcome::Released => (work.id, "released".to_owned()),
        });
        let mut seen = self.seen();
        let claims = seen.claims.len();
        seen.claims_before_results.get_or_insert(claims);
        seen.settled.extend(told);
        Ok(0)
    }

    async fn renew(&self, _: &Work<()>) -> Result<bool, Fault> {
        Ok(true)
    }

    async fn beat(&self, beat: &Beat<()>) -> Result<Orders, Fault> {
        self.seen().beats.push((beat.held.len(), beat.processed, beat.is_goodbye));
        Ok(self.orders)
    }

    async fn recording(&self, _: &Work<()>) -> Result<Audio, Failure> {
        assert!(!self.is_broken, "the fetching breaks down");
        std::future::pending().await
    }

    async fn woken(&self) {
        self.woken.notified().await;
    }
}

/// Runs an agent at this desk until the test stops it.
fn start(desk: &Fake, flags: &[&str], most: usize) -> (Stop, tokio::task::JoinHandle<()>) {
    let processors = Processors::new(&of_flags(flags), &Http::new().expect("a client")).expect("processors");
    let stop = Stop::default();
    (stop.clone(), tokio::spawn(run(desk.clone(), processors, most, Duration::ZERO, stop)))
}

#[tokio::test]
async fn text_is_done_at_once_and_many_are_claimed_together() {
    let desk = Fake::new(&["text"; 40]);
    let (stop, running) = start(&desk, &[], 3);
    desk.shows("all done", |seen| seen.settled.len() == 40).await;
    stop.stop();
    running.await.expect("its end");
    let seen = desk.seen();
    assert!(seen.claims.iter().all(|most| *most == AT_ONCE), "{:?}", seen.claims);
    assert!(seen.settled.iter().all(|(_, how)| how == "completed: hello"), "{:?}", seen.settled);
    assert_eq!(seen.beats.last(), Some(&(0, 40, true)), "it says goodbye with what it did");
}

#[tokio::test]
async fn no_more_are_held_than_people_and_the_program_allow() {
    for (concurrency, most, held) in [(2, 5, 2), (5, 2, 2), (64, 3, 3)] {
        let mut desk = Fake::new(&["url"; 10]);
        desk.orders.concurrency = concurrency;
        let (stop, running) = start(&desk, &HEARS, most);
        desk.shows("claimed", |seen| seen.waiting.len() == 10 - held).await;
        tokio::time::sleep(3 * Fake::POLL).await; // time itself: it would look again within one
        assert_eq!(desk.seen().claims.iter().sum::<usize>(), held, "{concurrency} allowed, {most} at most");
        stop.stop();
        running.await.expect("its end");
        let seen = desk.seen();
        assert_eq!(seen.settled.iter().filter(|(_, how)| how == "released").count(), held, "given back at the end");
    }
}

#[tokio::test]
async fn an_agent_that_is_switched_off_claims_nothing() {
    let mut desk = Fake::new(&["text"]);
    desk.orders.is_enabled = false;
    let (stop, running) = start(&desk, &[], 3);
    desk.shows("a heartbeat", |seen| !seen.beats.is_empty()).await;
    tokio::time::sleep(3 * Fake::POLL).await; // time itself: it would look again within one
    stop.stop();
    running.await.expect("its end");
    assert!(desk.seen().claims.is_empty());
}

#[tokio::test]
async fn a_desk_that_is_away_is_asked_again_and_nothing_is_claimed_while_results_wait() {
    let desk = Fake::new(&["text"; 2]);
    desk.failing_claims.store(2, SeqCst);
    desk.failing_settles.store(1, SeqCst);
    let (stop, running) = start(&desk, &[], 3);
    desk.shows("all done", |seen| seen.settled.len() == 2).await;
    let claims = desk.seen().claims_before_results;
    assert_eq!(
        claims,
        Some(3),
        "two failed, the third took both, and none came while their results could not be written"
    );
    stop.stop();
    running.await.expect("its end");
}

#[tokio::test]
async fn a_call_that_this_machine_hears_keeps_no_text_and_no_agent_waiting() {
    let folder = std::env::temp_dir().join(format!("tributary-ear-{}", Uuid::new_v4()));
    std::fs::create_dir_all(folder.join("base")).expect("a folder");
    let folder_name = folder.display().to_string();
    let hears = ["--transcribe", "local", "--speech-models-dir", &folder_name, "--onnxruntime-lib", &folder_name];
    let mut desk = Fake::new(&[&["url"; 3][..], &["text"; 40]].concat());
    (desk.is_exact, desk.orders.concurrency) = (true, 1);
    let (stop, running) = start(&desk, &hears, 1);
    // Fetching the first call takes for ever.
    desk.shows("all texts done", |seen| seen.settled.len() == 40 && seen.waiting.len() == 2).await;
    stop.stop();
    running.await.expect("its end");
    std::fs::remove_dir_all(&folder).expect("removed");
    let seen = desk.seen();
    assert_eq!(seen.settled.iter().filter(|(_, how)| how == "released").count(), 1, "it has one ear");
    assert_eq!(seen.claims.iter().filter(|most| **most == 1).count(), 1, "while that hears, no call is asked for");
}

#[tokio::test]
async fn a_call_is_not_fetched_where_nothing_hears() {
    let mut desk = Fake::new(&["url"]);
    desk.is_broken = true; // a fetch would fail
    let (stop, running) = start(&desk, &[], 3);
    desk.shows("settled", |seen| seen.settled.len() == 1).await;
    stop.stop();
    running.await.expect("its end");
    assert_eq!(desk.seen().settled[0].1, "TranscriptionError");
}

#[tokio::test]
async fn an_activity_over_which_the_processor_breaks_down_fails_and_others_go_on() {
    let mut desk = Fake::new(&["url", "text"]);
    desk.is_broken = true;
    let (stop, running) = start(&desk, &HEARS, 3);
    desk.shows("settled", |seen| seen.settled.len() == 2).await;
    stop.stop();
    running.await.expect("its end");
    let mut settled = desk.seen().settled.clone();
    settled.sort();
    assert_eq!(settled[0], (Uuid::from_u128(0), "ValidationError".into()));
    assert_eq!(settled[1], (Uuid::from_u128(1), "completed: hello".into()));
}
