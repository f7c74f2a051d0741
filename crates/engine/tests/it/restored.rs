//! A database that was restored: numbers that were given out before the restore count for nothing, however often it is restored.

use domain::{Scope, Secret, SourceId};
use engine::lanes;
use serde_json::json;
use store::queue::{Queue, Receipt};
use store::tokens::{self, Pair};
use store::{claims, restored};
use testkit::World;

use crate::claims::Office;

async fn renew(world: &World) {
    let lanes: Vec<&str> = lanes::ALL.iter().map(|lane| lane.name).collect();
    restored::renew(&world.database.admin, &lanes).await.expect("renewed");
}

async fn run(world: &World, sql: &'static str) {
    sqlx::query(sql).execute(&mut *world.conn().await).await.expect(sql);
}

async fn number(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect(sql)
}

/// Stores a pair of tokens that was got with this version. `false`: it is refused.
async fn store_pair(world: &World, source_id: SourceId, seen: i64) -> bool {
    let access = Secret::new("a token");
    let pair = Pair { access: &access, refresh: None, expires_in: None };
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let stored = tokens::store(&mut tx, &world.env.vault, None, world.tenant_id, source_id, seen, &pair).await;
    tx.commit().await.expect("committed");
    stored.expect("an answer")
}

/// F39: an agent and a worker of the old installation come late, with the numbers that they would be given again.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_restore_a_late_result_and_a_late_pair_of_tokens_are_refused() {
    let office = Office::new(&["ann"]).await;
    let world = &office.world;
    let (id, source_id) = (office.activity(None, "text", 1.0).await, SourceId::new());
    let ann = office.device("ann", &[Scope::Agent]).await;
    sqlx::query("insert into connected_sources (id, tenant_id, provider, name) values ($1, $2, 'quickbooks', 'books')")
        .bind(source_id.0)
        .bind(world.tenant_id.0)
        .execute(&mut *world.conn().await)
        .await
        .expect("a source");
    // Given out after the backup was taken.
    assert_eq!(office.claim_as(&ann).await, [(id, 1)]);
    assert!(store_pair(world, source_id, 0).await);

    run(world, "update activities set processing_status = 'raw', lock_epoch = 0").await;
    run(world, "update connected_sources set token_version = 0").await;
    renew(world).await;

    let again = office.claim_as(&ann).await;
    let epoch = again[0].1;
    assert!(again[0].0 == id && epoch > 1, "{again:?}");
    let complete = async |epoch: i32| {
        let results = [(id, epoch, json!({ "summary": "done" }))];
        claims::complete(&mut *world.conn().await, world.tenant_id, ann.key_id, &results).await.expect("an answer")
    };
    assert!(complete(1).await.is_empty(), "F39: a result from before the restore was taken for the new claim");
    assert_eq!(complete(epoch).await, [id]);
    for seen in [0, 1] {
        assert!(!store_pair(world, source_id, seen).await, "F39: a pair got with version {seen} was stored");
    }
    let version = number(world, "select token_version from connected_sources").await;
    assert!(store_pair(world, source_id, version).await);
}

/// F39: the same backup twice. In a database of several programs only our own queues change, whatever the others are called.
#[tokio::test(flavor = "multi_thread")]
async fn each_restore_gives_out_other_numbers_and_other_programs_queues_stay() {
    let world = World::now().await;
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("the superuser");
    let theirs = "select pgmq.create('their-queue'); select pgmq.send('their-queue', '{}'::jsonb)";
    sqlx::raw_sql(theirs).execute(&mut admin).await.expect("a queue of another program");
    let queue = Queue::new("embed").expect("a queue");
    let mut given = Vec::new();
    for _ in 0..2 {
        // The copy has one message, and its number is 1.
        sqlx::raw_sql("truncate pgmq.q_embed restart identity").execute(&mut admin).await.expect("emptied");
        run(&world, "insert into pgmq.q_embed (vt, read_ct, message) values ('2100-01-01', 1, '{}')").await;
        assert_eq!(number(&world, "select max(msg_id) from pgmq.q_embed").await, 1);
        renew(&world).await;
        for old in [1].iter().chain(&given) {
            let receipt = Receipt { msg_id: *old, read_ct: 1 };
            let is_ours = queue.finish(&mut *world.conn().await, receipt).await.expect("an answer");
            assert!(!is_ours, "F39: receipt {old} from before the restore was accepted");
        }
        given.push(number(&world, "select max(msg_id) from pgmq.q_embed").await);
    }
    assert!(given[0] < given[1], "{given:?}");
    let unchanged: i64 = sqlx::query_scalar("select max(msg_id) from pgmq.\"q_their-queue\"")
        .fetch_one(&mut admin)
        .await
        .expect("their message");
    assert_eq!(unchanged, 1);
}
