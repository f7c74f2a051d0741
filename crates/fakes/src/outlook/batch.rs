//! Several questions in one request. Each counts towards the limit, and the answers come in any order.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::Mail;
use super::fake::{error, said};
use super::reading::{Ask, Body, Said};

const MOST: usize = 20;

impl Mail {
    /// Answers a batch. `ask` is the request that brought it.
    pub(super) fn batch(&mut self, ask: &Ask<'_>, body: &Value) -> Said {
        let parts = body["requests"].as_array().cloned().unwrap_or_default();
        let ids: HashSet<&str> = parts.iter().filter_map(|part| part["id"].as_str()).collect();
        if parts.is_empty() || parts.len() > MOST || ids.len() != parts.len() {
            let words = format!("Batch of {} requests, of at most {MOST} with ids of their own.", parts.len());
            return (400, said("BadRequest", &words, ask.now)).into();
        }
        self.spend(parts.len());
        let mut answers: Vec<Value> = parts.iter().map(|part| self.part(ask, part)).collect();
        answers.reverse();
        (200, json!({"responses": answers})).into()
    }

    fn part(&mut self, ask: &Ask<'_>, part: &Value) -> Value {
        let id = part["id"].clone();
        if self.switches.throttled_parts > 0 {
            self.switches.throttled_parts -= 1;
            let words = "Application is over its MailboxConcurrency limit.";
            return json!({"id": id, "status": 429, "headers": {"Retry-After": self.switches.throttled_secs.to_string()},
                "body": said("ApplicationThrottled", words, ask.now)});
        }
        let url = part["url"].as_str().unwrap_or_default();
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let header = |name: &str| {
            let headers = part["headers"].as_object()?;
            let (_, value) = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            value.as_str().map(str::to_owned)
        };
        let said = match part["method"].as_str() {
            Some("GET") => self.read(&Ask {
                path: segments(path),
                query: pairs(query),
                prefer: header("prefer").unwrap_or_default(),
                ..*ask
            }),
            _ => error(405, ask.now).into(),
        };
        match said.body {
            Body::Json(body) => {
                json!({"id": id, "status": said.status, "headers": {"Content-Type": "application/json"}, "body": body})
            }
            Body::Bytes(kind, bytes) => {
                json!({"id": id, "status": said.status, "headers": {"Content-Type": kind}, "body": STANDARD.encode(bytes)})
            }
        }
    }
}

/// The parts of a path, of which some are written as `mailFolders('id')`.
pub(super) fn segments(path: &str) -> Vec<String> {
    let plain = percent_decode_str(path).decode_utf8_lossy().replace("('", "/").replace("')", "");
    plain.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}
