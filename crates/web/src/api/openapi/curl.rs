//! An operation as a `curl` command that one can paste into a shell.

use std::fmt::Write as _;

use serde_json::Value;

/// The command for an operation of the server at `base`. The key is a variable of the shell, so that it stays out of its history.
pub(crate) fn command(base: &str, method: &str, path: &str, operation: &Value) -> String {
    let mut command = String::from("curl");
    let secret = match &operation["security"] {
        Value::Null => Some("KEY"),
        own => own[0].get("brain").map(|_| "BRAIN_API_SECRET"),
    };
    if let Some(secret) = secret {
        let _ = write!(command, " -H \"Authorization: Bearer ${secret}\"");
    }
    let body = &operation["requestBody"];
    let content = &body["content"]["application/json"];
    let has_body = content.is_object() && body["required"] == true;
    match method {
        "get" => {}
        "post" if has_body => {} // it is what curl does with a body
        other => _ = write!(command, " -X {}", other.to_uppercase()),
    }
    if operation["responses"]["200"]["content"].get("text/event-stream").is_some() && method == "get" {
        command.push_str(" -N"); // as the events come
    }
    if has_body {
        let example = content["example"].to_string().replace('\'', "'\\''");
        let _ = write!(command, " -H \"Content-Type: application/json\" -d '{example}'");
    }
    let _ = write!(command, " \"{base}{}\"", address(path, operation));
    command
}

/// The path with an example of each parameter that it must have.
fn address(path: &str, operation: &Value) -> String {
    let (mut address, mut query) = (path.to_owned(), Vec::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, example) = (parameter["name"].as_str().unwrap_or_default(), &parameter["example"]);
        let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
        let encoded = percent_encoding::utf8_percent_encode(&example, percent_encoding::NON_ALPHANUMERIC).to_string();
        let encoded = encoded.replace("%2D", "-").replace("%5F", "_").replace("%2E", ".");
        match parameter["in"].as_str() {
            Some("path") => address = address.replace(&format!("{{{name}}}"), &encoded),
            Some("query") if !parameter["example"].is_null() => query.push(format!("{name}={encoded}")),
            _ => {}
        }
    }
    if query.is_empty() { address } else { format!("{address}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_has_the_key_the_body_and_the_parameters_that_are_needed() {
        let of = |method, path, operation| command("http://127.0.0.1:7171", method, path, &operation);
        let id = json!([{ "in": "path", "name": "id", "example": "0198-x" }]);
        assert_eq!(
            of(
                "get",
                "/api/v1/search",
                json!({ "parameters": [
                { "in": "query", "name": "q", "example": "open invoice" }, { "in": "query", "name": "k" }
            ] })
            ),
            "curl -H \"Authorization: Bearer $KEY\" \"http://127.0.0.1:7171/api/v1/search?q=open%20invoice\""
        );
        assert_eq!(
            of("delete", "/api/v1/keys/{id}", json!({ "parameters": id })),
            "curl -H \"Authorization: Bearer $KEY\" -X DELETE \"http://127.0.0.1:7171/api/v1/keys/0198-x\""
        );
        let body = json!({ "required": true, "content": { "application/json": { "example": { "name": "Ann's" } } } });
        assert_eq!(
            of("post", "/api/v1/keys", json!({ "requestBody": body })),
            "curl -H \"Authorization: Bearer $KEY\" -H \"Content-Type: application/json\" -d '{\"name\":\"Ann'\\''s\"}' \
             \"http://127.0.0.1:7171/api/v1/keys\""
        );
        assert_eq!(of("get", "/healthz", json!({ "security": [{}] })), "curl \"http://127.0.0.1:7171/healthz\"");
    }
}
