//! Reads pictures of text: finds its lines (`detect`), reads each (`recognise`, `ctc`), and puts them into order (`layout`). The two models are those of
//! PP-OCR, which ONNX Runtime runs.
//!
//! A page that lies on its side or upside down is turned first, and one that is a little tilted is read as it is.

mod ctc;
mod detect;
mod frame;
mod layout;
mod model;
mod recognise;

use std::path::Path;

use domain::reading::LinePlace;
use image::GrayImage;
use image::imageops::{rotate90, rotate180};

use self::detect::Detector;
use self::frame::Frame;
use self::layout::{Piece, median};
use self::recognise::{Reading, Recogniser};
use crate::Result;

/// The files of the models in their folder.
const DETECTION: &str = "detection.onnx";
const RECOGNITION: &str = "recognition.onnx";
/// A line below this is no text, or none that can be read.
const LEAST_CONFIDENCE: f32 = 0.5;
/// So many lines show which way up a page is. Where they are read as well as this, nothing else is tried.
const PROBES: usize = 6;
const UPRIGHT: f32 = 0.85;

/// The models that read pictures.
pub(crate) struct Ocr {
    detector: Detector,
    recogniser: Recogniser,
}

/// The text of a picture.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub text: String,
    /// The middle of what the lines have, by their length. None: there is no text.
    pub confidence: Option<f32>,
    /// For each line of the text that is not empty.
    pub lines: Vec<LinePlace>,
}

/// A line of the picture, framed and read.
struct Line {
    frame: Frame,
    reading: Reading,
}

impl Ocr {
    /// None: files are missing. The error is a text, as the library's may be missing too.
    pub fn open(library: &Path, folder: &Path) -> std::result::Result<Option<Self>, String> {
        let (Some(detection), Some(recognition)) = (model::file(folder, DETECTION), model::file(folder, RECOGNITION))
        else {
            return Ok(None);
        };
        let runtime = crate::onnx::runtime(library)?;
        let in_words = |error: ort::Error| error.to_string();
        let detector = Detector::open(&runtime, &detection).map_err(in_words)?;
        let recogniser = Recogniser::open(&runtime, &recognition).map_err(in_words)?;
        Ok(Some(Self { detector, recogniser }))
    }

    /// Reads a picture, whichever way up it is.
    pub fn read(&mut self, picture: &GrayImage) -> Result<Seen> {
        let mut frames = self.detector.frames(picture)?;
        let mut upright = None; // the picture after it was turned
        let mut quarters = 0;
        if is_sideways(&frames) {
            let height = picture.height() as f32;
            frames.iter_mut().for_each(|frame| *frame = frame.turned(height));
            upright = Some(rotate90(picture));
            quarters = 1;
        }
        let now = upright.as_ref().unwrap_or(picture);
        if let Some(turned) = self.other_way_up(now, &frames)? {
            let size = (now.width() as f32, now.height() as f32);
            frames.iter_mut().for_each(|frame| *frame = frame.turned(size.1).turned(size.0));
            upright = Some(turned);
            quarters += 2;
        }
        let now = upright.as_ref().unwrap_or(picture);
        let tilt = tilt(&frames);
        let mut lines = Vec::with_capacity(frames.len());
        for frame in frames {
            let frame = straightened(frame, tilt);
            let line = self.line(now, frame)?;
            if line.reading.confidence >= LEAST_CONFIDENCE && !line.reading.text.is_empty() {
                lines.push(line);
            }
        }
        Ok(page(&lines, tilt, now.dimensions(), quarters))
    }

    /// The picture turned by half, if its longest lines are read better so.
    fn other_way_up(&mut self, picture: &GrayImage, frames: &[Frame]) -> Result<Option<GrayImage>> {
        let mut longest: Vec<&Frame> = frames.iter().filter(|frame| !frame.is_tall()).collect();
        longest.sort_by(|a, b| (b.width / b.height).total_cmp(&(a.width / a.height)));
        longest.truncate(PROBES);
        let as_it_is = self.confidence(picture, longest.iter().map(|frame| **frame))?;
        if longest.is_empty() || as_it_is >= UPRIGHT {
            return Ok(None);
        }
        let turned = rotate180(picture);
        let size = (picture.width() as f32, picture.height() as f32);
        let otherwise = self.confidence(&turned, longest.iter().map(|frame| frame.turned(size.1).turned(size.0)))?;
        Ok((otherwise > as_it_is).then_some(turned))
    }

    fn confidence(&mut self, picture: &GrayImage, frames: impl Iterator<Item = Frame>) -> Result<f32> {
        let (mut sum, mut n) = (0.0, 0_u32);
        for frame in frames {
            sum += self.recogniser.read(picture, &frame)?.confidence;
            n += 1;
        }
        Ok(sum / n.max(1) as f32)
    }

    /// Reads a line. One that is tall may run upwards or downwards, or be a single letter.
    fn line(&mut self, picture: &GrayImage, frame: Frame) -> Result<Line> {
        let mut best = Line { frame, reading: self.recogniser.read(picture, &frame)? };
        if frame.is_tall() {
            for quarters in [-1.0, 1.0] {
                let reading = self.recogniser.read(picture, &frame.sideways(quarters))?;
                if reading.confidence > best.reading.confidence {
                    best.reading = reading;
                }
            }
        }
        Ok(best)
    }
}

/// Whether most of the text runs upwards or downwards.
fn is_sideways(frames: &[Frame]) -> bool {
    let sum = |is_tall: bool| -> f32 {
        let long = frames.iter().filter(|frame| frame.width.max(frame.height) > 2.0 * frame.width.min(frame.height));
        long.filter(|frame| frame.is_tall() == is_tall).map(|frame| frame.width.max(frame.height)).sum()
    };
    sum(true) > sum(false)
}

/// The angle of most lines: that of the middle one of those that are long enough to have one.
fn tilt(frames: &[Frame]) -> f32 {
    median(frames.iter().filter(|frame| frame.width > 4.0 * frame.height).map(|frame| frame.angle))
}

/// A short line gets the angle of the page, because its own is mostly chance.
fn straightened(frame: Frame, tilt: f32) -> Frame {
    if frame.width > 3.0 * frame.height || frame.height > 3.0 * frame.width {
        return frame;
    }
    let (sin, cos) = frame.angle.sin_cos();
    let (x, y) = (frame.width / 2.0, frame.height / 2.0);
    let corners = [(-x, -y), (x, -y), (x, y), (-x, y)]
        .map(|(u, v)| (frame.center.0 + u * cos - v * sin, frame.center.1 + u * sin + v * cos));
    Frame::along(&corners, tilt)
}

/// Puts lines into order and joins them. Their places are those in the picture before it was turned.
fn page(lines: &[Line], tilt: f32, size: (u32, u32), quarters: u32) -> Seen {
    let pieces: Vec<Piece> =
        lines.iter().map(|line| Piece::new(line.reading.text.clone(), &line.frame, tilt)).collect();
    let mut seen = Seen { confidence: confidence(lines), ..Seen::default() };
    for (row, numbers) in layout::rows(&pieces) {
        if !seen.text.is_empty() {
            seen.text.push_str(if row.begins { "\n\n" } else { "\n" });
        }
        seen.text.push_str(&row.text);
        let frames = numbers.iter().map(|number| &lines[*number].frame);
        seen.lines.push(place(frames, size, quarters));
    }
    seen
}

fn place<'a>(frames: impl Iterator<Item = &'a Frame>, size: (u32, u32), quarters: u32) -> LinePlace {
    let [left, top, right, bottom] =
        frames.map(Frame::bounds).fold([f32::MAX, f32::MAX, f32::MIN, f32::MIN], |all, one| {
            [all[0].min(one[0]), all[1].min(one[1]), all[2].max(one[2]), all[3].max(one[3])]
        });
    let (width, height) = (size.0 as f32, size.1 as f32);
    let share = |from: f32, to: f32, whole: f32| {
        let (from, to) = ((from / whole).clamp(0.0, 1.0), (to / whole).clamp(0.0, 1.0));
        (from, to - from)
    };
    let ((x, width), (y, height)) = (share(left, right, width), share(top, bottom, height));
    let mut place = LinePlace { x, y, width, height };
    for _ in 0..quarters {
        // Back by a quarter, against the clock.
        place = LinePlace { x: place.y, y: 1.0 - place.x - place.width, width: place.height, height: place.width };
    }
    let exact = |share: f32| (share * 10_000.0).round() / 10_000.0;
    LinePlace { x: exact(place.x), y: exact(place.y), width: exact(place.width), height: exact(place.height) }
}

fn confidence(lines: &[Line]) -> Option<f32> {
    let length = |line: &Line| line.reading.text.chars().filter(|letter| letter.is_alphanumeric()).count();
    let mut sorted: Vec<(f32, usize)> = lines.iter().map(|line| (line.reading.confidence, length(line))).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sorted.iter().map(|(_, length)| length).sum::<usize>().div_ceil(2);
    let mut so_far = 0;
    let middle = sorted.iter().find(|(_, length)| {
        so_far += length;
        so_far >= half
    });
    middle.map(|(confidence, _)| (confidence * 1_000.0).round() / 1_000.0)
}

#[cfg(test)]
mod tests;
