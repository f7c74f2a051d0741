//! Finds the part of a text that matches a question best, and marks the matching words.

use std::collections::HashMap;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    pub is_match: bool,
}

/// The number of characters by which a word may be longer than the stem that it matches.
const MOST_ENDING_CHARS: usize = 3;
const LEAST_STEM_CHARS: usize = 3;
/// The largest distance by which an end is moved to reach the end of a word. Not every script has blanks.
const MOST_MOVED_CHARS: usize = 30;

/// Returns at most `most_chars` characters around the matches with the most different terms, cut between words, with `…` where text was
/// left out. `terms` are lower-case lexemes, some of them stems. Without a match it is the beginning of the text.
pub fn snippet(text: &str, terms: &[String], most_chars: usize) -> Vec<Part> {
    let text = text.trim();
    let (window, marks) = looked_at(text, terms, most_chars);
    let mut parts = Parts::default();
    if window.start > 0 {
        parts.push("…", false);
    }
    let mut at = window.start;
    for mark in marks {
        parts.push(&text[at..mark.start], false);
        parts.push(&text[mark.clone()], true);
        at = mark.end;
    }
    parts.push(&text[at..window.end], false);
    if window.end < text.len() {
        parts.push("…", false);
    }
    parts.0
}

/// Returns where the words are that a snippet of so many characters marks.
pub fn matches(text: &str, terms: &[String], most_chars: usize) -> Vec<Range<usize>> {
    looked_at(text, terms, most_chars).1
}

/// Returns the window of a text, and the matches in it.
fn looked_at(text: &str, terms: &[String], most_chars: usize) -> (Range<usize>, Vec<Range<usize>>) {
    let marks = marks(text, &Terms::of(terms), most_chars.saturating_sub(2));
    let window = widened(text, best(&marks, most_chars.saturating_sub(2)), most_chars);
    let is_in = |range: &Range<usize>| range.start >= window.start && range.end <= window.end;
    let ranges = marks.into_iter().map(|mark| mark.range).filter(is_in).collect();
    (window, ranges)
}

#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    /// Adds text with its blanks collapsed to single spaces.
    fn push(&mut self, text: &str, is_match: bool) {
        if self.0.last().is_none_or(|last| last.is_match != is_match) {
            if text.is_empty() {
                return;
            }
            self.0.push(Part { text: String::new(), is_match });
        }
        let Some(last) = self.0.last_mut() else { return };
        for c in text.chars() {
            match c.is_whitespace() {
                true if last.text.ends_with(' ') => {}
                true => last.text.push(' '),
                false => last.text.push(c),
            }
        }
    }
}

struct Terms<'a>(HashMap<&'a str, usize>);

impl<'a> Terms<'a> {
    fn of(terms: &'a [String]) -> Self {
        Self(terms.iter().enumerate().map(|(i, term)| (term.as_str(), i)).collect())
    }

    /// Returns the term that a lower-case word matches: the word itself, or the longest term that it begins with.
    fn matching(&self, word: &str) -> Option<usize> {
        if let Some(term) = self.0.get(word) {
            return Some(*term);
        }
        let ends = word.char_indices().rev().take(MOST_ENDING_CHARS).map(|(end, _)| end);
        ends.map(|end| &word[..end])
            .filter(|stem| stem.chars().nth(LEAST_STEM_CHARS - 1).is_some())
            .find_map(|stem| self.0.get(stem).copied())
    }
}

struct Mark {
    range: Range<usize>,
    /// The same range in characters.
    chars: Range<usize>,
    term: usize,
}

/// Returns every matching word, in order. Joined words (`INV-2041`, `a/b`, `example.com`) are one word if they match as a whole or part by
/// part.
fn marks(text: &str, terms: &Terms, most_chars: usize) -> Vec<Mark> {
    let mut marks = Vec::new();
    if terms.0.is_empty() {
        return marks;
    }
    let (mut last, mut chars) = (0, 0);
    let mut add = |range: Range<usize>, term| {
        let start = chars + text[last..range.start].chars().count();
        chars = start + text[range.clone()].chars().count();
        last = range.end;
        if chars - start <= most_chars {
            marks.push(Mark { range, chars: start..chars, term });
        }
    };
    for word in joined_words(text) {
        let parts: Vec<String> = word.iter().map(|part| text[part.clone()].to_lowercase()).collect();
        let whole = word[0].start..word[word.len() - 1].end;
        let matches: Vec<Option<usize>> = parts.iter().map(|part| terms.matching(part)).collect();
        let joined = if word.len() > 1 { terms.matching(&parts.concat()) } else { None };
        let written = if word.len() > 1 { terms.matching(&text[whole.clone()].to_lowercase()) } else { None };
        match joined.or(written).or_else(|| matches.iter().copied().collect::<Option<Vec<_>>>()?.first().copied()) {
            Some(term) => add(whole, term),
            None => {
                for (part, term) in word.into_iter().zip(matches) {
                    if let Some(term) = term {
                        add(part, term);
                    }
                }
            }
        }
    }
    marks
}

/// Returns words, each as its parts: letters and digits, joined by single hyphens, slashes, dots and similar signs.
fn joined_words(text: &str) -> Vec<Vec<Range<usize>>> {
    let mut words: Vec<Vec<Range<usize>>> = Vec::new();
    let mut at = 0;
    for part in text.split(|c: char| !c.is_alphanumeric()) {
        let range = at..at + part.len();
        at = range.end + text[range.end..].chars().next().map_or(0, char::len_utf8);
        if part.is_empty() {
            continue;
        }
        let joins = |last: &Range<usize>| {
            matches!(&text[last.end..range.start], "-" | "/" | "." | "_" | "'" | "’" | "\u{2011}" | "@")
        };
        match words.last_mut() {
            Some(word) if word.last().is_some_and(joins) => word.push(range),
            _ => words.push(vec![range]),
        }
    }
    words
}

/// Returns the stretch of at most `most_chars` with the most different terms, then the most matches; among equals the first.
fn best(marks: &[Mark], most_chars: usize) -> Range<usize> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    let mut first = 0;
    let (mut best, mut best_score) = (0..0, (0, 0));
    for (i, mark) in marks.iter().enumerate() {
        *counts.entry(mark.term).or_default() += 1;
        while mark.chars.end - marks[first].chars.start > most_chars {
            if let Some(count) = counts.get_mut(&marks[first].term) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&marks[first].term);
                }
            }
            first += 1;
        }
        let score = (counts.len(), i + 1 - first);
        if score > best_score {
            (best, best_score) = (marks[first].range.start..mark.range.end, score);
        }
    }
    best
}

/// Widens a stretch on both sides to at most `most_chars`, including the ellipses. A third of the spare room goes before it.
fn widened(text: &str, core: Range<usize>, most_chars: usize) -> Range<usize> {
    let whole = 0..text.len();
    if text.chars().nth(most_chars).is_none() {
        return whole;
    }
    let spare = most_chars.saturating_sub(2).saturating_sub(text[core.clone()].chars().count());
    let back = |from: usize, n: usize| text[..from].char_indices().rev().take(n).last().map_or(from, |(at, _)| at);
    let forth = |from: usize, n: usize| text[from..].char_indices().nth(n).map_or(text.len(), |(at, _)| from + at);
    let chars = |range: Range<usize>| text[range].chars().count();
    let after = chars(core.end..forth(core.end, spare));
    let start = back(core.start, (spare / 3).max(spare - after));
    let end = forth(core.end, spare - chars(start..core.start));
    let start = if start == 0 { 0 } else { start + to_word_start(&text[start..core.start], &text[..start]) };
    let end = if end == text.len() { end } else { end - to_word_end(&text[core.end..end], &text[end..]) };
    start..end
}

/// Returns how many bytes to drop so that the text starts with a whole word.
fn to_word_start(text: &str, before: &str) -> usize {
    if before.ends_with(char::is_whitespace) {
        return text.len() - text.trim_start().len();
    }
    let blank = text.char_indices().take(MOST_MOVED_CHARS).find(|(_, c)| c.is_whitespace());
    blank.map_or(0, |(at, _)| text.len() - text[at..].trim_start().len())
}

/// Returns how many bytes to drop so that the text ends with a whole word.
fn to_word_end(text: &str, after: &str) -> usize {
    if after.starts_with(char::is_whitespace) {
        return text.len() - text.trim_end().len();
    }
    let blank = text.char_indices().rev().take(MOST_MOVED_CHARS).find(|(_, c)| c.is_whitespace());
    blank.map_or(0, |(at, _)| text.len() - text[..at].trim_end().len())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::super::linear::assert_linear;
    use super::*;

    /// Shows matches in brackets.
    fn shown(text: &str, terms: &[&str], most_chars: usize) -> String {
        let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
        let part = |part: Part| if part.is_match { format!("[{}]", part.text) } else { part.text };
        snippet(text, &terms, most_chars).into_iter().map(part).collect()
    }

    #[test]
    fn words_match_as_they_are_written_or_by_their_stem() {
        for (text, terms, expected) in [
            ("Invoices and invoicing", &["invoic"][..], "[Invoices] and [invoicing]"),
            ("The invoice, INVOICE.", &["invoice"], "The [invoice], [INVOICE]."),
            ("as assumed", &["as"], "[as] assumed"),
            ("car cards cartographer", &["car"], "[car] [cards] cartographer"),
            ("Pay INV-2041 now", &["inv", "2041", "inv2041"], "Pay [INV-2041] now"),
            ("Pay INV-2041 now", &["inv2041"], "Pay [INV-2041] now"),
            ("Pay INV-2041 now", &["2041"], "Pay INV-[2041] now"),
            ("Pay INV-2041 now", &["inv-2041"], "Pay [INV-2041] now"),
            ("see www.example.com/pay/list", &["list"], "see www.example.com/pay/[list]"),
            ("Ärger über ÄRGER", &["ärger"], "[Ärger] über [ÄRGER]"),
            ("İstanbul", &["istanbul"], "İstanbul"),
            ("one\n\n  two", &["two"], "one [two]"),
            ("nothing here", &[], "nothing here"),
            ("", &["x"], ""),
        ] {
            assert_eq!(shown(text, terms, 200), expected, "{terms:?} in {text:?}");
        }
    }

    #[test]
    fn the_window_has_the_most_different_words() {
        let filler = "Nothing of interest is said in this sentence. ".repeat(20);
        let text = format!("{filler}A payment. A payment. {filler}The payment of the invoice is late. {filler}");
        assert_eq!(
            shown(&text, &["payment", "invoic"], 80),
            "…sentence. The [payment] of the [invoice] is late. Nothing of interest is said…"
        );
        assert_eq!(shown(&text, &["unknown"], 30), "Nothing of interest is said…");
        assert_eq!(shown("a b c d e f last", &["last"], 8), "…f [last]");
    }

    #[test]
    fn a_snippet_is_never_too_long_and_always_text_of_its_text() {
        let mut rng = StdRng::seed_from_u64(3);
        let words = [
            "pay",
            "invoice",
            "INV-2041",
            "漢字漢字漢字",
            "a",
            "\n",
            "😀",
            "straße",
            "x.y.z",
            "…",
            "verylongwordwithoutanyend",
        ];
        let terms: Vec<String> = ["pay", "invoic", "inv2041", "a", "漢字漢字漢字"].map(str::to_owned).to_vec();
        for _ in 0..5_000 {
            let blank = if rng.random_bool(0.8) { " " } else { "" };
            let text: Vec<&str> =
                (0..rng.random_range(0..60)).map(|_| words[rng.random_range(0..words.len())]).collect();
            let (text, most) = (text.join(blank), rng.random_range(5..120));
            let parts = snippet(&text, &terms, most);
            let whole: String = parts.iter().map(|part| part.text.as_str()).collect();
            assert!(whole.chars().count() <= most, "{whole:?} has more than {most} characters");
            assert!(
                parts.iter().all(|part| !part.text.is_empty())
                    && parts.windows(2).all(|two| two[0].is_match != two[1].is_match)
            );
            let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(plain(&text).contains(plain(&whole).trim_matches('…').trim()), "{whole:?} is not in {text:?}");
        }
    }

    #[test]
    fn a_long_text_takes_linear_time() {
        let terms: Vec<String> = ["pay", "invoic", "a"].map(str::to_owned).to_vec();
        for unit in ["pay ", "a-", "a", "invoice\n", "漢", "- "] {
            let [text, four_times] = [800_000, 3_200_000].map(|bytes| unit.repeat(bytes / unit.len()));
            assert_linear(unit, &text, &four_times, |text| drop(snippet(text, &terms, 200)));
        }
    }
}
