//! F2: a worker that sleeps past its lease and wakes changes nothing, and its late write is counted.

use std::time::Duration;

use rustix::process::Signal;
use testkit::{Cluster, wait_until};

use crate::suite::{Suite, Verdict, worker};

/// Stops a worker at a point, lets a second one take over, wakes the first. Returns the verdict and how many late writes were refused.
pub async fn overslept(suite: &Suite, point: &str, bug: Option<&str>) -> (Verdict, i64) {
    suite.send_kinds(&suite.world.env.db, 8, &["ok"]).await;
    let sleeper = worker(&suite.world.database.url, Some(&format!("{point}:stop")), bug);
    assert!(wait_until(Duration::from_secs(10), async || sleeper.is_stopped()).await, "{point} was never reached");
    let second = worker(&suite.world.database.url, None, bug);
    // A session stopped inside its transaction keeps its row until the server ends it, after 10 s.
    assert!(suite.drain(Duration::from_secs(30)).await, "I5: the second worker did not take over");
    let stale_before = suite.stale().await;
    sleeper.signal(Signal::CONT);
    // Two heartbeats after waking its counts are in the database.
    wait_until(Duration::from_secs(5), async || suite.stale().await > stale_before).await;
    let late = suite.stale().await - stale_before;
    drop((sleeper, second));
    (suite.verdict().await, late)
}

/// F2, I3.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_stopped_past_its_lease_changes_nothing_and_is_counted() {
    let cluster = Cluster::private().await;
    for point in ["claim.after", "effect.begun", "settle.before"] {
        let name = format!("lease_{}", point.replace('.', "_"));
        let suite = Suite::new(cluster.database(&name).await, &name).await;
        if point == "settle.before" {
            suite.send_kinds(&suite.world.env.db, 2, &["wait"]).await;
        }
        let (verdict, late) = overslept(&suite, point, None).await;
        assert!(verdict.is_clean(), "I3 after sleeping at {point}: {verdict}");
        assert!(late > 0, "the late write at {point} was not refused and counted");
        println!("{point}: {verdict}, {late} late writes refused");
    }
}
