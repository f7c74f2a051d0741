//! Conversations: a view of messages, in the shape of an older contract.

use chrono::{DateTime, Utc};
use domain::{Caller, DocumentType, Record, SourceId};
use engine::documents;
use serde_json::{Value, json};
use store::memory::documents::Wanted;
use testkit::Sources;

#[tokio::test]
async fn gmails_conversations_are_listed_as_documents_and_read_as_a_view() {
    let t = Sources::empty().await;
    let (env, tenant_id) = (&t.world.env, t.world.tenant_id);
    let id: SourceId = store::sources::ensure_manual(&mut *t.world.conn().await, tenant_id).await.expect("a source");
    let at = |hour: u32| format!("2026-11-01T{hour:02}:00:00Z").parse::<DateTime<Utc>>().ok();
    let message = |name: &str, thread: &str, hour: u32, text: &str| Record {
        title: Some(format!("About {thread}")),
        raw_payload: Some(json!({ "text": text })),
        thread_id: Some(thread.into()),
        source_created_at: at(hour),
        source_metadata: json!({ "from": "Ann <ann@shop.example>", "to": ["owner@acme.test"] }),
        ..Record::new(id, name, DocumentType::Record { provider: "gmail".into(), kind: "message".into() }, text)
    };
    let mut records = vec![
        message("message:1", "t1", 1, "First."),
        message("message:2", "t2", 2, "Other."),
        message("message:3", "t1", 3, "Second."),
    ];
    records.push(Record { is_deleted: true, ..message("message:4", "t3", 4, "") });
    for record in records {
        let begin = || async { Ok(env.db.begin().await?) };
        let (tx, _) = engine::memory::remember(env, tenant_id, vec![record], begin).await.expect("remembered");
        tx.commit().await.expect("committed");
    }

    let caller = Caller::local("test", tenant_id, true);
    let wanted = Wanted { document_type: Some("gmail.thread"), limit: 1, ..Wanted::default() };
    let (first, next) = documents::list(env, &caller, wanted).await.expect("a page");
    assert_eq!(
        (first[0].external_id.as_str(), first[0].document_type.to_string().as_str()),
        ("thread:t1", "gmail.thread")
    );
    let (second, _) = documents::list(env, &caller, Wanted { before: next, ..wanted }).await.expect("a page");
    assert_eq!(second[0].external_id, "thread:t2");
    let (none, _) =
        documents::list(env, &caller, Wanted { before: Some(second[0].id), ..wanted }).await.expect("a page");
    assert!(none.is_empty());

    let mut tx = env.db.begin_as(&caller).await.expect("a transaction");
    let threads: Vec<(String, i64, Value)> =
        sqlx::query_as("select external_id, n_messages, raw_payload from public.gmail_threads order by external_id")
            .fetch_all(&mut *tx)
            .await
            .expect("threads");
    assert_eq!(threads.len(), 2, "{threads:?}");
    let (name, n, payload) = &threads[0];
    assert_eq!(
        (name.as_str(), *n, &payload["id"], &payload["snippet"]),
        ("thread:t1", 2, &json!("t1"), &json!("Second."))
    );
    let sent = at(1).expect("a time").timestamp_millis().to_string();
    assert_eq!(
        payload["messages"][0],
        json!({ "from": "Ann <ann@shop.example>", "to": ["owner@acme.test"], "subject": "About t1", "internalDate": sent, "body_text": "First." })
    );
}
