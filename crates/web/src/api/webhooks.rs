//! The door for webhooks. The channel's key is in the address, so the address is told to nobody: the edge names the route, and
//! errors here say what, not where.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use engine::intake::{BODY_BYTES, Received, Refusal};
use futures_util::StreamExt as _;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::{ApiError, Problem};
use crate::app::App;
use crate::server::{Peer, client_address};

const DRAIN_BYTES: usize = 16 * BODY_BYTES;
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

#[derive(Serialize, ToSchema)]
pub(crate) struct Accepted {
    success: bool,
    /// The activity; a redelivery is told the first one's.
    id: Uuid,
}

/// Takes an event for a channel. Answers once it is durable.
///
/// Sign the body with the channel's secret (`X-Webhook-Signature: sha256=<hex HMAC-SHA256>`) or send its bearer key. JSON, a form or
/// plain text, up to 1 MiB. `webhook-id`, else `Idempotency-Key`, else `X-GitHub-Delivery` makes a redelivery the same event; without
/// one each request is a new event, and the answer says so (`X-Event-Key: none`).
#[utoipa::path(post, path = "/ingest/{key}", tag = "webhooks", security(()), params(("key" = String, Path, description = "The channel's key")),
    responses((status = 202, body = Accepted), (status = 400, body = Problem), (status = 401, body = Problem), (status = 413, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn ingest(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, ApiError> {
    receive(&app, peer, request, |address| address.path().strip_prefix("/ingest/")).await
}

/// The same, as programs written for the older address call it.
#[utoipa::path(post, path = "/functions/v1/ingest-activity", tag = "webhooks", security(()),
    params(("key" = String, Query, description = "The channel's key"), ("provider" = Option<String>, Query, description = "Ignored: the key decides")),
    responses((status = 202, body = Accepted), (status = 400, body = Problem), (status = 401, body = Problem), (status = 413, body = Problem),
        (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn ingest_activity(
    State(app): State<App>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, ApiError> {
    receive(&app, peer, request, |address| address.query()?.split('&').find_map(|pair| pair.strip_prefix("key="))).await
}

async fn receive(
    app: &App,
    Peer(peer): Peer,
    request: Request,
    key: impl FnOnce(&Uri) -> Option<&str>,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let mut pieces = body.into_data_stream();
    // A missing key is one that nobody has.
    let taken = take_in(app, peer.ip(), key(&parts.uri).unwrap_or_default(), &parts.headers, &mut pieces).await;
    if matches!(taken, Err(ApiError::OverLimit(_))) {
        let _ = tokio::time::timeout(DRAIN_LIMIT, drain(&mut pieces)).await;
    }
    let Received { id, has_event_key } = taken?;
    let mut response = (StatusCode::ACCEPTED, Json(Accepted { success: true, id: id.0 })).into_response();
    if !has_event_key {
        response.headers_mut().insert("x-event-key", HeaderValue::from_static("none"));
    }
    Ok(response)
}

async fn take_in(
    app: &App,
    peer: IpAddr,
    key: &str,
    headers: &HeaderMap,
    pieces: &mut BodyDataStream,
) -> Result<Received, ApiError> {
    let address = client_address(peer, headers, app.env.config.public_url.is_some());
    let mut knock = app.intake.knock(key, address, headers).await?;
    while let Some(piece) = pieces.next().await {
        let broken = |_| ApiError::Malformed(StatusCode::BAD_REQUEST, "the body ended before its end".into());
        knock.push(piece.map_err(broken)?)?;
    }
    Ok(knock.deliver(headers).await?)
}

/// Reads on for a while: a sender that is still sending when the connection closes never sees why.
async fn drain(pieces: &mut BodyDataStream) {
    let mut bytes = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        bytes += piece.len();
        if bytes > DRAIN_BYTES {
            return;
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unverified => Self::Unverified,
            Refusal::TooLarge => Self::OverLimit(format!("a webhook may have {BODY_BYTES} bytes")),
            Refusal::Malformed(what) => Self::Malformed(StatusCode::BAD_REQUEST, what.into()),
            Refusal::TooMany { wait } => Self::TooMany(wait),
            Refusal::Full => Self::Full,
            Refusal::Away(error) => Self::DatabaseAway(error.into()),
            Refusal::Broken(error) => Self::Internal(error.into()),
        }
    }
}
