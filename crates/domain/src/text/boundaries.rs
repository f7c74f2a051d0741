//! The places where a reader sees a new line, heading, sentence or word begin: the points where a text may be cut into chunks. The rules are
//! part of `TEXT_VERSION`.

use std::ops::Range;

pub struct Line {
    pub start: usize,
    pub kind: Kind,
}

pub enum Kind {
    Blank,
    Heading,
    Text,
}

/// Splits a text into lines and tells headings, text and blanks apart. In fenced code nothing is a heading or a new paragraph.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start().len();
        let words = line.trim();
        let kind = if words.is_empty() && fence.is_none() {
            Kind::Blank
        } else if let Some(mark) = fence {
            if words.starts_with(mark) && words.trim_start_matches(&mark[..1]).is_empty() {
                fence = None;
            }
            Kind::Text
        } else if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| words.starts_with(mark)) {
            fence = Some(mark);
            Kind::Text
        } else if is_heading(words) {
            Kind::Heading
        } else {
            // A line of its own, underlined, is a heading.
            let is_alone = |lines: &[Line]| match lines {
                [.., before, last] => matches!((&before.kind, &last.kind), (Kind::Blank | Kind::Heading, Kind::Text)),
                [last] => matches!(last.kind, Kind::Text),
                [] => false,
            };
            if is_underline(words) && is_alone(&lines) {
                if let Some(last) = lines.last_mut() {
                    last.kind = Kind::Heading;
                }
                Kind::Heading
            } else {
                Kind::Text
            }
        };
        if !(words.is_empty() && fence.is_some()) {
            lines.push(Line { start: start + blank, kind });
        }
        start += line.len();
    }
    lines
}

fn is_heading(words: &str) -> bool {
    let rest = words.trim_start_matches('#');
    (1..=6).contains(&(words.len() - rest.len())) && rest.starts_with([' ', '\t'])
}

fn is_underline(words: &str) -> bool {
    words.len() >= 3 && (words.bytes().all(|b| b == b'=') || words.bytes().all(|b| b == b'-'))
}

/// Finds the starts of sentences: after a full stop and a blank, after one that needs no blank, and after the end of a line.
pub fn sentence_starts(text: &str, range: Range<usize>) -> Vec<usize> {
    #[derive(PartialEq)]
    enum Seen {
        Nothing,
        Stop,
        WideStop,
        End,
    }
    let mut starts = Vec::new();
    let mut seen = Seen::Nothing;
    for (at, c) in text[range.clone()].char_indices() {
        let after_stop = matches!(seen, Seen::Stop | Seen::WideStop);
        let next = match c {
            '.' | '!' | '?' | '…' => Seen::Stop,
            '。' | '！' | '？' => Seen::WideStop,
            _ => Seen::Nothing,
        };
        let is_closing = matches!(c, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』');
        if c.is_whitespace() {
            if after_stop || c == '\n' {
                seen = Seen::End;
            }
        } else if after_stop && next != Seen::Nothing {
            seen = next;
        } else if !(after_stop && is_closing) {
            if at > 0 && matches!(seen, Seen::End | Seen::WideStop) {
                starts.push(range.start + at);
            }
            seen = next;
        }
    }
    starts
}

/// Finds the starts of words, except the first.
pub fn word_starts(text: &str, range: Range<usize>) -> Vec<usize> {
    let mut after_blank = false;
    let starts = text[range.clone()].char_indices().filter(|(at, c)| {
        let is_start = after_blank && !c.is_whitespace() && *at > 0;
        after_blank = c.is_whitespace();
        is_start
    });
    starts.map(|(at, _)| range.start + at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_readers_see_it() {
        let text = "One. Two (really.) Three!\nFour e.g.five 1.5 「六。」七。八 \"Nine?\" Ten";
        let mut ends = sentence_starts(text, 0..text.len());
        ends.push(text.len());
        let mut start = 0;
        let sentences: Vec<&str> =
            ends.into_iter().map(|end| text[std::mem::replace(&mut start, end)..end].trim()).collect();
        let expected = ["One.", "Two (really.)", "Three!", "Four e.g.five 1.5 「六。」", "七。", "八 \"Nine?\"", "Ten"];
        assert_eq!(sentences, expected);
    }
}
