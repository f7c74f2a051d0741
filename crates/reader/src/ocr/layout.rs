//! The order in which the lines of a page are read: row by row, and column by column where columns are prose.

use super::frame::Frame;

/// A line of text, upright. Lengths are shares of nothing in particular, but of one picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub text: String,
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

/// Pieces side by side, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub text: String,
    /// Left, top, right, bottom.
    pub bounds: [f32; 4],
    /// Whether a paragraph begins with it.
    pub begins: bool,
}

/// A column has at least so many lines, of so many letters in the middle, and its lines fill so much of it.
const COLUMN_LINES: usize = 4;
const COLUMN_LETTERS: usize = 18;
const COLUMN_FILL: f32 = 0.6;
/// A gap this many times as wide as a line is high parts cells.
const CELL_GAP: f32 = 1.5;
/// A gap between lines that is this much of a line's height more than usual parts paragraphs.
const PARAGRAPH_GAP: f32 = 0.45;

impl Piece {
    /// A framed line, after the tilt of the page is taken out of where it lies.
    pub fn new(text: String, frame: &Frame, tilt: f32) -> Self {
        let (sin, cos) = tilt.sin_cos();
        let (x, y) = frame.center;
        let center = (x * cos + y * sin, y * cos - x * sin);
        let [left, top, right, bottom] = Frame { center, angle: frame.angle - tilt, ..*frame }.bounds();
        Self { text, left, top, right, bottom }
    }

    fn height(&self) -> f32 {
        self.bottom - self.top
    }

    fn width(&self) -> f32 {
        self.right - self.left
    }

    fn middle(&self) -> f32 {
        (self.top + self.bottom) / 2.0
    }

    /// Whether it stands on both sides of a gutter. Frames are not exact: the end of a line may reach into it.
    fn crosses(&self, gutter: f32) -> bool {
        gutter - self.left > self.height() && self.right - gutter > self.height()
    }
}

/// Puts pieces into rows in the order in which they are read. The numbers of a row's pieces come with it.
pub(crate) fn rows(pieces: &[Piece]) -> Vec<(Row, Vec<usize>)> {
    let mut ordered = Vec::new();
    order((0..pieces.len()).collect(), pieces, &mut ordered);
    ordered
}

fn order(numbers: Vec<usize>, pieces: &[Piece], out: &mut Vec<(Row, Vec<usize>)>) {
    let lined = lined_up(numbers, pieces);
    let Some(columns) = columns(&lined, pieces) else {
        return out.extend(block(&lined, pieces));
    };
    let (from, to) = columns.rows;
    if from > 0 {
        order(lined[..from].concat(), pieces, out);
    }
    let (left, right) = parted(&lined[from..to], columns.gutter, pieces);
    order(left, pieces, out);
    order(right, pieces, out);
    if to < lined.len() {
        order(lined[to..].concat(), pieces, out);
    }
}

/// Rows of pieces that stand side by side, from top to bottom.
fn lined_up(mut numbers: Vec<usize>, pieces: &[Piece]) -> Vec<Vec<usize>> {
    numbers.sort_by(|a, b| pieces[*a].middle().total_cmp(&pieces[*b].middle()));
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for number in numbers {
        let piece = &pieces[number];
        // Of the rows just above, the first beside which it stands without lying over one of its pieces.
        let beside = rows.iter_mut().rev().take(3).find(|row| {
            let stands = row.iter().all(|other| {
                let other = &pieces[*other];
                let shared = piece.bottom.min(other.bottom) - piece.top.max(other.top);
                shared > 0.5 * piece.height().min(other.height())
            });
            let is_free = row.iter().all(|other| {
                let other = &pieces[*other];
                let over = piece.right.min(other.right) - piece.left.max(other.left);
                over < 0.5 * piece.width().min(other.width())
            });
            stands && is_free
        });
        match beside {
            Some(row) => row.push(number),
            None => rows.push(vec![number]),
        }
    }
    for row in &mut rows {
        row.sort_by(|a, b| pieces[*a].left.total_cmp(&pieces[*b].left));
    }
    let top = |row: &[usize]| row.iter().map(|number| pieces[*number].middle()).sum::<f32>() / row.len() as f32;
    rows.sort_by(|a, b| top(a).total_cmp(&top(b)));
    rows
}

struct Columns {
    /// The rows that stand in columns, from the first to before the last.
    rows: (usize, usize),
    gutter: f32,
}

/// Finds the gutter that parts most lines into two columns of prose. A table has short cells, so it is none.
fn columns(rows: &[Vec<usize>], pieces: &[Piece]) -> Option<Columns> {
    let mut best: Option<(usize, Columns)> = None;
    let mut rights: Vec<f32> = rows.iter().filter(|row| row.len() > 1).flatten().map(|n| pieces[*n].right).collect();
    rights.sort_by(f32::total_cmp);
    rights.dedup_by(|a, b| (*a - *b).abs() < 1.0);
    for gutter in rights {
        let crosses = |row: &[usize]| row.iter().any(|n| pieces[*n].crosses(gutter));
        let mut from = 0;
        while from < rows.len() {
            let n_rows = rows[from..].iter().take_while(|row| !crosses(row)).count();
            let to = from + n_rows;
            let (left, right) = parted(&rows[from..to], gutter, pieces);
            let n_pieces = left.len() + right.len();
            let is_more = best.as_ref().is_none_or(|(most, _)| n_pieces > *most);
            if is_more && is_prose(&left, pieces) && is_prose(&right, pieces) {
                best = Some((n_pieces, Columns { rows: (from, to), gutter }));
            }
            from = to + 1;
        }
    }
    best.map(|(_, columns)| columns)
}

/// The lines left of a gutter, and those right of it.
fn parted(rows: &[Vec<usize>], gutter: f32, pieces: &[Piece]) -> (Vec<usize>, Vec<usize>) {
    rows.iter().flatten().partition(|number| (pieces[**number].left + pieces[**number].right) / 2.0 < gutter)
}

/// Whether these are the lines of a column: enough of them, long enough, and most as wide as the column.
fn is_prose(numbers: &[usize], pieces: &[Piece]) -> bool {
    if numbers.len() < COLUMN_LINES {
        return false;
    }
    let letters = median(numbers.iter().map(|n| pieces[*n].text.chars().count() as f32));
    let width = median(numbers.iter().map(|n| pieces[*n].width()));
    let left = numbers.iter().map(|n| pieces[*n].left).fold(f32::MAX, f32::min);
    let right = numbers.iter().map(|n| pieces[*n].right).fold(f32::MIN, f32::max);
    letters >= COLUMN_LETTERS as f32 && width >= COLUMN_FILL * (right - left)
}

/// Joins the pieces of each row, and says where paragraphs begin.
fn block(lined: &[Vec<usize>], pieces: &[Piece]) -> Vec<(Row, Vec<usize>)> {
    let mut rows: Vec<(Row, Vec<usize>)> = lined.iter().map(|row| (joined(row, pieces), row.clone())).collect();
    let gap = |pair: &[(Row, Vec<usize>)]| pair[1].0.bounds[1] - pair[0].0.bounds[3];
    let usual = median(rows.windows(2).map(gap));
    let height = median(rows.iter().map(|(row, _)| row.bounds[3] - row.bounds[1]));
    let begins: Vec<bool> = rows.windows(2).map(|pair| gap(pair) > usual + PARAGRAPH_GAP * height).collect();
    for (n, (row, _)) in rows.iter_mut().enumerate() {
        row.begins = n == 0 || begins[n - 1];
    }
    rows
}

fn joined(row: &[usize], pieces: &[Piece]) -> Row {
    let mut text = String::new();
    let mut bounds = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
    for number in row {
        let piece = &pieces[*number];
        if !text.is_empty() {
            text.push_str(if piece.left - bounds[2] > CELL_GAP * piece.height() { "\t" } else { " " });
        }
        text.push_str(&piece.text);
        bounds = [
            bounds[0].min(piece.left),
            bounds[1].min(piece.top),
            bounds[2].max(piece.right),
            bounds[3].max(piece.bottom),
        ];
    }
    Row { text, bounds, begins: false }
}

/// The middle one. Of none it is 0.
pub(crate) fn median(numbers: impl Iterator<Item = f32>) -> f32 {
    let mut numbers: Vec<f32> = numbers.collect();
    numbers.sort_by(f32::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a page: `lines` are left, top, width and text, each ten high.
    fn page(lines: &[(f32, f32, f32, &str)]) -> String {
        let piece = |(left, top, width, text): &(f32, f32, f32, &str)| Piece {
            text: (*text).into(),
            left: *left,
            top: *top,
            right: left + width,
            bottom: top + 10.0,
        };
        let pieces: Vec<Piece> = lines.iter().map(piece).collect();
        let begin = |row: &Row| if row.begins { "¶ " } else { "" };
        let lines: Vec<String> = rows(&pieces).iter().map(|(row, _)| format!("{}{}", begin(row), row.text)).collect();
        lines.join(" / ")
    }

    #[test]
    fn a_table_is_read_row_by_row_and_paragraphs_begin_after_gaps() {
        let table = [
            (300.0, 1.0, 40.0, "4.00"),
            (10.0, 0.0, 80.0, "Straw bale"),
            (10.0, 15.0, 60.0, "Wire"),
            (302.0, 13.0, 40.0, "5.00"),
            (75.0, 15.0, 30.0, "thin"),
            (10.0, 30.0, 60.0, "Nails"),
            (300.0, 30.0, 40.0, "6.00"),
            (10.0, 45.0, 60.0, "Sum"),
            (300.0, 45.0, 40.0, "15.00"),
            (10.0, 80.0, 200.0, "Due in a month."),
        ];
        assert_eq!(page(&table), "¶ Straw bale\t4.00 / Wire thin\t5.00 / Nails\t6.00 / Sum\t15.00 / ¶ Due in a month.");
    }

    #[test]
    fn columns_of_prose_are_read_one_after_the_other_below_a_title() {
        let mut lines = vec![(10.0, 0.0, 480.0, "A title over both of the columns")];
        for (left, texts) in [
            (10.0, ["left one, long enough", "left two, long enough", "left three, long one", "left four, long one"]),
            (260.0, ["right one, long enough", "right two, long enough", "right three, longer", "right four, longer"]),
        ] {
            let top = if left > 100.0 { 33.0 } else { 30.0 };
            lines.extend(texts.iter().enumerate().map(|(n, text)| (left, top + 15.0 * n as f32, 230.0, *text)));
        }
        lines.push((10.0, 120.0, 480.0, "A note below both of the columns"));
        let read = page(&lines);
        let place = |text: &str| read.find(text).expect("it is there");
        assert!(place("A title") < place("left one") && place("left four") < place("right one"), "{read}");
        assert!(place("right four") < place("A note"), "{read}");
    }

    #[test]
    fn a_tilted_page_has_level_rows() {
        let angle = 3_f32.to_radians();
        let (sin, cos) = angle.sin_cos();
        let frame = |u: f32, v: f32| Frame {
            center: (u * cos - v * sin, u * sin + v * cos),
            width: 100.0,
            height: 10.0,
            angle,
        };
        let pieces = [
            Piece::new("right".into(), &frame(900.0, 50.0), angle),
            Piece::new("left".into(), &frame(100.0, 50.0), angle),
            Piece::new("below".into(), &frame(100.0, 65.0), angle),
        ];
        let texts: Vec<String> = rows(&pieces).into_iter().map(|(row, _)| row.text).collect();
        assert_eq!(texts, ["left\tright", "below"]);
    }
}
