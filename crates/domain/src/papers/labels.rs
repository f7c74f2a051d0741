//! The words by which papers name their fields, in English, German, French and Spanish.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::FieldName;

/// The meaning of some words on a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// They name a field, and only that.
    Strong(FieldName),
    /// They name a field where a value follows. Elsewhere they are words like others.
    Weak(FieldName),
    /// They head a column of an invoice's lines.
    Column(Column),
    /// They name something that is no field of ours, and end what stands before them.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Description,
    Quantity,
    UnitPrice,
    Amount,
    Rest,
}

impl Label {
    pub fn field(self) -> Option<FieldName> {
        match self {
            Self::Strong(name) | Self::Weak(name) => Some(name),
            Self::Column(_) | Self::Other => None,
        }
    }
}

use self::Column::{Amount, Description, Quantity, Rest, UnitPrice};
use self::Label::{Column as Head, Other, Strong, Weak};
use super::FieldName as F;

/// Folded: small letters, no accents, no dots; words parted by one space, phrases by a bar.
const LABELS: &[(Label, &str)] = &[
    (
        Strong(F::Number),
        "invoice number|invoice no|invoice num|invoice nr|invoice #|invoice id|inv no|inv #|inv number|\
         bill number|bill no|tax invoice no|tax invoice number|credit note number|credit note no|\
         credit note #|credit memo no|credit memo #|receipt number|receipt no|receipt #|document number|\
         rechnungsnummer|rechnungsnr|rechnungs nr|rechnung nr|rechnung nummer|rechnungs nummer|\
         rechnung no|re nr|belegnummer|beleg nr|belegnr|gutschriftsnummer|gutschriftnummer|\
         gutschrift nr|gutschrifts nr|quittungsnummer|quittung nr|numero de facture|facture n|\
         facture no|facture numero|n de facture|no de facture|n facture|avoir n|avoir no|numero d avoir|\
         n d avoir|numero de factura|factura n o|factura n|factura no|factura numero|n o de factura|\
         n de factura|no de factura|n o factura",
    ),
    (Weak(F::Number), "invoice|tax invoice|rechnung|gutschrift|facture|factura|avoir|credit note|receipt|quittung"),
    (
        Strong(F::IssuedOn),
        "invoice date|date of invoice|issue date|issued on|date of issue|issued|date issued|\
         invoice issued|bill date|credit note date|receipt date|rechnungsdatum|belegdatum|\
         ausstellungsdatum|ausgestellt am|gutschriftsdatum|rechnung vom|date de facture|\
         date de facturation|date d emission|date de la facture|emise le|date de l avoir|\
         fecha de factura|fecha de emision|fecha de expedicion|statement date",
    ),
    (Weak(F::IssuedOn), "date|dated|datum|fecha"),
    (
        Strong(F::DueOn),
        "due date|payment due|payment due date|payment due by|due by|due on|pay by|payable by|\
         payable until|falligkeitsdatum|fallig am|falligkeit|zahlbar bis|zahlbar bis zum|\
         zahlbar bis spatestens|zu zahlen bis|zahlungsziel|zahlung bis|echeance|date d echeance|\
         date limite de paiement|a payer avant le|payable avant le|vencimiento|fecha de vencimiento|\
         pagar antes del",
    ),
    (Weak(F::DueOn), "due|fallig|avant le"),
    (
        Strong(F::OrderNumber),
        "po number|po no|po #|p o number|p o no|purchase order|purchase order number|purchase order no|\
         order number|order no|order #|your order|your order no|your po|bestellnummer|bestellnr|\
         bestell nr|ihre bestellung|ihre bestellnummer|auftragsnummer|auftrags nr|auftragsnr|auftrag nr|\
         bon de commande|n de commande|no de commande|numero de commande|commande n|numero de pedido|\
         n o de pedido|pedido n o|pedido n",
    ),
    (Weak(F::OrderNumber), "po|pedido|commande|bestellung|auftrag"),
    (
        Strong(F::Customer),
        "bill to|billed to|invoice to|invoiced to|sold to|customer|customer name|client|buyer|\
         rechnung an|rechnungsempfanger|kunde|auftraggeber|empfanger|rechnungsadresse|\
         rechnungsanschrift|facture a|destinataire|adresse de facturation|facturar a|cliente|facturado a",
    ),
    (
        Strong(F::Supplier),
        "supplier|seller|vendor|sold by|issued by|invoice from|bill from|lieferant|absender|\
         rechnungssteller|verkaufer|aussteller|emetteur|fournisseur|vendeur|emisor|proveedor|vendedor",
    ),
    (Weak(F::Supplier), "from|von|de la part de"),
    (
        Strong(F::Subtotal),
        "subtotal|sub total|zwischensumme|sous total|sous total ht|suma|total before discount|\
         goods total|warenwert",
    ),
    (
        Strong(F::Net),
        "net total|net amount|total net|total excl vat|total ex vat|total excluding vat|total excl tax|\
         total before tax|subtotal excl vat|amount excl vat|net value|taxable amount|nettobetrag|\
         netto betrag|summe netto|gesamt netto|netto gesamt|nettosumme|gesamtbetrag netto|netto summe|\
         gesamtsumme netto|rechnungsbetrag netto|total netto|total ht|montant ht|montant total ht|\
         total hors taxes|total net ht|net ht|base imponible|total neto|importe neto|base iva|\
         total sin iva",
    ),
    (Weak(F::Net), "net|netto"),
    (
        Strong(F::TaxAmount),
        "sales tax|vat amount|total vat|tax amount|total tax|mwst betrag|umsatzsteuer|mehrwertsteuer|\
         steuerbetrag|summe mwst|montant tva|total tva|cuota iva|total iva",
    ),
    (Weak(F::TaxAmount), "vat|tax|gst|hst|mwst|ust|tva|iva"),
    (
        Strong(F::Total),
        "invoice total|total amount|grand total|total due|total payable|total incl vat|total inc vat|\
         total including vat|total incl tax|total including tax|gross total|gross amount|total gross|\
         total to pay|credit total|total credit|gesamtbetrag|rechnungsbetrag|gesamtsumme|endbetrag|\
         bruttobetrag|summe brutto|gesamt brutto|brutto gesamt|gesamtbetrag brutto|rechnungssumme|\
         gutschriftsbetrag|zu zahlender betrag|total ttc|montant ttc|montant total|montant total ttc|\
         net a payer|total a payer|total factura|total a pagar|importe total|total con iva|total general",
    ),
    (Weak(F::Total), "total|gesamt|summe|brutto|gross"),
    (Strong(F::Discount), "discount|less discount|trade discount|rabatt|nachlass|remise|descuento|dto"),
    (
        Strong(F::Shipping),
        "shipping|shipping handling|shipping and handling|postage|carriage|freight|delivery charge|\
         delivery charges|versand|versandkosten|porto|fracht|lieferkosten|frais de port|\
         frais de livraison|gastos de envio|portes",
    ),
    (
        Strong(F::Paid),
        "amount paid|paid|payment received|deposit paid|less deposit|bereits bezahlt|anzahlung|bezahlt|\
         acompte|deja paye|pagado|anticipo",
    ),
    (
        Strong(F::AmountDue),
        "amount due|balance due|balance payable|outstanding balance|amount payable|zahlbetrag|\
         offener betrag|restbetrag|reste a payer|solde a payer|importe pendiente",
    ),
    (Strong(F::Iban), "iban"),
    (
        Strong(F::VatId),
        "vat no|vat number|vat reg no|vat registration no|vat registration number|vat reg number|vat id|\
         vat registration|vat reg|ust idnr|ust id nr|ust id|ustid|ustidnr|umsatzsteuer id|\
         umsatzsteuer identifikationsnummer|uid|uid nr|uid nummer|mwst nr|mwst nummer|n tva|no tva|\
         numero tva|numero de tva|n de tva|tva intracommunautaire|n tva intracommunautaire|nif|cif|\
         nif iva|nif cif",
    ),
    (
        Strong(F::CustomerVatId),
        "your vat no|your vat number|customer vat no|customer vat number|customer vat id|your vat id|\
         ihre ust id|ihre ust idnr|ihre ust id nr|ust id kunde|ust idnr kunde|votre n tva|n tva client|\
         nif cliente|nif del cliente|cif cliente",
    ),
    (
        Strong(F::Reference),
        "our ref|our reference|your ref|your reference|reference|reference number|reference no|ref no|\
         contract number|contract no|agreement number|agreement no|case number|file number|aktenzeichen|\
         unser zeichen|ihr zeichen|geschaftszeichen|vertragsnummer|vertrag nr|kundennummer|\
         notre reference|votre reference|numero de contrat|contrat n|referencia|nuestra referencia|\
         contrato n o|numero de contrato",
    ),
    (Weak(F::Reference), "ref"),
    (Strong(F::Subject), "subject|betreff|betr|objet|asunto"),
    (Weak(F::Subject), "re"),
    (
        Strong(F::StartsOn),
        "effective date|commencement date|start date|starting date|commencing on|effective as of|\
         effective from|vertragsbeginn|beginnt am|beginn|date d effet|date de debut|prend effet le|\
         fecha de inicio|fecha de efecto",
    ),
    (
        Strong(F::EndsOn),
        "end date|expiry date|expiration date|termination date|expires on|ends on|vertragsende|endet am|\
         laufzeit bis|date de fin|date d expiration|fecha de fin|fecha de finalizacion",
    ),
    (
        Strong(F::Amount),
        "monthly rent|rent|annual fee|monthly fee|purchase price|contract value|contract sum|salary|\
         kaufpreis|monatliche miete|miete|monatsmiete|vergutung|vertragswert|loyer|loyer mensuel|\
         prix de vente|renta mensual|precio de venta",
    ),
    (
        Strong(F::Account),
        "account number|account no|account|kontonummer|konto nr|konto|numero de compte|compte n|\
         numero de cuenta",
    ),
    (
        Strong(F::PeriodFrom),
        "period from|statement period|period|zeitraum|auszugszeitraum|zeitraum vom|periode|periode du|\
         periodo|periodo del",
    ),
    (
        Strong(F::OpeningBalance),
        "opening balance|balance brought forward|previous balance|starting balance|beginning balance|\
         anfangssaldo|alter saldo|saldovortrag|alter kontostand|anfangsbestand|ancien solde|\
         solde initial|solde precedent|saldo inicial|saldo anterior",
    ),
    (
        Strong(F::ClosingBalance),
        "closing balance|new balance|ending balance|balance carried forward|current balance|endsaldo|\
         neuer saldo|neuer kontostand|schlusssaldo|nouveau solde|solde final|saldo final|saldo actual",
    ),
    (
        Strong(F::MoneyIn),
        "total paid in|money in|total credits|total deposits|paid in|summe gutschriften|summe haben|\
         zahlungseingange|total des credits|total abonos",
    ),
    (
        Strong(F::MoneyOut),
        "total paid out|money out|total debits|total withdrawals|paid out|summe belastungen|summe soll|\
         zahlungsausgange|total des debits|total cargos",
    ),
    (
        Head(Description),
        "description|item|items|details|product|service|bezeichnung|beschreibung|leistung|artikel|\
         artikelbezeichnung|designation|libelle|article|descripcion|concepto|articulo",
    ),
    (Head(Quantity), "qty|quantity|hours|units|menge|anzahl|stunden|qte|quantite|cantidad|cant"),
    (
        Head(UnitPrice),
        "unit price|price|rate|price each|unit cost|cost|einzelpreis|preis|e preis|ep|stuckpreis|\
         prix unitaire|pu ht|pu|prix unitaire ht|prix|precio unitario|precio",
    ),
    (Head(Amount), "amount|line total|betrag|gesamtpreis|g preis|gp|montant|importe"),
    (Head(Rest), "pos|position|unit|einheit|%|vat %|mwst %|ust %|sku|artikelnummer|art nr"),
    (
        Other,
        "ship to|shipped to|deliver to|delivery address|lieferadresse|lieferanschrift|livre a|\
         adresse de livraison|enviar a|direccion de envio|bank details|payment details|bankverbindung|\
         coordonnees bancaires|datos bancarios|account name|sort code|bic|swift|swift code|\
         delivery date|date of supply|tax point|order date|ship date|service date|leistungsdatum|\
         lieferdatum|bestelldatum|auftragsdatum|date de livraison|date de commande|fecha de entrega|\
         fecha de pedido|print date|printed on|druckdatum|payment terms|terms|days net|tage netto|\
         zahlungsbedingungen|conditions de paiement|forma de pago|customer number|customer no|\
         customer id|kunden nr|kundennr|numero client|n client|numero de cliente|page|seite|phone|\
         telephone|tel|fax|email|e mail|website|company number|company no|company registration|\
         registered in england|registered office|amtsgericht|handelsregister|hrb|steuernummer|steuer nr|\
         siret|siren|rcs|delivery note|delivery note no|lieferschein|lieferschein nr|lieferscheinnummer|\
         bon de livraison|date of birth|geburtsdatum|thank you|merci|gracias|vielen dank|rounding|\
         rundung|original invoice|original invoice number|original invoice no|zu rechnung|\
         zu rechnung nr|for invoice|contact|ansprechpartner|quote number|quote no|angebotsnummer|\
         angebot nr|devis n|valid until|gultig bis|change|cash|card|ruckgeld|bar|tip|trinkgeld|\
         exchange rate|total weight|gesamtgewicht|total hours|total items|total quantity|total pages|\
         total lines|total savings|you saved|early payment|skonto|vat rate|tax rate|vat summary|\
         late fee|previous invoice|registration number|reg no",
    ),
];

/// Labels by their first word, longest first.
type ByWord = HashMap<&'static str, Vec<(Vec<&'static str>, Label)>>;

static BY_WORD: LazyLock<ByWord> = LazyLock::new(|| {
    let mut by_word = ByWord::new();
    for (label, phrases) in LABELS {
        for phrase in phrases.split('|') {
            let words: Vec<&str> = phrase.split(' ').collect();
            by_word.entry(words[0]).or_default().push((words, *label));
        }
    }
    for labels in by_word.values_mut() {
        labels.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
    }
    by_word
});

/// The labels that begin with this word, longest first.
pub(super) fn beginning_with(word: &str) -> &'static [(Vec<&'static str>, Label)] {
    BY_WORD.get(word).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_words_name_two_fields_and_all_are_folded() {
        let mut seen = HashMap::new();
        for (label, phrases) in LABELS {
            for phrase in phrases.split('|') {
                assert_eq!(seen.insert(phrase, *label), None, "{phrase}");
                let words: Vec<String> =
                    crate::papers::piece::tokens(phrase, 0).into_iter().map(|token| token.word).collect();
                assert_eq!(words.join(" "), phrase);
            }
        }
    }
}
