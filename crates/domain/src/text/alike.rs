//! Tells whether two texts are the same, or nearly: the same mail sent twelve times, a letter with another date.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

/// The words in one shingle.
const WORDS: usize = 3;
/// Texts that share so much of their shingles are near-identical.
const ALIKE: f64 = 0.9;

/// A text reduced to what it is compared by: its runs of three words, without case and punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Likeness {
    /// Of all words in order.
    whole: u64,
    /// Of each run of three words; sorted, each once.
    shingles: Vec<u64>,
}

impl Likeness {
    pub fn of(text: &str) -> Self {
        let words: Vec<String> = super::phrase::words(text).collect();
        let mut shingles: Vec<u64> = words.windows(WORDS).map(hash).collect();
        shingles.sort_unstable();
        shingles.dedup();
        Self { whole: hash(&words), shingles }
    }

    /// Whether the texts have the same words in the same order, or share nine tenths of their runs of three words.
    pub fn is_alike(&self, other: &Self) -> bool {
        if self.whole == other.whole {
            return true;
        }
        let (few, many) = match self.shingles.len() <= other.shingles.len() {
            true => (&self.shingles, &other.shingles),
            false => (&other.shingles, &self.shingles),
        };
        // Most pairs differ in length by more than could ever be alike.
        if (few.len() as f64) < ALIKE * many.len() as f64 || few.is_empty() {
            return false;
        }
        let n_shared = shared(few, many) as f64;
        n_shared >= ALIKE * (few.len() as f64 + many.len() as f64 - n_shared)
    }
}

fn hash(words: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// The number of values that two sorted lists have in common.
fn shared(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut n) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        n += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    n
}

#[cfg(test)]
mod tests {
    use super::super::linear::assert_linear;
    use super::*;

    #[test]
    fn texts_are_alike_when_nearly_all_of_their_words_follow_each_other_in_the_same_way() {
        let letter = |n: usize, end: &str| {
            let words: Vec<String> = (0..n).map(|nth| format!("word{nth}")).collect();
            format!("{} {end}", words.join(" "))
        };
        let long = letter(120, "yours Ann");
        for (what, a, b, expected) in [
            ("the same", "Late delivery of copper.", "Late delivery of copper.", true),
            ("case and punctuation", "Late delivery, of COPPER!", "late   delivery of copper", true),
            ("a short text with another number", "Invoice INV-2041 is due", "Invoice INV-2042 is due", false),
            ("a long one with another ending", &long, &letter(120, "yours Bob"), true),
            ("a long one, a quarter of it gone", &long, &letter(90, "yours Ann"), false),
            ("other words", "The ferry leaves at noon today", "The lease ends in June next year", false),
            ("the same words in another order", "to be or not to be", "not to be or to be", false),
            ("nothing", "", "...", true),
            ("nothing and something", "", "one two three four", false),
            ("two words", "spare key", "spare keys", false),
        ] {
            let (a, b) = (Likeness::of(a), Likeness::of(b));
            assert_eq!((a.is_alike(&b), b.is_alike(&a)), (expected, expected), "{what}");
            assert!(a.is_alike(&a), "{what}");
        }
    }

    #[test]
    fn a_long_text_takes_linear_time() {
        let unit = "one two three four ";
        let [text, four_times] = [800_000, 3_200_000].map(|bytes| unit.repeat(bytes / unit.len()));
        assert_linear(unit, &text, &four_times, |text| drop(Likeness::of(text)));
    }
}
