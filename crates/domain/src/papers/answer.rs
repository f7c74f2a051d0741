//! A model's answer about a paper, held against the paper. The pages decide: a value whose quote does not stand there, or does not have it, is left
//! out, and the complaint about it can be sent back to the model. What a page tells the model to do shows here as a value that arithmetic or the
//! rules contradict.

use std::collections::HashMap;
use std::fmt;

use chrono::NaiveDate;
use serde_json::{Map, Value};

use super::dates::Day;
use super::figures::Style;
use super::layout::MOST_BYTES;
use super::piece::{Is, fold, pieces, tokens};
use super::place::Squeezed;
use super::read::{self, iban_in, spelled};
use super::schema::{lists, schema};
use super::sheet::Sheet;
use super::{Decimal, Field, FieldName, FieldState, FieldValue, PaperKind, Shape, check, figures, money};
use crate::reading::Page;
use crate::shown::clipped;

/// Longer lists are cut.
const MOST_ENTRIES: usize = 500;
/// A model that makes more mistakes does not mend them all.
const MOST_COMPLAINTS: usize = 40;
const LONGEST_QUOTE: usize = 500;
/// A model's word is worth less than one that rules read too.
const CONFIDENCE: f32 = 0.75;
const AGREED: f32 = 0.93;

/// The fields of an answer that stand on the pages, and what is wrong with the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub fields: Vec<Field>,
    pub complaints: Vec<Complaint>,
}

/// A mistake in an answer, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The key in the answer, such as `total` or `lines[3]`. Empty for the whole answer.
    pub at: String,
    pub problem: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() { f.write_str(&self.problem) } else { write!(f, "{}: {}", self.at, self.problem) }
    }
}

/// Reads a model's answer about a paper of this kind. The answer should follow [`schema`].
pub fn from_answer(kind: PaperKind, answer: &Value, pages: &[Page]) -> Answer {
    let complain = |problem: &str| vec![Complaint { at: String::new(), problem: problem.into() }];
    let Some(answer) = answer.as_object() else {
        let complaints = complain("The answer must be one JSON object that follows the schema, and nothing else.");
        return Answer { fields: Vec::new(), complaints };
    };
    let sheet = Sheet::of(pages);
    let currency =
        answer.get("currency").and_then(|field| field.get("value")?.as_str()).filter(|code| money::is_code(code));
    let pages_by_number = pages.iter().rev().map(|page| (page.number, (page, None))).collect();
    let mut judge =
        Judge { pages: pages_by_number, sheet: &sheet, currency, fields: Vec::new(), complaints: Vec::new() };
    for name in read::single(kind) {
        judge.single(*name, answer.get(name.as_str()));
    }
    for (list, keys) in lists(kind) {
        judge.list(list, keys, answer.get(*list));
    }
    let known = schema(kind);
    for key in answer.keys().filter(|key| known["properties"].get(key.as_str()).is_none()).take(20) {
        judge.complain(&clipped(key, 40), "The schema has no such key. Leave it out.");
    }
    let Judge { mut fields, complaints, .. } = judge;
    check::check(&mut fields);
    compare(&mut fields, &read::read(kind, pages));
    Answer { fields, complaints }
}

/// Holds an answer against what the rules read. Where they read something else, and nothing contradicts them, the answer is in doubt.
fn compare(fields: &mut [Field], ruled: &[Field]) {
    for field in fields.iter_mut().filter(|field| field.nth == 0 && field.name != FieldName::Subject) {
        let rule = ruled.iter().find(|rule| rule.name == field.name && rule.state != FieldState::Doubtful);
        let Some(rule) = rule else { continue };
        if !is_same(&rule.value, &field.value) {
            field.doubt(format!("by rules it is {}", spelled(&rule.value)));
        } else if field.state == FieldState::Read {
            field.confidence = field.confidence.max(AGREED);
        }
    }
}

/// Whether two values are the same. Of two texts one may have more words.
fn is_same(a: &FieldValue, b: &FieldValue) -> bool {
    match (a.text(), b.text()) {
        (Some(a), Some(b)) => {
            let (a, b) = (letters(a), letters(b));
            a.contains(&b) || b.contains(&a)
        }
        _ => a == b,
    }
}

/// The letters and digits of a text, folded.
fn letters(text: &str) -> String {
    tokens(text, 0).into_iter().filter(|token| token.is_word()).map(|token| token.word).collect()
}

struct Judge<'a> {
    /// By their numbers, squeezed when the first quote is looked for.
    pages: HashMap<u32, (&'a Page, Option<Squeezed>)>,
    sheet: &'a Sheet<'a>,
    currency: Option<&'a str>,
    fields: Vec<Field>,
    complaints: Vec<Complaint>,
}

impl Judge<'_> {
    fn complain(&mut self, at: &str, problem: impl Into<String>) {
        if self.complaints.len() == MOST_COMPLAINTS {
            return;
        }
        self.complaints.push(Complaint { at: at.to_owned(), problem: problem.into() });
    }

    fn single(&mut self, name: FieldName, answer: Option<&Value>) {
        let entry = match answer {
            None => return self.complain(name.as_str(), "The key is missing. Give null if the paper does not say it."),
            Some(Value::Null) => return,
            Some(Value::Object(entry)) => entry,
            Some(_) => {
                return self.complain(name.as_str(), "It must be an object with value, page and quote, or null.");
            }
        };
        match self
            .quoted(entry)
            .and_then(|quote| self.field(name, 0, entry.get("value").unwrap_or(&Value::Null), &quote))
        {
            Ok(field) => self.fields.push(field),
            Err(problem) => self.complain(name.as_str(), problem),
        }
    }

    fn list(&mut self, list: &str, keys: &[(&str, FieldName)], answer: Option<&Value>) {
        let Some(entries) = answer.and_then(Value::as_array) else {
            return self.complain(list, "It must be a list. Give an empty one if the paper has none.");
        };
        for (nth, entry) in (1..).zip(entries.iter().take(MOST_ENTRIES)) {
            let at = format!("{list}[{}]", nth - 1);
            let Some(entry) = entry.as_object() else {
                self.complain(&at, "It must be an object.");
                continue;
            };
            let quote = match self.quoted(entry) {
                Ok(quote) => quote,
                Err(problem) => {
                    self.complain(&at, problem);
                    continue;
                }
            };
            for (key, name) in keys {
                let Some(value) = entry.get(*key).filter(|value| !value.is_null()) else { continue };
                match self.field(*name, nth, value, &quote) {
                    Ok(field) => self.fields.push(field),
                    Err(problem) => self.complain(&format!("{at}.{key}"), problem),
                }
            }
        }
    }

    /// The quote of an entry, as it stands on its page.
    fn quoted(&mut self, entry: &Map<String, Value>) -> Result<(u32, String), String> {
        let number = entry.get("page").and_then(Value::as_u64).and_then(|page| u32::try_from(page).ok());
        let Some((page, squeezed)) = number.and_then(|number| self.pages.get_mut(&number)) else {
            return Err("The page must be the number of a page of the paper.".into());
        };
        let Some(quote) = entry.get("quote").and_then(Value::as_str).filter(|quote| !quote.trim().is_empty()) else {
            return Err("The quote is missing. Copy the text of the page that has the value.".into());
        };
        if quote.len() > LONGEST_QUOTE {
            return Err(format!("The quote is too long. Copy at most {LONGEST_QUOTE} characters around the value."));
        }
        let beginning = &page.text[..page.text.floor_char_boundary(MOST_BYTES)];
        let stands =
            squeezed.get_or_insert_with(|| Squeezed::of(beginning)).place(quote).and_then(|range| page.text.get(range));
        match stands {
            Some(exact) => Ok((page.number, exact.to_owned())),
            None => Err(format!(
                "The quote “{}” does not stand on page {}. Copy the text exactly, or give null.",
                clipped(quote, 80),
                page.number
            )),
        }
    }

    /// The field, if its value is of the right type and stands in the quote.
    fn field(&self, name: FieldName, nth: u32, answer: &Value, quote: &(u32, String)) -> Result<Field, String> {
        let (page, quote) = quote;
        let said = match answer {
            Value::String(text) => clipped(text, 80),
            other => clipped(&other.to_string(), 80),
        };
        let not_in_quote = || {
            format!(
                "The quote “{}” does not have the value “{said}”. Quote the text that has it, or give null.",
                clipped(quote, 80)
            )
        };
        let (value, doubt) = match name.shape() {
            Shape::Text => {
                let text = answer.as_str().map(str::trim).filter(|text| !text.is_empty() && text.len() <= 300);
                let text =
                    text.ok_or_else(|| format!("The value “{said}” must be a text of at most 300 characters."))?;
                (FieldValue::Text { text: self.text(name, text, quote)?.ok_or_else(not_in_quote)? }, None)
            }
            Shape::Date => {
                let date = answer.as_str().and_then(|text| text.trim().parse::<NaiveDate>().ok());
                let date = date.ok_or_else(|| format!("The value “{said}” must be a date as YYYY-MM-DD."))?;
                let doubt = self.date(date, quote).ok_or_else(not_in_quote)?;
                (FieldValue::Date { date }, doubt)
            }
            Shape::Money | Shape::Number => {
                let number = number(answer).ok_or_else(|| {
                    format!(
                        "The value “{said}” must be a number such as 1234.50, without currency or marks of thousands."
                    )
                })?;
                let currency = self.amount(name, number, quote).ok_or_else(not_in_quote)?;
                let currency = currency.or(self.currency).map(str::to_owned);
                let is_money = name.shape() == Shape::Money;
                (
                    if is_money {
                        FieldValue::Money { amount: number, currency }
                    } else {
                        FieldValue::Number { number }
                    },
                    None,
                )
            }
        };
        let mut field = Field {
            name,
            nth,
            value,
            page: *page,
            quote: quote.clone(),
            confidence: CONFIDENCE,
            state: FieldState::Read,
            why: None,
        };
        if name == FieldName::Iban {
            field.confirm();
        }
        if let Some(why) = doubt {
            field.doubt(why);
        }
        Ok(field)
    }

    /// The text, if the quote has it. Case, accents and spaces do not count, and neither do the signs in numbers.
    fn text(&self, name: FieldName, text: &str, quote: &str) -> Result<Option<String>, String> {
        match name {
            FieldName::Currency => {
                if !money::is_code(text) {
                    return Err(format!(
                        "The value “{}” must be the code of a currency, such as EUR.",
                        clipped(text, 20)
                    ));
                }
                let is_there = pieces(quote, 0, self.sheet.style).iter().any(|piece| match piece.is {
                    Is::Number(amount) => amount.currency == Some(text),
                    _ => money::currency(&quote[piece.range.clone()]) == Some(text),
                });
                let has_sign =
                    tokens(quote, 0).into_iter().any(|token| money::currency(&quote[token.range]) == Some(text));
                Ok((is_there || has_sign).then(|| text.to_owned()))
            }
            FieldName::Iban => match iban_in(&text.split_whitespace().collect::<String>()) {
                Some((_, iban)) => Ok(letters(quote).contains(&letters(&iban)).then_some(iban)),
                None => Err(format!(
                    "The check digits of “{}” are wrong. Copy the IBAN exactly, or give null.",
                    clipped(text, 50)
                )),
            },
            _ => {
                let wanted = letters(text);
                let is_there = if wanted.is_empty() {
                    fold(quote).contains(&fold(text))
                } else {
                    letters(quote).contains(&wanted)
                };
                Ok(is_there.then(|| text.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
        }
    }

    /// Whether the quote has the date, with the reason if it can be another.
    fn date(&self, date: NaiveDate, quote: &str) -> Option<Option<String>> {
        let days = pieces(quote, 0, self.sheet.style)
            .into_iter()
            .filter_map(|piece| if let Is::Date(day) = piece.is { Some(day) } else { None });
        let is_it = |day: &Day| day.date == date || day.month_first == Some(date);
        let day = days.into_iter().find(is_it)?;
        let (sure, doubt) = read::date(day, read::order(self.sheet));
        if sure != date && doubt.is_none() {
            return None; // other dates of the paper show that it is the other one
        }
        Some(doubt)
    }

    /// Whether the quote has the amount, with its currency.
    fn amount(&self, name: FieldName, number: Decimal, quote: &str) -> Option<Option<&'static str>> {
        let is_it = |value: Decimal| {
            value == number || matches!(name, FieldName::Discount | FieldName::Paid) && value.abs() == number.abs()
        };
        pieces(quote, 0, self.sheet.style).into_iter().find_map(|piece| match piece.is {
            Is::Number(amount) if is_it(amount.value) => Some(amount.currency),
            Is::Percent(rate) | Is::Label(_, Some(rate)) if name == FieldName::TaxRate && is_it(rate) => Some(None),
            _ => None,
        })
    }
}

/// A number, also one that is written as on the paper where it can be only one.
fn number(answer: &Value) -> Option<Decimal> {
    if let Some(number) = Decimal::from_json(answer) {
        return Some(number);
    }
    let text = answer.as_str()?.trim();
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let figure = figures::figure(digits, Style::UNKNOWN).filter(|figure| figure.len == digits.len())?;
    Some(if is_negative { -figure.value } else { figure.value })
}
