//! The details that the database adds to an error's message: values of rows, which are people's data.

use domain::Scope;
use serde_json::json;

use crate::intake::{Door, id_of};

/// S13: the details of the database's errors repeat the values of rows.
#[tokio::test(flavor = "multi_thread")]
async fn values_in_the_details_of_a_database_error_are_told_to_nobody() {
    let door = Door::new().await;
    let unique = "create unique index once on public.activities ((raw_data ->> 'content'));
                  create unique index once_remembered on public.source_documents (left(text, 14))";
    let admin_uri = door.world.database.admin.uri();
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(admin_uri.reveal())
        .await
        .expect("an administrator's session");
    sqlx::raw_sql(unique).execute(&mut admin).await.expect("indexes");
    let send = |n: u32, text: &'static str| {
        door.post().header("idempotency-key", format!("e{n}")).json(&json!({ "content": text })).send()
    };
    id_of(send(0, "canary-person lives here").await.expect("an answer")).await;
    let refused = send(1, "canary-person lives here").await.expect("an answer");
    assert!(refused.status().is_server_error(), "the index was not met: {}", refused.status());
    let mut told = refused.text().await.expect("a text");
    let (_, key) = door.world.caller(door.world.tenant_id, &[Scope::Read, Scope::Write]).await;
    for text in ["canary-person was here", "canary-person is there"] {
        let url = format!("{}/api/v1/documents", door.app.url);
        let answer = door.http.post(url).bearer_auth(key.reveal()).json(&json!({ "text": text })).send().await;
        told.push_str(&answer.expect("an answer").text().await.expect("a text"));
    }
    // The lane that remembers the event meets the same index.
    door.world.run_upkeep().await;
    let errors = "select coalesce(string_agg(headers ->> 'error', ' '), '') from pgmq.q_remember_activity";
    let of_item: String = sqlx::query_scalar(errors).fetch_one(&mut admin).await.expect("errors");
    assert!(of_item.contains("duplicate key"), "the lane did not meet the index: {of_item}");
    let logged = door.app.printed();
    assert!(logged.contains("duplicate key"), "the log does not say what happened: {logged}");
    assert!(!format!("{told}{of_item}{logged}").contains("canary-person"), "S13: {told}\n{of_item}\n{logged}");
    let cluster: String = sqlx::query_scalar("show data_directory").fetch_one(&mut admin).await.expect("a folder");
    let log = std::fs::read(std::path::Path::new(&cluster).with_file_name("run").join("postgres.log"));
    let log = String::from_utf8_lossy(&log.expect("the server's log")).into_owned();
    let of_ours: Vec<&str> = log.lines().filter(|line| line.contains("constraint \"once")).collect();
    assert!(!of_ours.is_empty(), "the server's log does not say what happened");
    assert!(!log.contains("canary-person"), "S13: the server's log has values: {of_ours:#?}");
}
