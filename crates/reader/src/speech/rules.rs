//! The rules by which Whisper's next token is chosen: no token that says no words, and marks of time that come in pairs and never go back.

use super::tokens::{Token, Tokens};

/// The first words begin within a second.
const LATEST_BEGIN: Token = 50;

/// Rules out what must not follow `said`, by the lowest score.
pub fn rule_out(tokens: &Tokens, said: &[Token], scores: &mut [f32]) {
    let mut never = |from: usize, to: usize| {
        let to = to.min(scores.len());
        scores[from.min(to)..to].fill(f32::NEG_INFINITY);
    };
    let (first_mark, end) = (tokens.first_mark as usize, tokens.end as usize);
    let one = |never: &mut dyn FnMut(usize, usize), token: Token| never(token as usize, token as usize + 1);
    tokens.never.iter().for_each(|token| one(&mut never, *token));
    // Tasks and languages have been said.
    never(end + 1, first_mark);
    let Some(last) = said.last().copied() else {
        tokens.never_first.iter().for_each(|token| one(&mut never, *token));
        never(0, first_mark);
        return never(first_mark + LATEST_BEGIN as usize + 1, usize::MAX);
    };
    let is_mark = |token: &Token| tokens.is_mark(*token);
    if is_mark(&last) {
        match said.iter().rev().nth(1).is_none_or(is_mark) {
            // A pair, or the first one: words follow.
            true => never(first_mark, usize::MAX),
            // The end of words: a mark follows, or nothing.
            false => never(0, end),
        }
    }
    if let Some(latest) = said.iter().rev().find(|token| is_mark(token)) {
        // The beginning of words may be the end of those before; their end is later.
        let is_end = is_mark(&last) && said.len() > 1;
        never(first_mark, if is_end { *latest as usize } else { *latest as usize + 1 });
    }
    if marks_are_likelier(tokens, scores) {
        let n_words = first_mark.min(scores.len());
        scores[..n_words].fill(f32::NEG_INFINITY);
    }
}

/// Whether any mark of time is likelier than the likeliest word.
fn marks_are_likelier(tokens: &Tokens, scores: &[f32]) -> bool {
    let (words, marks) = scores.split_at((tokens.first_mark as usize).min(scores.len()));
    let highest = |scores: &[f32]| scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (word, mark) = (highest(words), highest(marks));
    mark.is_finite() && mark + marks.iter().map(|score| (score - mark).exp()).sum::<f32>().ln() > word
}

/// The length of the phrase that the last tokens say again and again, and the number of times. None: they do not.
pub fn repeated(said: &[Token]) -> Option<(usize, usize)> {
    const LONGEST: usize = 40;
    const LEAST_TOKENS: usize = 16;
    const LEAST_TIMES: usize = 4;
    (1..=LONGEST.min(said.len() / LEAST_TIMES)).find_map(|length| {
        let phrase = &said[said.len() - length..];
        let times = said.rchunks_exact(length).take_while(|chunk| *chunk == phrase).count();
        (times >= LEAST_TIMES && times * length >= LEAST_TOKENS).then_some((length, times))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tests::few;
    use super::*;

    /// The tokens that may follow, of 8 words, an end and 1,500 marks.
    fn allowed(said: &[Token]) -> Vec<Token> {
        let mut scores = vec![0.0; 14 + 1_501];
        // Each word is likelier than all marks together.
        scores[..=8].fill(50.0);
        rule_out(&few(), said, &mut scores);
        (0..).zip(scores).filter(|(_, score)| score.is_finite()).map(|(token, _)| token).collect()
    }

    #[test]
    fn marks_come_in_pairs_and_never_go_back() {
        let (words, last) = (vec![0, 1, 2, 3, 4, 5, 6], 14 + 1_500);
        assert_eq!(allowed(&[]), (14..=64).collect::<Vec<_>>(), "first a mark of the first second");
        assert_eq!(allowed(&[14]), [&words[..], &[8]].concat(), "then words");
        let after_words = [&words[..], &[8], &(15..=last).collect::<Vec<_>>()].concat();
        assert_eq!(allowed(&[14, 0]), after_words, "then words, or a later mark");
        assert_eq!(
            allowed(&[14, 0, 100]),
            [&[8], &(100..=last).collect::<Vec<_>>()[..]].concat(),
            "then a mark or the end"
        );
        assert_eq!(allowed(&[14, 0, 100, 120]), [&words[..], &[8]].concat(), "then words");
    }

    #[test]
    fn a_mark_is_chosen_if_all_marks_together_are_likelier_than_any_word() {
        let mut scores = vec![0.0; 14 + 1_501];
        scores[..=8].fill(5.0); // the logarithm of 1,500 is 7.3
        rule_out(&few(), &[14, 0], &mut scores);
        assert!(scores[..14].iter().all(|score| !score.is_finite()) && scores[20] == 0.0);
    }

    #[test]
    fn a_phrase_that_is_said_again_and_again_is_found() {
        let times = |phrase: &[Token], times: usize| phrase.repeat(times);
        for (said, expected) in [
            (times(&[1], 15), None),
            (times(&[1], 16), Some((1, 16))),
            (times(&[1, 2, 3], 5), None),
            (times(&[1, 2, 3], 6), Some((3, 6))),
            ([vec![9, 8], times(&[1, 2, 3, 4, 5], 4)].concat(), Some((5, 4))),
            ((0..100).collect(), None),
        ] {
            assert_eq!(repeated(&said), expected, "{said:?}");
        }
    }
}
