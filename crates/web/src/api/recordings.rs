//! The recording of a call, whole or from the position that a player asks for.

use std::ops::Range;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, HeaderValue, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use domain::{ActivityId, audio};
use engine::recordings;
use uuid::Uuid;

use super::auth::Hearing;
use super::error::{ApiError, Problem};
use super::extract::Path;
use crate::app::App;

/// The file is not ours: opened by itself, it can run nothing.
const POLICY: &str = "default-src 'none'; media-src 'self'; sandbox";

/// The recording of an activity. The first request fetches it from its provider, which may take a while. Accepts a `Range`.
#[utoipa::path(get, path = "/api/v1/activities/{id}/recording", tag = "activities", params(("id" = Uuid, Path)),
    responses((status = 200, description = "The recording", content_type = "application/octet-stream"),
        (status = 206, description = "The part that was asked for", content_type = "application/octet-stream"),
        (status = 404, body = Problem), (status = 416, body = Problem), (status = 502, body = Problem)))]
pub(crate) async fn one(
    State(app): State<App>,
    Hearing(caller): Hearing,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    serve(&app, &caller, ActivityId(id), &headers).await
}

pub(crate) async fn serve(
    app: &App,
    caller: &domain::Caller,
    id: ActivityId,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let seen = app.env.db.read(caller, async |tx| store::activities::get(tx, caller.tenant_id, id).await).await?;
    seen.ok_or(ApiError::NotFound("activity"))?;
    let recording = recordings::open(&app.env, caller.tenant_id, id).await?;
    let etag = format!("\"{}\"", recording.key);
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    // If the file has changed since, a part of it is of no use.
    let range = text(RANGE).filter(|_| text(IF_RANGE).is_none_or(|known| known == etag));
    let (status, part) = match range.map_or(Wanted::Whole, |range| wanted(range, recording.bytes)) {
        Wanted::Whole => (StatusCode::OK, 0..recording.bytes),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Beyond => return Ok(beyond(recording.bytes)),
    };
    let pieces = app.env.blobs.get_part(caller.tenant_id, &recording.key, part.clone()).await?;
    let mut response = Body::from_stream(pieces.ok_or(ApiError::NotFound("recording"))?).into_response();
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, audio::safe(&recording.content_type)),
        (CONTENT_DISPOSITION, "inline"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (ACCEPT_RANGES, "bytes"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_LENGTH, (part.end - part.start).into());
    headers.extend(HeaderValue::try_from(etag).map(|etag| (ETAG, etag)));
    if status == StatusCode::PARTIAL_CONTENT {
        let place = format!("bytes {}-{}/{}", part.start, part.end - 1, recording.bytes);
        headers.extend(HeaderValue::try_from(place).map(|place| (CONTENT_RANGE, place)));
    }
    Ok(response)
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    Part(Range<u64>),
    /// It begins after the end.
    Beyond,
}

/// Reads one range of bytes. Several ranges, and texts that are no range, are answered with the whole, as HTTP allows.
fn wanted(range: &str, bytes: u64) -> Wanted {
    let Some((first, last)) = range.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Wanted::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let part = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..bytes.min(last.saturating_add(1)),
        (Ok(first), Err(_)) if last.is_empty() => first..bytes,
        (Err(_), Ok(n)) if first.is_empty() => bytes.saturating_sub(n)..bytes,
        _ => return Wanted::Whole,
    };
    if part.is_empty() { Wanted::Beyond } else { Wanted::Part(part) }
}

fn beyond(bytes: u64) -> Response {
    let what = format!("the recording has {bytes} bytes");
    let mut response = ApiError::Malformed(StatusCode::RANGE_NOT_SATISFIABLE, what).into_response();
    response.headers_mut().extend(HeaderValue::try_from(format!("bytes */{bytes}")).map(|size| (CONTENT_RANGE, size)));
    response
}

impl From<recordings::Error> for ApiError {
    fn from(error: recordings::Error) -> Self {
        match error {
            recordings::Error::None => Self::NotFound("recording"),
            recordings::Error::NotKept(fault) => fault.into(),
            refused => Self::Provider(refused.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_part_or_the_whole_is_sent() {
        for (range, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=10-19", Wanted::Part(10..20)),
            ("bytes=90-", Wanted::Part(90..100)),
            ("bytes=90-5000", Wanted::Part(90..100)),
            ("bytes=0-18446744073709551615", Wanted::Part(0..100)),
            ("bytes=-10", Wanted::Part(90..100)),
            ("bytes=-500", Wanted::Part(0..100)),
            ("bytes=99-99", Wanted::Part(99..100)),
            ("bytes=100-", Wanted::Beyond),
            ("bytes=100-200", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=0-1,5-6", Wanted::Whole),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=--5", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes=99999999999999999999-", Wanted::Whole),
        ] {
            assert_eq!(wanted(range, 100), expected, "{range}");
        }
    }
}
