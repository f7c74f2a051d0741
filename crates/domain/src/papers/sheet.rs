//! The cells of a paper with their pieces, and the way from one cell to its neighbours.

use std::ops::Range;

use super::figures::{Point, Style};
use super::layout::{self, Cell};
use super::piece::{self, Piece};
use crate::reading::Page;

/// A quote is no longer than this, so that a person sees at once what is meant.
const LONGEST_QUOTE: usize = 200;

pub(super) struct Sheet<'a> {
    pub cells: Vec<Cell<'a>>,
    /// For each cell its pieces.
    pub pieces: Vec<Vec<Piece>>,
    /// The way in which the paper writes numbers.
    pub style: Style,
    /// Rows that are not empty, as ranges of cells.
    pub rows: Vec<Range<usize>>,
    /// For each cell its row.
    row_of: Vec<usize>,
}

impl<'a> Sheet<'a> {
    pub fn of(pages: &'a [Page]) -> Self {
        let cells = layout::cells(pages);
        let cut =
            |style| -> Vec<Vec<Piece>> { cells.iter().map(|cell| piece::pieces(cell.text, cell.at, style)).collect() };
        let mut pieces = cut(Style::UNKNOWN);
        let style = style(&pieces);
        if style != Style::UNKNOWN {
            pieces = cut(style);
        }
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut row_of = Vec::with_capacity(cells.len());
        for (nth, cell) in cells.iter().enumerate() {
            match rows.last_mut() {
                Some(row) if cells[row.start].row == cell.row => row.end = nth + 1,
                _ => rows.push(nth..nth + 1),
            }
            row_of.push(rows.len() - 1);
        }
        Self { cells, pieces, style, rows, row_of }
    }

    /// The cells to the right, in the same line.
    pub fn right_of(&self, cell: usize) -> Range<usize> {
        cell + 1..self.rows[self.row_of[cell]].end
    }

    pub fn row(&self, cell: usize) -> usize {
        self.row_of[cell]
    }

    /// The cell below: of a table in the same column, else the one that stands as far to the right.
    pub fn below(&self, cell: usize) -> Option<usize> {
        let nth = self.row_of[cell];
        let (row, next) = (&self.rows[nth], self.rows.get(nth + 1)?);
        let (here, there) = (&self.cells[cell], &self.cells[next.start]);
        if here.page.number != there.page.number || here.in_table != there.in_table {
            return None;
        }
        if here.in_table {
            return next.clone().find(|below| self.cells[*below].col == here.col);
        }
        (row.len() == next.len()).then(|| next.start + (cell - row.start))
    }

    /// The words of a page in this range.
    pub fn text(&self, cell: usize, range: Range<usize>) -> &'a str {
        self.cells[cell].page.text.get(range).unwrap_or_default()
    }

    /// The exact text of the page from a label to its value, or around the value where that would be long.
    pub fn quote(&self, cell: usize, from: usize, value: Range<usize>) -> String {
        let cell = &self.cells[cell];
        let text = &cell.page.text;
        let line_at = cell.line_at;
        let whole = line_at..line_at + cell.line.len();
        let near = from.min(value.start)..value.end;
        let is_near = near.len() <= LONGEST_QUOTE && near.start >= line_at && near.start < value.start;
        let range = match (is_near, whole.len() <= LONGEST_QUOTE) {
            (true, _) => near,
            (false, true) => whole,
            (false, false) => value,
        };
        text.get(range).unwrap_or_default().trim().to_owned()
    }
}

/// The way in which a paper writes numbers, as far as they show it.
fn style(pieces: &[Vec<Piece>]) -> Style {
    let (mut dots, mut commas, mut has_groups) = (0_usize, 0_usize, false);
    for amount in pieces.iter().flatten().filter_map(Piece::number) {
        match amount.shows {
            Some(Point::Dot) => dots += 1,
            Some(Point::Comma) => commas += 1,
            None => {}
        }
        has_groups |= amount.has_groups;
    }
    // "2.5 l" in a German text is no sum, so a few may disagree.
    let point = match (dots, commas) {
        (0, 0) => None,
        _ if dots > commas * 5 => Some(Point::Dot),
        _ if commas > dots * 5 => Some(Point::Comma),
        _ => None,
    };
    Style { point, has_spaces: !has_groups }
}
