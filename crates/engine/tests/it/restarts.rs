//! Many workers that die and come back at the same time.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use testkit::cluster::cloned;
use testkit::process::Worker;
use testkit::{effects, is_slow, wait_until};
use uuid::Uuid;

use crate::suite::Suite;

/// The sessions that a process may have: its pool, two for leases and heartbeats, one that listens, one that speaks for its life.
const POOL: usize = 4;
const SESSIONS: usize = POOL + 2 + 1 + 1;

/// F36, I1, I2, I5.
#[tokio::test(flavor = "multi_thread")]
async fn workers_that_all_die_and_start_together_keep_to_their_sessions_and_do_all_work() {
    let n = if is_slow() { 40 } else { 6 };
    let suite = Suite::new(cloned(), "together").await;
    let (world, url) = (&suite.world, &suite.world.database.url);
    let start = || -> Vec<Worker> {
        (0..n).map(|_| crate::programs::crashling(url, None, &[("DB_CONNECTIONS", "4")])).collect()
    };
    let done = async || {
        let done: i64 = sqlx::query_scalar("select count(*) from effects")
            .fetch_one(&mut *world.conn().await)
            .await
            .expect("a count");
        done
    };
    let sessions = async || -> HashSet<i32> {
        let all =
            "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'";
        sqlx::query_scalar(all).fetch_all(&mut *world.conn().await).await.expect("sessions").into_iter().collect()
    };
    let ours = sessions().await.len() + 8; // the test's own pool may grow to eight
    let running = start();
    let is_held = "select count(*) from pgmq.q_effects where headers ? 'by' and vt > now()";
    suite.send_kinds(&world.env.db, 40 * n, &["ok", "ok", "slow"]).await;
    let is_busy = wait_until(Duration::from_secs(30), async || {
        let held: i64 = sqlx::query_scalar(is_held).fetch_one(&mut *world.conn().await).await.expect("a count");
        held > 0 && done().await > 0
    });
    assert!(is_busy.await, "the workers do nothing");
    for worker in &running {
        worker.signal(Signal::KILL);
    }
    drop(running);
    let (before, begun) = (done().await, Instant::now());
    let old = sessions().await; // those of the dead are about to end
    let mut running = start();
    let is_working = wait_until(Duration::from_secs(30), async || done().await > before);
    assert!(is_working.await, "F36: no work is done after the restart");
    println!("{n} workers: work again {:?} after all were started", begun.elapsed());

    // Another tenant's item is not starved by what comes back.
    let other = world.other_tenant("somebody else").await;
    let item = Uuid::now_v7();
    effects::send(&world.env.db, other, item, "ok").await.expect("sent");
    suite.ledger.write(item, "ok");
    let mut most = 0;
    let is_drained = wait_until(Duration::from_secs(120), async || {
        most = most.max(sessions().await.difference(&old).count());
        suite.drain(Duration::ZERO).await
    });
    assert!(is_drained.await, "I5: stuck after all workers died together");
    assert!(most <= n * SESSIONS + ours, "F36: {most} sessions of {n} workers");
    assert!(running.iter_mut().all(|worker| worker.has_ended().is_none()), "I6: a worker ended");
    let verdict = suite.verdict().await;
    assert!(verdict.is_clean(), "F36, I1 I2: {verdict}");
    println!("{n} workers killed and started: at most {most} sessions, {verdict}");
}
