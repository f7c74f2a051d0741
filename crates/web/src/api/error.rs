//! Errors: one type, one mapping. Handlers return [`ApiError`]; the edge writes it as problem+json, or as a page
//! for a person, because only there the reader and the request's id are known.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::ActError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ui;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("You are not signed in")]
    Unauthenticated,
    /// It says no more: a revoked key is answered as one that never was.
    #[error("The key is not accepted")]
    UnknownKey,
    #[error("This key may not do that")]
    Forbidden(&'static str),
    #[error("Your role does not allow that")]
    NotYourRole,
    #[error("The request did not come from this server's own pages")]
    CrossSite,
    /// To another name than ours, or from another site's page.
    #[error("This server does not answer to that name, or to that page")]
    NotHere,
    #[error("There is no such {0}")]
    NotFound(&'static str),
    #[error("This address does not take that method")]
    MethodNotAllowed,
    #[error("The request cannot be understood")]
    Malformed(StatusCode, String),
    #[error("The request is too large")]
    TooLarge,
    #[error("The request is too large")]
    OverLimit(String),
    #[error("The key or the signature is not accepted")]
    Unverified,
    #[error("Too many requests")]
    TooMany(Duration),
    /// Of what a key, tenant or address may have at once. With the seconds to wait.
    #[error("Too many requests")]
    AtOnce(&'static str, u32),
    #[error("Too much is waiting already")]
    Full,
    #[error("That is not possible now")]
    Conflict(String),
    #[error("Too many wrong keys")]
    TooManyFailures,
    #[error("The request took too long")]
    TimedOut,
    #[error("The database is away")]
    DatabaseAway(#[source] anyhow::Error),
    #[error("That cannot be done now")]
    Unavailable(#[source] anyhow::Error),
    #[error("It cannot be had from where it lies")]
    Provider(String),
    #[error("It was not connected")]
    NotConnected(StatusCode, String),
    #[error("The database is not ready")]
    NotReady(String),
    #[error("Something went wrong here")]
    Internal(#[source] anyhow::Error),
}

/// An error as a client sees it (RFC 9457).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of problem; stable, so that programs can compare it.
    #[schema(example = "/problems/not-found")]
    pub r#type: &'static str,
    pub title: String,
    pub status: u16,
    /// The action to take, or the exact problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The id of the request in the server's log.
    pub request_id: String,
}

/// The reader of an answer: a person or a program.
pub(crate) struct Reader {
    pub wants_html: bool,
    pub is_get: bool,
    pub path_and_query: String,
}

impl Reader {
    /// Whether the same request can be sent again: it changes nothing, and is not a provider's redirect, which is good once.
    fn is_repeatable(&self) -> bool {
        self.is_get && !self.path_and_query.starts_with("/oauth/")
    }
}

impl ApiError {
    fn kind(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "/problems/unauthenticated"),
            Self::UnknownKey => (StatusCode::UNAUTHORIZED, "/problems/unknown-key"),
            Self::Forbidden(_) | Self::NotYourRole => (StatusCode::FORBIDDEN, "/problems/forbidden"),
            Self::CrossSite => (StatusCode::FORBIDDEN, "/problems/cross-site"),
            Self::NotHere => (StatusCode::FORBIDDEN, "/problems/not-here"),
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "/problems/not-found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "/problems/method-not-allowed"),
            Self::Malformed(status, _) => (*status, "/problems/malformed"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "/problems/too-large"),
            Self::OverLimit(_) => (StatusCode::PAYLOAD_TOO_LARGE, "/problems/too-large"),
            Self::Unverified => (StatusCode::UNAUTHORIZED, "/problems/unverified"),
            Self::TooMany(_) | Self::AtOnce(..) => (StatusCode::TOO_MANY_REQUESTS, "/problems/too-many-requests"),
            Self::Full => (StatusCode::SERVICE_UNAVAILABLE, "/problems/full"),
            Self::Conflict(_) => (StatusCode::CONFLICT, "/problems/conflict"),
            Self::TooManyFailures => (StatusCode::TOO_MANY_REQUESTS, "/problems/too-many-failures"),
            Self::TimedOut => (StatusCode::SERVICE_UNAVAILABLE, "/problems/timed-out"),
            Self::DatabaseAway(_) => (StatusCode::SERVICE_UNAVAILABLE, "/problems/database-away"),
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "/problems/unavailable"),
            Self::Provider(_) => (StatusCode::BAD_GATEWAY, "/problems/provider"),
            Self::NotConnected(status, _) => (*status, "/problems/not-connected"),
            Self::NotReady(_) => (StatusCode::SERVICE_UNAVAILABLE, "/problems/not-ready"),
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "/problems/internal"),
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Unauthenticated => {
                "no key was given: send one as `Authorization: Bearer trb_…`, or sign in at /signin".into()
            }
            Self::UnknownKey => {
                "this key is not known, or it was revoked: check it, or make a new one (`tributary key create`)".into()
            }
            Self::Forbidden(what) => (*what).into(),
            Self::NotYourRole => {
                "an owner can do it, or give you another role on your page under Settings, People".into()
            }
            Self::CrossSite => "reload the page and try again".into(),
            Self::NotHere => {
                "use the address of PUBLIC_URL, one of this machine or an IP address; MCP_HOSTS adds names".into()
            }
            Self::Malformed(_, what)
            | Self::OverLimit(what)
            | Self::Conflict(what)
            | Self::Provider(what)
            | Self::NotConnected(_, what)
            | Self::NotReady(what) => what.clone(),
            Self::Unverified => "check the address, the signature or bearer key, and that the channel is active".into(),
            Self::AtOnce(what, secs) => format!("{what}; try again in {secs} s"),
            Self::TooMany(_) | Self::Full => "nothing was kept; send it again after Retry-After".into(),
            Self::TooLarge => "send less at once; REQUEST_MAX_BYTES is the limit".into(),
            Self::TooManyFailures => "wait a minute, then try again".into(),
            Self::TimedOut => "try again; REQUEST_SECS is the limit".into(),
            Self::DatabaseAway(_) => "nothing is lost; try again in a moment".into(),
            Self::Unavailable(_) => "it was not taken; send it again in a moment".into(),
            Self::NotFound(_) | Self::MethodNotAllowed | Self::Internal(_) => return None,
        })
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Conflict(what) => Self::Conflict(what.into()),
            store::Error::NotNow { what } => Self::Conflict(what),
            away if away.is_passing() => Self::DatabaseAway(away.into()),
            other => Self::Internal(other.into()),
        }
    }
}

impl From<ActError> for ApiError {
    fn from(error: ActError) -> Self {
        match error {
            ActError::NotFound(what) => Self::NotFound(what),
            ActError::Invalid(what) => Self::Malformed(StatusCode::BAD_REQUEST, what),
            ActError::Conflict(what) => Self::Conflict(what),
            ActError::Store(error) => error.into(),
            ActError::Failed(fault) => fault.into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, r#type) = self.kind();
        match &self {
            // Logged here, once; the client sees only the title.
            Self::Internal(cause) => tracing::error!(error = ?cause, "request failed"),
            Self::DatabaseAway(cause) => tracing::warn!(error = ?cause, "request failed: the database is away"),
            Self::Unavailable(cause) => tracing::warn!(error = ?cause, "request failed: it cannot be done now"),
            _ => {}
        }
        let detail = self.detail();
        let problem =
            Problem { r#type, title: self.to_string(), status: status.as_u16(), detail, request_id: String::new() };
        let mut headers = HeaderMap::new();
        match &self {
            Self::DatabaseAway(_) | Self::NotReady(_) | Self::Unavailable(_) => {
                _ = headers.insert(RETRY_AFTER, HeaderValue::from_static("2"))
            }
            Self::Unauthenticated | Self::UnknownKey | Self::Unverified => {
                _ = headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            Self::TooMany(wait) => _ = headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1)),
            Self::AtOnce(_, secs) => _ = headers.insert(RETRY_AFTER, HeaderValue::from(*secs)),
            Self::Full => _ = headers.insert(RETRY_AFTER, HeaderValue::from_static("1")),
            Self::TimedOut => _ = headers.insert(RETRY_AFTER, HeaderValue::from_static("5")),
            Self::TooManyFailures => _ = headers.insert(RETRY_AFTER, HeaderValue::from_static("60")),
            _ => {}
        }
        (status, headers, axum::Extension(problem)).into_response()
    }
}

impl Problem {
    /// Gives a response that carries a problem its body: a page for a person, JSON for everyone else. A person who is not signed
    /// in is sent to do so. Other responses pass unchanged.
    pub fn write(mut response: Response, reader: &Reader, request_id: &str) -> Response {
        let Some(mut problem) = response.extensions_mut().remove::<Self>() else { return response };
        problem.request_id = request_id.to_owned();
        if reader.wants_html && reader.is_get && response.status() == StatusCode::UNAUTHORIZED {
            return (StatusCode::SEE_OTHER, [(LOCATION, ui::signin::address(&reader.path_and_query))]).into_response();
        }
        let (content_type, body) = if reader.wants_html {
            ("text/html; charset=utf-8", ui::error::page(&problem, reader.is_repeatable()))
        } else {
            ("application/problem+json", serde_json::to_string(&problem).unwrap_or_default())
        };
        response.headers_mut().remove(CONTENT_LENGTH);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        *response.body_mut() = Body::from(body);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_asks_for_itself_again_unless_that_would_be_another_try() {
        let reader = |is_get, path: &str| Reader { wants_html: true, is_get, path_and_query: path.into() };
        assert!(reader(true, "/connections/accounts").is_repeatable());
        assert!(!reader(false, "/connections/accounts").is_repeatable());
        assert!(!reader(true, "/oauth/hubspot/callback?state=x&code=y").is_repeatable());
    }

    /// Programs compare these: a changed status or kind breaks them.
    #[test]
    fn every_error_has_its_status_its_kind_and_its_headers() {
        let cause = || anyhow::anyhow!("canary: the cause");
        let cases: Vec<(ApiError, u16, &str, Option<&str>)> = vec![
            (ApiError::Unauthenticated, 401, "unauthenticated", None),
            (ApiError::UnknownKey, 401, "unknown-key", None),
            (ApiError::Forbidden("it needs the scope write"), 403, "forbidden", None),
            (ApiError::CrossSite, 403, "cross-site", None),
            (ApiError::NotFound("source"), 404, "not-found", None),
            (ApiError::MethodNotAllowed, 405, "method-not-allowed", None),
            (ApiError::Malformed(StatusCode::UNPROCESSABLE_ENTITY, "x".into()), 422, "malformed", None),
            (ApiError::TooLarge, 413, "too-large", None),
            (ApiError::OverLimit("x".into()), 413, "too-large", None),
            (ApiError::Unverified, 401, "unverified", None),
            (ApiError::TooMany(Duration::from_millis(2_500)), 429, "too-many-requests", Some("3")),
            (ApiError::AtOnce("this key has enough", 5), 429, "too-many-requests", Some("5")),
            (ApiError::Full, 503, "full", Some("1")),
            (ApiError::Conflict("x".into()), 409, "conflict", None),
            (ApiError::TooManyFailures, 429, "too-many-failures", Some("60")),
            (ApiError::TimedOut, 503, "timed-out", Some("5")),
            (ApiError::DatabaseAway(cause()), 503, "database-away", Some("2")),
            (ApiError::Unavailable(cause()), 503, "unavailable", Some("2")),
            (ApiError::Provider("x".into()), 502, "provider", None),
            (ApiError::NotConnected(StatusCode::BAD_REQUEST, "x".into()), 400, "not-connected", None),
            (ApiError::NotReady("x".into()), 503, "not-ready", Some("2")),
            (ApiError::Internal(cause()), 500, "internal", None),
        ];
        for (error, status, kind, retry_after) in cases {
            let told = format!("{error:?}");
            let mut response = error.into_response();
            let problem = response.extensions_mut().remove::<Problem>().expect("a problem");
            assert_eq!((response.status().as_u16(), problem.status), (status, status), "{told}");
            assert_eq!(problem.r#type, format!("/problems/{kind}"), "{told}");
            let waits = response.headers().get(RETRY_AFTER).map(|value| value.to_str().expect("digits"));
            assert_eq!(waits, retry_after, "{told}");
            assert_eq!(response.headers().contains_key(WWW_AUTHENTICATE), status == 401, "{told}");
            let said = format!("{} {:?}", problem.title, problem.detail);
            assert!(!said.contains("canary"), "a client sees the cause: {said}");
        }
    }

    /// Somebody who asks has sent nothing that could be kept or sent again.
    #[test]
    fn one_too_many_at_once_is_told_what_there_is_enough_of_and_when_to_try_again() {
        let mut response =
            ApiError::AtOnce("this key, or its tenant, has enough searches under way", 1).into_response();
        let problem = response.extensions_mut().remove::<Problem>().expect("a problem");
        let told = "this key, or its tenant, has enough searches under way; try again in 1 s";
        assert_eq!(problem.detail.as_deref(), Some(told));
    }

    #[test]
    fn what_the_database_says_becomes_a_conflict_a_wait_or_a_fault_of_ours() {
        use store::Error;
        assert!(matches!(Error::Conflict("taken").into(), ApiError::Conflict(what) if what == "taken"));
        assert!(matches!(Error::NotNow { what: "no".into() }.into(), ApiError::Conflict(what) if what == "no"));
        assert!(matches!(Error::Refused { what: "broken".into() }.into(), ApiError::Internal(_)));
        assert!(matches!(Error::TimedOut.into(), ApiError::DatabaseAway(_)));
    }

    #[tokio::test]
    async fn a_person_gets_a_page_or_the_way_to_sign_in_and_a_program_gets_json() {
        let written = |error: ApiError, wants_html, is_get| {
            let reader = Reader { wants_html, is_get, path_and_query: "/system/queues?state=dead".into() };
            Problem::write(error.into_response(), &reader, "r-7")
        };
        let json = written(ApiError::NotFound("item"), false, true);
        assert_eq!(json.headers()[CONTENT_TYPE], "application/problem+json");
        let body = axum::body::to_bytes(json.into_body(), 10_000).await.expect("a body");
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(
            body,
            serde_json::json!({ "type": "/problems/not-found", "title": "There is no such item", "status": 404, "request_id": "r-7" })
        );
        let page = written(ApiError::NotFound("item"), true, true);
        assert_eq!(
            (page.status().as_u16(), &page.headers()[CONTENT_TYPE]),
            (404, &HeaderValue::from_static("text/html; charset=utf-8"))
        );
        let away = written(ApiError::Unauthenticated, true, true);
        assert_eq!(away.status(), StatusCode::SEE_OTHER);
        assert!(
            away.headers()[LOCATION].to_str().is_ok_and(|to| to.starts_with("/signin?next=")),
            "{:?}",
            away.headers()
        );
        assert_eq!(
            written(ApiError::Unauthenticated, true, false).status().as_u16(),
            401,
            "a form is not sent elsewhere"
        );
        assert_eq!(written(ApiError::Unauthenticated, false, true).status().as_u16(), 401);
    }
}
