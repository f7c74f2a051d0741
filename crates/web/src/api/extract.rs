//! axum's extractors, with our error when a request does not fit.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::rejection::{FormRejection, JsonRejection};
use axum::extract::{FromRequest, FromRequestParts, OptionalFromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::error::ApiError;

pub(crate) struct Path<T>(pub T);
pub(crate) struct Query<T>(pub T);
pub(crate) struct Json<T>(pub T);
pub(crate) struct Form<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // An address that does not parse names nothing.
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Self(value)).map_err(|_| ApiError::NotFound("page"))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| ApiError::Malformed(rejection.status(), rejection.body_text()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let json = <axum::Json<T> as FromRequest<S>>::from_request(request, state).await;
        json.map(|axum::Json(value)| Self(value))
            .map_err(|rejection: JsonRejection| malformed(rejection.status(), rejection.body_text()))
    }
}

/// A body that may be left out.
impl<S: Send + Sync, T: DeserializeOwned> OptionalFromRequest<S> for Json<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, ApiError> {
        if !request.headers().contains_key(CONTENT_TYPE) {
            return Ok(None);
        }
        <Self as FromRequest<S>>::from_request(request, state).await.map(Some)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let form = axum::Form::from_request(request, state).await;
        form.map(|axum::Form(value)| Self(value))
            .map_err(|rejection: FormRejection| malformed(rejection.status(), rejection.body_text()))
    }
}

/// Reads a query field: `?state=`, as a form sends an empty field, means the same as leaving it out.
pub(crate) fn blank_is_none<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    match Option::<String>::deserialize(from)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

fn malformed(status: StatusCode, what: String) -> ApiError {
    if status == StatusCode::PAYLOAD_TOO_LARGE { ApiError::TooLarge } else { ApiError::Malformed(status, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Filter {
        #[serde(default, deserialize_with = "blank_is_none")]
        state: Option<domain::ItemState>,
        #[serde(default, deserialize_with = "blank_is_none")]
        before: Option<i64>,
    }

    #[test]
    fn blank_filters_filter_nothing_and_odd_ones_are_refused() {
        let of = |query: &str| {
            let uri: axum::http::Uri = format!("/?{query}").parse().expect("uri");
            let filter = axum::extract::Query::<Filter>::try_from_uri(&uri).ok()?;
            Some((filter.state, filter.before))
        };
        assert_eq!(of(""), Some((None, None)));
        assert_eq!(of("state=&before="), Some((None, None)));
        assert_eq!(of("state=dead&before=7"), Some((Some(domain::ItemState::Dead), Some(7))));
        for odd in ["state=undead", "before=x", "before=99999999999999999999", "state=dead%27%20or%201=1"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
