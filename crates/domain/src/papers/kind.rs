//! The kind of a paper, by its words. What is not clear is [`PaperKind::Other`].

use serde::{Deserialize, Serialize};

use super::PaperKind;
use super::piece::tokens;
use crate::reading::Page;

/// A paper says what it is near its beginning.
const LOOKED_AT: usize = 20_000;
const HEAD: usize = 600;
/// The points that a kind needs, and those that it needs more than the next.
const ENOUGH: u32 = 5;
const AHEAD: u32 = 2;

/// The kind of a paper, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    pub kind: PaperKind,
    /// From 0 to 1.
    pub confidence: f32,
    /// For people: "“rechnung” stands at its top; it has “falligkeitsdatum”".
    pub why: String,
}

/// Words that speak for a kind: with so many points at the top of the first page or in the title, and so many elsewhere.
struct Sign {
    kind: PaperKind,
    at_top: u32,
    elsewhere: u32,
    words: &'static [&'static str],
}

const fn sign(kind: PaperKind, at_top: u32, elsewhere: u32, words: &'static [&'static str]) -> Sign {
    Sign { kind, at_top, elsewhere, words }
}

use PaperKind::{Contract, CreditNote, Invoice, Letter, Receipt, Statement};

/// Each line counts once, by the first of its words that is found. All are folded: small letters, no accents.
const SIGNS: &[Sign] = &[
    sign(
        Invoice,
        4,
        1,
        &[
            "invoice",
            "tax invoice",
            "rechnung",
            "facture",
            "factura",
            "rechnungsnummer",
            "rechnungs nr",
            "rechnung nr",
            "rechnungsnr",
        ],
    ),
    sign(
        Invoice,
        2,
        2,
        &[
            "invoice number",
            "invoice no",
            "invoice #",
            "rechnungsnummer",
            "rechnungs nr",
            "rechnung nr",
            "rechnungsnr",
            "numero de facture",
            "facture n",
            "n de facture",
            "numero de factura",
            "factura n",
            "n o de factura",
        ],
    ),
    sign(
        Invoice,
        1,
        1,
        &[
            "due date",
            "payment due",
            "pay by",
            "bill to",
            "billed to",
            "invoice to",
            "rechnung an",
            "rechnungsempfanger",
            "fallig am",
            "falligkeitsdatum",
            "zahlbar bis",
            "echeance",
            "facture a",
            "vencimiento",
            "facturar a",
        ],
    ),
    sign(Invoice, 1, 1, &["vat", "sales tax", "tax", "mwst", "ust", "umsatzsteuer", "tva", "iva"]),
    sign(
        Invoice,
        1,
        1,
        &["total", "gesamtbetrag", "rechnungsbetrag", "gesamtsumme", "net a payer", "importe total", "summe brutto"],
    ),
    sign(
        CreditNote,
        9,
        1,
        &[
            "credit note",
            "credit memo",
            "gutschrift",
            "avoir",
            "factura rectificativa",
            "nota de credito",
            "stornorechnung",
            "rechnungskorrektur",
        ],
    ),
    sign(CreditNote, 4, 2, &["credit note number", "credit note no", "gutschriftsnummer", "gutschrift nr", "avoir n"]),
    sign(
        Receipt,
        5,
        1,
        &["receipt", "quittung", "kassenbon", "kassenbeleg", "recu", "recibo", "ticket de caisse", "sales receipt"],
    ),
    sign(
        Receipt,
        2,
        2,
        &[
            "change",
            "cash",
            "cashier",
            "ruckgeld",
            "bar",
            "kartenzahlung",
            "visa",
            "mastercard",
            "card payment",
            "especes",
            "efectivo",
        ],
    ),
    sign(Receipt, 1, 1, &["total", "summe", "gesamt"]),
    sign(
        Contract,
        5,
        1,
        &[
            "agreement",
            "contract",
            "vertrag",
            "mietvertrag",
            "kaufvertrag",
            "arbeitsvertrag",
            "dienstleistungsvertrag",
            "contrat",
            "contrato",
            "lease",
            "lease agreement",
        ],
    ),
    sign(
        Contract,
        3,
        3,
        &[
            "hereinafter",
            "witnesseth",
            "whereas",
            "nachfolgend",
            "im folgenden",
            "vertragsparteien",
            "ci apres",
            "en adelante",
            "the parties",
            "die parteien",
            "les parties",
            "las partes",
        ],
    ),
    sign(
        Contract,
        2,
        2,
        &[
            "governing law",
            "severability",
            "termination",
            "kundigung",
            "gerichtsstand",
            "salvatorische klausel",
            "resiliation",
            "droit applicable",
            "rescision",
            "effective date",
            "vertragsbeginn",
        ],
    ),
    sign(Contract, 1, 1, &["by and between", "between", "zwischen", "entre"]),
    sign(
        Statement,
        5,
        1,
        &[
            "account statement",
            "statement of account",
            "bank statement",
            "kontoauszug",
            "releve de compte",
            "extracto de cuenta",
            "depotauszug",
            "credit card statement",
        ],
    ),
    sign(
        Statement,
        3,
        3,
        &[
            "opening balance",
            "balance brought forward",
            "previous balance",
            "beginning balance",
            "anfangssaldo",
            "alter saldo",
            "saldovortrag",
            "alter kontostand",
            "ancien solde",
            "solde initial",
            "saldo inicial",
            "saldo anterior",
        ],
    ),
    sign(
        Statement,
        3,
        3,
        &[
            "closing balance",
            "new balance",
            "ending balance",
            "endsaldo",
            "neuer saldo",
            "neuer kontostand",
            "nouveau solde",
            "solde final",
            "saldo final",
        ],
    ),
    sign(
        Letter,
        3,
        3,
        &[
            "dear",
            "sehr geehrte",
            "sehr geehrter",
            "liebe",
            "lieber",
            "madame",
            "monsieur",
            "cher",
            "chere",
            "estimado",
            "estimada",
            "to whom it may concern",
        ],
    ),
    sign(
        Letter,
        3,
        3,
        &[
            "sincerely",
            "yours faithfully",
            "kind regards",
            "best regards",
            "mit freundlichen grussen",
            "freundliche grusse",
            "cordialement",
            "salutations distinguees",
            "atentamente",
            "saludos cordiales",
        ],
    ),
];

/// Tells the kind of a paper from its title and its pages, with a reason. It errs towards other.
pub fn classify(title: Option<&str>, pages: &[Page]) -> Classified {
    let text = beginning(pages);
    let words = |text: &str| {
        let words: Vec<String> =
            tokens(text, 0).into_iter().filter(|t| t.is_word() || t.word == "#").map(|t| t.word).collect();
        format!(" {} ", words.join(" "))
    };
    let (top, all) = (format!("{}{}", words(title.unwrap_or_default()), words(clip(&text, HEAD))), words(&text));
    let mut points = [0_u32; PaperKind::ALL.len()];
    let mut seen: Vec<(PaperKind, &str, bool)> = Vec::new();
    for sign in SIGNS {
        let find = |text: &str| sign.words.iter().find(|words| text.contains(&format!(" {words} "))).copied();
        let (found, is_top) = match find(&top) {
            Some(word) => (Some(word), true),
            None => (find(&all), false),
        };
        if let Some(word) = found {
            points[sign.kind as usize] += if is_top { sign.at_top } else { sign.elsewhere };
            seen.push((sign.kind, word, is_top));
        }
    }
    // A credit note that says so at its top has the words of an invoice too.
    if seen.iter().any(|(kind, _, is_top)| *kind == CreditNote && *is_top) {
        points[CreditNote as usize] += std::mem::take(&mut points[Invoice as usize]);
    }
    let mut ranked: Vec<(u32, PaperKind)> =
        PaperKind::ALL.into_iter().map(|kind| (points[kind as usize], kind)).collect();
    ranked.sort_by_key(|(points, _)| std::cmp::Reverse(*points));
    let ((best, kind), (next, _)) = (ranked[0], ranked[1]);
    if best < ENOUGH || best < next + AHEAD {
        let why = if best == 0 { "no word in it tells its kind" } else { "its words speak for no kind clearly enough" };
        return Classified { kind: PaperKind::Other, confidence: 0.5, why: why.into() };
    }
    let of_kind = |wanted_top: bool| {
        let words = seen.iter().filter(move |(of, _, is_top)| *of == kind && *is_top == wanted_top);
        words.map(|(_, word, _)| format!("“{word}”")).collect::<Vec<_>>().join(", ")
    };
    let why = match (of_kind(true), of_kind(false)) {
        (top, rest) if rest.is_empty() => format!("{top} at its top"),
        (top, rest) if top.is_empty() => format!("it has {rest}"),
        (top, rest) => format!("{top} at its top, and it has {rest}"),
    };
    let confidence = (0.5 + 0.06 * (best - next) as f32).min(0.97);
    Classified { kind, confidence, why }
}

/// The beginning of the text of all pages.
fn beginning(pages: &[Page]) -> String {
    let mut text = String::new();
    for page in pages {
        let left = LOOKED_AT.saturating_sub(text.len());
        if left == 0 {
            break;
        }
        text.push_str(clip(&page.text, left));
        text.push('\n');
    }
    text
}

/// At most so many bytes of a text, and whole characters.
fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::tests::page;

    #[test]
    fn papers_say_what_they_are_and_the_rest_is_other() {
        for (title, text, kind) in [
            (None, "# Invoice\nInvoice number: 12\nDue date: 3 May 2026\nVAT 20% £2.00\nTotal £12.00", Invoice),
            (
                None,
                "RECHNUNG Rechnungsnummer: 4768 Zahlbar bis: 17.03.2026 MwSt. 19 % Gesamtbetrag: 12,00 EUR",
                Invoice,
            ),
            (Some("Gutschrift"), "Gutschrift Nr. 12 zu Rechnung Nr. 9\nMwSt. 19 %\nGesamtbetrag 5,00 EUR", CreditNote),
            (None, "Corner Shop\nRECEIPT\nMilk 1.20\nTotal 1.20\nCash 2.00\nChange 0.80", Receipt),
            (None, "Lease agreement\nbetween A Ltd and B Ltd, hereinafter the parties", Contract),
            (None, "Kontoauszug\nAlter Saldo 1,00 EUR\nNeuer Saldo 2,00 EUR", Statement),
            (None, "Dear Mr Bell,\nthank you for the invoice.\nYours faithfully\nA. Carr", Letter),
            (None, "Minutes of the meeting. The invoice was discussed.", PaperKind::Other),
            (None, "", PaperKind::Other),
        ] {
            let said = classify(title, &[page(text)]);
            assert_eq!(said.kind, kind, "{text}: {said:?}");
            assert!(!said.why.is_empty() && (0.0..=1.0).contains(&said.confidence));
        }
    }
}
