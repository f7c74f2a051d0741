//! Scores a tenant's chunks by the words of a question: BM25, over the postings of segments and over fresh chunks alike. Pure.

use std::collections::HashMap;

use domain::ranking::{self, USUAL_LENGTH};
use store::memory::Looked;
use store::memory::postings::entries;

/// A tenant whose numbers lie farther apart than that has its scores in a map, which is slower.
const MOST_PLACES: i64 = 16_000_000;

/// The scores of all chunks that have a word of the question.
pub(super) struct Scores {
    first: i64,
    /// By number, counted from `first`; nothing where no word matches.
    near: Vec<Score>,
    /// By number, where they lie too far apart for a list.
    far: HashMap<i64, Score>,
    /// The number of words in the question.
    n_words: u8,
}

#[derive(Clone, Copy, Default)]
struct Score {
    sum: f32,
    /// The number of different words, and the last one that was counted.
    n_words: u8,
    last_word: u8,
}

impl Score {
    fn add(&mut self, word: usize, part: f32) {
        self.sum += part;
        // A word may have several lexemes; they come one after the other.
        let word = u8::try_from(word).unwrap_or(u8::MAX);
        if self.last_word != word {
            self.last_word = word;
            self.n_words = self.n_words.saturating_add(1);
        }
    }
}

impl Scores {
    pub fn of(looked: &Looked) -> Self {
        let n_terms = looked.terms.iter().copied().max().unwrap_or_default();
        let term =
            |lexeme: usize| looked.terms.get(lexeme).map_or(0, |term| usize::try_from(*term).unwrap_or_default());
        let mut counts = vec![0_u64; usize::try_from(n_terms).unwrap_or_default() + 1];
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for (lexeme, from_n, list) in looked.lists() {
            counts[term(lexeme)] += list.len() as u64 / 5;
            first = first.min(from_n);
            last = last.max(entries(list, from_n).next_back().map_or(from_n, |(n, _)| n));
        }
        for chunk in looked.fresh() {
            (first, last) = (first.min(chunk.n), last.max(chunk.n));
            for lexeme in 0..looked.lexemes.len() {
                counts[term(lexeme)] += u64::from(chunk.rank(lexeme) > 0.0);
            }
        }
        let n_places = last.saturating_sub(first).saturating_add(1);
        // The numbers of a small tenant in a large installation lie far apart.
        let n_entries: u64 = counts.iter().sum();
        let is_near = (0..=MOST_PLACES).contains(&n_places) && n_places.unsigned_abs() <= 32 * n_entries + 100_000;
        let near =
            if is_near { vec![Score::default(); usize::try_from(n_places).unwrap_or_default()] } else { Vec::new() };
        let total = looked.total();
        let rarities: Vec<f32> = counts.iter().map(|count| ranking::rarity(*count, total)).collect();
        let n_words = u8::try_from(n_terms).unwrap_or(u8::MAX);
        let mut scores = Self { first, near, far: HashMap::new(), n_words };
        let mut lists: Vec<(usize, i64, &[u8])> =
            looked.lists().map(|(lexeme, from_n, list)| (term(lexeme), from_n, list)).collect();
        lists.sort_by_key(|(word, ..)| *word);
        for (word, from_n, list) in lists {
            let rarity = rarities[word];
            for (n, weight) in entries(list, from_n) {
                scores.add(n, word, ranking::part(weight, rarity));
            }
        }
        let (n_fresh, length) = looked.fresh().fold((0.0, 0.0), |(n, sum), chunk| (n + 1.0, sum + chunk.length));
        let mean = looked.mean_length().unwrap_or(if n_fresh > 0.0 { length / n_fresh } else { USUAL_LENGTH });
        let mut lexemes: Vec<usize> = (0..looked.lexemes.len()).collect();
        lexemes.sort_by_key(|lexeme| term(*lexeme));
        for chunk in looked.fresh() {
            for lexeme in &lexemes {
                let occurrences = ranking::occurrences(chunk.rank(*lexeme));
                if occurrences > 0.0 {
                    let weight = ranking::weight(occurrences, chunk.length, mean);
                    scores.add(chunk.n, term(*lexeme), ranking::part(weight, rarities[term(*lexeme)]));
                }
            }
        }
        scores
    }

    fn add(&mut self, n: i64, word: usize, part: f32) {
        if self.near.is_empty() {
            self.far.entry(n).or_default().add(word, part);
        } else if let Some(score) = usize::try_from(n - self.first).ok().and_then(|place| self.near.get_mut(place)) {
            score.add(word, part);
        }
    }

    fn score(&self, n: i64) -> Score {
        let near = usize::try_from(n.saturating_sub(self.first)).ok().and_then(|place| self.near.get(place)).copied();
        near.or_else(|| self.far.get(&n).copied()).unwrap_or_default()
    }

    /// The score of a chunk; 0 if it has no word of the question.
    pub fn get(&self, n: i64) -> f32 {
        self.score(n).sum
    }

    /// Whether a chunk has every word of the question.
    pub fn has_all_words(&self, n: i64) -> bool {
        self.n_words > 0 && self.score(n).n_words >= self.n_words
    }

    /// The numbers of the best `limit` chunks, best first; equal scores by number. `allowed`: only these.
    pub fn best(&self, limit: usize, allowed: Option<&[i64]>) -> Vec<i64> {
        let mut scored: Vec<(f32, i64)> = match allowed {
            Some(allowed) => allowed.iter().map(|n| (self.get(*n), *n)).filter(|(score, _)| *score > 0.0).collect(),
            None => {
                let near = (self.first..).zip(&self.near).filter(|(_, score)| score.sum > 0.0);
                near.chain(self.far.iter().map(|(n, score)| (*n, score))).map(|(n, score)| (score.sum, n)).collect()
            }
        };
        let order = |a: &(f32, i64), b: &(f32, i64)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if scored.len() > limit && limit > 0 {
            scored.select_nth_unstable_by(limit - 1, order);
        }
        scored.truncate(limit);
        scored.sort_unstable_by(order);
        scored.into_iter().map(|(_, n)| n).collect()
    }
}
