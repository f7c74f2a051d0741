//! Notices between processes: what could not be sent is made good by a word that makes readers look at everything.

use std::time::Duration;

use domain::{Notice, Op};
use store::{Db, notices};
use testkit::{World, wait_until};

/// F29.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_could_not_be_sent_leads_to_a_resync_elsewhere() {
    let world = World::now().await;
    let [here, there] = [(); 2].map(|()| Db::lazy(&world.database.login, 1, Duration::from_millis(300)));
    let relays = [&here, &there].map(|db| tokio::spawn(notices::relay(db.clone())));
    let mut heard = there.bus().subscribe();
    let notice =
        |id: &str| Notice { tenant_id: None, kind: "things".into(), id: id.into(), op: Op::Update, ids: Vec::new() };
    // Until both listen.
    let is_linked = wait_until(Duration::from_secs(10), async || {
        here.bus().publish(notice("hello"));
        std::iter::from_fn(|| heard.try_recv().ok()).any(|notice| notice.id == "hello")
    });
    assert!(is_linked.await, "the two processes do not hear each other");
    // The only session of the first is held (it listens on another one). Its notice cannot be sent.
    let mut held = None;
    let is_held = wait_until(Duration::from_secs(10), async || {
        held = here.acquire().await.ok(); // the relay may have it at the moment
        held.is_some()
    });
    assert!(is_held.await, "the session does not become free");
    while heard.try_recv().is_ok() {}
    here.bus().publish(notice("lost"));
    // Only time shows that the relay has given up: it tells nobody before the session is free again. Twice as long as the pool waits.
    tokio::time::sleep(Duration::from_millis(600)).await;
    drop(held);
    let mut told = Vec::new();
    let is_told = wait_until(Duration::from_secs(10), async || {
        told.extend(std::iter::from_fn(|| heard.try_recv().ok()));
        told.iter().any(|notice| notice.op == Op::Resync && notice.kind == "*")
    });
    assert!(is_told.await, "F29: a notice was lost and nobody was told: {told:?}");
    relays.into_iter().for_each(|relay| relay.abort());
}
