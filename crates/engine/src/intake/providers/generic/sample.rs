//! Events as a generic sender sends them, signed.

use serde_json::json;

use super::{WEBHOOK_SECRET, sign, sign_standard};
use crate::intake::providers::{LoadSpec, Message, Said, SampleSpec, Sending};

pub(super) const SAMPLE: SampleSpec = SampleSpec {
    says: Said {
        name: "Test",
        from: "test@example.com",
        subject: "Test event",
        text: "A test event, signed as its sender would.",
    },
    make: sample,
};

pub(super) const LOAD: LoadSpec = LoadSpec { make: load, signature: None };

fn sample(sending: &Sending, said: &Said) -> Option<Message> {
    let body = json!({ "type": "note", "subject": said.subject, "content": said.text, "from": said.from }).to_string();
    let (id, at) = (format!("test_{}", sending.id), sending.now.timestamp());
    let signature = sign_standard(sending.secrets.proofs.get(WEBHOOK_SECRET)?, &id, at, body.as_bytes());
    let headers = vec![
        ("webhook-id", id),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", signature),
        ("content-type", "application/json".to_owned()),
    ];
    Some((headers, body))
}

/// An e-mail of some length. Its id is in a header, so the signature stays.
fn load(sending: &Sending) -> Option<Message> {
    let text = "Dear all, please find attached the reminder for invoice INV-2041 over 1,200.50 EUR. It was due on the first of the month. ";
    let body = json!({
        "type": "email", "from": "ann@acme.example", "to": "office@example.com", "subject": "Invoice INV-2041 is overdue", "content": text.repeat(3),
        "metadata": { "mailbox": "office", "message_id": "<20261115.2041@acme.example>" }
    })
    .to_string();
    let signature = sign(sending.secrets.proofs.get(WEBHOOK_SECRET)?, body.as_bytes());
    let headers = vec![
        ("content-type", "application/json".to_owned()),
        ("x-webhook-signature", signature),
        ("idempotency-key", sending.id.to_owned()),
    ];
    Some((headers, body))
}
