//! The candidates of a search: the best chunks by keyword and the nearest by vector, each with both scores as far as they are known.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::codes::{self, Segment};
use store::Tx;
use store::memory::{self, Candidate, Looked};
use uuid::Uuid;

use super::NEAREST;
use super::keyword::Scores;

/// A filter that leaves many chunks is applied to the best of them, in growing numbers.
const BROAD: [usize; 3] = [5, 100, 10_000];
/// Some entries are of chunks that are gone.
const SPARE: (usize, usize) = (5, 4);

/// Finds the candidates: at most `limit` by keyword, and [`NEAREST`] by vector.
pub(super) async fn find(
    tx: &mut Tx,
    asked: memory::Question<'_>,
    looked: &Looked,
    scores: &Scores,
    segments: &[Arc<Segment>],
    limit: usize,
) -> store::Result<Vec<Candidate>> {
    let vector = asked.vector.filter(|_| looked.how != memory::How::Keyword).map(|asked| asked.vector);
    let codes = vector.map(|vector| codes::Question::new(segments, vector));
    let documents: Option<HashSet<Uuid>> = looked.documents().map(|documents| documents.iter().copied().collect());
    let is_broad = documents.is_none() && !asked.filters.is_empty();
    let times: &[usize] = if is_broad { &BROAD } else { &[1] };
    let mut found = Found::default();
    for times in times {
        let (most, nearest) = (limit * times * SPARE.0 / SPARE.1, NEAREST * times);
        let numbers = scores.best(most, looked.allowed.as_deref());
        let near = codes.as_ref().map(|codes| codes.nearest(nearest * SPARE.0 / SPARE.1, documents.as_ref()));
        let near = near.unwrap_or_default();
        let is_all = numbers.len() < most && near.len() < nearest;
        let mut known: HashMap<i64, Candidate> = near.iter().map(|near| (near.n, candidate(near))).collect();
        let of_number = |n: &i64| Some((*n, candidate(&codes.as_ref()?.get(*n)?)));
        known.extend(numbers.iter().filter_map(of_number));
        let live = memory::live(tx, &known, is_broad.then_some(asked.filters)).await?;
        known.retain(|n, _| live.contains(n));
        // Vectors that no code has yet were compared in the database, which also knows the chunks without a vector.
        let exact: Vec<Candidate> = looked.exact().collect();
        known.extend(exact.iter().map(|candidate| (candidate.n, *candidate)));
        // One that has a code and is not live is gone.
        let has_code = |n: i64| codes.as_ref().is_some_and(|codes| codes.get(n).is_some());
        let is_unknown = |n: &i64| !known.contains_key(n) && !has_code(*n);
        let unknown: Vec<i64> = numbers.iter().copied().filter(is_unknown).collect();
        if !unknown.is_empty() {
            let completed = memory::complete(tx, asked, looked, &unknown, limit).await?;
            known.extend(completed.into_iter().map(|candidate| (candidate.n, candidate)));
        }
        let near = near.iter().map(|near| near.n).chain(exact.iter().map(|exact| exact.n)).collect();
        found = Found { known, numbers, near };
        if is_all || found.is_enough(limit) {
            break;
        }
    }
    Ok(found.end(limit))
}

fn candidate(near: &codes::Near) -> Candidate {
    Candidate {
        n: near.n,
        chunk_id: near.chunk_id,
        document_id: near.document_id,
        similarity: Some(f64::from(near.similarity)),
    }
}

/// What one round has found.
#[derive(Default)]
struct Found {
    known: HashMap<i64, Candidate>,
    /// By keyword, best first, some of them gone.
    numbers: Vec<i64>,
    /// By vector, some of them gone.
    near: Vec<i64>,
}

impl Found {
    fn is_enough(&self, limit: usize) -> bool {
        let count = |numbers: &[i64]| numbers.iter().filter(|n| self.known.contains_key(n)).count();
        count(&self.numbers) >= limit && count(&self.near) >= NEAREST
    }

    /// The best of either side.
    fn end(self, limit: usize) -> Vec<Candidate> {
        let Self { mut known, numbers, near } = self;
        let mut near: Vec<Candidate> = near.iter().filter_map(|n| known.get(n)).copied().collect();
        near.sort_by(|a, b| {
            b.similarity
                .unwrap_or_default()
                .total_cmp(&a.similarity.unwrap_or_default())
                .then(a.chunk_id.cmp(&b.chunk_id))
        });
        let mut best: Vec<Candidate> = numbers.iter().filter_map(|n| known.remove(n)).take(limit).collect();
        let by_keyword: HashSet<i64> = best.iter().map(|candidate| candidate.n).collect();
        best.extend(near.into_iter().take(NEAREST).filter(|candidate| !by_keyword.contains(&candidate.n)));
        best
    }
}
