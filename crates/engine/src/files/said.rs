//! Corrections of a paper's fields by people. They stay when its file is read again.

use chrono::NaiveDate;
use domain::reading::Step;
use domain::shown::clipped;
use domain::text::has_nul;
use domain::{Caller, DocumentId, DocumentStatus, Notice, Op};
use store::files::fields::{self, FieldRow, FieldState, NewField};
use store::files::{self, FileState};
use store::memory::{Document, documents};

use super::asked::{ask, tell_again};
use crate::act::OrMissing as _;
use crate::{ActError, Env};

const MOST_CHARACTERS: usize = 2_000;
/// Fields of one name in a document: an invoice has so many lines at most.
const MOST_OF_A_NAME: i32 = 10_000;
/// The digits of an amount.
const MOST_DIGITS: usize = 30;

/// A person says what a field of a document's paper is: one that was read, or one that was not found. Returns the field as it is then.
pub async fn say(
    env: &Env,
    caller: &Caller,
    id: DocumentId,
    name: &str,
    ordinal: i32,
    value: &str,
) -> Result<FieldRow, ActError> {
    let (name, value) = (checked_field(name)?, value.trim());
    if value.is_empty() || value.chars().count() > MOST_CHARACTERS || has_nul(value) {
        return Err(ActError::Invalid(format!("a field has 1 to {MOST_CHARACTERS} characters")));
    }
    if !(0..MOST_OF_A_NAME).contains(&ordinal) {
        return Err(ActError::Invalid(format!("ordinal is 0 to {}", MOST_OF_A_NAME - 1)));
    }
    let tenant_id = caller.tenant_id;
    let document = with_file(env, caller, id).await?;
    let by = clipped(&caller.key_name, 60);
    env.db
        .write(async |tx| -> Result<FieldRow, ActError> {
            hold(tx, caller, &document).await?;
            let is_it = |field: &FieldRow| field.name == name && field.ordinal == ordinal;
            let known = fields::list(tx, tenant_id, id).await?.into_iter().find(is_it);
            let figures = Figures::of(value, known.as_ref());
            let field = NewField {
                name: name.clone(),
                ordinal,
                value: value.to_owned(),
                on_date: figures.on_date,
                amount: figures.amount,
                currency: figures.currency,
                page: None,
                quote: None,
                confidence: None,
                state: FieldState::Said,
                note: None,
            };
            fields::say(tx, env.clock.sql(), tenant_id, id, &field, &by).await?;
            if is_read(tx, caller, &document).await? {
                tell_again(tx, caller, id).await?;
            }
            tx.notify_all(Notice::documents(tenant_id, &[id.0], Op::Update));
            fields::list(tx, tenant_id, id).await?.into_iter().find(is_it).or_missing("field of this document")
        })
        .await
}

/// Takes back what a person said about a field. What is read in its place is found again.
pub async fn withdraw(env: &Env, caller: &Caller, id: DocumentId, name: &str, ordinal: i32) -> Result<(), ActError> {
    let (name, tenant_id) = (checked_field(name)?, caller.tenant_id);
    let document = with_file(env, caller, id).await?;
    env.db
        .write(async |tx| -> Result<(), ActError> {
            hold(tx, caller, &document).await?;
            let is_gone = fields::withdraw(tx, tenant_id, id, &name, ordinal).await?;
            is_gone.or_missing("field that a person said something about")?;
            if is_read(tx, caller, &document).await? {
                let key = document.blob_key.clone().unwrap_or_default();
                ask(tx, caller, &[(id.0, key)], Step::Extract).await?;
            }
            tx.notify_all(Notice::documents(tenant_id, &[id.0], Op::Update));
            Ok(())
        })
        .await
}

/// Whether a document's file is read, so that its text can be made again.
async fn is_read(tx: &mut store::Tx, caller: &Caller, document: &Document) -> Result<bool, ActError> {
    let key = document.blob_key.as_deref().unwrap_or_default();
    let file = files::get(tx, caller.tenant_id, key).await?;
    Ok(document.status == DocumentStatus::Completed && file.is_some_and(|file| file.state == FileState::Read))
}

/// One of the caller's documents, if it has a file.
async fn with_file(env: &Env, caller: &Caller, id: DocumentId) -> Result<Document, ActError> {
    let document = env.db.read(caller, async |tx| documents::get(tx, id.0).await).await?.or_missing("document")?;
    match document.deleted_at.is_none() && document.blob_key.is_some() {
        true => Ok(document),
        false => Err(ActError::conflict("this document has no file, so it has no fields")),
    }
}

/// Keeps a document as it was seen until what is said about it is written.
async fn hold(tx: &mut store::Tx, caller: &Caller, document: &Document) -> Result<(), ActError> {
    match files::hold(tx, caller.tenant_id, DocumentId(document.id), document.updated_at).await? {
        true => Ok(()),
        false => Err(ActError::conflict("this document changed meanwhile: look again")),
    }
}

/// The name under which a field is stored: "Invoice number" is `invoice_number`.
fn checked_field(name: &str) -> Result<String, ActError> {
    let name = name.split_whitespace().collect::<Vec<_>>().join("_").to_lowercase();
    let is_plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if (1..=60).contains(&name.chars().count()) && name.chars().all(is_plain) {
        return Ok(name);
    }
    Err(ActError::invalid("a field's name has 1 to 60 letters, digits, hyphens and spaces"))
}

/// The day or the amount that a value is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    on_date: Option<NaiveDate>,
    amount: Option<String>,
    currency: Option<String>,
}

impl Figures {
    /// Reads `2026-03-09`, `805.00 EUR` and `805.00`. A number without a point or a currency is an amount only where one was read: it may be an invoice's
    /// number.
    fn of(value: &str, known: Option<&FieldRow>) -> Self {
        if let Ok(day) = value.parse() {
            return Self { on_date: Some(day), ..Self::default() };
        }
        let words: Vec<&str> = value.split_whitespace().collect();
        let (amount, currency) = match words.as_slice() {
            [amount] => (*amount, None),
            [amount, code] if is_currency(code) => (*amount, Some(*code)),
            [code, amount] if is_currency(code) => (*amount, Some(*code)),
            _ => return Self::default(),
        };
        let was_amount = known.is_some_and(|known| known.amount.is_some());
        if !is_decimal(amount) || !(was_amount || currency.is_some() || amount.contains('.')) {
            return Self::default();
        }
        let before = || known.and_then(|known| known.currency.clone());
        Self { on_date: None, amount: Some(amount.to_owned()), currency: currency.map(str::to_owned).or_else(before) }
    }
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.len() <= MOST_DIGITS && are_digits(whole) && are_digits(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(amount: Option<&str>, currency: Option<&str>) -> FieldRow {
        FieldRow {
            name: "total".into(),
            ordinal: 0,
            value: String::new(),
            on_date: None,
            amount: amount.map(Into::into),
            currency: currency.map(Into::into),
            page: None,
            quote: None,
            confidence: None,
            state: FieldState::Read,
            note: None,
            said_by: None,
            said_at: None,
        }
    }

    #[test]
    fn a_value_that_is_a_day_or_an_amount_is_read_as_one() {
        let euro = known(Some("1"), Some("EUR"));
        for (value, known, expected) in [
            ("2026-03-09", None, "2026-03-09||"),
            ("2026-02-30", None, "||"),
            ("805.00 EUR", None, "|805.00|EUR"),
            ("EUR 805", None, "|805|EUR"),
            ("-12.50", None, "|-12.50|"),
            ("805", Some(&euro), "|805|EUR"),
            ("805 USD", Some(&euro), "|805|USD"),
            ("20260017", None, "||"),
            ("1,234.50", None, "||"),
            (".5", None, "||"),
            ("5.", None, "||"),
            ("1.2.3", None, "||"),
            ("805.00 euro", None, "||"),
            ("Mill & Co", None, "||"),
        ] {
            let Figures { on_date, amount, currency } = Figures::of(value, known);
            let day = on_date.map(|day| day.to_string()).unwrap_or_default();
            let found = format!("{day}|{}|{}", amount.unwrap_or_default(), currency.unwrap_or_default());
            assert_eq!(found, expected, "{value:?}");
        }
    }

    #[test]
    fn a_fields_name_is_stored_in_one_spelling() {
        for (given, expected) in [("Invoice number", Some("invoice_number")), ("total", Some("total")), ("", None)] {
            assert_eq!(checked_field(given).ok().as_deref(), expected, "{given:?}");
        }
        for odd in ["a/b", "a\0", "<b>", &"x".repeat(61)] {
            assert!(checked_field(odd).is_err(), "{odd:?}");
        }
    }
}
