//! Pages as rows of cells. A row of a Markdown table has its cells; another line is one cell, or several where wide spaces or bold type part it.

use crate::reading::Page;

/// Papers with fields are short. Longer texts are read up to here.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// A part of a line that stands for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    pub page: &'a Page,
    /// Counted over all pages.
    pub row: usize,
    pub col: usize,
    pub in_table: bool,
    /// Where it begins in its page's text.
    pub at: usize,
    pub text: &'a str,
    /// The whole line, and where it begins in its page's text.
    pub line: &'a str,
    pub line_at: usize,
}

/// The cells of all pages, in the order of reading, without empty ones.
pub(super) fn cells(pages: &[Page]) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    let (mut row, mut left) = (0, MOST_BYTES);
    for page in pages {
        let mut at = 0;
        for line in page.text.split_inclusive('\n') {
            let Some(rest) = left.checked_sub(line.len()) else {
                return cells;
            };
            left = rest;
            let text = line.trim_end();
            row += 1;
            if text.trim_start().starts_with('|') {
                row_of_table(&mut cells, page, row, at, text);
            } else {
                plain_line(&mut cells, page, row, at, text);
            }
            at += line.len();
        }
        row += 1; // the last row of one page is not above the first of the next
    }
    cells
}

fn row_of_table<'a>(cells: &mut Vec<Cell<'a>>, page: &'a Page, row: usize, at: usize, line: &'a str) {
    if line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ')) {
        return;
    }
    let mut from = line.find('|').map_or(0, |bar| bar + 1);
    for (col, text) in line[from..].split('|').enumerate() {
        push(cells, Cell { page, row, col, in_table: true, at: at + from, text, line, line_at: at });
        from += text.len() + 1;
    }
}

fn plain_line<'a>(cells: &mut Vec<Cell<'a>>, page: &'a Page, row: usize, at: usize, line: &'a str) {
    let is_heading = line.starts_with('#') && line.trim_start_matches('#').starts_with(' ');
    let start = if is_heading { line.len() - line.trim_start_matches('#').len() } else { 0 };
    let (mut col, mut from) = (0, start);
    let mut put = |from: usize, to: usize| {
        let text = &line[from..to];
        let n = cells.len();
        push(cells, Cell { page, row, col, in_table: false, at: at + from, text, line, line_at: at });
        col += cells.len() - n;
    };
    let bytes = line.as_bytes();
    let mut i = start;
    while i < bytes.len() {
        let width = match &bytes[i..] {
            [b'*', b'*', ..] => 2,
            [b'<', b'u', b'>', ..] => 3,
            [b'<', b'/', b'u', b'>', ..] => 4,
            [b'\t', ..] => 1,
            [b' ', b' ', ..] => 2,
            _ => 0,
        };
        if width > 0 {
            put(from, i);
            from = i + width;
        }
        i += width.max(1);
    }
    put(from, bytes.len());
}

/// Adds a cell without the white space and the marks around it, unless nothing is left.
fn push<'a>(cells: &mut Vec<Cell<'a>>, cell: Cell<'a>) {
    let is_around = |c: char| c.is_whitespace() || c == '*' || c == '`';
    let text = cell.text.trim_start_matches(is_around);
    let at = cell.at + cell.text.len() - text.len();
    let text = text.trim_end_matches(is_around);
    if !text.is_empty() {
        cells.push(Cell { at, text, ..cell });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::tests::page;

    #[test]
    fn lines_and_tables_become_cells_that_know_their_places() {
        let page = page("## Larkfield Ltd\n\n**Bill to** Acme  AG\n|a||b c|\n|---|---|---|\n|1|**2**||");
        let pages = [page];
        let cells = cells(&pages);
        let seen: Vec<_> = cells.iter().map(|cell| (cell.row, cell.col, cell.text)).collect();
        assert_eq!(
            seen,
            [
                (1, 0, "Larkfield Ltd"),
                (3, 0, "Bill to"),
                (3, 1, "Acme"),
                (3, 2, "AG"),
                (4, 0, "a"),
                (4, 2, "b c"),
                (6, 0, "1"),
                (6, 1, "2")
            ]
        );
        for cell in &cells {
            assert!(pages[0].text[cell.at..].starts_with(cell.text), "{cell:?}");
        }
    }
}
