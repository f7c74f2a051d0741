//! Reads events that use our own words: `type`, `direction`, `content`, `subject`, `from`, `to`, `metadata`. The guard has verified the sender;
//! `delivery` hands the event to the committer.

use domain::{ActivityType, Direction, hex};
use http::HeaderMap;
use sha2::{Digest as _, Sha256};

use super::verify::{SLACK, STRIPE};
use crate::intake::normalise::fields::{self, Field, quoted};
use crate::intake::normalise::object::{Metadata, Object};
use crate::intake::normalise::{Malformed, Normal, Parties, Sent, id};

/// The longest key that the column takes.
const EVENT_KEY_BYTES: usize = 500;

/// The event key: the first of these headers that a sender uses.
fn event_key(headers: &HeaderMap) -> Result<Option<String>, Malformed> {
    for name in ["webhook-id", "svix-id", "idempotency-key", "x-github-delivery"] {
        let Some(value) = headers.get(name) else { continue };
        let key = value.to_str().ok().map(str::trim).filter(|key| (1..=EVENT_KEY_BYTES).contains(&key.len()));
        return match key {
            Some(key) => Ok(Some(key.to_owned())),
            None => Err(Malformed("webhook-id and Idempotency-Key have 1 to 500 plain characters")),
        };
    }
    Ok(None)
}

pub(super) fn normalise(sent: &Sent) -> Result<Normal, Malformed> {
    let (given, files) = fields::read(sent.content_type, sent.body)?;
    let (mut r#type, mut direction) = (ActivityType::Other, Direction::Inbound);
    let [mut content, mut subject, mut from, mut to] = [const { None::<&str> }; 4];
    let mut others: Vec<&Field> = Vec::new();
    let mut inner = None;
    for field in &given {
        let (name, value) = (&*field.0, &*field.1);
        match (name, word(value)) {
            ("type", Some(given)) => match given.to_ascii_lowercase().parse() {
                Ok(known) => r#type = known,
                Err(_) => others.push(field),
            },
            ("direction", Some(given)) => match given.to_ascii_lowercase().parse() {
                Ok(known) => direction = known,
                Err(_) => others.push(field),
            },
            ("content" | "subject", None) if value == "null" => {}
            ("content", _) => content = Some(value),
            ("subject", Some(_)) => subject = Some(value),
            ("from", _) => from = Some(value),
            ("to", _) => to = Some(value),
            ("metadata", None) if value.starts_with('{') => inner = Some(fields::members(value)?),
            _ => others.push(field),
        }
    }
    let parties = Parties { from: from.and_then(fields::first_text), to: to.and_then(fields::first_text) };
    // Of equal names PostgreSQL keeps the last, so the members of `metadata` win over fields beside it.
    let mut metadata = Metadata::default();
    for (name, value) in others.into_iter().chain(inner.iter().flatten()) {
        metadata.push(name, value)?;
    }
    for (name, value) in [("from", from), ("to", to)] {
        if let Some(value) = value {
            metadata.push(name, value)?;
        }
    }
    let is_json = content.map_or(subject.is_none(), |content| !content.starts_with('"'));
    let content = match content {
        Some(text) if !is_json => text.to_owned(),
        Some(json) => quoted(json)?,
        // No field is the text, so all of them become it and can be searched.
        None if is_json && !metadata.is_empty() => quoted(&metadata.said())?,
        None if is_json && files.is_empty() => return Err(Malformed("it has neither content nor subject")),
        None => "\"\"".to_owned(),
    };
    let mut raw_data = Object::default();
    raw_data.push("source_type", r#""text""#);
    raw_data.push("content", &content);
    let sender = from.filter(|from| from.starts_with('"'));
    let format = (is_json && content != "\"\"").then_some(r#""application/json""#);
    for (name, value) in [("subject", subject), ("sender", sender), ("format", format)] {
        if let Some(value) = value {
            raw_data.push(name, value);
        }
    }
    let party = parties.keys(direction, sent.region, &mut metadata)?;
    // Stripe and Slack name the event in the body, and sign the body. A sender that repeats such a request can change its headers, but not
    // that: so no header says which event it is, nor how to read the body for its id.
    let signed = sent.signature.filter(|header| [STRIPE, SLACK].contains(header));
    let event_key = match signed {
        Some(header) => Some(named(header, sent.body).unwrap_or_else(|| digest(sent.body))),
        None => event_key(sent.headers)?.or_else(|| {
            let header = [STRIPE, SLACK].into_iter().find(|header| sent.headers.contains_key(*header))?;
            named(header, sent.body)
        }),
    };
    Ok(Normal { r#type, direction, raw_data: raw_data.finish(), metadata, event_key, files, party })
}

/// The id that the sender with this signature header puts into its JSON, whatever type of content the request claims.
fn named(header: &str, body: &[u8]) -> Option<String> {
    let name = if header == STRIPE { "id" } else { "event_id" };
    let members = fields::members(std::str::from_utf8(body).ok()?).ok()?;
    let (_, value) = members.iter().find(|(known, _)| known == name)?;
    id(&fields::first_text(value)?).map(str::to_owned)
}

/// Stands for the id of an event without one: the same body is the same event.
fn digest(body: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(body)))
}

/// The text between a JSON string's quotes. Our own words have no escapes.
fn word(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(content_type: &str, body: &str) -> Result<Normal, Malformed> {
        let (headers, body) = (HeaderMap::new(), bytes::Bytes::copy_from_slice(body.as_bytes()));
        normalise(&Sent {
            headers: &headers,
            content_type: Some(content_type),
            body: &body,
            signature: None,
            region: None,
        })
    }

    fn normal(body: &str) -> (Normal, Value, Value) {
        let normal = read("application/json", body).expect(body);
        let (raw, metadata) =
            (serde_json::from_str(&normal.raw_data), serde_json::from_str(&normal.metadata.to_json()));
        (normal, raw.expect("JSON"), metadata.expect("JSON"))
    }

    #[test]
    fn our_words_find_their_places_and_others_are_kept() {
        let body = r#"{"type":"Email","direction":"outbound","content":"Hi \u00e9","subject":"S","from":"a@b.test","to":["c@d.test"],
            "metadata":{"deal":7,"from":"inner"},"custom":{"x":[1]},"deal":6}"#;
        let (normal, raw, metadata) = normal(body);
        assert_eq!((normal.r#type, normal.direction), (ActivityType::Email, Direction::Outbound));
        assert_eq!(raw, json!({ "source_type": "text", "content": "Hi é", "subject": "S", "sender": "a@b.test" }));
        let expected =
            json!({ "deal": 7, "custom": { "x": [1] }, "from": "a@b.test", "to": ["c@d.test"], "to_key": "c@d.test" });
        assert_eq!(metadata, expected);
    }

    #[test]
    fn words_that_are_not_ours_are_kept_beside_the_defaults() {
        let (normal, raw, metadata) =
            normal(r#"{"type":"invoice.paid","direction":"up","subject":{"a":1},"metadata":[1]}"#);
        assert_eq!((normal.r#type, normal.direction), (ActivityType::Other, Direction::Inbound));
        let kept = json!({ "type": "invoice.paid", "direction": "up", "subject": { "a": 1 }, "metadata": [1] });
        assert_eq!(metadata, kept);
        assert_eq!(raw["format"], "application/json");
        let searchable: Value = serde_json::from_str(raw["content"].as_str().expect("text")).expect("JSON");
        assert_eq!(searchable, kept, "without content all of it can be searched");
    }

    #[test]
    fn nobody_outside_writes_what_is_ours() {
        let body = r#"{"content":"x","retry_count":"no number","metadata":{"recovery\u005fcount":"x","error":{},"sent":1,"a":2}}"#;
        let (_, _, metadata) = normal(body);
        let sent = json!({ "retry_count": "no number", "recovery_count": "x", "error": {}, "sent": 1 });
        assert_eq!(metadata, json!({ "a": 2, "sent": sent }));
    }

    #[test]
    fn content_that_is_no_text_becomes_text_and_nothing_at_all_is_refused() {
        let (_, raw, _) = normal(r#"{"content":{"a":[1,2]},"from":7}"#);
        assert_eq!(raw, json!({ "source_type": "text", "content": "{\"a\":[1,2]}", "format": "application/json" }));
        let (_, raw, metadata) = normal(r#"{"subject":"only that","content":null}"#);
        assert_eq!(raw, json!({ "source_type": "text", "content": "", "subject": "only that" }));
        assert_eq!(metadata, json!({}));
        for nothing in ["{}", r#"{"content":null}"#, r#"{"type":"email"}"#, r#"{"metadata":{}}"#] {
            assert!(read("application/json", nothing).is_err(), "{nothing} was taken");
        }
        let form = read("application/x-www-form-urlencoded", "content=hello&type=sms&x=1&x=2").expect("a form");
        assert_eq!(form.r#type, ActivityType::Sms);
        assert_eq!(form.raw_data, r#"{"source_type":"text","content":"hello"}"#);
    }

    #[test]
    fn an_event_key_is_taken_from_the_first_header_that_has_one() {
        let of = |given: &[(&'static str, &str)]| {
            let pairs = given.iter().map(|(name, value)| {
                (
                    http::HeaderName::from_static(name),
                    http::HeaderValue::from_bytes(value.as_bytes()).expect("a header"),
                )
            });
            event_key(&pairs.collect())
        };
        let all = [("x-github-delivery", "c"), ("idempotency-key", "b"), ("webhook-id", "a")];
        assert_eq!(of(&all), Ok(Some("a".into())));
        assert_eq!(of(&all[..2]), Ok(Some("b".into())));
        assert_eq!(of(&all[..1]), Ok(Some("c".into())));
        assert_eq!(of(&[]), Ok(None));
        for odd in ["", " ", "é", &"x".repeat(501)] {
            assert!(of(&[("webhook-id", odd)]).is_err(), "{odd:?} was taken");
        }
    }

    /// S5.
    #[test]
    fn an_id_that_was_signed_goes_before_headers_that_were_not() {
        const JSON: &str = r#"{"content":"x","id":"evt_1","event_id":"Ev1"}"#;
        const SLASH: &str = "command=%2Fcall&trigger_id=1.2.3";
        let key = |body: &'static str, signature: Option<&'static str>, headers: &[(&'static str, &'static str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
            let headers = headers.collect::<HeaderMap>();
            let content_type =
                headers.get("content-type").map_or("application/json", |value| value.to_str().expect("text"));
            let body = bytes::Bytes::from_static(body.as_bytes());
            let content_type = Some(content_type);
            normalise(&Sent { headers: &headers, content_type, body: &body, signature, region: None })
                .expect("an event")
                .event_key
        };
        let (repeated, named) = (("idempotency-key", "other"), ("webhook-id", "msg_1"));
        let (as_text, as_form) =
            (("content-type", "text/plain"), ("content-type", "application/x-www-form-urlencoded"));
        let of_slash = digest(SLASH.as_bytes());
        assert!(of_slash.len() == 7 + 64 && of_slash.starts_with("sha256:"), "{of_slash}");
        for (body, signature, headers, expected) in [
            (JSON, Some(STRIPE), &[repeated][..], Some("evt_1")),
            (JSON, Some(STRIPE), &[repeated, as_text], Some("evt_1")),
            (JSON, Some(STRIPE), &[named, ("webhook-signature", "v1,x")], Some("evt_1")),
            (JSON, Some(SLACK), &[repeated], Some("Ev1")),
            (JSON, Some(SLACK), &[repeated, as_text], Some("Ev1")),
            (SLASH, Some(SLACK), &[as_form], Some(of_slash.as_str())),
            (SLASH, Some(SLACK), &[repeated, as_form], Some(of_slash.as_str())),
            (SLASH, Some(SLACK), &[repeated, as_text], Some(of_slash.as_str())),
            (JSON, Some("webhook-signature"), &[named, repeated, (STRIPE, "t=1,v1=x")], Some("msg_1")),
            (JSON, Some("x-webhook-signature"), &[repeated, (SLACK, "v0=x")], Some("other")),
            (JSON, None, &[(SLACK, "v0=x")], Some("Ev1")),
            (JSON, None, &[], None),
        ] {
            assert_eq!(key(body, signature, headers).as_deref(), expected, "{body} {signature:?} {headers:?}");
        }
    }
}
