//! Sentences as the model writes them: taken out of its stream as soon as each is complete.

use domain::text::normalise;
use serde::Deserialize;

pub(super) const MOST_CITES: usize = 6;
const MOST_TEXT_CHARS: usize = 600;
const MOST_QUOTE_CHARS: usize = 1_500;
/// A sentence with its quotations.
const MOST_BYTES: usize = 64 * 1_024;

/// A sentence that nobody has checked.
#[derive(Debug, Deserialize)]
pub(super) struct Draft {
    text: String,
    pub cites: Vec<Cite>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Cite {
    pub passage: String,
    pub quote: String,
}

impl Draft {
    /// The sentence on one line, without names of passages in brackets. None: it is blank or too long.
    pub fn text(&self) -> Option<String> {
        let text = line(&without_names(&self.text))?;
        (text.chars().count() <= MOST_TEXT_CHARS).then_some(text)
    }
}

/// A text on one line, with its blanks collapsed. None: it is blank, or too long to be read.
pub(super) fn line(text: &str) -> Option<String> {
    if text.len() > 4 * MOST_QUOTE_CHARS {
        return None;
    }
    let line = normalise(text).split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty() && line.chars().count() <= MOST_QUOTE_CHARS).then_some(line)
}

/// Removes `[p1]` and `[p1, p2]`, which some models cannot help writing.
fn without_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open);
        let inner = after[1..].split(']').next().filter(|inner| inner.len() + 1 < after.len());
        let are_names = inner.is_some_and(|inner| {
            inner.split([',', ' ']).filter(|name| !name.is_empty()).all(|name| {
                name.strip_prefix('p').is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
            }) && inner.contains('p')
        });
        let n_taken = if are_names { inner.map_or(1, |inner| inner.len() + 2) } else { 1 };
        out.push_str(if are_names { before.trim_end() } else { &rest[..=open] });
        rest = &after[n_taken..];
    }
    out.push_str(rest);
    out
}

/// Takes the objects out of `{"sentences": [{…}, {…}]}` as the text of it arrives.
#[derive(Default)]
pub(super) struct Sentences {
    /// The object that has begun.
    object: String,
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

/// The depth of the objects: inside an object and a list.
const DEPTH: usize = 2;

impl Sentences {
    /// Returns the sentences that are complete now. None in place of one that is not as it was asked for.
    pub fn push(&mut self, piece: &str) -> Vec<Option<Draft>> {
        let mut complete = Vec::new();
        for c in piece.chars() {
            let was_inside = self.depth > DEPTH;
            self.step(c);
            if (was_inside || self.depth > DEPTH) && self.object.len() < MOST_BYTES {
                self.object.push(c);
            }
            if was_inside && self.depth <= DEPTH {
                complete.push(serde_json::from_str(&std::mem::take(&mut self.object)).ok());
            }
        }
        complete
    }

    /// Whether a sentence has begun that never ended.
    pub fn has_begun_another(&self) -> bool {
        self.depth > DEPTH
    }

    fn step(&mut self, c: char) {
        if self.in_string {
            match c {
                _ if self.is_escaped => self.is_escaped = false,
                '\\' => self.is_escaped = true,
                '"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match c {
            // Prose before the JSON may quote something.
            '"' if self.depth > 0 => self.in_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"sentences": [{"text": "A \"b\" {c]", "cites": [{"passage": "p1", "quote": "é\n[d"}]}, {"text": 5}, {"text":"e","cites":[]}]}"#;

    #[test]
    fn sentences_come_out_however_the_stream_is_cut() {
        for size in [1, 2, 3, 7, 50, 1_000] {
            let chars: Vec<char> = ANSWER.chars().collect();
            let mut sentences = Sentences::default();
            let pieces = chars.chunks(size).map(|piece| piece.iter().collect::<String>());
            let found: Vec<Option<String>> =
                pieces.flat_map(|piece| sentences.push(&piece)).map(|draft| draft.map(|draft| draft.text)).collect();
            assert_eq!(found, [Some("A \"b\" {c]".into()), None, Some("e".into())], "{size} at once");
            assert!(!sentences.has_begun_another());
        }
    }

    #[test]
    fn a_sentence_is_none_before_its_end() {
        let end = ANSWER.find("}]}, {").expect("the first one's end");
        let mut sentences = Sentences::default();
        assert!(sentences.push(&ANSWER[..end + 2]).is_empty() && sentences.has_begun_another());
        assert_eq!(sentences.push(&ANSWER[end + 2..end + 3]).len(), 1);
        let mut odd = Sentences::default();
        assert!(odd.push("Gladly! \"Ann\" called.").is_empty() && odd.push("]]}}{").is_empty());
        let mut long = Sentences::default();
        long.push("{\"sentences\":[{\"text\":\"");
        long.push(&"x".repeat(10 * MOST_BYTES));
        assert!(long.object.len() <= MOST_BYTES + 4);
        assert!(matches!(long.push("\"}").as_slice(), [None]));
    }

    #[test]
    fn a_sentence_is_one_line_without_names_of_passages() {
        for (text, expected) in [
            (" Ann \n owes\t5 EUR. ", Some("Ann owes 5 EUR.")),
            ("Ann owes 5 EUR [p1, p12].", Some("Ann owes 5 EUR.")),
            ("Ann [p1] owes [5] EUR [", Some("Ann owes [5] EUR [")),
            ("[px] []", Some("[px] []")),
            (" \n", None),
            ("\u{7}", None),
        ] {
            let draft = Draft { text: text.into(), cites: Vec::new() };
            assert_eq!(draft.text().as_deref(), expected, "of {text:?}");
        }
        assert_eq!(Draft { text: "é".repeat(601), cites: Vec::new() }.text(), None);
        assert_eq!(line(&"x ".repeat(10_000)), None);
    }
}
