//! Reads what Postmark sends: an inbound e-mail as JSON with the attachments inside, or a report about an e-mail that was sent (delivered,
//! opened, bounced …). Attachments become files; other fields are kept in the metadata.

use std::borrow::Cow;

use bytes::Bytes;
use domain::{ActivityType, Direction, hex};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::intake::normalise::fields::{self, first_text, quoted};
use crate::intake::normalise::object::{Metadata, Object};
use crate::intake::normalise::{Content, File, LIFTED, Malformed, Normal, Parties, Sent, id};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attachment<'a> {
    name: Option<String>,
    #[serde(borrow)]
    content: Option<Text<'a>>,
    content_type: Option<String>,
    #[serde(rename = "ContentID")]
    content_id: Option<String>,
}

/// A text that is not copied where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Header<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Address {
    email: String,
}

pub(super) fn normalise(sent: &Sent) -> Result<Normal, Malformed> {
    let text = std::str::from_utf8(sent.body).map_err(|_| Malformed("it is not UTF-8"))?;
    let given = fields::members(text)?;
    let json = |name: &str| given.iter().rev().find(|(known, _)| known == name).map(|(_, value)| &**value);
    let said = |name: &str| json(name).and_then(first_text).filter(|text| !text.trim().is_empty());

    let mut files = Vec::new();
    let mut metadata = Metadata::default();
    for (name, value) in &given {
        let ours = match &**name {
            "Attachments" => {
                // What is no list of attachments is in the original: a mail is not refused for it.
                let list: Vec<Attachment> = serde_json::from_str(value).unwrap_or_default();
                files.extend(list.into_iter().filter_map(|attachment| file(sent.body, attachment)));
                continue;
            }
            "TextBody" | "HtmlBody" | "RawEmail" => continue, // the text, and the original that is kept whole
            "MessageID" => "message_id",
            "From" => "from",
            "FromName" => "from_name",
            "To" => "to",
            "Cc" => "cc",
            "Date" => "date",
            other => other,
        };
        metadata.push(ours, value)?;
    }
    if let Some(kind) = said("RecordType").filter(|kind| kind != "Inbound") {
        return report(sent, &kind, metadata, said, json);
    }
    let headers: Vec<Header> = json("Headers").and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default();
    if let Some(header) = headers.iter().find(|header| header.name.eq_ignore_ascii_case("message-id")) {
        metadata.push_ours("rfc_message_id", &quoted(header.value.trim())?);
    }

    let mut raw_data = Object::default();
    raw_data.push("source_type", r#""text""#);
    let (content, is_html) = match (said("TextBody"), said("HtmlBody")) {
        (Some(text), _) => (text, false),
        (None, Some(html)) => (html, true),
        (None, None) => (String::new(), false),
    };
    raw_data.push("content", &quoted(&content)?);
    if is_html {
        raw_data.push("format", r#""text/html""#);
    }
    if let Some(subject) = said("Subject") {
        raw_data.push("subject", &quoted(&subject)?);
    }
    // The parsed address where there is one: a display name may say anything.
    let full: Option<Address> = json("FromFull").and_then(|full| serde_json::from_str(full).ok());
    let from = full.map(|full| full.email).filter(|email| !email.is_empty()).or_else(|| said("From"));
    if let Some(from) = &from {
        raw_data.push("sender", &quoted(from)?);
    }
    let event_key = said("MessageID").as_deref().and_then(id).map(str::to_owned);
    if event_key.is_none() && from.is_none() && content.is_empty() {
        return Err(Malformed("it is no inbound e-mail of Postmark's"));
    }
    let direction = Direction::Inbound;
    let party = Parties { from, to: None }.keys(direction, sent.region, &mut metadata)?;
    Ok(Normal {
        r#type: ActivityType::Email,
        direction,
        raw_data: raw_data.finish(),
        metadata,
        event_key,
        files,
        party,
    })
}

/// A report about an e-mail that was sent. There are several of one e-mail, and all of them name the e-mail.
fn report<'a>(
    sent: &Sent,
    kind: &str,
    mut metadata: Metadata,
    said: impl Fn(&str) -> Option<String>,
    json: impl Fn(&str) -> Option<&'a str>,
) -> Result<Normal, Malformed> {
    let to = said("Recipient").or_else(|| said("Email"));
    // What Postmark repeats when it delivers a report again, and what differs in the next report of the same kind.
    let parts = [
        "MessageID",
        "ID",
        "Recipient",
        "Email",
        "DeliveredAt",
        "ReceivedAt",
        "BouncedAt",
        "ChangedAt",
        "OriginalLink",
    ];
    let told: Vec<&str> = parts.into_iter().map(|name| json(name).unwrap_or_default()).collect();
    let event_key = format!("{kind}:{}", hex::encode(Sha256::digest(told.join("\n"))));
    let event_key = id(&event_key).map(str::to_owned);

    let mut raw_data = Object::default();
    raw_data.push("source_type", r#""text""#);
    let content = said("Details").or_else(|| said("Description")).unwrap_or_default();
    raw_data.push("content", &quoted(&content)?);
    let subject = [Some(kind.to_owned()), said("Subject")].into_iter().flatten().collect::<Vec<_>>().join(": ");
    raw_data.push("subject", &quoted(&subject)?);
    let (r#type, direction, files) = (ActivityType::Email, Direction::Outbound, Vec::new());
    let party = Parties { from: None, to }.keys(direction, sent.region, &mut metadata)?;
    Ok(Normal { r#type, direction, raw_data: raw_data.finish(), metadata, event_key, files, party })
}

/// An attachment as a file. Its base64 is not copied, but stays in the body.
fn file(body: &Bytes, attachment: Attachment) -> Option<File> {
    let content = match attachment.content?.0 {
        text if text.starts_with(LIFTED) => Content::Lifted(text[LIFTED.len()..].parse().ok()?),
        Cow::Borrowed(text) => Content::Base64(body.slice_ref(text.as_bytes())),
        Cow::Owned(text) => Content::Base64(Bytes::from(text)),
    };
    Some(File {
        name: attachment.name.unwrap_or_default(),
        content_type: attachment.content_type,
        content_id: attachment.content_id.filter(|id| !id.is_empty()),
        content,
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::{Value, json};

    use super::*;

    fn normal(body: &Value) -> Result<(Normal, Value, Value), Malformed> {
        let (headers, body) = (HeaderMap::new(), Bytes::from(body.to_string()));
        let normal = normalise(&Sent {
            headers: &headers,
            content_type: Some("application/json"),
            body: &body,
            signature: None,
            region: None,
        })?;
        let (raw, metadata) =
            (serde_json::from_str(&normal.raw_data), serde_json::from_str(&normal.metadata.to_json()));
        Ok((normal, raw.expect("JSON"), metadata.expect("JSON")))
    }

    #[test]
    fn a_mail_is_its_text_its_files_and_everything_else_beside_it() {
        let body = json!({
            "FromName": "Ana", "From": "ANA@example.com", "FromFull": { "Email": "ANA@example.com", "Name": "Ana", "MailboxHash": "" },
            "To": "\"Bot\" <in+acme42@mail.example>", "Subject": "Hi", "MessageID": "5f1c-uuid", "MailboxHash": "acme42", "Date": "Sun, 15 Nov 2026 07:00:00 +0000",
            "TextBody": "yes\n\n> old", "HtmlBody": "<p>yes</p>", "StrippedTextReply": "yes", "Tag": "",
            "Headers": [{ "Name": "X-Spam-Status", "Value": "No" }, { "Name": "Message-ID", "Value": "<m1@example.com>" }],
            "Attachments": [{ "Name": "../../a.pdf", "Content": "JVBERi0=", "ContentType": "application/pdf", "ContentLength": 5, "ContentID": "" }],
        });
        let (mail, raw, metadata) = normal(&body).expect("a mail");
        assert_eq!(
            (mail.r#type, mail.event_key.as_deref(), mail.party.as_deref()),
            (ActivityType::Email, Some("5f1c-uuid"), Some("ana@example.com"))
        );
        assert_eq!(
            raw,
            json!({ "source_type": "text", "content": "yes\n\n> old", "subject": "Hi", "sender": "ANA@example.com" })
        );
        assert_eq!(
            (&metadata["message_id"], &metadata["rfc_message_id"]),
            (&json!("5f1c-uuid"), &json!("<m1@example.com>"))
        );
        assert_eq!(
            (&metadata["MailboxHash"], &metadata["from_key"], &metadata["StrippedTextReply"]),
            (&json!("acme42"), &json!("ana@example.com"), &json!("yes"))
        );
        assert!(metadata.get("Attachments").is_none() && metadata.get("TextBody").is_none());
        let file = mail.files.into_iter().next().expect("a file");
        assert_eq!((file.name.as_str(), file.content_id), ("../../a.pdf", None));
        assert_eq!(file.content.bytes().as_deref(), Some(&b"%PDF-"[..]));
    }

    #[test]
    fn html_stands_in_for_text_and_what_is_no_mail_is_refused() {
        let (_, raw, _) =
            normal(&json!({ "MessageID": "1", "HtmlBody": "<p>hello</p>", "TextBody": " " })).expect("a mail");
        assert_eq!((&raw["content"], &raw["format"]), (&json!("<p>hello</p>"), &json!("text/html")));
        assert!(normal(&json!({ "hello": "world" })).is_err());
        let odd = json!([{ "Name": null, "Content": "aGk=" }, { "Name": "no content", "Content": null }]);
        for (attachments, n) in [(json!(7), 0), (json!(null), 0), (odd, 1)] {
            let (mail, ..) = normal(&json!({ "MessageID": "1", "Attachments": attachments })).expect("a mail");
            assert_eq!(mail.files.len(), n);
        }
        assert_eq!(Content::Base64("not base64!".into()).bytes(), None);
        assert_eq!(Content::Base64("aGVs\nbG8".into()).bytes().as_deref(), Some(&b"hello"[..]));
    }

    #[test]
    fn reports_about_one_mail_are_events_of_their_own_and_a_repeated_one_is_the_same() {
        let with = |kind: &str, more: Value| {
            let mut body = json!({ "RecordType": kind, "MessageID": "5f1c-uuid", "Recipient": "ann@example.com" });
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            body
        };
        let reports = [
            with("Delivery", json!({ "DeliveredAt": "2026-11-15T07:00:00Z" })),
            with("Delivery", json!({ "DeliveredAt": "2026-11-15T07:00:00Z", "Recipient": "bob@example.com" })),
            with("Open", json!({ "ReceivedAt": "2026-11-15T07:01:00Z" })),
            with("Open", json!({ "ReceivedAt": "2026-11-15T07:02:00Z" })),
            with("Click", json!({ "ReceivedAt": "2026-11-15T07:02:00Z", "OriginalLink": "https://a.example" })),
            with("Click", json!({ "ReceivedAt": "2026-11-15T07:02:00Z", "OriginalLink": "https://b.example" })),
            with("Bounce", json!({ "ID": 42, "Email": "ann@example.com", "Details": "mailbox full", "Subject": "Hi" })),
            with("Bounce", json!({ "ID": 43, "Email": "ann@example.com" })),
            json!({ "MessageID": "5f1c-uuid", "From": "ann@example.com", "TextBody": "the mail itself" }),
        ];
        let keys: Vec<Option<String>> =
            reports.iter().map(|body| normal(body).expect("an event").0.event_key).collect();
        for (nth, key) in keys.iter().enumerate() {
            assert!(key.is_some() && !keys[..nth].contains(key), "{}: {key:?}", reports[nth]);
            assert_eq!(normal(&reports[nth]).expect("an event").0.event_key, *key, "delivered again");
        }
        let (bounce, raw, metadata) = normal(&reports[6]).expect("a report");
        assert_eq!((bounce.direction, bounce.party.as_deref()), (Direction::Outbound, Some("ann@example.com")));
        assert_eq!(raw, json!({ "source_type": "text", "content": "mailbox full", "subject": "Bounce: Hi" }));
        assert_eq!((&metadata["RecordType"], &metadata["message_id"]), (&json!("Bounce"), &json!("5f1c-uuid")));
    }
}
