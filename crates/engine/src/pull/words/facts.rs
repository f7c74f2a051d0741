//! What is known of a client, in the order and the words in which people read it.

use serde_json::{Map, Value};

use super::figures::money;
use crate::work::lanes::client_facts::said;

/// Who it is, what it may become, what it owes, and where it is.
const ORDER: [&str; 14] = [
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
    "total_lifetime_value",
    "invoice_history",
    "billing_address",
];

/// Where a fact comes among others; one that nobody expects comes last.
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
    match value {
        Value::Object(parts) if fact == "billing_address" => address(parts),
        _ => sum.unwrap_or_else(|| said(value)),
    }
}

/// As on a letter.
fn address(parts: &Map<String, Value>) -> String {
    const LETTER: [&str; 9] =
        ["Line1", "Line2", "Line3", "Line4", "Line5", "City", "CountrySubDivisionCode", "PostalCode", "Country"];
    let others = parts.iter().filter(|(name, _)| !LETTER.contains(&name.as_str())).map(|(_, part)| part);
    let known = LETTER.iter().filter_map(|name| parts.get(*name));
    known.chain(others).map(said).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
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
}
