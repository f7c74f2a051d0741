//! The hooks by which providers of mailboxes tell of changes. Each has the name that its provider's description gives it. A hook's address can hold a
//! secret, so it is never written anywhere. `engine::mail::notices` says what is taken.

use std::net::IpAddr;

use axum::Extension;
use axum::body::BodyDataStream;
use axum::extract::{Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use engine::intake::network;
use engine::mail::notices::{Hook, Refused};
use futures_util::StreamExt as _;
use serde::Deserialize;

use super::error::{ApiError, Problem};
use super::extract::Path;
use super::webhooks::read_on;
use crate::app::App;
use crate::server::CallerAddress;

/// Posts of one network within a minute that are refused. Further ones are told to wait before their bodies are read.
const MOST_REFUSED: u32 = 600;
/// Posts of one network whose bodies are read at once.
const MOST_ARRIVING: usize = 512;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    #[serde(rename = "validationToken")]
    validation_token: Option<String>,
    token: Option<String>,
}

/// Takes a provider's notice that mailboxes have changed, and answers once that is noted.
///
/// Only providers call it. Outlook (`/webhooks/outlook`) asks first whether the address is ours (`validationToken`, which is repeated), and
/// each of its notices repeats the secret of its subscription. Gmail (`/webhooks/gmail`) posts through Pub/Sub with a token that Google has
/// signed or, without one, with the word of the settings (`x-goog-pubsub-token`, or `token`). A mailbox that nobody here knows is answered
/// with 200, so that it is not told of again.
#[utoipa::path(post, path = "/webhooks/{hook}", tag = "webhooks", security(()),
    params(("hook" = String, Path, description = "The provider's hook", example = "outlook"),
        ("validationToken" = Option<String>, Query, description = "Repeated as plain text"),
        ("token" = Option<String>, Query, description = "The word of the settings, where posts are not signed")),
    responses((status = 200, description = "It is noted"), (status = 400, body = Problem),
        (status = 403, body = Problem, description = "It does not prove who sent it"),
        (status = 404, body = Problem, description = "There is no such hook, or its settings ask for no proof"),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn notice(
    State(app): State<App>,
    Extension(CallerAddress(address)): Extension<CallerAddress>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let hook = app.notices.hook(&name).ok_or(ApiError::NotFound("page"))?;
    let Ok(Query(asked)) = Query::<Asked>::try_from_uri(request.uri()) else {
        return Err(ApiError::Malformed(StatusCode::BAD_REQUEST, "its query cannot be read".into()));
    };
    if let Some(echo) = app.notices.echo(hook, asked.validation_token.as_deref()) {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        return Ok(([(CONTENT_TYPE, text)], echo?).into_response());
    }
    let whose = network(address);
    let (parts, body) = request.into_parts();
    let mut pieces = body.into_data_stream();
    let taken = take(&app, hook, whose, asked.token.as_deref(), &parts.headers, &mut pieces).await;
    if taken.is_err() {
        read_on(&mut pieces).await;
    }
    if matches!(taken, Err(ApiError::Forbidden(_) | ApiError::Malformed(..))) {
        let _ = app.wrong_notices.count(whose, MOST_REFUSED); // the next one is told
    }
    taken.map(|()| StatusCode::OK.into_response())
}

/// Checks all that can be checked before the body arrives.
async fn take(
    app: &App,
    hook: Hook,
    whose: IpAddr,
    word: Option<&str>,
    headers: &HeaderMap,
    pieces: &mut BodyDataStream,
) -> Result<(), ApiError> {
    if let Some(wait) = app.wrong_notices.is_over(&whose, MOST_REFUSED) {
        return Err(ApiError::TooMany(wait));
    }
    app.notices.admit(hook, headers, word).await?;
    let enough = ApiError::AtOnce("enough notices are arriving", 1);
    let arriving = app.arriving_notices.take(whose, MOST_ARRIVING).ok_or(enough)?;
    let body = whole(pieces, app.env.config.request_max_bytes).await?;
    drop(arriving);
    Ok(app.notices.receive(hook, &body).await?)
}

async fn whole(pieces: &mut BodyDataStream, most: usize) -> Result<Vec<u8>, ApiError> {
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        let cut = |_| ApiError::Malformed(StatusCode::BAD_REQUEST, "its body did not arrive in full".into());
        let piece = piece.map_err(cut)?;
        if body.len() + piece.len() > most {
            return Err(ApiError::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Closed => Self::NotFound("page"),
            Refused::Unproved(_) => Self::Forbidden("it does not prove that it comes from the provider"),
            Refused::Malformed(what) => Self::Malformed(StatusCode::BAD_REQUEST, what.into()),
            Refused::Full => Self::Full,
            Refused::Away(error) => Self::Unavailable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_told_what_it_should_send_again() {
        let status = |refused: Refused| ApiError::from(refused).into_response().status().as_u16();
        for (refused, expected) in [
            (Refused::Closed, 404),
            (Refused::Unproved("token"), 403),
            (Refused::Malformed("no list"), 400),
            (Refused::Full, 503),
            (Refused::Away(anyhow::anyhow!("away")), 503),
        ] {
            assert_eq!(status(refused), expected);
        }
    }

    #[test]
    fn a_question_is_read_as_a_form_writes_it() {
        let asked = |query: &str| {
            let uri = format!("/webhooks/outlook?{query}").parse().expect("an address");
            Query::<Asked>::try_from_uri(&uri).ok().and_then(|Query(asked)| asked.validation_token)
        };
        assert_eq!(asked("validationToken=Validation%3a+Testing%2B1").as_deref(), Some("Validation: Testing+1"));
        assert_eq!(asked("other=1"), None);
        assert_eq!(asked("validationToken=a&validationToken=b"), None, "twice is refused");
    }
}
