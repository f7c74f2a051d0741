//! Where pages go: numbered, trimmed and counted, then written as lines.

use std::io::Write;

use domain::reading::{FileKind, Line, LinePlace, Models, Page, ReadBy, Unreadable};
use image::GrayImage;

use crate::ocr::{Ocr, Seen};
use crate::{Result, Stop};

/// The most that is read of one file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub pages: u32,
    pub text_bytes: usize,
    /// The bytes that are unpacked of one file, with the files inside it.
    pub unpacked_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pages: 3_000, text_bytes: 10 << 20, unpacked_bytes: 200 << 20 }
    }
}

pub(crate) struct Sink<'a> {
    out: &'a mut dyn Write,
    limits: Limits,
    models: &'a Models,
    /// The numbers of pages that somebody has.
    known: &'a [u32],
    /// It is opened for the first picture.
    ocr: Option<Ocr>,
    kind: Option<FileKind>,
    is_begun: bool,
    title: Option<String>,
    n_pages: u32,
    text_bytes: usize,
    unpacked_bytes: u64,
    has_text: bool,
    /// The first reason why a page has no text.
    trouble: Option<Unreadable>,
    /// The file inside that is read now.
    inside: Option<String>,
    /// The language that is spoken.
    language: Option<String>,
    /// The seconds of the recording that were heard.
    seconds: Option<u32>,
}

impl<'a> Sink<'a> {
    pub fn new(out: &'a mut dyn Write, limits: Limits, models: &'a Models, known: &'a [u32]) -> Self {
        Self {
            out,
            limits,
            models,
            known,
            ocr: None,
            kind: None,
            is_begun: false,
            title: None,
            n_pages: 0,
            text_bytes: 0,
            unpacked_bytes: 0,
            has_text: false,
            trouble: None,
            inside: None,
            language: None,
            seconds: None,
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn models(&self) -> &'a Models {
        self.models
    }

    pub fn kind(&mut self, kind: FileKind) {
        self.kind = Some(kind);
    }

    /// Says what is known before the first page. Of a file inside another it says nothing.
    pub fn head(&mut self, title: Option<String>, n_pages: Option<u32>) -> Result<()> {
        self.begin(title, n_pages, None)
    }

    /// Says that a recording of so many seconds follows.
    pub fn recording(&mut self, n_pages: Option<u32>, seconds: Option<u32>) -> Result<()> {
        self.begin(None, n_pages, seconds)
    }

    fn begin(&mut self, title: Option<String>, n_pages: Option<u32>, seconds: Option<u32>) -> Result<()> {
        let Some(kind) = self.kind.filter(|_| !self.is_begun && self.inside.is_none()) else { return Ok(()) };
        self.is_begun = true;
        let one_line = |title: String| title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = title.map(one_line).filter(|title| !title.is_empty());
        self.title = title.map(|title| title.chars().take(300).collect());
        self.write(&Line::Head { kind, title: self.title.clone(), n_pages, seconds })
    }

    /// A page of stored text.
    pub fn text(&mut self, label: Option<String>, text: &str) -> Result<()> {
        self.page(Page { label, text: text.to_owned(), ..nothing(ReadBy::Text) })
    }

    /// A page of stored text that can be drawn.
    pub fn drawable(&mut self, text: &str, aspect: Option<f32>, lines: Vec<LinePlace>) -> Result<()> {
        self.page(Page { text: text.to_owned(), aspect, lines, ..nothing(ReadBy::Text) })
    }

    /// A page that is a picture of text.
    pub fn picture(&mut self, picture: &GrayImage) -> Result<()> {
        if self.passes_known() {
            return Ok(());
        }
        let Seen { text, confidence, lines } = self.ocr()?.read(picture)?;
        let aspect = Some(picture.width() as f32 / picture.height().max(1) as f32);
        self.page(Page { text, confidence, aspect, lines, ..nothing(ReadBy::Ocr) })
    }

    /// Stops if pictures cannot be read here.
    pub fn needs_ocr(&mut self) -> Result<()> {
        self.ocr().map(|_| ())
    }

    fn ocr(&mut self) -> Result<&mut Ocr> {
        let not_installed = |detail: String| Stop::Refused(Unreadable::OcrNotInstalled, detail);
        if self.ocr.is_none() {
            let (Some(library), Some(folder)) = (&self.models.onnxruntime, &self.models.ocr) else {
                return Err(not_installed("a picture".into()));
            };
            let opened = Ocr::open(library, folder);
            self.ocr = opened.map_err(|error| not_installed(format!("the models could not be opened: {error}")))?;
        }
        self.ocr.as_mut().ok_or_else(|| not_installed("the models' files are missing".into()))
    }

    /// A page of words that were heard.
    pub fn speech(&mut self, label: String, text: &str, confidence: Option<f32>) -> Result<()> {
        self.page(Page { label: Some(label), text: text.to_owned(), confidence, ..nothing(ReadBy::Speech) })
    }

    /// Says in which language somebody speaks, and for how many seconds was heard. Of files inside another, the first one's language.
    pub fn heard(&mut self, language: Option<String>, seconds: f64) {
        self.language = self.language.take().or(language);
        self.seconds = self.inside.is_none().then_some(seconds.round() as u32);
    }

    /// Passes over the first pages that somebody has, and returns their number.
    pub fn pass_first_known(&mut self) -> u32 {
        let before = self.n_pages;
        while self.passes_known() {}
        self.n_pages - before
    }

    /// Tells that somebody is at work.
    pub fn alive(&mut self) -> Result<()> {
        self.write(&Line::Alive)
    }

    /// A page that cannot be read, among others that can.
    pub fn unread(&mut self, why: Unreadable) -> Result<()> {
        self.page(Page { trouble: Some(why), ..nothing(ReadBy::Text) })
    }

    /// Passes the next page over, if somebody has it.
    pub fn passes_known(&mut self) -> bool {
        let is_known = self.known.contains(&(self.n_pages + 1));
        self.n_pages += u32::from(is_known);
        self.has_text |= is_known;
        is_known
    }

    /// Numbers and writes a page, or what there is room for.
    fn page(&mut self, mut page: Page) -> Result<()> {
        if self.inside.is_none() {
            self.head(None, None)?;
        } else if !self.is_begun {
            let inside = self.inside.take();
            self.head(None, None)?;
            self.inside = inside;
        }
        if self.n_pages == self.limits.pages {
            return Err(Stop::Enough);
        }
        if self.passes_known() {
            return Ok(());
        }
        let room = self.limits.text_bytes.saturating_sub(self.text_bytes);
        let text = trimmed(&page.text, room);
        let cut = &text[..text.floor_char_boundary(room)];
        self.n_pages += 1;
        self.text_bytes += cut.len();
        self.trouble = self.trouble.or(page.trouble);
        self.has_text |= !cut.trim().is_empty();
        let label = match (&self.inside, page.label) {
            (Some(inside), Some(label)) => Some(format!("{inside}, {label}")),
            (Some(inside), None) => Some(inside.clone()),
            (None, label) => label,
        };
        page.label = label.map(|label| label.chars().take(200).collect());
        page.number = self.n_pages;
        page.text = cut.to_owned();
        page.lines.truncate(cut.lines().filter(|line| !line.is_empty()).count());
        self.write(&Line::Page(page))?;
        if cut.len() < text.len() { Err(Stop::Enough) } else { Ok(()) }
    }

    /// Counts bytes that were unpacked.
    pub fn unpacked(&mut self, n_bytes: u64) -> Result<()> {
        self.unpacked_bytes = self.unpacked_bytes.saturating_add(n_bytes);
        match self.unpacked_bytes > self.limits.unpacked_bytes {
            true => Err(Stop::Refused(Unreadable::Bomb, "more was unpacked than is taken of one file".into())),
            false => Ok(()),
        }
    }

    /// The bytes that may still be unpacked.
    pub fn room(&self) -> u64 {
        self.limits.unpacked_bytes.saturating_sub(self.unpacked_bytes)
    }

    /// Goes into a file inside this one. Returns where it was.
    pub fn enter(&mut self, label: &str) -> Option<String> {
        let label = match &self.inside {
            Some(outer) => format!("{outer} / {label}"),
            None => label.to_owned(),
        };
        self.inside.replace(label)
    }

    pub fn leave(&mut self, before: Option<String>) {
        self.inside = before;
    }

    /// Says how it ended.
    pub fn close(mut self, outcome: Result<()>) -> std::io::Result<()> {
        let last = match outcome {
            Err(Stop::Unheard(error)) => return Err(error),
            Err(Stop::Refused(why, detail)) => Line::Refused { why, detail },
            Ok(()) | Err(Stop::Enough) if !self.has_text => {
                Line::Refused { why: self.trouble.unwrap_or(Unreadable::NoText), detail: String::new() }
            }
            outcome => Line::End { is_cut: outcome.is_err(), language: self.language.take(), seconds: self.seconds },
        };
        match self.write(&last) {
            Err(Stop::Unheard(error)) => Err(error),
            _ => self.out.flush(),
        }
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let mut written = serde_json::to_vec(line).map_err(|error| Stop::Unheard(error.into()))?;
        written.push(b'\n');
        self.out.write_all(&written).map_err(Stop::Unheard)
    }
}

fn nothing(read_by: ReadBy) -> Page {
    Page {
        number: 0,
        label: None,
        text: String::new(),
        read_by,
        confidence: None,
        trouble: None,
        aspect: None,
        lines: Vec::new(),
    }
}

/// A text without blanks at the ends of lines, without more than one empty line in a row, and without what no text has. It ends when it has
/// more than `room` bytes.
pub(crate) fn trimmed(text: &str, room: usize) -> String {
    let is_text = |c: &char| *c == '\t' || !c.is_control();
    let lines = text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    let (mut kept, mut is_apart) = (String::new(), false);
    for line in lines {
        let mut line = line.trim_end().chars().filter(is_text).take(room + 1).peekable();
        if line.peek().is_none() {
            is_apart = true;
            continue;
        }
        if !kept.is_empty() {
            kept.push_str(if is_apart { "\n\n" } else { "\n" });
        }
        is_apart = false;
        kept.extend(line);
        if kept.len() > room {
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(read: impl FnOnce(&mut Sink<'_>) -> Result<()>, limits: Limits) -> Vec<Line> {
        let mut out = Vec::new();
        let models = Models::default();
        let mut sink = Sink::new(&mut out, limits, &models, &[]);
        sink.kind(FileKind::Text);
        let outcome = read(&mut sink);
        sink.close(outcome).expect("written");
        let out = String::from_utf8(out).expect("text");
        out.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
    }

    #[test]
    fn pages_are_numbered_through_all_files_inside() {
        let read = |sink: &mut Sink<'_>| {
            sink.text(Some("Prices".into()), "a\r\n\r\n\r\nb  \n\n")?;
            let before = sink.enter("b.zip");
            let outer = sink.enter("c.txt");
            sink.text(None, "c\u{0}")?;
            sink.leave(outer);
            sink.leave(before);
            sink.text(None, "d")
        };
        let pages: Vec<(u32, Option<String>, String)> = lines(read, Limits::default())
            .into_iter()
            .filter_map(|line| match line {
                Line::Page(page) => Some((page.number, page.label, page.text)),
                _ => None,
            })
            .collect();
        let expected = [(1, Some("Prices"), "a\n\nb"), (2, Some("b.zip / c.txt"), "c"), (3, None, "d")];
        assert_eq!(pages, expected.map(|(number, label, text)| (number, label.map(str::to_owned), text.to_owned())));
    }

    #[test]
    fn no_more_is_taken_than_the_limits_say_and_what_is_empty_has_no_text() {
        let small = Limits { pages: 2, text_bytes: 5, unpacked_bytes: 10 };
        let read = |sink: &mut Sink<'_>| {
            sink.text(None, "four")?;
            sink.text(None, "äöü")
        };
        let all = lines(read, small);
        assert!(matches!(&all[2], Line::Page(page) if page.text.is_empty()), "{all:?}");
        assert_eq!(all[3], Line::End { is_cut: true, language: None, seconds: None });
        let all = lines(|sink| sink.text(None, " \n "), small);
        assert!(matches!(all.last(), Some(Line::Refused { why: Unreadable::NoText, .. })), "{all:?}");
        let all = lines(|sink| sink.unpacked(11), small);
        assert!(matches!(all.as_slice(), [Line::Refused { why: Unreadable::Bomb, .. }]), "{all:?}");
    }
}
