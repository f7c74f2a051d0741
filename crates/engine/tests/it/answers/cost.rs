//! The cost of answers, and of vectors for a memory that moves meanwhile: what a service was asked for is counted, whoever has left.

use std::time::Duration;

use connectors::Http;
use engine::lanes;
use engine::memory::answer::{self, Kind};
use engine::memory::embed::{Embedder, Embedders};
use engine::memory::moves;
use testkit::chat::Manner;
use testkit::embedder::{self, FakeEmbedder};
use testkit::{World, cluster, wait_until};
use tokio::net::TcpListener;

use super::{Office, asking, good, says};
use crate::memory::Memory;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_costs_is_counted_as_the_service_counts_it() {
    for is_anthropic in [true, false] {
        let prices = ["--llm-input-price-per-million", "1000", "--llm-output-price-per-million", "1000"];
        let office = Office::new(is_anthropic, &prices).await;
        office.chat.answer(says(&[good()[0].1.clone()]));
        let answer = office.ask("Who owes us money?").await;
        let cost = answer.cost.expect("a cost");
        assert_eq!((cost.model.as_str(), cost.is_estimate), ("wise-1", false));
        office.chat.answer(Manner::Refuses);
        assert_eq!(office.ask("Who owes us money?").await.kind, Kind::Refused);
        let counted = "select calls * 1000000000 + tokens from usage where model = 'wise-1' and documents = 0";
        assert_eq!(office.memory.number(counted).await, 2_000_000_000 + office.chat.n_tokens() as i64);
        let priced = "select (cost_micros / 1000) from usage where model = 'wise-1'";
        assert_eq!(office.memory.number(priced).await, office.chat.n_tokens() as i64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_cap_no_model_is_asked_and_sentences_are_quoted() {
    let prices = ["--llm-input-price-per-million", "1000", "--llm-output-price-per-million", "1000"];
    let office = Office::new(true, &[&prices[..], &["--embed-monthly-cap", "15"]].concat()).await;
    office.chat.answer(says(&[good()[0].1.clone()]));
    let mut n_written = 0;
    let last = loop {
        let answer = office.ask("Who owes us money?").await;
        if answer.kind != Kind::Written {
            break answer;
        }
        n_written += 1;
        assert!(n_written < 20, "the cap stops nothing");
    };
    assert!(n_written > 0, "the cap leaves room for one");
    assert_eq!(office.chat.calls().len(), n_written);
    assert_eq!((last.kind, last.cost.is_none()), (Kind::Quoted, true));
    assert!(last.note.as_deref().is_some_and(|note| note.contains("this month is spent")), "{last:?}");
    assert!(office.memory.number("select cost_micros from usage where model = 'wise-1'").await <= 15_000_000);
    assert_eq!(office.memory.number("select count(*) from tributary.reservations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_leaves_stops_the_model_and_what_it_cost_is_counted() {
    let office = Office::new(true, &["--llm-input-price-per-million", "1000", "--embed-monthly-cap", "1000"]).await;
    office.chat.answer(Manner::Waits("{\"sentences\":[".into(), "]}".into()));
    let running = Box::pin(answer::begin(&office.memory.world.env, &office.caller, &asking())).await.expect("begun");
    assert!(wait_until(LIMIT, async || !office.chat.calls().is_empty()).await);
    drop(running);
    let counted = "select count(*) from usage where model = 'wise-1' and tokens > 0 and cost_micros > 0";
    assert!(wait_until(LIMIT, async || office.memory.number(counted).await == 1).await);
    assert_eq!(office.memory.number("select count(*) from tributary.reservations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_leaves_before_the_model_answers_is_counted_with_the_question() {
    // It takes the question and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let office =
        Office::at(&url, true, &["--llm-input-price-per-million", "1000", "--embed-monthly-cap", "1000"]).await;
    let running = Box::pin(answer::begin(&office.memory.world.env, &office.caller, &asking())).await.expect("begun");
    let (_connection, _) = tokio::time::timeout(LIMIT, silent.accept()).await.expect("a call").expect("a connection");
    drop(running);
    let counted =
        "select count(*) from usage where model = 'wise-1' and calls = 1 and tokens > 500 and cost_micros > 0";
    assert!(wait_until(LIMIT, async || office.memory.number(counted).await == 1).await);
    assert_eq!(office.memory.number("select count(*) from tributary.reservations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_come_after_their_memory_began_to_move_are_counted() {
    let fake = FakeEmbedder::start(8).await;
    let mut flags = fake.flags();
    flags.extend(["--embed-price-per-million", "1000000", "--embed-monthly-cap", "1000"].map(str::to_owned));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut memory = Memory::of(World::with_flags(cluster::cloned(), domain::Clock::System, &flags).await).await;
    let http = Http::new().expect("a client");
    let of = |flags: &[&str]| Embedder::from_config(&testkit::config(flags), &http).expect("an embedder");
    memory.world.env.embedders = Embedders::new(of(flags.as_slice()), vec![of(&["--embedder", "fast"])]);
    memory.remember(vec![memory.record("first", "Copper pipes.")]).await;
    fake.go_away().await;
    assert!(memory.remember(vec![memory.record("late", "A boiler in the yard.")]).await[0].is_pending);
    fake.come_back().await;
    // A call that failed may have cost something: what it reserved lapses by itself.
    let reserved = memory.number("select count(*) from tributary.reservations").await;

    let (n_before, world) = (fake.calls().len(), &memory.world);
    fake.answer_next(&[embedder::Manner::Slow(Duration::from_secs(2))]);
    let caller = domain::Caller::local("test", world.tenant_id, true);
    let moved = async {
        assert!(wait_until(LIMIT, async || fake.calls().len() > n_before).await, "the lane asks");
        moves::begin(&world.env, &caller, Some("fast")).await.expect("a move");
    };
    tokio::join!(world.run_lanes(&lanes::ALL), moved);
    world.run_lanes(&lanes::ALL).await;
    let calls = memory.number("select calls from usage where model = 'fake_8'").await;
    assert_eq!(calls, fake.calls().iter().filter(|call| call.is_answered).count() as i64);
    assert_eq!(memory.number("select count(*) from tributary.reservations").await, reserved);
}
