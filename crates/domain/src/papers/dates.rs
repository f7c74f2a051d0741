//! Dates as papers write them, with the names of months in English, German, French and Spanish.

use chrono::{Datelike as _, NaiveDate};

use super::piece::Token;

/// A date. 03/04/2026 can be two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    /// Read with the day first, where both are possible.
    pub date: NaiveDate,
    /// Read with the month first, if that is possible too and gives another date.
    pub month_first: Option<NaiveDate>,
    /// Which one comes first, where only one reading is possible and it is written with digits alone.
    pub shows: Option<Order>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    DayFirst,
    MonthFirst,
}

/// The beginnings of months' names, folded: small letters without accents.
const MONTHS: [&[&str]; 12] = [
    &["january", "januar", "janner", "janvier", "enero", "jan"],
    &["february", "februar", "fevrier", "febrero", "feb", "fev", "fevr"],
    &["march", "marz", "maerz", "mars", "marzo", "mar", "mrz"],
    &["april", "avril", "abril", "apr", "avr", "abr"],
    &["may", "mai", "mayo"],
    &["june", "juni", "juin", "junio", "jun"],
    &["july", "juli", "juillet", "julio", "jul", "juil"],
    &["august", "aout", "agosto", "aug", "ago"],
    &["september", "septembre", "septiembre", "setiembre", "sep", "sept"],
    &["october", "oktober", "octobre", "octubre", "oct", "okt"],
    &["november", "novembre", "noviembre", "nov"],
    &["december", "dezember", "decembre", "diciembre", "dec", "dez", "dic"],
];

fn month(word: &str) -> Option<u32> {
    (1..).zip(MONTHS).find(|(_, names)| names.contains(&word)).map(|(n, _)| n)
}

/// Reads the date at the start of these tokens. Returns it with the number of its tokens.
pub(super) fn day(tokens: &[Token]) -> Option<(Day, usize)> {
    in_digits(tokens).or_else(|| day_month_year(tokens)).or_else(|| month_day_year(tokens))
}

fn plain(date: NaiveDate) -> Day {
    Day { date, month_first: None, shows: None }
}

fn number(token: &Token, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let word = &token.word;
    (digits.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().ok()).flatten()
}

fn year(token: &Token) -> Option<i32> {
    let year = number(token, 4..=4).or_else(|| number(token, 2..=2).map(|short| 2000 + short))?;
    i32::try_from(year).ok().filter(|year| (1950..2100).contains(year))
}

fn in_digits(tokens: &[Token]) -> Option<(Day, usize)> {
    let [a, by, b, by_again, c, ..] = tokens else { return None };
    let is_one = by.glued && b.glued && by_again.glued && by.word == by_again.word;
    // "03. 03. 2026" has spaces behind its dots.
    let is_spaced = by.word == "." && by.word == by_again.word && by.glued && by_again.glued;
    if !matches!(by.word.as_str(), "." | "/" | "-") || !(is_one && c.glued || is_spaced) {
        return None;
    }
    if tokens.get(5).is_some_and(|next| next.glued && (next.is_word() || next.word == "-" || next.word == "/")) {
        return None; // a part of something longer, such as a number of an invoice
    }
    if let Some(full) = number(a, 4..=4) {
        let date = NaiveDate::from_ymd_opt(i32::try_from(full).ok()?, number(b, 1..=2)?, number(c, 1..=2)?)?;
        return (is_one && (1950..2100).contains(&date.year())).then_some((plain(date), 5));
    }
    let (first, second, year) = (number(a, 1..=2)?, number(b, 1..=2)?, year(c)?);
    let day_first = NaiveDate::from_ymd_opt(year, second, first);
    let month_first = NaiveDate::from_ymd_opt(year, first, second);
    let day = match (by.word.as_str(), day_first, month_first) {
        (".", date, _) => plain(date?),
        (_, Some(date), Some(other)) if date != other => Day { date, month_first: Some(other), shows: None },
        (_, Some(date), Some(_)) => plain(date),
        (_, Some(date), None) => Day { date, month_first: None, shows: Some(Order::DayFirst) },
        (_, None, Some(date)) => Day { date, month_first: None, shows: Some(Order::MonthFirst) },
        (_, None, None) => return None,
    };
    Some((day, 5))
}

/// "3 March 2026", "3. März 2026", "3 de marzo de 2026", "3rd of March, 2026", "03-Mar-2026".
fn day_month_year(tokens: &[Token]) -> Option<(Day, usize)> {
    let first = &tokens.first()?.word;
    let digits = first.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_ordinal = matches!(&first[digits.len()..], "" | "st" | "nd" | "rd" | "th" | "er");
    let day = Some(digits).filter(|digits| is_ordinal && (1..=2).contains(&digits.len()))?.parse().ok()?;
    let mut at = after(tokens, 1, &[".", "-", "de", "of"]);
    let month = month(&tokens.get(at)?.word)?;
    at = after(tokens, at + 1, &[".", ",", "-", "de", "del"]);
    let date = NaiveDate::from_ymd_opt(year(tokens.get(at)?)?, month, day)?;
    Some((plain(date), at + 1))
}

/// "March 3, 2026".
fn month_day_year(tokens: &[Token]) -> Option<(Day, usize)> {
    let month = month(&tokens.first()?.word)?;
    let mut at = after(tokens, 1, &["."]);
    let digits = tokens.get(at)?.word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let day = Some(digits).filter(|digits| (1..=2).contains(&digits.len()))?.parse().ok()?;
    at = after(tokens, at + 1, &[","]);
    let date = NaiveDate::from_ymd_opt(number(tokens.get(at)?, 4..=4)? as i32, month, day)?;
    Some((plain(date), at + 1))
}

/// The position behind at most two of these.
fn after(tokens: &[Token], from: usize, skipped: &[&str]) -> usize {
    let n = tokens.iter().skip(from).take(2).take_while(|token| skipped.contains(&token.word.as_str())).count();
    from + n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::piece::tokens;

    #[test]
    fn dates_of_every_country_are_read() {
        for text in [
            "2026-03-13",
            "2026/03/13",
            "13 March 2026",
            "13. März 2026",
            "13 mars 2026",
            "13 de marzo de 2026",
            "March 13, 2026",
            "Mar. 13th, 2026",
            "13th of March, 2026",
            "13.03.2026",
            "13. 3. 2026",
            "13.3.26",
            "13/03/2026",
            "03/13/2026",
            "13-Mar-2026",
        ] {
            let (day, n) = day(&tokens(text, 0)).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((day.date.to_string().as_str(), day.month_first), ("2026-03-13", None), "{text}");
            assert_eq!(n, tokens(text, 0).len(), "{text}");
        }
        let (twice, _) = day(&tokens("03/04/2026", 0)).expect("a date");
        assert_eq!(
            (twice.date.to_string(), twice.month_first.map(|d| d.to_string())),
            ("2026-04-03".into(), Some("2026-03-04".into()))
        );
        for none in
            ["", "31.02.2026", "13/13/2026", "12.50", "3 apples 2026", "2026-03-13-7", "March", "1.2.3", "99 May 2026"]
        {
            assert_eq!(day(&tokens(none, 0)), None, "{none:?}");
        }
    }
}
