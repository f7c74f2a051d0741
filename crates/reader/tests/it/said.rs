//! A file as the reader tells it: its head, its pages, its end.

use domain::reading::{FileKind, Line, Models, Page, Unreadable};
use reader::{Limits, Source, read};

#[derive(Debug, Default)]
pub struct Said {
    pub kind: Option<FileKind>,
    pub title: Option<String>,
    pub n_pages: Option<u32>,
    pub pages: Vec<Page>,
    pub is_cut: bool,
    /// Of a recording, how much was heard.
    pub seconds: Option<u32>,
    pub refused: Option<Unreadable>,
}

impl Said {
    pub fn of(bytes: Vec<u8>, name: &str) -> Self {
        let mut out = Vec::new();
        let source = Source { bytes, name: Some(name.into()), media_type: None };
        read(source, Limits::default(), &Models::default(), &[], &mut out).expect("written");
        Self::from_lines(&out)
    }

    pub fn from_lines(lines: &[u8]) -> Self {
        let mut said = Self::default();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line).expect("a line") {
                Line::Head { kind, title, n_pages, .. } => {
                    (said.kind, said.title, said.n_pages) = (Some(kind), title, n_pages);
                }
                Line::Page(page) => said.pages.push(page),
                Line::Alive | Line::Picture { .. } => {}
                Line::End { is_cut, seconds, .. } => (said.is_cut, said.seconds) = (is_cut, seconds),
                Line::Refused { why, .. } => said.refused = Some(why),
            }
        }
        said
    }

    /// The texts of all pages, one after the other.
    pub fn text(&self) -> String {
        self.pages.iter().map(|page| page.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    pub fn labels(&self) -> Vec<&str> {
        self.pages.iter().map(|page| page.label.as_deref().unwrap_or_default()).collect()
    }

    /// The numbers of the pages on which a text is.
    pub fn pages_with(&self, text: &str) -> Vec<u32> {
        self.pages.iter().filter(|page| page.text.contains(text)).map(|page| page.number).collect()
    }
}
