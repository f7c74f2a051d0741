//! Tells by loudness alone where nobody can be speaking.

use super::SAMPLE_RATE;

/// The samples of which one loudness is taken: 30 ms.
const FRAME: usize = SAMPLE_RATE * 30 / 1_000;
/// Decibels below the loudest that a recording can hold. Nobody speaks so softly.
const SOFTEST: f32 = -60.0;
/// Speech has pauses between words and within them, so its loudness varies by more than this, in decibels. Hiss, hum and tones are even.
const LEAST_VARIED: f32 = 5.0;

pub fn may_be_speech(samples: &[f32]) -> bool {
    let mut levels: Vec<f32> = samples.chunks_exact(FRAME).map(level).collect();
    levels.sort_by(f32::total_cmp);
    let (Some(loudest), n) = (levels.last(), levels.len()) else { return false };
    let is_varied = levels[n * 95 / 100] - levels[n / 10] > LEAST_VARIED;
    *loudest > SOFTEST && is_varied
}

/// In decibels below the loudest.
fn level(frame: &[f32]) -> f32 {
    let energy = frame.iter().map(|sample| sample * sample).sum::<f32>() / frame.len() as f32;
    10.0 * energy.max(1e-12).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_silent_or_even_is_no_speech() {
        let second = |sample: &dyn Fn(usize) -> f32| (0..3 * SAMPLE_RATE).map(sample).collect::<Vec<f32>>();
        let tone = |nth: usize| (nth as f32 * 0.17).sin();
        let noise = |nth: usize| ((nth as u32).wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0 - 0.5;
        for (name, samples, expected) in [
            ("nothing", Vec::new(), false),
            ("silence", vec![0.0; 3 * SAMPLE_RATE], false),
            ("a tone", second(&tone), false),
            ("hiss", second(&noise), false),
            ("soft hiss", second(&|nth| noise(nth) * 1e-4), false),
            ("syllables", second(&|nth| tone(nth) * if nth / 3_200 % 2 == 0 { 0.3 } else { 0.01 }), true),
        ] {
            assert_eq!(may_be_speech(&samples), expected, "{name}");
        }
    }
}
