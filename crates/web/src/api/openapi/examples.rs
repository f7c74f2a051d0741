//! Examples of requests and answers, made from the schemas: a field's own example where it has one, else a value of its kind.

use serde_json::{Map, Value, json};

/// Schemas that contain themselves end here.
const DEEPEST: usize = 24;

/// Texts by the name of their field, where the schema has no example.
const TEXTS: &[(&str, &str)] = &[
    ("account", "Larkfield Landscaping"),
    ("app_name", "tributary"),
    ("asked_by", "laptop"),
    ("by", "laptop"),
    ("change", "created"),
    ("company", "Larkfield Landscaping"),
    ("created_by", "laptop"),
    ("cursor", "eyJhdCI6MX0"),
    ("detail", "the parameter `limt` is not known here: there are before, limit"),
    ("device_name", "Ann's laptop"),
    ("direction", "inbound"),
    ("document_type", "note"),
    ("email", "ann@larkfield.example"),
    ("external_id", "note-1"),
    ("first_name", "Ann"),
    ("host", "server-1"),
    ("industry", "Landscaping"),
    ("key", "trb_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"),
    ("kind", "text"),
    ("label", "Industry"),
    ("lane", "remember_activity"),
    ("lang", "en"),
    ("last_event_id", "k3f9-42"),
    ("last_name", "Lark"),
    ("merged_by", "laptop"),
    ("model", "fast_256"),
    ("name", "Larkfield Landscaping"),
    ("person", "ann@larkfield.example"),
    ("phone_number", "+15550100"),
    ("processing_status", "completed"),
    ("provider", "hubspot"),
    ("q", "invoice"),
    ("question", "When should I call Ann?"),
    ("reason", "the payload does not parse"),
    ("removed_by", "laptop"),
    ("request_id", "0198f0c2-7b1e-7c3a-9d55-2f6b8c1a4e77"),
    ("requested_by", "schedule"),
    ("snippet", "Ann prefers calls on Friday mornings."),
    ("status", "done"),
    ("subject", "hubspot"),
    ("summary", "Gardens and grounds, since 2019"),
    ("tenant", "main"),
    ("text", "Ann prefers calls on Friday mornings."),
    ("title", "About Ann"),
    ("todo", "press Reconnect on its page"),
    ("transport", "rest"),
    ("type", "note"),
    ("url", "http://127.0.0.1:7171/documents/0198f0c2-7b1e-7c3a-9d55-2f6b8c1a4e77"),
    ("what", "the authorization was withdrawn"),
    ("why", "3 words and the meaning"),
];

/// Adds an example to every body of an operation, and to its path parameters.
pub(super) fn add(operation: &mut Value, schemas: &Value) {
    let (whole, least) = (Maker { schemas, is_whole: true }, Maker { schemas, is_whole: false });
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        if parameter["in"] == "path" && parameter.get("example").is_none() {
            let name = parameter["name"].as_str().unwrap_or_default();
            parameter["example"] = whole.value(&parameter["schema"], name, 0);
        }
    }
    if let Some(body) = operation.get_mut("requestBody") {
        each_content(body, |schema| least.value(schema, "text", 0));
    }
    for (_, answer) in operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten() {
        each_content(answer, |schema| whole.value(schema, "text", 0));
    }
}

fn each_content(body: &mut Value, example: impl Fn(&Value) -> Value) {
    let contents = body.get_mut("content").and_then(Value::as_object_mut).into_iter().flatten();
    // Other kinds (files, streams) are not JSON, so that a value of their schema would be no example of them.
    for (_, content) in contents.filter(|(kind, _)| kind.ends_with("json")) {
        if content.get("example").is_none() && content["schema"].is_object() {
            content["example"] = example(&content["schema"]);
        }
    }
}

struct Maker<'a> {
    schemas: &'a Value,
    /// With optional fields. Without: those alone that have an example.
    is_whole: bool,
}

impl Maker<'_> {
    /// A value that fits `schema`. `name` is that of its field.
    fn value(&self, schema: &Value, name: &str, depth: usize) -> Value {
        if let Some(example) = own(schema) {
            return example.clone();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let named = reference.rsplit('/').next().unwrap_or_default();
            return self.value(&self.schemas[named], name, depth + 1);
        }
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let values = parts.iter().map(|part| self.value(part, name, depth + 1));
            let fields = values.filter_map(|value| value.as_object().cloned()).flatten();
            return fields.collect::<Map<_, _>>().into();
        }
        for several in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[several].as_array() {
                let chosen = choices.iter().find(|choice| choice["type"] != "null");
                return chosen.map_or(Value::Null, |choice| self.value(choice, name, depth + 1));
            }
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.first().cloned().unwrap_or_default();
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => json!([self.value(&schema["items"], name, depth + 1)]),
            "boolean" => false.into(),
            "integer" => schema["minimum"].as_i64().unwrap_or(1).into(),
            "number" => json!(1.0),
            "string" => text(schema, name).into(),
            _ => json!({}),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let is_required =
            |field: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == field));
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields.filter(|(name, of)| self.is_whole || is_required(name) || own(of).is_some());
        fields.map(|(name, of)| (name.clone(), self.value(of, name, depth + 1))).collect::<Map<_, _>>().into()
    }
}

/// The schema's own example.
fn own(schema: &Value) -> Option<&Value> {
    schema.get("example").or_else(|| schema["examples"].as_array()?.first())
}

/// The type; of several, the one that is not null.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    }
}

fn text(schema: &Value, name: &str) -> &'static str {
    match schema["format"].as_str() {
        Some("uuid") => "0198f0c2-7b1e-7c3a-9d55-2f6b8c1a4e77",
        Some("date-time") => "2026-11-16T09:30:00Z",
        Some("date") => "2026-11-16",
        _ => {
            let base = |name: &str| TEXTS.iter().find(|(field, _)| *field == name).map(|(_, text)| *text);
            // A longer name ends with what it is: `activity_url`, `status_message`.
            base(name).or_else(|| base(name.rsplit('_').next()?)).unwrap_or("text")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_fits_its_schema_and_prefers_the_fields_own() {
        let schemas = json!({
            "Channel": { "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string", "example": "web shop" },
                "id": { "type": "string", "format": "uuid" },
                "limit": { "type": ["integer", "null"] },
                "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
                "parent": { "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Parent" }] },
            } },
            "Parent": { "type": "object", "properties": { "created_at": { "type": "string", "format": "date-time" } } },
        });
        let of = |is_whole| {
            Maker { schemas: &schemas, is_whole }.value(&json!({ "$ref": "#/components/schemas/Channel" }), "", 0)
        };
        assert_eq!(
            of(true),
            json!({ "name": "web shop", "id": "0198f0c2-7b1e-7c3a-9d55-2f6b8c1a4e77", "limit": 1, "tags": ["a"],
                "parent": { "created_at": "2026-11-16T09:30:00Z" } })
        );
        assert_eq!(of(false), json!({ "name": "web shop" }), "a request needs no more");
    }

    #[test]
    fn a_schema_that_contains_itself_has_an_end() {
        let schemas =
            json!({ "Node": { "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" } } } });
        let made =
            Maker { schemas: &schemas, is_whole: true }.value(&json!({ "$ref": "#/components/schemas/Node" }), "", 0);
        assert!(made["next"]["next"].is_object());
    }
}
