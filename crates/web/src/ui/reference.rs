//! The API's routes, read from its own description.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use domain::Scope;
use utoipa::openapi::path::Operation;

use super::layout::Layout;
use super::text::with_code;
use super::{Visitor, html};
use crate::api::auth::Caller;
use crate::api::error::ApiError;
use crate::api::router::openapi;
use crate::app::App;
use crate::server::CallerAddress;

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferencePage {
    layout: Layout,
    routes: Vec<RouteRow>,
}

struct RouteRow {
    method: &'static str,
    path: String,
    /// The summary in parts; true for a part that a program sends or reads.
    summary: Vec<(bool, String)>,
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
    let mut routes = Vec::new();
    for (path, item) in openapi().paths.paths {
        let operations = [("GET", &item.get), ("POST", &item.post), ("DELETE", &item.delete)];
        let row = |method, operation: &Operation| RouteRow {
            method,
            path: path.clone(),
            summary: with_code(operation.summary.as_deref().unwrap_or_default()),
        };
        routes.extend(operations.into_iter().filter_map(|(method, operation)| Some(row(method, operation.as_ref()?))));
    }
    html(&ReferencePage { layout, routes })
}
