//! The cost of vectors: counted with the work that needed them, and never past the cap.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use domain::{Clock, DocumentType, Record, SourceId};
use engine::lanes;
use engine::memory::remember;
use engine::{Config, health};
use store::sources;
use store::spend::{self, Room};
use testkit::World;
use testkit::cluster;
use testkit::embedder::{FakeEmbedder, Manner};
use uuid::Uuid;

/// A dollar a token.
const PRICE: &str = "1000000";

struct Office {
    world: World,
    embedder: FakeEmbedder,
    source_id: SourceId,
}

impl Office {
    async fn new(flags: &[&str]) -> Self {
        let embedder = FakeEmbedder::start(8).await;
        let mut all = embedder.flags();
        all.extend(["--embed-price-per-million", PRICE].iter().chain(flags).map(|flag| (*flag).to_owned()));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let clock = Clock::fixed(Utc::now() + TimeDelta::hours(1));
        let world = World::with_flags(cluster::cloned(), clock, &all).await;
        let source_id = sources::ensure_manual(&mut *world.conn().await, world.tenant_id).await.expect("a source");
        Self { world, embedder, source_id }
    }

    /// Remembers a text of so many tokens.
    async fn remember(&self, name: &str, n_tokens: usize) {
        let env = &self.world.env;
        let begin = || async { Ok(env.db.begin().await?) };
        let text = "abcd".repeat(n_tokens);
        let record = Record::new(self.source_id, name, DocumentType::Note, text);
        let remembered = Box::pin(remember(env, self.world.tenant_id, vec![record], begin)).await;
        remembered.expect("remembered").0.commit().await.expect("committed");
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect(sql)
    }

    async fn dollars_spent(&self) -> i64 {
        self.number("select coalesce(sum(cost_micros), 0)::int8 / 1000000 from usage").await
    }

    async fn embedded(&self) -> i64 {
        self.number("select count(*) from source_documents where embedding_model is not null").await
    }

    async fn parked(&self) -> i64 {
        self.number("select count(*) from tributary.parked where queue = 'embed' and reason like 'budget%'").await
    }

    async fn findings(&self) -> Vec<&'static str> {
        let overview = health::overview(&self.world.env, &self.world.operator().await).await.expect("an overview");
        overview.findings.into_iter().map(|finding| finding.kind).collect()
    }

    /// As after a restart with another cap.
    fn set_cap(&mut self, cap: Option<f64>) {
        self.world.env.config = Arc::new(Config { embed_monthly_cap: cap, ..(*self.world.env.config).clone() });
    }

    /// The tasks whose time has come, and what they send.
    async fn upkeep(&self) {
        self.world.env.clock.advance(TimeDelta::seconds(61));
        let runtime = engine::work::Runtime::new(self.world.env.clone(), &lanes::ALL, &[]);
        let mut tx = self.world.env.db.begin().await.expect("a transaction");
        let queue = store::queue::Queue::new("upkeep").expect("a queue");
        let task = serde_json::json!({ "task": "unpark" });
        queue.send(&mut tx, self.world.tenant_id, &[task]).await.expect("sent");
        tx.commit().await.expect("committed");
        Box::pin(runtime.run_due()).await.expect("upkeep");
        Box::pin(runtime.run_due()).await.expect("what it sent");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_counted_is_written_with_what_it_made() {
    let office = Office::new(&["--embed-monthly-cap", "1000"]).await;
    office.remember("a", 10).await;
    office.remember("b", 5).await;
    office.remember("a", 10).await; // the same text costs nothing
    let usage: (i64, i64, i64, i64, i64) =
        sqlx::query_as("select calls, documents, texts, tokens, cost_micros from usage")
            .fetch_one(&mut *office.world.conn().await)
            .await
            .expect("one month, one model");
    assert_eq!(usage, (2, 2, 2, 15, 15_000_000));
    assert_eq!(office.number("select count(*) from tributary.reservations").await, 0);
    assert_eq!(office.embedder.texts().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_cap_documents_are_kept_and_get_their_vectors_when_it_is_raised() {
    let mut office = Office::new(&["--embed-monthly-cap", "20"]).await;
    office.remember("a", 15).await;
    assert!(!office.findings().await.contains(&"budget_spent"));
    office.remember("b", 10).await;
    office.remember("c", 4).await; // this one still fits
    assert_eq!((office.embedded().await, office.dollars_spent().await), (2, 19));
    assert_eq!(office.number("select count(*) from source_documents").await, 3, "nothing is dropped");
    office.world.run_lanes(&lanes::ALL).await;
    assert_eq!((office.parked().await, office.number("select count(*) from pgmq.q_embed").await), (1, 0));
    assert!(office.findings().await.contains(&"budget_spent"));
    office.upkeep().await;
    assert_eq!((office.parked().await, office.embedded().await), (1, 2), "the same cap changes nothing");
    office.set_cap(Some(25.0));
    office.upkeep().await;
    assert_eq!((office.parked().await, office.embedded().await), (1, 2), "not enough, and it waits again");
    office.set_cap(Some(40.0));
    office.upkeep().await;
    assert_eq!((office.parked().await, office.embedded().await, office.dollars_spent().await), (0, 3, 29));
    assert!(!office.findings().await.contains(&"budget_spent"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_month_has_its_own_money() {
    let office = Office::new(&["--embed-monthly-cap", "20"]).await;
    office.remember("a", 15).await;
    office.remember("b", 10).await;
    office.world.run_lanes(&lanes::ALL).await;
    assert_eq!(office.parked().await, 1);
    office.world.env.clock.advance(TimeDelta::days(32));
    office.upkeep().await;
    assert_eq!((office.parked().await, office.embedded().await), (0, 2));
    assert_eq!(office.number("select count(*) from usage").await, 2, "two months");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_failed_gives_its_money_back_after_ten_minutes() {
    let office = Office::new(&["--embed-monthly-cap", "20"]).await;
    office.embedder.answer(Manner::HangsUp);
    office.remember("a", 15).await;
    office.embedder.answer(Manner::Well);
    office.world.run_lanes(&lanes::ALL).await;
    assert_eq!((office.embedded().await, office.parked().await), (0, 0), "it waits for the first call's money");
    assert_eq!(office.number("select count(*) from pgmq.q_embed").await, 1);
    office.world.env.clock.advance(TimeDelta::minutes(11));
    office.world.run_lanes(&lanes::ALL).await;
    assert_eq!((office.embedded().await, office.dollars_spent().await), (1, 15));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_do_not_pass_the_cap_together() {
    let office = Office::new(&[]).await;
    let tenant_id = office.world.tenant_id;
    let reserve = |_| {
        let db = office.world.env.db.clone();
        async move {
            let mut conn = db.acquire().await.expect("a connection");
            spend::reserve(&mut conn, None, tenant_id, Uuid::now_v7(), 3, 10).await.expect("an answer")
        }
    };
    let said = futures_util::future::join_all((0..24).map(reserve)).await;
    assert_eq!(said.iter().filter(|room| **room == Room::Reserved).count(), 3);
    assert_eq!(said.iter().filter(|room| **room == Room::Busy).count(), 21);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_somebody_wanted_to_know_of_is_told() {
    let office = Office::new(&["--embed-alert-per-1000", "4000"]).await;
    for n in 0..99 {
        office.remember(&n.to_string(), 5 + n % 2).await;
    }
    assert!(!office.findings().await.contains(&"embedding_price"), "too few to say");
    office.remember("one more", 5).await;
    assert!(office.findings().await.contains(&"embedding_price"), "5 dollars each are 5,000 for a thousand");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_text_of_many_calls_what_was_paid_for_is_kept_when_one_fails() {
    let office = Office::new(&["--embedding-batch-size", "1"]).await;
    let text: String = (0..600).map(|n| format!("Sentence number {n} says what no other one says. ")).collect();
    let record = Record::new(office.source_id, "long", DocumentType::Note, text);
    let env = &office.world.env;
    let begin = || async { Ok(env.db.begin().await?) };
    let wait = Manner::Status(429, "", "");
    office.embedder.answer_next(&[Manner::Well, wait.clone()]);
    let (tx, batch) = Box::pin(remember(env, office.world.tenant_id, vec![record], begin)).await.expect("remembered");
    tx.commit().await.expect("committed");
    let n_chunks = i64::try_from(batch.records[0].n_chunks).expect("a number");
    assert!(n_chunks > 4 && batch.records[0].n_embedded == 1 && batch.records[0].is_pending, "{:?}", batch.records);
    office.embedder.answer_next(&[Manner::Well, Manner::Well, wait]);
    office.world.run_lanes(&lanes::ALL).await;
    assert_eq!((office.embedded().await, office.number("select texts from usage").await), (0, 3));
    office.world.env.clock.advance(TimeDelta::minutes(5));
    office.world.run_lanes(&lanes::ALL).await;
    assert_eq!((office.embedded().await, office.number("select texts from usage").await), (1, n_chunks), "none twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_for_and_not_written_is_counted() {
    let office = Office::new(&["--embed-monthly-cap", "100"]).await;
    let env = &office.world.env;
    let record = Record::new(office.source_id, "a", DocumentType::Note, "abcd".repeat(10));
    let begin = || async { Err::<store::Tx, _>(domain::Fault::Stale) };
    let lost = Box::pin(remember(env, office.world.tenant_id, vec![record], begin)).await;
    assert!(matches!(lost, Err(domain::Fault::Stale)));
    assert_eq!(
        (office.dollars_spent().await, office.number("select count(*) from tributary.reservations").await),
        (10, 0)
    );
}
