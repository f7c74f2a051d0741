//! The tokens that a model says to a window of sound: the likeliest ones, unless they make no sense.

use super::model::{Heard, Model};
use super::rules::{repeated, rule_out};
use super::tokens::{Token, Tokens};

/// No window holds more. It is half of what the decoder can remember.
const MOST_TOKENS: usize = 224;
/// Below this mean logarithm, the likeliest tokens make no sense.
const LEAST_LIKELY: f32 = -1.0;
/// How freely tokens are chosen when those before made no sense.
const FREEDOMS: [f32; 3] = [0.0, 0.4, 0.8];

/// The model's first word about a window.
pub struct Opening {
    /// How likely it is that nobody speaks.
    pub silence: f32,
    /// How likely each language is, in the order of `Tokens::languages`.
    pub languages: Vec<f32>,
}

pub struct Utterance {
    /// Words and marks of time.
    pub tokens: Vec<Token>,
    /// The mean logarithm of how likely its tokens are.
    pub likely: f32,
    /// Whether it says the same again and again.
    is_loop: bool,
}

impl Utterance {
    fn makes_sense(&self) -> bool {
        !self.is_loop && self.likely >= LEAST_LIKELY
    }
}

/// Asks the model in what language a window speaks, if anybody does.
pub fn opening(model: &mut Model, tokens: &Tokens, heard: &Heard) -> ort::Result<Opening> {
    let mut scores = Vec::new();
    model.speak(heard).say(tokens.begin, &mut scores)?;
    let of = |token: Token| scores.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    let total = log_sum(&scores);
    let mut languages: Vec<f32> = tokens.languages.iter().map(|(token, _)| of(*token)).collect();
    let sum = log_sum(&languages);
    languages.iter_mut().for_each(|score| *score = (*score - sum).exp());
    Ok(Opening { silence: (of(tokens.silence) - total).exp(), languages })
}

/// Says what a window says in this language. Where the likeliest tokens make no sense, others are tried.
pub fn utterance(model: &mut Model, tokens: &Tokens, heard: &Heard, language: Token) -> ort::Result<Utterance> {
    let mut best: Option<Utterance> = None;
    for freedom in FREEDOMS {
        let said = say(model, tokens, heard, language, freedom)?;
        if said.makes_sense() {
            return Ok(said);
        }
        if best.as_ref().is_none_or(|best| (best.is_loop, said.likely) > (said.is_loop, best.likely)) {
            best = Some(said);
        }
    }
    Ok(best.unwrap_or(Utterance { tokens: Vec::new(), likely: f32::NEG_INFINITY, is_loop: false }))
}

fn say(model: &mut Model, tokens: &Tokens, heard: &Heard, language: Token, freedom: f32) -> ort::Result<Utterance> {
    let mut speaking = model.speak(heard);
    let mut scores = Vec::new();
    for token in [tokens.begin, language, tokens.transcribe] {
        speaking.say(token, &mut scores)?;
    }
    let mut chance = Chance::default();
    let (mut said, mut words, mut sum, mut is_loop) = (Vec::new(), Vec::new(), 0.0, false);
    loop {
        rule_out(tokens, &said, &mut scores);
        let total = log_sum(&scores);
        let next = if freedom > 0.0 { chance.choose(&scores, freedom) } else { likeliest(&scores) };
        sum += scores[next as usize] - total;
        if next == tokens.end || said.len() == MOST_TOKENS {
            break;
        }
        said.push(next);
        if !tokens.is_mark(next) {
            words.push(next);
        }
        if let Some((length, times)) = repeated(&words) {
            // It is said once, and what came of it after that is forgotten.
            is_loop = true;
            let mut n_words = words.len() - length * (times - 1);
            let keep = said.iter().position(|token| {
                n_words -= usize::from(!tokens.is_mark(*token) && n_words > 0);
                n_words == 0
            });
            said.truncate(keep.map_or(0, |last| last + 1));
            break;
        }
        speaking.say(next, &mut scores)?;
    }
    let likely = sum / (said.len() + 1) as f32;
    Ok(Utterance { tokens: said, likely, is_loop })
}

fn likeliest(scores: &[f32]) -> Token {
    let best = scores.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map_or(0, |(token, _)| token as Token)
}

/// The logarithm of the sum of what scores are logarithms of.
fn log_sum(scores: &[f32]) -> f32 {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    highest + scores.iter().map(|score| (score - highest).exp()).sum::<f32>().ln()
}

/// Numbers by chance, the same in each run, so that a recording is always read in the same way.
struct Chance(u64);

impl Default for Chance {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Chance {
    /// From 0 to 1.
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Chooses a token, likely ones more often. The more freedom, the less so.
    fn choose(&mut self, scores: &[f32], freedom: f32) -> Token {
        let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |score: &f32| ((score - highest) / freedom).exp();
        let mut left = self.next() * scores.iter().map(weight).sum::<f32>();
        let chosen = scores.iter().position(|score| {
            left -= weight(score);
            left < 0.0
        });
        chosen.map_or_else(|| likeliest(scores), |token| token as Token)
    }
}
