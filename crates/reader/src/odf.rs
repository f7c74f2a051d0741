//! OpenDocument: texts, spreadsheets and presentations have the same elements.

use domain::reading::Unreadable;

use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Element, Step, walk};
use crate::{Result, Stop, markdown};

/// A cell or a row that repeats is repeated no further: sheets end with a million empty ones.
const MOST_REPEATS: usize = 50;
const MOST_COLUMNS: usize = 200;

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let mut files = Unpacked::open(bytes)?;
    if let Some(manifest) = files.file("META-INF/manifest.xml", sink)?
        && manifest.windows(15).any(|some| some == b"encryption-data")
    {
        return Err(Stop::Refused(Unreadable::Encrypted, "an OpenDocument file with a password".into()));
    }
    let title = match files.file("meta.xml", sink)? {
        Some(meta) => title(&meta),
        None => None,
    };
    let content = files.needed("content.xml", sink)?;
    sink.head(title, None)?;
    let mut body = Body::default();
    walk(&content, |step| body.take(step, sink))?;
    match body.page.trim().is_empty() {
        true => Ok(()),
        false => sink.text(body.label.take(), &body.page),
    }
}

fn title(meta: &[u8]) -> Option<String> {
    let (mut is_title, mut title) = (false, String::new());
    walk(meta, |step| {
        match step {
            Step::Begin(element) => is_title = element.name == "title",
            Step::End(_) => is_title = false,
            Step::Text(text) if is_title => title.push_str(&text),
            Step::Text(_) => {}
        }
        Ok(())
    })
    .ok()?;
    Some(title).filter(|title| !title.trim().is_empty())
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    row_repeats: usize,
    cell: String,
    cell_repeats: usize,
}

#[derive(Default)]
struct Body {
    page: String,
    label: Option<String>,
    /// Paragraphs that are open: one may hold a frame with others.
    paragraphs: Vec<(Option<usize>, String)>,
    n_lists: usize,
    is_item: bool,
    tables: Vec<Table>,
    /// How deep we are in elements that are passed over: what is remembered of changes, notes of readers, what is computed anew.
    n_skipped: usize,
    is_sheet: bool,
}

impl Body {
    fn take(&mut self, step: Step, sink: &mut Sink<'_>) -> Result<()> {
        match step {
            Step::Begin(element) if self.n_skipped > 0 || is_skipped(&element.name) => self.n_skipped += 1,
            Step::End(_) if self.n_skipped > 0 => self.n_skipped -= 1,
            Step::Begin(element) => return self.begin(&element, sink),
            Step::End(name) => return self.end(&name, sink),
            Step::Text(text) => {
                if let Some((_, paragraph)) = self.paragraphs.last_mut().filter(|_| self.n_skipped == 0) {
                    paragraph.push_str(&text);
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, element: &Element, sink: &mut Sink<'_>) -> Result<()> {
        let repeats = |name: &str| element.get(name).and_then(|n| n.parse().ok()).unwrap_or(1_usize);
        match element.name.as_str() {
            "spreadsheet" => self.is_sheet = true,
            "h" => {
                let level = element.get("outline-level").and_then(|level| level.parse().ok()).unwrap_or(1);
                self.paragraphs.push((Some(level), String::new()));
            }
            "p" => self.paragraphs.push((None, String::new())),
            "tab" => self.write("\t"),
            "line-break" => self.write("\n"),
            "s" => self.write(&" ".repeat(repeats("c").min(80))),
            "soft-page-break" if self.tables.is_empty() => self.page_ends(sink)?,
            "page" => self.label = element.get("name").map(str::to_owned),
            "list-item" => (self.n_lists, self.is_item) = (self.n_lists + 1, true),
            "table" => {
                if self.is_sheet && self.tables.is_empty() {
                    self.label = element.get("name").map(str::to_owned);
                }
                self.tables.push(Table::default());
            }
            "table-row" => self.tables.iter_mut().last().into_iter().for_each(|table| {
                (table.row, table.row_repeats) = (Vec::new(), repeats("number-rows-repeated"));
            }),
            "table-cell" | "covered-table-cell" => self.tables.iter_mut().last().into_iter().for_each(|table| {
                (table.cell, table.cell_repeats) = (String::new(), repeats("number-columns-repeated"));
            }),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, name: &str, sink: &mut Sink<'_>) -> Result<()> {
        match name {
            "h" | "p" => {
                if let Some((level, text)) = self.paragraphs.pop() {
                    self.paragraph(level, &text);
                }
            }
            "list-item" => self.n_lists = self.n_lists.saturating_sub(1),
            "table-cell" | "covered-table-cell" => self.tables.iter_mut().last().into_iter().for_each(|table| {
                let is_empty = table.cell.trim().is_empty();
                let repeats = table.cell_repeats.min(if is_empty { MOST_COLUMNS } else { MOST_REPEATS });
                let room = MOST_COLUMNS.saturating_sub(table.row.len());
                table.row.extend(std::iter::repeat_n(std::mem::take(&mut table.cell), repeats.min(room)));
            }),
            "table-row" => self.tables.iter_mut().last().into_iter().for_each(|table| {
                if table.row.iter().any(|cell| !cell.trim().is_empty()) {
                    let row = std::mem::take(&mut table.row);
                    table.rows.extend(std::iter::repeat_n(row, table.row_repeats.min(MOST_REPEATS)));
                }
            }),
            "table" => {
                let Some(table) = self.tables.pop() else { return Ok(()) };
                match self.tables.last_mut() {
                    Some(outer) => table.rows.iter().flatten().for_each(|inner| add(&mut outer.cell, inner)),
                    None => {
                        self.page.push_str(&markdown::table(&table.rows));
                        self.page.push('\n');
                        if self.is_sheet {
                            return self.page_ends(sink);
                        }
                    }
                }
            }
            "page" => return self.page_ends(sink),
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        if let Some((_, paragraph)) = self.paragraphs.last_mut() {
            paragraph.push_str(text);
        }
    }

    fn paragraph(&mut self, level: Option<usize>, text: &str) {
        let is_item = std::mem::take(&mut self.is_item);
        if text.trim().is_empty() {
            self.is_item = is_item;
            return;
        }
        if let Some(table) = self.tables.last_mut() {
            return add(&mut table.cell, text);
        }
        match level {
            Some(level) => self.page.push_str(&markdown::heading(level, text)),
            None if is_item => self.page.push_str(&format!("- {}\n", text.trim())),
            None if self.n_lists > 0 => self.page.push_str(&format!("  {}\n", text.trim())),
            None => self.page.push_str(&format!("{}\n\n", text.trim_end())),
        }
    }

    /// A page may end in the middle of a paragraph, whose first half is then its own.
    fn page_ends(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let halves: Vec<(Option<usize>, String)> =
            self.paragraphs.iter_mut().map(|(level, text)| (*level, std::mem::take(text))).collect();
        halves.iter().for_each(|(level, text)| self.paragraph(*level, text));
        if self.page.trim().is_empty() {
            return Ok(());
        }
        sink.text(self.label.take(), &std::mem::take(&mut self.page))
    }
}

fn add(cell: &mut String, text: &str) {
    if !cell.is_empty() {
        cell.push(' ');
    }
    cell.push_str(text.trim());
}

fn is_skipped(name: &str) -> bool {
    matches!(
        name,
        "tracked-changes"
            | "annotation"
            | "annotation-end"
            | "forms"
            | "header"
            | "footer"
            | "page-number"
            | "date-time"
    )
}
