//! The fields of a document's paper: what was read of it, and what people said.

use chrono::{DateTime, Utc};
use domain::reading::FileKind;
use domain::shown::{capitalised, clipped, number, shown_lines};
use store::files::fields::{FieldRow, FieldState};
use uuid::Uuid;

use super::reading::part;
use super::text::{Badge, When};
use super::{file, marked};

/// Below this share a field that was read is marked as not sure.
const SURE: f32 = 0.8;

/// A field as the page shows it.
pub(super) struct FieldLine {
    /// It stays the same line while the page is renewed.
    pub key: String,
    pub name: String,
    pub ordinal: i32,
    /// "Invoice number", "Line 2".
    pub label: String,
    pub value: String,
    /// The page on which it stands: its words, and its address.
    pub page: Option<(String, String)>,
    pub quote: String,
    pub badge: Option<Badge>,
    /// Why it is doubtful, or who said so.
    pub note: String,
    pub times: Vec<When>,
    /// A person said so, and can take it back.
    pub is_said: bool,
}

/// The fields of a document, as the page shows them.
pub(super) fn lines(document: Uuid, fields: &[FieldRow], kind: Option<FileKind>, now: DateTime<Utc>) -> Vec<FieldLine> {
    let line = |field: &FieldRow| {
        let n_of_name = fields.iter().filter(|other| other.name == field.name).count();
        let label = match n_of_name {
            ..=1 => label(&field.name),
            _ => format!("{} {}", label(&field.name), number(i64::from(field.ordinal) + 1)),
        };
        let (badge, note) = state(field);
        FieldLine {
            key: format!("{}-{}", field.name, field.ordinal),
            name: field.name.clone(),
            ordinal: field.ordinal,
            label,
            value: shown_lines(&field.value),
            page: field.page.map(|page| {
                let address = match field.quote {
                    Some(_) => marked::of_field(document, page, &field.name, field.ordinal),
                    None => file::address(document, page),
                };
                (format!("{} {}", part(kind), number(page.into())), address)
            }),
            quote: field.quote.as_deref().map(shown_lines).unwrap_or_default(),
            badge,
            note,
            times: field.said_at.map(|at| When::new(at, now)).into_iter().collect(),
            is_said: field.state == FieldState::Said,
        }
    };
    fields.iter().map(line).collect()
}

/// A field's name in words: `invoice_number` is "Invoice number".
fn label(name: &str) -> String {
    capitalised(&clipped(&name.replace('_', " "), 60))
}

/// How much a field is worth: a coloured word where it should be looked at, and why.
fn state(field: &FieldRow) -> (Option<Badge>, String) {
    let note = field.note.as_deref().map(|note| clipped(note, 300)).filter(|note| !note.is_empty());
    let sure = field.confidence.map(|sure| format!("{} sure", file::percent(sure.into())));
    match field.state {
        FieldState::Doubtful => (Some(Badge("doubtful")), note.or(sure).unwrap_or_else(|| "look at it".into())),
        FieldState::Checked => (Some(Badge("checked")), note.unwrap_or_else(|| "the sums are right".into())),
        FieldState::Said => (None, format!("said by {}", clipped(field.said_by.as_deref().unwrap_or("a person"), 60))),
        FieldState::Read if field.confidence.is_some_and(|sure| sure < SURE) => {
            (Some(Badge("doubtful")), note.or(sure).unwrap_or_default())
        }
        FieldState::Read => (None, note.or(sure).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, ordinal: i32, state: FieldState) -> FieldRow {
        FieldRow {
            name: name.into(),
            ordinal,
            value: "805.00 EUR".into(),
            on_date: None,
            amount: None,
            currency: None,
            page: Some(2),
            quote: Some("Total 805.00".into()),
            confidence: Some(0.91),
            state,
            note: None,
            said_by: None,
            said_at: None,
        }
    }

    #[test]
    fn a_field_has_a_label_and_several_of_one_name_have_numbers() {
        for (name, words) in [("invoice_number", "Invoice number"), ("total", "Total"), ("due-date", "Due-date")] {
            assert_eq!(label(name), words);
        }
        let fields = [
            field("line", 0, FieldState::Read),
            field("line", 1, FieldState::Read),
            field("total", 0, FieldState::Read),
        ];
        let lines = lines(Uuid::nil(), &fields, Some(FileKind::Pdf), DateTime::UNIX_EPOCH);
        let labels: Vec<&str> = lines.iter().map(|line| line.label.as_str()).collect();
        assert_eq!(labels, ["Line 1", "Line 2", "Total"]);
        let place = (format!("/documents/{}?page=2&field=total.0#mark", Uuid::nil()), "page 2".to_owned());
        assert_eq!(lines[2].page.clone().map(|(words, href)| (href, words)), Some(place));
        assert_eq!(lines[1].key, "line-1");
    }

    #[test]
    fn what_a_field_is_worth_is_told() {
        let of = |field: FieldRow| {
            let (badge, note) = state(&field);
            (badge.map(|badge| badge.0), note)
        };
        let said = |badge, note: &str| (badge, note.to_owned());
        assert_eq!(of(field("total", 0, FieldState::Read)), said(None, "91 % sure"));
        let faint = FieldRow { confidence: Some(0.5), ..field("total", 0, FieldState::Read) };
        assert_eq!(of(faint), said(Some("doubtful"), "50 % sure"));
        let wrong = FieldRow { note: Some("lines add up to 800.00".into()), ..field("total", 0, FieldState::Doubtful) };
        assert_eq!(of(wrong), said(Some("doubtful"), "lines add up to 800.00"));
        assert_eq!(of(field("total", 0, FieldState::Checked)), said(Some("checked"), "the sums are right"));
        let by = FieldRow { said_by: Some("Ann".into()), ..field("total", 0, FieldState::Said) };
        assert_eq!(of(by), said(None, "said by Ann"));
    }
}
