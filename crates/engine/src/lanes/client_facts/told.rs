//! A client's facts in the words that people use when they ask: who owes what, since when, and what was billed.

use chrono::NaiveDate;
use connectors::pull::ClientFacts;
use domain::shown::money;
use serde_json::Value;

use crate::pull::words::facts as words;

/// Unpaid invoices that are told one by one.
const MOST_TOLD: usize = 5;

/// Facts that sentences tell, and that are not listed again.
const TOLD: [&str; 4] = ["ar_balance", "currency", "open_invoices", "total_lifetime_value"];

/// Whether the client owes something.
pub(super) fn owes(facts: &ClientFacts) -> bool {
    balance(facts).is_some_and(|balance| balance > 0.0)
}

/// A client's text on this day: sentences about money first, then its other facts, a line each.
pub(super) fn in_words(facts: &ClientFacts, today: NaiveDate) -> String {
    let mut lines = about_money(facts, today);
    lines.extend(
        facts.industry.as_ref().map(|industry| format!("Industry: {}", words::value_in_words("industry", industry))),
    );
    lines.extend(facts.summary.clone());
    let rest = facts.key_facts.iter().filter(|(fact, _)| !TOLD.contains(&fact.as_str()));
    lines.extend(rest.map(|(fact, value)| format!("{}: {}", words::label(fact), words::in_words(fact, value))));
    lines.join("\n")
}

/// The first day to come on which something is due: when it has passed, the text is no longer true.
pub(super) fn next_due(facts: &ClientFacts, today: NaiveDate) -> Option<NaiveDate> {
    unpaid(facts).iter().filter_map(due).filter(|due| *due >= today).min()
}

fn about_money(facts: &ClientFacts, today: NaiveDate) -> Vec<String> {
    let (name, unpaid) = (&facts.client_name, unpaid(facts));
    let mut lines = Vec::new();
    match balance(facts) {
        Some(balance) if balance > 0.0 => {
            let when = unpaid.iter().filter_map(due).min().map(|day| when(day, today)).unwrap_or_default();
            let sum = sum(facts, facts.key_facts.get("ar_balance"));
            lines.push(format!("{name} owes us money: it owes {sum}{when}."));
        }
        Some(balance) if balance < 0.0 => {
            let credit = sum(facts, facts.key_facts.get("ar_balance"));
            lines.push(format!("{name} has a credit of {}.", credit.trim_start_matches('-')));
        }
        Some(_) => lines.push(format!("{name} has paid everything.")),
        None => {}
    }
    for invoice in unpaid.iter().take(MOST_TOLD) {
        let number = invoice["doc_number"].as_str().map(|number| format!(" {number}")).unwrap_or_default();
        let when = due(invoice).map(|day| when(day, today)).unwrap_or_default();
        let (open, total) = (sum(facts, invoice.get("balance")), sum(facts, invoice.get("total")));
        let of = if open == total || total.is_empty() { String::new() } else { format!(" of {total}") };
        lines.push(format!("Invoice{number} of {name} is unpaid: {open}{of}{when}."));
    }
    if let Some(billed) = facts.key_facts.get("total_lifetime_value") {
        lines.push(format!("{name} was billed {} in all.", sum(facts, Some(billed))));
    }
    lines
}

/// `, overdue since 3 March 2026` or `, due on 3 March 2026`.
fn when(day: NaiveDate, today: NaiveDate) -> String {
    let word = if day < today { "overdue since" } else { "due on" };
    format!(", {word} {}", day.format("%-d %B %Y"))
}

fn balance(facts: &ClientFacts) -> Option<f64> {
    facts.key_facts.get("ar_balance").and_then(Value::as_f64)
}

fn unpaid(facts: &ClientFacts) -> &[Value] {
    facts.key_facts.get("open_invoices").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn due(invoice: &Value) -> Option<NaiveDate> {
    invoice["due_date"].as_str()?.get(..10)?.parse().ok()
}

/// An amount with its currency, if that is known.
fn sum(facts: &ClientFacts, amount: Option<&Value>) -> String {
    let sum = amount.and_then(money).unwrap_or_default();
    match facts.key_facts.get("currency").and_then(Value::as_str) {
        Some(currency) if !sum.is_empty() => format!("{sum} {currency}"),
        _ => sum,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(key_facts: Value) -> ClientFacts {
        let Value::Object(key_facts) = key_facts else { panic!("no object") };
        let client_name = "Copperline".to_owned();
        let identity = domain::matching::Identity::default();
        ClientFacts { client_name, industry: None, summary: None, key_facts, evidence: Vec::new(), identity }
    }

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    #[test]
    fn money_is_told_as_people_ask_for_it() {
        let owing = client(json!({
            "ar_balance": 805, "currency": "EUR", "total_lifetime_value": 2005.5,
            "open_invoices": [
                { "doc_number": "1037", "total": 1200, "balance": 500, "due_date": "2026-03-03" },
                { "doc_number": "1042", "total": 305, "balance": 305, "due_date": "2026-12-01" },
            ],
            "billing_address": { "Line1": "402 River Street", "City": "Montpelier" },
        }));
        let (november, march) = (day("2026-11-17"), day("2026-03-03"));
        assert_eq!(
            in_words(&owing, november),
            "Copperline owes us money: it owes 805 EUR, overdue since 3 March 2026.\n\
             Invoice 1037 of Copperline is unpaid: 500 EUR of 1,200 EUR, overdue since 3 March 2026.\n\
             Invoice 1042 of Copperline is unpaid: 305 EUR, due on 1 December 2026.\n\
             Copperline was billed 2,005.50 EUR in all.\n\
             Billing address: 402 River Street, Montpelier"
        );
        assert!(
            in_words(&owing, march).starts_with("Copperline owes us money: it owes 805 EUR, due on 3 March 2026.\n")
        );
        assert_eq!((next_due(&owing, november), next_due(&owing, march)), (Some(day("2026-12-01")), Some(march)));
        assert_eq!(next_due(&owing, day("2026-12-02")), None);
        for (facts, text) in [
            (json!({ "ar_balance": 12.5 }), "Copperline owes us money: it owes 12.50."),
            (json!({ "ar_balance": 0, "currency": "USD" }), "Copperline has paid everything."),
            (json!({ "ar_balance": -20, "currency": "USD" }), "Copperline has a credit of 20 USD."),
            (json!({ "lifecycle": "lead" }), "Lifecycle stage: Lead"),
        ] {
            assert_eq!(in_words(&client(facts), november), text);
        }
    }
}
