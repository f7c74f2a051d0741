//! Codes: a vector is found from the commit that writes it to the one that removes it, whatever becomes of its segment meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use domain::codes::{Segment, VERSION};
use domain::{Caller, DocumentType, Record};
use engine::memory::codes::keep;
use engine::memory::recall::{self, Query};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use store::memory::codes::{self, FRESH};
use store::memory::{Filters, How, Mode, VectorTable};
use testkit::{World, is_slow, wait_until};
use uuid::Uuid;

use crate::memory::Memory;
use crate::suite::worker;

/// Merges all segments of the memory's tenant.
async fn merge_all(memory: &Memory) {
    let table = VectorTable::new("fast_256").expect("a name");
    let ids: Vec<i64> = sqlx::query_scalar("select id from memory.codes where model = 'fast_256' order by id")
        .fetch_all(&mut *memory.world.conn().await)
        .await
        .expect("segments");
    let mut tx = memory.world.env.db.begin().await.expect("a transaction");
    codes::merge(&mut tx, memory.world.tenant_id, &table, &ids).await.expect("merged");
    tx.commit().await.expect("committed");
}

/// The documents nearest to a text, and how they were found.
async fn nearest(memory: &Memory, text: &str, filters: Filters) -> (Vec<String>, How) {
    let caller = Caller::local("test", memory.world.tenant_id, true);
    let query = Query { text: text.into(), k: 30, mode: Mode::Vector, filters, ..Query::default() };
    let answer = Box::pin(recall::search(&memory.world.env, &caller, &query)).await.expect("an answer");
    let hits = answer.hits.into_iter().chain(answer.closest);
    (hits.map(|hit| hit.external_id).collect(), answer.how)
}

/// The vectors that are neither fresh nor in a segment.
async fn missing(memory: &Memory) -> Vec<Uuid> {
    let mut conn = memory.world.conn().await;
    let segments: Vec<Vec<u8>> =
        sqlx::query_scalar("select bytes from memory.codes").fetch_all(&mut *conn).await.expect("segments");
    let coded: Vec<Uuid> =
        segments.iter().flat_map(|bytes| Segment::parse(bytes).expect("a segment").chunk_ids().to_vec()).collect();
    let sql = "select chunk_id from memory.vectors_fast_256 where chunk_id <> all ($1)
        and chunk_id not in (select chunk_id from memory.fresh_vectors where model = 'fast_256')";
    sqlx::query_scalar(sql).bind(coded).fetch_all(&mut *conn).await.expect(sql)
}

#[tokio::test]
async fn whatever_is_written_changed_removed_and_merged_each_text_finds_its_document() {
    let memory = Memory::new().await;
    let mut rng = StdRng::seed_from_u64(33);
    let words: Vec<&str> =
        "river copper window harbour lantern meadow engine violin copper basket thunder orchard pencil saddle \
                            marble lighthouse kettle ribbon anchor barley canyon drum elbow falcon"
            .split_whitespace()
            .collect();
    let mut expected: HashMap<String, Option<String>> = HashMap::new();
    for round in 1..=if is_slow() { 200 } else { 30_i64 } {
        let mut batch = Vec::new();
        for name in (0..20).map(|nth| format!("d{nth}")).collect::<Vec<_>>().sample(&mut rng, 3) {
            let is_deleted = rng.random_range(0..4) == 0;
            // Often only the title changes: then the chunk has another number, and the same vector.
            let same = expected.get(name).cloned().flatten().filter(|_| rng.random_range(0..2) == 0);
            let text = same.unwrap_or_else(|| words.sample(&mut rng, 6).copied().collect::<Vec<_>>().join(" "));
            expected.insert(name.clone(), (!is_deleted).then(|| text.clone()));
            let text = if is_deleted { String::new() } else { text };
            let title = (!is_deleted).then(|| format!("title {round}"));
            let document_type = if name.len() == 2 { DocumentType::File } else { DocumentType::Note };
            let record = memory.record(name, &text);
            batch.push(Record { title, is_deleted, document_type, source_version: Some(round), ..record });
        }
        memory.remember(batch).await;
        match rng.random_range(0..4) {
            0 | 1 => keep(&memory.world.env, 1).await.expect("kept"),
            2 => merge_all(&memory).await,
            _ => {}
        }
        assert_eq!(missing(&memory).await, [] as [Uuid; 0], "round {round}");
        let there: Vec<(&String, &String)> =
            expected.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))).collect();
        for (name, text) in there.sample(&mut rng, 6) {
            let (found, _) = nearest(&memory, text, Filters::default()).await;
            assert!(
                found.first().is_some_and(|first| expected[first].as_ref() == Some(text)),
                "round {round}: {found:?}"
            );
            assert_eq!(
                found.len(),
                there.len(),
                "round {round}: each document once, and no other: {found:?} of {there:?}"
            );
            let only = Filters { r#type: Some("file".into()), ..Filters::default() };
            let (found, _) = nearest(&memory, text, only).await;
            assert_eq!(found.iter().any(|found| found == *name), name.len() == 2, "round {round}: {found:?}");
            assert!(found.iter().all(|found| found.len() == 2), "round {round}: {found:?}");
        }
    }
    // Every live vector is in exactly one place, and after a merge there is nothing else.
    keep(&memory.world.env, 1).await.expect("kept");
    merge_all(&memory).await;
    let fresh = memory.number("select count(*) from memory.fresh_vectors").await;
    let coded = memory.number("select coalesce(sum(n_chunks), 0)::int8 from memory.codes").await;
    assert_eq!((fresh, coded), (0, memory.number("select count(*) from memory.vectors_fast_256").await));
    assert_eq!(nearest(&memory, "river", Filters::default()).await.1, How::Index);
    // Codes that this release cannot read are made anew.
    let damage = "update memory.codes set bytes = set_byte(bytes, 0, get_byte(bytes, 0) + 1)";
    sqlx::query(damage).execute(&mut *memory.world.conn().await).await.expect(damage);
    keep(&memory.world.env, 1).await.expect("kept");
    assert_eq!(nearest(&memory, "river", Filters::default()).await.1, How::Exact);
    keep(&memory.world.env, 1).await.expect("kept");
    let versions = "select count(*) from memory.codes where get_byte(bytes, 0) = 1";
    assert_eq!((VERSION, memory.number(versions).await), (1, 1));
    // With nothing left, a search finds nothing, and is no error.
    let gone = |nth| Record { is_deleted: true, source_version: Some(1_000), ..memory.record(&format!("d{nth}"), "") };
    memory.remember((0..20).map(gone).collect()).await;
    assert_eq!(nearest(&memory, "river", Filters::default()).await.0, [] as [String; 0]);
    merge_all(&memory).await;
    assert_eq!(memory.number("select count(*) from memory.codes").await, 0);
}

/// F1: the worker that makes codes is killed before it commits. Another one makes them, once.
#[tokio::test(flavor = "multi_thread")]
async fn codes_whose_worker_is_killed_are_made_once() {
    let memory = Memory::of(World::now().await).await;
    let n = FRESH + 50;
    let text = |nth: i64| format!("Crate {nth} holds zinc number{nth}.");
    let records: Vec<Record> = (0..n).map(|nth| memory.record(&format!("k{nth}"), &text(nth))).collect();
    memory.remember(records).await;
    let url = &memory.world.database.url;
    let mut hurt = worker(url, Some("codes.before_commit:abort"), None);
    assert!(hurt.ended_within(Duration::from_secs(60)).await.is_some(), "the crash point was not reached");
    assert_eq!(memory.number("select count(*) from memory.codes").await, 0, "nothing was committed");
    assert_eq!(nearest(&memory, &text(17), Filters::default()).await.1, How::Exact);
    let _other = worker(url, None, None);
    let made = "select count(*) from memory.codes";
    assert!(wait_until(Duration::from_secs(90), async || memory.number(made).await == 1).await, "no codes are made");
    assert_eq!(memory.number("select n_chunks::int8 from memory.codes").await, n);
    assert_eq!(memory.number("select count(*) from memory.fresh_vectors").await, 0);
    for nth in [0, 17, n - 1] {
        let (found, how) = nearest(&memory, &text(nth), Filters::default()).await;
        assert_eq!((found[0].clone(), how), (format!("k{nth}"), How::Index));
    }
}
