//! Labels and their values. A value stands behind its label, in a cell to the right of it, or below it; and several labels may stand together before as
//! many values. A value is taken only where it has the type that its label asks for.

use std::ops::Range;

use super::labels::Label;
use super::piece::{Is, Piece};
use super::sheet::Sheet;
use super::{Decimal, FieldName, Shape};
use crate::papers::dates::Day;
use crate::papers::piece::Amount;

/// A value stands no more cells to the right of its label.
const MOST_CELLS: usize = 12;

/// A value that a label names.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub name: FieldName,
    /// The tax rate beside the label.
    pub rate: Option<Decimal>,
    pub is_strong: bool,
    pub value: Value,
    pub cell: usize,
    pub range: Range<usize>,
    pub quote: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Day(Day),
    Amount(Amount),
}

/// A label with where it stands.
#[derive(Clone, Copy)]
struct Named {
    name: FieldName,
    rate: Option<Decimal>,
    is_strong: bool,
    at: usize,
}

/// Finds the values of all labels outside the lines of an invoice. `is_line` tells of a row whether it is one, or heads them.
pub(super) fn find(sheet: &Sheet<'_>, is_line: &dyn Fn(usize) -> bool) -> Vec<Found> {
    let mut found = Vec::new();
    for cell in 0..sheet.cells.len() {
        if is_line(sheet.row(cell)) {
            continue;
        }
        let pieces = &sheet.pieces[cell];
        let mut i = 0;
        while i < pieces.len() {
            let run = run(&pieces[i..]);
            if run.is_empty() {
                i += 1;
                continue;
            }
            let next = i + run.len();
            if next == pieces.len() {
                elsewhere(sheet, cell, &run, i == 0, &mut found);
            } else {
                behind(sheet, cell, &run, next, &mut found);
            }
            i = next;
        }
    }
    found
}

/// The labels of fields at the start of these pieces.
fn run(pieces: &[Piece]) -> Vec<Named> {
    let named = pieces.iter().map_while(|piece| match piece.is {
        Is::Label(label, rate) if label.field().is_some_and(|name| !is_party(name)) => Some(Named {
            name: label.field()?,
            rate,
            is_strong: matches!(label, Label::Strong(_)),
            at: piece.range.start,
        }),
        _ => None,
    });
    let mut named: Vec<Named> = named.collect();
    // A subject may be made of words that are labels elsewhere.
    if let Some(subject) = named.iter().position(|named| named.name == FieldName::Subject) {
        named.truncate(subject + 1);
    }
    named
}

pub(super) fn is_party(name: FieldName) -> bool {
    matches!(name, FieldName::Supplier | FieldName::Customer | FieldName::Party)
}

/// The values behind labels in the same cell: one for each of them, or one for the last.
fn behind(sheet: &Sheet<'_>, cell: usize, run: &[Named], next: usize, found: &mut Vec<Found>) {
    if run.len() > 1
        && let Some(all) = sequence(sheet, cell, run, next)
    {
        found.extend(all.0);
    } else if let Some(last) = run.last()
        && (owns(run) || has_colon(sheet, cell, next))
        && let Some((one, end)) = take(sheet, cell, *last, next)
    {
        let issued = dated(sheet, cell, &one, end);
        found.push(one);
        found.extend(issued);
    }
}

/// Whether a value behind these labels belongs to the last: none of the others names another value of that type.
fn owns(run: &[Named]) -> bool {
    let Some((last, others)) = run.split_last() else { return false };
    others.iter().all(|other| other.name == last.name || other.name.shape() != last.name.shape())
}

/// Whether a colon stands before the value at piece `next`.
fn has_colon(sheet: &Sheet<'_>, cell: usize, next: usize) -> bool {
    let pieces = &sheet.pieces[cell];
    sheet.text(cell, pieces[next - 1].range.end..pieces[next].range.start).contains(':')
}

/// The date behind a number: "Rechnung Nr. 17 vom 3. März 2026".
fn dated(sheet: &Sheet<'_>, cell: usize, number: &Found, end: usize) -> Option<Found> {
    let [word, date, ..] = sheet.pieces[cell].get(end..)? else { return None };
    let is_of = matches!(sheet.text(cell, word.range.clone()), "vom" | "du" | "dated" | "of" | "del" | "de");
    let Is::Date(day) = date.is else { return None };
    let is_number = number.name == FieldName::Number && is_of;
    let quote = sheet.quote(cell, number.range.start, date.range.clone());
    is_number.then(|| Found {
        name: FieldName::IssuedOn,
        value: Value::Day(day),
        range: date.range.clone(),
        quote,
        ..number.clone()
    })
}

/// One value for each label, in order. Returns them with the position behind the last.
fn sequence(sheet: &Sheet<'_>, cell: usize, run: &[Named], from: usize) -> Option<(Vec<Found>, usize)> {
    let (mut all, mut at) = (Vec::with_capacity(run.len()), from);
    for named in run {
        let (one, next) = take(sheet, cell, *named, at)?;
        all.push(one);
        at = next;
    }
    // One more value of a kind: a label was not understood, and the values may belong to others.
    let is_more = match sheet.pieces[cell].get(at).map(|piece| &piece.is) {
        Some(Is::Date(_)) => run.iter().any(|named| named.name.shape() == Shape::Date),
        Some(Is::Number(amount)) => amount.is_money() && run.iter().any(|named| named.name.shape() == Shape::Money),
        _ => false,
    };
    (!is_more).then_some((all, at))
}

/// The values of labels at the end of a cell: in the cell to the right, or below.
fn elsewhere(sheet: &Sheet<'_>, cell: usize, run: &[Named], is_all: bool, found: &mut Vec<Found>) {
    let right = sheet.right_of(cell);
    if run.iter().all(|named| named.name.shape() == Shape::Money) {
        let values = right
            .clone()
            .take(MOST_CELLS)
            .take_while(|right| sheet.pieces[*right].first().is_some_and(|piece| piece.label().is_none()));
        let with_sums: Vec<usize> = values.filter(|right| !sums(&sheet.pieces[*right]).is_empty()).collect();
        // Of several cells that one which has as many sums as there are labels.
        let mut fitting = with_sums.iter().copied().filter(|cell| sheet.pieces[*cell].len() == run.len());
        let fitting = (run.len() > 1).then(|| fitting.next().filter(|_| fitting.next().is_none())).flatten();
        let taken = match with_sums[..] {
            _ if fitting.is_some() => fitting.and_then(|cell| of_sums(sheet, cell, run)),
            [one] => of_sums(sheet, one, run),
            [base, tax] if run.len() == 1 => of_rate(sheet, base, tax, run[0]),
            _ => None,
        };
        if let Some(taken) = taken {
            found.extend(taken);
            return;
        }
    } else if let Some(next) = right.clone().next()
        && let Some((all, _)) = sequence(sheet, next, run, 0)
    {
        found.extend(all);
        return;
    }
    if is_all
        && let Some(below) = sheet.below(cell)
        && let Some((all, end)) = sequence(sheet, below, run, 0)
        && end == sheet.pieces[below].len()
    {
        found.extend(all);
    }
}

/// The sums of money in a cell that has nothing else, or nothing else before them.
fn sums(pieces: &[Piece]) -> Vec<usize> {
    let is_sum = |piece: &&Piece| piece.number().is_some_and(Amount::is_money);
    let n = pieces.iter().take_while(is_sum).count();
    if n == pieces.len() { (0..n).collect() } else { Vec::new() }
}

/// As many sums as labels. One more may stand before them: that of a line above.
fn of_sums(sheet: &Sheet<'_>, cell: usize, run: &[Named]) -> Option<Vec<Found>> {
    let sums = sums(&sheet.pieces[cell]);
    let extra = sums.len().checked_sub(run.len()).filter(|extra| *extra <= 1)?;
    run.iter().zip(&sums[extra..]).map(|(named, at)| take(sheet, cell, *named, *at).map(|(one, _)| one)).collect()
}

/// A tax beside the amount that it is of.
fn of_rate(sheet: &Sheet<'_>, base: usize, tax: usize, named: Named) -> Option<Vec<Found>> {
    let first = |cell: usize| sheet.pieces[cell].first()?.number();
    let expected = first(base)?.value.percent(named.rate?)?;
    let holds = first(tax)?.value.is_near(expected, Decimal::CENT);
    holds.then(|| take(sheet, tax, named, 0).map(|(one, _)| vec![one])).flatten()
}

/// The value at piece `at` of a cell, if it is of the label's type, and the position behind it.
fn take(sheet: &Sheet<'_>, cell: usize, named: Named, at: usize) -> Option<(Found, usize)> {
    let pieces = &sheet.pieces[cell];
    let piece = pieces.get(at)?;
    let (value, range) = match (named.name.shape(), &piece.is) {
        (Shape::Date, Is::Date(day)) => (Value::Day(*day), piece.range.clone()),
        (Shape::Money, Is::Number(amount)) if amount.is_money() => (Value::Amount(*amount), piece.range.clone()),
        (Shape::Text, _) => text(sheet, cell, named, piece)?,
        _ => return None,
    };
    let n = pieces[at..].iter().take_while(|piece| piece.range.start < range.end).count();
    let next = at + n;
    let quote = sheet.quote(cell, named.at, range.clone());
    let Named { name, rate, is_strong, .. } = named;
    Some((Found { name, rate, is_strong, value, cell, range, quote }, next))
}

/// A text that a label names: a number with or without letters, or the rest of the line.
fn text(sheet: &Sheet<'_>, cell: usize, named: Named, piece: &Piece) -> Option<(Value, Range<usize>)> {
    let end = sheet.cells[cell].at + sheet.cells[cell].text.len();
    let start = piece.range.start;
    let rest = sheet.text(cell, start..end);
    let len = match named.name {
        FieldName::Subject => rest.trim_end().len(),
        FieldName::VatId | FieldName::CustomerVatId => vat_id(rest)?,
        FieldName::Iban | FieldName::Currency => return None, // these are found wherever they stand
        _ if matches!(piece.is, Is::Date(_) | Is::Percent(_) | Is::Break) => return None,
        _ => ident(rest)?,
    };
    let is_label = piece.label().is_some_and(|label| matches!(label, Label::Strong(_) | Label::Other));
    if is_label && named.name != FieldName::Subject || len == 0 || len > 150 {
        return None;
    }
    Some((Value::Text(rest[..len].split_whitespace().collect::<Vec<_>>().join(" ")), start..start + len))
}

fn chunk(text: &str) -> &str {
    let chunk = text.split(char::is_whitespace).next().unwrap_or_default();
    chunk.trim_end_matches(['.', ',', ';', ':', ')', '*'])
}

/// The length of a number such as "2041", "RE-2026/9843" or "RE 2041" at the start of a text.
fn ident(text: &str) -> Option<usize> {
    let first = chunk(text);
    let is_prefix = (1..=4).contains(&first.len()) && first.bytes().all(|b| b.is_ascii_uppercase());
    let has_digit = |text: &str| text.bytes().any(|b| b.is_ascii_digit());
    let is_ident = |text: &str| {
        has_digit(text) && text.len() <= 40 && text.chars().all(|c| c.is_alphanumeric() || "-/._#+:".contains(c))
    };
    if is_prefix && text[first.len()..].starts_with(' ') {
        let second = chunk(&text[first.len() + 1..]);
        let starts = second.starts_with(|c: char| c.is_ascii_digit());
        return (starts && is_ident(second)).then_some(first.len() + 1 + second.len());
    }
    is_ident(first).then_some(first.len())
}

/// The length of a VAT number at the start of a text: "GB813774399", "GB 813 7743 99", "CHE-639.977.241 MWST".
fn vat_id(text: &str) -> Option<usize> {
    let mut end = chunk(text).len();
    let n_digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    while n_digits(&text[..end]) < 9 {
        let Some(more) = text[end..].strip_prefix(' ').map(chunk) else { break };
        if more.is_empty() || more.bytes().any(|b| !b.is_ascii_digit() && b != b'.') {
            break;
        }
        end += 1 + more.len();
    }
    let written = &text[..end];
    let is_one = written.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '-'));
    ((7..=15).contains(&n_digits(written)) && is_one && written.len() <= 24).then_some(end)
}
