//! The place on a page of a file to which a link leads: that of a hit, or of a field.

use std::ops::Range;

use domain::papers;
use domain::reading::{LinePlace, Page};
use domain::shown::shown;
use domain::text;
use engine::memory::recall::Hit;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use store::files::fields::FieldRow;
use uuid::Uuid;

use super::Visitor;
use crate::api::error::ApiError;
use crate::api::extract::blank_is_none;
use crate::app::App;

/// As in the snippet of a hit.
const SNIPPET_CHARS: usize = 260;
/// The words of a hit that a link names.
const MOST_WORDS: usize = 8;
const MOST_WORD_CHARS: usize = 60;
/// A passage that is nearly the whole page marks nothing.
const MOST_SHARE: f32 = 0.8;

/// The part of a link that names a place on a page.
#[derive(Default, Deserialize)]
pub(crate) struct MarkQuery {
    /// A field, as `total` or `line_amount.2`.
    #[serde(default, deserialize_with = "blank_is_none")]
    field: Option<String>,
    /// A chunk that was found.
    #[serde(default, deserialize_with = "blank_is_none")]
    hit: Option<Uuid>,
    /// The words by which it was found.
    #[serde(default, deserialize_with = "blank_is_none")]
    words: Option<String>,
}

/// The address of a field's place.
pub(super) fn of_field(document: Uuid, page: i32, name: &str, ordinal: i32) -> String {
    address(document, page, &format!("field={}.{ordinal}", encoded(name)))
}

/// The address of a hit's place.
pub(super) fn of_hit(hit: &Hit, page: i32) -> String {
    let mut words: Vec<&str> = Vec::new();
    for part in hit.snippet.iter().filter(|part| part.is_match && part.text.chars().count() <= MOST_WORD_CHARS) {
        if words.len() < MOST_WORDS && !words.contains(&part.text.as_str()) {
            words.push(&part.text);
        }
    }
    let words = if words.is_empty() { String::new() } else { format!("&words={}", encoded(&words.join(" "))) };
    address(hit.document_id, page, &format!("hit={}{words}", hit.chunk_id))
}

fn address(document: Uuid, page: i32, mark: &str) -> String {
    format!("/documents/{document}?page={page}&{mark}#mark")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The passage to be marked on a page.
pub(super) enum Wanted {
    Quote(String),
    Hit { passage: String, words: Vec<String> },
}

impl Wanted {
    /// None: the link names nothing that is known.
    pub async fn of(
        query: &MarkQuery,
        fields: &[FieldRow],
        app: &App,
        visitor: &Visitor,
    ) -> Result<Option<Self>, ApiError> {
        if let Some((name, ordinal)) = query.field.as_deref().and_then(|field| field.rsplit_once('.')) {
            let field = fields.iter().find(|field| field.name == name && field.ordinal.to_string() == ordinal);
            return Ok(field.and_then(|field| field.quote.clone()).map(Self::Quote));
        }
        let Some(chunk) = query.hit else { return Ok(None) };
        let found = app.env.db.read(visitor, async |tx| store::memory::texts(tx, &[chunk]).await).await?;
        let words = query.words.as_deref().unwrap_or_default().split_whitespace();
        let words = words.take(2 * MOST_WORDS).map(str::to_lowercase).collect();
        Ok(found.into_iter().next().map(|chunk| Self::Hit { passage: chunk.text, words }))
    }

    /// The places in the text of a page, in order.
    fn ranges(&self, page: &str) -> Vec<Range<usize>> {
        match self {
            Self::Quote(quote) => papers::place(page, quote).into_iter().collect(),
            Self::Hit { passage, words } => {
                let Some(range) = papers::place(page, passage) else { return Vec::new() };
                let (begin, share) = (range.start, range.len() as f32 / page.len().max(1) as f32);
                let found = text::matches(&page[range.clone()], words, SNIPPET_CHARS);
                match found.is_empty() {
                    true if share > MOST_SHARE => Vec::new(),
                    true => vec![range],
                    false => found.into_iter().map(|found| begin + found.start..begin + found.end).collect(),
                }
            }
        }
    }
}

/// The text of a page in pieces, some of them marked, and the boxes of their lines on its picture.
pub(super) struct Marked {
    pub text: Vec<Piece>,
    pub boxes: Vec<LineBox>,
}

pub(super) struct Piece {
    pub text: String,
    pub is_marked: bool,
    /// The first that is marked: a link leads to it.
    pub is_first: bool,
}

/// A box on a picture, in ten-thousandths of its sides.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineBox {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

/// Marks what is wanted in the first `most_chars` characters of a page.
pub(super) fn marked(page: &Page, wanted: Option<&Wanted>, most_chars: usize) -> Marked {
    let whole = page.text.as_str();
    let ranges = wanted.map(|wanted| wanted.ranges(whole)).unwrap_or_default();
    let end = whole.char_indices().nth(most_chars).map_or(whole.trim_end_matches('\n').len(), |(end, _)| end);
    let mut text = Vec::new();
    let mut at = whole.len() - whole.trim_start_matches('\n').len();
    for range in &ranges {
        if range.start >= at && range.end <= end {
            push(&mut text, &whole[at..range.start], false);
            push(&mut text, &whole[range.clone()], true);
            at = range.end;
        }
    }
    push(&mut text, whole.get(at..end).unwrap_or_default(), false);
    if !whole[end..].trim_end_matches('\n').is_empty() {
        push(&mut text, "\n…", false);
    }
    Marked { text, boxes: boxes(page, &ranges) }
}

fn push(pieces: &mut Vec<Piece>, text: &str, is_marked: bool) {
    let safe = text.split('\n').map(|line| shown(&line.replace('\t', "    "))).collect::<Vec<_>>().join("\n");
    if !safe.is_empty() {
        let is_first = is_marked && pieces.iter().all(|piece| !piece.is_marked);
        pieces.push(Piece { text: safe, is_marked, is_first });
    }
}

/// The boxes of the lines in which something is marked.
fn boxes(page: &Page, ranges: &[Range<usize>]) -> Vec<LineBox> {
    let mut at = 0;
    let lines = page.text.split_inclusive('\n').map(|line| {
        at += line.len();
        at - line.len()..at - line.len() + line.trim_end_matches('\n').len()
    });
    let places = lines.filter(|line| !line.is_empty()).zip(&page.lines);
    let is_marked = |line: &Range<usize>| ranges.iter().any(|range| range.start < line.end && line.start < range.end);
    places.filter(|(line, place)| is_marked(line) && place.width > 0.0).map(|(_, place)| LineBox::new(place)).collect()
}

impl LineBox {
    /// A little larger than the line, so that it does not touch its letters.
    fn new(place: &LinePlace) -> Self {
        const MARGIN: f32 = 0.004;
        let share = |share: f32| (share.clamp(0.0, 1.0) * 10_000.0) as u32;
        let (x, y) = (share(place.x - MARGIN), share(place.y - MARGIN));
        let (right, bottom) = (share(place.x + place.width + MARGIN), share(place.y + place.height + MARGIN));
        Self { x, y, width: right.saturating_sub(x), height: bottom.saturating_sub(y) }
    }
}

#[cfg(test)]
mod tests {
    use domain::reading::ReadBy;

    use super::*;

    const TEXT: &str = "# Invoice\n\nThe late fee\tis 5 EUR.\n\nTotal: 805.00 EUR";

    fn page() -> Page {
        let line = |y| LinePlace { x: 0.1, y, width: 0.5, height: 0.02 };
        Page {
            number: 1,
            label: None,
            text: TEXT.into(),
            read_by: ReadBy::Text,
            confidence: None,
            trouble: None,
            aspect: Some(0.7),
            lines: vec![line(0.1), line(0.2), LinePlace::default()],
        }
    }

    fn shown(wanted: &Wanted) -> (String, Vec<u32>) {
        let marked = marked(&page(), Some(wanted), 1_000);
        let piece = |piece: Piece| if piece.is_marked { format!("[{}]", piece.text) } else { piece.text };
        (marked.text.into_iter().map(piece).collect(), marked.boxes.iter().map(|place| place.y).collect())
    }

    fn hit(passage: &str, words: &str) -> Wanted {
        let words = words.split_whitespace().map(str::to_owned).collect();
        Wanted::Hit { passage: passage.into(), words }
    }

    #[test]
    fn the_place_of_a_field_or_a_hit_is_marked_in_the_text_and_on_its_line() {
        let quote = |quote: &str| Wanted::Quote(quote.into());
        for (wanted, text, boxes) in [
            (quote("fee is 5"), "# Invoice\n\nThe late [fee    is 5] EUR.\n\nTotal: 805.00 EUR", vec![1_960]),
            // The line of the total has no place.
            (quote("Total: 805.00"), "# Invoice\n\nThe late fee    is 5 EUR.\n\n[Total: 805.00] EUR", vec![]),
            (quote("elsewhere"), "# Invoice\n\nThe late fee    is 5 EUR.\n\nTotal: 805.00 EUR", vec![]),
            (
                hit("Invoice The late fee is 5", "fee"),
                "# Invoice\n\nThe late [fee]    is 5 EUR.\n\nTotal: 805.00 EUR",
                vec![1_960],
            ),
            // Found by its meaning: the passage.
            (
                hit("Invoice The late", "x"),
                "# [Invoice\n\nThe late] fee    is 5 EUR.\n\nTotal: 805.00 EUR",
                vec![960, 1_960],
            ),
            // Nearly everything: nothing is told by marking that.
            (hit(TEXT, "x"), "# Invoice\n\nThe late fee    is 5 EUR.\n\nTotal: 805.00 EUR", vec![]),
        ] {
            assert_eq!(shown(&wanted), (text.to_owned(), boxes));
        }
    }

    #[test]
    fn a_long_page_is_cut_and_what_it_says_is_made_safe() {
        let long = Page { text: "a\u{202e}b\ncdef".into(), ..page() };
        let text = |most| marked(&long, None, most).text.into_iter().map(|piece| piece.text).collect::<String>();
        assert_eq!(text(100), "a⟨U+202E⟩b\ncdef");
        assert_eq!(text(5), "a⟨U+202E⟩b\nc\n…");
    }

    #[test]
    fn an_address_names_a_field() {
        let id = Uuid::nil();
        assert_eq!(of_field(id, 2, "due_on", 1), format!("/documents/{id}?page=2&field=due%5Fon.1#mark"));
    }
}
