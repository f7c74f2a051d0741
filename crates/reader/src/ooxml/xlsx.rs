//! Spreadsheets: each sheet is a page with a table. Cells are read as they come, so that two cells at opposite corners of a sheet cost two cells.

use std::collections::HashMap;

use super::shown::{PLAIN, Shown, in_words, of_code, of_number};
use super::{by_id, relations, title};
use crate::Result;
use crate::markdown::MOST_COLUMNS;
use crate::sheet::{Rows, cut};
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Step, walk};

const WORKBOOK: &str = "xl/workbook.xml";

pub(crate) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
    let mut files = Unpacked::open(bytes)?;
    let title = title(&mut files, sink)?;
    let workbook = files.needed(WORKBOOK, sink)?;
    let parts = by_id(relations(&mut files, WORKBOOK, sink)?);
    let (mut sheets, mut is_1904) = (Vec::new(), false);
    walk(&workbook, |step| {
        if let Step::Begin(element) = step {
            match element.name.as_str() {
                "workbookPr" => is_1904 = matches!(element.get("date1904"), Some("1" | "true")),
                "sheet" => {
                    let part = element.get("id").and_then(|id| parts.get(id)).cloned();
                    sheets.extend(part.map(|part| (element.get("name").unwrap_or_default().to_owned(), part)));
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    let strings = match files.file("xl/sharedStrings.xml", sink)? {
        Some(bytes) => strings(&bytes)?,
        None => Vec::new(),
    };
    let formats = match files.file("xl/styles.xml", sink)? {
        Some(bytes) => formats(&bytes)?,
        None => Vec::new(),
    };
    sink.head(title, None)?;
    let book = Book { strings, formats, is_1904 };
    for (name, part) in sheets {
        // A chart has a sheet of its own and no cells.
        if let Some(bytes) = files.file(&part, sink)? {
            book.sheet(&name, &bytes, sink)?;
        }
    }
    Ok(())
}

struct Book {
    strings: Vec<String>,
    /// By the number of a cell's style.
    formats: Vec<Shown>,
    is_1904: bool,
}

/// A cell that is being read.
#[derive(Default)]
struct Cell {
    column: usize,
    kind: String,
    style: usize,
    value: String,
    formula: String,
}

/// The part of a cell that is open.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    None,
    Value,
    Formula,
}

impl Book {
    fn sheet(&self, name: &str, bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let mut table = Rows::of(name);
        let (mut cell, mut row, mut part, mut number) = (None::<Cell>, Vec::new(), Part::None, 0_usize);
        walk(bytes, |step| {
            match step {
                Step::Begin(element) => match element.name.as_str() {
                    "row" => {
                        number = element.get("r").and_then(|row| row.parse().ok()).unwrap_or(number + 1);
                        row = Vec::new();
                    }
                    "c" => {
                        let column = element.get("r").and_then(column).unwrap_or(row.len());
                        let kind = element.get("t").unwrap_or("n").to_owned();
                        let style = element.get("s").and_then(|style| style.parse().ok()).unwrap_or(0);
                        cell = Some(Cell { column, kind, style, ..Cell::default() });
                    }
                    // The value, or the text of a cell that has its own.
                    "v" | "t" => part = Part::Value,
                    "f" => part = Part::Formula,
                    _ => {}
                },
                Step::Text(text) => cell.iter_mut().for_each(|cell| match part {
                    Part::Value => cell.value.push_str(&text),
                    Part::Formula => cell.formula.push_str(&text),
                    Part::None => {}
                }),
                Step::End(name) => match name.as_str() {
                    "v" | "t" | "f" => part = Part::None,
                    "c" => {
                        if let Some(cell) = cell.take().filter(|cell| cell.column < MOST_COLUMNS) {
                            if row.len() <= cell.column {
                                row.resize(cell.column + 1, String::new());
                            }
                            let shown = self.shown(&cell);
                            if let Some(place) = row.get_mut(cell.column) {
                                *place = shown;
                            }
                        }
                    }
                    "row" => table.add(std::mem::take(&mut row), number, sink)?,
                    _ => {}
                },
            }
            Ok(())
        })?;
        table.close(sink)
    }

    fn shown(&self, cell: &Cell) -> String {
        let value = cell.value.as_str();
        match cell.kind.as_str() {
            "s" => {
                let text = value.trim().parse().ok().and_then(|nth: usize| self.strings.get(nth));
                cut(text.map(String::as_str).unwrap_or_default()).to_owned()
            }
            "b" => if value.trim() == "1" { "TRUE" } else { "FALSE" }.into(),
            // A program that does not calculate leaves the formula alone.
            "n" if value.trim().is_empty() && !cell.formula.is_empty() => format!("={}", cut(&cell.formula)),
            "n" => {
                let shown = self.formats.get(cell.style).copied().unwrap_or(PLAIN);
                match value.trim().parse::<f64>() {
                    Ok(number) => in_words(number, shown, self.is_1904),
                    Err(_) => cut(value.trim()).to_owned(),
                }
            }
            _ => cut(value).to_owned(),
        }
    }
}

/// The texts that cells name by number. Of a text with hints on how to say it, the hints are left out.
fn strings(bytes: &[u8]) -> Result<Vec<String>> {
    let (mut strings, mut is_text, mut n_hints) = (Vec::new(), false, 0_usize);
    walk(bytes, |step| {
        match step {
            Step::Begin(element) => match element.name.as_str() {
                "si" => strings.push(String::new()),
                "rPh" => n_hints += 1,
                "t" => is_text = n_hints == 0,
                _ => {}
            },
            Step::End(name) => match name.as_str() {
                "rPh" => n_hints = n_hints.saturating_sub(1),
                "t" => is_text = false,
                _ => {}
            },
            Step::Text(text) if is_text => strings.last_mut().into_iter().for_each(|last| last.push_str(&text)),
            Step::Text(_) => {}
        }
        Ok(())
    })?;
    Ok(strings)
}

/// How the numbers of each style are shown.
fn formats(bytes: &[u8]) -> Result<Vec<Shown>> {
    let mut formats: HashMap<String, Shown> = HashMap::new();
    let (mut styles, mut is_style) = (Vec::new(), false);
    walk(bytes, |step| {
        match step {
            Step::Begin(element) => match element.name.as_str() {
                "numFmt" => {
                    if let (Some(id), Some(code)) = (element.get("numFmtId"), element.get("formatCode")) {
                        formats.insert(id.to_owned(), of_code(code));
                    }
                }
                "cellXfs" => is_style = true,
                "xf" if is_style => {
                    let id = element.get("numFmtId").unwrap_or("0");
                    styles.push(formats.get(id).copied().unwrap_or_else(|| of_number(id)));
                }
                _ => {}
            },
            Step::End(name) if name == "cellXfs" => is_style = false,
            _ => {}
        }
        Ok(())
    })?;
    Ok(styles)
}

/// The number of a column, from 0, by a cell's name such as AB12.
fn column(name: &str) -> Option<usize> {
    let letters = name.bytes().take_while(u8::is_ascii_uppercase);
    let number =
        letters.fold(0_usize, |sum, letter| sum.saturating_mul(26).saturating_add(usize::from(letter - b'A') + 1));
    number.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_letters() {
        for (name, expected) in
            [("A1", Some(0)), ("Z9", Some(25)), ("AA1", Some(26)), ("XFD1048576", Some(16_383)), ("7", None)]
        {
            assert_eq!(column(name), expected, "{name}");
        }
    }
}
