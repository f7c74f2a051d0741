//! Letters from what the recogniser says of each step along a line: how likely each letter is, or none.

/// The letters that a model knows. Number 0 is none of them.
pub(crate) struct Alphabet(Vec<String>);

/// Between two letters a blank is taken from this likelihood: in noise the model sees them, but trusts them less than none.
const BLANK: f32 = 0.1;

impl Alphabet {
    /// From the model's own list, a letter on each line. A blank comes last and is not in it.
    pub fn new(list: &str) -> Self {
        let mut letters: Vec<String> = list.lines().map(str::to_owned).collect();
        letters.push(" ".into());
        Self(letters)
    }

    /// With the one that is none.
    pub fn len(&self) -> usize {
        self.0.len() + 1
    }

    /// Takes the likeliest of each step. One that goes on from step to step is one letter, and its likelihood that of its first step. Returns the
    /// text, and the mean of its letters' likelihoods.
    pub fn decode(&self, steps: &[f32]) -> (String, f32) {
        let (mut text, mut sum, mut n, mut before, mut blank) = (String::new(), 0.0, 0_u32, 0, 0.0_f32);
        for step in steps.chunks_exact(self.len()) {
            let (best, likelihood) = likeliest(step);
            if best != before && best > 0 {
                let letter = &self.0[best - 1];
                if blank > BLANK && letter != " " && !text.is_empty() && !text.ends_with(' ') {
                    text.push(' ');
                }
                text.push_str(letter);
                sum += likelihood;
                n += 1;
                blank = 0.0;
            }
            blank = blank.max(step.last().copied().unwrap_or_default());
            before = best;
        }
        (text, if n > 0 { sum / n as f32 } else { 0.0 })
    }
}

/// The likeliest letter of a step. There are thousands, so the best is looked for eight at a time, and then its place.
fn likeliest(step: &[f32]) -> (usize, f32) {
    let mut best = [f32::MIN; 8];
    let eights = step.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for (best, likelihood) in best.iter_mut().zip(eight) {
            *best = if *likelihood > *best { *likelihood } else { *best };
        }
    }
    let most = best.iter().chain(rest).fold(f32::MIN, |a, b| a.max(*b));
    (step.iter().position(|likelihood| *likelihood == most).unwrap_or_default(), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlikely_blank_parts_letters_and_a_very_unlikely_one_does_not() {
        let alphabet = Alphabet::new("a\nb");
        let step = |a: f32, b: f32, blank: f32| [1.0 - a - b - blank, a, b, blank];
        let read =
            |blank: f32| alphabet.decode(&[step(0.9, 0.0, 0.0), step(0.0, 0.0, blank), step(0.0, 0.9, 0.0)].concat());
        assert_eq!(read(0.3).0, "a b");
        assert_eq!(read(0.05).0, "ab");
    }

    #[test]
    fn a_letter_that_goes_on_is_one_letter_and_none_parts_two() {
        let alphabet = Alphabet::new("a\nb\nü");
        assert_eq!(alphabet.len(), 5);
        for (steps, expected, mean) in [
            (&[][..], "", 0.0),
            (&[(0, 0.9), (0, 0.9)], "", 0.0),
            (&[(1, 0.8), (1, 0.9), (0, 0.9), (1, 0.6)], "aa", 0.7),
            (&[(1, 0.9), (2, 0.7), (4, 0.8), (3, 0.8)], "ab ü", 0.8),
        ] {
            let mut likelihoods = Vec::new();
            for (letter, likelihood) in steps {
                let mut step = [0.01_f32; 5];
                step[*letter] = *likelihood;
                likelihoods.extend(step);
            }
            let (text, confidence) = alphabet.decode(&likelihoods);
            assert_eq!(text, expected);
            assert!((confidence - mean).abs() < 1e-6, "{text}: {confidence}");
        }
    }
}
