//! The rows of a sheet, as pages that are not too long: each has the sheet's first row as its head.

use crate::sink::Sink;
use crate::{Result, markdown};

/// Rows of a page.
const ROWS: usize = 200;
/// A page with more bytes ends earlier: cells may be long, and name the same text.
const PAGE_BYTES: usize = 256 * 1024;
/// The most of a cell. Spreadsheet programs keep 32,767 characters.
const MOST_CELL_BYTES: usize = 128 * 1024;

pub(crate) struct Rows {
    name: String,
    head: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    bytes: usize,
    first: usize,
    n_pages: usize,
}

impl Rows {
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), head: None, rows: Vec::new(), bytes: 0, first: 1, n_pages: 0 }
    }

    /// Adds a row by its number in the sheet. Empty ones are passed over.
    pub fn add(&mut self, row: Vec<String>, number: usize, sink: &mut Sink<'_>) -> Result<()> {
        if row.iter().all(|cell| cell.trim().is_empty()) {
            return Ok(());
        }
        if self.head.is_none() {
            self.head = Some(row);
            return Ok(());
        }
        if self.rows.is_empty() {
            self.first = number;
        }
        self.bytes += row.iter().map(String::len).sum::<usize>();
        self.rows.push(row);
        let is_full = self.rows.len() == ROWS || self.bytes > PAGE_BYTES;
        if is_full { self.page(number, true, sink) } else { Ok(()) }
    }

    pub fn close(mut self, sink: &mut Sink<'_>) -> Result<()> {
        if self.head.is_some() && (!self.rows.is_empty() || self.n_pages == 0) {
            let last = self.first + self.rows.len().saturating_sub(1);
            self.page(last, false, sink)?;
        }
        Ok(())
    }

    fn page(&mut self, last: usize, has_more: bool, sink: &mut Sink<'_>) -> Result<()> {
        let label = match self.n_pages > 0 || has_more {
            true => format!("{}, rows {} to {last}", self.name, self.first),
            false => self.name.clone(),
        };
        let mut rows: Vec<Vec<String>> = self.head.iter().cloned().collect();
        rows.append(&mut self.rows);
        self.bytes = 0;
        self.n_pages += 1;
        sink.text(Some(label), &markdown::table(&rows))
    }
}

/// The part of a cell's text that is kept.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_CELL_BYTES)]
}
