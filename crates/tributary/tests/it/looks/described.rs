//! The API's description in lines that a person can compare: each route with what it takes and gives, each schema with its fields.

use std::fmt::Write as _;

use serde_json::Value;

pub fn described(openapi: &Value) -> String {
    let mut out = String::new();
    for (path, methods) in openapi["paths"].as_object().expect("paths") {
        for (method, route) in methods.as_object().expect("methods") {
            let summary = route["summary"].as_str().unwrap_or_default();
            let _ = writeln!(out, "{} {path}  {summary}", method.to_uppercase());
            for parameter in route["parameters"].as_array().into_iter().flatten() {
                let kind = kind(&parameter["schema"]);
                let optional = if parameter["required"] == true { "" } else { "?" };
                let _ = writeln!(out, "    {} {}{optional}: {kind}", text(&parameter["in"]), text(&parameter["name"]));
            }
            for (content, taken) in route["requestBody"]["content"].as_object().into_iter().flatten() {
                let _ = writeln!(out, "    takes {content}: {}", kind(&taken["schema"]));
            }
            for (status, given) in route["responses"].as_object().into_iter().flatten() {
                let contents = given["content"].as_object().into_iter().flatten();
                let contents: Vec<String> = contents.map(|(_, content)| kind(&content["schema"])).collect();
                let _ = writeln!(out, "    {status} {}", contents.join(" or "));
            }
        }
    }
    for (name, schema) in openapi["components"]["schemas"].as_object().expect("schemas") {
        let _ = writeln!(out, "\n{name}: {}", kind(schema));
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let optional = if required.contains(&field.as_str()) { "" } else { "?" };
            let _ = writeln!(out, "    {field}{optional}: {}", kind(schema));
        }
    }
    out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A schema in one word or a few: `integer`, `[Item]`, `string(date-time) or null`.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    let several = ["oneOf", "anyOf", "allOf"].iter().find_map(|several| schema[*several].as_array());
    if let Some(several) = several {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| word.to_string()).collect::<Vec<_>>().join(" | ");
    }
    let format = schema["format"].as_str().map(|format| format!("({format})")).unwrap_or_default();
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("[{}]", self::kind(&schema["items"])),
        Value::String(kind) => format!("{kind}{format}"),
        Value::Array(kinds) if kinds.iter().any(|kind| kind == "array") => {
            format!("[{}] or null", kind(&schema["items"]))
        }
        Value::Array(kinds) => kinds
            .iter()
            .map(|one| if one == "null" { "null".to_owned() } else { format!("{}{format}", text(one)) })
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "anything".to_owned(),
    }
}
