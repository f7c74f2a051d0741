//! Reads events that use our own words: `type`, `direction`, `content`, `subject`, `from`, `to`, `metadata`.

use domain::{ActivityType, Direction};
use http::HeaderMap;

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
    // Stripe and Slack name the event in the body alone.
    let named = [("stripe-signature", "id"), ("x-slack-signature", "event_id")];
    let named = named.into_iter().find(|(header, _)| sent.headers.contains_key(*header)).and_then(|(_, name)| {
        let (_, value) = given.iter().find(|(known, _)| known == name)?;
        id(&fields::first_text(value)?).map(str::to_owned)
    });
    let event_key = event_key(sent.headers)?.or(named);
    Ok(Normal { r#type, direction, raw_data: raw_data.finish(), metadata, event_key, files, party })
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
        normalise(&Sent { headers: &headers, content_type: Some(content_type), body: &body, region: None })
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
}
