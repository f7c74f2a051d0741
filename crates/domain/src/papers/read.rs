//! The fields of a paper, by rules.

use std::collections::BTreeMap;
use std::ops::Range;

use super::dates::{Day, Order};
use super::find::{self, Found, Value};
use super::items::{self, Items, Spot};
use super::party::{self, Party};
use super::piece::{self, Amount, Is};
use super::sheet::Sheet;
use super::{Decimal, Field, FieldName, FieldState, FieldValue, PaperKind, check, money};
use crate::reading::Page;

use FieldName::*;

/// More tax rates than that no paper has.
pub(super) const MOST_TAXES: usize = 20;

/// Of so many sums that are called total one is chosen.
const MOST_TOTALS: usize = 12;

/// The fields of a kind of paper that it has once each.
pub(super) fn single(kind: PaperKind) -> &'static [FieldName] {
    match kind {
        PaperKind::Invoice | PaperKind::CreditNote | PaperKind::Receipt => &[
            Supplier,
            Customer,
            Number,
            IssuedOn,
            DueOn,
            OrderNumber,
            Currency,
            Subtotal,
            Discount,
            Shipping,
            Net,
            Total,
            Paid,
            AmountDue,
            Iban,
            VatId,
            CustomerVatId,
        ],
        PaperKind::Contract => &[Reference, IssuedOn, StartsOn, EndsOn, Amount, Currency],
        PaperKind::Letter => &[Supplier, Customer, IssuedOn, Reference, Subject],
        PaperKind::Statement => &[
            Supplier,
            Customer,
            Account,
            Iban,
            IssuedOn,
            PeriodFrom,
            PeriodTo,
            Currency,
            OpeningBalance,
            MoneyIn,
            MoneyOut,
            ClosingBalance,
        ],
        PaperKind::Other => &[],
    }
}

/// Reads the fields of a paper of this kind from its pages, and checks them.
pub fn read(kind: PaperKind, pages: &[Page]) -> Vec<Field> {
    if kind == PaperKind::Other {
        return Vec::new();
    }
    let sheet = Sheet::of(pages);
    let items = if kind.has_sums() { items::items(&sheet) } else { Items::default() };
    let found = find::find(&sheet, &|row| items.heads.contains(&row) || items.whole.contains(&row));
    let reading = Reading { currency: currency(&sheet), order: order(&sheet), sheet: &sheet };
    let mut fields = Vec::new();
    for name in single(kind) {
        fields.extend(reading.one(kind, *name, &found));
    }
    if kind == PaperKind::Contract {
        fields.extend(reading.between(pages));
    }
    if kind.has_sums() {
        fields.extend(reading.taxes(&found));
        fields.extend(reading.lines(&items));
        total_is_due(&mut fields);
    }
    check::check(&mut fields);
    fields
}

/// A paper that names only what is due names its total so.
fn total_is_due(fields: &mut Vec<Field>) {
    let has = |name| fields.iter().any(|field| field.name == name);
    if !has(Total)
        && !has(Paid)
        && let Some(due) = fields.iter().position(|field| field.name == AmountDue)
    {
        let total = Field { name: Total, ..fields[due].clone() };
        fields.insert(due, total);
    }
}

struct Reading<'a> {
    sheet: &'a Sheet<'a>,
    currency: Option<Currencies>,
    order: Option<Order>,
}

/// The currency of a paper, and where it stands.
struct Currencies {
    code: &'static str,
    cell: usize,
    range: Range<usize>,
    doubt: Option<String>,
}

impl Reading<'_> {
    fn field(&self, name: FieldName, nth: u32, value: FieldValue, cell: usize, quote: String) -> Field {
        let page = self.sheet.cells[cell].page;
        let confidence = 0.85 * page.confidence.unwrap_or(1.0).clamp(0.0, 1.0);
        Field { name, nth, value, page: page.number, quote, confidence, state: FieldState::Read, why: None }
    }

    /// The field of this name, if the paper has it.
    fn one(&self, kind: PaperKind, name: FieldName, found: &[Found]) -> Option<Field> {
        match name {
            Supplier => {
                let party = party::labelled(self.sheet, Supplier).or_else(|| party::at_top(self.sheet))?;
                let is_customer =
                    party::labelled(self.sheet, Customer).is_some_and(|customer| customer.name == party.name);
                (!is_customer).then(|| self.party(Supplier, 0, party))
            }
            Customer => party::labelled(self.sheet, Customer).map(|party| self.party(Customer, 0, party)),
            Currency => self.currency_field(),
            Iban => self.iban(),
            PeriodTo => self.period_end(found),
            Net => self.best(Net, found).or_else(|| {
                self.total(found)
                    .map(|(net, _)| Field { name: Net, ..self.named(net, 0) })
                    .filter(|_| !found.iter().any(|found| found.name == Subtotal))
            }),
            Total => match self.total(found) {
                Some((_, total)) => Some(self.named(total, 0)),
                None => self.best(Total, found),
            },
            IssuedOn if kind == PaperKind::Letter => self.best(name, found).or_else(|| self.first_date()),
            _ => self.best(name, found),
        }
    }

    /// The value that a label gives. Another value under a label that is as good makes it doubtful.
    fn best(&self, name: FieldName, found: &[Found]) -> Option<Field> {
        let of_name = || found.iter().filter(|found| found.name == name);
        let best = of_name().find(|found| found.is_strong).or_else(|| of_name().next())?;
        let mut field = self.named(best, 0);
        let other = of_name()
            .filter(|other| other.is_strong == best.is_strong)
            .map(|other| self.named(other, 0))
            .find(|other| other.value != field.value);
        if let Some(other) = other {
            field.doubt(format!("the paper also says {}", spelled(&other.value)));
        }
        Some(field)
    }

    /// Of several totals one that is another sum and all tax: "Summe 509,00", "19 % MwSt. 96,71", "Gesamt 605,71". Returns that sum too.
    fn total<'f>(&self, found: &'f [Found]) -> Option<(&'f Found, &'f Found)> {
        let amount = |found: &Found| if let Value::Amount(amount) = found.value { Some(amount.value) } else { None };
        let few = |names: &'static [FieldName]| {
            found.iter().filter(move |found| names.contains(&found.name)).take(MOST_TOTALS)
        };
        let tax: Decimal = self
            .taxes(found)
            .iter()
            .filter(|field| field.name == TaxAmount)
            .filter_map(|field| field.value.amount())
            .sum();
        let first = few(&[Total]).next().and_then(amount)?;
        let are_many = few(&[Total]).any(|other| amount(other) != Some(first));
        let is_whole =
            |net: &Found, total: &Found| amount(net).zip(amount(total)).is_some_and(|(net, total)| net + tax == total);
        let pairs = few(&[Net, Subtotal, Total]).flat_map(|net| few(&[Total]).map(move |total| (net, total)));
        pairs.into_iter().find(|(net, total)| are_many && tax != Decimal::ZERO && is_whole(net, total))
    }

    fn named(&self, found: &Found, nth: u32) -> Field {
        let (value, doubt) = self.value(found.name, &found.value);
        let mut field = self.field(found.name, nth, value, found.cell, found.quote.clone());
        if !found.is_strong {
            field.confidence *= 0.9;
        }
        if let Some(why) = doubt {
            field.doubt(why);
        }
        field
    }

    /// The value in our types, with the reason if it can be read in two ways.
    fn value(&self, name: FieldName, value: &Value) -> (FieldValue, Option<String>) {
        match value {
            Value::Text(text) if matches!(name, VatId | CustomerVatId) => {
                (FieldValue::Text { text: vat_number(text) }, None)
            }
            Value::Text(text) => (FieldValue::Text { text: text.clone() }, None),
            Value::Amount(amount) => (self.money(name, *amount), None),
            Value::Day(day) => {
                let (date, doubt) = date(*day, self.order);
                (FieldValue::Date { date }, doubt)
            }
        }
    }

    fn money(&self, name: FieldName, amount: Amount) -> FieldValue {
        let currency = amount.currency.or(self.currency.as_ref().map(|currency| currency.code));
        let value = if matches!(name, Discount | Paid) { amount.value.abs() } else { amount.value };
        FieldValue::Money { amount: value, currency: currency.map(str::to_owned) }
    }

    fn party(&self, name: FieldName, nth: u32, party: Party) -> Field {
        let quote = self.sheet.quote(party.cell, party.from, party.range.clone());
        let text = party.name.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut field = self.field(name, nth, FieldValue::Text { text }, party.cell, quote);
        if let Some(why) = party.doubt {
            field.doubt(why);
        }
        field
    }

    fn between(&self, pages: &[Page]) -> Vec<Field> {
        let Some((page, names)) = pages.iter().take(2).find_map(|page| Some((page, party::between(page)?))) else {
            return Vec::new();
        };
        let Some(cell) = self.sheet.cells.iter().position(|cell| cell.page.number == page.number) else {
            return Vec::new();
        };
        let parties = (1..).zip(names).filter_map(|(nth, range)| {
            let quote = page.text.get(range)?;
            let text = quote.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(self.field(Party, nth, FieldValue::Text { text }, cell, quote.to_owned()))
        });
        parties.collect()
    }

    fn currency_field(&self) -> Option<Field> {
        let currency = self.currency.as_ref()?;
        let quote = self.sheet.quote(currency.cell, currency.range.start, currency.range.clone());
        let mut field =
            self.field(Currency, 0, FieldValue::Text { text: currency.code.to_owned() }, currency.cell, quote);
        if let Some(why) = &currency.doubt {
            field.doubt(why.clone());
        }
        Some(field)
    }

    /// The IBAN whose check digits are right.
    fn iban(&self) -> Option<Field> {
        let (cell, range, text) = (0..self.sheet.cells.len()).find_map(|cell| {
            let here = &self.sheet.cells[cell];
            let (range, text) = iban_in(here.text)?;
            Some((cell, here.at + range.start..here.at + range.end, text))
        })?;
        let quote = self.sheet.quote(cell, range.start, range.clone());
        let mut field = self.field(Iban, 0, FieldValue::Text { text }, cell, quote);
        field.confirm();
        Some(field)
    }

    /// The date behind the first day of a period.
    fn period_end(&self, found: &[Found]) -> Option<Field> {
        let from = found.iter().find(|found| found.name == PeriodFrom)?;
        let behind = self.sheet.pieces[from.cell].iter().filter(|piece| piece.range.start >= from.range.end).take(3);
        let piece = behind.into_iter().find(|piece| matches!(piece.is, Is::Date(_)))?;
        let Is::Date(day) = piece.is else { return None };
        let quote = self.sheet.quote(from.cell, from.range.start, piece.range.clone());
        let end = Found { name: PeriodTo, value: Value::Day(day), quote, range: piece.range.clone(), ..from.clone() };
        Some(self.named(&end, 0))
    }

    /// The first date of the first page.
    fn first_date(&self) -> Option<Field> {
        let first = self.sheet.cells.first()?.page.number;
        let cells = (0..self.sheet.cells.len()).take_while(|cell| self.sheet.cells[*cell].page.number == first);
        let (cell, range, day) = cells.into_iter().find_map(|cell| {
            self.sheet.pieces[cell].iter().find_map(|piece| match piece.is {
                Is::Date(day) => Some((cell, piece.range.clone(), day)),
                _ => None,
            })
        })?;
        let quote = self.sheet.quote(cell, range.start, range.clone());
        let found = Found { name: IssuedOn, rate: None, is_strong: false, value: Value::Day(day), cell, range, quote };
        Some(self.named(&found, 0))
    }

    /// Each tax with its rate. A sum of the others is none of them.
    fn taxes(&self, found: &[Found]) -> Vec<Field> {
        let mut taxes: BTreeMap<(Option<Decimal>, Decimal), &Found> = BTreeMap::new();
        let mut order = Vec::new();
        for tax in found.iter().filter(|found| found.name == TaxAmount) {
            let Value::Amount(amount) = tax.value else { continue };
            let key = (tax.rate, amount.value);
            if taxes.insert(key, tax).is_none() {
                order.push(key);
            }
        }
        let rated: Decimal = order.iter().filter(|(rate, _)| rate.is_some()).map(|(_, amount)| *amount).sum();
        order.truncate(MOST_TAXES);
        order.retain(|(rate, amount)| rate.is_some() || rated == Decimal::ZERO || *amount != rated);
        let mut fields = Vec::new();
        for (nth, key) in (1..).zip(order) {
            let tax = taxes[&key];
            if let Some(rate) = tax.rate {
                fields.push(self.field(TaxRate, nth, FieldValue::Number { number: rate }, tax.cell, tax.quote.clone()));
            }
            fields.push(self.named(tax, nth));
        }
        fields
    }

    fn lines(&self, items: &Items) -> Vec<Field> {
        let mut fields = Vec::new();
        for (nth, item) in (1..).zip(&items.items) {
            let row = &self.sheet.rows[item.row];
            let start =
                item.description.as_ref().map_or(self.sheet.cells[row.start].at, |description| description.range.start);
            let quote = |range: &Range<usize>, cell| self.sheet.quote(cell, start, range.clone());
            if let Some(Spot { value, cell, range }) = &item.description {
                let mut field = self.field(
                    LineDescription,
                    nth,
                    FieldValue::Text { text: value.clone() },
                    *cell,
                    quote(range, *cell),
                );
                if item.is_mixed {
                    field.doubt("other text stands in the same place");
                }
                fields.push(field);
            }
            if let Some(Spot { value, cell, range }) = &item.quantity {
                fields.push(self.field(
                    LineQuantity,
                    nth,
                    FieldValue::Number { number: *value },
                    *cell,
                    quote(range, *cell),
                ));
            }
            if let Some(Spot { value, cell, range }) = &item.unit_price {
                fields.push(self.field(
                    LineUnitPrice,
                    nth,
                    self.money(LineUnitPrice, *value),
                    *cell,
                    quote(range, *cell),
                ));
            }
            let Spot { value, cell, range } = &item.amount;
            fields.push(self.field(LineAmount, nth, self.money(LineAmount, *value), *cell, quote(range, *cell)));
        }
        fields
    }
}

/// "CHE-639.977.241 MWST" without what follows, "GB 813 7743 99" without its spaces.
fn vat_number(text: &str) -> String {
    let kept = text.split(' ').filter(|part| !matches!(*part, "MWST" | "TVA" | "IVA" | "HR/MWST"));
    kept.collect()
}

/// The date, with the reason if it can be another.
pub(super) fn date(day: Day, order: Option<Order>) -> (chrono::NaiveDate, Option<String>) {
    match (day.month_first, order) {
        (None, _) | (Some(_), Some(Order::DayFirst)) => (day.date, None),
        (Some(other), Some(Order::MonthFirst)) => (other, None),
        (Some(other), None) => (day.date, Some(format!("it can be {} or {}", spell_day(day.date), spell_day(other)))),
    }
}

fn spell_day(date: chrono::NaiveDate) -> String {
    date.format("%-d %B %Y").to_string()
}

pub(super) fn spelled(value: &FieldValue) -> String {
    match value {
        FieldValue::Text { text } => text.clone(),
        FieldValue::Date { date } => spell_day(*date),
        FieldValue::Number { number } => number.to_string(),
        FieldValue::Money { amount, currency: Some(currency) } => format!("{} {currency}", amount.as_money()),
        FieldValue::Money { amount, currency: None } => amount.as_money(),
    }
}

/// Whether the dates of the paper show the day first or the month first. None: none shows it, or they disagree.
pub(super) fn order(sheet: &Sheet<'_>) -> Option<Order> {
    let mut shown =
        sheet.pieces.iter().flatten().filter_map(|piece| if let Is::Date(day) = piece.is { day.shows } else { None });
    let first = shown.next()?;
    shown.all(|order| order == first).then_some(first)
}

/// The currency of most sums.
fn currency(sheet: &Sheet<'_>) -> Option<Currencies> {
    let mut n_by_code: BTreeMap<&'static str, (usize, bool, usize, Range<usize>)> = BTreeMap::new();
    for (cell, piece) in
        sheet.pieces.iter().enumerate().flat_map(|(cell, pieces)| pieces.iter().map(move |piece| (cell, piece)))
    {
        if let Is::Number(Amount { currency: Some(code), is_shared, .. }) = piece.is {
            let (n, all_shared, ..) = n_by_code.entry(code).or_insert((0, true, cell, piece.range.clone()));
            *n += 1;
            *all_shared &= is_shared;
        }
    }
    if n_by_code.is_empty() {
        return written_code(sheet);
    }
    let (code, (n, is_shared, cell, range)) = n_by_code.iter().max_by_key(|(_, (n, ..))| *n)?;
    let mut doubt = None;
    if let Some((other, _)) = n_by_code.iter().find(|(other, (m, ..))| *other != code && *m * 3 >= *n) {
        doubt = Some(format!("there are sums in {other} too"));
    } else if *is_shared && is_of_others(sheet) {
        doubt = Some("the sign $ may be that of another dollar".to_owned());
    }
    Some(Currencies { code, cell: *cell, range: range.clone(), doubt })
}

/// Whether the paper names a country whose dollars have the same sign.
fn is_of_others(sheet: &Sheet<'_>) -> bool {
    const OTHERS: &[&str] = &[
        "Canada",
        "Australia",
        "New Zealand",
        "Singapore",
        "Hong Kong",
        "México",
        "Mexico",
        "CAD",
        "AUD",
        "NZD",
        "GST",
        "HST",
    ];
    sheet.cells.iter().any(|cell| OTHERS.iter().any(|other| cell.text.contains(other)))
}

/// A code that stands without a sum: "All amounts in EUR".
fn written_code(sheet: &Sheet<'_>) -> Option<Currencies> {
    sheet.cells.iter().enumerate().find_map(|(nth, cell)| {
        piece::tokens(cell.text, cell.at).into_iter().find_map(|token| {
            let word = sheet.text(nth, token.range.clone());
            let code = money::currency(word).filter(|code| *code == word)?;
            Some(Currencies { code, cell: nth, range: token.range, doubt: None })
        })
    })
}

/// The first IBAN in a text whose check digits are right, without its spaces.
pub(super) fn iban_in(text: &str) -> Option<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    let starts = (0..bytes.len().saturating_sub(14)).filter(|at| {
        let is_start = *at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        is_start && matches!(&bytes[*at..*at + 4], [a, b, c, d] if a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_digit() && d.is_ascii_digit())
    });
    starts.into_iter().find_map(|start| {
        let wanted = iban_len(&text[start..start + 2])?;
        let (mut iban, mut end) = (String::with_capacity(wanted), start);
        while iban.len() < wanted {
            let byte = *bytes.get(end)?;
            match byte {
                b' ' if !iban.ends_with(' ') => {}
                _ if byte.is_ascii_digit() || byte.is_ascii_uppercase() => iban.push(char::from(byte)),
                _ => return None,
            }
            end += 1;
        }
        let is_whole = bytes.get(end).is_none_or(|next| !next.is_ascii_alphanumeric());
        (is_whole && end - start <= 50 && has_right_digits(&iban)).then_some((start..end, iban))
    })
}

/// The length of an IBAN of this country.
fn iban_len(country: &str) -> Option<usize> {
    const LENGTHS: &[(usize, &str)] = &[
        (15, "NO"),
        (16, "BE"),
        (18, "DK FI FO GL NL"),
        (19, "MK SI"),
        (20, "AT BA EE KZ LT LU XK"),
        (21, "CH HR LI LV"),
        (22, "BG BH CR DE GB GE IE ME RS VA"),
        (23, "AE GI IL IQ TL"),
        (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
        (25, "PT ST"),
        (26, "IS TR"),
        (27, "FR GR IT MC MR SM"),
        (28, "AL AZ CY DO GT HU LB PL SV"),
        (29, "BR EG PS QA UA"),
        (30, "JO KW MU"),
        (31, "MT SC"),
    ];
    LENGTHS.iter().find(|(_, countries)| countries.split(' ').any(|known| known == country)).map(|(len, _)| *len)
}

/// The check of ISO 13616: with its first four characters behind and letters as numbers, the remainder by 97 is 1.
fn has_right_digits(iban: &str) -> bool {
    let (front, rest) = iban.split_at(4);
    let remainder = rest.chars().chain(front.chars()).try_fold(0_u32, |so_far, c| {
        let digit = c.to_digit(36)?;
        Some((so_far * if digit < 10 { 10 } else { 100 } + digit) % 97)
    });
    remainder == Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iban_has_right_check_digits() {
        let found = |text: &str| iban_in(text).map(|(range, iban)| (text[range].to_owned(), iban));
        assert_eq!(
            found("IBAN: GB82 WEST 1234 5698 7654 32, BIC X"),
            Some(("GB82 WEST 1234 5698 7654 32".into(), "GB82WEST12345698765432".into()))
        );
        assert_eq!(
            found("DE89370400440532013000"),
            Some(("DE89370400440532013000".into(), "DE89370400440532013000".into()))
        );
        for none in ["GB82 WEST 1234 5698 7654 33", "DE8937040044053201300", "XX89370400440532013000", "", "DE89"] {
            assert_eq!(found(none), None, "{none:?}");
        }
    }
}
