//! Two releases at work on one database: the older one's workers while the newer one migrates, and beside it afterwards.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use store::migrate::{self, MIGRATIONS, Migration};
use store::queue::Queue;
use testkit::cluster::cloned;
use testkit::effects;
use uuid::Uuid;

use crate::suite::{Suite, worker};
use crate::upgrade::edited;

/// Changes that a newer release might make to tables in use.
const COMING: [Migration; 3] = [
    Migration {
        name: "0099_columns",
        sql: "alter table public.effects add column coming int not null default 0;
              alter table public.activities add column coming text;
              alter table tributary.schedules add column coming text",
        earlier: &[],
    },
    Migration {
        name: "0100_table",
        sql: "create table tributary.coming (tenant_id uuid not null, id uuid primary key); select tributary.protect('tributary.coming')",
        earlier: &[],
    },
    Migration {
        name: "0101_schedule",
        sql: "insert into tributary.schedules (name, lane, message, every, next_run_at)
              values ('coming', 'upkeep', '{\"task\": \"coming\"}', interval '1 day', now())",
        earlier: &[],
    },
];

/// F33, F35, I1, I2.
#[tokio::test(flavor = "multi_thread")]
async fn workers_go_on_while_a_newer_release_migrates_and_beside_it() {
    let suite = Arc::new(Suite::new(cloned(), "versions").await);
    let (world, url) = (&suite.world, &suite.world.database.url);
    let mut older = vec![worker(url, None, None), worker(url, None, None)];
    let sender = tokio::spawn({
        let suite = suite.clone();
        async move { suite.send_kinds(&suite.world.env.db, 400, &["ok", "ok", "ok", "slow"]).await }
    });
    suite.has_sent(100).await;
    let list = [MIGRATIONS, &COMING].concat();
    let lanes = ["upkeep", effects::NAME, "remember_activity", "lane_of_the_future"];
    let functions = edited("tributary.claim_activities");
    let login = store::embedded::LOGIN;
    let applied = migrate::run_lists(&world.database.admin, login, &lanes, &list, &functions).await.expect("migrated");
    assert_eq!((applied.migrations.len(), applied.functions.as_slice()), (3, &["tributary.claim_activities"][..]));

    // The newer release sends what the older one knows with more in it, and what the older one does not know.
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let newer: Vec<_> = (0..10).map(|_| Uuid::now_v7()).collect();
    let known: Vec<_> =
        newer.iter().map(|item| json!({ "item": item, "kind": "ok", "added": { "later": 1 } })).collect();
    Queue::new(effects::NAME).expect("a queue").send(&mut tx, world.tenant_id, &known).await.expect("sent");
    let unknown = [json!({ "item": Uuid::now_v7(), "kind": "of the future" })];
    Queue::new("lane_of_the_future").expect("a queue").send(&mut tx, world.tenant_id, &unknown).await.expect("sent");
    tx.commit().await.expect("committed");
    for item in newer {
        suite.ledger.write(item, "ok");
    }
    older.push(worker(url, None, None)); // one that starts when the schema is newer than its own
    sender.await.expect("the sender");
    assert!(suite.drain(Duration::from_secs(60)).await, "I5: stuck beside a newer release");
    for worker in &mut older {
        assert!(worker.has_ended().is_none(), "F35: a worker ended because of the migration");
    }
    let verdict = suite.verdict().await;
    assert!(verdict.is_clean(), "F35, I1 I2: {verdict}");
    let mut conn = world.conn().await;
    let mut number =
        async |sql: &'static str| sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *conn).await.expect(sql);
    assert_eq!(
        number("select coalesce(sum(error_count), 0)::bigint from ai.vectorizer_worker_process").await,
        0,
        "F35: an item failed"
    );
    assert_eq!(number("select count(*) from pgmq.q_lane_of_the_future").await, 1, "F33: an unknown item is gone");
    assert_eq!(number("select count(*) from tributary.schedules where name = 'coming'").await, 1, "F33");
    let kept = "select (select count(*) from pgmq.q_upkeep where message ->> 'task' = 'coming')
        + (select count(*) from pgmq.a_upkeep where message ->> 'task' = 'coming')";
    let is_kept = testkit::wait_until(Duration::from_secs(10), async || number(kept).await == 1);
    assert!(is_kept.await, "F33: a tick that only the newer release knows is gone");
    println!("two workers through three migrations, a third one after them: {verdict}");
}
