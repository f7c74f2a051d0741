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
    /// A link to go on from here.
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
            (problem.title.clone(), "This page tries again by itself. Nothing is lost meanwhile.".to_owned())
        }
        "/problems/database-away" => {
            (problem.title.clone(), "It is not certain that your change was made. Go back, look, and try again.".to_owned())
        }
        "/problems/unauthenticated" => (problem.title.clone(), "Your session has ended. Sign in again, then repeat it.".to_owned()),
        "/problems/not-found" => {
            (problem.title.clone(), "It may have been moved or removed, or it belongs to somebody else.".to_owned())
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
            "/problems/not-connected" => ("/connections/accounts", "Back to Accounts"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(r#type: &'static str, status: u16, detail: Option<&str>) -> Problem {
        Problem {
            r#type,
            title: "It went wrong".into(),
            status,
            detail: detail.map(str::to_owned),
            request_id: "r-7".into(),
        }
    }

    #[test]
    fn every_page_says_what_happened_and_names_its_request() {
        for (kind, status, is_repeatable, says) in [
            ("/problems/database-away", 503, true, "This page tries again by itself"),
            ("/problems/database-away", 503, false, "It is not certain that your change was made"),
            ("/problems/unauthenticated", 401, true, "Sign in again"),
            ("/problems/not-found", 404, true, "It may have been moved"),
            ("/problems/internal", 500, true, "tributary doctor"),
            ("/problems/conflict", 409, true, "The source is paused."),
        ] {
            let html = page(&problem(kind, status, Some("the source is paused")), is_repeatable);
            assert!(html.contains(says) && html.contains("It went wrong") && html.contains("r-7"), "{kind}: {html}");
        }
    }

    #[test]
    fn only_what_passes_by_itself_is_asked_for_again() {
        let refreshes = |status, is_repeatable| {
            let html = page(&problem("/problems/database-away", status, None), is_repeatable);
            html.contains("http-equiv=\"refresh\"")
        };
        assert!(refreshes(503, true));
        assert!(!refreshes(503, false) && !refreshes(500, true));
    }

    /// S15.
    #[test]
    fn a_detail_is_shown_and_never_obeyed() {
        let html = page(&problem("/problems/malformed", 400, Some("<script>alert(1)</script>\u{202e}")), false);
        assert!(!html.contains("<script>alert") && !html.contains('\u{202e}'), "{html}");
    }

    #[test]
    fn a_detail_becomes_a_sentence() {
        for (detail, expected) in
            [("", "."), ("a", "A."), ("it is paused", "It is paused."), ("Done.", "Done."), ("über", "Über.")]
        {
            assert_eq!(sentence(detail), expected);
        }
    }
}
