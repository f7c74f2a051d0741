//! Papers: invoices, receipts, contracts, letters and statements. The rules here tell what kind of paper a file is and read its fields from the pages
//! that a reader made of it. What a model answers is held against the same pages.
//!
//! A field is never a guess without a mark. It has the place where it stands, and arithmetic decides: what adds up is [`FieldState::Checked`], what
//! contradicts something is [`FieldState::Doubtful`] and says why. What is not clear is left out.
//!
//! The way of a page: `layout` cuts it into cells, `piece` cells into labels, numbers, dates and words, `find` gives labels their values, `items` finds the
//! lines of an invoice, `party` the names, and `check` does the sums.

mod answer;
mod check;
mod dates;
mod decimal;
mod figures;
mod find;
mod halves;
mod items;
mod kind;
mod labels;
mod layout;
mod money;
mod party;
mod piece;
mod place;
mod read;
mod schema;
mod sheet;
mod spell;
#[cfg(test)]
mod tests;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

pub use self::answer::{Answer, Complaint, from_answer};
pub use self::decimal::Decimal;
pub use self::kind::{Classified, classify};
pub use self::place::place;
pub use self::read::read;
pub use self::schema::schema;
pub use self::spell::in_words;
use crate::words;

/// Grows when the same pages give other fields.
pub const RULES_VERSION: i32 = 1;

words! {
    /// The kind of a paper.
    PaperKind {
        Invoice = "invoice",
        CreditNote = "credit_note",
        Receipt = "receipt",
        Contract = "contract",
        Letter = "letter",
        Statement = "statement",
        /// None of these, or not clear. Nothing is read from it.
        Other = "other",
    }
}

impl PaperKind {
    /// For people: "an invoice".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Invoice => "an invoice",
            Self::CreditNote => "a credit note",
            Self::Receipt => "a receipt",
            Self::Contract => "a contract",
            Self::Letter => "a letter",
            Self::Statement => "a statement of account",
            Self::Other => "another paper",
        }
    }

    /// Whether it has lines and sums that must add up.
    pub fn has_sums(self) -> bool {
        matches!(self, Self::Invoice | Self::CreditNote | Self::Receipt)
    }
}

words! {
    /// The names of fields.
    FieldName {
        Supplier = "supplier",
        Customer = "customer",
        Number = "number",
        IssuedOn = "issued_on",
        DueOn = "due_on",
        OrderNumber = "order_number",
        Currency = "currency",
        /// The sum of the lines, before discount and shipping.
        Subtotal = "subtotal",
        Discount = "discount",
        Shipping = "shipping",
        Net = "net",
        TaxRate = "tax_rate",
        TaxAmount = "tax_amount",
        Total = "total",
        Paid = "paid",
        AmountDue = "amount_due",
        Iban = "iban",
        VatId = "vat_id",
        CustomerVatId = "customer_vat_id",
        LineDescription = "line_description",
        LineQuantity = "line_quantity",
        LineUnitPrice = "line_unit_price",
        LineAmount = "line_amount",
        Party = "party",
        Reference = "reference",
        Subject = "subject",
        StartsOn = "starts_on",
        EndsOn = "ends_on",
        Amount = "amount",
        Account = "account",
        PeriodFrom = "period_from",
        PeriodTo = "period_to",
        OpeningBalance = "opening_balance",
        ClosingBalance = "closing_balance",
        MoneyIn = "money_in",
        MoneyOut = "money_out",
    }
}

words! {
    /// The type of a field's value.
    Shape { Text = "text", Date = "date", Money = "money", Number = "number" }
}

impl FieldName {
    pub fn shape(self) -> Shape {
        use FieldName::*;
        match self {
            IssuedOn | DueOn | StartsOn | EndsOn | PeriodFrom | PeriodTo => Shape::Date,
            Subtotal | Discount | Shipping | Net | TaxAmount | Total | Paid | AmountDue | LineUnitPrice
            | LineAmount | Amount | OpeningBalance | ClosingBalance | MoneyIn | MoneyOut => Shape::Money,
            TaxRate | LineQuantity => Shape::Number,
            Supplier | Customer | Number | OrderNumber | Currency | Iban | VatId | CustomerVatId | LineDescription
            | Party | Reference | Subject | Account => Shape::Text,
        }
    }

    /// For people: "due date".
    pub fn in_words(self) -> &'static str {
        use FieldName::*;
        match self {
            Supplier => "supplier",
            Customer => "customer",
            Number => "number",
            IssuedOn => "date",
            DueOn => "due date",
            OrderNumber => "order number",
            Currency => "currency",
            Subtotal => "subtotal",
            Discount => "discount",
            Shipping => "shipping",
            Net => "net amount",
            TaxRate => "tax rate",
            TaxAmount => "tax",
            Total => "total",
            Paid => "amount paid",
            AmountDue => "amount due",
            Iban => "IBAN",
            VatId => "VAT number",
            CustomerVatId => "customer's VAT number",
            LineDescription => "description",
            LineQuantity => "quantity",
            LineUnitPrice => "unit price",
            LineAmount => "amount of the line",
            Party => "party",
            Reference => "reference",
            Subject => "subject",
            StartsOn => "start",
            EndsOn => "end",
            Amount => "amount",
            Account => "account",
            PeriodFrom => "first day",
            PeriodTo => "last day",
            OpeningBalance => "opening balance",
            ClosingBalance => "closing balance",
            MoneyIn => "money in",
            MoneyOut => "money out",
        }
    }
}

/// The value of a field, exact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FieldValue {
    Text {
        text: String,
    },
    Date {
        date: NaiveDate,
    },
    Money {
        amount: Decimal,
        /// As ISO 4217 spells it. None: the paper does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        currency: Option<String>,
    },
    Number {
        number: Decimal,
    },
}

impl FieldValue {
    pub fn amount(&self) -> Option<Decimal> {
        match self {
            Self::Money { amount, .. } => Some(*amount),
            Self::Number { number } => Some(*number),
            Self::Text { .. } | Self::Date { .. } => None,
        }
    }

    pub fn date(&self) -> Option<NaiveDate> {
        if let Self::Date { date } = self { Some(*date) } else { None }
    }

    pub fn text(&self) -> Option<&str> {
        if let Self::Text { text } = self { Some(text) } else { None }
    }
}

words! {
    /// How far a field is to be trusted.
    FieldState {
        /// It stands there. Nothing confirms it, and nothing contradicts it.
        Read = "read",
        /// Arithmetic or check digits confirm it.
        Checked = "checked",
        /// Something contradicts it, or it can be read in two ways. `why` says so.
        Doubtful = "doubtful",
    }
}

/// A field of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub name: FieldName,
    /// From 1, for what a paper has several of: the lines, the tax rates, the parties. Fields of one line share it. Else 0.
    pub nth: u32,
    pub value: FieldValue,
    /// The page on which it stands, as pages are numbered.
    pub page: u32,
    /// The text of the page around it, exactly as it stands there: [`place()`] finds it again.
    pub quote: String,
    /// From 0 to 1.
    pub confidence: f32,
    pub state: FieldState,
    /// The reason why it is doubtful, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Field {
    /// Marks it, for a reason in words. The first reason stays.
    fn doubt(&mut self, why: impl Into<String>) {
        self.state = FieldState::Doubtful;
        self.confidence = self.confidence.min(0.3);
        self.why.get_or_insert_with(|| why.into());
    }

    /// Arithmetic confirms it, unless something else contradicts it.
    fn confirm(&mut self) {
        if self.state == FieldState::Read {
            self.state = FieldState::Checked;
            self.confidence = self.confidence.max(0.98);
        }
    }
}
