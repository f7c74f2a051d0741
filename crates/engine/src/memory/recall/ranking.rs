//! The order of all candidates: fusion's, with documents that have the exact parts of the question before the others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use domain::text::Exact;
use store::Tx;
use store::memory::{self, ChunkText, Looked};
use uuid::Uuid;

use super::BY_PHRASE;
use super::fusion::{self, Fused, Scored};
use super::keyword::Scores;

/// The number of further chunks that are looked through for a quoted phrase.
const MOST_FURTHER: usize = 8 * BY_PHRASE;

/// A document in the order.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub fused: Fused,
    /// The number of its best chunk.
    pub n: i64,
    /// The exact parts of the question that its best chunk has, as the question writes them.
    pub exact: Vec<String>,
}

/// All candidates, best first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    pub documents: Vec<Ranked>,
    /// Those that lack something that the question has in quotation marks.
    pub others: Vec<Ranked>,
}

/// Ranks the candidates. Their texts are read only if the question has exact parts.
pub(super) async fn rank(tx: &mut Tx, exact: &Exact, scored: &[Scored], share: f64) -> store::Result<Ranking> {
    if exact.is_empty() {
        let documents = named(fusion::fuse(scored, share), scored, &HashMap::new());
        return Ok(Ranking { documents, others: Vec::new() });
    }
    let chunks: Vec<Uuid> = scored.iter().map(|chunk| chunk.candidate.chunk_id).collect();
    let texts = memory::texts(tx, &chunks).await?;
    Ok(in_tiers(exact, scored, &texts, share))
}

/// Looks for the quoted phrases of a question in further chunks, which have all words of one of them. Adds the
/// chunks that have a phrase to those that were `scored`. False: there are more chunks with these words than are looked through.
pub(super) async fn look_further(
    tx: &mut Tx,
    asked: memory::Question<'_>,
    exact: &Exact,
    looked: &Looked,
    scores: &Scores,
    (scored, ranking, share): (&mut Vec<Scored>, &mut Ranking, f64),
) -> store::Result<bool> {
    let known: HashSet<i64> = scored.iter().map(|chunk| chunk.candidate.n).collect();
    let mut numbers = scores.best_with(known.len() + MOST_FURTHER + 1, looked, exact.phrases());
    numbers.retain(|n| !known.contains(n));
    let is_all = numbers.len() <= MOST_FURTHER;
    numbers.truncate(MOST_FURTHER);
    let n_before = scored.len();
    for some in numbers.chunks(BY_PHRASE) {
        let candidates = memory::complete(tx, asked, looked, some, some.len()).await?;
        let chunks: Vec<Uuid> = candidates.iter().map(|candidate| candidate.chunk_id).collect();
        let texts = memory::texts(tx, &chunks).await?;
        let has_phrase = |chunk: &&ChunkText| exact.look(chunk.title.as_deref(), &chunk.text).phrases != 0;
        let with_phrase: HashSet<Uuid> = texts.iter().filter(has_phrase).map(|chunk| chunk.id).collect();
        let found = candidates.into_iter().filter(|candidate| with_phrase.contains(&candidate.chunk_id));
        scored.extend(found.map(|candidate| scores.of_candidate(candidate)));
    }
    if scored.len() > n_before {
        *ranking = rank(tx, exact, scored, share).await?;
    }
    Ok(is_all)
}

/// Puts the documents that have more exact parts first. A score gets 1 for each part.
fn in_tiers(exact: &Exact, scored: &[Scored], texts: &[ChunkText], share: f64) -> Ranking {
    let looked: HashMap<Uuid, _> =
        texts.iter().map(|chunk| (chunk.id, exact.look(chunk.title.as_deref(), &chunk.text))).collect();
    let found: HashMap<Uuid, Vec<String>> =
        looked.iter().map(|(id, looked)| (*id, looked.found.iter().map(|part| (*part).to_owned()).collect())).collect();
    let mut phrases: HashMap<Uuid, u8> = HashMap::new();
    for chunk in scored {
        let in_chunk = looked.get(&chunk.candidate.chunk_id).map_or(0, |looked| looked.phrases);
        *phrases.entry(chunk.candidate.document_id).or_default() |= in_chunk;
    }
    let mut tiers: BTreeMap<(bool, Reverse<usize>), Vec<Scored>> = BTreeMap::new();
    for chunk in scored {
        let Some(looked) = looked.get(&chunk.candidate.chunk_id) else { continue }; // gone meanwhile
        let has_all_phrases = phrases.get(&chunk.candidate.document_id).is_some_and(|found| exact.are_all(*found));
        tiers.entry((!has_all_phrases, Reverse(looked.found.len()))).or_default().push(*chunk);
    }
    // Places by one score alone are told among all.
    let places: HashMap<Uuid, Fused> =
        fusion::fuse(scored, share).into_iter().map(|fused| (fused.document_id, fused)).collect();
    let (mut ranking, mut seen) = (Ranking::default(), HashSet::new());
    for ((lacks_phrase, Reverse(n_found)), tier) in tiers {
        let mut fused = fusion::fuse(&tier, share);
        fused.retain(|fused| seen.insert(fused.document_id));
        for fused in &mut fused {
            if let Some(place) = places.get(&fused.document_id) {
                (fused.keyword_rank, fused.vector_rank) = (place.keyword_rank, place.vector_rank);
            }
            fused.score += n_found as f64;
        }
        let documents = named(fused, &tier, &found);
        if lacks_phrase { ranking.others.extend(documents) } else { ranking.documents.extend(documents) }
    }
    ranking
}

fn named(fused: Vec<Fused>, scored: &[Scored], found: &HashMap<Uuid, Vec<String>>) -> Vec<Ranked> {
    let numbers: HashMap<Uuid, i64> =
        scored.iter().map(|chunk| (chunk.candidate.chunk_id, chunk.candidate.n)).collect();
    let ranked = |fused: Fused| Ranked {
        n: numbers.get(&fused.chunk_id).copied().unwrap_or_default(),
        exact: found.get(&fused.chunk_id).cloned().unwrap_or_default(),
        fused,
    };
    fused.into_iter().map(ranked).collect()
}

#[cfg(test)]
mod tests {
    use store::memory::Candidate;

    use super::*;

    /// Ranks chunks given as (document, by keyword, text), and returns those that count and the others.
    fn ranked(question: &str, chunks: &[(u128, f64, &str)]) -> (Vec<u128>, Vec<u128>) {
        let (mut scored, mut texts) = (Vec::new(), Vec::new());
        for (n, (document, by_keyword, text)) in (0..).zip(chunks) {
            let chunk_id = Uuid::from_u128(100 + n);
            let candidate = Candidate {
                n: i64::try_from(n).expect("few"),
                chunk_id,
                document_id: Uuid::from_u128(*document),
                similarity: None,
            };
            scored.push(Scored { has_all_words: false, candidate, by_keyword: *by_keyword });
            texts.push(ChunkText { id: chunk_id, title: None, text: (*text).to_owned() });
        }
        let ranking = in_tiers(&Exact::of(question, None), &scored, &texts, 0.0);
        let ids = |ranked: Vec<Ranked>| ranked.iter().map(|ranked| ranked.fused.document_id.as_u128()).collect();
        (ids(ranking.documents), ids(ranking.others))
    }

    #[test]
    fn documents_with_the_exact_parts_go_first_and_those_without_a_quotation_do_not_count() {
        let chunks =
            [(1, 9.0, "pay invoice 77"), (2, 2.0, "pay INV-2041"), (3, 5.0, "a late payment"), (3, 1.0, "inv 2041")];
        assert_eq!(
            ranked("pay INV-2041", &chunks),
            (vec![2, 3, 1], vec![]),
            "a document counts by the chunk that has it"
        );
        assert_eq!(ranked("\"late payment\"", &chunks), (vec![3], vec![1, 2]));
        let both = ranked("\"late payment\" \"inv 2041\"", &chunks);
        assert_eq!(both, (vec![3], vec![2, 1]), "all must be there, be it in two chunks");
        assert_eq!(ranked("\"late payment\" \"inv 77\"", &chunks), (vec![], vec![3, 1, 2]));
    }
}
