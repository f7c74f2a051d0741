//! Papers in a few sentences, for search and for people.

use super::read::spelled;
use super::{Field, FieldName, FieldState, PaperKind};

use FieldName::*;

/// So many lines are told; more make no better sentence.
const MOST_LINES: usize = 12;

/// Tells a paper in plain sentences: "Invoice INV-2041 of Larkfield Ltd, dated 3 March 2026, due 2 April 2026: 805.00 EUR (net 676.47 EUR, tax
/// 128.53 EUR at 19%)." What is doubtful is left out.
pub fn in_words(kind: PaperKind, fields: &[Field]) -> String {
    let sure = || fields.iter().filter(|field| field.state != FieldState::Doubtful);
    let get = |name: FieldName| sure().find(|field| field.name == name).map(|field| spelled(&field.value));
    let with = |before: &str, name: FieldName| get(name).map(|value| format!("{before}{value}"));
    let name = match kind {
        PaperKind::Invoice => "Invoice",
        PaperKind::CreditNote => "Credit note",
        PaperKind::Receipt => "Receipt",
        PaperKind::Contract => "Contract",
        PaperKind::Letter => "Letter",
        PaperKind::Statement => "Statement of account",
        PaperKind::Other => return String::new(),
    };
    let mut text = name.to_owned();
    let is_statement = kind == PaperKind::Statement;
    let mut head = vec![
        with(" ", Number),
        with(if is_statement { " " } else { " of " }, if is_statement { Account } else { Supplier }),
    ];
    head.extend([
        with(" to ", Customer),
        with(", dated ", IssuedOn),
        with(", due ", DueOn),
        with(", from ", StartsOn),
        with(", until ", EndsOn),
    ]);
    head.extend([with(", from ", PeriodFrom), with(" to ", PeriodTo)]);
    head.into_iter().flatten().for_each(|part| text.push_str(&part));
    let parties: Vec<String> = sure().filter(|field| field.name == Party).map(|field| spelled(&field.value)).collect();
    if !parties.is_empty() {
        text.push_str(&format!(" between {}", parties.join(" and ")));
    }
    if let Some(total) = get(Total).or_else(|| get(AmountDue)).or_else(|| get(Amount)) {
        text.push_str(&format!(": {total}"));
        let mut parts: Vec<String> = with("net ", Net).into_iter().collect();
        for tax in sure().filter(|field| field.name == TaxAmount) {
            let rate = sure().find(|field| field.name == TaxRate && field.nth == tax.nth);
            let rate = rate.map(|rate| format!(" at {}%", spelled(&rate.value))).unwrap_or_default();
            parts.push(format!("tax {}{rate}", spelled(&tax.value)));
        }
        if !parts.is_empty() {
            text.push_str(&format!(" ({})", parts.join(", ")));
        }
    }
    text.push('.');
    for (before, name) in [
        ("Subject: ", Subject),
        ("Reference: ", Reference),
        ("Order: ", OrderNumber),
        ("Opening balance: ", OpeningBalance),
        ("Closing balance: ", ClosingBalance),
    ] {
        if let Some(part) = with(before, name) {
            text.push_str(&format!(" {part}."));
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for field in sure().filter(|field| field.name == LineDescription) {
        let line = spelled(&field.value);
        if !lines.contains(&line) {
            lines.push(line);
        }
        if lines.len() == MOST_LINES {
            break;
        }
    }
    if !lines.is_empty() {
        text.push_str(&format!(" For: {}.", lines.join("; ")));
    }
    text
}
