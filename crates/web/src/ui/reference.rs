//! The API's routes, read from its own description.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use domain::Scope;
use serde_json::Value;

use super::layout::Layout;
use super::text::with_code;
use super::{Visitor, html};
use crate::api::auth::Caller;
use crate::api::error::ApiError;
use crate::api::openapi::{self, curl};
use crate::app::App;
use crate::server::CallerAddress;

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage {
    layout: Layout,
    /// Sets the variable that every command names.
    key_command: &'static str,
    groups: Vec<Group>,
}

struct Group {
    name: String,
    about: String,
    routes: Vec<RouteRow>,
}

struct RouteRow {
    id: String,
    method: String,
    path: String,
    /// The words in parts; true for a part that a program sends or reads.
    summary: Vec<(bool, String)>,
    /// Sentences beyond the summary.
    more: Vec<(bool, String)>,
    parameters: Vec<Parameter>,
    curl: String,
}

struct Parameter {
    name: String,
    place: String,
    is_required: bool,
    about: Vec<(bool, String)>,
}

/// Shows the page to everyone: it tells nothing that the source does not. A visitor who is signed in keeps the navigation.
pub(crate) async fn show(
    State(app): State<App>,
    Extension(address): Extension<CallerAddress>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let visitor = Caller::of(&headers, address, &app).await.ok().filter(|caller| caller.may(Scope::Read)).map(Visitor);
    let layout = match &visitor {
        Some(visitor) => Layout::new(visitor, app.env.clock.now(), "API", "/api"),
        None => Layout::bare("API"),
    };
    let key_command = "KEY=$(tributary key create laptop --scopes read,write)";
    html(&ReferencePage { layout, key_command, groups: groups(openapi::description(), &app.env.config.base_url()) })
}

fn groups(description: &Value, base: &str) -> Vec<Group> {
    let (mut groups, mut left) = (Vec::new(), routes(description, base));
    for tag in description["tags"].as_array().into_iter().flatten() {
        let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(of, _)| *of == text(&tag["name"]));
        left = others;
        groups.push(Group {
            name: text(&tag["name"]).to_owned(),
            about: text(&tag["description"]).to_owned(),
            routes: own.into_iter().map(|(_, row)| row).collect(),
        });
    }
    groups
}

/// Every route, with its group.
fn routes<'a>(description: &'a Value, base: &str) -> Vec<(&'a str, RouteRow)> {
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            routes.push((text(&operation["tags"][0]), RouteRow::new(base, method, path, operation)));
        }
    }
    routes
}

impl RouteRow {
    fn new(base: &str, method: &str, path: &str, operation: &Value) -> Self {
        let summary = text(&operation["summary"]);
        let more = text(&operation["description"]).strip_prefix(summary).unwrap_or_default().trim_start_matches('.');
        let parameters = operation["parameters"].as_array().into_iter().flatten().map(|parameter| Parameter {
            name: text(&parameter["name"]).to_owned(),
            place: text(&parameter["in"]).to_owned(),
            is_required: parameter["required"] == true,
            about: with_code(text(&parameter["description"])),
        });
        Self {
            id: text(&operation["operationId"]).to_owned(),
            method: method.to_uppercase(),
            path: path.to_owned(),
            summary: with_code(summary),
            more: with_code(more.trim()),
            parameters: parameters.collect(),
            curl: curl::command(base, method, path, operation),
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_route_of_the_description_once() {
        let description = openapi::description();
        let shown: Vec<String> =
            groups(description, "http://x").into_iter().flat_map(|group| group.routes).map(|row| row.id).collect();
        let paths = description["paths"].as_object().expect("paths");
        let described = paths.values().flat_map(|methods| methods.as_object().expect("methods").values());
        let mut described: Vec<&str> = described.map(|operation| text(&operation["operationId"])).collect();
        let mut once: Vec<&str> = shown.iter().map(String::as_str).collect();
        once.sort_unstable();
        described.sort_unstable();
        assert_eq!(once, described);
    }
}
