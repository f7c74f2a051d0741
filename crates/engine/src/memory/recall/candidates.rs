//! The candidates of a search: the best chunks by keyword and the nearest by vector, each with both scores as far as they are known.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::codes::{self, Segment};
use store::Tx;
use store::memory::{self, Candidate, Looked};
use uuid::Uuid;

use super::keyword::Scores;
use super::{MOST_HITS, NEAREST};

/// A filter that leaves many chunks is applied to the best of them: to so many times the wanted number first.
const BROAD: usize = 5;
/// Some entries are of chunks that are gone.
const SPARE: (usize, usize) = (5, 4);
/// No more are looked at, on either side: each is a row that the database reads.
const MOST_ASKED: usize = 30_000;

/// The candidates of a search.
pub(super) struct Found {
    pub candidates: Vec<Candidate>,
    /// There are too few for a page, and of what is left not all was looked at.
    pub is_cut: bool,
}

/// Finds the candidates: at most `limit` by keyword, and [`NEAREST`] by vector. Either side goes on by itself until enough of its chunks are there and
/// match the filters, or until it has no more.
pub(super) async fn find(
    tx: &mut Tx,
    asked: memory::Question<'_>,
    looked: &Looked,
    scores: &Scores,
    segments: &[Arc<Segment>],
    limit: usize,
) -> store::Result<Found> {
    let vector = asked.vector.filter(|_| looked.how != memory::How::Keyword).map(|asked| asked.vector);
    let codes = vector.map(|vector| codes::Question::new(segments, vector));
    let documents: Option<HashSet<Uuid>> = looked.documents().map(|documents| documents.iter().copied().collect());
    let is_broad = documents.is_none() && !asked.filters.is_empty();
    let times = if is_broad { BROAD } else { 1 };
    let (mut by_keyword, mut by_vector) = (Side::new(limit, times), Side::new(NEAREST, times));
    // Vectors that no code has yet were compared in the database, which also knows the chunks without a vector.
    let exact: Vec<Candidate> = looked.exact().collect();
    let mut known: HashMap<i64, Candidate> = exact.iter().map(|candidate| (candidate.n, *candidate)).collect();
    let mut seen: HashSet<i64> = known.keys().copied().collect();
    loop {
        let (mut coded, mut unknown): (HashMap<i64, Candidate>, Vec<i64>) = Default::default();
        if by_vector.is_open() {
            let near = codes.as_ref().map(|codes| codes.nearest(by_vector.n_asked, documents.as_ref()));
            let near = near.unwrap_or_default();
            coded.extend(near.iter().filter(|near| seen.insert(near.n)).map(|near| (near.n, candidate(near))));
            by_vector.numbers = near.iter().map(|near| near.n).collect();
        }
        if by_keyword.is_open() {
            by_keyword.numbers = scores.best(by_keyword.n_asked, looked.allowed.as_deref());
            for n in by_keyword.numbers.iter().copied().filter(|n| seen.insert(*n)) {
                match codes.as_ref().and_then(|codes| codes.get(n)) {
                    Some(near) => {
                        coded.insert(n, candidate(&near));
                    }
                    None => unknown.push(n),
                }
            }
        }
        let live = memory::live(tx, &coded, is_broad.then_some(asked.filters)).await?;
        known.extend(coded.into_iter().filter(|(n, _)| live.contains(n)));
        if !unknown.is_empty() {
            let completed = memory::complete(tx, asked, looked, &unknown, limit).await?;
            known.extend(completed.into_iter().map(|candidate| (candidate.n, candidate)));
        }
        let n_live = |side: &Side| side.numbers.iter().filter(|n| known.contains_key(n)).count();
        let (n_by_keyword, n_by_vector) = (n_live(&by_keyword), n_live(&by_vector) + exact.len());
        by_keyword.judge(n_by_keyword);
        by_vector.judge(n_by_vector);
        if !by_keyword.is_open() && !by_vector.is_open() {
            break;
        }
    }
    let near = by_vector.numbers.iter().chain(exact.iter().map(|exact| &exact.n));
    let mut near: Vec<Candidate> = near.filter_map(|n| known.get(n)).copied().collect();
    near.sort_by(|a, b| {
        let (similarity, other) = (a.similarity.unwrap_or_default(), b.similarity.unwrap_or_default());
        other.total_cmp(&similarity).then(a.chunk_id.cmp(&b.chunk_id))
    });
    let mut candidates: Vec<Candidate> =
        by_keyword.numbers.iter().filter_map(|n| known.remove(n)).take(limit).collect();
    let chosen: HashSet<i64> = candidates.iter().map(|candidate| candidate.n).collect();
    candidates.extend(near.into_iter().take(NEAREST).filter(|candidate| !chosen.contains(&candidate.n)));
    let is_cut = [by_keyword.state, by_vector.state].contains(&State::Cut) && candidates.len() < MOST_HITS;
    Ok(Found { candidates, is_cut })
}

fn candidate(near: &codes::Near) -> Candidate {
    Candidate {
        n: near.n,
        chunk_id: near.chunk_id,
        document_id: near.document_id,
        similarity: Some(f64::from(near.similarity)),
    }
}

/// One side of a search, by keyword or by vector.
#[derive(Debug)]
struct Side {
    n_wanted: usize,
    n_asked: usize,
    /// The best `n_asked`, or all there are. Some of them are gone, or match no filter.
    numbers: Vec<i64>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    /// It has more, which are not looked at.
    Cut,
}

impl Side {
    fn new(n_wanted: usize, times: usize) -> Self {
        let n_asked = (n_wanted * times * SPARE.0 / SPARE.1).min(MOST_ASKED);
        Self { n_wanted, n_asked, numbers: Vec::new(), state: State::Open }
    }

    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Decides whether it goes on, given how many chunks are there so far. If it does, it asks for twice as many as the share of these suggests.
    fn judge(&mut self, n_live: usize) {
        if n_live >= self.n_wanted || self.numbers.len() < self.n_asked {
            self.state = State::Done;
        } else if self.n_asked >= MOST_ASKED {
            self.state = State::Cut;
        } else {
            self.n_asked = (2 * self.n_asked * self.n_wanted / n_live.max(1)).min(MOST_ASKED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many one side asks for, round by round, of `n` entries of which one in `every` is live, and how that ends.
    fn rounds(n_wanted: usize, times: usize, n: usize, every: usize) -> (Vec<usize>, State) {
        let (mut side, mut asked) = (Side::new(n_wanted, times), Vec::new());
        while side.is_open() {
            asked.push(side.n_asked);
            side.numbers = (0_i64..).take(n.min(side.n_asked)).collect();
            side.judge(side.numbers.len() / every);
        }
        (asked, side.state)
    }

    #[test]
    fn a_side_asks_for_more_only_while_it_has_too_few_and_never_for_all() {
        for (what, ended, expected) in [
            ("few chunks have a word", rounds(100, BROAD, 40, 1), (vec![625], State::Done)),
            ("no chunk has a word", rounds(100, BROAD, 0, 1), (vec![625], State::Done)),
            ("a second page", rounds(NEAREST, BROAD, 100_000, 1), (vec![1_250], State::Done)),
            ("a filter that leaves a fifth", rounds(NEAREST, BROAD, 100_000, 5), (vec![1_250], State::Done)),
            ("a twentieth", rounds(NEAREST, BROAD, 100_000, 20), (vec![1_250, 8_064], State::Done)),
            ("one in 170 of a million", rounds(NEAREST, BROAD, 1_000_000, 170), (vec![1_250, 30_000], State::Cut)),
            ("none", rounds(NEAREST, BROAD, 1_000_000, usize::MAX), (vec![1_250, 30_000], State::Cut)),
            ("no filter", rounds(NEAREST, 1, 1_000_000, 1), (vec![250], State::Done)),
            ("no filter, most are gone", rounds(NEAREST, 1, 1_000_000, 2), (vec![250, 800], State::Done)),
            ("a quotation", rounds(1_000, BROAD, 1_000_000, 2), (vec![6_250], State::Done)),
        ] {
            assert_eq!(ended, expected, "{what}");
        }
    }
}
