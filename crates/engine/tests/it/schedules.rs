//! Schedules among several workers, and kinds of work that only a newer program knows.

use std::time::Duration;

use domain::ItemState;
use rustix::process::Signal;
use serde_json::json;
use store::queue::{Page, Queue};
use testkit::cluster::cloned;
use testkit::process::Worker;
use testkit::{World, is_slow, stays_true, wait_until};
use uuid::Uuid;

use crate::suite::{Suite, worker};

const SOON: Duration = Duration::from_secs(20);

async fn number(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect(sql)
}

/// Makes no schedule due for a month.
async fn postpone(world: &World) {
    let later = "update tributary.schedules set next_run_at = now() + interval '30 days'";
    sqlx::query(later).execute(&mut *world.conn().await).await.expect("later");
}

/// Makes the test's schedule due now. Its ticks are items of the tests' lane, whose effects have no key:
/// a second firing would be a second effect.
async fn tick(world: &World) {
    let due = "update tributary.schedules set next_run_at = now() where name = 'tick'";
    sqlx::query(due).execute(&mut *world.conn().await).await.expect("due");
}

/// Stops the worker while none of its sessions is in a statement or a transaction. One stopped inside a tick of its own
/// would keep that tick's row, and would be taken for the session that the test ends.
async fn stop_at_rest(worker: &Worker, admin: &mut sqlx::PgConnection) {
    let busy = "select count(*) from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and state <> 'idle'";
    let at_rest = wait_until(SOON, async || {
        worker.signal(Signal::STOP);
        let busy: i64 = sqlx::query_scalar(busy).fetch_one(&mut *admin).await.expect("sessions");
        let is_at_rest = busy == 0;
        if !is_at_rest {
            worker.signal(Signal::CONT);
        }
        is_at_rest
    });
    assert!(at_rest.await, "the worker is never at rest");
}

/// F32: the worker that has taken a tick loses its session before it commits, and wakes up later.
#[tokio::test(flavor = "multi_thread")]
async fn a_tick_fires_once_though_the_worker_that_took_it_loses_its_session() {
    let suite = Suite::new(cloned(), "ticks").await;
    let (world, url) = (&suite.world, &suite.world.database.url);
    let mut conn = world.conn().await;
    let message = json!({ "item": Uuid::now_v7(), "kind": "ok" });
    let every = Duration::from_secs(86_400);
    store::schedules::ensure(&mut conn, None, "tick", "effects", every, every, &message).await.expect("a schedule");
    // The other schedules' rows are made by the first worker that runs.
    let other = worker(url, None, None);
    let all = "select count(*) from tributary.schedules";
    let is_made = wait_until(SOON, async || number(world, all).await > engine::lanes::SCHEDULES.len() as i64);
    assert!(is_made.await, "the worker makes no schedules");
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("the superuser");
    let mut fired = 0;
    for round in 1..=if is_slow() { 10 } else { 2 } {
        stop_at_rest(&other, &mut admin).await; // so that the one that will lose its session takes the tick
        postpone(world).await;
        // All that ever registered are counted: the stopped one may be declared dead before the taker is there.
        let registered = "select count(*) from tributary.workers";
        let before = number(world, registered).await;
        let taker = worker(url, Some("schedule.before_commit:stop"), None);
        assert!(wait_until(SOON, async || number(world, registered).await > before).await, "no second worker");
        tick(world).await;
        assert!(wait_until(SOON, async || taker.is_stopped()).await, "round {round}: nobody took the tick");
        // Databases of the same server are copies, whose tables have the same numbers.
        let ended = "select count(pg_terminate_backend(a.pid)) from pg_stat_activity a
            where a.datname = current_database() and a.state like 'idle in transaction%' and exists (
                select from pg_locks l where l.pid = a.pid and l.relation = 'tributary.schedules'::regclass and l.mode = 'RowExclusiveLock')";
        let ended: i64 = sqlx::query_scalar(ended).fetch_one(&mut admin).await.expect("ended");
        assert_eq!(ended, 1, "round {round}: the tick's transaction is not open");
        other.signal(Signal::CONT);
        fired += 1;
        let effects = "select count(*) from effects";
        assert!(wait_until(SOON, async || number(world, effects).await == fired).await, "F32, round {round}: lost");
        taker.signal(Signal::CONT);
        let is_once = stays_true(Duration::from_secs(3), async || number(world, effects).await == fired);
        assert!(is_once.await, "F32, round {round}: the tick fired twice");

        // With both awake, still one firing per tick.
        tick(world).await;
        fired += 1;
        assert!(wait_until(SOON, async || number(world, effects).await == fired).await, "F32, round {round}: lost");
        let is_once = stays_true(Duration::from_secs(2), async || number(world, effects).await == fired);
        assert!(is_once.await, "F32, round {round}: two workers fired one tick");
    }
    drop(other);
    println!("{fired} ticks, {fired} firings");
}

/// F33: this program meets what a newer one sent. It waits, with a reason and at no cost, until the newer one does it.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_newer_program_knows_is_kept_with_its_reason() {
    let world = World::now().await;
    let mut conn = world.conn().await;
    // A schedule of the newer program's, in a lane that both have, and one in a lane that only the newer one has.
    let every = Duration::from_secs(86_400);
    for (name, lane) in [("future", "upkeep"), ("elsewhere", "lane_of_the_future")] {
        let message = json!({ "task": name, "added": { "later": true } });
        store::schedules::ensure(&mut conn, None, name, lane, every, every, &message).await.expect("a schedule");
    }
    store::bench::fresh_queue(
        &mut store::bench::administrator(&world.database.admin).await.expect("the superuser"),
        "lane_of_the_future",
    )
    .await
    .expect("a queue");
    let due = "update tributary.schedules set next_run_at = case when name in ('future', 'elsewhere') then now() else now() + interval '1 day' end";
    sqlx::query(due).execute(&mut *conn).await.expect("due");
    let running = worker(&world.database.url, None, None);
    let (queue, caller) = (Queue::new("upkeep").expect("a queue"), world.operator().await);
    let mut kept = None;
    let is_kept = wait_until(SOON, async || {
        let page = Page { limit: 50, ..Page::default() };
        let items = queue.list(&mut conn, None, &caller, page).await.expect("items");
        kept = items.into_iter().find(|item| item.message["task"] == "future" && item.waits > 0);
        kept.is_some()
    });
    assert!(is_kept.await, "F33: the unknown task was not left to a newer worker");
    let kept = kept.expect("an item");
    assert_eq!((kept.state, kept.attempts), (ItemState::Waiting, 0), "F33: it costs no attempt: {kept:?}");
    assert!(kept.reason.as_deref().is_some_and(|why| why.contains("a newer one will")), "F33: {kept:?}");
    assert_eq!(kept.message["added"], json!({ "later": true }), "F33: a field of the newer program's was lost");
    let waits = "select count(*) from pgmq.q_lane_of_the_future where message ->> 'task' = 'elsewhere'";
    assert!(wait_until(SOON, async || number(&world, waits).await == 1).await, "F33: the unknown lane's item is gone");
    let rows = "select count(*) from tributary.schedules where name in ('future', 'elsewhere')";
    assert_eq!(number(&world, rows).await, 2, "F33: schedules of a newer program were removed");
    drop(running);
}
