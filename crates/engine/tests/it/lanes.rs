//! The moves of items between states, by a fixed clock and in this process.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::item::Action;
use domain::{ItemId, ItemState, Scope, Secret};
use engine::lanes;
use store::queue::{Page, Queue, Settlement};
use testkit::{World, effects};
use uuid::Uuid;

async fn send(world: &World, kind: &str) -> Uuid {
    let item = Uuid::now_v7();
    effects::send(&world.env.db, world.tenant_id, item, kind).await.expect("sent");
    // Sent by the database's clock; due by the test's.
    let mut conn = world.conn().await;
    sqlx::query("update pgmq.q_effects set vt = $1 where message ->> 'item' = $2")
        .bind(world.env.clock.now())
        .bind(item.to_string())
        .execute(&mut *conn)
        .await
        .expect("due");
    item
}

/// One line about every item: what a person would see.
async fn lines(world: &World) -> Vec<String> {
    let (queue, caller) = (Queue::new(effects::NAME).expect("a queue"), world.operator().await);
    let mut conn = world.conn().await;
    let items = queue
        .list(&mut conn, world.env.clock.sql(), &caller, Page { limit: 50, ..Page::default() })
        .await
        .expect("items");
    let line = |item: &store::queue::Item| {
        let kind = item.message["kind"].as_str().unwrap_or_default();
        let why = item.error.as_deref().or(item.reason.as_deref()).unwrap_or("-");
        format!("{kind}: {} after {} attempts and {} waits: {why}", item.state, item.attempts, item.waits)
    };
    items.iter().map(line).collect()
}

async fn only_item(world: &World) -> store::queue::Item {
    let (queue, caller) = (Queue::new(effects::NAME).expect("a queue"), world.operator().await);
    let mut conn = world.conn().await;
    let items = queue
        .list(&mut conn, world.env.clock.sql(), &caller, Page { limit: 50, ..Page::default() })
        .await
        .expect("items");
    assert_eq!(items.len(), 1, "{items:?}");
    items.into_iter().next().expect("one")
}

async fn act(world: &World, action: Action) -> store::Result<bool> {
    let (queue, caller) = (Queue::new(effects::NAME).expect("a queue"), world.operator().await);
    let id: ItemId = only_item(world).await.id.parse().expect("an id");
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let acted = queue.act(&mut tx, world.env.clock.sql(), &caller, id, action).await;
    // A refusal is not left to the drop, which only sends the rollback later: a claim passes over a row that is still locked.
    if acted.is_ok() {
        tx.commit().await?
    } else {
        tx.rollback().await?
    }
    acted
}

#[tokio::test]
async fn a_broken_item_is_tried_with_growing_pauses_and_then_given_up() {
    let world = World::new().await;
    send(&world, "broken").await;
    for attempt in 1..6 {
        world.run_lanes(effects::lanes(None)).await;
        assert_eq!(
            lines(&world).await,
            [format!(
                "broken: failed after {attempt} attempts and 0 waits: could not be done now: told to fail for ever"
            )]
        );
        assert_eq!(world.run_lanes(effects::lanes(None)).await, 0, "it was tried again before its pause was over");
        world.env.clock.advance(TimeDelta::minutes(11));
    }
    world.run_lanes(effects::lanes(None)).await;
    assert_eq!(
        lines(&world).await,
        ["broken: dead after 6 attempts and 0 waits: could not be done now: told to fail for ever"]
    );

    assert!(act(&world, Action::Retry).await.expect("a retry"));
    assert_eq!(lines(&world).await, ["broken: waiting after 0 attempts and 0 waits: -"]);
}

#[tokio::test]
async fn a_wait_costs_no_attempt_and_a_long_one_leaves_the_queue() {
    let world = World::new().await;
    send(&world, "wait").await;
    world.run_lanes(effects::lanes(None)).await;
    assert_eq!(lines(&world).await, ["wait: waiting after 0 attempts and 1 waits: told to wait once"]);
    world.env.clock.advance(TimeDelta::seconds(1));
    world.run_lanes(effects::lanes(None)).await;
    assert_eq!(lines(&world).await, [] as [&str; 0]);

    send(&world, "park").await;
    world.run_lanes(effects::lanes(None)).await;
    assert_eq!(lines(&world).await, ["park: parked after 0 attempts and 1 waits: told to wait for two hours"]);
    world.env.clock.advance(TimeDelta::minutes(119));
    assert_eq!(unpark(&world).await, 0);
    world.env.clock.advance(TimeDelta::minutes(1));
    assert_eq!(unpark(&world).await, 1);
    world.run_lanes(effects::lanes(None)).await;
    assert_eq!(lines(&world).await, [] as [&str; 0]);
}

async fn unpark(world: &World) -> usize {
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let n = store::queue::unpark_due(&mut tx, world.env.clock.sql(), 10).await.expect("unparked");
    tx.commit().await.expect("committed");
    n
}

#[tokio::test]
async fn people_retry_skip_and_cancel_what_the_state_allows() {
    let world = World::new().await;
    send(&world, "cancel").await;
    assert!(act(&world, Action::Retry).await.is_err(), "a waiting item is due anyway");
    assert!(act(&world, Action::Skip).await.expect("a skip"));
    assert_eq!(lines(&world).await, ["cancel: skipped after 0 attempts and 0 waits: skipped by test"]);
    assert!(act(&world, Action::Cancel).await.is_err(), "it has ended");
    assert!(act(&world, Action::Retry).await.expect("a retry"));
    world.run_lanes(effects::lanes(None)).await;
    assert_eq!(lines(&world).await, ["cancel: skipped after 1 attempts and 0 waits: told to cancel"]);
}

#[tokio::test]
async fn a_parked_item_can_be_skipped_and_brought_back() {
    let world = World::new().await;
    send(&world, "park").await;
    world.run_lanes(effects::lanes(None)).await;
    assert!(act(&world, Action::Skip).await.expect("a skip"));
    assert_eq!(only_item(&world).await.state, ItemState::Skipped);
    assert!(act(&world, Action::Retry).await.expect("a retry"));
    assert_eq!(only_item(&world).await.state, ItemState::Waiting);
}

/// S17.
#[tokio::test]
async fn another_tenants_items_are_not_there() {
    let world = World::new().await;
    send(&world, "ok").await;
    let other = world.other_tenant("somebody else").await;
    let (stranger, _) = world.caller(other, &[Scope::Service]).await;
    let id: ItemId = only_item(&world).await.id.parse().expect("an id");
    let queue = Queue::new(effects::NAME).expect("a queue");
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let page = Page { limit: 50, ..Page::default() };
    assert!(queue.list(&mut tx, world.env.clock.sql(), &stranger, page).await.expect("a list").is_empty());
    assert!(queue.get(&mut tx, world.env.clock.sql(), &stranger, id).await.expect("an answer").is_none());
    assert_eq!(queue.counts(&mut tx, world.env.clock.sql(), &stranger).await.expect("counts").waiting, 0);
    for action in Action::ALL {
        assert!(
            !queue.act(&mut tx, world.env.clock.sql(), &stranger, id, action).await.expect("an answer"),
            "{action:?}"
        );
    }
}

#[tokio::test]
async fn a_malformed_message_is_a_dead_letter_with_its_reason() {
    let world = World::new().await;
    let mut tx = world.env.db.begin().await.expect("a transaction");
    let nonsense = serde_json::json!({ "kind": 7 });
    Queue::new(effects::NAME).expect("a queue").send(&mut tx, world.tenant_id, &[nonsense]).await.expect("sent");
    tx.commit().await.expect("committed");
    world.env.clock.advance(TimeDelta::days(3_650)); // past the database's own now
    world.run_lanes(effects::lanes(None)).await;
    let item = only_item(&world).await;
    assert_eq!(item.state, ItemState::Dead);
    assert!(item.reason.as_deref().is_some_and(|why| why.contains("does not parse")), "{item:?}");
}

/// F10.
#[tokio::test]
async fn a_schedule_fires_once_a_tick_and_missed_ticks_collapse() {
    let world = World::new().await;
    let every = std::time::Duration::from_secs(60);
    let mut conn = world.conn().await;
    let message = serde_json::json!({ "task": "tick" });
    store::schedules::ensure(
        &mut conn,
        world.env.clock.sql(),
        "tick",
        "upkeep",
        every,
        std::time::Duration::from_secs(5),
        &message,
    )
    .await
    .expect("a schedule");
    let fired = async |world: &World| {
        let mut fired = 0;
        while let Some(due) =
            store::schedules::take_due(&mut world.conn().await as &mut store::Connection, world.env.clock.sql())
                .await
                .expect("taken")
        {
            assert!(due.next_run_at > world.env.clock.now(), "it is due again at once: {due:?}");
            fired += 1;
        }
        fired
    };
    assert_eq!(fired(&world).await, 0);
    world.env.clock.advance(TimeDelta::seconds(5));
    assert_eq!(fired(&world).await, 1);
    assert_eq!(fired(&world).await, 0);
    world.env.clock.advance(TimeDelta::hours(5));
    assert_eq!(fired(&world).await, 1, "three hundred missed ticks are one");
}

#[tokio::test]
async fn a_settled_receipt_is_worth_nothing_even_to_its_own_worker() {
    let world = World::new().await;
    send(&world, "ok").await;
    let (queue, clock) = (Queue::new(effects::NAME).expect("a queue"), &world.env.clock);
    let mut conn = world.conn().await;
    let claimed = queue.claim(&mut conn, clock.sql(), 1, 60, "me").await.expect("claimed");
    let receipt = claimed[0].receipt();
    let later = [(receipt, std::time::Duration::from_secs(1_800))];
    let wait = Settlement::Wait(&later, "told to wait");
    assert_eq!(queue.settle(&mut conn, clock.sql(), &wait).await.expect("settled"), 1);
    let before = only_item(&world).await;
    // The answer was lost and it is settled again; a heartbeat that had read the receipt before extends it.
    assert_eq!(queue.settle(&mut conn, clock.sql(), &wait).await.expect("an answer"), 0);
    queue.extend(&mut conn, clock.sql(), &[receipt], 60).await.expect("an answer");
    let after = only_item(&world).await;
    assert_eq!((after.waits, after.attempts, after.due_at), (before.waits, before.attempts, before.due_at));
    assert_eq!((after.waits, after.attempts), (1, 0));
}

#[tokio::test]
async fn every_parked_item_is_on_some_page() {
    let world = World::new().await;
    for _ in 0..5 {
        send(&world, "park").await;
    }
    world.run_lanes(effects::lanes(None)).await;
    send(&world, "ok").await;
    let (queue, caller) = (Queue::new(effects::NAME).expect("a queue"), world.operator().await);
    let mut conn = world.conn().await;
    let (mut seen, mut before) = (std::collections::HashSet::new(), None);
    loop {
        let page = Page { before, limit: 2, ..Page::default() };
        let items = queue.list(&mut conn, world.env.clock.sql(), &caller, page).await.expect("items");
        let Some(last) = items.last() else { break };
        before = Some(last.id.parse().expect("an id"));
        for item in items {
            assert!(seen.insert(item.id.clone()), "{} is on two pages", item.id);
        }
    }
    assert_eq!(seen.len(), 6);
}

/// F33.
#[tokio::test]
async fn a_schedule_that_cannot_fire_shows_its_error_and_holds_up_no_other() {
    let world = World::now().await;
    let mut conn = world.conn().await;
    let every = std::time::Duration::from_secs(60);
    for (name, lane) in [("a_broken", "nowhere"), ("b_good", "upkeep")] {
        let message = serde_json::json!({ "task": "unpark" });
        store::schedules::ensure(&mut conn, None, name, lane, every, every, &message).await.expect("a schedule");
    }
    sqlx::query("update tributary.schedules set next_run_at = now() - interval '1 hour' * (case name when 'a_broken' then 2 else 1 end)")
        .execute(&mut *conn)
        .await
        .expect("due");
    let stop = engine::work::Stop::default();
    let runtime = engine::work::Runtime::new(world.env.clone(), &lanes::ALL, lanes::SCHEDULES);
    let running = tokio::spawn(runtime.run("test", stop.clone()));
    let both = testkit::wait_until(std::time::Duration::from_secs(15), async || {
        let all = store::schedules::list(&mut conn).await.expect("schedules");
        let of = |name: &str| all.iter().find(|schedule| schedule.name == name).cloned().expect("a schedule");
        of("a_broken").last_error.is_some_and(|error| error.contains("nowhere")) && of("b_good").last_run_at.is_some()
    });
    assert!(both.await, "F33: one broken schedule stopped the others, or hid its error");
    stop.stop();
    running.await.expect("it stopped");
}

/// Takes one request and returns its body.
async fn one_post(listener: tokio::net::TcpListener) -> serde_json::Value {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (mut socket, _) = listener.accept().await.expect("a request");
    let mut text = String::new();
    let mut chunk = [0; 4_096];
    loop {
        let n = socket.read(&mut chunk).await.expect("bytes");
        text.push_str(&String::from_utf8_lossy(&chunk[..n]));
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
        if let Some(Ok(value)) = body.map(serde_json::from_str) {
            socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("an answer");
            return value;
        }
    }
}

#[tokio::test]
async fn an_alert_opens_once_is_told_and_closes_with_its_cause() {
    let world = World::now().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut config = (*world.env.config).clone();
    config.alert_webhook_url =
        Some(Secret::new(format!("http://{}/hook?token=canary", listener.local_addr().expect("an address"))));
    let env = engine::Env { config: Arc::new(config), ..world.env.clone() };
    let watch = async || {
        let mut tx = env.db.begin().await.expect("a transaction");
        let tick = [serde_json::json!({ "task": "watch" })];
        Queue::new("upkeep").expect("a queue").send(&mut tx, world.tenant_id, &tick).await.expect("sent");
        tx.commit().await.expect("committed");
        Box::pin(engine::work::Runtime::new(env.clone(), &lanes::ALL, &[]).run_due()).await.expect("run");
        let mut conn = world.conn().await;
        let open = store::alerts::open(&mut conn, world.tenant_id).await.expect("alerts");
        open.iter().map(|alert| alert.kind.clone()).collect::<Vec<_>>()
    };
    // A worker, so that its absence is no second alert.
    let mut conn = world.conn().await;
    store::workers::start(
        &mut conn,
        "1.0",
        std::time::Duration::from_secs(60),
        store::workers::Identity { name: "w", host: "host", pid: 1, role: "worker" },
    )
    .await
    .expect("started");
    assert_eq!(watch().await, [] as [&str; 0]);

    sqlx::query(
        "insert into pgmq.a_upkeep (msg_id, vt, message, headers)
         values (1000000, now(), jsonb_build_object('task', 'unpark', 'tenant_id', $1::text), '{\"state\": \"dead\"}')",
    )
    .bind(world.tenant_id.to_string())
    .execute(&mut *conn)
    .await
    .expect("a dead letter");
    let (told, open) = tokio::join!(one_post(listener), watch());
    assert_eq!(open, ["dead_items"]);
    assert_eq!((&told["kind"], &told["subject"]), (&"dead_items".into(), &"upkeep".into()), "{told}");
    assert!(told["todo"].as_str().is_some_and(|todo| todo.contains("retry or skip")), "{told}");
    assert_eq!(watch().await, ["dead_items"], "still the same alert; nobody listens any more, and that is no error");
    sqlx::query("delete from pgmq.a_upkeep").execute(&mut *conn).await.expect("decided");
    assert_eq!(watch().await, [] as [&str; 0]);
    let kept: i64 =
        sqlx::query_scalar("select count(*) from tributary.alerts").fetch_one(&mut *conn).await.expect("a count");
    assert_eq!(kept, 1, "one alert, now closed");
}
