//! The route of webhooks. The channel's key is in the URL, so the URL is never written anywhere: the edge logs the route's name, and errors
//! here do not name it. The request goes to `engine::intake`, piece by piece; the sender is answered once its event is durable.

use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use engine::intake::{Received, Refusal, Visit};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::{ApiError, Problem};
use crate::app::App;
use crate::server::CallerAddress;

const ACTIVITY_ID: HeaderName = HeaderName::from_static("x-activity-id");
const DRAIN_BYTES: usize = 16 << 20;
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// Senders whose event is not accepted are answered at times this far apart, counted from the beginning of their request. Looking up a key
/// takes less, and longer where a channel has it.
const REFUSED_EVERY: Duration = Duration::from_millis(50);

#[derive(Serialize, ToSchema)]
pub(crate) struct Accepted {
    success: bool,
    /// The activity; a redelivery is told the first one's.
    id: Uuid,
}

/// Accepts an event for a channel, and answers once it is durable.
///
/// The channel decides who may send: Twilio signs (`X-Twilio-Signature`) and is answered 200 with empty TwiML and `X-Activity-Id`; Postmark is
/// known by its address or by user and password; for a generic channel sign the body with its secret (`X-Webhook-Signature: sha256=<hex
/// HMAC-SHA256>`, or Standard Webhooks) or send its bearer key. JSON, a form, multipart or plain text, up to 1 MiB (Postmark 50 MiB).
/// `webhook-id`, else `Idempotency-Key`, else `X-GitHub-Delivery` makes a redelivery the same event, as the ids in the bodies of Twilio,
/// Postmark, Stripe and Slack do; without one each request is a new event, and the answer says so (`X-Event-Key: none`).
#[utoipa::path(post, path = "/ingest/{key}", tag = "webhooks", security(()), params(("key" = String, Path, description = "The channel's key", example = "whk_0123456789abcdef")),
    responses((status = 202, body = Accepted), (status = 400, body = Problem), (status = 401, body = Problem), (status = 413, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn ingest(
    State(app): State<App>,
    Extension(address): Extension<CallerAddress>,
    request: Request,
) -> Result<Response, ApiError> {
    receive(&app, address, request, |uri| uri.path().strip_prefix("/ingest/")).await
}

/// The same under its older address.
#[utoipa::path(post, path = "/functions/v1/ingest-activity", tag = "webhooks", security(()),
    params(("key" = String, Query, description = "The channel's key", example = "whk_0123456789abcdef"), ("provider" = Option<String>, Query, description = "Ignored: the key decides")),
    responses((status = 202, body = Accepted), (status = 400, body = Problem), (status = 401, body = Problem), (status = 413, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn ingest_activity(
    State(app): State<App>,
    Extension(address): Extension<CallerAddress>,
    request: Request,
) -> Result<Response, ApiError> {
    receive(&app, address, request, |uri| uri.query()?.split('&').find_map(|pair| pair.strip_prefix("key="))).await
}

async fn receive(
    app: &App,
    CallerAddress(address): CallerAddress,
    request: Request,
    key: impl FnOnce(&Uri) -> Option<&str>,
) -> Result<Response, ApiError> {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let mut pieces = body.into_data_stream();
    let visit = Visit {
        key: key(&parts.uri).unwrap_or_default(), // a missing key is no channel's
        target: parts.uri.path_and_query().map_or("/", |target| target.as_str()),
        address,
        headers: &parts.headers,
    };
    let taken = take_in(app, visit, &mut pieces).await;
    if taken.is_err() {
        read_on(&mut pieces).await; // its room is free again by now
        sleep_until(next_refusal(begun)).await;
    }
    let received = taken?;
    let mut response = answer(&received, &parts.headers);
    if !received.has_event_key {
        response.headers_mut().insert("x-event-key", HeaderValue::from_static("none"));
    }
    Ok(response)
}

/// When a sender is refused whose request began then.
fn next_refusal(begun: Instant) -> Instant {
    let passed = begun.elapsed().as_millis() / REFUSED_EVERY.as_millis();
    begun + REFUSED_EVERY * u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

/// The answer that the provider expects.
fn answer(received: &Received, headers: &HeaderMap) -> Response {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let id = received.id.0;
    match received.reply.plain {
        Some((content_type, body)) if !accepts.contains("application/json") => {
            ([(CONTENT_TYPE, content_type.to_owned()), (ACTIVITY_ID, id.to_string())], body).into_response()
        }
        _ => {
            let status = StatusCode::from_u16(received.reply.status).unwrap_or(StatusCode::ACCEPTED);
            (status, Json(Accepted { success: true, id })).into_response()
        }
    }
}

async fn take_in(app: &App, visit: Visit<'_>, pieces: &mut BodyDataStream) -> Result<Received, ApiError> {
    let mut delivery = app.intake.begin(visit).await?;
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else { return Err(delivery.give_up().into()) };
        delivery.push(piece).await?;
    }
    Ok(delivery.finish(visit.headers).await?)
}

/// Reads on for a while: a sender that is still sending when the connection closes never sees the answer.
pub(super) async fn read_on(pieces: &mut BodyDataStream) {
    let drained = async {
        let mut bytes = 0;
        while let Some(Ok(piece)) = pieces.next().await {
            bytes += piece.len();
            if bytes > DRAIN_BYTES {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_LIMIT, drained).await;
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unverified => Self::Unverified,
            Refusal::TooLarge { most } => Self::OverLimit(format!("a webhook may have {most} bytes")),
            Refusal::Malformed(what) => Self::Malformed(StatusCode::BAD_REQUEST, what.into()),
            Refusal::Unfinished => Self::Malformed(StatusCode::BAD_REQUEST, "the body ended before its end".into()),
            Refusal::TooMany { wait } => Self::TooMany(wait),
            Refusal::Full => Self::Full,
            Refusal::Away(error) => Self::DatabaseAway(error.into()),
            Refusal::Broken(error) => Self::Internal(error.into()),
        }
    }
}
