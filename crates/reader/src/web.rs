//! Web pages: their text as mail has it, and their tables as tables. Many pages use tables to lay out what is none, which stays text.

use domain::text::{html_to_marked_text, html_to_text};

use crate::markdown;

const TABLE: char = '\u{fdd0}';
const TABLE_ENDS: char = '\u{fdd1}';
const ROW: char = '\u{fdd2}';
/// A cell. One over two columns has the next character, and so on.
const CELL: char = '\u{fdd3}';
const MOST_SPANNED: u32 = 12;
/// A cell with more characters lays out a page.
const MOST_CELL_CHARS: usize = 1_000;

/// The title and the text of a page.
pub(crate) fn read(html: &str) -> (Option<String>, String) {
    let (title, _) = html_to_text(html);
    let marked = html_to_marked_text(html, |name, attribute| match name {
        "table" => Some((TABLE, Some(TABLE_ENDS))),
        "tr" => Some((ROW, None)),
        "td" | "th" => {
            let n_columns = attribute("colspan").and_then(|n| n.trim().parse().ok()).unwrap_or(1_u32);
            Some((char::from_u32(u32::from(CELL) + n_columns.clamp(1, MOST_SPANNED) - 1)?, None))
        }
        _ => None,
    });
    (title, with_tables(&marked))
}

struct Cell {
    text: String,
    n_columns: usize,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Cell>>,
    has_table: bool,
}

impl Table {
    fn cell(&mut self) -> Option<&mut String> {
        Some(&mut self.rows.last_mut()?.last_mut()?.text)
    }

    fn begin_cell(&mut self, n_columns: usize) {
        let cell = Cell { text: String::new(), n_columns };
        match self.rows.last_mut() {
            Some(row) => row.push(cell),
            None => self.rows.push(vec![cell]),
        }
    }

    /// As Markdown, or as the texts of its cells if it only lays them out.
    fn written(self) -> String {
        let is_long = |cell: &Cell| cell.text.chars().nth(MOST_CELL_CHARS).is_some();
        let has_columns = self.rows.iter().filter(|row| row.len() > 1).count() > 1;
        if has_columns && !self.has_table && !self.rows.iter().flatten().any(is_long) {
            let row = |row: Vec<Cell>| row.into_iter().flat_map(Cell::over_columns).collect();
            let rows: Vec<Vec<String>> = self.rows.into_iter().map(row).collect();
            return markdown::table(&rows);
        }
        let cells: Vec<&str> = self.rows.iter().flatten().map(|cell| cell.text.trim()).collect();
        let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let is_line = self.rows.len() == 1 && !self.has_table && !cells.iter().any(|cell| cell.contains('\n'));
        cells.join(if is_line { " | " } else { "\n\n" })
    }
}

impl Cell {
    /// The cell in the first of its columns, and nothing in the others.
    fn over_columns(self) -> impl Iterator<Item = String> {
        std::iter::once(self.text).chain((1..self.n_columns).map(|_| String::new()))
    }
}

/// The text with its marked tables written anew.
fn with_tables(marked: &str) -> String {
    let mut text = String::new();
    let mut open: Vec<Table> = Vec::new();
    for line in marked.split('\n') {
        let mark = line.trim_start().chars().next().unwrap_or_default();
        let n_columns = u32::from(mark).wrapping_sub(u32::from(CELL)).wrapping_add(1);
        let is_cell = (1..=MOST_SPANNED).contains(&n_columns);
        match open.last_mut() {
            _ if mark == TABLE => open.push(Table::default()),
            _ if mark == TABLE_ENDS => end(&mut open, &mut text),
            Some(table) if mark == ROW => table.rows.push(Vec::new()),
            Some(table) if is_cell => table.begin_cell(n_columns as usize),
            None if mark == ROW || is_cell => {}
            // Where cells meet the text has a line between them.
            Some(table) => add(table.cell().unwrap_or(&mut text), line.strip_suffix(" |").unwrap_or(line)),
            None => add(&mut text, line),
        }
    }
    while !open.is_empty() {
        end(&mut open, &mut text);
    }
    text
}

/// Ends the innermost table. It is a part of the cell around it.
fn end(open: &mut Vec<Table>, text: &mut String) {
    let Some(table) = open.pop() else { return };
    let written = table.written();
    let around = match open.last_mut() {
        Some(outer) => {
            outer.has_table = true;
            outer.cell().unwrap_or(text)
        }
        None => text,
    };
    add(around, "");
    add(around, &written);
}

fn add(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stay_tables_unless_they_lay_out_a_page() {
        for (html, expected) in [
            (
                "<p>Prices<table><tr><th>Item<th>Price<tr><td><p>Bale</p><p>of straw</p></td><td>20 | net</td></table>end",
                "Prices\n\n| Item | Price |\n| --- | --- |\n| Bale of straw | 20 \\| net |\n\nend",
            ),
            (
                "<table><tr><th>a<th>b<th>c</tr><tr><td colspan=2>1</td><td>2</td></tr></table>",
                "| a | b | c |\n| --- | --- | --- |\n| 1 |  | 2 |",
            ),
            (
                "<table><tr><td>left</td><td><table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table></td></tr></table>",
                "left\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
            ),
            ("<table><tr><td>one</td><td>line</td></tr></table>", "one | line"),
            ("<td>no table</td><tr>x", "no table\nx"),
            ("<table><tr><td>never ends", "never ends"),
        ] {
            let lines: Vec<String> = read(html).1.lines().map(str::to_owned).collect();
            assert_eq!(lines.join("\n").replace("\n\n\n", "\n\n").trim(), expected, "{html}");
        }
    }
}
