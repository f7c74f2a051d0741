//! Postings: a chunk is found from the commit that writes it to the one that removes it, whatever becomes of its segment meanwhile.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use domain::{Caller, Record};
use engine::memory::postings::keep;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use store::memory::postings::{self, FRESH};
use store::memory::{Filters, Mode};
use testkit::{World, is_slow, wait_until};

use crate::memory::{Memory, found};
use crate::suite::worker;

/// Merges all segments of the memory's tenant.
async fn merge_all(memory: &Memory) {
    let mut tx = memory.world.env.db.begin().await.expect("a transaction");
    let ids = postings::segment_ids(&mut tx, memory.world.tenant_id).await.expect("segments");
    postings::merge(&mut tx, memory.world.tenant_id, &ids).await.expect("merged");
    tx.commit().await.expect("committed");
}

/// The documents that a search for one word finds.
async fn found_by(memory: &Memory, word: &str) -> BTreeSet<String> {
    let caller = Caller::local("test", memory.world.tenant_id, true);
    found(&memory.world, &caller, word, Mode::Keyword, Filters::default()).await.into_iter().collect()
}

#[tokio::test]
async fn whatever_is_written_changed_removed_and_merged_each_word_finds_its_documents() {
    let memory = Memory::new().await;
    let mut rng = StdRng::seed_from_u64(27);
    let words: Vec<String> = (0..40).map(|nth| format!("zq{nth}word")).collect();
    // What each document has: words of its text, and one of its title.
    let mut expected: HashMap<String, BTreeSet<String>> = HashMap::new();
    for round in 1..=if is_slow() { 200 } else { 25_i64 } {
        let mut batch = Vec::new();
        for name in (0..20).map(|nth| format!("d{nth}")).collect::<Vec<_>>().sample(&mut rng, 3) {
            let is_deleted = rng.random_range(0..4) == 0;
            let said: Vec<String> = words.sample(&mut rng, 5).cloned().collect();
            let text = if is_deleted { String::new() } else { said[1..].join(" ") };
            let title = (!is_deleted && rng.random_range(0..2) == 0).then(|| said[0].clone());
            let has: BTreeSet<String> = said[1..].iter().chain(&title).filter(|_| !is_deleted).cloned().collect();
            expected.insert(name.clone(), has);
            batch.push(Record { title, is_deleted, source_version: Some(round), ..memory.record(name, &text) });
        }
        memory.remember(batch).await;
        match rng.random_range(0..4) {
            0 => keep(&memory.world.env, 1).await.expect("kept"),
            1 => merge_all(&memory).await,
            _ => {}
        }
        for word in words.sample(&mut rng, 8) {
            let having = expected.iter().filter(|(_, has)| has.contains(word)).map(|(name, _)| name.clone());
            assert_eq!(found_by(&memory, word).await, having.collect(), "round {round}, {word}");
        }
    }
    // Every live chunk is in exactly one place, and after a merge there is nothing else.
    keep(&memory.world.env, 1).await.expect("kept");
    merge_all(&memory).await;
    let fresh = memory.number("select count(*) from memory.fresh_chunks").await;
    let listed = memory.number("select coalesce(sum(n_chunks), 0)::int8 from memory.segments").await;
    let chunks = memory.number("select count(*) from document_chunks").await;
    assert_eq!((fresh, listed), (0, chunks));
    let all: BTreeSet<&String> = expected.values().flatten().collect();
    let lexemes = memory.number("select count(distinct lexeme) from memory.postings where lexeme like 'zq%'").await;
    assert_eq!(usize::try_from(lexemes).expect("a number"), all.len(), "words of what is gone are gone");
    // With nothing left, a search finds nothing, and is no error.
    let gone = |nth| Record { is_deleted: true, source_version: Some(1_000), ..memory.record(&format!("d{nth}"), "") };
    memory.remember((0..20).map(gone).collect()).await;
    merge_all(&memory).await;
    assert_eq!(memory.number("select count(*) from memory.postings").await, 0);
    assert_eq!(found_by(&memory, &words[0]).await, BTreeSet::new());
}

/// The order is that of textbook BM25 over the same chunks, fresh or in segments.
#[tokio::test]
async fn the_order_is_that_of_bm25() {
    let memory = Memory::new().await;
    let mut rng = StdRng::seed_from_u64(5);
    // A few common words and many rare ones, as in real texts.
    let vocabulary: Vec<String> = (0..400).map(|nth| format!("vx{nth}term")).collect();
    let texts: Vec<Vec<&str>> = (0..300)
        .map(|_| {
            let length = rng.random_range(5..60);
            let word = |rng: &mut StdRng| (400.0 * rng.random::<f64>().powi(3)) as usize;
            (0..length).map(|_| vocabulary[word(&mut rng)].as_str()).collect()
        })
        .collect();
    for (first, batch) in texts.chunks(100).enumerate() {
        let record =
            |(nth, text): (usize, &Vec<&str>)| memory.record(&format!("{}", first * 100 + nth), &text.join(" "));
        memory.remember(batch.iter().enumerate().map(record).collect()).await;
    }
    for is_fresh in [true, false] {
        if !is_fresh {
            keep(&memory.world.env, 1).await.expect("kept");
        }
        let (mut shared, mut firsts) = (0, 0);
        for nth in 0..40_usize {
            let question: Vec<&str> = (0..4).map(|n| vocabulary[(nth * 9 + n * 31) % 400].as_str()).collect();
            let served = memory.search(&question.join(" "), Mode::Keyword).await;
            let expected = bm25(&texts, &question);
            shared += served.iter().filter(|name| expected.contains(name)).count();
            firsts += usize::from(served.first() == expected.first());
            assert_eq!(served.len(), expected.len(), "{question:?}");
        }
        println!("fresh: {is_fresh}: {shared} of 400 of the first ten, {firsts} of 40 firsts");
        // Of a fresh chunk the number of occurrences is read off its rank, and the mean length off those that were found.
        assert!(
            shared >= if is_fresh { 360 } else { 388 } && firsts >= 34,
            "fresh: {is_fresh}: {shared} of 400, {firsts} of 40"
        );
    }
}

/// The best ten by the formula in the books.
fn bm25(texts: &[Vec<&str>], question: &[&str]) -> Vec<String> {
    let distinct = |text: &Vec<&str>| text.iter().collect::<BTreeSet<_>>().len() as f64;
    let mean = texts.iter().map(distinct).sum::<f64>() / texts.len() as f64;
    let n = texts.len() as f64;
    let score = |text: &Vec<&str>| {
        let part = |word: &&str| {
            let having = texts.iter().filter(|text| text.contains(word)).count() as f64;
            let times = text.iter().filter(|said| *said == word).count() as f64;
            let rarity = (1.0 + (n - having + 0.5) / (having + 0.5)).ln();
            rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * distinct(text) / mean))
        };
        question.iter().map(part).sum::<f64>()
    };
    let mut scored: Vec<(f64, usize)> = texts.iter().enumerate().map(|(nth, text)| (score(text), nth)).collect();
    scored.retain(|(score, _)| *score > 0.0);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(10).map(|(_, nth)| nth.to_string()).collect()
}

/// F1: the worker that makes a segment is killed before it commits. Another one makes it, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_segment_whose_worker_is_killed_is_made_once() {
    let memory = Memory::of(World::now().await).await;
    let n = FRESH + 50;
    let records: Vec<Record> =
        (0..n).map(|nth| memory.record(&format!("k{nth}"), &format!("Crate {nth} holds zinc number{nth}."))).collect();
    for batch in records.chunks(500) {
        memory.remember(batch.to_vec()).await;
    }
    let url = &memory.world.database.url;
    let mut hurt = worker(url, Some("postings.before_commit:abort"), None);
    assert!(hurt.ended_within(Duration::from_secs(60)).await.is_some(), "the crash point was not reached");
    assert_eq!(memory.number("select count(*) from memory.segments").await, 0, "nothing was committed");
    assert_eq!(memory.search("number17", Mode::Keyword).await, ["k17"]);
    let _other = worker(url, None, None);
    let made = "select count(*) from memory.segments";
    assert!(wait_until(Duration::from_secs(90), async || memory.number(made).await == 1).await, "no segment is made");
    assert_eq!(memory.number("select n_chunks::int8 from memory.segments").await, n);
    assert_eq!(memory.number("select count(*) from memory.fresh_chunks").await, 0);
    for nth in [0, 17, n - 1] {
        assert_eq!(memory.search(&format!("number{nth}"), Mode::Keyword).await, [format!("k{nth}")]);
    }
}
