//! The shape of the answer that a model gives about a paper.

use serde_json::{Value, json};

use super::{FieldName, PaperKind, Shape, read};

/// The keys of an answer that are lists.
pub(super) const TAXES: &str = "taxes";
pub(super) const LINES: &str = "lines";
pub(super) const PARTIES: &str = "parties";

/// The values that one entry of a list has, by their keys. Their quote and page are those of the entry.
pub(super) const OF_TAX: &[(&str, FieldName)] = &[("rate", FieldName::TaxRate), ("amount", FieldName::TaxAmount)];
pub(super) const OF_LINE: &[(&str, FieldName)] = &[
    ("description", FieldName::LineDescription),
    ("quantity", FieldName::LineQuantity),
    ("unit_price", FieldName::LineUnitPrice),
    ("amount", FieldName::LineAmount),
];
pub(super) const OF_PARTY: &[(&str, FieldName)] = &[("name", FieldName::Party)];

/// The lists of a kind of paper.
pub(super) fn lists(kind: PaperKind) -> &'static [(&'static str, &'static [(&'static str, FieldName)])] {
    match kind {
        _ if kind.has_sums() => &[(TAXES, OF_TAX), (LINES, OF_LINE)],
        PaperKind::Contract => &[(PARTIES, OF_PARTY)],
        _ => &[],
    }
}

/// Returns the JSON schema of the answer about a paper of this kind. Every value comes with its page and a quote that has it; what the paper does not
/// say is null. All keys are required and no others allowed, as services with strict schemas want it.
pub fn schema(kind: PaperKind) -> Value {
    let mut properties = serde_json::Map::new();
    for name in read::single(kind) {
        properties.insert(name.as_str().into(), field(*name));
    }
    for (list, keys) in lists(kind) {
        properties.insert((*list).into(), json!({ "type": "array", "items": entry(keys) }));
    }
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}

fn page() -> Value {
    json!({ "type": "integer", "minimum": 1, "description": "The number of the page on which the quote stands." })
}

fn quote() -> Value {
    json!({ "type": "string", "description": "The text of the page that has the value, copied exactly." })
}

fn field(name: FieldName) -> Value {
    json!({
        "type": ["object", "null"],
        "description": format!("The {}, or null if the paper does not say it.", name.in_words()),
        "required": ["value", "page", "quote"],
        "additionalProperties": false,
        "properties": { "value": value(name, false), "page": page(), "quote": quote() },
    })
}

fn entry(keys: &[(&str, FieldName)]) -> Value {
    let mut properties: serde_json::Map<String, Value> =
        keys.iter().map(|(key, name)| ((*key).to_owned(), value(*name, keys.len() > 1))).collect();
    properties.insert("page".into(), page());
    properties.insert("quote".into(), quote());
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}

fn value(name: FieldName, may_be_null: bool) -> Value {
    let (text, pattern, description) = match (name, name.shape()) {
        (FieldName::Currency, _) => ("string", Some("^[A-Z]{3}$"), "The code of ISO 4217, such as EUR."),
        (_, Shape::Text) => ("string", None, "As it is written."),
        (_, Shape::Date) => ("string", Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), "As YYYY-MM-DD."),
        (_, Shape::Money) => (
            "string",
            Some("^-?[0-9]+(\\.[0-9]+)?$"),
            "Without currency and without marks of thousands, such as 1234.50.",
        ),
        (_, Shape::Number) => ("string", Some("^-?[0-9]+(\\.[0-9]+)?$"), "Without unit or percent sign, such as 2.5."),
    };
    let mut value =
        json!({ "type": if may_be_null { json!([text, "null"]) } else { json!(text) }, "description": description });
    if let Some(pattern) = pattern {
        value["pattern"] = json!(pattern);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_names_every_field_once_and_requires_all() {
        for kind in PaperKind::ALL {
            let schema = schema(kind);
            let n = read::single(kind).len() + lists(kind).len();
            assert_eq!(schema["required"].as_array().map(Vec::len), Some(n), "{kind}");
            assert_eq!(schema["properties"].as_object().map(serde_json::Map::len), Some(n), "{kind}");
        }
        let invoice = schema(PaperKind::Invoice);
        assert_eq!(invoice["properties"]["total"]["properties"]["value"]["pattern"], "^-?[0-9]+(\\.[0-9]+)?$");
        assert_eq!(
            invoice["properties"]["lines"]["items"]["properties"]["quantity"]["type"],
            json!(["string", "null"])
        );
    }
}
