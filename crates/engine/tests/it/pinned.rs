//! A transaction that stays open for long: no dead row can be removed meanwhile. Somebody is told which one it is.

use std::time::Duration;

use store::queue::{Queue, Receipt, Settlement};
use testkit::{World, effects, wait_until};

/// Claims and finishes `n` items, fifty at a time.
async fn work_off(world: &World, queue: &Queue, n: usize) {
    let mut conn = world.conn().await;
    let mut done = 0;
    while done < n {
        let claimed = queue.claim(&mut conn, None, 50, 60, "me").await.expect("a claim");
        assert!(!claimed.is_empty(), "nothing is due after {done}");
        let receipts: Vec<Receipt> = claimed.iter().map(|item| item.receipt()).collect();
        queue.settle(&mut conn, None, &Settlement::Finish(&receipts)).await.expect("settled");
        done += receipts.len();
    }
}

/// How many pages one claim reads, taken back afterwards.
async fn pages_of_a_claim(world: &World, queue: &Queue) -> i64 {
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let claim = queue
        .claim_sql()
        .replace("$1", "null::timestamptz")
        .replace("$2", "50")
        .replace("$3", "30")
        .replace("$4", "'me'")
        .replace("$5", "-1")
        .replace("$6", "-1")
        .replace("$7", "4294967296");
    let explain = format!("explain (analyze, buffers, format json) {claim}");
    let plan: serde_json::Value =
        sqlx::query_scalar(sqlx::AssertSqlSafe(explain)).fetch_one(&mut *tx).await.expect("a plan");
    tx.rollback().await.expect("taken back");
    let read = |name: &str| plan[0]["Plan"][name].as_i64().unwrap_or(0);
    read("Shared Hit Blocks") + read("Shared Read Blocks")
}

/// F14.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_transaction_is_named_and_costs_a_claim_few_pages_for_what_was_done_meanwhile() {
    let n: i64 = if testkit::is_slow() { 60_000 } else { 6_000 };
    let world = World::now().await;
    let queue = Queue::new(effects::NAME).expect("a queue");
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("the superuser");
    let mut forgotten = store::bench::administrator(&world.database.admin).await.expect("somebody's session");
    let begin = "begin isolation level repeatable read; select count(*) from pgmq.q_effects";
    sqlx::raw_sql(begin).execute(&mut forgotten).await.expect("a snapshot");
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut forgotten).await.expect("a pid");
    store::bench::fill(&mut admin, &queue, n, -1.0).await.expect("items");
    sqlx::raw_sql("analyze pgmq.q_effects").execute(&mut admin).await.expect("analysed");
    let before = pages_of_a_claim(&world, &queue).await;
    let half = usize::try_from(n / 2).expect("a number");
    work_off(&world, &queue, half).await;
    let after = pages_of_a_claim(&world, &queue).await;
    println!("a claim reads {before} pages at first and {after} after {half} items whose rows cannot be removed");
    // A claim steps over the dead rows of its tenants: some fifty pages for a thousand items.
    assert!(after <= before + 100 + n / 2 / 10, "F14: a claim reads {after} pages instead of {before}");

    let is_named = wait_until(Duration::from_secs(10), async || {
        let mut conn = world.conn().await;
        let long = store::doctor::long_transactions(&mut conn, Duration::from_millis(500)).await.expect("transactions");
        long.iter().any(|transaction| transaction.pid == pid)
    });
    assert!(is_named.await, "F14: the process that holds it is not named");
    sqlx::raw_sql("rollback").execute(&mut forgotten).await.expect("over");
}
