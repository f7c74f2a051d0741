//! The names of those between whom a paper goes.

use std::ops::Range;

use super::FieldName;
use super::find::is_party;
use super::piece::{Is, Piece, fold, tokens};
use super::sheet::Sheet;
use crate::reading::Page;

/// A name and how it was found.
#[derive(Clone, Debug)]
pub(super) struct Party {
    pub name: String,
    pub cell: usize,
    pub range: Range<usize>,
    /// From where its label stands.
    pub from: usize,
    /// The reason why it may be wrong.
    pub doubt: Option<&'static str>,
}

const NO_END: &str = "the name and what follows it stand in one line";
const NO_LABEL: &str = "the name stands at the top, and the paper does not say that it is the sender's";
/// The most words of a name.
const LONGEST: usize = 9;

/// Legal forms of companies, without dots. Those of two letters are written in capitals.
const FORMS: &[&str] = &[
    "ltd",
    "limited",
    "llp",
    "plc",
    "llc",
    "inc",
    "incorporated",
    "corp",
    "corporation",
    "gmbh",
    "ag",
    "kg",
    "ohg",
    "ug",
    "gbr",
    "kgaa",
    "ev",
    "eg",
    "se",
    "sarl",
    "sas",
    "sasu",
    "sa",
    "eurl",
    "sci",
    "sl",
    "slu",
    "slp",
    "bv",
    "nv",
    "srl",
    "spa",
    "oy",
    "ab",
    "aps",
    "pty",
    "mbh",
];

fn is_form(word: &str) -> bool {
    let bare: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
    let is_known = FORMS.contains(&fold(&bare).as_str());
    is_known && (bare.len() > 2 || bare.chars().all(char::is_uppercase)) || word == "Co." || word == "Co"
}

/// Finds the one whom labels of this name introduce.
pub(super) fn labelled(sheet: &Sheet<'_>, wanted: FieldName) -> Option<Party> {
    (0..sheet.cells.len()).find_map(|cell| {
        let pieces = &sheet.pieces[cell];
        let i =
            pieces.iter().position(|piece| piece.field() == Some(wanted)).filter(|i| introduces(sheet, cell, *i))?;
        let from = pieces[i].range.start;
        // "From Bill to": two labels, then two names.
        let is_label = |at: Option<&Piece>| at.and_then(Piece::field).is_some_and(is_party);
        let before = i.checked_sub(1).is_some_and(|at| is_label(pieces.get(at)));
        if before || is_label(pieces.get(i + 1)) {
            let next = if before { i + 1 } else { i + 2 };
            return of_two(sheet, cell, next, usize::from(before), from);
        }
        match pieces.get(i + 1) {
            Some(next) if matches!(next.is, Is::Word) => {
                name(sheet, cell, next.range.start).map(|party| Party { from, ..party })
            }
            Some(_) => behind_another(sheet, cell, i + 1).map(|party| Party { from, ..party }),
            None => beside(sheet, cell, i == 0).map(|party| Party { from, ..party }),
        }
    })
}

/// Whether a label introduces a name, and is not a word of a sentence: it stands at the beginning, or has a colon.
fn introduces(sheet: &Sheet<'_>, cell: usize, at: usize) -> bool {
    let pieces = &sheet.pieces[cell];
    let end = sheet.cells[cell].at + sheet.cells[cell].text.len();
    let has_colon = sheet.text(cell, pieces[at].range.end..end).trim_start().starts_with(':');
    has_colon || pieces[..at].iter().all(|piece| piece.field().is_some_and(is_party))
}

/// A name behind another label and its value, as lines of two columns that were read as one have it. Only a legal form tells that it is whole.
fn behind_another(sheet: &Sheet<'_>, cell: usize, label: usize) -> Option<Party> {
    let pieces = &sheet.pieces[cell];
    let value = pieces.get(label + 1).filter(|_| pieces[label].field().is_some())?;
    let end = sheet.cells[cell].at + sheet.cells[cell].text.len();
    let chunk = match value.is {
        Is::Date(_) => value.range.end,
        _ => value.range.start + sheet.text(cell, value.range.start..end).split(' ').next().map_or(0, str::len),
    };
    let next = pieces.iter().find(|piece| piece.range.start >= chunk).filter(|piece| piece.is_word())?;
    let party = name(sheet, cell, next.range.start)?;
    let is_whole = with_form(&party.name) == Some(party.name.len());
    Some(Party { doubt: party.doubt.or((!is_whole).then_some(NO_END)), ..party })
}

/// The name in the cell to the right, or below.
fn beside(sheet: &Sheet<'_>, cell: usize, is_all: bool) -> Option<Party> {
    let begins_with_word = |cell: &usize| sheet.pieces[*cell].first().is_some_and(Piece::is_word);
    let right = sheet.right_of(cell).next().filter(begins_with_word);
    let next = right.or_else(|| sheet.below(cell).filter(|_| is_all).filter(begins_with_word))?;
    name(sheet, next, sheet.cells[next].at)
}

/// One of two names that stand behind each other. Only legal forms tell where they end.
fn of_two(sheet: &Sheet<'_>, cell: usize, next: usize, nth: usize, from: usize) -> Option<Party> {
    let (cell, start) = match sheet.pieces[cell].get(next) {
        Some(piece) => (cell, piece.range.start),
        None => sheet.right_of(cell).next().map(|right| (right, sheet.cells[right].at))?,
    };
    let end = sheet.cells[cell].at + sheet.cells[cell].text.len();
    let first = with_form(sheet.text(cell, start..end))?;
    let between = start + first + sheet.text(cell, start + first..end).len()
        - sheet.text(cell, start + first..end).trim_start().len();
    let second = with_form(sheet.text(cell, between..end));
    let range = if nth == 0 { start..start + first } else { between..between + second? };
    let doubt = second.is_none().then_some(NO_END);
    Some(Party { name: sheet.text(cell, range.clone()).to_owned(), cell, range, from, doubt })
}

/// The length of a name that ends with a legal form: "Holzbau Brunner GmbH & Co. KG".
fn with_form(text: &str) -> Option<usize> {
    let mut end = None;
    for (n, (at, word)) in words(text).take(LONGEST).enumerate() {
        let belongs = is_form(word) || end.is_some() && matches!(word, "&" | "+" | "und" | "and");
        match end {
            None if n > 0 && is_form(word) => end = Some(at + word.len()),
            Some(_) if is_form(word) => end = Some(at + word.len()),
            Some(_) if belongs => {}
            Some(_) => break,
            None if word.starts_with(|c: char| c.is_ascii_digit()) || word == "·" => return None,
            None => {}
        }
        if end.is_some() && word.ends_with(',') {
            break;
        }
    }
    end.map(|end| text[..end].trim_end_matches([',', ';', ':']).len())
}

/// Words with where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// The name at byte `start` of a page, in this cell.
fn name(sheet: &Sheet<'_>, cell: usize, start: usize) -> Option<Party> {
    let pieces = &sheet.pieces[cell];
    let end = sheet.cells[cell].at + sheet.cells[cell].text.len();
    let stop = pieces.iter().filter(|piece| piece.range.start > start).find(|piece| {
        matches!(piece.is, Is::Label(label, _) if label.field().is_some())
            || matches!(piece.is, Is::Break | Is::Date(_))
    });
    let end = stop.map_or(end, |piece| piece.range.start);
    let text = sheet.text(cell, start..end);
    let given = |len: usize, doubt| {
        let name = text[..len].trim_end_matches([',', ' ', '-', '·', ':']);
        let is_name = name.chars().any(char::is_alphabetic) && name.len() <= 120;
        is_name.then(|| Party { name: name.to_owned(), cell, range: start..start + name.len(), from: start, doubt })
    };
    if let Some(len) = with_form(text) {
        return given(len, None);
    }
    let n_words = words(text).count();
    let has_digits = text.bytes().any(|b| b.is_ascii_digit());
    if n_words <= 6 && !has_digits {
        return given(text.trim_end().len(), None);
    }
    let (street, is_street) = street(text)?;
    given(street, (!is_street).then_some(NO_END))
}

/// Where a street begins behind a name: at the word before a number if that is a street's, else at the number, which is a guess.
fn street(text: &str) -> Option<(usize, bool)> {
    const ENDS: &[&str] = &["strasse", "str", "weg", "gasse", "platz", "allee", "ring", "damm", "ufer", "hof", "markt"];
    let mut last: Option<(usize, &str)> = None;
    for (at, word) in words(text).take(LONGEST + 3) {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let folded = last.map(|(_, word)| fold(word)).unwrap_or_default();
            let is_street =
                ENDS.iter().any(|end| folded.trim_end_matches('.').ends_with(end) && folded.len() > end.len() + 2);
            return match last {
                Some((before, _)) if is_street && before > 0 => Some((before, true)),
                Some(_) => Some((at, false)),
                None => None,
            };
        }
        last = Some((at, word));
    }
    None
}

/// The name at the top of the first page.
pub(super) fn at_top(sheet: &Sheet<'_>) -> Option<Party> {
    let first = sheet.cells.first()?;
    let page = first.page.number;
    let top = sheet.cells.iter().enumerate().take(4).filter(|(_, cell)| cell.page.number == page && !cell.in_table);
    let mut top = top.filter(|(nth, _)| sheet.pieces[*nth].first().is_some_and(Piece::is_word));
    let (nth, cell) = top.next()?;
    let party = name(sheet, nth, cell.at)?;
    let is_parted = sheet.pieces[nth].iter().filter(|piece| matches!(piece.is, Is::Break)).count() >= 2;
    let is_sure = with_form(&party.name) == Some(party.name.len()) || is_parted;
    // Without a sign of a name only a line of its own is one.
    if !is_sure && party.range.len() < cell.text.len() {
        return None;
    }
    Some(Party { doubt: party.doubt.or((!is_sure).then_some(NO_LABEL)), ..party })
}

/// The parties of a contract: "between A and B". Returns their places on the page.
pub(super) fn between(page: &Page) -> Option<[Range<usize>; 2]> {
    let text = &page.text[..page.text.floor_char_boundary(20_000)];
    let tokens = tokens(text, 0);
    let is_conjunction = |word: &str| matches!(word, "and" | "und" | "et" | "y");
    let name = |from: usize| {
        let mut end = from;
        while let Some(token) = tokens.get(end).filter(|_| end - from < 12) {
            let parts = end > from && text[tokens[end - 1].range.end..token.range.start].contains("\n\n");
            if parts || matches!(token.word.as_str(), "," | "(" | ";" | "*" | "–" | "—") || is_conjunction(&token.word)
            {
                break;
            }
            end += 1;
        }
        let range = tokens.get(from)?.range.start..tokens.get(end.checked_sub(1)?)?.range.end;
        let is_name = end > from && end - from < 12 && text[range.clone()].starts_with(char::is_uppercase);
        is_name.then_some((range, end))
    };
    let starts =
        tokens.iter().enumerate().filter(|(_, token)| matches!(token.word.as_str(), "between" | "zwischen" | "entre"));
    starts.take(5).find_map(|(at, _)| {
        let skip = |at: usize| {
            at + tokens[at..]
                .iter()
                .take(3)
                .take_while(|token| {
                    matches!(token.word.as_str(), ":" | "*" | "der" | "dem" | "the" | "la" | "le" | "el")
                })
                .count()
        };
        let (first, end) = name(skip(at + 1))?;
        let joint = tokens[end..].iter().take(80).position(|token| is_conjunction(&token.word))?;
        let (second, _) = name(skip(end + joint + 1))?;
        Some([first, second])
    })
}
