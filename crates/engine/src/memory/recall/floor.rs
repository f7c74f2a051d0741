//! The floor: whether a document fits a question at all. A search always has a nearest chunk, also for a question that nothing answers. Pure.

/// Below these numbers a document does not fit. They belong to a model, because models differ in how similar unrelated texts seem to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// A document so similar fits, whatever its words. Its words count too: having all of the question's rarity is worth `per_words`.
    pub similarity: f64,
    pub per_words: f64,
    /// A document so similar fits if words were not searched.
    pub near: f64,
    /// A document with so much of the question's rarity fits, whatever its similarity.
    pub words: f64,
    /// A document with so much of the question's rarity fits if no vector was searched.
    pub some_words: f64,
    /// Similarities are for a memory of 10,000 chunks. Among ten times as many the nearest of what does not fit is so much nearer.
    pub per_decade: f64,
}

impl Floor {
    /// The floor in a memory of so many chunks.
    pub(super) fn among(self, n_chunks: u64) -> Self {
        let decades = ((n_chunks.max(1) as f64).log10() - 4.0).clamp(-3.5, 1.0);
        let more = self.per_decade * decades;
        Self { similarity: self.similarity + more, near: self.near + more, ..self }
    }
}

/// The knowledge of both sides of a search of a document, by its best chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Signals {
    /// To the question's vector. None: no vector was searched, or the chunk has none yet.
    pub similarity: Option<f64>,
    /// The share of the question's rarity that the chunk's words cover, from 0 to 1. None: words were not searched.
    pub words: Option<f64>,
    /// It has a phrase, a number, an address or an id of the question as it is.
    pub is_exact: bool,
}

/// Whether a document fits the question.
pub(super) fn fits(signals: Signals, floor: &Floor) -> bool {
    if signals.is_exact {
        return true;
    }
    match (signals.similarity, signals.words) {
        (Some(similarity), Some(words)) => {
            similarity + floor.per_words * words >= floor.similarity || words >= floor.words
        }
        (Some(similarity), None) => similarity >= floor.near,
        (None, Some(words)) => words >= floor.some_words,
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_fits_by_its_meaning_by_its_words_or_by_some_of_both() {
        let floor = Floor { similarity: 0.6, per_words: 0.5, near: 0.4, words: 0.7, some_words: 0.3, per_decade: 0.02 };
        for (what, similarity, words, is_exact, expected) in [
            ("close in meaning, other words", Some(0.6), Some(0.0), false, true),
            ("nearly all of the words", Some(0.0), Some(0.7), false, true),
            ("a little of both", Some(0.5), Some(0.3), false, true),
            ("near, but other words", Some(0.45), Some(0.2), false, false),
            ("some words, but far", Some(0.2), Some(0.6), false, false),
            ("neither", Some(0.1), Some(0.1), false, false),
            ("meaning alone was searched", Some(0.4), None, false, true),
            ("meaning alone, and far", Some(0.39), None, false, false),
            ("words alone were searched", None, Some(0.3), false, true),
            ("words alone, and few", None, Some(0.29), false, false),
            ("nothing is known", None, None, false, false),
            ("the number is there", Some(0.0), Some(0.1), true, true),
        ] {
            assert_eq!(fits(Signals { similarity, words, is_exact }, &floor), expected, "{what}");
        }
    }

    #[test]
    fn in_a_small_memory_less_similarity_is_enough() {
        let floor = Floor { similarity: 0.6, per_words: 0.5, near: 0.4, words: 0.7, some_words: 0.3, per_decade: 0.02 };
        assert_eq!(floor.among(10_000), floor);
        for (n_chunks, expected) in [(0, 0.53), (100, 0.56), (100_000, 0.62), (100_000_000, 0.62)] {
            let among = floor.among(n_chunks);
            assert!((among.similarity - expected).abs() < 1e-9, "{n_chunks}: {among:?}");
            assert!((among.near - (expected - 0.2)).abs() < 1e-9 && among.words == floor.words);
        }
    }
}
