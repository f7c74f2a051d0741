//! Phrases become pages of five minutes, with a paragraph where somebody paused.

use super::Phrase;
use crate::Result;
use crate::sink::Sink;

const PAGE_SECS: f64 = 300.0;
/// A pause after which a paragraph begins.
const PAUSE_SECS: f64 = 2.0;
/// The bytes after which a sentence ends its paragraph.
const LONG_PARAGRAPH: usize = 700;

pub struct Pages<'s, 'w> {
    sink: &'s mut Sink<'w>,
    /// The number of pages before this one.
    n_done: u32,
    text: String,
    /// The bytes of the text before its last paragraph.
    paragraph: usize,
    /// When the last phrase ended.
    ended: f64,
    /// The sum of the phrases' likelihoods, each by its length, and the sum of the lengths.
    likely: (f64, f64),
}

impl<'s, 'w> Pages<'s, 'w> {
    pub fn new(sink: &'s mut Sink<'w>, seconds: Option<f64>) -> Result<Self> {
        let seconds = seconds.filter(|seconds| *seconds > 0.0 && *seconds < 1e7);
        sink.recording(
            seconds.map(|seconds| (seconds / PAGE_SECS).ceil() as u32),
            seconds.map(|seconds| seconds.round() as u32),
        )?;
        let n_done = sink.pass_first_known();
        Ok(Self { sink, n_done, text: String::new(), paragraph: 0, ended: 0.0, likely: (0.0, 0.0) })
    }

    /// The second at which the first page begins that nobody has.
    pub fn begin(&self) -> f64 {
        f64::from(self.n_done) * PAGE_SECS
    }

    /// Tells that a window is heard, whether or not somebody speaks in it.
    pub fn alive(&mut self) -> Result<()> {
        self.sink.alive()
    }

    pub fn add(&mut self, phrase: Phrase) -> Result<()> {
        while phrase.begin >= self.end() {
            self.write(self.end())?;
        }
        let is_sentence = self.text.ends_with(['.', '!', '?', '。', '！', '？', '…']);
        let is_long = self.text.len() - self.paragraph > LONG_PARAGRAPH && is_sentence;
        if !self.text.is_empty() && (phrase.begin - self.ended > PAUSE_SECS || is_long) {
            self.text.push_str("\n\n");
            self.paragraph = self.text.len();
        } else if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(&phrase.text);
        let length = phrase.text.len() as f64;
        self.likely.0 += f64::from(phrase.likely) * length;
        self.likely.1 += length;
        self.ended = phrase.end;
        Ok(())
    }

    /// Writes what is left of a recording of so many seconds.
    pub fn finish(&mut self, seconds: f64) -> Result<()> {
        while seconds > self.end() {
            self.write(self.end())?;
        }
        // Somebody has all pages.
        if self.n_done > 0 && seconds <= self.begin() {
            return Ok(());
        }
        self.write(seconds)
    }

    /// The moment at which this page ends.
    fn end(&self) -> f64 {
        f64::from(self.n_done + 1) * PAGE_SECS
    }

    fn write(&mut self, end: f64) -> Result<()> {
        let label = format!("{}–{}", clock(self.begin()), clock(end));
        let (sum, length) = std::mem::take(&mut self.likely);
        let confidence = (length > 0.0).then(|| (sum / length).exp() as f32);
        let text = std::mem::take(&mut self.text);
        (self.n_done, self.paragraph) = (self.n_done + 1, 0);
        self.sink.speech(label, &text, confidence)
    }
}

/// "04:59", and from an hour on "1:04:59".
fn clock(seconds: f64) -> String {
    let seconds = seconds.ceil() as u32;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes:02}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use domain::reading::{FileKind, Line};

    use super::*;
    use crate::{Limits, Models};

    #[test]
    fn a_page_is_five_minutes_and_a_pause_begins_a_paragraph() {
        let (mut out, models) = (Vec::new(), Models::default());
        let mut sink = Sink::new(&mut out, Limits::default(), &models, &[]);
        sink.kind(FileKind::Audio);
        let mut pages = Pages::new(&mut sink, Some(3_725.0)).expect("a head");
        let long = format!("{}.", "x".repeat(LONG_PARAGRAPH));
        for (begin, end, text, likely) in [
            (1.0, 4.0, "Good morning.", -0.5_f32),
            (4.5, 9.0, "This is Ann.", -0.5),
            (20.0, 25.0, &long, 0.0),
            (25.0, 29.0, "After long words.", 0.0),
            (301.0, 303.0, "Later.", 0.0),
            (3_600.0, 3_601.0, "Much later.", -1.0),
        ] {
            pages.add(Phrase { begin, end, text: text.into(), likely }).expect("written");
        }
        pages.finish(3_725.0).expect("written");
        sink.close(Ok(())).expect("written");
        let out = String::from_utf8(out).expect("text");
        let lines: Vec<Line> = out.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
        assert!(matches!(lines[0], Line::Head { n_pages: Some(13), seconds: Some(3_725), .. }), "{:?}", lines[0]);
        let page = |nth: usize| match &lines[nth] {
            Line::Page(page) => (page.label.as_deref().unwrap_or_default(), page.text.as_str(), page.confidence),
            line => panic!("{line:?}"),
        };
        let first = format!("Good morning. This is Ann.\n\n{long}\n\nAfter long words.");
        assert_eq!((page(1).0, page(1).1), ("00:00–05:00", first.as_str()));
        assert!(page(1).2.is_some_and(|sure| (0.97..1.0).contains(&sure)), "{:?}", page(1).2);
        assert_eq!(page(2), ("05:00–10:00", "Later.", Some(1.0)));
        assert_eq!(page(3), ("10:00–15:00", "", None));
        assert_eq!((page(13).0, page(13).1), ("1:00:00–1:02:05", "Much later."));
        assert_eq!(lines.len(), 15);
    }
}
