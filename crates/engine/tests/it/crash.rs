//! kill -9 at every crash point, SIGTERM in the middle of a batch, and items that kill their worker.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use rustix::process::Signal;
use store::crash::Point;
use testkit::{Cluster, effects, wait_until};
use uuid::Uuid;

use crate::suite::{Suite, worker};

/// Does what a point needs to be reached, beside items of every kind. The migration's point is in `schema`, those of intake in the
/// program's own tests.
fn provoke(point: Point, worker: &testkit::process::Worker) {
    if point == Point::DrainBegun {
        worker.signal(Signal::TERM);
    }
}

/// F1, I1, I2, I5.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_crash_point_every_item_has_exactly_one_effect() {
    let cluster = Cluster::private().await;
    // The migration's point is in `schema`; those of the path through the whole program are in its own tests.
    let elsewhere = [
        "migrate.",
        "intake.",
        "blob.",
        "remember.",
        "activity.",
        "postings.",
        "codes.",
        "reembed.",
        "agent.",
        "pull.",
        "file.",
        "check.",
        "mail.",
        "token.",
        "clients.",
        "forget.",
        "rotate.",
    ];
    let is_of_work = |point: &Point| !elsewhere.iter().any(|begins| point.name().starts_with(begins));
    let points = Point::ALL.iter().copied().filter(is_of_work);
    // Most of the time is leases running out: a few at once.
    let kills: Vec<usize> =
        stream::iter(points).map(|point| kill_at(&cluster, point)).buffer_unordered(3).collect().await;
    println!("{} kills at {} points", kills.iter().sum::<usize>(), kills.len());
}

/// Kills a worker at one point, lets another finish, and compares with the ledger. Returns how often it killed.
async fn kill_at(cluster: &Cluster, point: Point) -> usize {
    let rounds = if testkit::is_slow() { 5 } else { 1 };
    let name = format!("crash_{}", point.name().replace('.', "_"));
    let suite = Suite::new(cluster.database(&name).await, &name).await;
    for round in 1..=rounds {
        suite.send(&suite.world.env.db, 24).await;
        if point.name().starts_with("schedule.") {
            let due = "update tributary.schedules set next_run_at = now()"; // they fire once a minute, or an hour
            sqlx::query(due).execute(&mut *suite.world.conn().await).await.expect("schedules");
        }
        // The first, second or third time: each round meets a point at least four times, and no kind of item oftener than that. But
        // a worker stops once, and one look brings every parked item back.
        let is_once = matches!(point, Point::UnparkBeforeCommit | Point::DrainBegun);
        let nth = if is_once { 1 } else { (round - 1) % 3 + 1 };
        let crash = format!("{}:abort:{nth}", point.name());
        let mut hurt = worker(&suite.world.database.url, Some(&crash), None);
        let begun = Instant::now();
        let mut is_provoked = false;
        let died = wait_until(Duration::from_secs(30), async || {
            if !is_provoked && begun.elapsed() > Duration::from_millis(400) {
                provoke(point, &hurt);
                is_provoked = true;
            }
            if point == Point::UnparkBeforeCommit {
                suite.drain(Duration::ZERO).await; // asks for the parked items
            }
            hurt.has_ended().is_some()
        });
        assert!(died.await, "crash point {} was never reached: remove it, or reach it", point.name());
        assert_eq!(hurt.has_ended().and_then(|status| status.signal()), Some(9), "{} did not kill", point.name());
        let clean = worker(&suite.world.database.url, None, None);
        assert!(suite.drain(Duration::from_secs(40)).await, "I5: stuck after a kill at {}", point.name());
        drop(clean);
    }
    let verdict = suite.verdict().await;
    assert!(verdict.is_clean(), "I1 I2 after kill -9 at {}: {verdict}", point.name());
    println!("{}: {verdict}", point.name());
    rounds
}

/// F31, I5.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_told_to_stop_finishes_or_hands_back_without_costing_an_attempt() {
    let cluster = Cluster::private().await;
    let suite = Suite::new(cluster.database("drain").await, "drain").await;
    suite.send_kinds(&suite.world.env.db, 12, &["slow", "ok"]).await;
    let mut stopping = worker(&suite.world.database.url, None, None);
    let held = "select count(*) from pgmq.q_effects where headers ? 'by' and vt > now()";
    let mut conn = suite.world.conn().await;
    let is_held = wait_until(Duration::from_secs(10), async || {
        sqlx::query_scalar::<_, i64>(held).fetch_one(&mut *conn).await.is_ok_and(|n| n > 0)
    });
    assert!(is_held.await, "the worker took nothing");

    stopping.signal(Signal::TERM);
    let status = stopping.ended_within(Duration::from_secs(8)).await.expect("the worker did not stop");
    assert!(status.success(), "it ended with {status}");
    let still: i64 = sqlx::query_scalar(held).fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(still, 0, "a stopped worker still holds items");
    let stopped: i64 = sqlx::query_scalar("select count(*) from tributary.workers where stopped_at is not null")
        .fetch_one(&mut *conn)
        .await
        .expect("a count");
    assert_eq!(stopped, 1, "it did not say goodbye");

    let clean = worker(&suite.world.database.url, None, None);
    assert!(suite.drain(Duration::from_secs(30)).await, "I5: stuck after SIGTERM");
    drop(clean);
    let verdict = suite.verdict().await;
    assert!(verdict.is_clean(), "{verdict}");
    let dearest: i32 =
        sqlx::query_scalar("select max(read_ct) from effects").fetch_one(&mut *conn).await.expect("a count");
    assert!(dearest <= 2, "handing back cost more than one claim: {dearest}");
}

/// F31.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_soon_whatever_stands_in_its_way() {
    let cluster = Cluster::private().await;
    let suite = Suite::new(cluster.database("stuck").await, "stuck").await;
    let proxy = testkit::proxy::Proxy::start(cluster.running().port).await;
    let held = "select count(*) from pgmq.q_effects where headers ? 'by' and vt > now()";
    // A task that never yields, and a database that no longer answers.
    for (kind, is_silent) in [("spin", false), ("endless", true)] {
        suite.send_kinds(&suite.world.env.db, 2, &[kind]).await;
        let mut stopping = worker(&suite.world.database.url_through(proxy.port), None, None);
        let mut conn = suite.world.conn().await;
        let is_held = wait_until(Duration::from_secs(10), async || {
            sqlx::query_scalar::<_, i64>(held).fetch_one(&mut *conn).await.is_ok_and(|n| n > 0)
        });
        assert!(is_held.await, "{kind}: the worker took nothing");
        proxy.black_hole(is_silent);
        let begun = Instant::now();
        stopping.signal(Signal::TERM);
        // The grace is 5 s here; then 5 s for tasks, 5 s and a call's limit for last words, 10 s for the goodbye.
        assert!(
            stopping.ended_within(Duration::from_secs(45)).await.is_some(),
            "F31: {kind} kept the worker from stopping"
        );
        println!("{kind}: stopped after {:?}", begun.elapsed());
        proxy.black_hole(false);
        sqlx::query("delete from pgmq.q_effects").execute(&mut *conn).await.expect("emptied");
    }
}

/// F15, I5.
#[tokio::test(flavor = "multi_thread")]
async fn poison_buries_only_itself() {
    bury("poison", &[]).await;
}

/// F15: the item takes all memory that its worker can have.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_takes_all_memory_buries_only_itself() {
    bury("hungry", &[("CRASHLING_SPARE_MB", "1000")]).await;
}

/// Sends an item that kills its workers among others, and starts a new worker after every death, until nothing is left.
async fn bury(deadly: &str, env: &[(&str, &str)]) {
    let suite = Suite::new(testkit::cluster::cloned(), deadly).await;
    suite.send_kinds(&suite.world.env.db, 10, &["ok", "slow"]).await;
    effects::send(&suite.world.env.db, suite.world.tenant_id, Uuid::now_v7(), deadly).await.expect("sent");
    suite.send_kinds(&suite.world.env.db, 10, &["ok", "panic"]).await;
    let start = || crate::programs::crashling(&suite.world.database.url, None, env);

    let mut deaths = 0;
    let mut running = start();
    let ended = wait_until(Duration::from_secs(150), async || {
        if running.has_ended().is_some() {
            deaths += 1;
            running = start();
        }
        let mut conn = suite.world.conn().await;
        sqlx::query_scalar::<_, i64>("select count(*) from pgmq.q_effects")
            .fetch_one(&mut *conn)
            .await
            .is_ok_and(|n| n == 0)
    });
    assert!(ended.await, "I5: the queue was never worked off; {deaths} deaths");
    drop(running);
    let mut conn = suite.world.conn().await;
    let buried: Vec<(String, String)> =
        sqlx::query_as("select message ->> 'kind', headers ->> 'reason' from pgmq.a_effects order by 1")
            .fetch_all(&mut *conn)
            .await
            .expect("the archive");
    assert_eq!(buried.iter().filter(|(kind, _)| kind == deadly).count(), 1, "{buried:?}");
    assert_eq!(buried.iter().filter(|(kind, _)| kind == "panic").count(), 5, "{buried:?}");
    assert_eq!(buried.len(), 6, "an innocent was buried with it: {buried:?}");
    assert!(buried.iter().all(|(kind, reason)| kind != deadly || reason.contains("died")), "{buried:?}");
    // One that was in a dying worker's hands at its last attempt is given up when it is next claimed.
    let is_told = |reason: &str| reason.contains("told to panic") || reason.starts_with("given up after");
    assert!(buried.iter().all(|(kind, reason)| kind != "panic" || is_told(reason)), "{buried:?}");
    let done: i64 =
        sqlx::query_scalar("select count(distinct item) from effects").fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(done, 15, "everything but the poison is done, once");
    println!("{deadly}: {deaths} workers died of it, then it was given up");
}
