//! Markdown as pages have it: headings, paragraphs, lists and tables.

/// Further columns of a table are left out: a row of a hundred thousand cells would widen all others.
pub(crate) const MOST_COLUMNS: usize = 200;
/// A longer table is cut. It is more text than is taken of a file.
const MOST_TABLE_BYTES: usize = 16 << 20;

/// A page that is being written.
#[derive(Default)]
pub(crate) struct Writer {
    text: String,
    is_in_list: bool,
}

impl Writer {
    pub fn heading(&mut self, level: usize, text: &str) {
        self.block(&heading(level, text));
    }

    pub fn paragraph(&mut self, text: &str) {
        self.block(text.trim_end());
        self.text.push_str("\n\n");
    }

    /// An item of a list, with its number if it has one.
    pub fn item(&mut self, number: Option<&str>, text: &str) {
        self.is_in_list = true;
        self.text.push_str(number.unwrap_or("-"));
        self.text.push(' ');
        self.text.push_str(text.trim());
        self.text.push('\n');
    }

    /// A further paragraph of an item.
    pub fn item_goes_on(&mut self, text: &str) {
        self.text.push_str(&format!("  {}\n", text.trim()));
    }

    pub fn table(&mut self, rows: &[Vec<String>]) {
        self.block(&table(rows));
        self.text.push('\n');
    }

    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The page so far. What follows is another.
    pub fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    /// Writes a block, apart from a list before it: otherwise it would belong to the last item.
    fn block(&mut self, text: &str) {
        if std::mem::take(&mut self.is_in_list) {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

/// A table as Markdown. Its first row is its head; empty rows and columns at its ends are left out.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let is_empty = |row: &&Vec<String>| row.iter().all(|cell| cell.trim().is_empty());
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_empty(row)).collect();
    let width = |row: &&Vec<String>| row.iter().rposition(|cell| !cell.trim().is_empty()).map_or(0, |last| last + 1);
    let n_columns = rows.iter().map(width).max().unwrap_or(0).min(MOST_COLUMNS);
    if n_columns == 0 {
        return String::new();
    }
    let mut written = String::new();
    for (nth, row) in rows.iter().enumerate() {
        line(&mut written, (0..n_columns).map(|column| row.get(column).map(String::as_str).unwrap_or_default()));
        if nth == 0 {
            line(&mut written, std::iter::repeat_n("---", n_columns));
        }
        if written.len() > MOST_TABLE_BYTES {
            break;
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
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} {one_line}\n\n", "#".repeat(level.clamp(1, 6)))
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
        assert_eq!(heading(9, " Terms\nof use "), "###### Terms of use\n\n");
    }

    #[test]
    fn what_follows_a_list_is_no_part_of_it() {
        let mut page = Writer::default();
        page.item(None, "one");
        page.item(Some("2."), "two");
        page.paragraph("After ");
        page.item(None, "three");
        page.table(&[vec!["a".into()]]);
        assert_eq!(page.take(), "- one\n2. two\n\nAfter\n\n- three\n\n| a |\n| --- |\n\n");
        assert!(page.is_empty() && !page.is_in_list);
    }
}
