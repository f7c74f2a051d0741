//! A sample event, signed as the channel's provider would sign it: for the test button and `channel send-test`.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use store::channels::{Provider, Secrets};
use uuid::Uuid;

use super::guard;

/// A request that the channel takes.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Below the server's own URL.
    pub target: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// Where a channel's provider sends: for Twilio with the retry rules it takes from the URL (by default it retries no HTTP error), for
/// Postmark with user and password.
pub fn url(base_url: &str, provider: Provider, secrets: &Secrets) -> String {
    let key = secrets.ingestion_key.reveal();
    match (provider, &secrets.proofs.basic) {
        (Provider::Twilio, _) => format!("{base_url}/ingest/{key}#rc=5&rp=all"),
        (Provider::Postmark, Some(basic)) => match base_url.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}@{rest}/ingest/{key}", basic.reveal()),
            None => format!("{base_url}/ingest/{key}"),
        },
        _ => format!("{base_url}/ingest/{key}"),
    }
}

/// What somebody says in a sample.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    pub name: &'a str,
    /// An e-mail address, or for Twilio a telephone number.
    pub from: &'a str,
    pub subject: &'a str,
    pub text: &'a str,
}

/// `base_url`: as the provider would call it. None: the channel lacks what its provider signs with.
pub fn sample(provider: Provider, secrets: &Secrets, base_url: &str, now: DateTime<Utc>) -> Option<Sample> {
    let said = match provider {
        Provider::Generic => Said {
            name: "Test",
            from: "test@example.com",
            subject: "Test event",
            text: "A test event, signed as its sender would.",
        },
        Provider::Twilio => {
            Said { name: "Test", from: "+15005550006", subject: "", text: "A test message, signed as Twilio would." }
        }
        Provider::Postmark => Said {
            name: "Test",
            from: "test@example.com",
            subject: "Test e-mail",
            text: "A test e-mail, sent as Postmark would.",
        },
    };
    sample_of(provider, secrets, base_url, now, &said)
}

/// The same, saying something.
pub fn sample_of(
    provider: Provider,
    secrets: &Secrets,
    base_url: &str,
    now: DateTime<Utc>,
    said: &Said<'_>,
) -> Option<Sample> {
    let target = format!("/ingest/{}", secrets.ingestion_key.reveal());
    let id = Uuid::now_v7().simple().to_string();
    let content_type = |media: &str| ("content-type", media.to_owned());
    let (headers, body) = match provider {
        Provider::Generic => {
            let body = json!({ "type": "note", "subject": said.subject, "content": said.text, "from": said.from });
            let body = body.to_string();
            let (id, at) = (format!("test_{id}"), now.timestamp());
            let signature = guard::sign_standard(secrets.proofs.webhook_secret.as_ref()?, &id, at, body.as_bytes());
            let signed = [("webhook-id", id), ("webhook-timestamp", at.to_string()), ("webhook-signature", signature)];
            (signed.into_iter().chain([content_type("application/json")]).collect(), body)
        }
        Provider::Twilio => {
            let sid = format!("SM{id}");
            let fields = [
                ("MessageSid", sid.as_str()),
                ("SmsSid", &sid),
                ("AccountSid", "ACtest"),
                ("From", said.from),
                ("To", "+15005550001"),
                ("Body", said.text),
                ("NumMedia", "0"),
                ("NumSegments", "1"),
            ];
            let pair =
                |(name, value): &(&str, &str)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
            let body = fields.iter().map(pair).collect::<Vec<_>>().join("&");
            let signature = guard::sign_twilio(
                secrets.proofs.auth_token.as_ref()?,
                &format!("{base_url}{target}"),
                body.as_bytes(),
            );
            (vec![("x-twilio-signature", signature), content_type("application/x-www-form-urlencoded")], body)
        }
        Provider::Postmark => {
            use base64::Engine as _;
            use base64::engine::general_purpose::STANDARD;
            let body = json!({
                "FromName": said.name, "From": said.from, "FromFull": { "Email": said.from, "Name": said.name, "MailboxHash": "" },
                "To": "in@example.com", "Subject": said.subject, "MessageID": Uuid::now_v7(), "Date": now.to_rfc2822(), "MessageStream": "inbound",
                "TextBody": said.text, "HtmlBody": "", "Headers": [],
                "Attachments": [{ "Name": "hello.txt", "Content": "SGVsbG8h", "ContentType": "text/plain", "ContentLength": 6, "ContentID": "" }],
            });
            let basic = STANDARD.encode(secrets.proofs.basic.as_ref()?.reveal());
            (vec![("authorization", format!("Basic {basic}")), content_type("application/json")], body.to_string())
        }
    };
    Some(Sample { target, headers, body: body.into() })
}
