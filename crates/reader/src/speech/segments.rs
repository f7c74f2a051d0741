//! Segments of speech: marks of time cut a window's words into segments, and say where the next window begins.

use super::mel::WINDOW_SECS;
use super::tokens::{Token, Tokens};

/// Words between two marks of time, in seconds from the window's first moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub begin: f64,
    pub end: f64,
    pub tokens: Vec<Token>,
}

/// Cuts what was said to a window that has `secs` of sound. Returns the segments, and the seconds after which the next window begins: words that the window
/// has cut off are left for it.
pub fn cut(tokens: &Tokens, said: &[Token], secs: f64) -> (Vec<Segment>, f64) {
    let is_mark = |nth: usize| said.get(nth).is_some_and(|token| tokens.is_mark(*token));
    let at = |mark: Token| tokens.secs(mark).min(secs);
    let mut segments = Vec::new();
    let (mut begin, mut words) = (0.0, Vec::new());
    // The end of the last words that ended, if others began then.
    let mut ended = None;
    for (nth, token) in said.iter().enumerate() {
        if !tokens.is_mark(*token) {
            words.push(*token);
            continue;
        }
        if words.is_empty() {
            begin = at(*token);
            continue;
        }
        segments.push(Segment { begin, end: at(*token), tokens: std::mem::take(&mut words) });
        begin = at(*token);
        ended = Some((at(*token), is_mark(nth + 1)));
    }
    let is_whole = secs < WINDOW_SECS as f64;
    match (words.is_empty(), ended) {
        // Words without an end were cut off, if there were others before. They are heard again.
        (false, Some((end, _))) if !is_whole && end > 0.0 => return (segments, end),
        (false, _) => segments.push(Segment { begin, end: secs, tokens: words }),
        // Others began and were cut off before their first word.
        (true, Some((end, true))) if !is_whole && end > 0.0 => return (segments, end),
        (true, _) => {}
    }
    (segments, secs)
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tests::few;
    use super::*;

    /// The mark of so many seconds.
    fn at(secs: u32) -> Token {
        14 + secs * 50
    }

    #[test]
    fn the_next_window_begins_where_words_were_cut_off() {
        let whole = 30.0;
        for (name, said, secs, expected, next) in [
            ("nothing", vec![], whole, vec![], whole),
            ("only a mark", vec![at(0)], whole, vec![], whole),
            ("one segment", vec![at(1), 0, 1, at(4)], whole, vec![(1.0, 4.0, 2)], whole),
            (
                "two, and others begin",
                vec![at(0), 0, at(12), at(12), 1, at(28), at(28)],
                whole,
                vec![(0.0, 12.0, 1), (12.0, 28.0, 1)],
                28.0,
            ),
            ("two, and words without an end", vec![at(0), 0, at(12), at(12), 1], whole, vec![(0.0, 12.0, 1)], 12.0),
            ("words without any end", vec![at(2), 0, 1], whole, vec![(2.0, 30.0, 2)], whole),
            (
                "the last window has no next one",
                vec![at(0), 0, at(5), at(5), 1],
                9.0,
                vec![(0.0, 5.0, 1), (5.0, 9.0, 1)],
                9.0,
            ),
            ("marks beyond the sound", vec![at(0), 0, at(12)], 9.0, vec![(0.0, 9.0, 1)], 9.0),
            (
                "a pause between",
                vec![at(0), 0, at(5), at(9), 1, at(20)],
                whole,
                vec![(0.0, 5.0, 1), (9.0, 20.0, 1)],
                whole,
            ),
        ] {
            let (segments, heard) = cut(&few(), &said, secs);
            let found: Vec<(f64, f64, usize)> =
                segments.iter().map(|segment| (segment.begin, segment.end, segment.tokens.len())).collect();
            assert_eq!((found, heard), (expected, next), "{name}");
        }
    }
}
