//! The suite must be able to fail: three planted bugs, each caught.

use std::time::Duration;

use store::Db;
use testkit::{Cluster, effects, wait_until};

use crate::lease::overslept;
use crate::suite::{Suite, worker};

#[tokio::test(flavor = "multi_thread")]
async fn acknowledging_before_the_effect_is_caught() {
    let cluster = Cluster::private().await;
    let suite = Suite::new(cluster.database("bug_ack").await, "bug_ack").await;
    suite.send_kinds(&suite.world.env.db, 8, &["ok"]).await;
    let mut hurt = worker(&suite.world.database.url, Some("effect.after_commit:abort"), Some("ack-first"));
    assert!(hurt.ended_within(Duration::from_secs(10)).await.is_some(), "it was not killed");
    let clean = worker(&suite.world.database.url, None, Some("ack-first"));
    assert!(suite.drain(Duration::from_secs(20)).await);
    drop(clean);
    let verdict = suite.verdict().await;
    assert!(verdict.lost > 0, "the planted bug went unnoticed: {verdict}");
    println!("ack before effect: {verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_fence_is_caught() {
    let cluster = Cluster::private().await;
    let suite = Suite::new(cluster.database("bug_fence").await, "bug_fence").await;
    // On a busy machine the first worker may wake so late that its process is stopped first. Then it is tried again.
    let mut verdict = overslept(&suite, "effect.begun", Some("no-fence")).await.0;
    for _ in 0..4 {
        if verdict.doubled == 0 {
            verdict = overslept(&suite, "effect.begun", Some("no-fence")).await.0;
        }
    }
    assert!(verdict.doubled > 0, "the planted bug went unnoticed: {verdict}");
    println!("no fence: {verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_unique_key_is_caught() {
    let cluster = Cluster::private().await;
    let suite = Suite::new(cluster.database("bug_key").await, "bug_key").await;
    effects::create_tables(&suite.world.database.admin, false).await.expect("tables without a key");
    let proxy = testkit::proxy::Proxy::start(cluster.running().port).await;
    let through = store::ConnectTo::url(&suite.world.database.url_through(proxy.port)).expect("a URL");
    let db = Db::lazy(&through, 2, Duration::from_secs(5));
    proxy.lose_commit_replies(3);
    suite.send_kinds(&db, 10, &["ok"]).await;
    assert!(proxy.commits_lost() > 0, "no reply was lost");
    let clean = worker(&suite.world.database.url, None, None);
    assert!(suite.drain(Duration::from_secs(20)).await);
    let settled = wait_until(Duration::from_secs(1), async || suite.verdict().await.doubled > 0).await;
    drop(clean);
    let verdict = suite.verdict().await;
    assert!(settled && verdict.doubled > 0, "the planted bug went unnoticed: {verdict}");
    println!("no unique key: {verdict}");
}
