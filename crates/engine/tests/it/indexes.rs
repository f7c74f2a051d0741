//! Indexes that are built while everybody goes on writing: interrupted ones are built again, and two processes do not hinder each other.

use std::time::Duration;

use store::indexes;
use testkit::{World, stays_true, wait_until};

const NAME: &str = "activities_test_idx";
const LIMIT: Duration = Duration::from_secs(20);

/// A build in a task of its own, like that of another process.
fn build(world: &World) -> tokio::task::JoinHandle<store::Result<()>> {
    let db = world.env.db.clone();
    tokio::spawn(async move { indexes::build(&db, "public", NAME, "public.activities (updated_at)").await })
}

/// The index's number and whether it is whole, if it is there.
async fn index(world: &World) -> Option<(i64, bool)> {
    sqlx::query_as(
        "select c.oid::int8, i.indisvalid from pg_class c join pg_index i on i.indexrelid = c.oid where c.relname = $1",
    )
    .bind(NAME)
    .fetch_optional(&mut *world.conn().await)
    .await
    .expect("the catalog")
}

/// A writer that has not committed yet: a build waits for it.
async fn writer(world: &World) -> store::Tx {
    let mut tx = world.env.db.begin().await.expect("a transaction");
    sqlx::query("insert into activities (tenant_id, type, raw_data) values ($1, 'note', '{\"source_type\":\"text\"}')")
        .bind(world.tenant_id.0)
        .execute(&mut *tx)
        .await
        .expect("an activity");
    tx
}

async fn builders(world: &World) -> Vec<i32> {
    let sql =
        "select pid from pg_stat_activity where application_name = 'tributary index' and datname = current_database()";
    sqlx::query_scalar(sql).fetch_all(&mut *world.conn().await).await.expect("sessions")
}

/// F35.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_build_an_index_once_and_neither_drops_the_others() {
    let world = World::now().await;
    let writing = writer(&world).await;
    let first = build(&world);
    assert!(wait_until(LIMIT, async || index(&world).await.is_some()).await, "the first build has not begun");
    let begun = index(&world).await.expect("an index");
    assert!(!begun.1, "it waits for the writer");
    let second = build(&world);
    assert!(wait_until(LIMIT, async || builders(&world).await.len() == 2).await, "the second one has not come");
    let is_kept = stays_true(Duration::from_secs(1), async || index(&world).await == Some(begun));
    assert!(is_kept.await, "F35: the second process took the index under construction for a ruin");
    writing.commit().await.expect("committed");
    first.await.expect("no panic").expect("built");
    second.await.expect("no panic").expect("there is nothing left to build");
    assert_eq!(index(&world).await, Some((begun.0, true)));
}

/// F35.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_build_was_interrupted_is_built_again() {
    let world = World::now().await;
    let writing = writer(&world).await;
    let hurt = build(&world);
    assert!(wait_until(LIMIT, async || index(&world).await.is_some()).await, "the build has not begun");
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("a connection");
    for pid in builders(&world).await {
        sqlx::query("select pg_terminate_backend($1)").bind(pid).execute(&mut admin).await.expect("killed");
    }
    assert!(hurt.await.expect("no panic").is_err(), "it was killed");
    writing.commit().await.expect("committed");
    assert!(!index(&world).await.expect("what is left of it").1);
    build(&world).await.expect("no panic").expect("built");
    assert!(index(&world).await.expect("an index").1, "F35: no invalid index is left");
}
