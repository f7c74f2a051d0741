//! The facts about a client, in the order and the words in which people read it.

use connectors::pull::ALL;
use domain::shown::money;
use serde_json::{Map, Value};

use crate::lanes::client_facts::said;

/// The order of facts: identity, prospects, money owed, address.
const ORDER: [&str; 16] = [
    "summary",
    "contact_role",
    "lifecycle",
    "industry",
    "employees",
    "revenue",
    "domain",
    "open_deals",
    "deal_stage",
    "deal_amount",
    "ar_balance",
    "currency",
    "open_invoices",
    "total_lifetime_value",
    "invoice_history",
    "billing_address",
];

/// The position of a fact among others; an unknown fact comes last.
pub fn place(fact: &str) -> usize {
    ORDER.iter().position(|known| *known == fact).unwrap_or(ORDER.len())
}

/// A client's derived facts.
pub fn in_order(facts: &Value) -> Vec<(&str, &Value)> {
    let mut all: Vec<(&str, &Value)> =
        facts.as_object().into_iter().flatten().map(|(fact, value)| (fact.as_str(), value)).collect();
    all.sort_by_key(|(fact, _)| place(fact));
    all
}

/// A fact's value.
pub fn in_words(fact: &str, value: &Value) -> String {
    let sum = match fact {
        "revenue" | "employees" | "deal_amount" | "ar_balance" | "total_lifetime_value" => money(value),
        _ => None,
    };
    let each =
        |one: fn(&Value) -> String| value.as_array().map(|all| all.iter().map(one).collect::<Vec<_>>().join("; "));
    let listed = match fact {
        "open_deals" => each(deal),
        "invoice_history" | "open_invoices" => each(invoice),
        _ => None,
    };
    match value {
        Value::Object(parts) if fact == "billing_address" => address(parts),
        _ => listed.or(sum).unwrap_or_else(|| said(value)),
    }
}

fn deal(deal: &Value) -> String {
    told(&[said(&deal["name"]), sum(&deal["amount"]), said(&deal["stage"]), before("closes", &deal["close_date"])])
}

fn invoice(invoice: &Value) -> String {
    let open = Some(sum(&invoice["balance"])).filter(|open| !open.is_empty() && open != "0");
    let open = open.map(|open| format!("{open} of it open")).unwrap_or_default();
    told(&[said(&invoice["doc_number"]), sum(&invoice["total"]), open, before("due", &invoice["due_date"])])
}

fn told(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn sum(value: &Value) -> String {
    money(value).unwrap_or_else(|| said(value))
}

/// A day, with a word before it; nothing where there is none.
fn before(word: &str, day: &Value) -> String {
    let day: String = said(day).chars().take(10).collect(); // some give the time of day as well
    if day.is_empty() { day } else { format!("{word} {day}") }
}

/// A postal address, in the order of a letter, which the providers' descriptions state. Unknown fields come last.
fn address(parts: &Map<String, Value>) -> String {
    let place = |field: &str| {
        let mut letter = ALL.iter().flat_map(|provider| provider.address_fields);
        letter.position(|known| *known == field).unwrap_or(usize::MAX)
    };
    let mut parts: Vec<(&String, &Value)> = parts.iter().collect();
    parts.sort_by_key(|(field, _)| place(field.as_str()));
    parts.into_iter().map(|(_, part)| said(part)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_come_in_the_order_in_which_people_ask() {
        let facts = json!({ "billing_address": {}, "ar_balance": 1, "zodiac": "", "lifecycle": "", "open_deals": [] });
        let names: Vec<&str> = in_order(&facts).iter().map(|(fact, _)| *fact).collect();
        assert_eq!(names, ["lifecycle", "open_deals", "ar_balance", "billing_address", "zodiac"]);
        assert!(in_order(&json!(null)).is_empty());
    }

    #[test]
    fn an_address_is_told_as_on_a_letter_and_sums_are_grouped() {
        let bill = json!({
            "City": "Montpelier", "Country": "USA", "CountrySubDivisionCode": "VT", "Line1": "1 Mill Lane", "Line2": "Unit 4",
            "PostalCode": "05602", "Note": "rear door"
        });
        let letter = "1 Mill Lane, Unit 4, Montpelier, VT, 05602, USA, rear door";
        assert_eq!(in_words("billing_address", &bill), letter);
        assert_eq!(in_words("billing_address", &json!("1 Mill Lane")), "1 Mill Lane");
        assert_eq!(in_words("revenue", &json!("1000000")), "1,000,000");
        assert_eq!(in_words("revenue", &json!("about a million")), "about a million");
        assert_eq!(in_words("domain", &json!("acme.example")), "acme.example");
    }

    #[test]
    fn deals_and_invoices_are_told_by_what_people_ask_for() {
        let deals = json!([
            { "id": "58", "name": "Two loaders", "amount": "48600.00", "stage": "contractsent", "close_date": "2026-12-04T17:00:00.000Z", "pipeline": "default" },
            { "id": "59", "name": "A blade", "amount": null, "stage": "", "close_date": null, "pipeline": "default" }
        ]);
        assert_eq!(in_words("open_deals", &deals), "Two loaders, 48,600, contractsent, closes 2026-12-04; A blade");
        let invoices = json!([
            { "doc_number": "1042", "total": 1200, "balance": 300, "txn_date": "2026-10-01", "due_date": "2026-11-01" },
            { "doc_number": "1041", "total": 50.5, "balance": 0, "txn_date": "2026-09-01", "due_date": null }
        ]);
        assert_eq!(in_words("invoice_history", &invoices), "1042, 1,200, 300 of it open, due 2026-11-01; 1041, 50.50");
    }
}
