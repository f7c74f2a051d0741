//! The sentences of found passages that answer a question best, as they stand there.

use std::collections::HashSet;

use super::words::{Kind, Word, are_alike, with_dates, words};
use super::{is_minor, says};
use crate::text::sentences;

/// A longer sentence is a table or a list, which nobody wants quoted.
const MOST_CHARS: usize = 400;
const LEAST_WORDS: usize = 3;
/// The least share of the question that a sentence has, by the weight of its words.
const LEAST_SHARE: f64 = 0.45;
/// Sentences that have less of the question than this share of what the best one has are left out.
const BESIDE_BEST: f64 = 0.6;
/// The weight of a word that stands only in the title.
const OF_TITLE: f64 = 0.5;
/// The bonus of a sentence of the passage that the search found first.
const OF_FIRST: f64 = 0.15;

/// A passage, the best first.
#[derive(Clone, Copy, Debug)]
pub struct Quotable<'a> {
    pub title: Option<&'a str>,
    pub text: &'a str,
}

/// A sentence that was chosen, and the passage that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    pub passage: usize,
    pub sentence: &'a str,
}

/// Chooses up to `most` sentences that have the question's words, the best first. Rare words count more than those that most sentences have.
/// None where no sentence has about half of what is asked for.
pub fn best<'a>(question: &str, passages: &[Quotable<'a>], most: usize) -> Vec<Quoted<'a>> {
    let asked = asked(question);
    if asked.is_empty() {
        return Vec::new();
    }
    let titles: Vec<Vec<Word>> = passages.iter().map(|passage| words(passage.title.unwrap_or_default())).collect();
    let mut known = HashSet::new();
    let mut all: Vec<(Quoted<'a>, Vec<Word>)> = Vec::new();
    for (nth, passage) in passages.iter().enumerate() {
        for sentence in sentences(passage.text).filter(|sentence| sentence.chars().count() <= MOST_CHARS) {
            let words = with_dates(words(sentence));
            let form: Vec<String> = words.iter().map(|word| word.folded.clone()).collect();
            if words.len() >= LEAST_WORDS && known.insert(form) {
                all.push((Quoted { passage: nth, sentence }, words));
            }
        }
    }
    let weights: Vec<f64> = asked
        .iter()
        .map(|word| {
            let n_with = all.iter().filter(|(_, words)| has(words, word)).count();
            if n_with == 0 { 1.0 } else { (1.0 + all.len() as f64 / n_with as f64).ln().clamp(0.5, 1.2) }
        })
        .collect();
    let sum: f64 = weights.iter().sum();
    let mut scored: Vec<(f64, f64, Quoted<'a>)> = all
        .into_iter()
        .filter_map(|(quoted, words)| {
            let title = &titles[quoted.passage];
            let (mut own, mut of_title) = (0.0, 0.0);
            for (word, weight) in asked.iter().zip(&weights) {
                if has(&words, word) {
                    own += weight;
                } else if has(title, word) {
                    of_title += weight * OF_TITLE;
                }
            }
            let share = (own + of_title) / sum;
            let first = 1.0 - quoted.passage as f64 / passages.len() as f64;
            (own > 0.0 && share >= LEAST_SHARE).then_some((share, share + OF_FIRST * first, quoted))
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1)); // stable: those alike stay in the order of the search
    let least = scored.first().map_or(0.0, |(share, ..)| share * BESIDE_BEST);
    scored.into_iter().filter(|(share, ..)| *share >= least).map(|(.., quoted)| quoted).take(most).collect()
}

/// The words of a question that are looked for, each once.
fn asked(question: &str) -> Vec<Word> {
    let mut asked: Vec<Word> = Vec::new();
    for word in with_dates(words(question)).into_iter().filter(|word| !is_minor(word)) {
        if !asked.iter().any(|other| other.folded == word.folded) {
            asked.push(word);
        }
    }
    asked
}

fn has(words: &[Word], asked: &Word) -> bool {
    words.iter().any(|word| match asked.kind {
        Kind::Plain => word.kind == Kind::Plain && are_alike(&word.folded, &asked.folded),
        _ => says(word, asked),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentences_with_most_of_the_question_are_chosen() {
        let passages = [
            Quotable {
                title: Some("Larkfield Landscaping"),
                text: "Larkfield Landscaping owes 2,450 USD, overdue since 3 March 2026.\nIt was billed 4,900 USD in all.",
            },
            Quotable {
                title: Some("Call notes"),
                text: "Ann called. Late deliveries make her unhappy. She wants to be called back.",
            },
            Quotable { title: Some("Stonebrook"), text: "Stonebrook owes 8,280 USD. Stonebrook owes 8,280 USD!" },
        ];
        let chosen = |question: &str| -> Vec<&str> {
            best(question, &passages, 3).into_iter().map(|quoted| quoted.sentence).collect()
        };
        assert_eq!(
            chosen("Who owes us money?"),
            ["Larkfield Landscaping owes 2,450 USD, overdue since 3 March 2026.", "Stonebrook owes 8,280 USD."]
        );
        assert_eq!(chosen("what does Stonebrook owe"), ["Stonebrook owes 8,280 USD."]);
        assert_eq!(chosen("is Ann unhappy about a late delivery"), ["Late deliveries make her unhappy."]);
        assert_eq!(
            chosen("what is overdue since 2026-03-03")[0],
            "Larkfield Landscaping owes 2,450 USD, overdue since 3 March 2026."
        );
        for nothing in ["a unicorn's breeding licence in Atlantis", "who is it", "", "?!"] {
            assert!(chosen(nothing).is_empty(), "{nothing}");
        }
        assert!(best("Who owes us money?", &[], 3).is_empty());
    }
}
