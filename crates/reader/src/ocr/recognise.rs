//! Reads the letters of a line.

use std::path::Path;

use image::GrayImage;
use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;

use super::ctc::Alphabet;
use super::frame::Frame;
use super::model;
use crate::Result;

/// The model reads lines of this height.
const HEIGHT: usize = 48;
/// A line is filled up to a multiple of this width, and to the width that the model has seen at least.
const STEP: usize = 32;
const LEAST_WIDTH: usize = 160;
/// The addition to the ends of a line, where the detector cuts letters, as a share of its height.
const MARGIN: f32 = 0.2;
/// A longer line is squeezed.
const MOST_WIDTH: usize = 4_096;

pub(crate) struct Recogniser {
    session: Session,
    alphabet: Alphabet,
}

/// The text of a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub text: String,
    /// From 0 to 1.
    pub confidence: f32,
}

impl Recogniser {
    pub fn open(runtime: &Environment, path: &Path) -> ort::Result<Self> {
        let session = model::session(runtime, path)?;
        let list = session.metadata()?.custom("character").unwrap_or_default();
        Ok(Self { session, alphabet: Alphabet::new(&list) })
    }

    /// Reads the text in a frame. One line a run, so that what is read of it does not depend on others.
    pub fn read(&mut self, picture: &GrayImage, frame: &Frame) -> Result<Reading> {
        let (plane, width) = line(picture, &Frame { width: frame.width + MARGIN * frame.height, ..*frame });
        let points = plane.repeat(3);
        let input = TensorRef::from_array_view(([1, 3, HEIGHT, width], points.as_slice())).map_err(model::failed)?;
        let outputs = self.session.run(ort::inputs![input]).map_err(model::failed)?;
        let (shape, likelihoods) = outputs[0].try_extract_tensor::<f32>().map_err(model::failed)?;
        if shape.last().copied() != i64::try_from(self.alphabet.len()).ok() {
            return Err(model::failed("the recogniser and its alphabet do not fit together"));
        }
        let (text, confidence) = self.alphabet.decode(likelihoods);
        Ok(Reading { text: text.trim().to_owned(), confidence })
    }
}

/// Cuts a line out of a picture, upright and of the model's height, from -1 (black) to 1. Returns its width too.
fn line(picture: &GrayImage, frame: &Frame) -> (Vec<f32>, usize) {
    let scale = HEIGHT as f32 / frame.height.max(1.0);
    let text_width = ((frame.width * scale).ceil() as usize).clamp(1, MOST_WIDTH);
    let width = text_width.next_multiple_of(STEP).max(LEAST_WIDTH);
    let (sin, cos) = frame.angle.sin_cos();
    // Each point is the mean of as many as it covers.
    let n = ((frame.height / HEIGHT as f32).ceil() as usize).clamp(1, 8);
    let at = |column: f32, row: f32| {
        let u = (column / text_width as f32 - 0.5) * frame.width;
        let v = (row / HEIGHT as f32 - 0.5) * frame.height;
        between(picture, frame.center.0 + u * cos - v * sin, frame.center.1 + u * sin + v * cos)
    };
    let mut points = vec![0.0; width * HEIGHT];
    for row in 0..HEIGHT {
        for column in 0..text_width {
            let mut sum = 0.0;
            for part in 0..n * n {
                let (x, y) = ((part % n) as f32 + 0.5, (part / n) as f32 + 0.5);
                sum += at(column as f32 + x / n as f32, row as f32 + y / n as f32);
            }
            points[row * width + column] = sum / (n * n) as f32 / 127.5 - 1.0;
        }
    }
    (points, width)
}

/// The grey at a place between points. Beyond the edge it is that of the edge.
fn between(picture: &GrayImage, x: f32, y: f32) -> f32 {
    let (width, height) = picture.dimensions();
    let x = (x - 0.5).clamp(0.0, (width - 1) as f32);
    let y = (y - 0.5).clamp(0.0, (height - 1) as f32);
    let (left, top) = (x as u32, y as u32);
    let (right, bottom) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
    let (dx, dy) = (x - left as f32, y - top as f32);
    let points = picture.as_raw();
    let at = |x: u32, y: u32| f32::from(points[(y * width + x) as usize]);
    let above = at(left, top) * (1.0 - dx) + at(right, top) * dx;
    let below = at(left, bottom) * (1.0 - dx) + at(right, bottom) * dx;
    above * (1.0 - dy) + below * dy
}

#[cfg(test)]
mod tests {
    use image::Luma;

    use super::*;

    #[test]
    fn a_line_is_cut_out_upright() {
        // Black on white: a bar that is tilted.
        let angle = 10_f32.to_radians();
        let frame = Frame { center: (150.0, 100.0), width: 200.0, height: 24.0, angle };
        let (sin, cos) = angle.sin_cos();
        let picture = GrayImage::from_fn(300, 200, |x, y| {
            let (x, y) = (x as f32 + 0.5 - 150.0, y as f32 + 0.5 - 100.0);
            let (u, v) = (x * cos + y * sin, y * cos - x * sin);
            Luma([if u.abs() < 80.0 && v.abs() < 6.0 { 0 } else { 255 }])
        });
        let (points, width) = line(&picture, &frame);
        assert_eq!((width, points.len()), (416, 416 * HEIGHT));
        let at = |column: usize, row: usize| points[row * width + column];
        assert!(at(200, 24) < -0.9 && at(60, 24) < -0.9 && at(340, 24) < -0.9);
        assert!(at(200, 4) > 0.9 && at(200, 44) > 0.9 && at(20, 24) > 0.9 && at(390, 24) > 0.9);
        assert_eq!(at(410, 24), 0.0, "filled up");
    }
}
