//! The picture of sound that Whisper looks at: the energy of 80 bands of pitch, a hundred times a second, on a logarithmic scale.

use std::f64::consts::TAU;

use super::SAMPLE_RATE;

/// The seconds of a window. The model looks at no other length.
pub const WINDOW_SECS: usize = 30;
pub const WINDOW: usize = WINDOW_SECS * SAMPLE_RATE;
pub const N_BANDS: usize = 80;
/// The samples between two frames.
pub const HOP: usize = 160;
pub const N_FRAMES: usize = WINDOW / HOP;
/// The samples that a frame looks at.
const FRAME: usize = 400;
const N_PITCHES: usize = FRAME / 2 + 1;

/// Makes pictures of windows.
pub struct Mel {
    /// The Hann window.
    fade: Vec<f32>,
    /// For each band its first pitch, and the weight of that one and the next ones.
    bands: Vec<(usize, Vec<f32>)>,
    /// The roots of unity, for transforms of a frame.
    roots: Vec<[f32; 2]>,
}

impl Mel {
    pub fn new() -> Self {
        let turn = |nth: usize| TAU * nth as f64 / FRAME as f64;
        Self {
            fade: (0..FRAME).map(|nth| (0.5 - 0.5 * turn(nth).cos()) as f32).collect(),
            bands: bands(),
            roots: (0..FRAME).map(|nth| [turn(nth).cos() as f32, -turn(nth).sin() as f32]).collect(),
        }
    }

    /// Makes the picture of at most 30 seconds, as if silence followed: band after band, `N_FRAMES` numbers each.
    pub fn picture(&self, samples: &[f32]) -> Vec<f32> {
        const FLOOR: f32 = 1e-10;
        let samples = &samples[..samples.len().min(WINDOW)];
        let mut picture = vec![FLOOR.log10(); N_BANDS * N_FRAMES];
        let n_heard = (samples.len() + FRAME / 2).div_ceil(HOP).min(N_FRAMES);
        let mut frame = [[0.0; 2]; FRAME];
        let mut pitches = [[0.0; 2]; FRAME];
        for nth in 0..n_heard {
            for (place, (value, fade)) in frame.iter_mut().zip(&self.fade).enumerate() {
                *value = [sample(samples, nth * HOP + place) * fade, 0.0];
            }
            transform(&frame, 1, &mut pitches, &self.roots);
            for (band, (first, weights)) in self.bands.iter().enumerate() {
                let energies = pitches[*first..].iter().map(|[re, im]| re * re + im * im);
                let energy: f32 = energies.zip(weights).map(|(energy, weight)| energy * weight).sum();
                picture[band * N_FRAMES + nth] = energy.max(FLOOR).log10();
            }
        }
        // What is 80 dB below the loudest is as good as silent.
        let loudest = picture.iter().copied().fold(f32::MIN, f32::max);
        picture.iter_mut().for_each(|value| *value = (value.max(loudest - 8.0) + 4.0) / 4.0);
        picture
    }
}

/// The sample at a place that counts from half a frame before the first one. Before the first and after the last of a window, sound is mirrored.
fn sample(samples: &[f32], place: usize) -> f32 {
    const HALF: usize = FRAME / 2;
    let place = match place {
        ..HALF => HALF - place,
        place if place - HALF < WINDOW => place - HALF,
        place => 2 * (WINDOW - 1) - (place - HALF),
    };
    samples.get(place).copied().unwrap_or_default()
}

/// The discrete Fourier transform of every `step`th value of `from`, as many as `to` takes: split by the least prime factor of their number, again and again.
fn transform(from: &[[f32; 2]], step: usize, to: &mut [[f32; 2]], roots: &[[f32; 2]]) {
    let n = to.len();
    let Some(factor) = (2..=n).find(|factor| n.is_multiple_of(*factor)) else {
        to[0] = from[0];
        return;
    };
    let part = n / factor;
    for (nth, to) in to.chunks_exact_mut(part).enumerate() {
        transform(&from[nth * step..], step * factor, to, roots);
    }
    let turn = roots.len() / n;
    let mut sums = [[0.0_f32; 2]; 8];
    for column in 0..part {
        for (row, sum) in sums.iter_mut().enumerate().take(factor) {
            let place = column + row * part;
            *sum = [0.0; 2];
            for nth in 0..factor {
                let [re, im] = to[column + nth * part];
                let [cos, sin] = roots[place * nth * turn % roots.len()];
                sum[0] += re * cos - im * sin;
                sum[1] += re * sin + im * cos;
            }
        }
        for (row, sum) in sums.iter().enumerate().take(factor) {
            to[column + row * part] = *sum;
        }
    }
}

/// Triangles of equal area, evenly apart on a scale that follows the ear (Slaney's): linear below 1,000 Hz, logarithmic above.
fn bands() -> Vec<(usize, Vec<f32>)> {
    const HIGHEST: f64 = SAMPLE_RATE as f64 / 2.0;
    let log_step = 6.4_f64.ln() / 27.0;
    let to_mel = |hertz: f64| match hertz < 1_000.0 {
        true => hertz * 3.0 / 200.0,
        false => 15.0 + (hertz / 1_000.0).ln() / log_step,
    };
    let to_hertz = |mel: f64| match mel < 15.0 {
        true => mel * 200.0 / 3.0,
        false => 1_000.0 * (log_step * (mel - 15.0)).exp(),
    };
    let edge = |nth: usize| to_hertz(to_mel(HIGHEST) * nth as f64 / (N_BANDS + 1) as f64);
    let pitch = |nth: usize| nth as f64 * SAMPLE_RATE as f64 / FRAME as f64;
    let band = |nth: usize| {
        let (low, middle, high) = (edge(nth), edge(nth + 1), edge(nth + 2));
        let weight = |pitch: f64| {
            let slope = ((pitch - low) / (middle - low)).min((high - pitch) / (high - middle));
            (slope.max(0.0) * 2.0 / (high - low)) as f32
        };
        let all: Vec<f32> = (0..N_PITCHES).map(|nth| weight(pitch(nth))).collect();
        let first = all.iter().position(|weight| *weight > 0.0).unwrap_or_default();
        let last = all.iter().rposition(|weight| *weight > 0.0).unwrap_or_default();
        (first, all[first..=last].to_vec())
    };
    (0..N_BANDS).map(band).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tone of 440 Hz for a second, and after half of it another of 3,000 Hz. The numbers were made once with numpy, by the formulas of librosa.
    #[test]
    fn a_picture_is_that_of_the_documented_formula() {
        let tone = |nth: usize, hertz: f64| (TAU * hertz * nth as f64 / SAMPLE_RATE as f64).sin();
        let other = |nth: usize| if nth > 8_000 { 0.1 * tone(nth, 3_000.0) } else { 0.0 };
        let samples: Vec<f32> = (0..SAMPLE_RATE).map(|nth| (0.5 * tone(nth, 440.0) + other(nth)) as f32).collect();
        let picture = Mel::new().picture(&samples);
        for (band, frame, expected) in [
            (0, 0, 0.9833),
            (11, 0, 1.1116),
            (11, 40, 1.4382),
            (12, 40, 1.2935),
            (53, 40, -0.5618),
            (11, 100, 1.2929),
            (40, 101, -0.4016),
            (5, N_FRAMES - 1, -0.5618),
        ] {
            let value = picture[band * N_FRAMES + frame];
            assert!((value - expected).abs() < 1e-3, "band {band}, frame {frame}: {value}, not {expected}");
        }
        let mean = picture.iter().map(|value| f64::from(*value)).sum::<f64>() / picture.len() as f64;
        assert!((mean + 0.55667).abs() < 1e-4, "{mean}");
    }

    #[test]
    fn silence_is_even_and_a_whole_window_is_filled() {
        let mel = Mel::new();
        assert!(mel.picture(&[]).iter().all(|value| *value == -1.5));
        let noise: Vec<f32> = (0..WINDOW + 1).map(|nth| (nth * nth % 101) as f32 / 101.0 - 0.5).collect();
        let picture = mel.picture(&noise);
        let last = |band: usize| picture[band * N_FRAMES + N_FRAMES - 1];
        assert!((0..N_BANDS).all(|band| last(band) > 0.0), "{:?}", (0..N_BANDS).map(last).collect::<Vec<_>>());
    }
}
