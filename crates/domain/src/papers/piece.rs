//! Cells as pieces: labels, dates, numbers, percents and words.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::dates::{self, Day};
use super::figures::{self, Point, Style};
use super::labels::{self, Label};
use super::{Decimal, FieldName, Shape, money};

/// A word, or a sign that stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// As bytes of the page.
    pub range: Range<usize>,
    /// Folded: small letters, no accents.
    pub word: String,
    /// No white space parts it from what stands before it.
    pub glued: bool,
}

impl Token {
    pub fn is_word(&self) -> bool {
        self.word.chars().next().is_some_and(char::is_alphanumeric)
    }

    fn is_figure(&self) -> bool {
        self.word.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// Small letters without accents, so that "Échéance" is "echeance".
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let folded = text.replace('ß', "ss").to_lowercase();
    folded.nfkd().filter(|c| !is_combining_mark(*c)).collect()
}

/// The tokens of a text that begins at byte `at` of its page. White space and the dot above "n°" are none.
pub(super) fn tokens(text: &str, at: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut end = usize::MAX;
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if c.is_whitespace() || c == '°' {
            if c == '°' && end == start {
                end = start + c.len_utf8();
            }
            continue;
        }
        let mut to = start + c.len_utf8();
        if c.is_alphanumeric() {
            // A currency's code is written to a number as it is without a space between them.
            while let Some((next, after)) = chars.next_if(|(next, after)| {
                let is_edge = text[start..*next].chars().next_back().is_some_and(|c| c.is_ascii_digit())
                    != after.is_ascii_digit();
                after.is_alphanumeric() && !(is_edge && is_money_edge(&text[start..*next], &text[*next..]))
            }) {
                to = next + after.len_utf8();
            }
        }
        let word = fold(&text[start..to]);
        tokens.push(Token { range: at + start..at + to, word, glued: end == start });
        end = to;
    }
    tokens
}

/// Whether a currency's code ends before a number, or a number before a currency's code.
fn is_money_edge(before: &str, after: &str) -> bool {
    let code: String = after.chars().take(4).take_while(|c| c.is_alphabetic()).collect();
    before.len() == 3 && money::is_code(before) || money::is_code(&code)
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Is {
    Word,
    /// Some words that name a field, with the tax rate that stands beside them.
    Label(Label, Option<Decimal>),
    Number(Amount),
    Percent(Decimal),
    Date(Day),
    /// A sign that parts, such as "·".
    Break,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub value: Decimal,
    pub currency: Option<&'static str>,
    /// The sign of the currency is one that several have.
    pub is_shared: bool,
    pub places: usize,
    pub shows: Option<Point>,
    pub has_groups: bool,
}

impl Amount {
    /// Whether it is written as a sum of money is: with a currency, or with cents.
    pub fn is_money(self) -> bool {
        self.currency.is_some() || self.places == 2
    }
}

/// A part of a cell.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// As bytes of the page.
    pub range: Range<usize>,
    pub is: Is,
}

impl Piece {
    pub fn label(&self) -> Option<Label> {
        if let Is::Label(label, _) = self.is { Some(label) } else { None }
    }

    pub fn field(&self) -> Option<FieldName> {
        self.label().and_then(Label::field)
    }

    pub fn number(&self) -> Option<Amount> {
        if let Is::Number(amount) = self.is { Some(amount) } else { None }
    }

    pub fn is_word(&self) -> bool {
        matches!(self.is, Is::Word)
    }
}

/// The pieces of a text that begins at byte `at` of its page.
pub(super) fn pieces(text: &str, at: usize, style: Style) -> Vec<Piece> {
    let tokens = tokens(text, at);
    let mut pieces: Vec<(Piece, bool)> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let (is, n) = piece(&tokens, i, text, at, style);
        let end = tokens[i + n - 1].range.end;
        if let Some(is) = is {
            let range = tokens[i].range.start..end;
            let is_currency = is == Is::Word && money::currency(&text[range.start - at..range.end - at]).is_some();
            pieces.push((Piece { range, is }, is_currency));
        }
        i += n;
    }
    with_rates(pieces)
}

/// The piece at token `i`, if it is one, and the number of its tokens.
fn piece(tokens: &[Token], i: usize, text: &str, at: usize, style: Style) -> (Option<Is>, usize) {
    let rest = &tokens[i..];
    let is_start = !tokens[i].glued
        || i == 0
        || !(tokens[i - 1].is_word() || matches!(tokens[i - 1].word.as_str(), "-" | "/" | "."));
    if is_start {
        if let Some((day, n)) = dates::day(rest) {
            return (Some(Is::Date(day)), n);
        }
        if let Some((is, n)) = number(rest, text, at, style) {
            return (Some(is), n);
        }
    }
    if let Some((label, n)) = label(rest).filter(|_| is_start || !tokens[i].is_word()) {
        return (Some(Is::Label(label, None)), n);
    }
    match rest[0].word.as_str() {
        "zzgl" | "zuzuglich" | "plus" | "abzgl" | "abzuglich" => (None, 1),
        "·" | "•" | "|" | "∙" => (Some(Is::Break), 1),
        _ if rest[0].is_word() => (Some(Is::Word), 1),
        _ => (None, 1),
    }
}

/// A currency that is written at token `i`, whether its sign is one that several have, and the number of its tokens.
fn currency(tokens: &[Token], i: usize, text: &str, at: usize) -> Option<(&'static str, bool, usize)> {
    let token = tokens.get(i)?;
    let written = &text[token.range.start - at..token.range.end - at];
    let next = tokens.get(i + 1).filter(|next| next.glued);
    if let Some(code) = next.filter(|next| next.word == "$").and_then(|_| money::currency(&format!("{written}$"))) {
        return Some((code, false, 2));
    }
    let code = money::currency(written)?;
    // "Fr." has a dot.
    let n = if token.is_word() && next.is_some_and(|next| next.word == ".") { 2 } else { 1 };
    Some((code, money::is_shared(code) && written.chars().all(money::is_sign), n))
}

fn is_minus(token: &Token) -> bool {
    matches!(token.word.as_str(), "-" | "−" | "–")
}

/// A number with its sign and currency, or a percent.
fn number(rest: &[Token], text: &str, at: usize, style: Style) -> Option<(Is, usize)> {
    let (mut i, mut is_negative, mut known) = (0, false, None);
    while !rest.get(i)?.is_figure() {
        if is_minus(&rest[i]) && !is_negative {
            is_negative = true;
            i += 1;
        } else if known.is_none() {
            let (code, is_shared, n) = currency(rest, i, text, at)?;
            known = Some((code, is_shared));
            i += n;
        } else {
            return None;
        }
    }
    let first = &rest[i];
    // A dash with a space behind it parts, and does not belong to the number.
    if is_negative && known.is_none() && !first.glued {
        return None;
    }
    let figure = figures::figure(&text[first.range.start - at..], style)?;
    let end = first.range.start + figure.len;
    i += rest[i..].iter().take_while(|token| token.range.end <= end).count();
    if i == 0 || rest[i - 1].range.end != end {
        return None; // "12mm"
    }
    let follows = |n: usize| rest.get(i + n).filter(|next| next.glued);
    match rest.get(i) {
        Some(next) if next.word == "%" => return Some((Is::Percent(figure.value), i + 1)),
        Some(next) if next.glued && is_minus(next) && follows(1).is_none() => {
            is_negative = true;
            i += 1;
        }
        // A part of something longer: 2026-1994, 12:30, 1.2.3.
        Some(next)
            if next.glued
                && matches!(next.word.as_str(), "-" | "/" | "_" | ":" | "." | "," | "'")
                && follows(1).is_some_and(Token::is_word) =>
        {
            return None;
        }
        _ => {}
    }
    if known.is_none()
        && let Some((code, is_shared, n)) = currency(rest, i, text, at)
    {
        // Of "10 CHF 71.71" the code belongs to the sum behind it.
        let is_of_next = figure.places != 2 && rest.get(i + n).is_some_and(Token::is_figure);
        if code != "CHF" || !rest[i].word.starts_with("fr") {
            known = (!is_of_next).then_some((code, is_shared));
            i += if is_of_next { 0 } else { n };
        }
    }
    let value = if is_negative { -figure.value } else { figure.value };
    let (currency, is_shared) = known.map_or((None, false), |(code, is_shared)| (Some(code), is_shared));
    let amount = Amount {
        value,
        currency,
        is_shared,
        places: figure.places,
        shows: figure.shows,
        has_groups: figure.has_groups,
    };
    Some((Is::Number(amount), i))
}

/// The longest label at the start of these tokens, and the number of its tokens. Dots and the like between its words do not count.
fn label(rest: &[Token]) -> Option<(Label, usize)> {
    labels::beginning_with(&rest[0].word).iter().find_map(|(words, label)| {
        let mut i = 1;
        for word in &words[1..] {
            while rest
                .get(i)
                .is_some_and(|token| matches!(token.word.as_str(), "." | "-" | "'" | "’" | "/" | "(" | "&"))
            {
                i += 1;
            }
            if rest.get(i)?.word != *word {
                return None;
            }
            i += 1;
        }
        // "PO" of "PO-4711" and "Total" of "Totalschaden" are none.
        let goes_on = |n: usize| rest.get(i + n).is_some_and(|next| next.glued && next.is_word());
        let is_joined =
            rest.get(i).is_some_and(|next| next.glued && matches!(next.word.as_str(), "-" | "/" | "'" | "’" | "_"));
        let is_part = goes_on(0) || is_joined && goes_on(1);
        (!is_part).then_some((*label, i))
    })
}

/// Joins a tax's label with the percent beside it, and a label with the currency behind it.
fn with_rates(pieces: Vec<(Piece, bool)>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for (piece, is_currency) in pieces {
        if is_currency
            && joined.last().is_some_and(|last| matches!(last.field(), Some(name) if name.shape() == Shape::Money))
        {
            continue; // "Total CHF", and the sum stands elsewhere
        }
        let takes_rate = |name: Option<FieldName>| matches!(name, Some(FieldName::TaxAmount | FieldName::Discount));
        match (joined.last_mut(), &piece.is) {
            (Some(last), Is::Percent(rate)) if takes_rate(last.field()) => {
                if let Is::Label(_, known @ None) = &mut last.is {
                    *known = Some(*rate);
                    last.range.end = piece.range.end;
                    continue;
                }
            }
            // "19% USt." and "zzgl. 19 % MwSt.": the percent stands before.
            (Some(last), Is::Label(label, None)) if label.field() == Some(FieldName::TaxAmount) => {
                if let Is::Percent(rate) = last.is {
                    *last = Piece { range: last.range.start..piece.range.end, is: Is::Label(*label, Some(rate)) };
                    continue;
                }
            }
            _ => {}
        }
        joined.push(piece);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        let told = pieces(text, 0, Style { point: Some(Point::Dot), has_spaces: true }).into_iter().map(|piece| {
            match piece.is {
                Is::Word => "w".to_owned(),
                Is::Label(label, rate) => {
                    let name = label.field().map_or("other", FieldName::as_str);
                    rate.map_or_else(|| name.to_owned(), |rate| format!("{name}@{rate}"))
                }
                Is::Number(amount) => format!("{}{}", amount.value, amount.currency.unwrap_or_default()),
                Is::Percent(rate) => format!("{rate}%"),
                Is::Date(day) => day.date.to_string(),
                Is::Break => "·".to_owned(),
            }
        });
        told.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_cell_is_labels_values_and_words() {
        for (text, expected) in [
            ("Invoice number: INV-2041", "number w w"),
            ("Rechnungs-Nr.: 2026-1994 Datum: 13.05.2026", "number w w issued_on 2026-05-13"),
            ("N° de facture 1261", "number 1261"),
            ("N.º de factura: 12", "number 12"),
            ("Date d'échéance", "due_on"),
            ("VAT @ 20% £960.56", "tax_amount@20 960.56GBP"),
            ("19% USt. 5.00 EUR Total", "tax_amount@19 5EUR total"),
            ("Tax (8.25%) Total due", "tax_amount@8.25 total"),
            ("Summe netto CHF 71.71 CHF 2.61", "net 71.71CHF 2.61CHF"),
            ("-£2,133.99 -$21.87 12.00-", "-2133.99GBP -21.87USD -12"),
            ("US$ 10.00 CA$5.00 EUR12.50 12.50EUR", "10USD 5CAD 12.5EUR 12.5EUR"),
            ("12mm M8 x 40", "w w w 40"),
            ("Fr. 12.50", "12.5CHF"),
            ("VAT No: GB813774399", "vat_id w"),
            ("Larkfield Ltd · 12 Mill Lane", "w w · 12 w w"),
            ("", ""),
        ] {
            assert_eq!(seen(text), expected, "{text}");
        }
    }
}
