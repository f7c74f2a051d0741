//! The facts about a client, in the order and the words in which people read it. The words for a provider's codes come with its description.

use connectors::pull::ALL;
use domain::shown::{capitalised, day, money_in};
use domain::{ActivityType, DocumentType};
use serde_json::{Map, Value};

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

/// A fact's name: `open_deals` is "Open deals".
pub fn label(fact: &str) -> String {
    let known = ALL.iter().flat_map(|provider| provider.labels.facts).find(|(known, _)| *known == fact);
    known.map_or_else(|| capitalised(&fact.replace('_', " ")), |(_, label)| (*label).to_owned())
}

/// The type of a document: "HubSpot contact", "E-mail".
pub fn document_type(document_type: &DocumentType) -> String {
    match document_type {
        DocumentType::Note => "Note".into(),
        DocumentType::File => "File".into(),
        DocumentType::Client => "Client".into(),
        DocumentType::Activity(ActivityType::Sms) => "Text message".into(),
        DocumentType::Activity(ActivityType::Email) => "E-mail".into(),
        DocumentType::Activity(other) => capitalised(&other.to_string().replace('_', " ")),
        DocumentType::Record { provider, kind } => {
            let spelled = document_type.to_string();
            let known = ALL.iter().flat_map(|provider| provider.labels.types).find(|(known, _)| *known == spelled);
            let in_words = || format!("{} {kind}", capitalised(provider)).replace(['_', '.'], " ");
            known.map_or_else(in_words, |(_, label)| (*label).to_owned())
        }
    }
}

/// The same of a type as it is spelled; anything else is left as it is.
pub fn type_in_words(spelled: &str) -> String {
    spelled.parse().map_or_else(|_| spelled.to_owned(), |known| document_type(&known))
}

/// The same of several types. Those that read alike have their origin beside them: "E-mail (Gmail)", "E-mail (activity)".
pub fn types_in_words(spelled: &[String]) -> Vec<String> {
    let words: Vec<String> = spelled.iter().map(|spelled| type_in_words(spelled)).collect();
    let is_shared = |word: &String| words.iter().filter(|other| *other == word).count() > 1;
    let called = |(word, spelled): (&String, &String)| match origin(spelled).filter(|_| is_shared(word)) {
        Some(origin) => format!("{word} ({origin})"),
        None => word.clone(),
    };
    words.iter().zip(spelled).map(called).collect()
}

/// The origin of documents of a type; none for what people add.
fn origin(spelled: &str) -> Option<&str> {
    match spelled.split_once('.')? {
        ("activity", _) => Some("activity"),
        (provider, _) => Some(ALL.iter().find(|known| known.name == provider).map_or(provider, |known| known.label)),
    }
}

/// The word for a code that a provider gives as the value of a fact; a value that is its own word is left as it is.
pub fn value_in_words(fact: &str, value: &str) -> String {
    ALL.iter().find_map(|provider| (provider.labels.value)(fact, value)).unwrap_or_else(|| value.to_owned())
}

/// A fact's value.
pub fn in_words(fact: &str, value: &Value) -> String {
    let each =
        |one: fn(&Value) -> String| value.as_array().map(|all| all.iter().map(one).collect::<Vec<_>>().join("; "));
    let told = match fact {
        "revenue" | "employees" | "deal_amount" | "ar_balance" | "total_lifetime_value" => match value {
            Value::Array(sums) => Some(sums.iter().map(sum_of).collect::<Vec<_>>().join(" and ")),
            one => Some(money_in(one, None)),
        },
        "open_deals" => each(deal),
        "invoice_history" | "open_invoices" => each(invoice),
        _ => None,
    };
    match value {
        Value::Object(parts) if fact == "billing_address" => address(parts),
        Value::Object(_) if fact == "ar_balance" || fact == "total_lifetime_value" => sum_of(value),
        Value::String(text) if told.is_none() => value_in_words(fact, text),
        _ => told.unwrap_or_else(|| said(value)),
    }
}

/// `{amount, currency}`.
fn sum_of(sum: &Value) -> String {
    money_in(&sum["amount"], sum["currency"].as_str())
}

/// Any value on one line.
pub fn said(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(said).collect::<Vec<_>>().join("; "),
        Value::Object(fields) => {
            let parts = fields.values().filter(|value| !value.is_null()).map(said).filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn deal(deal: &Value) -> String {
    let stage = value_in_words("deal_stage", &said(&deal["stage"]));
    told(&[said(&deal["name"]), sum(deal, "amount"), stage, before("closes", &deal["close_date"])])
}

fn invoice(invoice: &Value) -> String {
    let is_open = invoice["balance"].as_f64().is_some_and(|open| open != 0.0);
    let open = if is_open { format!("{} of it open", sum(invoice, "balance")) } else { String::new() };
    told(&[said(&invoice["doc_number"]), sum(invoice, "total"), open, before("due", &invoice["due_date"])])
}

fn told(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// A sum of an item, in the item's currency if it names one.
pub fn sum(item: &Value, field: &str) -> String {
    money_in(&item[field], item["currency"].as_str())
}

/// A day, with a word before it; nothing where there is none.
fn before(word: &str, at: &Value) -> String {
    let at = day(&said(at));
    if at.is_empty() { at } else { format!("{word} {at}") }
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
    fn types_that_read_alike_are_told_apart() {
        let types = ["activity.email", "gmail.message", "note", "activity.note", "hubspot.deal"].map(str::to_owned);
        let words = ["E-mail (activity)", "E-mail (Gmail)", "Note", "Note (activity)", "HubSpot deal"];
        assert_eq!(types_in_words(&types), words);
    }

    #[test]
    fn facts_come_in_the_order_in_which_people_ask() {
        let mut names = ["billing_address", "ar_balance", "zodiac", "lifecycle", "open_deals"];
        names.sort_by_key(|name| place(name));
        assert_eq!(names, ["lifecycle", "open_deals", "ar_balance", "billing_address", "zodiac"]);
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
    fn no_code_is_left_where_a_person_reads() {
        assert_eq!(in_words("industry", &json!("FACILITIES_SERVICES")), "Facilities services");
        assert_eq!(in_words("industry", &json!("Fishing")), "Fishing");
        assert_eq!(in_words("lifecycle", &json!("marketingqualifiedlead")), "Marketing qualified lead");
        assert_eq!((label("ar_balance"), label("tide_table")), ("Open balance".into(), "Tide table".into()));
        let two = json!([{ "amount": 805, "currency": "EUR" }, { "amount": 50.5, "currency": "USD" }]);
        assert_eq!(in_words("ar_balance", &two), "805 EUR and 50.50 USD");
        for (spelled, words) in [
            ("hubspot.contact", "HubSpot contact"),
            ("google_drive.doc", "Google document"),
            ("nobody.knows_it", "Nobody knows it"),
            ("activity.sms", "Text message"),
            ("note", "Note"),
        ] {
            assert_eq!(document_type(&spelled.parse().expect("a type")), words);
        }
    }

    #[test]
    fn deals_and_invoices_are_told_by_what_people_ask_for() {
        let deals = json!([
            { "id": "58", "name": "Two loaders", "amount": "48600.00", "stage": "contractsent", "close_date": "2026-12-04T17:00:00.000Z", "pipeline": "default" },
            { "id": "59", "name": "A blade", "amount": null, "stage": "", "close_date": null, "pipeline": "default" }
        ]);
        assert_eq!(in_words("open_deals", &deals), "Two loaders, 48,600, Contract sent, closes 4 Dec 2026; A blade");
        let invoices = json!([
            { "doc_number": "1042", "total": 1200, "balance": 300, "txn_date": "2026-10-01", "due_date": "2026-11-01" },
            { "doc_number": "1041", "total": 50.5, "balance": 0, "txn_date": "2026-09-01", "due_date": null }
        ]);
        assert_eq!(in_words("invoice_history", &invoices), "1042, 1,200, 300 of it open, due 1 Nov 2026; 1041, 50.50");
    }
}
