//! Markdown as pages have it: headings, lists and tables.

/// A table as Markdown. Its first row is its head; empty rows and columns at its ends are left out.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let is_empty = |row: &&Vec<String>| row.iter().all(|cell| cell.trim().is_empty());
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_empty(row)).collect();
    let width = |row: &&Vec<String>| row.iter().rposition(|cell| !cell.trim().is_empty()).map_or(0, |last| last + 1);
    let n_columns = rows.iter().map(width).max().unwrap_or(0);
    if n_columns == 0 {
        return String::new();
    }
    let mut written = String::new();
    for (nth, row) in rows.iter().enumerate() {
        line(&mut written, (0..n_columns).map(|column| row.get(column).map(String::as_str).unwrap_or_default()));
        if nth == 0 {
            line(&mut written, std::iter::repeat_n("---", n_columns));
        }
    }
    written
}

fn line<'a>(written: &mut String, cells: impl Iterator<Item = &'a str>) {
    for cell in cells {
        written.push_str("| ");
        let one_line = cell.split_whitespace().collect::<Vec<_>>().join(" ");
        written.push_str(&one_line.replace('|', "\\|"));
        written.push(' ');
    }
    written.push_str("|\n");
}

/// A heading, of level 1 to 6.
pub(crate) fn heading(level: usize, text: &str) -> String {
    format!("{} {}\n\n", "#".repeat(level.clamp(1, 6)), text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_cells_and_loses_its_empty_edges() {
        let rows = [["Item", "Price | net", ""], ["", "", ""], ["Straw\nbale", "20", ""]];
        let rows: Vec<Vec<String>> = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        assert_eq!(table(&rows), "| Item | Price \\| net |\n| --- | --- |\n| Straw bale | 20 |\n");
        assert_eq!(table(&[vec![" ".into()]]), "");
        assert_eq!(heading(9, " Terms "), "###### Terms\n\n");
    }
}
