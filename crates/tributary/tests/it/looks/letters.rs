//! A mailbox with a few letters in it, as a sync would have stored them.

use domain::mail::{Letter, Place, parse};
use domain::{Record, SourceId, TenantId, Transport};
use engine::Env;
use engine::memory::remember;
use serde_json::json;
use store::sources::{self, NewSource};

/// The mailbox of the office.
pub const MAILBOX: &str = "office@mill.test";

/// A letter as its provider gives it: its id, its conversation, its time, and its bytes.
pub struct Sent<'a> {
    pub id: &'a str,
    pub thread: &'a str,
    pub at: &'a str,
    pub bytes: String,
}

/// Connects a mailbox without an account behind it: nothing is read from anywhere.
pub async fn mailbox(env: &Env, tenant_id: TenantId) -> SourceId {
    let mut conn = env.db.acquire().await.expect("a session");
    let new =
        NewSource { provider: "outlook", name: MAILBOX, account: MAILBOX, transport: Transport::Rest, scopes: &[] };
    sources::insert(&mut conn, None, tenant_id, &new).await.expect("a source")
}

/// Stores letters and their files, as documents.
pub async fn store(env: &Env, tenant_id: TenantId, source_id: SourceId, letters: &[Sent<'_>]) {
    let mut records = Vec::new();
    for sent in letters {
        let mut letter = parse(sent.bytes.as_bytes());
        letter.thread_id = Some(sent.thread.into());
        letter.received_at = Some(sent.at.parse().expect("a time"));
        letter.place = Place::Inbox;
        letter.folders = vec!["Inbox".into()];
        for file in &letter.files {
            let Some(content) = &file.content else { continue };
            let key = env.blobs.put(&env.db, tenant_id, content.clone()).await.expect("a blob");
            records.push(Record {
                title: file.name.clone(),
                blob_key: Some(key.to_string()),
                ..record(source_id, sent, &letter, &format!("attachment:{}/{}", sent.id, file.part), "attachment")
            });
        }
        let words = letter.in_words();
        records.push(Record {
            title: letter.subject.clone(),
            text: words,
            raw_payload: Some(letter.payload()),
            ..record(source_id, sent, &letter, &format!("message:{}", sent.id), "message")
        });
    }
    let begin = || async { Ok(env.db.begin().await?) };
    let (tx, _) = remember(env, tenant_id, records, begin).await.expect("remembered");
    tx.commit().await.expect("a commit");
}

fn record(source_id: SourceId, sent: &Sent<'_>, letter: &Letter, name: &str, kind: &str) -> Record {
    let shown = |people: &[domain::mail::Correspondent]| people.iter().map(|one| one.shown()).collect::<Vec<_>>();
    let document_type = format!("outlook.{kind}").parse().expect("a type");
    let n_files = letter.files.iter().filter(|file| file.left_out.is_none()).count();
    Record {
        thread_id: letter.thread_id.clone(),
        source_created_at: letter.received_at,
        source_metadata: json!({
            "provider": "outlook",
            "message_id": sent.id,
            "from": shown(letter.from.as_slice()).first(),
            "to": shown(&letter.to),
            "cc": shown(&letter.cc),
            "subject": letter.subject,
            "received_at": letter.received_at,
            "place": letter.place,
            "folders": letter.folders,
            "n_files": n_files,
            "url": "https://outlook.office.com/mail/1",
        }),
        ..Record::new(source_id, name, document_type, "")
    }
}

/// The office's mail: a question and its answer with a file, a letter without a subject, and one in Hebrew.
pub async fn fill(env: &Env, tenant_id: TenantId) -> SourceId {
    let source_id = mailbox(env, tenant_id).await;
    let plain = |head: &str, body: &str| {
        format!("{head}\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{body}")
    };
    let asked = "From: Ana Reis <ana@example.com>\r\nTo: office@mill.test\r\nSubject: Delivery on Friday\r\nMessage-ID: <1@example.com>\r\nDate: Fri, 13 Nov 2026 09:00:00 +0000";
    let answer = "From: Mill & Co <office@mill.test>\r\nTo: Ana Reis <ana@example.com>\r\nCc: Bob Stone <bob@stone.test>\r\nSubject: Re: Delivery on Friday\r\n\
        In-Reply-To: <1@example.com>\r\nDate: Fri, 13 Nov 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=edge\r\n\r\n\
        --edge\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Yes, <b>before noon</b>. The plan is attached.</p><img src=\"https://pictures.test/logo.png\" alt=\"Mill\">\
        <blockquote>Do you deliver on Friday?</blockquote>\r\n\
        --edge\r\nContent-Type: text/csv; name=plan.csv\r\nContent-Disposition: attachment; filename=plan.csv\r\n\r\nday,hour\r\nFriday,11\r\n--edge--\r\n";
    let nameless = "From: bob@stone.test\r\nTo: office@mill.test\r\nDate: Sat, 14 Nov 2026 08:00:00 +0000";
    let hebrew = "From: =?utf-8?B?16nXqNeU?= <sara@example.org>\r\nTo: office@mill.test\r\nSubject: =?utf-8?B?15TXlteR16DXlCDXkdeY15zXpNeV158=?=\r\nDate: Sat, 14 Nov 2026 09:00:00 +0000";
    let letters = [
        Sent {
            id: "1",
            thread: "t1",
            at: "2026-11-13T09:00:00Z",
            bytes: plain(asked, "Do you deliver on Friday?\r\n\r\nAna\r\n"),
        },
        Sent { id: "2", thread: "t1", at: "2026-11-13T10:00:00Z", bytes: answer.into() },
        Sent { id: "3", thread: "t3", at: "2026-11-14T08:00:00Z", bytes: plain(nameless, "See you on Monday.\r\n") },
        Sent {
            id: "4",
            thread: "t4",
            at: "2026-11-14T09:00:00Z",
            bytes: plain(hebrew, "\u{5e9}\u{5dc}\u{5d5}\u{5dd}, call me at 17:00.\r\n"),
        },
    ];
    store(env, tenant_id, source_id, &letters).await;
    source_id
}
