//! The arithmetic of papers. What adds up confirms the fields that take part; of what does not, those are doubtful that least else confirms.

use super::{Decimal, Field, FieldName};

use FieldName::*;

/// A sum that a paper must keep: the fields that take part, and what is said if it does not hold.
struct Equation {
    fields: Vec<usize>,
    holds: bool,
    why: String,
    /// A sum that others confirm is not in doubt: lines are left out more easily than a sum is misread.
    whole: Option<usize>,
}

/// Checks the fields of a paper against each other.
pub(super) fn check(fields: &mut [Field]) {
    rename_subtotal(fields);
    let mut equations = lines(fields);
    equations.extend(whole(fields));
    equations.extend(rates(fields));
    equations.extend(sum_of_lines(fields));
    equations.extend(due(fields));
    equations.extend(balance(fields));
    let mut confirmed = vec![0_u32; fields.len()];
    for equation in equations.iter().filter(|equation| equation.holds) {
        for field in &equation.fields {
            confirmed[*field] += 1;
        }
    }
    for (field, n) in fields.iter_mut().zip(&confirmed) {
        if *n > 0 {
            field.confirm();
        }
    }
    for equation in equations.iter().filter(|equation| !equation.holds) {
        let is_suspect = |field: &&usize| equation.whole != Some(**field) || confirmed[**field] == 0;
        let suspects = || equation.fields.iter().filter(is_suspect);
        let least = suspects().map(|field| confirmed[*field]).min();
        for field in suspects() {
            if Some(confirmed[*field]) == least {
                fields[*field].doubt(&equation.why);
            }
        }
    }
    dates(fields);
}

fn find(fields: &[Field], name: FieldName) -> Option<usize> {
    fields.iter().position(|field| field.name == name)
}

fn of(fields: &[Field], at: Option<usize>) -> Option<Decimal> {
    at.and_then(|at| fields[at].value.amount())
}

fn amount(fields: &[Field], name: FieldName) -> Option<Decimal> {
    of(fields, find(fields, name))
}

fn all(fields: &[Field], name: FieldName) -> Vec<usize> {
    (0..fields.len()).filter(|at| fields[*at].name == name).collect()
}

fn sum(fields: &[Field], at: &[usize]) -> Decimal {
    at.iter().filter_map(|at| fields[*at].value.amount()).sum()
}

/// The sum that tax is added to is the net amount, whatever the paper calls it.
fn rename_subtotal(fields: &mut [Field]) {
    let Some(subtotal) = find(fields, Subtotal).filter(|_| find(fields, Net).is_none()) else { return };
    let taxes = all(fields, TaxAmount);
    let with_tax = of(fields, Some(subtotal)).map(|net| net + sum(fields, &taxes));
    let is_net = !taxes.is_empty() && with_tax.is_some() && with_tax == amount(fields, Total);
    let is_all = find(fields, Discount).is_none() && find(fields, Shipping).is_none();
    let lines = sum(fields, &all(fields, LineAmount));
    let is_after = of(fields, Some(subtotal))
        .is_some_and(|is| lines != is && adjusted(fields, lines).iter().any(|(way, _)| *way == is));
    if is_net || is_all || is_after {
        fields[subtotal].name = Net;
    }
}

/// Quantity times price is the amount.
fn lines(fields: &[Field]) -> Vec<Equation> {
    let mut equations = Vec::new();
    for at in all(fields, LineAmount) {
        let nth = fields[at].nth;
        // Fields of one line stand together.
        let near = at.saturating_sub(3)..fields.len().min(at + 4);
        let part = |name| near.clone().find(|other| fields[*other].nth == nth && fields[*other].name == name);
        let (Some(quantity), Some(price)) = (part(LineQuantity), part(LineUnitPrice)) else { continue };
        let (Some(n), Some(each), Some(is)) =
            (of(fields, Some(quantity)), of(fields, Some(price)), of(fields, Some(at)))
        else {
            continue;
        };
        let product = n.times(each);
        equations.push(Equation {
            fields: vec![quantity, price, at],
            holds: product.is_some_and(|product| product.is_near(is, Decimal::CENT)),
            why: match product {
                Some(product) => {
                    format!("{n} times {} is {}, not {}", each.as_money(), product.as_money(), is.as_money())
                }
                None => format!("{n} times {} is too large", each.as_money()),
            },
            whole: None,
        });
    }
    equations
}

/// The amounts that discount and shipping change, in each way that papers count.
fn adjusted(fields: &[Field], amount: Decimal) -> Vec<(Decimal, Vec<usize>)> {
    let (discount, shipping) = (find(fields, Discount), find(fields, Shipping));
    let (less, more) = (of(fields, discount).unwrap_or_default().abs(), of(fields, shipping).unwrap_or_default());
    let mut ways = vec![(amount, Vec::new())];
    if discount.is_some() || shipping.is_some() {
        ways.push((amount - less + more, discount.into_iter().chain(shipping).collect()));
    }
    if let (Some(discount), Some(shipping)) = (discount, shipping) {
        ways.push((amount - less, vec![discount]));
        ways.push((amount + more, vec![shipping]));
    }
    ways
}

/// Net and tax are the total.
fn whole(fields: &[Field]) -> Option<Equation> {
    let net = find(fields, Net).or_else(|| find(fields, Subtotal))?;
    let total = find(fields, Total)?;
    let taxes = all(fields, TaxAmount);
    let (before, tax, after) = (of(fields, Some(net))?, sum(fields, &taxes), of(fields, Some(total))?);
    let tolerance = Decimal::cents(taxes.len().saturating_sub(1));
    let base: Vec<usize> = [net, total].into_iter().chain(taxes.iter().copied()).collect();
    let ways = adjusted(fields, before);
    if let Some((_, others)) = ways.iter().find(|(way, _)| (*way + tax).is_near(after, tolerance)) {
        return Some(Equation {
            fields: base.into_iter().chain(others.iter().copied()).collect(),
            holds: true,
            why: String::new(),
            whole: None,
        });
    }
    // Without any tax the paper may have one that was not read.
    let why = format!(
        "net {} and tax {} are {}, not {}",
        before.as_money(),
        tax.as_money(),
        (before + tax).as_money(),
        after.as_money()
    );
    (!taxes.is_empty()).then_some(Equation { fields: base, holds: false, why, whole: None })
}

/// The rate of the net amount is the tax. With two rates, the amounts that they are of are the net amount together.
fn rates(fields: &[Field]) -> Option<Equation> {
    let net = find(fields, Net)?;
    let base = of(fields, Some(net))?;
    let n_lines = all(fields, LineAmount).len();
    let taxes = all(fields, TaxAmount);
    let rated: Vec<(usize, usize)> = taxes
        .iter()
        .filter_map(|tax| {
            let rate =
                (0..fields.len()).find(|at| fields[*at].name == TaxRate && fields[*at].nth == fields[*tax].nth)?;
            Some((*tax, rate))
        })
        .collect();
    let values = |(tax, rate): (usize, usize)| Some((of(fields, Some(tax))?, of(fields, Some(rate))?));
    let taken =
        |pairs: &[(usize, usize)]| pairs.iter().flat_map(|(tax, rate)| [*tax, *rate]).chain([net]).collect::<Vec<_>>();
    match rated[..] {
        [one] if taxes.len() == 1 => {
            let (tax, rate) = values(one)?;
            let expected = base.percent(rate)?;
            let holds = expected.is_near(tax, Decimal::cents(n_lines.max(1)));
            let why = format!("{rate}% of {} is {}, not {}", base.as_money(), cents(expected), tax.as_money());
            Some(Equation { fields: taken(&rated), holds, why, whole: None })
        }
        [a, b] if taxes.len() == 2 => {
            let ((tax_a, rate_a), (tax_b, rate_b)) = (values(a)?, values(b)?);
            let both = tax_a.times(rate_b)? + tax_b.times(rate_a)?;
            let expected = base.times(rate_a)?.percent(rate_b)?;
            let tolerance = Decimal::cents(n_lines.max(1)).times(rate_a + rate_b)?;
            let why = format!(
                "taxes of {rate_a}% and {rate_b}% are not {} and {} of {}",
                tax_a.as_money(),
                tax_b.as_money(),
                base.as_money()
            );
            Some(Equation { fields: taken(&rated), holds: both.is_near(expected, tolerance), why, whole: None })
        }
        _ => None,
    }
}

/// Cut to cents, rounded.
fn cents(number: Decimal) -> String {
    let text = (number + Decimal::from_digits("5", 3).unwrap_or_default()).as_money();
    let end = text.find('.').map_or(text.len(), |point| (point + 3).min(text.len()));
    text[..end].to_owned()
}

/// The lines are the net amount, or the subtotal, or the total where prices have the tax in them.
fn sum_of_lines(fields: &[Field]) -> Option<Equation> {
    let lines = all(fields, LineAmount);
    if lines.is_empty() {
        return None;
    }
    let (is, tolerance) = (sum(fields, &lines), Decimal::cents(lines.len()));
    let wholes = [Subtotal, Net, Total].map(|name| find(fields, name));
    for whole in wholes.into_iter().flatten() {
        for (way, others) in adjusted(fields, is) {
            if of(fields, Some(whole)).is_some_and(|whole| way.is_near(whole, tolerance)) {
                let taken = lines.iter().copied().chain(others).chain([whole]).collect();
                return Some(Equation { fields: taken, holds: true, why: String::new(), whole: None });
            }
        }
    }
    let whole = wholes.into_iter().flatten().next()?;
    let why = format!("the lines are {} together, not {}", is.as_money(), of(fields, Some(whole))?.as_money());
    Some(Equation { fields: lines.into_iter().chain([whole]).collect(), holds: false, why, whole: Some(whole) })
}

/// The total less what is paid is due.
fn due(fields: &[Field]) -> Option<Equation> {
    let (due, total, paid) = (find(fields, AmountDue)?, find(fields, Total)?, find(fields, Paid));
    let rest = of(fields, Some(total))? - of(fields, paid).unwrap_or_default().abs();
    let is = of(fields, Some(due))?;
    let why = format!("{} should be due, not {}", rest.as_money(), is.as_money());
    Some(Equation { fields: [due, total].into_iter().chain(paid).collect(), holds: rest == is, why, whole: None })
}

/// The balance before, what came in and what went out are the balance after.
fn balance(fields: &[Field]) -> Option<Equation> {
    let parts = [OpeningBalance, MoneyIn, MoneyOut, ClosingBalance].map(|name| find(fields, name));
    let [Some(opening), Some(came), Some(went), Some(closing)] = parts else { return None };
    let is = of(fields, Some(opening))? + of(fields, Some(came))?.abs() - of(fields, Some(went))?.abs();
    let said = of(fields, Some(closing))?;
    let why = format!("the balance should be {}, not {}", is.as_money(), said.as_money());
    Some(Equation { fields: vec![opening, came, went, closing], holds: is == said, why, whole: None })
}

/// Nothing is due before it is issued, and nothing ends before it begins.
fn dates(fields: &mut [Field]) {
    for (first, last) in [(IssuedOn, DueOn), (StartsOn, EndsOn), (PeriodFrom, PeriodTo)] {
        let (Some(from), Some(to)) = (find(fields, first), find(fields, last)) else { continue };
        if fields[from].value.date() > fields[to].value.date() {
            for at in [from, to] {
                fields[at].doubt(format!("the {} is after the {}", first.in_words(), last.in_words()));
            }
        }
    }
}
