//! Errors as PostgREST's clients read them.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::api::error::ApiError;

/// An error as PostgREST's clients read it.
#[derive(Debug)]
pub(crate) struct RestError {
    status: StatusCode,
    code: String,
    message: String,
    pub(super) details: Option<String>,
    /// After how many seconds to try again.
    wait_secs: Option<u32>,
}

impl std::fmt::Display for RestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl RestError {
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into(), details: None, wait_secs: None }
    }

    /// One too many. PostgreSQL's code for that is 53300.
    pub fn too_many(message: &str, wait_secs: u32) -> Self {
        Self { wait_secs: Some(wait_secs), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "53300", message) }
    }

    pub fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }
}

impl IntoResponse for RestError {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.code, "message": self.message, "details": self.details, "hint": null });
        let mut response = (self.status, Json(body)).into_response();
        if let Some(secs) = self.wait_secs {
            response.headers_mut().insert(RETRY_AFTER, secs.into());
        }
        response
    }
}

impl From<store::Error> for RestError {
    fn from(error: store::Error) -> Self {
        let message = error.told();
        match (error.code().as_deref(), &error) {
            (Some("PT409"), _) => Self::new(StatusCode::CONFLICT, "PT409", message),
            (Some("42501"), _) => Self::new(StatusCode::FORBIDDEN, "42501", message),
            (Some(code @ ("23505" | "23503")), _) => Self::new(StatusCode::CONFLICT, code, message),
            (Some(code), _) if ["22", "23", "P0"].contains(&&code[..2]) => Self::bad(code, message),
            (None, store::Error::Refused { what }) => Self::bad("PGRST204", what),
            _ if error.is_passing() => Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database is away"),
            _ => {
                tracing::error!(error = ?error, "request failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "something went wrong here")
            }
        }
    }
}

impl From<ApiError> for RestError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Unauthenticated => Self::new(StatusCode::UNAUTHORIZED, "PGRST301", "no key was given"),
            ApiError::UnknownKey => {
                Self::new(StatusCode::UNAUTHORIZED, "PGRST301", "the key is not known, or it was revoked")
            }
            ApiError::Forbidden(what) => Self::new(StatusCode::FORBIDDEN, "42501", what),
            ApiError::CrossSite => Self::new(StatusCode::FORBIDDEN, "42501", "use a key, not a session"),
            ApiError::TooManyFailures => Self::too_many("too many wrong keys; wait a minute", 60),
            ApiError::DatabaseAway(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "PGRST000", "the database is away"),
            other => {
                tracing::error!(error = ?other, "request failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "XX000", "something went wrong here")
            }
        }
    }
}
