//! Tables as text: values between commas, semicolons or tabs.

use domain::reading::FileKind;

use crate::markdown::MOST_COLUMNS;
use crate::sink::Sink;
use crate::{Result, Stop, markdown, text};

/// Rows of a page. Each page repeats the head, so that every hit has it.
const ROWS: usize = 100;
/// Of so many times the text that is taken of a file the table is read: values are shorter than the table that is made of them.
const LOOKED_AT: usize = 2;

pub(crate) fn read(bytes: &[u8], kind: FileKind, sink: &mut Sink<'_>) -> Result<()> {
    let mut text = text::decoded(bytes);
    let most = text.floor_char_boundary(sink.limits().text_bytes.saturating_mul(LOOKED_AT));
    let is_cut = most < text.len();
    text.truncate(most);
    let delimiter = if kind == FileKind::Tsv { b'\t' } else { delimiter(&text) };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut head: Option<Vec<String>> = None;
    let (mut rows, mut n_before) = (Vec::new(), 0);
    for record in reader.records() {
        // It is decoded text, so nothing but its end can be wrong.
        let Ok(record) = record else { break };
        let row: Vec<String> = record.iter().take(MOST_COLUMNS).map(str::to_owned).collect();
        if row.iter().all(String::is_empty) {
            continue;
        }
        let Some(head) = &head else {
            head = Some(row);
            continue;
        };
        rows.push(row);
        if rows.len() == ROWS {
            page(head, &mut rows, &mut n_before, sink)?;
        }
    }
    match head {
        Some(head) if !rows.is_empty() || n_before == 0 => page(&head, &mut rows, &mut n_before, sink)?,
        _ => {}
    }
    if is_cut { Err(Stop::Enough) } else { Ok(()) }
}

fn page(head: &[String], rows: &mut Vec<Vec<String>>, n_before: &mut usize, sink: &mut Sink<'_>) -> Result<()> {
    let (first, last) = (*n_before + 1, *n_before + rows.len());
    let label = (first > 1 || rows.len() == ROWS).then(|| format!("rows {first} to {last}"));
    let mut all = vec![head.to_vec()];
    all.append(rows);
    *n_before = last;
    sink.text(label, &markdown::table(&all))
}

/// The delimiter that the first lines have most often, and equally often.
fn delimiter(text: &str) -> u8 {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(10).collect();
    let score = |delimiter: u8| {
        let counts: Vec<usize> =
            lines.iter().map(|line| line.bytes().filter(|byte| *byte == delimiter).count()).collect();
        let least = counts.iter().min().copied().unwrap_or(0);
        let is_even = counts.iter().all(|count| *count == least);
        (least, is_even)
    };
    let candidates = [b',', b';', b'\t', b'|'];
    candidates
        .into_iter()
        .rev()
        .max_by_key(|delimiter| score(*delimiter))
        .filter(|best| score(*best).0 > 0)
        .unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_told_by_the_lines() {
        for (text, expected) in [
            ("a,b\n1,2", b','),
            ("a;b\n1,5;2,5", b';'),
            ("a\tb\n1\t2", b'\t'),
            ("one column\nof words, some", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(text), expected, "{text:?}");
        }
    }
}
