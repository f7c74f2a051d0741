//! Misbehaves: answers in place of a provider, or spoils its true answer.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, stream};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::manners::{Manner, RetryAfter};
use crate::provider::Fake;
use crate::request::Asked;
use crate::shapes::{self, answer, rate_limited};

/// Ends the connection here.
#[derive(Debug)]
pub(crate) struct HungUp;

impl std::fmt::Display for HungUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up as told")
    }
}

impl std::error::Error for HungUp {}

/// Enough for any page that a test looks at.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Keys whose values are texts by people.
const WORDS: [&str; 8] = ["firstname", "lastname", "company", "name", "dealname", "DisplayName", "DocNumber", "text"];

/// Returns the answer if the provider is not asked at all.
pub(crate) fn instead(manner: &Manner, asked: &Asked, now: DateTime<Utc>) -> Option<Result<Response, HungUp>> {
    let path = asked.path.as_str();
    let response = match manner {
        Manner::Status(status) => shapes::error(path, *status, now),
        Manner::RateLimited { retry_after } => rate_limited(path, false, *retry_after, now),
        Manner::DailyLimit { retry_after } => rate_limited(path, true, *retry_after, now),
        Manner::RateLimitedAs403 => match Fake::of_path(path).and_then(|provider| provider.words.rate_limited_as_403) {
            Some(say) => say(),
            None => rate_limited(path, false, RetryAfter::Absent, now),
        },
        Manner::FaultWith200 => match Fake::of_path(path).and_then(|provider| provider.words.error_with_200) {
            Some(say) => say(now),
            None => shapes::error(path, 500, now),
        },
        Manner::Garbage => {
            let mut bytes = vec![0_u8; 700];
            rand::rng().fill(&mut bytes[..]);
            as_json(Body::from(bytes))
        }
        Manner::Html => shapes::text("text/html; charset=utf-8", HTML.to_owned()),
        Manner::WrongJson => answer(
            200,
            json!({"results": {"id": 7}, "files": "none", "changes": 3, "QueryResponse": ["Customer"], "CDCResponse": true,
                "access_token": {"value": null}, "paging": "no"}),
        ),
        Manner::Empty200 => as_json(Body::empty()),
        Manner::Rows(n) => {
            let rows = vec![r#"{"id":"7","properties":{"email":"same@example.com"}}"#; *n].join(",");
            as_json(Body::from(format!(r#"{{"results":[{rows}]}}"#)))
        }
        Manner::Endless => {
            let spaces = Bytes::from_static(&[b' '; 16 * 1024]);
            as_json(Body::from_stream(stream::repeat(spaces).map(Ok::<_, io::Error>)))
        }
        Manner::Bomb => {
            ([(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "gzip")], Body::from(bomb())).into_response()
        }
        // This one goes inside a tool's result; the handler puts it there.
        Manner::LostToken if path.starts_with("/mcp") => return None,
        Manner::LostToken => match Fake::of_path(path) {
            Some(provider) => (provider.words.lost_token)(now),
            None => shapes::error(path, 400, now),
        },
        Manner::Reset => return Some(Err(HungUp)),
        _ => return None,
    };
    Some(Ok(response))
}

/// Damages the true answer.
pub(crate) async fn spoil(manner: Manner, response: Response) -> Result<Response, HungUp> {
    match manner {
        Manner::Delay(delay) => {
            sleep(delay).await;
            return Ok(response);
        }
        Manner::DropReply => return Err(HungUp),
        Manner::Truncated
        | Manner::CutJson
        | Manner::DuplicateKeys
        | Manner::InvalidUtf8
        | Manner::NulInStrings
        | Manner::Mutated(_)
        | Manner::Slow { .. } => {}
        _ => return Ok(response), // its handler has done it
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, ANSWER_BYTES).await.map_err(|_| HungUp)?;
    let body_bytes = body.len();
    let (body, body_bytes) = match manner {
        Manner::Truncated => {
            // The pause lets the first half be sent before the connection ends.
            let cut = stream::once(async {
                sleep(Duration::from_millis(20)).await;
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            });
            let half = body.slice(..body_bytes / 2);
            (Body::from_stream(stream::iter([Ok(half)]).chain(cut)), body_bytes)
        }
        Manner::Slow { per_byte } => {
            let bytes = stream::iter((0..body_bytes).map(move |at| body.slice(at..=at)));
            let slowly = bytes.then(move |byte| async move {
                sleep(per_byte).await;
                Ok::<_, io::Error>(byte)
            });
            (Body::from_stream(slowly), body_bytes)
        }
        manner => {
            let body = match manner {
                Manner::CutJson => body[..body_bytes / 2].to_vec(),
                Manner::DuplicateKeys => with_key_twice(&body),
                Manner::InvalidUtf8 => with_invalid_utf8(&body),
                Manner::Mutated(seed) => mutated(&body, seed),
                _ => with_nul(&body),
            };
            let body_bytes = body.len();
            (Body::from(body), body_bytes)
        }
    };
    parts.headers.insert(CONTENT_LENGTH, body_bytes.into());
    Ok(Response::from_parts(parts, body))
}

fn as_json(body: Body) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// A gzip bomb: one zero, followed by repetitions of it. The checksum is missing, but it would come after the damage.
fn bomb() -> Vec<u8> {
    const REPEATS: usize = 100 * 1024 * 1024 / 258;
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut byte, mut n_bits) = (0_u8, 0);
    let mut put = |code: u16, length: u32| {
        for place in (0..length).rev() {
            byte |= u8::from((code >> place) & 1 == 1) << n_bits;
            n_bits += 1;
            if n_bits == 8 {
                packed.push(byte);
                (byte, n_bits) = (0, 0);
            }
        }
    };
    put(0b110, 3); // the last block, with the codes that everybody knows
    put(0x30, 8);
    for _ in 0..REPEATS {
        put(0xc5, 8);
        put(0, 5);
    }
    put(0, 7 + 7); // the end of the block, and of its last byte
    packed.extend([0; 8]);
    packed
}

/// Inserts a value before the true one, so that a reader that takes the first and one that takes the last disagree.
fn with_key_twice(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let key = ["\"id\":\"", "\"Id\":\"", "\"access_token\":\""].into_iter().find(|key| text.contains(key));
    match key {
        Some(key) => text.replacen(key, &format!("{key}another\",{key}"), 1).into_bytes(),
        None => text.replacen('{', "{\"kind\":1,\"kind\":2,", 1).into_bytes(),
    }
}

/// Puts invalid bytes inside a value, where a lenient reader would replace them with U+FFFD.
fn with_invalid_utf8(body: &[u8]) -> Vec<u8> {
    let key = WORDS.iter().map(|key| format!("\"{key}\":\"")).find_map(|key| {
        let at = body.windows(key.len()).position(|bytes| bytes == key.as_bytes())?;
        Some(at + key.len())
    });
    let at =
        key.or_else(|| body.windows(2).position(|bytes| bytes == b":\"").map(|at| at + 2)).unwrap_or(body.len() / 2);
    [&body[..at], b"\xff\xfe\xc3\x28", &body[at..]].concat()
}

/// Bytes that a parser is not prepared for.
const ODD: [&[u8]; 14] = [
    b"\0",
    b"\xff\xfe",
    b"null",
    b"{",
    b"]",
    b"\"",
    b",",
    b"\\ud800",
    b"1e999",
    b"-99999999999999999999999",
    b"<html>",
    b"\"id\":\"\",",
    b"\xf0\x9f",
    b"\r\n\r\n",
];

/// Replaces, removes, repeats and inserts in one to eight places.
fn mutated(body: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut bytes = body.to_vec();
    for _ in 0..rng.random_range(1..=8) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(0..200)).min(bytes.len());
        match rng.random_range(0..5) {
            0 if at < bytes.len() => bytes[at] = rng.random(),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at.max(body.len() / 2)),
            _ => {
                bytes.splice(at..at, ODD[rng.random_range(0..ODD.len())].iter().copied());
            }
        }
    }
    bytes
}

fn with_nul(body: &[u8]) -> Vec<u8> {
    match serde_json::from_slice(body) {
        Ok(mut json) => {
            add_nul(&mut json);
            json.to_string().into_bytes()
        }
        Err(_) => [b"nul: \0", body].concat(),
    }
}

fn add_nul(json: &mut Value) {
    match json {
        Value::Array(values) => values.iter_mut().for_each(add_nul),
        Value::Object(values) => values.iter_mut().for_each(|(key, value)| match value {
            Value::String(text) if WORDS.contains(&key.as_str()) => text.insert(0, '\0'),
            Value::String(_) => {}
            value => add_nul(value),
        }),
        _ => {}
    }
}

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n\
    <body><h1>Please sign in to continue</h1><form action=\"/login\" method=\"post\"></form></body></html>\n";
