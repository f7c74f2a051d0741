//! How much of a question's words a chunk has, each word weighed by its rarity. Pure.

use std::collections::HashMap;

use domain::ranking;
use store::memory::postings::has_entry;
use store::memory::{FreshChunk, Looked};

/// The words of a question, and where they are.
pub(super) struct Coverage<'a> {
    looked: &'a Looked,
    fresh: HashMap<i64, FreshChunk<'a>>,
    /// By the number of the word.
    rarities: Vec<f64>,
}

impl<'a> Coverage<'a> {
    pub fn of(looked: &'a Looked) -> Self {
        let n_words = looked.terms.iter().copied().max().map_or(0, index) + 1;
        let mut counts = vec![None::<u64>; n_words];
        for term in &looked.terms {
            counts[index(*term)].get_or_insert(0);
        }
        for (lexeme, _, list) in looked.lists() {
            *counts[word(looked, lexeme)].get_or_insert(0) += list.len() as u64 / 5;
        }
        let fresh: HashMap<i64, FreshChunk<'a>> = looked.fresh().map(|chunk| (chunk.n, chunk)).collect();
        for chunk in fresh.values() {
            for lexeme in (0..looked.lexemes.len()).filter(|lexeme| chunk.rank(*lexeme) > 0.0) {
                *counts[word(looked, lexeme)].get_or_insert(0) += 1;
            }
        }
        let total = looked.total();
        let rarity = |count: &Option<u64>| count.map_or(0.0, |count| f64::from(ranking::rarity(count, total)));
        Self { looked, fresh, rarities: counts.iter().map(rarity).collect() }
    }

    /// The share of the question's rarity that a chunk's words cover, from 0 to 1. None: the question has no words to look for.
    pub fn share(&self, n: i64) -> Option<f64> {
        let all: f64 = self.rarities.iter().sum();
        if all <= 0.0 {
            return None;
        }
        let mut is_there = vec![false; self.rarities.len()];
        match self.fresh.get(&n) {
            Some(chunk) => {
                for lexeme in (0..self.looked.lexemes.len()).filter(|lexeme| chunk.rank(*lexeme) > 0.0) {
                    is_there[word(self.looked, lexeme)] = true;
                }
            }
            None => {
                for (lexeme, from_n, list) in self.looked.lists() {
                    let word = word(self.looked, lexeme);
                    is_there[word] = is_there[word] || has_entry(list, from_n, n);
                }
            }
        }
        let covered: f64 = self.rarities.iter().zip(is_there).filter(|(_, is_there)| *is_there).map(|(r, _)| r).sum();
        Some(covered / all)
    }
}

/// The number of the word that a lexeme belongs to.
fn word(looked: &Looked, lexeme: usize) -> usize {
    looked.terms.get(lexeme).copied().map_or(0, index)
}

fn index(term: i32) -> usize {
    usize::try_from(term).unwrap_or_default()
}
