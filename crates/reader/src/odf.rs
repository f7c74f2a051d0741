//! OpenDocument: texts, spreadsheets and presentations have the same elements.

mod styles;

use domain::reading::Unreadable;

use self::styles::Styles;
use crate::markdown::{MOST_COLUMNS, Writer};
use crate::sheet::{Rows, cut};
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Element, Step, walk};
use crate::{Result, Stop};

/// A row that repeats is repeated no further: sheets end with a million empty ones.
const MOST_REPEATS: usize = 50;

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
    let mut styles = Styles::default();
    if let Some(named) = files.file("styles.xml", sink)? {
        walk(&named, |step| {
            styles.take(&step);
            Ok(())
        })?;
    }
    let content = files.needed("content.xml", sink)?;
    sink.head(title, None)?;
    let mut body = Body { styles, ..Body::default() };
    walk(&content, |step| body.take(step, sink))?;
    body.page_ends(sink)
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
    n_rows: usize,
    cell: String,
    cell_repeats: usize,
    /// The number of the cell, which it shows otherwise where its column is narrow.
    value: Option<String>,
}

impl Table {
    fn cell_ends(&mut self) {
        let text = std::mem::take(&mut self.cell);
        let is_squeezed = text.starts_with("##") || (text.contains('E') && text.parse::<f64>().is_ok());
        let text = self.value.take().filter(|_| is_squeezed).unwrap_or(text);
        let room = MOST_COLUMNS.saturating_sub(self.row.len());
        self.row.extend(std::iter::repeat_n(cut(&text).to_owned(), self.cell_repeats.min(room)));
    }
}

#[derive(Default)]
struct Body {
    styles: Styles,
    page: Writer,
    label: Option<String>,
    /// Paragraphs that are open: one may hold a frame with others.
    paragraphs: Vec<(Option<usize>, String)>,
    n_lists: usize,
    is_item: bool,
    tables: Vec<Table>,
    /// The rows of the sheet that is open.
    sheet: Option<Rows>,
    /// How deep we are in elements that are passed over: what is remembered of changes, notes of readers, what is computed anew.
    n_skipped: usize,
    is_sheet: bool,
    /// Of a slide: whether the open frame is its title, and whether the speaker's notes have begun.
    is_title: bool,
    /// Of a text: the notes of this page, which follow its text, and the one that is open.
    notes: Vec<String>,
    note: Option<String>,
}

impl Body {
    fn take(&mut self, step: Step, sink: &mut Sink<'_>) -> Result<()> {
        match step {
            Step::Begin(element) if self.n_skipped > 0 || is_skipped(&element.name) => self.n_skipped += 1,
            Step::End(_) if self.n_skipped > 0 => self.n_skipped -= 1,
            Step::Begin(element) => {
                let step = Step::Begin(element);
                self.styles.take(&step);
                if let Step::Begin(element) = step {
                    return self.begin(&element, sink);
                }
            }
            Step::End(name) => return self.end(&name, sink),
            Step::Text(text) if self.n_skipped == 0 => self.write(&text),
            Step::Text(_) => {}
        }
        Ok(())
    }

    fn begin(&mut self, element: &Element, sink: &mut Sink<'_>) -> Result<()> {
        let repeats = |name: &str| element.get(name).and_then(|n| n.parse().ok()).unwrap_or(1_usize);
        match element.name.as_str() {
            "spreadsheet" => self.is_sheet = true,
            "h" | "p" => {
                let style = self.styles.of(element.get("style-name").unwrap_or_default());
                if style.begins_page && self.paragraphs.is_empty() && self.tables.is_empty() {
                    self.page_ends(sink)?;
                }
                let level = match element.name.as_str() {
                    "h" => element.get("outline-level").and_then(|level| level.parse().ok()).or(Some(1)),
                    _ if self.is_title => Some(2),
                    _ => style.level,
                };
                self.paragraphs.push((level, String::new()));
            }
            "tab" => self.write("\t"),
            "line-break" => self.write("\n"),
            "s" => self.write(&" ".repeat(repeats("c").min(80))),
            "soft-page-break" if self.tables.is_empty() => self.page_ends(sink)?,
            "page" => self.label = element.get("name").map(str::to_owned),
            "frame" => self.is_title = element.get("class") == Some("title"),
            "notes" => self.page.heading(3, "Notes"),
            "note" => self.note = Some(String::new()),
            "note-citation" => self.write("["),
            "list-item" => (self.n_lists, self.is_item) = (self.n_lists + 1, true),
            "table" => {
                if self.is_sheet && self.tables.is_empty() {
                    self.label = element.get("name").map(str::to_owned);
                    self.sheet = Some(Rows::of(self.label.as_deref().unwrap_or_default()));
                }
                self.tables.push(Table::default());
            }
            // Only sheets repeat what has content.
            "table-row" => self.tables.last_mut().into_iter().for_each(|table| {
                let repeats = if self.sheet.is_some() { repeats("number-rows-repeated") } else { 1 };
                (table.row, table.row_repeats) = (Vec::new(), repeats);
            }),
            "table-cell" | "covered-table-cell" => self.tables.last_mut().into_iter().for_each(|table| {
                (table.cell, table.cell_repeats) = (String::new(), repeats("number-columns-repeated"));
                table.value = element.get("value").map(str::to_owned);
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
            "frame" => self.is_title = false,
            "note-citation" => {
                self.write("]");
                if let (Some(note), Some((_, text))) = (&mut self.note, self.paragraphs.last()) {
                    note.push_str(text.rfind('[').map_or("", |begin| &text[begin..]));
                }
            }
            "note" => self.notes.extend(self.note.take()),
            "table-cell" | "covered-table-cell" => self.tables.last_mut().into_iter().for_each(Table::cell_ends),
            "table-row" => return self.row_ends(sink),
            "table" => return self.table_ends(sink),
            "page" => return self.page_ends(sink),
            _ => {}
        }
        Ok(())
    }

    fn row_ends(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let is_outer = self.tables.len() == 1;
        let Some(table) = self.tables.last_mut() else { return Ok(()) };
        let row = std::mem::take(&mut table.row);
        let first = table.n_rows + 1;
        table.n_rows = table.n_rows.saturating_add(table.row_repeats);
        let is_empty = row.iter().all(|cell| cell.trim().is_empty());
        match &mut self.sheet {
            _ if is_empty => {}
            Some(sheet) if is_outer => {
                for nth in 0..table.row_repeats.min(MOST_REPEATS) {
                    sheet.add(row.clone(), first + nth, sink)?;
                }
            }
            _ => table.rows.push(row),
        }
        Ok(())
    }

    fn table_ends(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let Some(table) = self.tables.pop() else { return Ok(()) };
        match self.tables.last_mut() {
            // A cell has no room for a table: its words follow each other.
            Some(outer) => table.rows.iter().flatten().for_each(|inner| add(&mut outer.cell, inner)),
            None => match self.sheet.take() {
                Some(sheet) => {
                    self.label = None;
                    return sheet.close(sink);
                }
                None => self.page.table(&table.rows),
            },
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        if let Some((_, paragraph)) = self.paragraphs.last_mut() {
            paragraph.push_str(text);
        }
    }

    fn paragraph(&mut self, level: Option<usize>, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if let Some(note) = &mut self.note {
            return add(note, text);
        }
        if let Some(table) = self.tables.last_mut() {
            return add(&mut table.cell, text);
        }
        if self.is_title {
            self.label = Some(text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        let is_item = std::mem::take(&mut self.is_item);
        match level {
            Some(level) => self.page.heading(level, text),
            None if is_item && self.n_lists > 0 => self.page.item(None, text),
            None if self.n_lists > 0 => self.page.item_goes_on(text),
            None => self.page.paragraph(text),
        }
    }

    /// A page may end in the middle of a paragraph, whose first half is then its own.
    fn page_ends(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let halves: Vec<(Option<usize>, String)> =
            self.paragraphs.iter_mut().map(|(level, text)| (*level, std::mem::take(text))).collect();
        halves.iter().for_each(|(level, text)| self.paragraph(*level, text));
        for note in std::mem::take(&mut self.notes) {
            self.page.paragraph(&note);
        }
        if self.page.is_empty() {
            return Ok(());
        }
        sink.text(self.label.take(), &self.page.take())
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
