//! Query parameters that a route does not have are refused: `?limt=10` would else be answered as if nothing had been asked. The names are those of
//! the API's description, so that a parameter that is read is also described.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;

use super::super::error::ApiError;
use super::description;

/// The parameters of each route, by method and path.
static KNOWN: LazyLock<HashMap<(String, String), Vec<String>>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for (path, methods) in description()["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named =
                parameters.filter(|parameter| parameter["in"] == "query").filter_map(|one| one["name"].as_str());
            known.insert((method.to_uppercase(), path.clone()), named.map(str::to_owned).collect());
        }
    }
    known
});

/// Lets a request through if its route has every parameter of its query. Senders of webhooks and probes may add what they like.
pub(crate) async fn check(request: Request, next: Next) -> Result<Response, ApiError> {
    let query = request.uri().query().unwrap_or_default();
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    if !query.is_empty() && route.starts_with("/api/") {
        let method = if request.method() == "HEAD" { "GET" } else { request.method().as_str() };
        let known = KNOWN.get(&(method.to_owned(), route.to_owned())).map(Vec::as_slice).unwrap_or_default();
        if let Some(refused) = refusal(query, known) {
            return Err(ApiError::Malformed(StatusCode::BAD_REQUEST, refused));
        }
    }
    Ok(next.run(request).await)
}

/// Names the parameters that are not `known`, and those that are.
fn refusal(query: &str, known: &[String]) -> Option<String> {
    let names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default()).filter(|name| !name.is_empty());
    let (mut seen, mut unknown) = (HashSet::new(), Vec::new());
    for name in names {
        let name = percent_encoding::percent_decode_str(&name.replace('+', " ")).decode_utf8_lossy().into_owned();
        if !known.contains(&name) && seen.insert(name.clone()) {
            unknown.push(format!("`{}`", domain::shown::shown(&name)));
        }
    }
    let which = match unknown.as_slice() {
        [] => return None,
        [one] => format!("the parameter {one} is not known here"),
        several => format!("the parameters {} are not known here", several.join(", ")),
    };
    Some(match known {
        [] => format!("{which}: this route has none"),
        known => format!("{which}: there are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_a_route_does_not_have_is_named() {
        let known = ["before", "limit"].map(str::to_owned);
        assert_eq!(refusal("before=1&limit=&", &known), None);
        assert_eq!(
            refusal("limt=1", &known).as_deref(),
            Some("the parameter `limt` is not known here: there are before, limit")
        );
        assert_eq!(
            refusal("a%20b=1&limit=2&c&c=3", &known).as_deref(),
            Some("the parameters `a b`, `c` are not known here: there are before, limit")
        );
        assert_eq!(refusal("x=1", &[]).as_deref(), Some("the parameter `x` is not known here: this route has none"));
    }

    #[test]
    fn the_routes_of_the_description_are_known() {
        let of = |method: &str, path: &str| KNOWN.get(&(method.to_owned(), path.to_owned())).cloned();
        assert!(of("GET", "/api/v1/search").is_some_and(|known| known.contains(&"q".to_owned())));
        assert_eq!(of("DELETE", "/api/v1/keys/{id}"), Some(vec![]));
    }
}
