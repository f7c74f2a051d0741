//! Word documents: paragraphs with their headings and lists, tables, notes. Pages are where Word has broken them last.

use std::collections::HashMap;

use super::styles::{self, Style};
use super::{relations, title};
use crate::Result;
use crate::markdown::{MOST_COLUMNS, Writer};
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Element, Step, walk};

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let mut files = Unpacked::open(bytes)?;
    let title = title(&mut files, sink)?;
    // Its usual name is word/document.xml, but only the relation is certain.
    let main = relations(&mut files, "", sink)?.into_iter().find(|relation| relation.kind == "officeDocument");
    let main = main.map_or_else(|| "word/document.xml".to_owned(), |main| main.target);
    let parts = relations(&mut files, &main, sink)?;
    let mut part = |kind: &str, sink: &mut Sink<'_>| {
        let known = parts.iter().find(|part| part.kind == kind).map(|part| part.target.clone());
        files.file(&known.unwrap_or_else(|| format!("word/{kind}.xml")), sink)
    };
    let styles = part("styles", sink)?.map(|styles| styles::read(&styles)).transpose()?.unwrap_or_default();
    let footnotes = part("footnotes", sink)?.map(|notes| notes_by_id(&notes)).transpose()?.unwrap_or_default();
    let after = [("Endnotes", part("endnotes", sink)?), ("Comments", part("comments", sink)?)];
    let document = files.needed(&main, sink)?;
    sink.head(title, None)?;
    let mut body = Body { styles, footnotes, ..Body::default() };
    walk(&document, |step| body.take(step, Some(sink)))?;
    body.paragraph_ends();
    body.notes_end();
    for (heading, notes) in after {
        let Some(notes) = notes else { continue };
        let mut found = Body::default();
        walk(&notes, |step| found.take(step, None))?;
        found.paragraph_ends();
        if !found.page.is_empty() {
            body.page.heading(2, heading);
            body.page.paragraph(&found.page.take());
        }
    }
    sink.text(None, &body.page.take())
}

/// The texts of notes, by their ids.
fn notes_by_id(notes: &[u8]) -> Result<HashMap<String, String>> {
    let (mut found, mut id, mut body) = (HashMap::new(), String::new(), Body::default());
    walk(notes, |step| {
        match &step {
            Step::Begin(element) if element.name == "footnote" => {
                (id, body) = (element.get("id").unwrap_or_default().to_owned(), Body::default());
            }
            Step::End(name) if name == "footnote" => {
                body.paragraph_ends();
                found.insert(std::mem::take(&mut id), body.page.take());
            }
            _ => return body.take(step, None),
        }
        Ok(())
    })?;
    Ok(found)
}

/// A table that is being read: its rows, and the cell that is open.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: Option<String>,
    /// The columns over which the cell goes.
    n_columns: usize,
}

#[derive(Default)]
struct Body {
    styles: HashMap<String, Style>,
    footnotes: HashMap<String, String>,
    /// The text of the page so far.
    page: Writer,
    /// The notes of this page, which follow its text.
    notes: Vec<String>,
    n_notes: usize,
    paragraph: String,
    /// The words of the open paragraph about itself, and those of its style.
    own: Style,
    style: Style,
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
            "pStyle" => {
                self.style = element.get("val").and_then(|id| self.styles.get(id)).copied().unwrap_or_default();
            }
            "outlineLvl" | "numPr" | "numId" | "pageBreakBefore" => self.own.take(element),
            // Its properties are known, and nothing of its text.
            "r" if self.paragraph.is_empty() && self.own.or(self.style).begins_page == Some(true) => {
                self.own.begins_page = Some(false);
                return self.page_ends(sink);
            }
            "footnoteReference" => {
                if let Some(note) = element.get("id").and_then(|id| self.footnotes.get(id)) {
                    self.n_notes += 1;
                    self.notes.push(format!("[{}] {}", self.n_notes, note.trim()));
                    self.paragraph.push_str(&format!("[{}]", self.n_notes));
                }
            }
            // A text box stands inside a paragraph and has its own.
            "txbxContent" => self.paragraph_ends(),
            "tbl" => {
                self.paragraph_ends();
                self.tables.push(Table::default());
            }
            "tr" => self.tables.last_mut().into_iter().for_each(|table| table.rows.push(Vec::new())),
            "tc" => self.tables.last_mut().into_iter().for_each(|table| {
                (table.cell, table.n_columns) = (Some(String::new()), 1);
            }),
            "gridSpan" => self.tables.last_mut().into_iter().for_each(|table| {
                let n_columns = element.get("val").and_then(|n| n.parse().ok()).unwrap_or(1_usize);
                table.n_columns = n_columns.clamp(1, MOST_COLUMNS);
            }),
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
                    if table.rows.is_empty() {
                        table.rows.push(Vec::new());
                    }
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell);
                        row.extend((1..table.n_columns).map(|_| String::new()));
                    }
                }
            }
            "tbl" => {
                let Some(table) = self.tables.pop() else { return };
                let cell = self.tables.last_mut().and_then(|outer| outer.cell.as_mut());
                match cell {
                    // A cell has no room for a table: its words follow each other.
                    Some(cell) => table.rows.iter().flatten().for_each(|inner| add(cell, inner)),
                    None => self.page.table(&table.rows),
                }
            }
            _ => {}
        }
    }

    fn paragraph_ends(&mut self) {
        let text = std::mem::take(&mut self.paragraph);
        let (own, style) = (std::mem::take(&mut self.own), std::mem::take(&mut self.style));
        if text.trim().is_empty() {
            return;
        }
        if let Some(cell) = self.tables.last_mut().and_then(|table| table.cell.as_mut()) {
            return add(cell, &text);
        }
        let style = own.or(style);
        match style.level {
            Some(level) => self.page.heading(level, &text),
            None if style.is_item == Some(true) => self.page.item(None, &text),
            None => self.page.paragraph(&text),
        }
    }

    /// A page ends in the middle of a paragraph, unless that is in a table: rows stay together.
    fn page_ends(&mut self, sink: Option<&mut Sink<'_>>) -> Result<()> {
        let Some(sink) = sink.filter(|_| self.tables.is_empty()) else { return Ok(()) };
        let (own, style) = (self.own, self.style);
        self.paragraph_ends();
        (self.own, self.style) = (own, style);
        self.notes_end();
        if self.page.is_empty() {
            return Ok(());
        }
        sink.text(None, &self.page.take())
    }

    fn notes_end(&mut self) {
        for note in std::mem::take(&mut self.notes) {
            self.page.paragraph(&note);
        }
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
