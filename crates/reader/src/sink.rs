//! Where pages go: numbered, trimmed and counted, then written as lines.

use std::io::Write;

use domain::reading::{FileKind, Line, Page, ReadBy, Unreadable};

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
}

impl<'a> Sink<'a> {
    pub fn new(out: &'a mut dyn Write, limits: Limits) -> Self {
        Self {
            out,
            limits,
            kind: None,
            is_begun: false,
            title: None,
            n_pages: 0,
            text_bytes: 0,
            unpacked_bytes: 0,
            has_text: false,
            trouble: None,
            inside: None,
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn kind(&mut self, kind: FileKind) {
        self.kind = Some(kind);
    }

    /// Says what is known before the first page. Of a file inside another it says nothing.
    pub fn head(&mut self, title: Option<String>, n_pages: Option<u32>) -> Result<()> {
        let Some(kind) = self.kind.filter(|_| !self.is_begun && self.inside.is_none()) else { return Ok(()) };
        self.is_begun = true;
        let one_line = |title: String| title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = title.map(one_line).filter(|title| !title.is_empty());
        self.title = title.map(|title| title.chars().take(300).collect());
        self.write(&Line::Head { kind, title: self.title.clone(), n_pages })
    }

    /// A page of stored text.
    pub fn text(&mut self, label: Option<String>, text: &str) -> Result<()> {
        self.page(label, text, ReadBy::Text, None)
    }

    /// A page that cannot be read, among others that can.
    pub fn unread(&mut self, why: Unreadable) -> Result<()> {
        self.page(None, "", ReadBy::Text, Some(why))
    }

    fn page(&mut self, label: Option<String>, text: &str, read_by: ReadBy, trouble: Option<Unreadable>) -> Result<()> {
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
        let text = trimmed(text);
        let room = self.limits.text_bytes.saturating_sub(self.text_bytes);
        let cut = &text[..text.floor_char_boundary(room)];
        self.n_pages += 1;
        self.text_bytes += cut.len();
        self.trouble = self.trouble.or(trouble);
        self.has_text |= !cut.trim().is_empty();
        let label = match (&self.inside, label) {
            (Some(inside), Some(label)) => Some(format!("{inside}, {label}")),
            (Some(inside), None) => Some(inside.clone()),
            (None, label) => label,
        };
        let label = label.map(|label| label.chars().take(200).collect());
        let page = Page { number: self.n_pages, label, text: cut.to_owned(), read_by, confidence: None, trouble };
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
            outcome => Line::End { is_cut: outcome.is_err() },
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

/// A text without blanks at the ends of lines, without more than one empty line in a row, and without what no text has.
fn trimmed(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        let is_text = |c: &char| *c == '\t' || !c.is_control();
        let line: String = line.trim_end().chars().filter(is_text).collect();
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(read: impl FnOnce(&mut Sink<'_>) -> Result<()>, limits: Limits) -> Vec<Line> {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, limits);
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
        assert_eq!(all[3], Line::End { is_cut: true });
        let all = lines(|sink| sink.text(None, " \n "), small);
        assert!(matches!(all.last(), Some(Line::Refused { why: Unreadable::NoText, .. })), "{all:?}");
        let all = lines(|sink| sink.unpacked(11), small);
        assert!(matches!(all.as_slice(), [Line::Refused { why: Unreadable::Bomb, .. }]), "{all:?}");
    }
}
