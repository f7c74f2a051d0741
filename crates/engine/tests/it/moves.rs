//! A memory moves to another model: it is searched and written all the time, the worker is killed, money runs out, somebody cancels. The new
//! embedder is a service that keeps its own ledger.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use connectors::Http;
use domain::{Caller, Clock, Record, TenantId};
use engine::memory::embed::{Embedder, Embedders};
use engine::memory::recall::{self, Query, SearchAnswer};
use engine::memory::{moves, remember};
use engine::{ActError, Config, Env, health, lanes};
use rustix::process::Signal;
use serde_json::json;
use store::memory::{How, Mode};
use store::queue::Queue;
use testkit::embedder::{FakeEmbedder, Manner};
use testkit::process::Worker;
use testkit::{World, cluster, is_slow, wait_until};

use crate::memory::Memory;

const LIMIT: Duration = Duration::from_secs(90);

fn fast() -> Embedder {
    Embedder::from_config(&testkit::config(&["--embedder", "fast"]), &Http::new().expect("a client")).expect("fast")
}

fn of(fake: &FakeEmbedder) -> Embedder {
    let flags = fake.flags();
    let config = testkit::config(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    Embedder::from_config(&config, &Http::new().expect("a client")).expect("an embedder")
}

fn text(nth: usize) -> String {
    format!("Crate {nth} holds copper window number{nth}.")
}

/// A question that finds that text by its words and by its vector. Ledgers tell it from the text.
fn question(nth: usize) -> String {
    text(nth).to_lowercase()
}

/// A memory with so many documents, each one chunk with a vector of `fast`. The settings name `fake`.
async fn filled(clock: Clock, flags: &[&str], fake: &FakeEmbedder, n: usize) -> Memory {
    let mut all = fake.flags();
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut memory = Memory::of(World::with_flags(cluster::cloned(), clock, &all).await).await;
    let named = memory.world.env.embedders.clone();
    memory.world.env.embedders = Embedders::new(fast(), Vec::new());
    let all: Vec<usize> = (0..n).collect();
    for some in all.chunks(500) {
        let records = some.iter().map(|nth| memory.record(&format!("k{nth}"), &text(*nth))).collect();
        memory.remember(records).await;
    }
    assert_eq!(memory.number("select count(*) from memory.vectors_fast_256").await, n as i64);
    memory.world.env.embedders = named;
    memory
}

fn fixed() -> Clock {
    Clock::fixed(Utc::now() + TimeDelta::hours(1))
}

fn caller(world: &World) -> Caller {
    Caller::local("test", world.tenant_id, true)
}

async fn ask(env: &Env, caller: &Caller, text: &str) -> SearchAnswer {
    let query = Query { text: text.into(), k: 10, mode: Mode::Hybrid, ..Query::default() };
    Box::pin(recall::search(env, caller, &query)).await.expect("a search that does not fail")
}

async fn word(world: &World, sql: &'static str) -> String {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect(sql)
}

async fn model(world: &World) -> String {
    word(world, "select model from memory.tenants").await
}

/// Nothing but vectors of the new model is left, one for each chunk, and every document says so.
async fn is_all_of(memory: &Memory, model: &str) {
    assert_eq!(self::model(&memory.world).await, model);
    for (sql, expected) in [
        ("select count(*) from memory.moves", 0),
        (
            "select count(*) from document_chunks c where not exists (select from memory.vectors_fake_16 v where v.tenant_id = c.tenant_id and v.chunk_id = c.id)",
            0,
        ),
        ("select (select count(*) from memory.vectors_fake_16) - (select count(*) from document_chunks)", 0),
        ("select count(*) from memory.vectors_fast_256", 0),
        ("select count(*) from source_documents where n_chunks > 0 and embedding_model is distinct from 'fake_16'", 0),
        ("select count(*) from pgmq.q_reembed", 0),
        ("select count(*) from pgmq.a_reembed", 0),
    ] {
        assert_eq!(memory.number(sql).await, expected, "{sql}");
    }
}

/// How often the service was asked for each text of a document.
fn asked(fake: &FakeEmbedder) -> HashMap<String, usize> {
    let mut asked = HashMap::new();
    for text in fake.texts().into_iter().filter(|text| text.starts_with("Crate")) {
        *asked.entry(text).or_default() += 1;
    }
    asked
}

/// A caller who searches all the time. Every document that nobody changes is found, every time.
struct Searcher {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
    n: Arc<AtomicUsize>,
    /// Searches that found something by its vector.
    by_vector: Arc<AtomicUsize>,
}

impl Searcher {
    fn start(world: &World, n_documents: usize) -> Self {
        let (env, caller) = (world.env.clone(), caller(world));
        let (stop, n, by_vector) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::default());
        let (stopped, counted, vectors): (_, Arc<AtomicUsize>, Arc<AtomicUsize>) =
            (stop.clone(), Arc::clone(&n), Arc::clone(&by_vector));
        let task = tokio::spawn(async move {
            for nth in (0..).map(|round: usize| (round * 7) % n_documents) {
                if stopped.load(Relaxed) {
                    return;
                }
                let answer = ask(&env, &caller, &question(nth)).await;
                let name = format!("k{nth}");
                let found = answer.hits.iter().find(|hit| hit.external_id == name);
                let found = found.unwrap_or_else(|| panic!("{name} was not found: {:?}", answer.note));
                vectors.fetch_add(usize::from(found.vector_rank.is_some()), Relaxed);
                counted.fetch_add(1, Relaxed);
            }
        });
        Self { stop, task, n, by_vector }
    }

    /// The number of searches, and of those that had a vector for what they looked for.
    async fn end(self) -> (usize, usize) {
        self.stop.store(true, Relaxed);
        self.task.await.expect("no search failed");
        (self.n.load(Relaxed), self.by_vector.load(Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_moves_while_it_is_searched_and_written() {
    let fake = FakeEmbedder::start(16).await;
    let mut memory = filled(fixed(), &[], &fake, 400).await;
    let me = caller(&memory.world);
    fake.answer(Manner::Slow(Duration::from_millis(30)));
    let estimate = moves::begin(&memory.world.env, &me, None).await.expect("begun");
    assert_eq!((estimate.from.as_str(), estimate.to.as_str(), estimate.chunks), ("fast_256", "fake_16", 400));
    assert!(estimate.tokens > 400 && estimate.cost_micros == 0, "{estimate:?}");
    let again = moves::begin(&memory.world.env, &me, None).await;
    assert!(matches!(again, Err(ActError::Conflict(_))), "{again:?}");

    let searcher = Searcher::start(&memory.world, 200); // the others change meanwhile
    let writing = async {
        for nth in 200..260 {
            let changed = memory.record(&format!("k{nth}"), &format!("Crate {nth} is empty now, says inspector{nth}."));
            let gone = Record { is_deleted: true, ..memory.record(&format!("k{}", nth + 60), "") };
            let new = memory.record(&format!("new{nth}"), &format!("Crate new{nth} came by rail{nth}."));
            memory.remember(vec![changed, gone, new]).await;
        }
    };
    tokio::join!(memory.world.run_lanes(&lanes::ALL), writing);
    memory.world.run_lanes(&lanes::ALL).await;
    let (searches, by_vector) = searcher.end().await;
    println!("{searches} searches during the move, {by_vector} by vector too");
    // One that begins before the switch may read its candidates when the old vectors are gone.
    assert!(searches > 0 && by_vector + 2 >= searches, "{by_vector} of {searches} searches had vectors");

    is_all_of(&memory, "fake_16").await;
    for nth in [200, 231, 259] {
        assert_eq!(
            memory.search(&format!("crate {nth} is empty now, says inspector{nth}"), Mode::Hybrid).await[0],
            format!("k{nth}")
        );
        assert_eq!(
            memory.search(&format!("crate new{nth} came by rail{nth}"), Mode::Hybrid).await[0],
            format!("new{nth}")
        );
        let gone = format!("k{}", nth + 60);
        assert!(!memory.search(&question(nth + 60), Mode::Hybrid).await.contains(&gone), "{gone} is back");
    }
    let answer = ask(&memory.world.env, &me, &question(17)).await;
    assert_eq!((answer.how, answer.note, answer.hits[0].external_id.as_str()), (How::Index, None, "k17"));
    let twice: Vec<_> = asked(&fake).into_iter().filter(|(_, n)| *n > 1).collect();
    assert!(twice.is_empty(), "embedded twice: {twice:?}");
    let again = memory.remember(vec![memory.record("k17", &text(17))]).await;
    assert_eq!(again[0].change, engine::memory::Change::Unchanged);

    // Nobody uses the old table; it goes an hour later.
    memory.world.env.embedders = Embedders::new(of(&fake), vec![fast()]);
    let tables = "select count(*) from pg_class where relname = 'vectors_fast_256'";
    moves::keep(&memory.world.env).await.expect("kept");
    assert_eq!(memory.number(tables).await, 1);
    memory.world.env.clock.advance(TimeDelta::minutes(61));
    moves::keep(&memory.world.env).await.expect("kept");
    assert_eq!(memory.number(tables).await, 0, "the old table is dropped");
    assert_eq!(word(&memory.world, "select string_agg(name, ' ') from memory.models").await, "fake_16");
    assert_eq!(memory.search(&question(17), Mode::Hybrid).await[0], "k17");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_move_leaves_the_memory_as_it_was() {
    let fake = FakeEmbedder::start(16).await;
    let memory = filled(fixed(), &[], &fake, 300).await;
    let (env, me) = (&memory.world.env, caller(&memory.world));
    assert!(matches!(moves::cancel(env, &me).await, Err(ActError::NotFound(_))));
    moves::begin(env, &me, Some("fake")).await.expect("begun");
    let well = std::iter::repeat_n(Manner::Well, 6);
    fake.answer_next(&well.chain([Manner::Status(429, "retry-after: 30\r\n", "")]).collect::<Vec<_>>());
    memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.number("select count(*) from memory.vectors_fake_16").await, 6 * 32);
    let moving = moves::own(env, &me).await.expect("a status").and_then(|status| status.moving).expect("a move");
    assert_eq!((moving.n_embedded, moving.n_left), (6 * 32, 300 - 6 * 32));
    assert!(moves::in_words(&moving).contains("192 chunks embedded, about 108 left"), "{}", moves::in_words(&moving));
    assert!(moving.waits_for.is_some(), "{moving:?}");
    let during = memory.remember(vec![memory.record("during", "Crate during the move.")]).await;
    assert!(!during[0].is_pending);

    moves::cancel(env, &me).await.expect("cancelled");
    memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.number("select count(*) from memory.vectors_fake_16").await, 0);
    assert_eq!(memory.number("select count(*) from memory.moves").await, 0);
    assert_eq!(memory.number("select count(*) from memory.vectors_fast_256").await, 301);
    assert_eq!(memory.number("select count(*) from source_documents where embedding_model = 'fast_256'").await, 301);
    let calls = fake.calls().len();
    assert_eq!(memory.search(&question(17), Mode::Hybrid).await[0], "k17");
    assert_eq!(fake.calls().len(), calls, "the question was asked of the old model");
    // It stays, although the settings name another model.
    moves::keep(env).await.expect("kept");
    assert_eq!(memory.number("select count(*) from memory.moves").await, 0);
    // The message of the old move finds nothing to do.
    env.clock.advance(TimeDelta::minutes(2));
    memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!((model(&memory.world).await.as_str(), fake.calls().len()), ("fast_256", calls));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cap_stops_a_move_and_a_higher_one_lets_it_go_on() {
    let fake = FakeEmbedder::start(16).await;
    // A dollar a token: a bite of 128 such texts costs some 1,400.
    let price = ["--embed-price-per-million", "1000000", "--embed-monthly-cap", "2000"];
    let mut memory = filled(fixed(), &price, &fake, 300).await;
    let me = caller(&memory.world);
    let estimate = moves::begin(&memory.world.env, &me, None).await.expect("begun");
    assert!(estimate.cost_micros > 2_000_000_000, "{estimate:?}");
    memory.world.run_lanes(&lanes::ALL).await;
    let done = memory.number("select count(*) from memory.vectors_fake_16").await;
    assert_eq!(done, 128, "one bite fits");
    let parked = "select count(*) from tributary.parked where queue = 'reembed' and reason like 'budget%'";
    assert_eq!((memory.number(parked).await, model(&memory.world).await.as_str()), (1, "fast_256"));
    let spent = "select coalesce(sum(cost_micros), 0)::int8 / 1000000 from usage";
    assert!((1_000..2_000).contains(&memory.number(spent).await));
    moves::keep(&memory.world.env).await.expect("kept");
    assert_eq!(memory.number("select count(*) from pgmq.q_reembed").await, 0, "a parked move is not sent for again");
    memory.world.env.clock.advance(TimeDelta::minutes(11));
    let overview = health::overview(&memory.world.env, &me).await.expect("an overview");
    assert!(overview.findings.iter().any(|finding| finding.kind == "memory_stuck"), "{:?}", overview.findings);
    assert_eq!(memory.search(&question(17), Mode::Hybrid).await[0], "k17");

    let config = Config { embed_monthly_cap: Some(50_000.0), ..(*memory.world.env.config).clone() };
    memory.world.env.config = Arc::new(config);
    upkeep(&memory.world, "unpark").await;
    memory.world.run_lanes(&lanes::ALL).await;
    is_all_of(&memory, "fake_16").await;
    assert!(asked(&fake).values().all(|n| *n == 1), "no text was paid for twice");
}

/// Runs a task of upkeep.
async fn upkeep(world: &World, task: &str) {
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let queue = Queue::new("upkeep").expect("a queue");
    queue.send(&mut tx, world.tenant_id, &[json!({ "task": task })]).await.expect("sent");
    tx.commit().await.expect("committed");
    world.run_lanes(&lanes::ALL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_switch_on_their_own() {
    let fake = FakeEmbedder::start(16).await;
    let mut memory = filled(fixed(), &["--auto-reembed", "false"], &fake, 150).await;
    let other = memory.world.other_tenant("other").await;
    let source_id =
        store::sources::ensure_manual(&mut *memory.world.conn().await, other).await.expect("the other's source");
    let named = memory.world.env.embedders.clone();
    memory.world.env.embedders = Embedders::new(fast(), Vec::new());
    let theirs = Record::new(source_id, "theirs", domain::DocumentType::Note, "Crate of theirs is made of oak.");
    let begin = || async { Ok(memory.world.env.db.begin().await?) };
    let (tx, _) = Box::pin(remember(&memory.world.env, other, vec![theirs], begin)).await.expect("remembered");
    tx.commit().await.expect("committed");
    memory.world.env.embedders = named;
    let (env, me, them) = (&memory.world.env, caller(&memory.world), Caller::local("test", TenantId(other.0), false));

    moves::begin(env, &me, None).await.expect("begun");
    memory.world.run_lanes(&lanes::ALL).await;
    let models = "select string_agg(model, ' ' order by n_chunks desc, model) from memory.tenants";
    assert_eq!(word(&memory.world, models).await, "fake_16 fast_256");
    for (who, question, expected) in [(&me, question(17).as_str(), "k17"), (&them, "oak", "theirs")] {
        let answer = ask(env, who, question).await;
        assert_eq!((answer.hits[0].external_id.as_str(), answer.how, answer.note), (expected, How::Exact, None));
    }
    env.clock.advance(TimeDelta::hours(2));
    moves::keep(env).await.expect("kept");
    env.clock.advance(TimeDelta::hours(2));
    moves::keep(env).await.expect("kept");
    assert_eq!(memory.number("select count(*) from memory.vectors_fast_256").await, 1, "the other still uses it");
    // The other's model is not the configured one, nothing moves it, and it can still be asked.
    let seen = moves::status(env, &them).await.expect("a status");
    assert!(seen.len() == 1 && seen[0].can_be_asked && seen[0].configured == "fake_16", "{seen:?}");
    assert_eq!(moves::status(env, &me).await.expect("a status").len(), 2, "the operator sees both");
    let found = health::overview(env, &them).await.expect("an overview").findings;
    assert!(found.iter().any(|finding| finding.kind == "memory_model"), "{found:?}");
    moves::begin(env, &them, None).await.expect("begun");
    memory.world.run_lanes(&lanes::ALL).await;
    is_all_of(&memory, "fake_16").await;
    assert_eq!(ask(env, &them, "oak").await.hits[0].external_id, "theirs");
}

/// The settings name another embedder, and the old one cannot be asked any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_setting_moves_the_memory_by_itself_and_search_goes_on() {
    let fake = FakeEmbedder::start(16).await;
    let mut memory = filled(fixed(), &[], &fake, 200).await;
    memory.world.env.embedders = Embedders::new(of(&fake), Vec::new());
    let (env, me) = (&memory.world.env, caller(&memory.world));
    let answer = ask(env, &me, &question(17)).await;
    assert_eq!((answer.how, answer.hits[0].external_id.as_str()), (How::Keyword, "k17"));
    assert!(answer.note.expect("a note").contains("no vectors of the model fake_16"));

    let well = std::iter::repeat_n(Manner::Well, 6);
    fake.answer_next(&well.chain([Manner::Status(429, "retry-after: 30\r\n", "")]).collect::<Vec<_>>());
    upkeep(&memory.world, "models").await;
    let status = moves::own(env, &me).await.expect("a status").expect("a memory");
    assert!(!status.can_be_asked, "{status:?}");
    let moving = status.moving.expect("it moves by itself");
    assert_eq!((moving.asked_by.as_str(), moving.n_embedded), ("the setting EMBEDDER", 192));
    let answer = ask(env, &me, &question(17)).await;
    assert_eq!((answer.how, answer.hits[0].external_id.as_str()), (How::Exact, "k17"));
    let note = answer.note.expect("a note");
    assert!(note.contains("fast_256 cannot be asked") && note.contains("fake_16"), "{note}");
    // What comes now gets a vector of the new model alone.
    let new = memory.remember(vec![memory.record("new", "Crate new came by rail.")]).await;
    assert!(!new[0].is_pending && new[0].n_embedded == 1);
    env.clock.advance(TimeDelta::minutes(1));
    memory.world.run_lanes(&lanes::ALL).await;
    is_all_of(&memory, "fake_16").await;
    let answer = ask(env, &me, &question(17)).await;
    assert_eq!((answer.how, answer.note), (How::Index, None));

    // A worker whose settings still name the old embedder does not move it back.
    memory.world.env.embedders = Embedders::new(fast(), vec![of(&fake)]);
    moves::keep(&memory.world.env).await.expect("kept");
    assert_eq!(memory.number("select count(*) from memory.moves").await, 0);
    memory.world.env.clock.advance(TimeDelta::hours(25));
    moves::keep(&memory.world.env).await.expect("kept");
    assert_eq!(memory.number("select count(*) from memory.moves").await, 1, "a day later it does");
}

/// A worker with the program's own lanes.
fn worker(world: &World, fake: &FakeEmbedder, crash: Option<&str>) -> Worker {
    let url = fake.url();
    let env = [
        ("CRASHLING_REAL", "1"),
        ("EMBEDDER", "compatible"),
        ("EMBED_MODEL", "fake"),
        ("EMBED_BASE_URL", url.as_str()),
        ("EMBED_DIM", "16"),
    ];
    crate::programs::crashling(&world.database.url, crash, &env)
}

/// F1: killed ten times, in the middle and at each of its steps. No search fails, no document is missing, and no text is embedded again once its
/// vector was committed. `--slow` has 100,000 chunks.
#[tokio::test(flavor = "multi_thread")]
async fn killed_ten_times_a_move_embeds_every_chunk_once_and_no_search_fails() {
    let (n, bite) = if is_slow() { (100_000, 128) } else { (3_000, 128) };
    let fake = FakeEmbedder::start(16).await;
    let memory = filled(Clock::System, &[], &fake, n).await;
    moves::begin(&memory.world.env, &caller(&memory.world), None).await.expect("begun");
    let searcher = Searcher::start(&memory.world, n);
    if !is_slow() {
        fake.answer(Manner::Slow(Duration::from_millis(60))); // so that kills come in the middle of a bite
    }
    let limit = if is_slow() { Duration::from_secs(1_200) } else { LIMIT };
    let in_the_middle = "";
    let kills = [
        "reembed.made:abort",
        "reembed.before_commit:abort",
        "reembed.after_commit:abort",
        in_the_middle,
        in_the_middle,
        in_the_middle,
        in_the_middle,
        "reembed.before_switch:abort",
        "reembed.switched:abort",
        "reembed.tidied:abort",
    ];
    let mut committed: Vec<(usize, HashSet<String>)> = Vec::new();
    for point in kills {
        if point == in_the_middle {
            let more = embedded(&memory).await + if is_slow() { 15_000 } else { 1 };
            let victim = worker(&memory.world, &fake, None);
            let moved = wait_until(limit, async || embedded(&memory).await >= more).await;
            assert!(moved, "the move does not reach {more} chunks");
            victim.signal(Signal::KILL);
        } else {
            let mut victim = worker(&memory.world, &fake, Some(point));
            assert!(victim.ended_within(limit).await.is_some(), "{point} was not reached");
        }
        committed.push((fake.calls().len(), texts_with_vectors(&memory).await));
        // As the take-over does within ten seconds: the item is due, and the receipt of the dead worker is worth nothing.
        let due = "update pgmq.q_reembed set vt = now()";
        sqlx::query(due).execute(&mut *memory.world.conn().await).await.expect("due");
    }
    let last = worker(&memory.world, &fake, None);
    let moved = wait_until(limit, async || memory.number("select count(*) from memory.moves").await == 0).await;
    assert!(moved, "the move does not end");
    drop(last);
    let (searches, by_vector) = searcher.end().await;
    is_all_of(&memory, "fake_16").await;

    // A call that was under way when its worker was killed may have been written down after that.
    let calls = fake.calls();
    for (kill, (first, with_vector)) in committed.iter().enumerate() {
        let later = calls[*first..].iter().flat_map(|call| &call.texts);
        let again: Vec<_> = later.filter(|text| with_vector.contains(*text)).take(3).collect();
        assert!(again.is_empty(), "kill {kill}: embedded again though committed: {again:?}");
    }
    let asked = asked(&fake);
    let twice: usize = asked.values().map(|n| n - 1).sum();
    println!(
        "{n} chunks, 10 kills: {searches} searches, {by_vector} by vector too, none failed; {twice} texts of bites under way were embedded again"
    );
    assert_eq!(asked.len(), n, "each text was embedded");
    assert!(twice <= 6 * bite, "{twice} texts were embedded again by 6 kills in the middle of bites of {bite}");
    assert!(searches > 10 && by_vector + 2 >= searches, "{by_vector} of {searches} searches had vectors");
    if is_slow() {
        let answer = ask(&memory.world.env, &caller(&memory.world), &question(77)).await;
        assert_eq!(answer.how, How::Index, "a large memory has its codes when it switches");
    }
}

async fn embedded(memory: &Memory) -> i64 {
    memory.number("select coalesce((select n_embedded from memory.moves), 0)").await
}

/// The texts whose vector of the new model is committed.
async fn texts_with_vectors(memory: &Memory) -> HashSet<String> {
    let sql = "select c.text from document_chunks c join memory.vectors_fake_16 v on v.tenant_id = c.tenant_id and v.chunk_id = c.id";
    let texts: Vec<String> =
        sqlx::query_scalar(sql).fetch_all(&mut *memory.world.conn().await).await.expect("texts with vectors");
    texts.into_iter().collect()
}
