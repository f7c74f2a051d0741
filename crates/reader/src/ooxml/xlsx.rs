//! Spreadsheets: each sheet is a page with a table. Cells are read as they come, so that two cells at opposite corners of a sheet cost two cells.

use std::collections::HashMap;

use super::{by_id, relations, title};
use crate::sink::Sink;
use crate::unpack::Unpacked;
use crate::xml::{Step, walk};
use crate::{Result, markdown};

const WORKBOOK: &str = "xl/workbook.xml";
const MOST_COLUMNS: usize = 200;
/// Rows of a page. A longer sheet is several pages, each with the sheet's first row as its head.
const ROWS: usize = 200;

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
    let dates = match files.file("xl/styles.xml", sink)? {
        Some(bytes) => dates(&bytes)?,
        None => Vec::new(),
    };
    sink.head(title, None)?;
    let book = Book { strings, dates, is_1904 };
    for (name, part) in sheets {
        // A chart has a sheet of its own and no cells.
        if let Some(bytes) = files.file(&part, sink)? {
            book.sheet(&name, &bytes, sink)?;
        }
    }
    Ok(())
}

/// How a number is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Number,
    Date,
    Time,
    DateTime,
}

struct Book {
    strings: Vec<String>,
    /// By the number of a cell's style.
    dates: Vec<Shown>,
    is_1904: bool,
}

/// A cell that is being read.
#[derive(Default)]
struct Cell {
    column: usize,
    kind: String,
    style: usize,
    value: String,
}

impl Book {
    fn sheet(&self, name: &str, bytes: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let mut table = Rows { name, head: None, rows: Vec::new(), first: 1, n_pages: 0 };
        let (mut cell, mut row, mut is_value, mut number) = (None::<Cell>, Vec::new(), false, 0_usize);
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
                        cell = Some(Cell { column, kind, style, value: String::new() });
                    }
                    // The value, or the text of a cell that has its own. A formula is not its value.
                    "v" | "t" => is_value = true,
                    _ => {}
                },
                Step::Text(text) if is_value => cell.iter_mut().for_each(|cell| cell.value.push_str(&text)),
                Step::Text(_) => {}
                Step::End(name) => match name.as_str() {
                    "v" | "t" => is_value = false,
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
                    "row" if row.iter().any(|cell| !cell.trim().is_empty()) => {
                        table.add(std::mem::take(&mut row), number, sink)?;
                    }
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
            "s" => value.trim().parse().ok().and_then(|nth: usize| self.strings.get(nth)).cloned().unwrap_or_default(),
            "b" => if value.trim() == "1" { "TRUE" } else { "FALSE" }.into(),
            "n" => {
                let shown = self.dates.get(cell.style).copied().unwrap_or(Shown::Number);
                match value.trim().parse::<f64>() {
                    Ok(number) => number_in_words(number, shown, self.is_1904),
                    Err(_) => value.trim().to_owned(),
                }
            }
            _ => value.to_owned(),
        }
    }
}

/// The rows of a sheet, as pages.
struct Rows<'a> {
    name: &'a str,
    head: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    first: usize,
    n_pages: usize,
}

impl Rows<'_> {
    fn add(&mut self, row: Vec<String>, number: usize, sink: &mut Sink<'_>) -> Result<()> {
        if self.head.is_none() {
            self.head = Some(row);
            return Ok(());
        }
        if self.rows.is_empty() {
            self.first = number;
        }
        self.rows.push(row);
        if self.rows.len() == ROWS { self.page(number, true, sink) } else { Ok(()) }
    }

    fn close(mut self, sink: &mut Sink<'_>) -> Result<()> {
        if self.head.is_some() && (!self.rows.is_empty() || self.n_pages == 0) {
            let last = self.first + self.rows.len().saturating_sub(1);
            self.page(last, false, sink)?;
        }
        Ok(())
    }

    fn page(&mut self, last: usize, has_more: bool, sink: &mut Sink<'_>) -> Result<()> {
        let label = match self.n_pages > 0 || has_more {
            true => format!("{}, rows {} to {last}", self.name, self.first),
            false => self.name.to_owned(),
        };
        let mut rows: Vec<Vec<String>> = self.head.iter().cloned().collect();
        rows.append(&mut self.rows);
        self.n_pages += 1;
        sink.text(Some(label), &markdown::table(&rows))
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
fn dates(bytes: &[u8]) -> Result<Vec<Shown>> {
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

/// The formats that every program has under these numbers.
fn of_number(id: &str) -> Shown {
    match id.parse::<u32>() {
        Ok(14..=17) => Shown::Date,
        Ok(18..=21 | 45..=47) => Shown::Time,
        Ok(22) => Shown::DateTime,
        _ => Shown::Number,
    }
}

/// A format by its code: whether it has parts of a date, of a time, or both. What is quoted or in brackets is no part.
fn of_code(code: &str) -> Shown {
    let (mut is_quoted, mut in_brackets, mut is_escaped) = (false, false, false);
    let mut plain = String::new();
    for c in code.split(';').next().unwrap_or_default().chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            c if !is_quoted && !in_brackets => plain.push(c.to_ascii_lowercase()),
            _ => {}
        }
    }
    let has = |part: char| plain.contains(part);
    match (has('y') || has('d'), has('h') || has('s')) {
        (true, true) => Shown::DateTime,
        (true, false) => Shown::Date,
        (false, true) => Shown::Time,
        (false, false) => Shown::Number,
    }
}

fn number_in_words(number: f64, shown: Shown, is_1904: bool) -> String {
    let days = if is_1904 { number + 1_462.0 } else { number };
    if shown == Shown::Number || !(0.0..2_958_466.0).contains(&days) {
        // As people write it: a sum of 0.1 and 0.2 is 0.3.
        let rounded = format!("{number:.10}");
        return rounded.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let seconds = ((days.fract() * 86_400.0).round() as u32).min(86_399);
    let time = format!("{:02}:{:02}", seconds / 3_600, seconds / 60 % 60);
    let time = if seconds.is_multiple_of(60) { time } else { format!("{time}:{:02}", seconds % 60) };
    match shown {
        Shown::Time => time,
        Shown::DateTime => format!("{} {time}", date(days as i64)),
        _ => date(days as i64),
    }
}

/// The day of a number: 1 is 1900-01-01, and 60 is a day that was not.
fn date(days: i64) -> String {
    let days = if days < 60 { days + 1 } else { days };
    // Days from 0000-03-01, whose years end with a leap day.
    let from = days - 25_569 + 719_468;
    let (era, day) = (from.div_euclid(146_097), from.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
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
    fn numbers_are_shown_as_their_format_says() {
        for (number, code, expected) in [
            (0.1 + 0.2, "General", "0.3"),
            (1_234_567.0, "#,##0.00", "1234567"),
            (45_000.0, "yyyy\\-mm\\-dd", "2023-03-15"),
            (45_000.5, "dd.mm.yyyy hh:mm", "2023-03-15 12:00"),
            (0.25, "h:mm", "06:00"),
            (1.0, "m/d/yy", "1900-01-01"),
            (61.0, "m/d/yy", "1900-03-01"),
            (12.5, "0.0\" days\"", "12.5"),
            (7.0, "[$-409]0", "7"),
        ] {
            assert_eq!(number_in_words(number, of_code(code), false), expected, "{number} as {code}");
        }
        assert_eq!(number_in_words(43_538.0, Shown::Date, true), "2023-03-15");
    }

    #[test]
    fn columns_are_named_by_letters() {
        for (name, expected) in
            [("A1", Some(0)), ("Z9", Some(25)), ("AA1", Some(26)), ("XFD1048576", Some(16_383)), ("7", None)]
        {
            assert_eq!(column(name), expected, "{name}");
        }
    }
}
