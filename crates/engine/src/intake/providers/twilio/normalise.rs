//! Reads Twilio's events: messages (SMS, WhatsApp), recordings, and the states of calls.

use std::collections::HashMap;

use domain::{ActivityType, Direction};

use crate::intake::normalise::fields::{self, first_text, quoted};
use crate::intake::normalise::object::{Metadata, Object};
use crate::intake::normalise::{Malformed, Normal, Parties, Sent, id};

/// Twilio's names and ours. Other fields keep their names.
const NAMES: [(&str, &str); 9] = [
    ("MessageSid", "message_sid"),
    ("CallSid", "call_sid"),
    ("RecordingSid", "recording_sid"),
    ("From", "from"),
    ("To", "to"),
    ("RecordingDuration", "duration"),
    ("CallDuration", "duration"),
    ("ProfileName", "from_name"),
    ("AccountSid", "account_sid"),
];

pub(super) fn normalise(sent: &Sent) -> Result<Normal, Malformed> {
    let (given, files) = fields::read(sent.content_type, sent.body)?;
    let values: HashMap<&str, String> =
        given.iter().filter_map(|(name, value)| Some((&**name, first_text(value)?))).collect();
    let text = |name: &str| values.get(name).map(String::as_str).filter(|text| !text.is_empty());
    let sid = |name: &str| text(name).and_then(id);

    let mut metadata = Metadata::default();
    let mut media: Vec<(usize, &str, Option<&str>)> = Vec::new();
    for (name, value) in &given {
        if let Some(nth) = name.strip_prefix("MediaUrl").and_then(|nth| nth.parse().ok()) {
            media.extend(text(name).map(|url| (nth, url, text(&format!("MediaContentType{nth}")))));
        }
        let known = NAMES.iter().find(|(theirs, _)| *theirs == &**name);
        metadata.push(known.map_or(&**name, |(_, ours)| ours), value)?;
    }
    media.sort_unstable_by_key(|(nth, ..)| *nth);
    if !media.is_empty() {
        metadata.push_ours("media", &media_list(&media)?);
    }

    let is_message = text("MessageSid").or(text("SmsSid")).is_some();
    let is_outbound = text("Direction").is_some_and(|direction| direction.starts_with("outbound"))
        || (is_message && text("Body").is_none() && text("MessageStatus").is_some());
    let direction = if is_outbound { Direction::Outbound } else { Direction::Inbound };
    let is_whatsapp = ["From", "To"].iter().any(|name| text(name).is_some_and(|from| from.starts_with("whatsapp:")));
    let (r#type, event_key) = if is_message {
        let sid = sid("MessageSid").or_else(|| sid("SmsSid"));
        // The status of a message that we sent: each step is an event of its own.
        let status = text("MessageStatus").filter(|_| text("Body").is_none() && text("NumMedia").is_none());
        let key = sid.map(|sid| status.map_or(sid.to_owned(), |status| format!("{sid}:{status}")));
        (if is_whatsapp { ActivityType::Whatsapp } else { ActivityType::Sms }, key)
    } else if let Some(transcription) = sid("TranscriptionSid") {
        (ActivityType::Call, Some(format!("{transcription}:{}", text("TranscriptionStatus").unwrap_or_default())))
    } else if let Some(recording) = sid("RecordingSid") {
        (ActivityType::Call, Some(format!("{recording}:{}", text("RecordingStatus").unwrap_or("completed"))))
    } else if let Some(call) = sid("CallSid") {
        // With the call's id alone, everything about a call would be one event.
        let step = [text("CallStatus"), text("SequenceNumber")];
        let key = step
            .iter()
            .any(Option::is_some)
            .then(|| format!("{call}:{}", step.map(Option::unwrap_or_default).join(":")));
        (ActivityType::Call, key)
    } else {
        (ActivityType::Other, None)
    };

    let mut raw_data = Object::default();
    let said = text("Body").or_else(|| text("TranscriptionText"));
    if let Some(url) = text("RecordingUrl").filter(|_| said.is_none()) {
        raw_data.push("source_type", r#""url""#);
        raw_data.push("content", &quoted(url)?);
        raw_data.push("format", r#""audio/wav""#);
    } else {
        raw_data.push("source_type", r#""text""#);
        raw_data.push("content", &quoted(said.unwrap_or_default())?);
        if said.is_none() {
            raw_data.push("subject", &quoted(&what_happened(&text, is_message))?);
        }
    }
    if let Some(from) = text("From") {
        raw_data.push("sender", &quoted(from)?);
    }
    let parties = Parties { from: text("From").map(str::to_owned), to: text("To").map(str::to_owned) };
    let party = parties.keys(direction, sent.region, &mut metadata)?;
    let event_key = event_key.filter(|key| key.len() <= 500);
    Ok(Normal { r#type, direction, raw_data: raw_data.finish(), metadata, event_key, files, party })
}

/// A few words for an event without a text.
fn what_happened<'a>(text: &impl Fn(&str) -> Option<&'a str>, is_message: bool) -> String {
    if is_message {
        let n = text("NumMedia").filter(|n| *n != "0");
        return match (n, text("MessageStatus")) {
            (Some("1"), _) => "Message with 1 file".into(),
            (Some(n), _) => format!("Message with {n} files"),
            (None, Some(status)) => format!("Message {status}"),
            (None, None) => "Empty message".into(),
        };
    }
    let seconds = text("CallDuration").map(|seconds| format!(", {seconds} s")).unwrap_or_default();
    format!("Call {}{seconds}", text("CallStatus").or(text("RecordingStatus")).unwrap_or("event"))
}

fn media_list(media: &[(usize, &str, Option<&str>)]) -> Result<String, Malformed> {
    let mut list = String::from("[");
    for (_, url, content_type) in media {
        if list.len() > 1 {
            list.push(',');
        }
        let mut one = Object::default();
        one.push("url", &quoted(url)?);
        if let Some(content_type) = content_type {
            one.push("content_type", &quoted(content_type)?);
        }
        list.push_str(&one.finish());
    }
    list.push(']');
    Ok(list)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;
    use serde_json::{Value, json};

    use super::*;

    fn normal(form: &str) -> (Normal, Value, Value) {
        let (headers, body) = (HeaderMap::new(), Bytes::copy_from_slice(form.as_bytes()));
        let content_type = Some("application/x-www-form-urlencoded; charset=UTF-8");
        let normal = normalise(&Sent { headers: &headers, content_type, body: &body, signature: None, region: None })
            .expect(form);
        let (raw, metadata) =
            (serde_json::from_str(&normal.raw_data), serde_json::from_str(&normal.metadata.to_json()));
        (normal, raw.expect("JSON"), metadata.expect("JSON"))
    }

    #[test]
    fn a_message_is_its_text_and_keeps_every_field() {
        let (normal, raw, metadata) = normal(
            "MessageSid=SM11&SmsSid=SM11&AccountSid=AC22&From=%2B14158675309&To=%2B15550199&Body=Ol%C3%A1+%2B+caf%C3%A9&NumMedia=1\
             &MediaUrl0=https%3A%2F%2Fapi.example%2Fm0&MediaContentType0=image%2Fpng&FromCity=&retry_count=9",
        );
        assert_eq!(
            (normal.r#type, normal.direction, normal.event_key.as_deref()),
            (ActivityType::Sms, Direction::Inbound, Some("SM11"))
        );
        assert_eq!(raw, json!({ "source_type": "text", "content": "Olá + café", "sender": "+14158675309" }));
        assert_eq!(normal.party.as_deref(), Some("+14158675309"));
        for (name, value) in [
            ("message_sid", json!("SM11")),
            ("from", json!("+14158675309")),
            ("from_key", json!("+14158675309")),
            ("FromCity", json!("")),
            ("media", json!([{ "url": "https://api.example/m0", "content_type": "image/png" }])),
            ("sent", json!({ "retry_count": "9" })),
        ] {
            assert_eq!(metadata[name], value, "{name}");
        }
    }

    #[test]
    fn whatsapp_recordings_and_calls_are_told_apart() {
        let (whatsapp, _, metadata) = normal(
            "MessageSid=SM1&From=whatsapp%3A%2B5511999990000&To=whatsapp%3A%2B15550199&Body=oi&WaId=5511999990000&ProfileName=Ana",
        );
        assert_eq!((whatsapp.r#type, whatsapp.party.as_deref()), (ActivityType::Whatsapp, Some("+5511999990000")));
        assert_eq!((&metadata["from_name"], &metadata["WaId"]), (&json!("Ana"), &json!("5511999990000")));

        let (recording, raw, metadata) = normal(
            "AccountSid=AC1&CallSid=CA1&RecordingSid=RE1&RecordingUrl=https%3A%2F%2Fapi.example%2FRE1&RecordingStatus=completed&RecordingDuration=31",
        );
        assert_eq!((recording.r#type, recording.event_key.as_deref()), (ActivityType::Call, Some("RE1:completed")));
        assert_eq!(raw, json!({ "source_type": "url", "content": "https://api.example/RE1", "format": "audio/wav" }));
        assert_eq!((&metadata["call_sid"], &metadata["duration"]), (&json!("CA1"), &json!("31")));

        let (call, raw, _) = normal(
            "CallSid=CA1&CallStatus=completed&CallDuration=12&Direction=outbound-api&From=%2B15550199&To=%2B14158675309&SequenceNumber=3",
        );
        assert_eq!((call.direction, call.event_key.as_deref()), (Direction::Outbound, Some("CA1:completed:3")));
        assert_eq!((call.party.as_deref(), &raw["subject"]), (Some("+14158675309"), &json!("Call completed, 12 s")));

        let (stream, _, _) = normal("CallSid=CA1&StreamSid=MZ1&StreamEvent=stream-started");
        assert_eq!(stream.event_key, None, "a call's other events are not one event");
        let (heard, raw, _) = normal(
            "CallSid=CA1&RecordingSid=RE1&TranscriptionSid=TR1&TranscriptionStatus=completed&TranscriptionText=hello&RecordingUrl=https%3A%2F%2Fx",
        );
        assert_eq!((heard.event_key.as_deref(), &raw["content"]), (Some("TR1:completed"), &json!("hello")));

        let keys = ["sent", "delivered"].map(|status| {
            normal(&format!("MessageSid=SM9&MessageStatus={status}&To=%2B14158675309&From=%2B15550199")).0
        });
        assert_eq!(
            keys.each_ref().map(|normal| normal.event_key.as_deref()),
            [Some("SM9:sent"), Some("SM9:delivered")]
        );
        assert_eq!(keys[0].direction, Direction::Outbound);
    }
}
