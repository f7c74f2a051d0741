//! Word documents: paragraphs with their headings and lists, tables, notes. Pages are where Word has broken them last.

use std::collections::HashMap;

use super::title;
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Element, Step, walk};
use crate::{Result, markdown};

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let mut files = Unpacked::open(bytes)?;
    let title = title(&mut files, sink)?;
    let levels = match files.file("word/styles.xml", sink)? {
        Some(styles) => levels(&styles)?,
        None => HashMap::new(),
    };
    let document = files.needed("word/document.xml", sink)?;
    sink.head(title, None)?;
    let mut body = Body { levels, ..Body::default() };
    walk(&document, |step| body.take(step, Some(sink)))?;
    body.paragraph_ends();
    for (part, heading) in
        [("word/footnotes.xml", "Footnotes"), ("word/endnotes.xml", "Endnotes"), ("word/comments.xml", "Comments")]
    {
        let Some(notes) = files.file(part, sink)? else { continue };
        let mut found = Body::default();
        walk(&notes, |step| found.take(step, None))?;
        found.paragraph_ends();
        if !found.page.trim().is_empty() {
            body.page.push_str(&markdown::heading(2, heading));
            body.page.push_str(&found.page);
        }
    }
    sink.text(None, &body.page)
}

/// The level of each style that is one of headings. Their ids are in the language of whoever wrote the document, their names are not.
fn levels(styles: &[u8]) -> Result<HashMap<String, usize>> {
    let (mut levels, mut id) = (HashMap::new(), None);
    walk(styles, |step| {
        if let Step::Begin(element) = step {
            match element.name.as_str() {
                "style" => id = element.get("styleId").map(str::to_owned),
                "name" => {
                    let name = element.get("val").unwrap_or_default().to_ascii_lowercase();
                    let level = match name.as_str() {
                        "title" => Some(1),
                        name => name.strip_prefix("heading ").and_then(|level| level.parse().ok()),
                    };
                    if let (Some(id), Some(level)) = (&id, level) {
                        levels.insert(id.clone(), level);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok(levels)
}

/// A table that is being read: its rows, and the cell that is open.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
}

#[derive(Default)]
struct Body {
    levels: HashMap<String, usize>,
    /// The text of the page so far.
    page: String,
    paragraph: String,
    level: Option<usize>,
    is_item: bool,
    /// Tables inside each other.
    tables: Vec<Table>,
    is_text: bool,
    /// Elements whose content says what is said elsewhere, or nothing: how deep we are in them.
    n_skipped: usize,
}

impl Body {
    fn take(&mut self, step: Step, sink: Option<&mut Sink<'_>>) -> Result<()> {
        match step {
            Step::Begin(element) if self.n_skipped > 0 || is_skipped(&element.name) => self.n_skipped += 1,
            Step::End(_) if self.n_skipped > 0 => self.n_skipped -= 1,
            Step::Begin(element) => return self.begin(&element, sink),
            Step::End(name) => self.end(&name),
            Step::Text(text) if self.is_text && self.n_skipped == 0 => self.paragraph.push_str(&text),
            Step::Text(_) => {}
        }
        Ok(())
    }

    fn begin(&mut self, element: &Element, sink: Option<&mut Sink<'_>>) -> Result<()> {
        match element.name.as_str() {
            "t" => self.is_text = true,
            "tab" => self.paragraph.push('\t'),
            "br" if element.get("type") == Some("page") => return self.page_ends(sink),
            "lastRenderedPageBreak" => return self.page_ends(sink),
            "br" | "cr" => self.paragraph.push('\n'),
            "noBreakHyphen" => self.paragraph.push('-'),
            "pStyle" => self.level = element.get("val").and_then(|style| self.levels.get(style)).copied(),
            "numPr" => self.is_item = true,
            // A text box stands inside a paragraph and has its own.
            "txbxContent" => self.paragraph_ends(),
            "tbl" => {
                self.paragraph_ends();
                self.tables.push(Table::default());
            }
            "tr" => self.tables.last_mut().into_iter().for_each(|table| table.rows.push(Vec::new())),
            "tc" => self.tables.last_mut().into_iter().for_each(|table| table.cell = Some(String::new())),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str) {
        match name {
            "t" => self.is_text = false,
            "p" => self.paragraph_ends(),
            "tc" => {
                if let Some(table) = self.tables.last_mut()
                    && let Some(cell) = table.cell.take()
                {
                    match table.rows.last_mut() {
                        Some(row) => row.push(cell),
                        None => table.rows.push(vec![cell]),
                    }
                }
            }
            "tbl" => {
                let Some(table) = self.tables.pop() else { return };
                let cell = self.tables.last_mut().and_then(|outer| outer.cell.as_mut());
                match cell {
                    // A cell has no room for a table: its words follow each other.
                    Some(cell) => table.rows.iter().flatten().for_each(|inner| add(cell, inner)),
                    None => {
                        self.page.push_str(&markdown::table(&table.rows));
                        self.page.push('\n');
                    }
                }
            }
            _ => {}
        }
    }

    fn paragraph_ends(&mut self) {
        let text = std::mem::take(&mut self.paragraph);
        let (level, is_item) = (self.level.take(), std::mem::take(&mut self.is_item));
        if text.trim().is_empty() {
            return;
        }
        if let Some(cell) = self.tables.last_mut().and_then(|table| table.cell.as_mut()) {
            return add(cell, &text);
        }
        match level {
            Some(level) => self.page.push_str(&markdown::heading(level, &text)),
            None if is_item => self.page.push_str(&format!("- {}\n", text.trim())),
            None => self.page.push_str(&format!("{}\n\n", text.trim_end())),
        }
    }

    /// A page ends in the middle of a paragraph, unless that is in a table: rows stay together.
    fn page_ends(&mut self, sink: Option<&mut Sink<'_>>) -> Result<()> {
        let Some(sink) = sink.filter(|_| self.tables.is_empty()) else { return Ok(()) };
        let (level, is_item) = (self.level, self.is_item);
        self.paragraph_ends();
        (self.level, self.is_item) = (level, is_item);
        if self.page.trim().is_empty() {
            return Ok(());
        }
        sink.text(None, &std::mem::take(&mut self.page))
    }
}

fn add(cell: &mut String, text: &str) {
    if !cell.is_empty() {
        cell.push(' ');
    }
    cell.push_str(text.trim());
}

/// Whether an element is passed over: what was deleted and is only remembered, field codes, and the second of two ways to say the same.
fn is_skipped(name: &str) -> bool {
    matches!(name, "del" | "moveFrom" | "instrText" | "Fallback" | "delText")
}
