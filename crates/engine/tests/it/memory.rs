//! remember() and search: what is promised of each, against real PostgreSQL and the real in-process model.

use connectors::Http;
use domain::{Caller, DocumentType, Record, Scope, SourceId, TenantId};
use engine::lanes;
use engine::memory::embed::{Embedder, Embedders};
use engine::memory::recall::{self, Query};
use engine::memory::{Change, Remembered, codes, remember};
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use store::memory::{Filters, HalfVec, How, Mode, codes::FRESH, maintain};
use store::sources;
use testkit::World;
use testkit::embedder::{FakeEmbedder, Manner};

/// A world whose tenant has its own source.
pub(crate) struct Memory {
    pub world: World,
    source_id: SourceId,
}

impl Memory {
    pub async fn new() -> Self {
        Self::of(World::new().await).await
    }

    pub async fn of(world: World) -> Self {
        let source_id = sources::ensure_manual(&mut *world.conn().await, world.tenant_id).await.expect("a source");
        Self { world, source_id }
    }

    pub fn record(&self, name: &str, text: &str) -> Record {
        Record::new(self.source_id, name, DocumentType::Note, text)
    }

    pub async fn remember(&self, records: Vec<Record>) -> Vec<Remembered> {
        let env = &self.world.env;
        let begin = || async { Ok(env.db.begin().await?) };
        let (tx, batch) = Box::pin(remember(env, self.world.tenant_id, records, begin)).await.expect("remembered");
        tx.commit().await.expect("committed");
        batch.records
    }

    pub async fn search(&self, text: &str, mode: Mode) -> Vec<String> {
        let caller = Caller::local("test", self.world.tenant_id, true);
        found(&self.world, &caller, text, mode, Filters::default()).await
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }
}

pub(crate) async fn found(world: &World, caller: &Caller, text: &str, mode: Mode, filters: Filters) -> Vec<String> {
    let query = Query { text: text.into(), filters, k: 10, mode, ..Query::default() };
    let answer = Box::pin(recall::search(&world.env, caller, &query)).await.expect("an answer");
    answer.hits.into_iter().map(|hit| hit.external_id).collect()
}

/// Made-up sentences, no two alike.
fn sentences(n: usize, seed: u64) -> Vec<String> {
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    let words = ["river", "ledger", "harbour", "invoice", "copper", "window", "engine", "letter", "market", "winter"];
    (0..n)
        .map(|nth| {
            let said: Vec<&str> = (0..12).map(|_| words[rng.random_range(0..words.len())]).collect();
            format!("Sentence {nth} tells of {}.", said.join(" "))
        })
        .collect()
}

#[tokio::test]
async fn the_same_twice_is_one_document_and_embeds_nothing_the_second_time() {
    let memory = Memory::new().await;
    let text = sentences(60, 1).join(" ");
    let first = memory.remember(vec![memory.record("a", &text)]).await;
    assert_eq!(first[0].change, Change::Created);
    assert!(first[0].n_embedded == first[0].n_chunks && first[0].n_chunks > 3 && !first[0].is_pending);
    let calls = memory.world.env.embedders.configured().calls();
    let second = memory.remember(vec![memory.record("a", &text)]).await;
    assert_eq!((second[0].id, second[0].change), (first[0].id, Change::Unchanged));
    assert_eq!(memory.world.env.embedders.configured().calls(), calls, "an unchanged text was embedded again");
    assert_eq!(memory.number("select count(*) from source_documents").await, 1);
}

#[tokio::test]
async fn a_sentence_in_the_middle_embeds_at_most_three_chunks() {
    let memory = Memory::new().await;
    let mut said: Vec<String> = Vec::new();
    for (nth, sentence) in sentences(1_400, 2).into_iter().enumerate() {
        said.push(if nth % 4 == 3 { format!("{sentence}\n\n") } else { format!("{sentence} ") });
    }
    let first = memory.remember(vec![memory.record("long", &said.concat())]).await;
    assert!(first[0].n_chunks >= 100, "only {} chunks", first[0].n_chunks);
    said.insert(700, "Something new was said in the middle of it all. ".into());
    let before = memory.world.env.embedders.configured().texts();
    let second = memory.remember(vec![memory.record("long", &said.concat())]).await;
    let embedded = memory.world.env.embedders.configured().texts() - before;
    assert!((1..=3).contains(&embedded) && second[0].n_embedded as u64 == embedded, "{embedded} chunks were embedded");
    let dangling = "select count(*) from memory.vectors_fast_256 v where not exists (select from document_chunks c where c.id = v.chunk_id)";
    assert_eq!(memory.number(dangling).await, 0);
    let ordinals = "select count(*) - count(distinct ordinal) from document_chunks";
    assert_eq!(memory.number(ordinals).await, 0, "two chunks stand at one place");
    assert_eq!(memory.search("Something new was said in the middle", Mode::Hybrid).await, ["long"]);
}

/// F26.
#[tokio::test]
async fn whatever_the_order_the_newest_version_stands_and_deletes_beat_late_updates() {
    let seed = 20_261_115;
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    let memory = Memory::new().await;
    let mut ledger: Vec<Record> = Vec::new();
    for document in 0..6 {
        for version in 1..=5_i64 {
            let text = format!("Document {document} as of version {version}.");
            let is_deleted = (document % 3 == 0 && version == 5) || (document % 3 == 1 && version == 3);
            ledger.push(Record {
                source_version: Some(version),
                is_deleted,
                ..memory.record(&format!("d{document}"), &text)
            });
        }
    }
    for round in 0..4 {
        ledger.shuffle(&mut rng);
        for batch in ledger.chunks(rng.random_range(1..8)) {
            memory.remember(batch.to_vec()).await;
        }
        let rows: Vec<(String, bool, String, i64)> = sqlx::query_as(
            "select d.external_id, d.deleted_at is not null, d.text, (select count(*) from document_chunks c where c.document_id = d.id)
             from source_documents d order by 1",
        )
        .fetch_all(&mut *memory.world.conn().await)
        .await
        .expect("rows");
        let expected: Vec<(String, bool, String, i64)> = (0..6)
            .map(|document| match document % 3 {
                0 => (format!("d{document}"), true, String::new(), 0),
                _ => (format!("d{document}"), false, format!("Document {document} as of version 5."), 1),
            })
            .collect();
        assert_eq!(rows, expected, "F26, seed {seed}, round {round}");
    }
}

/// F26: deletions without a version, as providers tell them, among versions that come late, together or one by one.
#[tokio::test]
async fn deletions_without_a_version_beat_late_updates_in_one_batch_and_in_many() {
    for seed in 0..6 {
        let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
        let memory = Memory::new().await;
        let mut came: Vec<(usize, Option<i64>)> = (0..8)
            .flat_map(|document| [Some(1), Some(2), Some(3), None, Some(4)].map(|version| (document, version)))
            .collect();
        came.shuffle(&mut rng);
        let most = if seed % 2 == 0 { 40 } else { 4 };
        let text = |document: usize, version: i64| format!("Document {document} as of version {version}.");
        for batch in came.chunks(rng.random_range(1..=most)) {
            let records = batch.iter().map(|(document, version)| Record {
                source_version: *version,
                is_deleted: version.is_none(),
                ..memory.record(&format!("d{document}"), &text(*document, version.unwrap_or(0)))
            });
            memory.remember(records.collect()).await;
        }
        // What stands when they come one by one: nothing older than what was seen before comes back after a deletion.
        let stands = |document: usize| {
            let (mut newest, mut text_now) = (0, String::new());
            for (_, version) in came.iter().filter(|(of, _)| *of == document) {
                match version {
                    Some(version) if *version < newest => {}
                    Some(version) => (newest, text_now) = (*version, text(document, *version)),
                    None => text_now = String::new(),
                }
            }
            text_now
        };
        let rows: Vec<(String, String)> = sqlx::query_as(
            "select external_id, case when deleted_at is null then text else '' end from source_documents order by 1",
        )
        .fetch_all(&mut *memory.world.conn().await)
        .await
        .expect("rows");
        let expected: Vec<(String, String)> =
            (0..8).map(|document| (format!("d{document}"), stands(document))).collect();
        assert_eq!(rows, expected, "F26, seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_the_same_documents_wait_for_each_other_and_the_newest_wins() {
    let memory = Memory::of(World::now().await).await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..8_i64 {
        let (env, tenant_id, source_id) = (memory.world.env.clone(), memory.world.tenant_id, memory.source_id);
        tasks.spawn(async move {
            for version in 0..6_i64 {
                // Each in its own order: opposite orders would meet in a ring.
                let mut batch: Vec<Record> = (0..10)
                    .map(|n| Record {
                        source_version: Some(version * 10 + writer),
                        ..Record::new(
                            source_id,
                            format!("d{n}"),
                            DocumentType::Note,
                            format!("d{n} by {writer} at {version}"),
                        )
                    })
                    .collect();
                batch.rotate_left(usize::try_from(writer).expect("small"));
                if writer % 2 == 0 {
                    batch.reverse();
                }
                let begin = || async { Ok(env.db.begin().await?) };
                loop {
                    // Losing every round to others is a fault that a lane tries again.
                    match Box::pin(remember(&env, tenant_id, batch.clone(), begin)).await {
                        Ok((tx, _)) => break tx.commit().await.expect("committed"),
                        Err(domain::Fault::Transient(_)) => {}
                        Err(fault) => panic!("{}", fault.in_words()),
                    }
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a writer");
    }
    let wrong = "select count(*) from source_documents where text not like '% by 7 at 5' or source_version <> 57";
    assert_eq!(memory.number(wrong).await, 0);
    assert_eq!(memory.number("select count(*) from document_chunks").await, 10);
    assert_eq!(memory.number("select count(*) from memory.vectors_fast_256").await, 10);
}

#[tokio::test]
async fn what_the_caller_does_not_commit_was_never_remembered() {
    let memory = Memory::new().await;
    let env = &memory.world.env;
    let begin = || async { Ok(env.db.begin().await?) };
    let record = memory.record("a", "A thought that comes to nothing.");
    let (tx, batch) = Box::pin(remember(env, memory.world.tenant_id, vec![record], begin)).await.expect("remembered");
    assert_eq!(batch.records[0].change, Change::Created);
    tx.rollback().await.expect("rolled back");
    for table in ["source_documents", "document_chunks", "memory.vectors_fast_256"] {
        let n: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from {table}")))
            .fetch_one(&mut *memory.world.conn().await)
            .await
            .expect("a count");
        assert_eq!(n, 0, "{table}");
    }
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn without_its_embedder_a_text_is_found_by_keyword_and_gets_its_vectors_later() {
    let embedder = FakeEmbedder::start(8).await;
    let mut world = World::now().await;
    let flags = embedder.flags();
    let config = testkit::config(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    world.env.embedders = Embedders::from_config(&config, &world.env.http).expect("an embedder");
    let memory = Memory::of(world).await;
    let manners = [Manner::HangsUp, Manner::Status(503, "", ""), Manner::WrongDim, Manner::Nan, Manner::TooFew];
    for (nth, manner) in manners.iter().enumerate() {
        embedder.answer(manner.clone());
        let name = format!("d{nth}");
        let text = format!("The lighthouse number{nth} stands alone.");
        let said = memory.remember(vec![memory.record(&name, &text)]).await;
        assert!(said[0].is_pending && said[0].n_embedded == 0, "F34: {manner:?} counted as success");
        assert_eq!(memory.search(&format!("number{nth}"), Mode::Hybrid).await, [name]);
    }
    let marked =
        "select count(*) from source_documents where embedding_model is not null or embedding_text_sha256 is not null";
    let n = manners.len() as i64;
    assert_eq!(memory.number(marked).await, 0);
    assert_eq!(memory.number("select count(*) from pgmq.q_embed").await, n);
    embedder.answer(Manner::Well);
    memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.number(marked).await, n);
    assert_eq!(memory.number("select count(*) from pgmq.q_embed").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_search_waits_for_a_service_that_is_away_and_the_next_ones_do_not() {
    let embedder = FakeEmbedder::start(8).await;
    let mut world = World::new().await;
    let flags = embedder.flags();
    let config = testkit::config(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    world.env.embedders = Embedders::from_config(&config, &world.env.http).expect("an embedder");
    let memory = Memory::of(world).await;
    memory.remember(vec![memory.record("light", "The lighthouse stands alone.")]).await;
    let caller = Caller::local("test", memory.world.tenant_id, true);
    let ask = async || {
        let query = Query { text: "lighthouse".into(), k: 10, ..Query::default() };
        let n_before = embedder.calls().len();
        let answer = Box::pin(recall::search(&memory.world.env, &caller, &query)).await.expect("an answer");
        assert_eq!(answer.hits.len(), 1, "it is found in any case");
        (embedder.calls().len() - n_before, answer.note.is_some())
    };
    assert_eq!(ask().await, (1, false));
    embedder.answer(Manner::Status(503, "", ""));
    assert_eq!(ask().await, (1, true), "it is tried once");
    assert_eq!(ask().await, (0, true), "the next search does not wait for it");
    embedder.answer(Manner::Well);
    assert_eq!(ask().await, (0, true));
    memory.world.env.clock.advance(chrono::TimeDelta::seconds(11));
    assert_eq!(ask().await, (1, false), "it is asked again after ten seconds");
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_many_chunks_gets_its_vectors_in_parts() {
    let embedder = FakeEmbedder::start(8).await;
    let mut world = World::now().await;
    let flags = embedder.flags();
    let config = testkit::config(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    world.env.embedders = Embedders::from_config(&config, &world.env.http).expect("an embedder");
    let memory = Memory::of(world).await;
    embedder.answer(Manner::HangsUp);
    let said = memory.remember(vec![memory.record("long", &sentences(6_000, 1).join(" "))]).await;
    assert!(said[0].is_pending);
    let n_chunks = memory.number("select count(*) from document_chunks").await;
    assert!(n_chunks > 256, "{n_chunks} chunks are made in one go");
    embedder.answer(Manner::Well);
    memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.number("select count(*) from memory.vectors_fake_8").await, n_chunks);
    assert_eq!(memory.number("select count(*) from source_documents where embedding_model = 'fake_8'").await, 1);
    assert_eq!(memory.number("select count(*) from pgmq.q_embed").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_default_embedder_a_note_has_its_vector_at_once_and_a_long_text_soon() {
    let mut world = World::now().await;
    let config = testkit::config(&["--embedder", "local", "--local-model", "minilm"]);
    world.env.embedders = Embedders::from_config(&config, &world.env.http).expect("an embedder");
    let memory = Memory::of(world).await;
    let long = format!("{} The lighthouse keeper counts ships.", sentences(500, 1).join(" "));
    let said = memory.remember(vec![memory.record("note", "Ann prefers calls on Friday mornings.")]).await;
    assert_eq!((said[0].is_pending, said[0].n_embedded), (false, 1));
    let said = memory.remember(vec![memory.record("long", &long)]).await;
    assert_eq!((said[0].is_pending, said[0].n_embedded), (true, 0));
    assert_eq!(memory.search("lighthouse", Mode::Hybrid).await[0], "long");
    memory.world.run_lanes(&lanes::ALL).await;
    assert_eq!(memory.search("when should I telephone Ann", Mode::Vector).await[0], "note");
    let lacking =
        "select count(*) from document_chunks c full join memory.vectors_all_minilm_l6_v2_384 v on v.chunk_id = c.id
        where v.chunk_id is null or c.id is null";
    assert_eq!(memory.number(lacking).await, 0);
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_fast_are_used_when_the_default_embedder_is_configured() {
    let mut memory = Memory::new().await;
    memory.remember(vec![memory.record("old", "The ferry leaves at noon.")]).await;
    let config = testkit::config(&["--embedder", "local"]);
    memory.world.env.embedders = Embedders::from_config(&config, &memory.world.env.http).expect("embedders");
    assert_eq!(memory.world.env.embedders.configured().model().name, "gte_small_384");
    let said = memory.remember(vec![memory.record("new", "The ferry returns at dusk.")]).await;
    assert_eq!((said[0].is_pending, said[0].n_embedded), (false, 1));
    assert_eq!(memory.number("select count(*) from memory.vectors_fast_256").await, 2);
    let caller = Caller::local("test", memory.world.tenant_id, true);
    let query = Query { text: "ferry".into(), k: 10, ..Query::default() };
    let answer = Box::pin(recall::search(&memory.world.env, &caller, &query)).await.expect("an answer");
    assert_eq!((answer.how, answer.note, answer.hits.len()), (How::Exact, None, 2));
}

/// F34.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_keeps_the_model_of_its_vectors_while_another_one_is_configured() {
    let (old, new) = (FakeEmbedder::start(8).await, FakeEmbedder::start(12).await);
    let mut memory = Memory::of(World::now().await).await;
    let embedder = |fake: &FakeEmbedder| {
        let flags = fake.flags();
        let config = testkit::config(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        Embedder::from_config(&config, &Http::new().expect("a client")).expect("an embedder")
    };
    let ask = async |memory: &Memory, text: &str| {
        let caller = Caller::local("test", memory.world.tenant_id, true);
        let query = Query { text: text.into(), k: 10, ..Query::default() };
        Box::pin(recall::search(&memory.world.env, &caller, &query)).await.expect("an answer")
    };
    memory.world.env.embedders = Embedders::new(embedder(&old), Vec::new());
    memory.remember(vec![memory.record("first", "The ferry leaves at noon.")]).await;

    memory.world.env.embedders = Embedders::new(embedder(&new), vec![embedder(&old)]);
    let second = memory.remember(vec![memory.record("second", "The ferry returns at dusk.")]).await;
    assert_eq!((second[0].n_embedded, new.texts().len()), (1, 0), "its vector is of the tenant's own model");
    let answer = ask(&memory, "ferry").await;
    assert_eq!((answer.how, answer.note, new.texts().len()), (How::Exact, None, 0));
    assert!(answer.hits.len() == 2 && answer.hits.iter().all(|hit| hit.vector_rank.is_some()), "{:?}", answer.hits);
    assert_eq!(memory.number("select count(*) from memory.vectors_fake_8").await, 2);

    memory.world.env.embedders = Embedders::new(embedder(&new), Vec::new());
    let answer = ask(&memory, "ferry").await;
    let note = answer.note.expect("a note");
    assert!(note.contains("no vectors of the model fake_12"), "{note}");
    assert_eq!((answer.how, answer.hits.len()), (How::Keyword, 2));
}

#[tokio::test]
async fn a_number_is_found_however_it_is_spelled() {
    let memory = Memory::new().await;
    let texts = [
        ("invoice", "Please pay invoice INV-2041 by Friday, says john.doe@acme.example."),
        ("other", "Please pay the other invoice, number 77, by Monday."),
        (
            "german",
            "Die Rechnungen für das Büro wurden gestern bezahlt und alle Unterlagen sind im Schrank abgelegt worden.",
        ),
    ];
    memory.remember(texts.iter().map(|(name, text)| memory.record(name, text)).collect()).await;
    for query in ["INV-2041", "inv 2041", "INV2041", "ＩＮＶ－２０４１", "acme.example", "john.doe"] {
        assert_eq!(memory.search(query, Mode::Keyword).await.first().map(String::as_str), Some("invoice"), "{query}");
    }
    assert_eq!(memory.search("Rechnung", Mode::Keyword).await, ["german"], "stems of the document's own language");
    let both = memory.search("paying the invoices", Mode::Keyword).await;
    assert!(both.contains(&"invoice".to_owned()) && both.contains(&"other".to_owned()), "{both:?}");
    for harmless in ["the", "'; drop table tenants; --", "a & | ! ( : *", &"x ".repeat(1_000)] {
        memory.search(harmless, Mode::Hybrid).await;
    }
    let caller = Caller::local("test", memory.world.tenant_id, true);
    for refused in ["", "   ", "\u{0}x", &"x ".repeat(1_001)] {
        let query = Query { text: refused.into(), k: 10, ..Query::default() };
        let answer = Box::pin(recall::search(&memory.world.env, &caller, &query)).await;
        assert!(matches!(answer, Err(engine::ActError::Invalid(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_search_in_sql_alone_finds_what_the_server_finds() {
    let memory = Memory::new().await;
    let said = sentences(80, 4);
    let records = said.iter().enumerate().map(|(nth, text)| memory.record(&format!("s{nth}"), text)).collect();
    memory.remember(records).await;
    let caller = Caller::local("test", memory.world.tenant_id, true);
    let env = &memory.world.env;
    let embedder = env.embedders.configured();
    for text in ["copper harbour", "the engine of the market", &said[7], "nothing of the kind"] {
        let vector = HalfVec::new(&embedder.embed_query(text).await.expect("a vector"));
        for mode in [Mode::Hybrid, Mode::Keyword, Mode::Vector] {
            let query = Query { text: text.into(), k: 10, mode, ..Query::default() };
            let answer = Box::pin(recall::search(env, &caller, &query)).await.expect("an answer");
            // The function in SQL has no floor.
            let hits = answer.hits.iter().chain(&answer.closest);
            let served: Vec<(uuid::Uuid, Option<i32>, Option<i32>)> =
                hits.map(|hit| (hit.document_id, hit.keyword_rank, hit.vector_rank)).collect();
            let mut tx = env.db.begin_as(&caller).await.expect("a transaction");
            let in_sql: Vec<(uuid::Uuid, Option<i32>, Option<i32>)> = sqlx::query_as(
                "select document_id, keyword_rank, vector_rank from memory.search($1, $2, $3, '{}', 10, $4)",
            )
            .bind(text)
            .bind(&vector)
            .bind(&embedder.model().name)
            .bind(mode.as_str())
            .fetch_all(&mut *tx)
            .await
            .expect("hits");
            // The server also looks for phrases, and knows occurrences better: neighbours may have changed places.
            let shared = served.iter().filter(|(id, ..)| in_sql.iter().any(|(other, ..)| other == id)).count();
            assert_eq!(served.len(), in_sql.len(), "{mode} search for {text:?}");
            assert!(shared * 10 >= served.len() * 7, "{mode} search for {text:?}: {served:?} {in_sql:?}");
        }
    }
}

/// S17.
#[tokio::test]
async fn nobody_finds_another_tenants_memory() {
    let memory = Memory::new().await;
    memory.remember(vec![memory.record("secret", "The combination of the vault is hidden behind the painting.")]).await;
    let other = memory.world.other_tenant("somebody else").await;
    let (stranger, _) = memory.world.caller(other, &[Scope::Service]).await;
    for mode in [Mode::Hybrid, Mode::Keyword, Mode::Vector] {
        let query = "combination of the vault behind the painting";
        assert_eq!(memory.search(query, mode).await, ["secret"]);
        let filters = Filters { source: Some(memory.source_id.0), ..Filters::default() };
        assert_eq!(found(&memory.world, &stranger, query, mode, filters).await, [] as [String; 0], "S17");
    }
    let mut tx = memory.world.env.db.begin_as(&stranger).await.expect("a transaction");
    for table in ["source_documents", "document_chunks", "connected_sources", "activities", "contacts"] {
        let n: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("select count(*) from public.{table}")))
            .fetch_one(&mut *tx)
            .await
            .expect("a count");
        assert_eq!(n, 0, "S17: {table}");
    }
    drop(tx);
    for call in ["search('vault')", "keyword_candidates('vault')", "vector_candidates('fast_256', null)"] {
        let sql = sqlx::AssertSqlSafe(format!("select * from memory.{call}"));
        let without = sqlx::query(sql).fetch_all(&mut *memory.world.conn().await).await;
        assert!(without.is_err(), "{call} without a tenant was answered");
    }
}

#[tokio::test]
async fn a_large_memory_is_searched_by_codes_and_filters_stay_right() {
    let memory = Memory::of(World::now().await).await;
    let said = sentences(900, 3);
    let records: Vec<Record> = said
        .iter()
        .enumerate()
        .map(|(nth, text)| Record {
            document_type: if nth % 3 == 0 { DocumentType::File } else { DocumentType::Note },
            ..memory.record(&format!("s{nth}"), text)
        })
        .collect();
    for batch in records.chunks(100) {
        memory.remember(batch.to_vec()).await;
    }
    let tenant_id: TenantId = memory.world.tenant_id;
    let exact = memory.search(&said[300], Mode::Vector).await;
    codes::keep(&memory.world.env, FRESH).await.expect("codes");
    let mut conn = memory.world.conn().await;
    let caller = Caller::local("test", tenant_id, true);
    let query = Query { text: said[300].clone(), k: 10, mode: Mode::Vector, ..Query::default() };
    let answer = Box::pin(recall::search(&memory.world.env, &caller, &query)).await.expect("an answer");
    assert_eq!(answer.how, How::Index);
    let by_index: Vec<String> = answer.hits.into_iter().map(|hit| hit.external_id).collect();
    assert_eq!(by_index[0], "s300");
    let shared = by_index.iter().filter(|name| exact.contains(name)).count();
    assert!(shared >= 9, "{shared} of 10 agree with the exact search");
    let filters = Filters { r#type: Some("file".into()), ..Filters::default() };
    let third = found(&memory.world, &caller, &said[300], Mode::Vector, filters.clone()).await;
    assert_eq!(third.len(), 10);
    assert!(third.iter().all(|name| name[1..].parse::<usize>().is_ok_and(|nth| nth % 3 == 0)), "{third:?}");
    // A filter that leaves many chunks is applied to the best of them, and finds the same.
    let narrow = found(&memory.world, &caller, "harbour", Mode::Keyword, filters.clone()).await;
    sqlx::query("update public.source_documents set n_chunks = 100").execute(&mut *conn).await.expect("pretended");
    assert_eq!(found(&memory.world, &caller, &said[300], Mode::Vector, filters.clone()).await, third);
    let broad = found(&memory.world, &caller, "harbour", Mode::Keyword, filters).await;
    // Which of equally good ones are among the ten is chance, so what is compared is how often each says the word.
    let times_said = |names: &[String]| -> Vec<usize> {
        let nth = |name: &String| name[1..].parse::<usize>().expect("a sentence's name");
        names.iter().map(|name| said[nth(name)].matches("harbour").count()).collect()
    };
    assert_eq!(times_said(&broad), times_said(&narrow), "{broad:?} are as good as {narrow:?}");
    assert!(broad.iter().all(|name| !times_said(std::slice::from_ref(name)).contains(&0)), "{broad:?}");
    sqlx::query("update public.source_documents set n_chunks = 1").execute(&mut *conn).await.expect("undone");
    let counted = maintain::count(&mut conn).await.expect("counted");
    assert_eq!(counted[0].n_chunks, 900);
}
