//! The lines of an invoice. A row is a line if two of its numbers multiply to the last one, whatever the columns are; or if it stands below a head that
//! names the columns.

use std::collections::HashSet;
use std::ops::Range;

use super::Decimal;
use super::FieldName;
use super::halves;
use super::labels::{Column, Label};
use super::piece::{Amount, Is, fold};
use super::sheet::Sheet;

/// Rows with more numbers are tables of another kind.
const MOST_NUMBERS: usize = 8;

/// More lines than that are no invoice's.
const MOST_LINES: usize = 2_000;

/// A value of a line, and the cell and the bytes where it stands.
#[derive(Clone, Debug)]
pub(super) struct Spot<T> {
    pub value: T,
    pub cell: usize,
    pub range: Range<usize>,
}

/// A line of an invoice.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub row: usize,
    pub description: Option<Spot<String>>,
    /// Other text was read into the description's place.
    pub is_mixed: bool,
    pub quantity: Option<Spot<Decimal>>,
    pub unit_price: Option<Spot<Amount>>,
    pub amount: Spot<Amount>,
}

#[derive(Default)]
pub(super) struct Items {
    pub items: Vec<Item>,
    /// Rows that head the lines.
    pub heads: HashSet<usize>,
    /// Rows that are lines and nothing else. In others sums may stand too.
    pub whole: HashSet<usize>,
}

/// Finds the lines of an invoice.
pub(super) fn items(sheet: &Sheet<'_>) -> Items {
    let (mut items, mut heads, mut whole) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut head: Option<Vec<(usize, Column)>> = None;
    for (nth, row) in sheet.rows.iter().enumerate() {
        let columns = columns(sheet, row.clone());
        if columns.len() >= 2 {
            heads.insert(nth);
            head = Some(columns);
            continue;
        }
        if !sheet.cells[row.start].in_table {
            head = None;
        }
        let line = if sheet.cells[row.start].in_table || row.len() > 1 {
            of_cells(sheet, nth, row.clone(), head.as_deref())
        } else {
            None
        };
        let is_in_table = line.is_some();
        for item in line.map_or_else(|| of_text(sheet, nth, row.clone()), |item| vec![item]) {
            if is_in_table && !has_labels(sheet, row.clone()) {
                whole.insert(nth);
            }
            items.push(item);
        }
    }
    if items.is_empty() {
        items = halves::joined(sheet);
    }
    items.truncate(MOST_LINES);
    Items { items, heads, whole }
}

/// The columns that a row names, if it names columns and nothing else.
fn columns(sheet: &Sheet<'_>, row: Range<usize>) -> Vec<(usize, Column)> {
    let mut columns = Vec::new();
    for cell in row {
        let pieces = &sheet.pieces[cell];
        if pieces.iter().any(|piece| matches!(piece.is, Is::Number(_) | Is::Date(_) | Is::Percent(_))) {
            return Vec::new();
        }
        let named = pieces.iter().filter_map(|piece| match piece.label()? {
            Label::Column(column) => Some(column),
            // "Total" heads the amounts, if other columns are named beside it.
            Label::Strong(FieldName::Net) | Label::Weak(FieldName::Total) => Some(Column::Amount),
            _ => None,
        });
        let col = sheet.cells[cell].col;
        columns.extend(named.map(|column| (col, column)));
    }
    let is_head = columns.iter().any(|(_, column)| !matches!(column, Column::Amount | Column::Rest));
    if is_head { columns } else { Vec::new() }
}

/// Whether sums or other fields are named in this row.
fn has_labels(sheet: &Sheet<'_>, row: Range<usize>) -> bool {
    row.flat_map(|cell| &sheet.pieces[cell])
        .any(|piece| piece.field().is_some_and(|name| name.shape() != super::Shape::Text))
}

/// Names of sums at the start of a row: it is none of the lines.
fn begins_with_sum(sheet: &Sheet<'_>, row: Range<usize>) -> bool {
    use FieldName::{AmountDue, Net, Paid, Subtotal, TaxAmount, Total};
    let first = row.flat_map(|cell| &sheet.pieces[cell]).next();
    matches!(first.and_then(|piece| piece.field()), Some(Net | Subtotal | TaxAmount | Total | Paid | AmountDue))
}

/// The line in a row of cells.
fn of_cells(sheet: &Sheet<'_>, nth: usize, row: Range<usize>, head: Option<&[(usize, Column)]>) -> Option<Item> {
    if begins_with_sum(sheet, row.clone()) {
        return None;
    }
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    let (mut is_mixed, first) = (has_labels(sheet, row.clone()), row.start);
    for cell in row.clone() {
        let pieces = &sheet.pieces[cell];
        let n_words = pieces.iter().skip(1).take_while(|piece| piece.is_word()).count();
        match pieces.first().map(|piece| &piece.is) {
            Some(Is::Number(amount)) if n_words <= 1 => {
                is_mixed |= pieces.iter().skip(1).any(|piece| !piece.is_word());
                numbers.push(Spot { value: *amount, cell, range: pieces[0].range.clone() });
            }
            Some(Is::Percent(_)) => {}
            // The names of sums are no description.
            Some(Is::Label(label, _)) if label.field().is_some_and(|name| name.shape() != super::Shape::Text) => {}
            Some(_) => texts.push(cell),
            None => {}
        }
    }
    if numbers.len() > MOST_NUMBERS {
        return None;
    }
    let amount = numbers.last().filter(|spot| spot.value.is_money())?.clone();
    let described = |before: usize| texts.iter().copied().rfind(|cell| *cell < before);
    let describe = |cell: usize| Spot {
        value: sheet.cells[cell].text.split_whitespace().collect::<Vec<_>>().join(" "),
        cell,
        range: sheet.cells[cell].at..sheet.cells[cell].at + sheet.cells[cell].text.len(),
    };
    if let Some((quantity, price)) = factors(&numbers) {
        let description = described(numbers[quantity].cell).or_else(|| described(amount.cell));
        let is_mixed = is_mixed && description == Some(first);
        return Some(Item {
            row: nth,
            description: description.map(describe),
            is_mixed,
            quantity: Some(Spot { value: numbers[quantity].value.value, ..empty(&numbers[quantity]) }),
            unit_price: Some(numbers[price].clone()),
            amount,
        });
    }
    // Without the product only the head tells the columns.
    let column = |cell: usize| head?.iter().find(|(col, _)| *col == sheet.cells[cell].col).map(|(_, column)| *column);
    let description = described(amount.cell)?;
    if column(amount.cell) != Some(Column::Amount) || column(description) != Some(Column::Description) {
        return None;
    }
    // Of sums that stand in the place of the last line's amount, that is the first.
    let is_first = || n_numbers(sheet, amount.cell) == 1 + n_sums(sheet, row.clone());
    if is_mixed && !(numbers.len() > 1 && is_first()) {
        return None;
    }
    let of = |wanted| numbers.iter().find(|spot| column(spot.cell) == Some(wanted));
    Some(Item {
        row: nth,
        description: Some(describe(description)),
        is_mixed: is_mixed && description == first,
        quantity: of(Column::Quantity).map(|spot| Spot { value: spot.value.value, ..empty(spot) }),
        unit_price: of(Column::UnitPrice).cloned(),
        amount,
    })
}

fn n_numbers(sheet: &Sheet<'_>, cell: usize) -> usize {
    sheet.pieces[cell].iter().filter(|piece| piece.number().is_some()).count()
}

/// The names of sums in a row.
fn n_sums(sheet: &Sheet<'_>, row: Range<usize>) -> usize {
    let named = row.flat_map(|cell| &sheet.pieces[cell]).filter_map(|piece| piece.field());
    named.filter(|name| name.shape() == super::Shape::Money).count()
}

fn empty(spot: &Spot<Amount>) -> Spot<Decimal> {
    Spot { value: Decimal::ZERO, cell: spot.cell, range: spot.range.clone() }
}

/// The positions of quantity and price, whose product is the last number. Those that stand last are tried first, a quantity before its price.
fn factors(numbers: &[Spot<Amount>]) -> Option<(usize, usize)> {
    let last = numbers.len().checked_sub(1)?;
    let product = |a: usize, b: usize| numbers[a].value.value.times(numbers[b].value.value);
    let holds =
        |a: usize, b: usize| product(a, b).is_some_and(|is| is.is_near(numbers[last].value.value, Decimal::CENT));
    let pairs = (0..last).rev().flat_map(|price| (0..price).rev().map(move |quantity| (quantity, price)));
    let (a, b) = pairs.into_iter().find(|(a, b)| holds(*a, *b))?;
    // A quantity has no currency, and mostly no cents.
    let is_price = |at: usize| numbers[at].value.is_money();
    Some(if is_price(a) && !is_price(b) { (b, a) } else { (a, b) })
}

/// Units that stand between a quantity and a price. Those of length also stand in descriptions.
const UNITS: &[&str] = &[
    "x", "pc", "pcs", "ea", "each", "unit", "units", "h", "hr", "hrs", "hour", "hours", "day", "days", "month",
    "months", "stk", "stck", "stuck", "st", "std", "stunden", "tage", "psch", "pauschal", "heure", "heures", "jour",
    "jours", "mois", "piece", "pieces", "u", "ud", "uds", "hora", "horas", "@",
];

/// Lines in running text: words, then three numbers, the last of which is the product of the others.
fn of_text(sheet: &Sheet<'_>, nth: usize, row: Range<usize>) -> Vec<Item> {
    let mut items = Vec::new();
    for cell in row {
        let pieces = &sheet.pieces[cell];
        let mut words: Option<Range<usize>> = None;
        let mut numbers: Vec<Spot<Amount>> = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            match &piece.is {
                Is::Number(amount) => {
                    numbers.push(Spot { value: *amount, cell, range: piece.range.clone() });
                    let is_number = |at: usize| pieces.get(at).is_some_and(|piece| piece.number().is_some());
                    let is_between = pieces.get(i + 1).is_some_and(|next| {
                        matches!(next.is, Is::Percent(_))
                            || UNITS.contains(&fold(sheet.text(cell, next.range.clone())).as_str())
                    });
                    let goes_on = is_number(i + 1) || is_between && is_number(i + 2);
                    if numbers.len() == 3
                        && amount.is_money()
                        && let (Some(described), Some((quantity, price))) = (words.clone(), factors(&numbers))
                    {
                        let text = sheet.text(cell, described.clone());
                        let value = text.split_whitespace().collect::<Vec<_>>().join(" ");
                        items.push(Item {
                            row: nth,
                            description: Some(Spot { value, cell, range: described }),
                            // The first words of a line of text may be something else.
                            is_mixed: items.is_empty() && pieces.len() > 12,
                            quantity: Some(Spot { value: numbers[quantity].value.value, ..empty(&numbers[quantity]) }),
                            unit_price: Some(numbers[price].clone()),
                            amount: numbers[2].clone(),
                        });
                        words = None;
                    } else if goes_on {
                        continue;
                    } else if numbers.iter().any(|spot| spot.value.is_money()) {
                        words = None;
                    }
                    numbers.clear();
                }
                Is::Word | Is::Label(..) if numbers.is_empty() => {
                    let from = words.as_ref().map_or(piece.range.start, |words| words.start);
                    words = Some(from..piece.range.end);
                }
                Is::Percent(_) | Is::Word | Is::Label(..) if !numbers.is_empty() => {} // a tax rate, or a unit
                Is::Date(_) | Is::Break | Is::Percent(_) | Is::Word | Is::Label(..) => {
                    words = None;
                    numbers.clear();
                }
            }
        }
    }
    items
}
