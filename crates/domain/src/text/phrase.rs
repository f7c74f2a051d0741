//! How much of a question stands in a text word for word.

use std::collections::HashSet;

/// The pairs of neighbouring words of a question.
#[derive(Clone, Debug)]
pub struct Phrases {
    pairs: HashSet<(String, String)>,
}

impl Phrases {
    pub fn of(question: &str) -> Self {
        let words: Vec<String> = words(question).collect();
        Self { pairs: words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect() }
    }

    /// The share of the pairs that stand next to each other in the title or in the text, from 0 to 1. 0 for a question of one word.
    pub fn share_in(&self, title: Option<&str>, text: &str) -> f64 {
        if self.pairs.is_empty() {
            return 0.0;
        }
        let mut found: HashSet<(String, String)> = HashSet::new();
        for part in title.into_iter().chain([text]) {
            let mut before = String::new();
            for word in words(part) {
                let pair = (before, word);
                let is_asked_for = self.pairs.contains(&pair);
                before = pair.1.clone();
                if is_asked_for {
                    found.insert(pair);
                }
            }
        }
        found.len() as f64 / self.pairs.len() as f64
    }
}

pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_neighbouring_words_that_stand_next_to_each_other() {
        for (question, title, text, expected) in [
            ("late delivery", None, "A late delivery.", 1.0),
            ("late delivery", None, "The delivery was late.", 0.0),
            ("Late-Delivery of pallets", None, "late delivery, of copper", 2.0 / 3.0),
            ("annual report", Some("Annual report 2026"), "Figures.", 1.0),
            ("report figures", Some("Annual report"), "Figures.", 0.0),
            ("invoice", None, "invoice", 0.0),
            ("", None, "", 0.0),
            ("to be to be", None, "to be or not to be", 0.5),
        ] {
            let share = Phrases::of(question).share_in(title, text);
            assert!((share - expected).abs() < 1e-9, "{question:?} in {text:?}: {share}");
        }
    }
}
