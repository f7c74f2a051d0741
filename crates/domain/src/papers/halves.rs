//! Lines whose table was read as two: descriptions and quantities in one, prices and amounts in another. They belong together if there are as many of
//! both, and every product is right.

use super::items::{Item, Spot};
use super::piece::{Amount, Is};
use super::sheet::Sheet;
use super::{Decimal, Shape};

/// A row with a description and a quantity.
struct Left {
    cell: usize,
    quantity: Spot<Amount>,
}

/// A row with a price and an amount, and nothing else before them.
struct Right {
    row: usize,
    price: Spot<Amount>,
    amount: Spot<Amount>,
}

/// Joins the halves. One line alone proves nothing.
pub(super) fn joined(sheet: &Sheet<'_>) -> Vec<Item> {
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    for (nth, row) in sheet.rows.iter().enumerate() {
        let first = |cell: usize| {
            let piece = sheet.pieces[cell].first()?;
            Some(Spot { value: piece.number()?, cell, range: piece.range.clone() })
        };
        let is_sum = |cell: usize| {
            let named = sheet.pieces[cell].first().and_then(|piece| piece.field());
            named.is_some_and(|name| name.shape() != Shape::Text)
        };
        let cells: Vec<usize> = row.clone().filter(|cell| !is_sum(*cell)).take(5).collect();
        match cells[..] {
            [text, number] if is_text(sheet, text) => {
                let quantity = first(number).filter(|spot| !spot.value.is_money());
                lefts.extend(quantity.map(|quantity| Left { cell: text, quantity }));
            }
            [price, amount] => {
                let both = first(price)
                    .zip(first(amount))
                    .filter(|(price, amount)| price.value.is_money() && amount.value.is_money() && !is_sum(row.start));
                rights.extend(both.map(|(price, amount)| Right { row: nth, price, amount }));
            }
            _ => {}
        }
    }
    let holds = |(left, right): (&Left, &Right)| {
        let product = left.quantity.value.value.times(right.price.value.value);
        product.is_some_and(|product| product.is_near(right.amount.value.value, Decimal::CENT))
    };
    if lefts.len() < 2 || lefts.len() != rights.len() || !lefts.iter().zip(&rights).all(holds) {
        return Vec::new();
    }
    lefts.into_iter().zip(rights).map(|(left, right)| item(sheet, left, right)).collect()
}

fn is_text(sheet: &Sheet<'_>, cell: usize) -> bool {
    sheet.pieces[cell].first().is_some_and(|piece| !matches!(piece.is, Is::Number(_) | Is::Date(_) | Is::Percent(_)))
}

fn item(sheet: &Sheet<'_>, left: Left, right: Right) -> Item {
    let cell = &sheet.cells[left.cell];
    let value = cell.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Spot { value: quantity, cell: of_quantity, range } = left.quantity;
    Item {
        row: right.row,
        description: Some(Spot { value, cell: left.cell, range: cell.at..cell.at + cell.text.len() }),
        is_mixed: false,
        quantity: Some(Spot { value: quantity.value, cell: of_quantity, range }),
        unit_price: Some(right.price),
        amount: right.amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::tests::page;

    #[test]
    fn halves_are_joined_if_every_product_is_right() {
        let left = "|Item|Quantity|\n|---|---|\n|Rope|2|\n|Straw bale|4|\n\n";
        for (right, n) in [
            ("|Price|Amount|\n|---|---|\n|$5.00|$10.00|\n|$3.00|$12.00|\n|Subtotal|$22.00|", 2),
            ("|Price|Amount|\n|---|---|\n|$5.00|$10.00|\n|$3.00|$13.00|", 0),
            ("|Price|Amount|\n|---|---|\n|$5.00|$10.00|", 0),
            ("", 0),
        ] {
            let pages = [page(&format!("{left}{right}"))];
            let items = joined(&Sheet::of(&pages));
            assert_eq!(items.len(), n, "{right}");
            assert!(items.iter().all(|item| item.description.is_some() && item.quantity.is_some()));
        }
    }
}
