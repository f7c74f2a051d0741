//! The fields of a paper: read by rules in the pages of its file (`domain::papers`), or by a language model whose answer is held against the same pages.

use domain::papers::{self, Field, FieldName, FieldState, FieldValue, PaperKind};
use domain::reading::Page;
use domain::shown::capitalised;
use store::files::fields::{FieldRow, FieldState as Stored, NewField};

/// The name of the field that has the kind of paper. A person can correct it like the others.
pub const PAPER: &str = "paper";

/// A paper: its kind and its fields.
#[derive(Clone, Debug)]
pub struct Paper {
    pub kind: PaperKind,
    pub fields: Vec<Field>,
    /// The kind as a field, with the reason for it.
    why: String,
    confidence: f32,
}

impl Default for Paper {
    fn default() -> Self {
        Self { kind: PaperKind::Other, fields: Vec::new(), why: String::new(), confidence: 0.0 }
    }
}

impl Paper {
    /// Reads a paper by rules.
    pub fn by_rules(title: Option<&str>, pages: &[Page]) -> Self {
        let classified = papers::classify(title, pages);
        let fields = match classified.kind {
            PaperKind::Other => Vec::new(),
            kind => papers::read(kind, pages),
        };
        Self { kind: classified.kind, fields, why: classified.why, confidence: classified.confidence }
    }

    /// Puts a model's answer in the place of what rules read.
    pub fn answered(self, fields: Vec<Field>) -> Self {
        Self { fields, ..self }
    }

    /// Says in sentences what the paper is, for search. What is doubtful is left out of them by `domain::papers`.
    pub fn in_words(&self) -> String {
        match self.kind {
            PaperKind::Other => String::new(),
            kind => papers::in_words(kind, &self.fields),
        }
    }

    /// The rows of its fields. Another paper has none.
    pub fn rows(&self) -> Vec<NewField> {
        if self.kind == PaperKind::Other {
            return Vec::new();
        }
        let kind = NewField {
            name: PAPER.into(),
            ordinal: 0,
            value: self.kind.as_str().into(),
            on_date: None,
            amount: None,
            currency: None,
            page: None,
            quote: None,
            confidence: Some(self.confidence),
            state: Stored::Read,
            note: Some(self.why.clone()),
        };
        std::iter::once(kind).chain(self.fields.iter().map(row)).collect()
    }
}

fn row(field: &Field) -> NewField {
    let (amount, currency) = match &field.value {
        FieldValue::Money { amount, currency } => (Some(amount.to_string()), currency.clone()),
        FieldValue::Number { number } => (Some(number.to_string()), None),
        FieldValue::Text { .. } | FieldValue::Date { .. } => (None, None),
    };
    NewField {
        name: field.name.as_str().into(),
        ordinal: i32::try_from(field.nth).unwrap_or(i32::MAX),
        value: in_words(&field.value),
        on_date: field.value.date(),
        amount,
        currency,
        page: i32::try_from(field.page).ok(),
        quote: Some(field.quote.clone()),
        confidence: Some(field.confidence),
        state: match field.state {
            FieldState::Read => Stored::Read,
            FieldState::Checked => Stored::Checked,
            FieldState::Doubtful => Stored::Doubtful,
        },
        note: field.why.clone(),
    }
}

/// A value as people read it.
fn in_words(value: &FieldValue) -> String {
    match value {
        FieldValue::Text { text } => text.clone(),
        FieldValue::Date { date } => date.to_string(),
        FieldValue::Money { amount, currency: Some(currency) } => format!("{} {currency}", amount.as_money()),
        FieldValue::Money { amount, currency: None } => amount.as_money(),
        FieldValue::Number { number } => number.to_string(),
    }
}

/// Says in sentences what people said about the fields of a paper, so that it is found like what was read.
pub fn said_in_words(fields: &[FieldRow]) -> String {
    in_sentences(fields.iter().filter(|field| field.said_by.is_some()))
}

/// Says in sentences what was read of a paper once, and is in no doubt.
pub fn read_in_words(fields: &[FieldRow]) -> String {
    let is_sure = |field: &&FieldRow| field.said_by.is_none() && field.ordinal == 0 && field.state != Stored::Doubtful;
    in_sentences(fields.iter().filter(is_sure))
}

fn in_sentences<'a>(fields: impl Iterator<Item = &'a FieldRow>) -> String {
    let sentence = |field: &FieldRow| {
        let name = field
            .name
            .parse()
            .map_or_else(|_| field.name.replace('_', " "), |name: FieldName| name.in_words().to_owned());
        format!("{}: {}.", capitalised(&name), field.value.trim_end_matches('.'))
    };
    fields.map(sentence).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use domain::reading::ReadBy;

    use super::*;

    #[test]
    fn a_paper_becomes_rows_and_sentences_and_another_file_none() {
        let page = |text: &str| Page {
            number: 1,
            label: None,
            text: text.into(),
            read_by: ReadBy::Text,
            confidence: None,
            trouble: None,
            aspect: None,
            lines: Vec::new(),
        };
        let invoice = "# Invoice\n\nLarkfield Ltd\n\nInvoice number: INV-2041\nInvoice date: 3 March 2026\nDue date: 2 April 2026\n\n\
            Net amount: EUR 676.47\nVAT 19%: EUR 128.53\nTotal: EUR 805.00\n";
        let paper = Paper::by_rules(Some("invoice.pdf"), &[page(invoice)]);
        assert_eq!(paper.kind, PaperKind::Invoice);
        let rows = paper.rows();
        let row =
            |name: &str| rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}: {rows:?}"));
        assert_eq!((row("number").value.as_str(), row("number").page), ("INV-2041", Some(1)));
        assert_eq!(row("due_on").on_date, chrono::NaiveDate::from_ymd_opt(2026, 4, 2));
        let total = row("total");
        assert_eq!(
            (total.value.as_str(), total.currency.as_deref(), total.state),
            ("805.00 EUR", Some("EUR"), Stored::Checked)
        );
        assert!(paper.in_words().contains("INV-2041"), "{}", paper.in_words());
        let other = Paper::by_rules(None, &[page("The lights are green.")]);
        assert!(other.rows().is_empty() && other.in_words().is_empty());
    }

    #[test]
    fn what_people_said_is_a_sentence_each() {
        let field = |name: &str, value: &str, said_by: Option<&str>| FieldRow {
            name: name.into(),
            ordinal: 0,
            value: value.into(),
            on_date: None,
            amount: None,
            currency: None,
            page: None,
            quote: None,
            confidence: None,
            state: Stored::Said,
            note: None,
            said_by: said_by.map(Into::into),
            said_at: None,
        };
        let fields = [
            field("due_on", "2026-04-02", Some("Ann")),
            field("total", "1 EUR", None),
            field("cost_centre", "Roof.", Some("Ann")),
        ];
        assert_eq!(said_in_words(&fields), "Due date: 2026-04-02. Cost centre: Roof.");
    }
}
