//! Tables of rich text. A cell is known by where it ends, so that one over two columns does not move those after it.

use crate::markdown::MOST_COLUMNS;

/// Ends that are nearer, in twentieths of a point, are the same line.
const NEAR: i64 = 30;

#[derive(Default)]
pub(super) struct Grid {
    /// Where the cells of the row end.
    ends: Vec<i64>,
    row: Vec<String>,
    rows: Vec<Vec<(Option<i64>, String)>>,
}

impl Grid {
    pub fn row_is_defined_anew(&mut self) {
        self.ends.clear();
    }

    pub fn cell_ends_at(&mut self, place: i64) {
        self.ends.push(place);
    }

    pub fn cell(&mut self, text: String) {
        self.row.push(text);
    }

    pub fn row_ends(&mut self) {
        if !self.row.is_empty() {
            let ends = self.ends.iter().copied().map(Some).chain(std::iter::repeat(None));
            self.rows.push(ends.zip(std::mem::take(&mut self.row)).collect());
        }
    }

    /// The rows so far, with all cells in their columns. What follows is another table.
    pub fn take(&mut self) -> Vec<Vec<String>> {
        self.row_ends();
        let rows = std::mem::take(&mut self.rows);
        let mut lines: Vec<i64> = rows.iter().flatten().filter_map(|(end, _)| *end).collect();
        lines.sort_unstable();
        lines.dedup_by(|next, line| *next - *line < NEAR);
        rows.into_iter().map(|row| in_columns(row, &lines)).collect()
    }
}

fn in_columns(row: Vec<(Option<i64>, String)>, lines: &[i64]) -> Vec<String> {
    let mut cells: Vec<String> = Vec::new();
    let mut column = 0;
    for (end, text) in row {
        if column >= MOST_COLUMNS {
            break;
        }
        cells.resize(column, String::new());
        cells.push(text);
        let last = end.map(|end| lines.partition_point(|line| *line <= end).saturating_sub(1));
        column = last.map_or(column, |last| last.max(column)) + 1;
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_over_two_columns_moves_no_other() {
        let mut grid = Grid::default();
        for (ends, cells) in [
            (&[1_000, 2_000, 3_000][..], &["a", "b", "c"][..]),
            (&[2_010, 3_000], &["ab", "c"]),
            (&[1_000, 3_000], &["a", "bc"]),
            (&[], &["x", "y"]),
        ] {
            grid.row_is_defined_anew();
            ends.iter().for_each(|end| grid.cell_ends_at(*end));
            cells.iter().for_each(|cell| grid.cell((*cell).to_owned()));
            grid.row_ends();
        }
        assert_eq!(grid.take(), [vec!["a", "b", "c"], vec!["ab", "", "c"], vec!["a", "bc"], vec!["x", "y"]]);
        assert!(grid.take().is_empty());
    }
}
