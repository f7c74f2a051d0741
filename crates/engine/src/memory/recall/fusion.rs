//! Fusion: one order of documents out of two. Pure; it knows nothing of how either side found its candidates.

use std::collections::HashMap;

use store::memory::Candidate;
use uuid::Uuid;

/// Damps the difference between the first ranks (reciprocal rank fusion's usual constant).
const RANK_OFFSET: f64 = 60.0;

/// A document in the fused order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fused {
    pub document_id: Uuid,
    /// The best chunk by keyword, else the best by vector.
    pub chunk_id: Uuid,
    pub score: f64,
    /// From 1.
    pub keyword_rank: Option<i32>,
    /// From 1.
    pub vector_rank: Option<i32>,
    pub similarity: Option<f64>,
}

/// Fuses two lists, both best first and with each document once, by reciprocal rank, and returns the best `k`. A document gets
/// 1 / (60 + rank) of each list it is in, that of the vector list times `vector_weight`. Equal scores are ordered by id.
pub(super) fn fuse(by_keyword: &[Candidate], by_vector: &[Candidate], vector_weight: f64, k: usize) -> Vec<Fused> {
    let share = |rank: i32| 1.0 / (RANK_OFFSET + f64::from(rank));
    let mut fused: HashMap<Uuid, Fused> = HashMap::with_capacity(by_keyword.len() + by_vector.len());
    for (rank, candidate) in (1..).zip(by_keyword) {
        let Candidate { document_id, chunk_id, .. } = *candidate;
        let (keyword_rank, vector_rank, similarity) = (Some(rank), None, None);
        let score = share(rank);
        fused.insert(document_id, Fused { document_id, chunk_id, score, keyword_rank, vector_rank, similarity });
    }
    for (rank, candidate) in (1..).zip(by_vector) {
        let Candidate { document_id, chunk_id, score: similarity } = *candidate;
        let (keyword_rank, vector_rank, similarity) = (None, Some(rank), Some(similarity));
        let unseen = Fused { document_id, chunk_id, score: 0.0, keyword_rank, vector_rank, similarity };
        let document = fused.entry(document_id).or_insert(unseen);
        document.score += vector_weight * share(rank);
        (document.vector_rank, document.similarity) = (vector_rank, similarity);
    }
    let mut fused: Vec<Fused> = fused.into_values().collect();
    fused.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.document_id.cmp(&b.document_id)));
    fused.truncate(k);
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents by number, best first; chunks are numbered from the given one on.
    fn list(documents: &[u128], first_chunk: u128) -> Vec<Candidate> {
        let candidate = |(nth, document): (u128, &u128)| Candidate {
            document_id: Uuid::from_u128(*document),
            chunk_id: Uuid::from_u128(first_chunk + nth),
            score: 1.0 - nth as f64 / 10.0,
        };
        (0..).zip(documents).map(candidate).collect()
    }

    fn order(by_keyword: &[u128], by_vector: &[u128], weight: f64, k: usize) -> Vec<u128> {
        let fused = fuse(&list(by_keyword, 100), &list(by_vector, 200), weight, k);
        fused.iter().map(|document| document.document_id.as_u128()).collect()
    }

    #[test]
    fn two_orders_become_one() {
        for (what, by_keyword, by_vector, weight, k, expected) in [
            ("nothing", &[][..], &[][..], 1.0, 10, &[][..]),
            ("keywords alone", &[3, 1, 2], &[], 1.0, 10, &[3, 1, 2]),
            ("vectors alone", &[], &[3, 1, 2], 0.5, 10, &[3, 1, 2]),
            ("found by both beats first in one", &[1, 2], &[3, 2], 1.0, 10, &[2, 1, 3]),
            ("equal scores go by id", &[2, 1], &[1, 2], 1.0, 10, &[1, 2]),
            ("a weak model's first stands behind keywords", &[1, 2], &[3], 0.5, 10, &[1, 2, 3]),
            ("a weak model still decides among equals", &[1, 2], &[2, 1], 0.5, 10, &[1, 2]),
            ("only the best", &[1, 2, 3], &[3], 1.0, 2, &[3, 1]),
        ] {
            assert_eq!(order(by_keyword, by_vector, weight, k), expected, "{what}");
        }
    }

    #[test]
    fn a_document_of_both_lists_is_shown_by_its_words_and_says_where_it_stood() {
        let fused = fuse(&list(&[1], 100), &list(&[2, 1], 200), 0.5, 10);
        let both = fused[0];
        assert_eq!((both.document_id.as_u128(), both.chunk_id.as_u128()), (1, 100));
        assert_eq!((both.keyword_rank, both.vector_rank, both.similarity), (Some(1), Some(2), Some(0.9)));
        assert!((both.score - (1.0 / 61.0 + 0.5 / 62.0)).abs() < 1e-12);
        let one = fused[1];
        assert_eq!((one.chunk_id.as_u128(), one.keyword_rank, one.vector_rank), (200, None, Some(1)));
        assert!((one.score - 0.5 / 61.0).abs() < 1e-12);
    }
}
