//! Errors as pages: what happened, and what to do.

use askama::Template;
use domain::shown::shown;

use super::layout::Layout;
use crate::api::error::Problem;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    layout: Layout,
    title: String,
    what_to_do: String,
    /// Where to go from here.
    way: (&'static str, &'static str),
    retries: bool,
    status: u16,
    request_id: String,
}

/// The page for a problem. One that passes by itself is asked for again by itself, unless it would repeat a change.
pub(crate) fn page(problem: &Problem, is_repeatable: bool) -> String {
    let retries = problem.status == 503 && is_repeatable;
    let (title, what_to_do) = match problem.r#type {
        "/problems/database-away" if is_repeatable => {
            (problem.title.clone(), "The database is away; this page retries by itself. Nothing is lost meanwhile.".to_owned())
        }
        "/problems/database-away" => {
            (problem.title.clone(), "It is not certain that your change was made. Go back, look, and try again.".to_owned())
        }
        "/problems/unauthenticated" => (problem.title.clone(), "Your session has ended. Sign in again, then repeat it.".to_owned()),
        "/problems/not-found" => {
            (problem.title.clone(), "It may have moved on or been removed, or belong to somebody else.".to_owned())
        }
        "/problems/internal" => (
            problem.title.clone(),
            "It is not your fault, and it is in the server's log under the request below. Try again; if it stays, run `tributary doctor`."
                .to_owned(),
        ),
        _ => (problem.title.clone(), problem.detail.clone().map(|detail| sentence(&detail)).unwrap_or_default()),
    };
    let page = ErrorPage {
        layout: Layout::bare(title.clone()),
        title,
        what_to_do: shown(&what_to_do),
        way: match problem.r#type {
            "/problems/not-connected" => ("/sources", "Back to Sources"),
            _ => ("/", "Go to Home"),
        },
        retries,
        status: problem.status,
        request_id: problem.request_id.clone(),
    };
    page.render().unwrap_or(page.title)
}

fn sentence(detail: &str) -> String {
    let mut chars = detail.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}{}", chars.as_str(), if detail.ends_with('.') { "" } else { "." })
}
