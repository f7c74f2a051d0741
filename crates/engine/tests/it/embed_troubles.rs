//! A document whose embedder does wrong, in every way and at every service: it is kept and found by keyword, its item waits and says why, and it is
//! completed by itself when the service is well again.

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use domain::{Caller, Clock, ItemState};
use engine::{health, lanes};
use store::memory::Mode;
use store::queue::{Item, Page, Queue};
use testkit::embedder::{FakeEmbedder, Manner, Wire};
use testkit::{World, cluster};

use crate::memory::Memory;

const TEXT: &str = "The lighthouse stands alone on its rock.";
const UNPAID: Manner = Manner::Status(429, "", r#"{"error":{"code":"insufficient_quota","message":"You exceeded"}}"#);

struct Shore {
    memory: Memory,
    service: Arc<FakeEmbedder>,
}

impl Shore {
    async fn new(wire: Wire) -> Self {
        let service = FakeEmbedder::of(wire, 256).await;
        let flags = service.flags();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let clock = Clock::fixed(Utc::now() + TimeDelta::hours(1));
        let memory = Memory::of(World::with_flags(cluster::cloned(), clock, &flags).await).await;
        Self { memory, service: service.into() }
    }

    fn caller(&self) -> Caller {
        Caller::local("test", self.memory.world.tenant_id, true)
    }

    async fn remember(&self, name: &str, text: &str) {
        let said = self.memory.remember(vec![self.memory.record(name, text)]).await;
        assert!(said[0].is_pending && said[0].n_embedded == 0, "F34: counted as success");
    }

    /// The items of lane `embed`, wherever they wait.
    async fn items(&self) -> Vec<Item> {
        let queue = Queue::new("embed").expect("a queue");
        let page = Page { limit: 100, ..Page::default() };
        let world = &self.memory.world;
        queue.list(&mut *world.conn().await, world.env.clock.sql(), &self.caller(), page).await.expect("items")
    }

    async fn n_embedded(&self) -> i64 {
        let sql = "select count(*) from source_documents where embedding_model is not null and embedding_text_sha256 is not null";
        self.memory.number(sql).await
    }

    /// Time goes by, and what is due then runs.
    async fn later(&self, minutes: i64) {
        let world = &self.memory.world;
        world.env.clock.advance(TimeDelta::minutes(minutes));
        let mut tx = world.env.db.begin().await.expect("a transaction");
        let upkeep = Queue::new("upkeep").expect("a queue");
        upkeep.send(&mut tx, world.tenant_id, &[serde_json::json!({ "task": "unpark" })]).await.expect("sent");
        tx.commit().await.expect("committed");
        world.run_lanes(&lanes::ALL).await;
        world.run_lanes(&lanes::ALL).await;
    }

    async fn findings(&self) -> Vec<(&'static str, String)> {
        let overview = health::overview(&self.memory.world.env, &self.caller()).await.expect("an overview");
        overview.findings.into_iter().map(|finding| (finding.kind, finding.what)).collect()
    }
}

/// Remembers a document while the service behaves so (`None`: it is away), and then lets it be well.
async fn waits_and_completes(wire: Wire, manner: Option<Manner>, words: &str, state: ItemState) {
    let shore = Shore::new(wire).await;
    let service = &shore.service;
    let case = format!("{wire:?} {manner:?}");
    match &manner {
        Some(manner) => service.answer(manner.clone()),
        None => service.go_away().await,
    }
    shore.remember("d", TEXT).await;
    shore.memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(shore.memory.search("lighthouse", Mode::Hybrid).await, ["d"], "{case}: found by keyword");
    let items = shore.items().await;
    let [item] = &items[..] else { panic!("{case}: {items:?}") };
    let why = item.error.as_ref().or(item.reason.as_ref()).expect("a reason");
    assert!(why.contains(words) && !why.contains("sk-canary"), "{case}: {why}");
    assert_eq!(item.state, state, "{case}");
    assert_eq!((shore.n_embedded().await, shore.memory.number("select count(*) from usage").await), (0, 0), "{case}");
    assert_eq!(service.embedded(), [""; 0], "{case}");

    match manner {
        Some(_) => service.answer(Manner::Well),
        None => service.come_back().await,
    }
    shore.later(15).await;
    assert!(shore.items().await.is_empty(), "{case}: {:?}", shore.items().await);
    assert_eq!((shore.n_embedded().await, shore.memory.number("select documents from usage").await), (1, 1), "{case}");
    shore.later(15).await;
    let n_made = service.embedded().iter().filter(|text| text.ends_with(TEXT)).count();
    assert_eq!((n_made, service.complaints()), (1, Vec::new()), "{case}: made once");
    assert_eq!(shore.memory.search("lighthouse", Mode::Vector).await, ["d"], "{case}: found by meaning");
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_waits_for_an_embedder_whose_answers_are_wrong_and_is_completed_by_itself() {
    for (wire, manner, words) in [
        (Wire::Openai, Manner::WrongDim, "257 dimensions where 256 are set: check EMBED_DIM"),
        (Wire::Voyage, Manner::Nan, "numbers that are none"),
        (Wire::Cohere, Manner::Null, "numbers that are none"),
        (Wire::Ollama, Manner::NanText, "numbers that are none"),
        (Wire::Tei, Manner::Huge, "numbers that are none"),
        (Wire::Brain, Manner::TooFew, "0 vectors for 1 texts"),
        (Wire::Compatible, Manner::CutJson, "does not parse"),
    ] {
        Box::pin(waits_and_completes(wire, Some(manner), words, ItemState::Failed)).await;
    }
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_waits_for_an_embedder_that_fails_and_is_completed_by_itself() {
    let not_found = Manner::Status(404, "", r#"{"error":"model \"nomic-embed-text\" not found"}"#);
    for (wire, manner, words) in [
        (Wire::Voyage, Some(Manner::Truncated), "the connection to the embedder broke"),
        (Wire::Cohere, Some(Manner::Status(503, "", "<html>")), "answered 503 Service Unavailable"),
        (Wire::Ollama, Some(not_found), "answered 404 Not Found: check EMBED_BASE_URL and EMBED_MODEL"),
        (Wire::Brain, None, "the embedder could not be reached"),
    ] {
        Box::pin(waits_and_completes(wire, manner, words, ItemState::Failed)).await;
    }
    let busy = Manner::Status(429, "", r#"{"error":{"code":"rate_limit_exceeded"}}"#);
    Box::pin(waits_and_completes(Wire::Openai, Some(busy), "asked us to wait", ItemState::Waiting)).await;
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_waits_for_a_person_who_pays_or_corrects_the_key() {
    let refused = Manner::Status(401, "", r#"{"detail":"Provided API key sk-canary-4711 is invalid."}"#);
    let parked = ItemState::Parked;
    Box::pin(waits_and_completes(Wire::Voyage, Some(refused), "refused the key (401 Unauthorized)", parked)).await;
    Box::pin(waits_and_completes(Wire::Openai, Some(UNPAID), "until it is paid (insufficient_quota)", parked)).await;
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_embedder_is_tried_now_and_then_told_on_home_and_serves_all_once_it_is_paid() {
    let shore = Shore::new(Wire::Openai).await;
    shore.service.answer(UNPAID);
    for n in 0..5 {
        shore.remember(&format!("d{n}"), &format!("{TEXT} Its number is {n}.")).await;
    }
    shore.memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(shore.service.calls().len(), 1, "the others did not try");
    let blocked =
        async |shore: &Shore| shore.findings().await.into_iter().find(|(kind, _)| *kind == "embedder_blocked");
    let (_, what) = blocked(&shore).await.expect("a finding");
    assert!(what.contains("until it is paid"), "{what}");
    let parked =
        async |shore: &Shore| shore.items().await.iter().filter(|item| item.state == ItemState::Parked).count();
    assert_eq!(parked(&shore).await, 5);

    shore.later(5).await;
    assert_eq!((shore.service.calls().len(), parked(&shore).await), (1, 5), "it is left alone");
    shore.later(6).await;
    assert_eq!((shore.service.calls().len(), parked(&shore).await), (2, 5), "one is tried");
    assert!(blocked(&shore).await.is_some());

    shore.service.answer(Manner::Well);
    shore.later(11).await;
    assert_eq!((shore.n_embedded().await, blocked(&shore).await), (1, None), "the first one shows that it is paid");
    shore.later(1).await;
    assert_eq!((shore.n_embedded().await, shore.items().await.len()), (5, 0));
    assert_eq!(shore.service.embedded().len(), 5, "none twice");
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_too_long_for_its_model_is_completed_in_parts() {
    let shore = Shore::new(Wire::Tei).await;
    shore.service.refuse_above(32, usize::MAX, 300);
    let text: String = (0..40).map(|n| format!("Sentence number {n} says what no other one says. ")).collect();
    let said = shore.memory.remember(vec![shore.memory.record("long", &text)]).await;
    assert!(!said[0].is_pending && said[0].n_embedded == said[0].n_chunks, "{said:?}");
    assert!(shore.service.embedded().iter().all(|text| text.chars().count() <= 300));
    assert_eq!(shore.memory.search("Sentence number 33", Mode::Vector).await, ["long"]);
}

/// F34: a slow service delays what it has to make, and no search.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_embedder_is_waited_for_and_searches_go_by_keyword_meanwhile() {
    let shore = Shore::new(Wire::Ollama).await;
    shore.service.answer_next(&[Manner::Slow(Duration::from_millis(500))]);
    let said = shore.memory.remember(vec![shore.memory.record("d", TEXT)]).await;
    assert!(!said[0].is_pending, "{said:?}");
    shore.service.answer(Manner::Slow(Duration::from_secs(60)));
    assert_eq!(shore.memory.search("lighthouse", Mode::Hybrid).await, ["d"]);
}
