//! E-mails as Postmark sends them, with user and password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use uuid::Uuid;

use super::BASIC;
use crate::intake::providers::{LoadSpec, Message, Said, SampleSpec, Sending};

pub(super) const SAMPLE: SampleSpec = SampleSpec {
    says: Said {
        name: "Test",
        from: "test@example.com",
        subject: "Test e-mail",
        text: "A test e-mail, sent as Postmark would.",
    },
    make: sample,
};

pub(super) const LOAD: LoadSpec = LoadSpec { make: load, signature: None };

fn headers(sending: &Sending) -> Option<Vec<(&'static str, String)>> {
    let basic = STANDARD.encode(sending.secrets.proofs.get(BASIC)?.reveal());
    Some(vec![("authorization", format!("Basic {basic}")), ("content-type", "application/json".to_owned())])
}

fn sample(sending: &Sending, said: &Said) -> Option<Message> {
    let message_id = Uuid::parse_str(sending.id).ok()?;
    let body = json!({
        "FromName": said.name, "From": said.from, "FromFull": { "Email": said.from, "Name": said.name, "MailboxHash": "" },
        "To": "in@example.com", "Subject": said.subject, "MessageID": message_id, "Date": sending.now.to_rfc2822(), "MessageStream": "inbound",
        "TextBody": said.text, "HtmlBody": "", "Headers": [],
        "Attachments": [{ "Name": "hello.txt", "Content": "SGVsbG8h", "ContentType": "text/plain", "ContentLength": 6, "ContentID": "" }],
    });
    Some((headers(sending)?, body.to_string()))
}

/// An e-mail with the headers of six servers on its way.
fn load(sending: &Sending) -> Option<Message> {
    let text = "Dear all, please find attached the reminder for invoice INV-2041 over 1,200.50 EUR. It was due on the first of the month. ";
    let received: Vec<_> = (0..6)
        .map(|hop| json!({ "Name": "Received", "Value": format!("from mx{hop}.acme.example by in.example with ESMTPS id {hop}; Sun, 15 Nov 2026 07:00:00 +0000") }))
        .collect();
    let body = json!({
        "FromName": "Ann", "MessageStream": "inbound", "From": "ann@acme.example", "FromFull": { "Email": "ann@acme.example", "Name": "Ann", "MailboxHash": "" },
        "To": "in@mail.example", "ToFull": [{ "Email": "in@mail.example", "Name": "", "MailboxHash": "" }], "Cc": "", "CcFull": [], "Bcc": "", "BccFull": [],
        "OriginalRecipient": "in@mail.example", "Subject": "Invoice INV-2041 is overdue", "MessageID": sending.id, "ReplyTo": "", "MailboxHash": "",
        "Date": "Sun, 15 Nov 2026 07:00:00 +0000", "TextBody": text.repeat(3), "HtmlBody": format!("<html><body><p>{}</p></body></html>", text.repeat(3)),
        "StrippedTextReply": "", "Tag": "", "Headers": received, "Attachments": []
    });
    Some((headers(sending)?, body.to_string()))
}
