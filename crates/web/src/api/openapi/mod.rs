//! The API's description, `/api/v1/openapi.json`. Routes, parameters and schemas come from the handlers. Added here, once for all of them:
//! names for generated clients, the refusals that every route can answer with, descriptions of ids, examples, and this server's address.

pub(crate) mod curl;
mod examples;
mod operations;
pub(crate) mod query;

use std::sync::LazyLock;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};

use super::error::Problem;
use super::router;
use crate::app::App;

/// The routes' groups. A new one is one line here.
const TAGS: &[(&str, &str)] = &[
    ("activities", "Calls, texts, e-mails and other events that came in"),
    ("alerts", "Things that need a person"),
    ("assistants", "Programs that people let in, and what programs asked over MCP"),
    ("channels", "Webhook URLs for senders, with their secrets"),
    ("clients", "Companies and people, with the facts known about them"),
    ("contacts", "People from whom events come"),
    ("events", "A stream that says when something changed"),
    ("forgotten", "Things that were or are being deleted for good"),
    ("health", "Probes for load balancers and monitors"),
    ("jobs", "Runs of work on sources"),
    ("keys", "API keys"),
    ("mail", "Messages of connected mailboxes"),
    ("memory", "Documents, search and answers"),
    ("nodes", "Devices that process activities"),
    ("people", "People who work with this tenant"),
    ("queues", "Lanes and their items"),
    ("sessions", "Signed-in browsers, and links that were not used"),
    ("sources", "Accounts at providers"),
    ("tenants", "Customers of this installation, for its operator"),
    ("webhooks", "Where senders post their events"),
    ("workers", "Background processes, for the operator"),
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tributary",
        description = "Send a key as `Authorization: Bearer trb_…`; `tributary key create` makes one. Every answer that is not 2xx is a \
                       problem (RFC 9457) with what to do and the id of the request. Lists hold what belongs to the key's tenant; another \
                       tenant's id is answered with 404. A query parameter that a route does not have is refused. Times are UTC.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(Problem)),
    modifiers(&Keys),
    security(("key" = []), ("apikey" = []))
)]
struct Api;

/// The description without routes.
pub(super) fn base() -> utoipa::openapi::OpenApi {
    Api::openapi()
}

struct Keys;

impl utoipa::Modify for Keys {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let bearer = |description: &str| {
            let mut http = Http::new(HttpAuthScheme::Bearer);
            http.description = Some(description.to_owned());
            SecurityScheme::Http(http)
        };
        let header = ApiKeyValue::with_description("apikey", "An API key, as Supabase's clients send it");
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("key", bearer("An API key: `Authorization: Bearer trb_…`"));
        components.add_security_scheme("brain", bearer("The value of `BRAIN_API_SECRET`"));
        components.add_security_scheme("apikey", SecurityScheme::ApiKey(ApiKey::Header(header)));
    }
}

/// The whole description, without the server's address.
pub(crate) fn description() -> &'static Value {
    static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
        let collected = serde_json::to_value(router::openapi()).expect("the description is JSON");
        complete(collected)
    });
    &DESCRIPTION
}

pub(crate) async fn serve(State(app): State<App>) -> Json<Value> {
    let mut description = description().clone();
    description["servers"] = json!([{ "url": app.env.config.base_url(), "description": "This installation" }]);
    Json(description)
}

fn complete(mut description: Value) -> Value {
    let mut used = Vec::new();
    for (path, method, operation) in operations_of(&mut description) {
        operations::complete(path, method, operation);
        used.extend(operation["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    let tags = TAGS.iter().filter(|(name, _)| used.iter().any(|tag| tag == name));
    description["tags"] = tags.map(|(name, description)| json!({ "name": name, "description": description })).collect();
    description["components"]["responses"] = operations::refusals();
    let schemas = description["components"]["schemas"].clone();
    for (_, _, operation) in operations_of(&mut description) {
        examples::add(operation, &schemas);
    }
    description
}

/// Every operation with its path and method.
fn operations_of(description: &mut Value) -> impl Iterator<Item = (&str, &str, &mut Value)> {
    let paths = description.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object_mut().into_iter().flatten();
        methods
            .filter(|(_, operation)| operation.is_object())
            .map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own_words_a_refusal_and_a_known_group() {
        let (mut description, mut ids) = (description().clone(), HashSet::new());
        for (path, method, operation) in operations_of(&mut description) {
            let which = format!("{method} {path}");
            let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
            assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{which}: {id:?}");
            assert!(ids.insert(id.clone()), "{which}: {id} is another operation's name too");
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{which}");
            assert!(operation["description"].as_str().is_some_and(|words| !words.is_empty()), "{which}");
            for tag in operation["tags"].as_array().expect("tags") {
                assert!(TAGS.iter().any(|(name, _)| tag == name), "{which}: describe the tag {tag} in TAGS");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let said = parameter["description"].as_str().is_some_and(|words| !words.is_empty());
                assert!(said, "{which}: the parameter {} says nothing", parameter["name"]);
            }
            for (status, answer) in operation["responses"].as_object().expect("responses") {
                let said = answer.get("$ref").is_some()
                    || answer["description"].as_str().is_some_and(|words| !words.is_empty());
                assert!(said, "{which}: {status} says nothing");
            }
        }
        assert!(ids.len() >= 60, "{ids:?}");
    }

    #[test]
    fn refusals_are_described_as_problems() {
        let mut description = description().clone();
        for (path, method, operation) in operations_of(&mut description) {
            for (status, answer) in operation["responses"].as_object().expect("responses") {
                let content = answer["content"].as_object().into_iter().flatten();
                for (kind, _) in content.filter(|_| !status.starts_with('2')) {
                    assert_eq!(kind, "application/problem+json", "{method} {path} {status}");
                }
            }
        }
    }
}
