//! Where the lines of a page are that is stored as text: its lines were put together from pieces, and the pieces have places.

use std::cmp::Reverse;

use domain::reading::LinePlace;
use pdf_inspector::TextItem;

/// Beyond this many bytes of letters, or lines, a page gets no places: it is no page that people read.
const MOST_BYTES: usize = 64 << 10;
const MOST_LINES: usize = 500;
/// Pieces that are drawn in another order are looked for among so many, and so many make a line.
const MOST_PIECES: usize = 2_000;
const MOST_STEPS: usize = 100;
/// Letters reach below their line by this share of their size, and above it by that.
const BELOW: f32 = 0.25;
const ABOVE: f32 = 0.85;

/// The letters and digits of a page in the order of its pieces, each with its piece.
struct Letters<'a> {
    pieces: &'a [TextItem],
    text: String,
    /// For each byte of `text` the number of its piece.
    piece: Vec<usize>,
    /// For each piece the first byte of its letters.
    begins: Vec<usize>,
}

impl<'a> Letters<'a> {
    fn of(pieces: &'a [TextItem]) -> Self {
        let mut letters = Self { pieces, text: String::new(), piece: Vec::new(), begins: Vec::new() };
        for (nth, piece) in pieces.iter().enumerate() {
            letters.begins.push(letters.text.len());
            letters.text.push_str(&bare(&piece.text));
            letters.piece.resize(letters.text.len(), nth);
        }
        letters
    }

    /// The box around the letters from one byte to another: left, bottom, right, top, in points.
    fn bounds(&self, from: usize, to: usize) -> [f32; 4] {
        let (first, last) = (self.piece[from], self.piece[to - 1]);
        (first..=last).map(|nth| self.part(nth, from, to)).fold([f32::MAX, f32::MAX, f32::MIN, f32::MIN], around)
    }

    /// The box around those letters of a piece.
    fn part(&self, nth: usize, from: usize, to: usize) -> [f32; 4] {
        let piece = &self.pieces[nth];
        if piece.rotation != 0.0 {
            return [piece.x, piece.y, piece.x + piece.width, piece.y + piece.height];
        }
        let begin = self.begins[nth];
        let end = begin + self.letters(nth).len();
        let share = |at: usize| (at.clamp(begin, end) - begin) as f32 / (end - begin).max(1) as f32;
        let (left, right) = (piece.x + piece.width * share(from), piece.x + piece.width * share(to));
        [left, piece.y - BELOW * piece.height, right, piece.y + ABOVE * piece.height]
    }

    /// The box around pieces that are the line one after the other, wherever they were drawn: cells of a table, a line of one of several columns. None: most
    /// of it is not there.
    fn scattered(&self, line: &str, after: usize) -> Option<[f32; 4]> {
        if self.pieces.len() > MOST_PIECES {
            return None;
        }
        let mut rest = line;
        let mut next = self.piece.get(after).copied().unwrap_or(0);
        let mut bounds = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
        for _ in 0..MOST_STEPS {
            let begins_rest = |nth: &usize| !self.letters(*nth).is_empty() && rest.starts_with(self.letters(*nth));
            let fitting = (0..self.pieces.len()).filter(begins_rest);
            let Some(best) = fitting.max_by_key(|nth| (self.letters(*nth).len(), *nth >= next, Reverse(*nth))) else {
                break;
            };
            let begin = self.begins[best];
            bounds = around(bounds, self.part(best, begin, begin + self.letters(best).len()));
            rest = &rest[self.letters(best).len()..];
            next = best + 1;
        }
        (5 * rest.len() < line.len()).then_some(bounds)
    }

    /// The letters of a piece.
    fn letters(&self, nth: usize) -> &str {
        &self.text[self.begins[nth]..self.begins.get(nth + 1).copied().unwrap_or(self.text.len())]
    }

    /// Where letters are, after a byte if they are there, else anywhere.
    fn find(&self, letters: &str, after: usize) -> Option<usize> {
        let further = self.text.get(after..).and_then(|rest| rest.find(letters)).map(|at| after + at);
        further.or_else(|| self.text.find(letters))
    }
}

fn around(all: [f32; 4], one: [f32; 4]) -> [f32; 4] {
    [all[0].min(one[0]), all[1].min(one[1]), all[2].max(one[2]), all[3].max(one[3])]
}

/// The letters and digits of a text. Signs of Markdown, and hyphens at the ends of lines, are none.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The places of the lines of a text that are not empty, on a page of this width and height in points. Empty: none is known.
pub(crate) fn of_lines(text: &str, pieces: &[TextItem], (width, height): (f32, f32)) -> Vec<LinePlace> {
    let letters = Letters::of(pieces);
    if letters.text.len() > MOST_BYTES {
        return Vec::new();
    }
    let mut after = 0;
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()).take(MOST_LINES) {
        let wanted = bare(line);
        let whole = letters.find(&wanted, after).filter(|_| !wanted.is_empty());
        let bounds = match whole {
            Some(at) => {
                after = at + wanted.len();
                Some(letters.bounds(at, after))
            }
            None => letters.scattered(&wanted, after),
        };
        lines.push(bounds.map(|bounds| place(bounds, width, height)).unwrap_or_default());
    }
    if lines.iter().all(|line| line.width == 0.0) { Vec::new() } else { lines }
}

fn place([left, bottom, right, top]: [f32; 4], width: f32, height: f32) -> LinePlace {
    let share = |from: f32, to: f32, whole: f32| {
        let (from, to) = ((from / whole).clamp(0.0, 1.0), (to / whole).clamp(0.0, 1.0));
        (from, to - from)
    };
    let ((x, width), (y, height)) = (share(left, right, width), share(height - top, height - bottom, height));
    LinePlace { x, y, width, height }
}
