//! The batch endpoint: parts of a multipart body, each a request. The answer is good whatever becomes of the parts.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use super::fake::refused;
use super::rest::{Said, content_type, response, say};
use super::{GMAIL, Mailboxes};
use crate::ledger::Seen;
use crate::manners::Manner;
use crate::oauth::grants::Caller;
use crate::{Shared, lock};

const MOST_PARTS: usize = 100;
const BOUNDARY: &str = "batch_fakes_7Qx";

struct Part {
    id: String,
    method: Method,
    uri: Uri,
}

pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    caller: Option<Extension<Caller>>,
    manner: Option<Extension<Manner>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let caller = caller.map(|Extension(caller)| caller);
    let Some(caller) = caller.filter(|caller| caller.provider == GMAIL && caller.is_valid) else {
        let (status, said) = refused(401, "authError", "Invalid Credentials");
        return response(status, said);
    };
    let boundary = content_type(&headers).split("boundary=").nth(1).unwrap_or_default().trim_matches('"').to_owned();
    let text = String::from_utf8_lossy(&body).into_owned();
    let pieces: Vec<&str> =
        text.split(&format!("--{boundary}")).skip(1).filter(|piece| !piece.starts_with("--")).collect();
    if boundary.is_empty() || pieces.len() > MOST_PARTS {
        let message = format!("Inner request count exceeds the limit. Received: {}, Limit: {MOST_PARTS}", pieces.len());
        let (status, said) = refused(400, "badRequest", &message);
        return response(status, said);
    }
    let parts: Option<Vec<Part>> = pieces.into_iter().map(part).collect();
    let Some(parts) = parts else {
        let (status, said) = refused(400, "badRequest", "Failed to parse batch request");
        return response(status, said);
    };
    let mut answered = String::new();
    // In another order than that of the requests.
    for (number, part) in parts.iter().enumerate().rev() {
        let (status, said) = said(&shared, &caller, manner.as_deref(), number, part);
        let body = if said == Value::Null { String::new() } else { said.to_string() };
        answered.push_str(&format!(
            "--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <response-{}>\r\n\r\nHTTP/1.1 {status} {}\r\n\
             Content-Type: application/json; charset=UTF-8\r\nContent-Length: {}\r\n\r\n{body}\r\n",
            part.id,
            reason(status),
            body.len(),
        ));
    }
    answered.push_str(&format!("--{BOUNDARY}--\r\n"));
    ([(CONTENT_TYPE, format!("multipart/mixed; boundary={BOUNDARY}"))], answered).into_response()
}

/// The answer to one part, which is in the ledger like a request of its own.
fn said(shared: &Shared, caller: &Caller, manner: Option<&Manner>, number: usize, part: &Part) -> Said {
    let seen = shared.ledger.note(Seen {
        at: shared.clock.now(),
        method: part.method.to_string(),
        path: part.uri.path().to_owned(),
        query: part.uri.query().unwrap_or_default().to_owned(),
        account: Some(caller.account.clone()),
        status: None,
    });
    let (at_once, refusal) = {
        let mut boxes = lock(shared.records::<Mailboxes>());
        let refusal = boxes.of(&caller.account).refused_parts.pop_front();
        (boxes.at_once, refusal)
    };
    let said = match refusal {
        Some(429) => refused(429, "rateLimitExceeded", "Too many concurrent requests for user"),
        Some(status) => refused(status, "backendError", "Backend Error"),
        None if number >= at_once => refused(429, "rateLimitExceeded", "Too many concurrent requests for user"),
        None => say(shared, Some(caller), manner, &part.method, &part.uri, &[]),
    };
    shared.ledger.answered(seen, said.0);
    said
}

fn part(piece: &str) -> Option<Part> {
    let (head, request) = piece.split_once("\r\n\r\n").or_else(|| piece.split_once("\n\n"))?;
    let id = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-id").then(|| value.trim().trim_matches(['<', '>']).to_owned())
    })?;
    let mut words = request.lines().next()?.split_whitespace();
    Some(Part { id, method: words.next()?.parse().ok()?, uri: words.next()?.parse().ok()? })
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        404 => "Not Found",
        429 => "Too Many Requests",
        _ => "Said",
    }
}
