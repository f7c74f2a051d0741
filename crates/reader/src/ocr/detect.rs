//! Finds lines of text in a picture.

use std::path::Path;

use image::GrayImage;
use image::imageops::{FilterType, resize};
use ort::environment::Environment;
use ort::session::Session;
use ort::value::TensorRef;

use super::frame::Frame;
use super::model;
use crate::Result;

/// The longer side of the picture that the model sees. Larger ones take longer and show no more of ordinary print.
const SIDE: u32 = 1_280;
/// Small pictures are shown larger, up to this side.
const SMALL_SIDE: u32 = 736;
/// The model wants sides that are multiples of this.
const STEP: u32 = 32;
/// A point is text from this likelihood, and a region from the mean of its points.
const POINT: f32 = 0.3;
const REGION: f32 = 0.5;
/// The share of area to circumference by which a region is smaller than its text.
const GROWTH: f32 = 1.6;
/// Regions of fewer points across are dust.
const LEAST_ACROSS: f32 = 3.0;
/// No page has more lines.
const MOST_FRAMES: usize = 2_000;

pub(crate) struct Detector(Session);

impl Detector {
    pub fn open(runtime: &Environment, path: &Path) -> ort::Result<Self> {
        Ok(Self(model::session(runtime, path)?))
    }

    /// Frames the lines of text, in no order.
    pub fn frames(&mut self, picture: &GrayImage) -> Result<Vec<Frame>> {
        let (width, height) = picture.dimensions();
        let (seen_width, seen_height) = seen_size(width, height);
        let seen = resize(picture, seen_width, seen_height, FilterType::Triangle);
        let plane = seen.as_raw().iter().map(|point| f32::from(*point) / 127.5 - 1.0);
        // Grey in all three colours.
        let mut points: Vec<f32> = Vec::with_capacity(seen.as_raw().len() * 3);
        points.extend(plane);
        points.extend_from_within(..);
        points.extend_from_within(..seen.as_raw().len());
        let shape = [1, 3, seen_height as usize, seen_width as usize];
        let input = TensorRef::from_array_view((shape, points.as_slice())).map_err(model::failed)?;
        let outputs = self.0.run(ort::inputs![input]).map_err(model::failed)?;
        let (_, likelihoods) = outputs[0].try_extract_tensor::<f32>().map_err(model::failed)?;
        if likelihoods.len() != seen.as_raw().len() {
            return Err(model::failed("the detector gives something else than a map"));
        }
        let frames = regions(likelihoods, seen_width as usize);
        let (x, y) = (width as f32 / seen_width as f32, height as f32 / seen_height as f32);
        Ok(frames.into_iter().map(|frame| frame.scaled(x, y)).collect())
    }
}

fn seen_size(width: u32, height: u32) -> (u32, u32) {
    let long = width.max(height).max(1);
    let scale = f64::from(long.clamp(SMALL_SIDE, SIDE)) / f64::from(long);
    // Twice as large as it is shows no more.
    let scale = scale.min(2.0);
    let side = |points: u32| ((f64::from(points) * scale / f64::from(STEP)).round() as u32).max(2) * STEP;
    (side(width), side(height))
}

/// Frames regions of points that touch and are likely text.
fn regions(likelihoods: &[f32], width: usize) -> Vec<Frame> {
    let height = likelihoods.len() / width.max(1);
    let mut is_done = vec![false; likelihoods.len()];
    let (mut frames, mut waiting, mut outline) = (Vec::new(), Vec::new(), Vec::new());
    for start in 0..likelihoods.len() {
        if is_done[start] || likelihoods[start] <= POINT {
            continue;
        }
        is_done[start] = true;
        waiting.push(start);
        outline.clear();
        let (mut sum, mut n) = (0.0, 0_u32);
        while let Some(point) = waiting.pop() {
            sum += likelihoods[point];
            n += 1;
            let (x, y) = (point % width, point / width);
            let mut is_inner = true;
            for y in y.saturating_sub(1)..(y + 2).min(height) {
                for x in x.saturating_sub(1)..(x + 2).min(width) {
                    let next = y * width + x;
                    if likelihoods[next] <= POINT {
                        is_inner = false;
                    } else if !is_done[next] {
                        is_done[next] = true;
                        waiting.push(next);
                    }
                }
            }
            if !is_inner || x == 0 || y == 0 || x + 1 == width || y + 1 == height {
                let (x, y) = (x as f32, y as f32);
                outline.extend([(x, y), (x + 1.0, y), (x, y + 1.0), (x + 1.0, y + 1.0)]);
            }
        }
        let Some(frame) = Frame::around(&outline) else { continue };
        if sum / n as f32 >= REGION && frame.width.min(frame.height) >= LEAST_ACROSS && frames.len() < MOST_FRAMES {
            frames.push(frame.grown(GROWTH));
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_that_touch_are_one_and_dust_is_none() {
        let (width, height) = (40, 20);
        let mut map = vec![0.0_f32; width * height];
        let mut fill = |x: std::ops::Range<usize>, y: std::ops::Range<usize>, likelihood: f32| {
            for y in y {
                map[y * width..][x.clone()].fill(likelihood);
            }
        };
        fill(2..20, 2..6, 0.9);
        fill(20..30, 5..9, 0.9); // touches the first at a corner
        fill(2..30, 12..16, 0.8);
        fill(35..37, 2..4, 0.9); // too small
        fill(33..39, 12..16, 0.4); // too unlikely
        let found = regions(&map, width);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!((found[1].center.0 - 16.0).abs() < 0.1 && (found[1].center.1 - 14.0).abs() < 0.1, "{found:?}");
        let growth = 2.0 * GROWTH * (28.0 * 4.0) / 64.0;
        assert!((found[1].width - 28.0 - growth).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn the_model_sees_pages_of_one_size() {
        for (size, expected) in [
            ((1_654, 2_339), (896, 1_280)),
            ((10_000, 10_000), (1_280, 1_280)),
            ((900, 300), (896, 288)),
            ((300, 30), (608, 64)),
            ((1, 1), (64, 64)),
        ] {
            assert_eq!(seen_size(size.0, size.1), expected, "{size:?}");
        }
    }
}
