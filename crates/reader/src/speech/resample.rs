//! Brings sound to 16,000 samples a second: each new sample is a weighted mean of those around it, so that pitches that it cannot hold are left out
//! instead of coming back as others.

use std::f64::consts::PI;

use super::SAMPLE_RATE;

/// The zero crossings of the sinc on each side.
const REACH: f64 = 16.0;
/// The share of the band that is kept: the rest is where the filter falls.
const KEPT: f64 = 0.94;
/// The shape of the Kaiser window: what is left out is 80 dB down.
const KAISER: f64 = 8.0;

pub struct Resampler {
    /// New samples are at multiples of `step / parts` of an old one.
    step: usize,
    parts: usize,
    /// For each part of an old sample the weights of those around it.
    weights: Vec<Vec<f32>>,
    /// The samples before and after, half of the weights each.
    reach: usize,
    /// Old samples that are still needed. The first is `reach` before that of the next new one.
    old: Vec<f32>,
    /// The part of an old sample at which the next new one is.
    part: usize,
}

impl Resampler {
    /// `rate` is at most 200,000, or the weights need too much memory.
    pub fn new(rate: usize) -> Self {
        let divisor = gcd(rate, SAMPLE_RATE);
        let (step, parts) = (rate / divisor, SAMPLE_RATE / divisor);
        let narrow = (parts as f64 / step as f64).min(1.0);
        let reach = (REACH / narrow).ceil() as usize;
        let around = |part: usize| {
            let at = |nth: usize| nth as f64 - (reach as f64 - 1.0) - part as f64 / parts as f64;
            let weight = |nth: usize| sinc(at(nth) * narrow * KEPT) * kaiser(at(nth) / reach as f64);
            let all: Vec<f64> = (0..2 * reach).map(weight).collect();
            let sum: f64 = all.iter().sum();
            all.iter().map(|weight| (weight / sum) as f32).collect()
        };
        let weights = (0..parts).map(around).collect();
        Self { step, parts, weights, reach, old: vec![0.0; reach - 1], part: 0 }
    }

    /// Takes the next old samples and appends the new ones that they allow.
    pub fn push(&mut self, samples: &[f32], new: &mut Vec<f32>) {
        self.old.extend_from_slice(samples);
        let mut first = 0;
        while let Some(around) = self.old.get(first..first + 2 * self.reach) {
            new.push(around.iter().zip(&self.weights[self.part]).map(|(sample, weight)| sample * weight).sum());
            first += (self.part + self.step) / self.parts;
            self.part = (self.part + self.step) % self.parts;
        }
        // A step is shorter than the reach, so it never leads beyond what is there.
        self.old.drain(..first);
    }

    /// Appends what is left, as if silence followed.
    pub fn finish(&mut self, new: &mut Vec<f32>) {
        self.push(&vec![0.0; self.reach], new);
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

fn kaiser(x: f64) -> f64 {
    if x.abs() >= 1.0 { 0.0 } else { bessel(KAISER * (1.0 - x * x).sqrt()) / bessel(KAISER) }
}

/// The modified Bessel function of order zero, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for nth in 1..40 {
        term *= (x / (2.0 * f64::from(nth))).powi(2);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resampled(rate: usize, hertz: f64) -> Vec<f32> {
        let tone = |nth: usize| (2.0 * PI * hertz * nth as f64 / rate as f64).sin() as f32;
        let samples: Vec<f32> = (0..rate).map(tone).collect();
        let (mut resampler, mut new) = (Resampler::new(rate), Vec::new());
        // In pieces of any length.
        samples.chunks(997).for_each(|piece| resampler.push(piece, &mut new));
        resampler.finish(&mut new);
        new
    }

    #[test]
    fn a_second_stays_a_second_and_a_tone_the_same_tone() {
        for rate in [8_000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] {
            let new = resampled(rate, 1_000.0);
            assert!(new.len().abs_diff(SAMPLE_RATE) <= 1, "{rate}: {}", new.len());
            // Not at its ends, where silence begins.
            for (nth, value) in new.iter().enumerate().take(SAMPLE_RATE - 200).skip(200) {
                let expected = (2.0 * PI * 1_000.0 * nth as f64 / SAMPLE_RATE as f64).sin() as f32;
                assert!((value - expected).abs() < 2e-3, "{rate}: {value}, not {expected} at {nth}");
            }
        }
    }

    #[test]
    fn pitches_that_do_not_fit_are_left_out() {
        for (rate, hertz) in [(44_100, 9_000.0), (48_000, 15_000.0), (32_000, 12_000.0), (96_000, 40_000.0)] {
            let new = resampled(rate, hertz);
            let loudest = new[200..SAMPLE_RATE - 200].iter().fold(0.0_f32, |loudest, value| loudest.max(value.abs()));
            assert!(loudest < 2e-3, "{hertz} Hz of {rate}: {loudest}");
        }
    }
}
