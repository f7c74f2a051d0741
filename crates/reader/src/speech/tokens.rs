//! The tokens of Whisper: pieces of words, languages, marks of time.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

pub type Token = u32;

/// The seconds between two marks of time.
const MARK_SECS: f64 = 0.02;

pub struct Tokens {
    /// The bytes of each token of text.
    pieces: Vec<Vec<u8>>,
    pub begin: Token,
    pub end: Token,
    pub transcribe: Token,
    /// "There is no speech."
    pub silence: Token,
    /// The mark of the window's first moment. All tokens after it are marks of later ones.
    pub first_mark: Token,
    /// The languages, each with its token.
    pub languages: Vec<(Token, String)>,
    /// Tokens that say no words: brackets, notes of music, tokens for other tasks.
    pub never: Vec<Token>,
    /// Tokens with which no text begins.
    pub never_first: Vec<Token>,
}

/// As the model's authors write it.
#[derive(Deserialize)]
struct Generation {
    decoder_start_token_id: Token,
    eos_token_id: Token,
    no_timestamps_token_id: Token,
    lang_to_id: HashMap<String, Token>,
    task_to_id: HashMap<String, Token>,
    suppress_tokens: Vec<Token>,
    begin_suppress_tokens: Vec<Token>,
}

impl Tokens {
    pub fn read(dir: &Path) -> Result<Self, String> {
        let file = |name: &str| std::fs::read(dir.join(name)).map_err(|error| format!("{name}: {error}"));
        let generation: Generation = parse("generation_config.json", &file("generation_config.json")?)?;
        let words: HashMap<String, Token> = parse("vocab.json", &file("vocab.json")?)?;
        let transcribe = generation.task_to_id.get("transcribe").copied().ok_or("no task is called transcribe")?;
        let no_marks = generation.no_timestamps_token_id;
        let language = |(name, token): (String, Token)| (token, name.trim_matches(['<', '|', '>']).to_owned());
        let mut languages: Vec<(Token, String)> = generation.lang_to_id.into_iter().map(language).collect();
        languages.sort();
        Ok(Self {
            pieces: pieces(&words, generation.eos_token_id),
            begin: generation.decoder_start_token_id,
            end: generation.eos_token_id,
            transcribe,
            silence: no_marks.saturating_sub(1),
            first_mark: no_marks + 1,
            languages,
            never: generation.suppress_tokens,
            never_first: generation.begin_suppress_tokens,
        })
    }

    pub fn is_mark(&self, token: Token) -> bool {
        token >= self.first_mark
    }

    /// The seconds from the window's first moment.
    pub fn secs(&self, mark: Token) -> f64 {
        f64::from(mark.saturating_sub(self.first_mark)) * MARK_SECS
    }

    /// The words that tokens spell. What is no word is left out.
    pub fn spell(&self, tokens: &[Token]) -> String {
        let pieces = tokens.iter().filter_map(|token| self.pieces.get(*token as usize));
        let bytes: Vec<u8> = pieces.flatten().copied().collect();
        // A letter may be cut by the end of a window.
        String::from_utf8_lossy(&bytes).replace('\u{fffd}', "")
    }
}

fn parse<T: for<'de> Deserialize<'de>>(name: &str, bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("{name}: {error}"))
}

/// The bytes of the tokens before `end`. A vocabulary spells each byte as a letter that can be printed.
fn pieces(words: &HashMap<String, Token>, end: Token) -> Vec<Vec<u8>> {
    let bytes = bytes_of_letters();
    let mut pieces = vec![Vec::new(); end as usize];
    for (word, token) in words {
        if let Some(piece) = pieces.get_mut(*token as usize) {
            *piece = word.chars().filter_map(|letter| bytes.get(&letter).copied()).collect();
        }
    }
    pieces
}

/// Bytes that can be printed in Latin-1 are themselves. The others follow one another from U+0100.
fn bytes_of_letters() -> HashMap<char, u8> {
    let is_printed = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..=u8::MAX).filter(|byte| !is_printed(*byte));
    let printed = (0..=u8::MAX).filter(|byte| is_printed(*byte)).map(|byte| (char::from(byte), byte));
    printed.chain(('\u{100}'..).zip(others)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A small vocabulary: 0 to 7 are words, 8 is the end, 9 begins, 10 is English, 11 transcribes, 12 is silence, 13 has no marks, and marks begin at 14.
    pub fn few() -> Tokens {
        let words = ["Ġhello", "Ġworld", ".", "Ã", "¤", "Ġä½ł", "Ġpaid", "Ġ("];
        let words = words.iter().zip(0..).map(|(word, token)| ((*word).to_owned(), token)).collect();
        Tokens {
            pieces: pieces(&words, 8),
            begin: 9,
            end: 8,
            transcribe: 11,
            silence: 12,
            first_mark: 14,
            languages: vec![(10, "en".into())],
            never: vec![7],
            never_first: vec![2],
        }
    }

    #[test]
    fn tokens_spell_bytes_and_broken_letters_are_left_out() {
        for (tokens, expected) in [
            (&[0, 1, 2][..], " hello world."),
            (&[3, 4], "ä"),
            (&[0, 3], " hello"),
            (&[5], " 你"),
            (&[14, 0, 20, 20, 1, 99], " hello world"),
            (&[], ""),
        ] {
            assert_eq!(few().spell(tokens), expected, "{tokens:?}");
        }
    }

    #[test]
    fn every_byte_has_a_letter() {
        let letters = bytes_of_letters();
        let mut bytes: Vec<u8> = letters.values().copied().collect();
        bytes.sort();
        assert!(bytes.into_iter().eq(0..=u8::MAX));
        assert_eq!([letters[&'Ġ'], letters[&'Ċ'], letters[&'a'], letters[&'ł']], [b' ', b'\n', b'a', 0xa0]);
    }
}
