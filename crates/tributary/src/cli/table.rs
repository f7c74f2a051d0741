//! Tables for people: columns as wide as they must be, readable without colour.

/// Prints rows under a heading; numbers are the caller's to align by padding.
pub fn print(heading: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([heading[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("{}", padded.join("  ").trim_end());
    };
    line(&mut heading.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
}
