//! Scores a tenant's chunks by the words of a question: BM25, over the postings of segments and over fresh chunks alike. Pure.

use std::collections::HashMap;

use domain::ranking::{self, USUAL_LENGTH};
use store::memory::postings::entries;
use store::memory::{Candidate, Looked};

use super::fusion::Scored;

/// A tenant whose numbers lie farther apart than that has its scores in a map, which is slower.
const MOST_PLACES: i64 = 16_000_000;

/// The scores of all chunks that have a word of the question.
pub(super) struct Scores {
    first: i64,
    /// By number, counted from `first`; nothing where no word matches.
    near: Vec<Score>,
    /// By number, where they lie too far apart for a list.
    far: HashMap<i64, Score>,
    /// The words of the question.
    words: u32,
}

#[derive(Clone, Copy, Default)]
struct Score {
    sum: f32,
    /// The words that it has, one bit each.
    words: u32,
}

/// The bit of a word, by its number from 1. A question has 32 at most.
fn bit(word: usize) -> u32 {
    u32::try_from(word.saturating_sub(1)).ok().and_then(|nth| 1_u32.checked_shl(nth)).unwrap_or_default()
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
        let words = (0..looked.lexemes.len()).fold(0, |words, lexeme| words | bit(term(lexeme)));
        let mut scores = Self { first, near, far: HashMap::new(), words };
        for (lexeme, from_n, list) in looked.lists() {
            let (word, rarity) = (term(lexeme), rarities[term(lexeme)]);
            for (n, weight) in entries(list, from_n) {
                scores.add(n, word, ranking::part(weight, rarity));
            }
        }
        let (n_fresh, length) = looked.fresh().fold((0.0, 0.0), |(n, sum), chunk| (n + 1.0, sum + chunk.length));
        let mean = looked.mean_length().unwrap_or(if n_fresh > 0.0 { length / n_fresh } else { USUAL_LENGTH });
        for chunk in looked.fresh() {
            for lexeme in 0..looked.lexemes.len() {
                let occurrences = ranking::occurrences(chunk.rank(lexeme));
                if occurrences > 0.0 {
                    let weight = ranking::weight(occurrences, chunk.length, mean);
                    scores.add(chunk.n, term(lexeme), ranking::part(weight, rarities[term(lexeme)]));
                }
            }
        }
        scores
    }

    fn add(&mut self, n: i64, word: usize, part: f32) {
        let score = match self.near.is_empty() {
            true => Some(self.far.entry(n).or_default()),
            false => usize::try_from(n - self.first).ok().and_then(|place| self.near.get_mut(place)),
        };
        if let Some(score) = score {
            score.sum += part;
            score.words |= bit(word);
        }
    }

    fn score(&self, n: i64) -> Score {
        let near = usize::try_from(n.saturating_sub(self.first)).ok().and_then(|place| self.near.get(place)).copied();
        near.or_else(|| self.far.get(&n).copied()).unwrap_or_default()
    }

    /// A candidate with its score.
    pub fn of_candidate(&self, candidate: Candidate) -> Scored {
        let n = candidate.n;
        Scored { candidate, by_keyword: f64::from(self.get(n)), has_all_words: self.has_all_words(n) }
    }

    /// The score of a chunk; 0 if it has no word of the question.
    pub fn get(&self, n: i64) -> f32 {
        self.score(n).sum
    }

    /// Whether a chunk has every word of the question.
    pub fn has_all_words(&self, n: i64) -> bool {
        self.words > 0 && self.score(n).words == self.words
    }

    /// The numbers of the best `limit` chunks, best first; equal scores by number. `allowed`: only these.
    pub fn best(&self, limit: usize, allowed: Option<&[i64]>) -> Vec<i64> {
        self.best_of(limit, allowed, |_| true)
    }

    /// The same, of the chunks that have all words of one of the `phrases`. What is no word of the question is not looked for.
    pub fn best_with<'w>(
        &self,
        limit: usize,
        looked: &Looked,
        phrases: impl Iterator<Item = impl Iterator<Item = &'w str>>,
    ) -> Vec<i64> {
        let of_word = |word: &str| {
            let lexemes = looked.lexemes.iter().zip(&looked.terms).filter(|(lexeme, _)| *lexeme == word);
            lexemes.fold(0, |words, (_, term)| words | bit(usize::try_from(*term).unwrap_or_default()))
        };
        let phrases: Vec<u32> = phrases.map(|phrase| phrase.fold(0, |words, word| words | of_word(word))).collect();
        let has_one = |score: &Score| phrases.iter().any(|words| score.words & words == *words);
        self.best_of(limit, looked.allowed.as_deref(), has_one)
    }

    fn best_of(&self, limit: usize, allowed: Option<&[i64]>, is_wanted: impl Fn(&Score) -> bool) -> Vec<i64> {
        let is_wanted = |score: &Score| score.sum > 0.0 && is_wanted(score);
        let mut scored: Vec<(f32, i64)> = match allowed {
            Some(allowed) => {
                let scored = allowed.iter().map(|n| (self.score(*n), *n));
                scored.filter(|(score, _)| is_wanted(score)).map(|(score, n)| (score.sum, n)).collect()
            }
            None => {
                let near = (self.first..).zip(&self.near).chain(self.far.iter().map(|(n, score)| (*n, score)));
                near.filter(|(_, score)| is_wanted(score)).map(|(n, score)| (score.sum, n)).collect()
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
