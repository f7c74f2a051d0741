//! Batches: texts by number and by estimated tokens, and the parts of a text that is too long for its model.

/// A text, or a part of one that is too long for the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part<'a> {
    /// The place of its text.
    pub of: usize,
    pub text: &'a str,
}

/// Estimates the tokens of a text, rather too many than too few: three ASCII characters each, one for an accented letter, two for a character of
/// Chinese, Japanese or Korean, three for an emoji.
pub fn estimated_tokens(text: &str) -> usize {
    let (mut n_ascii, mut n_other) = (0, 0);
    for c in text.chars() {
        match c.len_utf8() {
            1 => n_ascii += 1,
            bytes => n_other += bytes - 1,
        }
    }
    usize::div_ceil(n_ascii, 3) + n_other
}

/// Fills batches with so many parts and so many tokens at most. A part that is larger than that is a batch of its own. Every part costs `more`
/// tokens besides its own.
pub(super) fn batches(parts: Vec<Part<'_>>, most: usize, most_tokens: usize, more: usize) -> Vec<Vec<Part<'_>>> {
    let mut batches: Vec<Vec<Part<'_>>> = Vec::new();
    let mut tokens = 0;
    for part in parts {
        let part_tokens = estimated_tokens(part.text) + more;
        match batches.last_mut() {
            Some(batch) if batch.len() < most && tokens + part_tokens <= most_tokens => {
                batch.push(part);
                tokens += part_tokens;
            }
            _ => {
                batches.push(vec![part]);
                tokens = part_tokens;
            }
        }
    }
    batches
}

/// Cuts a text into parts of at most so many estimated tokens.
pub(super) fn windows(text: &str, most_tokens: usize) -> Vec<&str> {
    if estimated_tokens(text) <= most_tokens {
        return vec![text];
    }
    match halves(text) {
        Some(halves) => halves.into_iter().flat_map(|half| windows(half, most_tokens)).collect(),
        None => vec![text],
    }
}

/// Cuts a text near its middle, between two words if there are any. None: it has no two characters.
pub(super) fn halves(text: &str) -> Option<[&str; 2]> {
    let middle = text.ceil_char_boundary(text.len() / 2);
    let quarter = text.ceil_char_boundary(text.len() / 4);
    let blank = text[quarter..middle].rfind(char::is_whitespace).map(|at| quarter + at);
    let at = [blank, Some(middle)].into_iter().flatten().find(|at| (1..text.len()).contains(at))?;
    Some(text.split_at(at).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_rather_estimated_too_many() {
        for (text, expected) in
            [("", 0), ("a", 1), ("four words of text", 6), ("Grüße", 3), ("請求書", 6), ("🚚", 3), ("ab 請", 3)]
        {
            assert_eq!(estimated_tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn batches_are_small_in_number_and_size() {
        let long = "x".repeat(297);
        let sizes = |texts: &[&str]| {
            let parts = texts.iter().enumerate().map(|(of, text)| Part { of, text }).collect();
            batches(parts, 4, 100, 0).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&["a"; 9]), [4, 4, 1]);
        assert_eq!(sizes(&["a", &long, "b", "c", &long, &long]), [2, 2, 1, 1]);
        let cjk = "請".repeat(40);
        assert_eq!(sizes(&[&cjk, &cjk, "a"]), [1, 2], "80 tokens each");
        let huge = "x".repeat(3_000);
        assert_eq!(sizes(&["a", &huge, "b"]), [1, 1, 1]);
    }

    #[test]
    fn a_long_text_is_cut_between_words_and_nothing_is_lost() {
        let words: String = (0..500).map(|n| format!("word{n} ")).collect();
        for text in [words.as_str(), &"請求書".repeat(300), &"x".repeat(2_000), "🚚🚚", "a"] {
            for most in [1, 10, 128] {
                let parts = windows(text, most);
                assert_eq!(parts.concat(), text);
                let is_small = |part: &&str| estimated_tokens(part) <= most || part.chars().count() == 1;
                assert!(parts.iter().all(is_small), "{most}: {parts:?}");
            }
        }
        assert!(windows(&words, 128).iter().skip(1).all(|part| part.starts_with(' ')));
        assert_eq!((halves(""), halves("a"), halves("é")), (None, None, None));
        assert_eq!(halves("ab"), Some(["a", "b"]));
    }
}
