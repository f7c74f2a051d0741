//! The sentences of a text.

use super::boundaries::sentence_starts;

/// The sentences of a text, trimmed, in order. A line is a sentence of its own; marks of headings and lists are left out.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut ends = sentence_starts(text, 0..text.len());
    ends.push(text.len());
    let mut start = 0;
    ends.into_iter().filter_map(move |end| {
        let sentence = &text[std::mem::replace(&mut start, end)..end];
        let sentence = sentence.trim().trim_start_matches(['#', '*', '-', '•', '>', '|', ' ']).trim();
        (!sentence.is_empty()).then_some(sentence)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn sentences_come_without_the_marks_of_lists() {
        let text = "# Notes\n\n- Ann called. She owes 5 EUR!\n* Bob\n---\n";
        let found: Vec<&str> = super::sentences(text).collect();
        assert_eq!(found, ["Notes", "Ann called.", "She owes 5 EUR!", "Bob"]);
        assert_eq!(super::sentences("").count(), 0);
    }
}
