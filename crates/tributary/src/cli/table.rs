//! Tables for people, readable without colour.

/// Prints rows under a heading. The caller aligns numbers by padding.
pub fn print(heading: &[&str], rows: &[Vec<String>]) {
    for line in lines(heading, rows) {
        println!("{line}");
    }
}

fn lines(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([heading[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&mut heading.iter().copied())];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        assert_eq!(
            lines(&["id", "name", "state"], &[row(["1", "Ünïcode", "ok"]), row(["1000", "b", ""])]),
            ["id    name     state", "1     Ünïcode  ok", "1000  b"]
        );
        assert_eq!(lines(&["id", "name"], &[]), ["id  name"], "an empty table is its heading");
    }
}
