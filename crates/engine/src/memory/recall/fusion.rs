//! Fusion: one order of documents out of the scores by keyword and by vector. Pure; it knows nothing of how candidates were found.

use std::collections::HashMap;

use store::memory::Candidate;
use uuid::Uuid;

/// The beginning of a document says what it is about.
pub(super) const FIRST_CHUNK: f64 = 0.03;
/// A chunk that has every word of the question. Measured: without it, questions in a document's own words are found less often than by keyword
/// alone, because the nearest chunk by vector is worth as much as the best by keyword.
const ALL_WORDS: f64 = 0.3;
/// A chunk that has all neighbouring words of the question next to each other.
pub(super) const PHRASE: f64 = 0.05;

/// A document in the fused order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fused {
    pub document_id: Uuid,
    /// Its best chunk.
    pub chunk_id: Uuid,
    pub score: f64,
    /// Its place by keyword alone, from 1. None if it has no word of the question.
    pub keyword_rank: Option<i32>,
    /// Its place by vector alone, from 1. None without a vector.
    pub vector_rank: Option<i32>,
    pub similarity: Option<f64>,
}

/// A chunk with both of its scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scored {
    pub candidate: Candidate,
    /// 0 if it has no word of the question.
    pub by_keyword: f64,
    pub has_all_words: bool,
}

/// Orders the documents of the candidates. Both scores are stretched over the candidates to 0…1, and a chunk gets `vector_share` of the one and the
/// rest of the other. A document counts by its best chunk. Equal scores are ordered by id. By vector alone (a share of 1) nothing but the
/// similarity counts.
pub(super) fn fuse(scored: &[Scored], vector_share: f64) -> Vec<Fused> {
    let keyword = Range::of(scored.iter().map(|chunk| chunk.by_keyword));
    let vector = Range::of(scored.iter().filter_map(|chunk| chunk.candidate.similarity));
    let keyword_ranks =
        ranks(scored.iter().filter(|chunk| chunk.by_keyword > 0.0).map(|chunk| (chunk, chunk.by_keyword)));
    let vector_ranks = ranks(scored.iter().filter_map(|chunk| Some((chunk, chunk.candidate.similarity?))));
    let mut best: HashMap<Uuid, Fused> = HashMap::new();
    for chunk in scored {
        let Candidate { chunk_id, document_id, similarity, .. } = chunk.candidate;
        let by_vector = similarity.map_or(0.0, |similarity| vector.stretch(similarity));
        let is_hybrid = vector_share > 0.0 && vector_share < 1.0;
        let bonus = if chunk.has_all_words && is_hybrid { ALL_WORDS } else { 0.0 };
        let score = vector_share * by_vector + (1.0 - vector_share) * keyword.stretch(chunk.by_keyword) + bonus;
        let (keyword_rank, vector_rank) =
            (keyword_ranks.get(&document_id).copied(), vector_ranks.get(&document_id).copied());
        let fused = Fused { document_id, chunk_id, score, keyword_rank, vector_rank, similarity };
        best.entry(document_id)
            .and_modify(|known| {
                if is_before(&fused, known) {
                    *known = fused;
                }
            })
            .or_insert(fused);
    }
    let mut fused: Vec<Fused> = best.into_values().collect();
    sort(&mut fused);
    fused
}

/// Sorts by score, best first.
pub(super) fn sort(fused: &mut [Fused]) {
    fused.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.document_id.cmp(&b.document_id)));
}

fn is_before(a: &Fused, b: &Fused) -> bool {
    b.score.total_cmp(&a.score).then(a.chunk_id.cmp(&b.chunk_id)).is_lt()
}

/// The place of each document by one score, from 1.
fn ranks<'a>(chunks: impl Iterator<Item = (&'a Scored, f64)>) -> HashMap<Uuid, i32> {
    let mut best: HashMap<Uuid, f64> = HashMap::new();
    for (chunk, score) in chunks {
        best.entry(chunk.candidate.document_id).and_modify(|known| *known = known.max(score)).or_insert(score);
    }
    let mut order: Vec<(Uuid, f64)> = best.into_iter().collect();
    order.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.into_iter().map(|(document_id, _)| document_id).zip(1..).collect()
}

/// The smallest and the largest of some scores.
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    fn of(scores: impl Iterator<Item = f64>) -> Self {
        let (least, most) =
            scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), score| (least.min(score), most.max(score)));
        Self { least, most }
    }

    /// Maps the range to 0…1. If all are the same, they are as good as can be, or nothing.
    fn stretch(&self, score: f64) -> f64 {
        match self.most - self.least {
            width if width > 0.0 => (score - self.least) / width,
            _ if self.most > 0.0 => 1.0,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks as (document, by keyword, similarity); those with 10 or more by keyword have all words; chunks are numbered from 100 on.
    fn scored(chunks: &[(u128, f64, Option<f64>)]) -> Vec<Scored> {
        let scored = |(nth, (document, by_keyword, similarity)): (u128, &(u128, f64, Option<f64>))| Scored {
            candidate: Candidate {
                n: i64::try_from(nth).expect("few"),
                chunk_id: Uuid::from_u128(100 + nth),
                document_id: Uuid::from_u128(*document),
                similarity: *similarity,
            },
            by_keyword: *by_keyword,
            has_all_words: *by_keyword >= 10.0,
        };
        (0..).zip(chunks).map(scored).collect()
    }

    fn order(chunks: &[(u128, f64, Option<f64>)], vector_share: f64) -> Vec<u128> {
        fuse(&scored(chunks), vector_share).iter().map(|document| document.document_id.as_u128()).collect()
    }

    #[test]
    fn two_scores_become_one_order() {
        let both = [(1, 9.0, Some(0.2)), (2, 8.0, Some(0.8)), (3, 0.0, Some(0.9))];
        for (what, chunks, share, expected) in [
            ("nothing", &[][..], 0.7, &[][..]),
            ("keywords alone", &[(1, 2.0, None), (2, 5.0, None), (3, 3.0, None)], 0.7, &[2, 3, 1]),
            ("vectors alone", &[(1, 0.0, Some(0.1)), (2, 0.0, Some(0.5))], 0.7, &[2, 1]),
            ("good in both beats best in one", &both, 0.7, &[2, 3, 1]),
            ("a weak model counts less", &both, 0.1, &[1, 2, 3]),
            ("no vector yet", &[(1, 9.0, None), (2, 1.0, Some(0.9)), (3, 1.0, Some(0.8))], 0.3, &[1, 2, 3]),
            (
                "all words beat the nearest vector",
                &[(1, 10.0, Some(0.3)), (2, 8.0, Some(0.5)), (3, 0.0, Some(0.9))],
                0.6,
                &[1, 3, 2],
            ),
            ("equal scores go by id", &[(2, 4.0, None), (1, 4.0, None)], 0.5, &[1, 2]),
        ] {
            assert_eq!(order(chunks, share), expected, "{what}");
        }
    }

    #[test]
    fn a_document_is_shown_by_its_best_chunk_and_says_where_it_stood() {
        let chunks = [(1, 1.0, Some(0.1)), (1, 5.0, Some(0.9)), (2, 0.0, Some(0.95)), (1, 0.0, None)];
        let fused = fuse(&scored(&chunks), 0.5);
        let ids: Vec<(u128, u128)> = fused.iter().map(|f| (f.document_id.as_u128(), f.chunk_id.as_u128())).collect();
        assert_eq!(ids, [(1, 101), (2, 102)]);
        assert_eq!((fused[0].keyword_rank, fused[0].vector_rank, fused[0].similarity), (Some(1), Some(2), Some(0.9)));
        assert_eq!((fused[1].keyword_rank, fused[1].vector_rank), (None, Some(1)));
    }
}
