//! The order of claims: every tenant gets its share, live items go before history, and a long item delays no other.

use std::collections::HashMap;
use std::time::Duration;

use domain::item::Action;
use domain::{Fault, ItemId, Priority, TenantId};
use engine::Env;
use engine::work::{Lane, LaneEntry, Lease, Outcome, Runtime, Stop};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::queue::{Claimed, Page, Queue, Settlement};
use testkit::{World, effects, wait_until};

fn queue() -> Queue {
    Queue::new(effects::NAME).expect("a queue")
}

async fn send(world: &World, tenant_id: TenantId, priority: Priority, n: usize) {
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let messages: Vec<_> = (0..n).map(|n| json!({ "n": n })).collect();
    queue().send_as(&mut tx, tenant_id, priority, &messages).await.expect("sent");
    tx.commit().await.expect("committed");
}

/// Claims once and says how many items of each tenant came.
async fn claim(world: &World, queue: &Queue, limit: u32) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for item in claimed(world, queue, limit).await {
        let tenant = item.message["tenant_id"].as_str().unwrap_or_default().to_owned();
        *counts.entry(tenant).or_insert(0) += 1;
    }
    counts
}

async fn claimed(world: &World, queue: &Queue, limit: u32) -> Vec<Claimed> {
    let mut conn = world.conn().await;
    queue.claim(&mut conn, None, limit, 600, "me").await.expect("a claim")
}

async fn tenants(world: &World, n: usize) -> Vec<TenantId> {
    let mut all = Vec::new();
    for nth in 0..n {
        all.push(world.other_tenant(&format!("tenant {nth}")).await);
    }
    all
}

/// F38.
#[tokio::test]
async fn one_item_beside_a_flood_of_another_tenant_is_in_the_next_batch() {
    let (world, queue) = (World::now().await, queue());
    let flooding = tenants(&world, 1).await[0];
    send(&world, flooding, Priority::Live, 5_000).await;
    for round in 0..20 {
        let late = world.other_tenant(&format!("late {round}")).await;
        send(&world, late, Priority::Live, 1).await;
        let claimed = claim(&world, &queue, 16).await;
        assert_eq!(claimed.get(&late.to_string()), Some(&1), "round {round}: {claimed:?}");
        assert_eq!(claimed.get(&flooding.to_string()), Some(&15), "the batch is not full: {claimed:?}");
    }
}

/// F38.
#[tokio::test]
async fn ten_tenants_share_a_lane_whatever_the_size_of_a_batch() {
    for limit in [1, 3, 16] {
        let (world, queue) = (World::now().await, queue());
        let all = tenants(&world, 10).await;
        for (nth, tenant_id) in all.iter().enumerate() {
            send(&world, *tenant_id, Priority::Live, if nth == 0 { 1_000 } else { 200 }).await;
        }
        let (mut total, mut n_claimed) = (HashMap::new(), 0);
        while n_claimed < 480 {
            for (tenant, n) in claim(&world, &queue, limit).await {
                *total.entry(tenant).or_insert(0) += n;
                n_claimed += n;
            }
        }
        let (least, most) = (total.values().min().copied(), total.values().max().copied());
        assert!(total.len() == 10 && least >= Some(46) && most <= Some(50), "batches of {limit}: {total:?}");
    }
}

#[tokio::test]
async fn one_tenant_alone_fills_whole_batches_and_an_empty_claim_means_that_nothing_is_due() {
    let (world, queue) = (World::now().await, queue());
    send(&world, tenants(&world, 1).await[0], Priority::Live, 100).await;
    let mut sizes = Vec::new();
    loop {
        let n = claimed(&world, &queue, 16).await.len();
        sizes.push(n);
        if n == 0 {
            break;
        }
    }
    assert_eq!(sizes, [16, 16, 16, 16, 16, 16, 4, 0]);
}

#[tokio::test]
async fn items_that_another_session_holds_keep_no_others_back() {
    for limit in [1, 16] {
        let (world, queue) = (World::now().await, queue());
        for tenant_id in tenants(&world, 40).await {
            send(&world, tenant_id, Priority::Live, 1).await;
        }
        send(&world, world.tenant_id, Priority::History, 1).await;
        // Another process claims at the same time: its transaction is open, and its turn begins where ours does.
        let mut other = world.env.db.begin().await.expect("a transaction");
        let theirs = self::queue().claim(&mut other, None, limit, 600, "other").await.expect("a claim");
        let ours = claimed(&world, &queue, limit).await;
        assert_eq!((theirs.len(), ours.len()), (limit as usize, limit as usize), "batches of {limit}");
        assert!(ours.iter().all(|item| theirs.iter().all(|theirs| theirs.msg_id != item.msg_id)));
        let is_live = ours.iter().all(|item| item.message["tenant_id"] != world.tenant_id.to_string());
        assert!(is_live, "history was claimed before live items: {ours:?}");
        other.rollback().await.expect("rolled back");
        let mut n = ours.len();
        loop {
            match claimed(&world, &queue, 16).await.len() {
                0 => break,
                more => n += more,
            }
        }
        assert_eq!(n, 41, "all of them are claimed once");
    }
}

/// A claim looks at each of the other tenants once at most.
#[tokio::test]
async fn delayed_items_of_many_tenants_hide_no_due_one() {
    const DELAYED: i64 = 10_000;
    let (world, queue) = (World::now().await, queue());
    let due = tenants(&world, 3).await;
    let mut conn = world.conn().await;
    sqlx::query(
        "insert into pgmq.q_effects (vt, message)
         select now() + interval '1 hour', jsonb_build_object('tenant_id', gen_random_uuid()) from generate_series(1, $1)",
    )
    .bind(DELAYED)
    .execute(&mut *conn)
    .await
    .expect("delayed rows");
    for tenant_id in &due {
        send(&world, *tenant_id, Priority::Live, 5).await;
    }
    // What a session has read is known to itself until it commits.
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let read = async |conn: &mut sqlx::PgConnection| -> i64 {
        let sql = "select pg_stat_get_xact_tuples_returned('pgmq.q_effects'::regclass)
             + pg_stat_get_xact_tuples_returned('pgmq.q_effects_share_idx'::regclass)";
        sqlx::query_scalar(sql).fetch_one(conn).await.expect("statistics")
    };
    let (before, mut total, mut claims) = (read(&mut *tx).await, 0, 0);
    loop {
        let n = queue.claim(&mut tx, None, 4, 600, "me").await.expect("a claim").len();
        claims += 1;
        if n == 0 {
            break;
        }
        total += n;
    }
    assert_eq!(total, 15);
    let per_claim = (read(&mut *tx).await - before) / claims;
    assert!(per_claim > 0 && per_claim < 2 * DELAYED, "a claim beside {DELAYED} delayed rows reads {per_claim}");
}

#[tokio::test]
async fn items_without_a_tenant_are_claimed_too() {
    let (world, queue) = (World::now().await, queue());
    send(&world, tenants(&world, 1).await[0], Priority::Live, 50).await;
    let mut conn = world.conn().await;
    sqlx::query("insert into pgmq.q_effects (vt, message) values (now(), '{}')")
        .execute(&mut *conn)
        .await
        .expect("sent");
    let claimed = claim(&world, &queue, 4).await;
    assert_eq!(claimed.get(""), Some(&1), "{claimed:?}");
}

#[tokio::test]
async fn a_live_item_goes_before_a_thousand_of_history_and_history_moves_when_live_is_idle() {
    let (world, queue) = (World::now().await, queue());
    let all = tenants(&world, 2).await;
    send(&world, all[0], Priority::History, 1_000).await;
    assert_eq!(claimed(&world, &queue, 16).await.len(), 16, "nothing live: history moves");
    send(&world, all[0], Priority::Live, 20).await;
    send(&world, all[1], Priority::History, 100).await;
    let first = claimed(&world, &queue, 16).await;
    let second = claimed(&world, &queue, 16).await;
    let ids = |items: &[Claimed]| items.iter().map(|item| item.msg_id).collect::<Vec<_>>();
    // Live ones are numbers 1,001 to 1,020, the second tenant's history follows.
    assert!(ids(&first).iter().all(|id| (1_001..=1_020).contains(id)), "{:?}", ids(&first));
    assert!(ids(&second).iter().all(|id| (1_001..=1_020).contains(id)), "{:?}", ids(&second));
    assert_eq!((first.len(), second.len()), (16, 4), "history waits until nothing live is due");
    let shares = claim(&world, &queue, 16).await;
    assert_eq!(shares.get(&all[1].to_string()), Some(&8), "tenants share history too: {shares:?}");
}

#[tokio::test]
async fn history_stays_history_when_it_is_replayed_or_parked() {
    let world = World::now().await;
    let (queue, caller) = (queue(), world.operator().await);
    let priority = async || -> Option<String> {
        let mut conn = world.conn().await;
        let read = "select headers ->> 'priority' from pgmq.q_effects";
        sqlx::query_scalar(read).fetch_one(&mut *conn).await.expect("one message")
    };
    send(&world, world.tenant_id, Priority::History, 1).await;
    let act = async |action: Action| {
        let mut tx = world.env.db.begin().await.expect("a transaction");
        let page = Page { limit: 5, ..Page::default() };
        let item = queue.list(&mut tx, None, &caller, page).await.expect("items").remove(0);
        let id: ItemId = item.id.parse().expect("an id");
        assert!(queue.act(&mut tx, None, &caller, id, action).await.expect("an answer"));
        tx.commit().await.expect("committed");
    };
    act(Action::Skip).await;
    act(Action::Retry).await;
    assert_eq!(priority().await.as_deref(), Some("history"), "after a replay");
    let receipt = claimed(&world, &queue, 1).await[0].receipt();
    let mut conn = world.conn().await;
    let parked = Settlement::Park(receipt, "told to wait", Some(Duration::from_secs(7_200)));
    assert_eq!(queue.settle(&mut conn, None, &parked).await.expect("parked"), 1);
    act(Action::Retry).await;
    assert_eq!(priority().await.as_deref(), Some("history"), "after it was parked");
}

#[tokio::test]
async fn what_a_dead_worker_held_is_claimed_again_with_a_lapse() {
    let (world, queue) = (World::now().await, queue());
    send(&world, world.tenant_id, Priority::Live, 3).await;
    assert_eq!(claimed(&world, &queue, 16).await.len(), 3);
    assert_eq!(claimed(&world, &queue, 16).await.len(), 0, "they are held");
    let mut conn = world.conn().await;
    assert_eq!(queue.take_over(&mut conn, None, &["me".to_owned()]).await.expect("taken over"), 3);
    let again = claimed(&world, &queue, 16).await;
    assert_eq!(again.iter().map(|item| (item.attempt(), item.lapses)).collect::<Vec<_>>(), [(2, 1); 3]);
}

/// Runs until its queue's other items are done, as a move to another model does.
#[derive(Serialize, Deserialize)]
pub struct Long {}

impl Lane for Long {
    const NAME: &'static str = "reembed";
    const IS_LONG: bool = true;

    async fn run(self, _: &Env, _: &Lease) -> Result<Outcome, Fault> {
        std::future::pending().await
    }
}

static BESIDE_LONG: [LaneEntry; 2] = [LaneEntry::of::<Long>(), LaneEntry::of::<effects::Effects>()];

#[tokio::test]
async fn a_long_item_keeps_neither_suspects_nor_retried_items_of_other_lanes_waiting() {
    let world = World::now().await;
    let long = Queue::new(Long::NAME).expect("a queue");
    let mut tx = world.env.db.begin().await.expect("a transaction");
    long.send(&mut tx, world.tenant_id, &[Long {}]).await.expect("sent");
    tx.commit().await.expect("committed");
    let mut conn = world.conn().await;
    // Its last holder died: it would be a suspect, were its lane not one of long items.
    assert_eq!(long.claim(&mut conn, None, 1, 600, "dead").await.expect("a claim").len(), 1);
    long.take_over(&mut conn, None, &["dead".to_owned()]).await.expect("taken over");
    let stop = Stop::default();
    let running = tokio::spawn(Runtime::new(world.env.clone(), &BESIDE_LONG, &[]).run("test", stop.clone()));
    let is_held = "select count(*) from pgmq.q_reembed where headers ->> 'by' <> 'dead'";
    let held = wait_until(Duration::from_secs(10), async || {
        sqlx::query_scalar::<_, i64>(is_held).fetch_one(&mut *conn).await.is_ok_and(|n| n == 1)
    });
    assert!(held.await, "the long item was not taken");

    for kind in ["ok", "flaky", "ok"] {
        effects::send(&world.env.db, world.tenant_id, uuid::Uuid::now_v7(), kind).await.expect("sent");
    }
    // One whose holder died.
    sqlx::query(
        "insert into pgmq.q_effects (vt, read_ct, message, headers) values (now(), 1, $1, '{\"by\": \"dead\"}')",
    )
    .bind(json!({ "item": uuid::Uuid::now_v7(), "kind": "ok", "tenant_id": world.tenant_id }))
    .execute(&mut *conn)
    .await
    .expect("a suspect");
    let done = wait_until(Duration::from_secs(20), async || {
        sqlx::query_scalar::<_, i64>("select count(*) from effects").fetch_one(&mut *conn).await.is_ok_and(|n| n == 4)
    });
    assert!(done.await, "something waits for the long item");
    running.abort();
}
