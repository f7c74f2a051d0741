//! Work whose process was killed: its session has ended, so others take over without waiting for leases, locks or heartbeats.

use std::time::{Duration, Instant};

use domain::{Caller, Notice, Op, Scope};
use engine::agent::builtin;
use engine::work::{Runtime, Stop};
use store::queue::Queue;
use store::workers::life::Life;
use store::workers::{self, Health, Identity};
use store::{claims, queue};
use testkit::{World, effects, stays_true, wait_until};
use uuid::Uuid;

/// A worker process as the database sees it: registered, with a session that speaks for it, an item and activities in hand.
struct Process {
    life: Life,
    name: &'static str,
}

impl Process {
    async fn start(world: &World, name: &'static str, n_activities: i32) -> Self {
        let mut life = Life::new(name);
        assert_eq!(life.look(&world.env.db).await.expect("a session"), None, "its session is new");
        let mut conn = world.conn().await;
        let identity = Identity { name, host: "box", pid: 1, role: "worker" };
        workers::start(&mut conn, "1.0", Duration::from_secs(5), identity).await.expect("registered");
        effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
        let queue = Queue::new(effects::NAME).expect("a queue");
        assert_eq!(queue.claim(&mut conn, None, 1, 600, name).await.expect("a claim").len(), 1);
        let (person, user, key) =
            claims::ensure_agent(&mut conn, world.tenant_id, &["text"]).await.expect("the built-in agent");
        let caller = Caller {
            key_id: key,
            person_id: Some(person),
            user_id: Some(user),
            scopes: vec![Scope::Agent],
            ..Caller::local("built-in agent", world.tenant_id, false)
        };
        let mut tx = world.env.db.begin_as(&caller).await.expect("a transaction");
        claims::hold_as(&mut tx, name).await.expect("its name");
        let held = claims::claim(&mut tx, n_activities, &["text"]).await.expect("activities");
        assert_eq!(held.len(), n_activities as usize);
        tx.commit().await.expect("committed");
        Self { life, name }
    }
}

async fn number(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect(sql)
}

/// I5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_held_goes_to_others_within_ten_seconds() {
    let world = World::now().await;
    let fill = "insert into activities (tenant_id, type, raw_data) select id, 'note', '{\"source_type\":\"text\"}' from tenants, generate_series(1, 60)";
    sqlx::query(fill).execute(&mut *world.conn().await).await.expect("activities");
    let living = Process::start(&world, "box:1:living", 20).await;
    let killed = Process::start(&world, "box:1:killed", 40).await;
    // The one that lives is late with its heartbeats. Its session still speaks for it.
    let late = "update ai.vectorizer_worker_process p set last_heartbeat = clock_timestamp() - interval '20 seconds'
        from tributary.workers w where w.process_id = p.id and w.name = 'box:1:living'";
    sqlx::query(late).execute(&mut *world.conn().await).await.expect("late");
    let stop = Stop::default();
    let running = tokio::spawn(Runtime::new(world.env.clone(), effects::lanes(None), &[]).run("test", stop.clone()));

    let mut notices = world.env.db.bus().subscribe();
    let begun = Instant::now();
    drop(killed.life);
    // Its last heartbeat is six seconds old, and the next one is missed: that much of the ten seconds has passed.
    let silent_for = Duration::from_secs(6);
    let missed =
        "update ai.vectorizer_worker_process p set last_heartbeat = clock_timestamp() - make_interval(secs => $1)
        from tributary.workers w where w.process_id = p.id and w.name = 'box:1:killed'";
    sqlx::query(missed).bind(silent_for.as_secs_f64()).execute(&mut *world.conn().await).await.expect("missed");
    let is_back = wait_until(Duration::from_secs(10), async || {
        number(&world, "select count(*) from activities where processing_status = 'raw'").await == 40
            && number(&world, "select count(*) from effects").await == 1
    });
    assert!(is_back.await, "I5: what {} held is still not back", killed.name);
    let after = silent_for + begun.elapsed();
    println!("a killed process's items and activities were with others {after:.1?} after its last heartbeat");
    let woken = Notice::lane(None, effects::NAME, Op::Update);
    let are_woken = std::iter::from_fn(|| notices.try_recv().ok()).any(|notice| notice == woken);
    assert!(are_woken, "the lane is left to find the items at its next look");
    assert_eq!(
        number(
            &world,
            "select count(*) from activities where metadata ->> 'recovery_count' = '1' and locked_worker is null"
        )
        .await,
        40,
        "each counts, so that poison ends"
    );
    let held =
        "select count(*) from activities where processing_status = 'processing' and locked_worker = 'box:1:living'";
    assert_eq!(number(&world, held).await, 20, "the living one lost its own");
    let mut conn = world.conn().await;
    let listed = workers::list(&mut conn, &[]).await.expect("workers");
    assert_eq!(listed.iter().filter(|worker| worker.health() == Health::Dead).count(), 1, "{listed:?}");

    // The server drops everyone's session. The living have theirs again before they are judged, and lose nothing.
    let drop_all = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where application_name = 'tributary life' and datname = current_database()";
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("a connection");
    sqlx::query(drop_all).execute(&mut admin).await.expect("dropped");
    let mut living = living.life;
    // Time itself is waited for: nothing may happen to the living one while the others would judge it.
    for _ in 0..6 {
        living.look(&world.env.db).await.expect("a session");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(number(&world, held).await, 20, "a dropped session cost the living one its work");
    assert_eq!(number(&world, "select count(*) from tributary.workers where died_at is not null").await, 1);
    stop.stop();
    running.await.expect("ended");
}

#[tokio::test]
async fn a_worker_that_beats_again_is_not_dead_and_a_silent_one_is_taken_over_once() {
    let world = World::now().await;
    let fill = "insert into activities (tenant_id, type, raw_data) select id, 'note', '{\"source_type\":\"text\"}' from tenants";
    sqlx::query(fill).execute(&mut *world.conn().await).await.expect("an activity");
    // Its machine is gone: the session stays open, and ten heartbeats are missing.
    let _process = Process::start(&world, "box:1:silent", 1).await;
    let mut conn = world.conn().await;
    let silence = "update ai.vectorizer_worker_process set last_heartbeat = clock_timestamp() - interval '51 seconds'";
    sqlx::query(silence).execute(&mut *conn).await.expect("silence");
    let take_over = async || {
        let mut tx = world.env.db.begin().await.expect("a transaction");
        let tick = [serde_json::json!({ "task": "takeover" })];
        queue::Queue::new("upkeep").expect("a queue").send(&mut tx, world.tenant_id, &tick).await.expect("sent");
        tx.commit().await.expect("committed");
        world.run_upkeep().await;
    };
    take_over().await;
    let raw = "select count(*) from activities where processing_status = 'raw'";
    assert_eq!(number(&world, raw).await, 1);
    assert_eq!(workers::silent(&mut conn).await.expect("workers"), [], "each death is acted on once");
    let worker = workers::list(&mut conn, &[]).await.expect("workers").remove(0);
    assert_eq!(worker.health(), Health::Dead);
    let beat = workers::Beat::default();
    workers::heartbeat(&mut conn, domain::WorkerId(worker.id), &beat, &[], false).await.expect("heard");
    let worker = workers::list(&mut conn, &[]).await.expect("workers").remove(0);
    assert_eq!(worker.health(), Health::Alive, "it was only slow");
}

/// I5: a process that dies unregistered is found by nobody, so it holds nothing before it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_claimed_before_the_process_is_registered_and_a_stop_ends_the_wait() {
    let world = World::now().await;
    let fill = "insert into activities (tenant_id, type, raw_data)
        select id, 'note', '{\"source_type\":\"text\",\"content\":\"hello\"}' from tenants";
    sqlx::query(fill).execute(&mut *world.conn().await).await.expect("an activity");
    effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
    let mut holder = store::bench::administrator(&world.database.admin).await.expect("a connection");
    let lock = "begin; lock table tributary.workers in share mode";
    let is_waiting = "select count(*) from pg_locks where relation = 'tributary.workers'::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())";
    let start = |stop: &Stop| {
        let runtime = Runtime::new(world.env.clone(), effects::lanes(None), &[]);
        let agent = tokio::spawn(builtin::run(world.env.clone(), runtime.registered(), stop.clone()));
        (tokio::spawn(runtime.run("test", stop.clone())), agent)
    };

    sqlx::raw_sql(lock).execute(&mut holder).await.expect("a lock");
    let stop = Stop::default();
    let (lanes, agent) = start(&stop);
    let registers = wait_until(Duration::from_secs(10), async || number(&world, is_waiting).await > 0);
    assert!(registers.await, "it does not register");
    let held = "select (select count(*) from pgmq.q_effects where read_ct > 0) + (select count(*) from effects)
        + (select count(*) from activities where processing_status <> 'raw')";
    // Lanes and the agent look once a second.
    let holds_nothing = stays_true(Duration::from_millis(2_500), async || number(&world, held).await == 0);
    assert!(holds_nothing.await, "I5: it claimed before anybody could find it");
    sqlx::raw_sql("rollback").execute(&mut holder).await.expect("released");
    let is_done = wait_until(Duration::from_secs(20), async || {
        number(&world, "select count(*) from effects").await == 1
            && number(&world, "select count(*) from activities where processing_status = 'completed'").await == 1
    });
    assert!(is_done.await, "it is registered and claims nothing");
    stop.stop();
    lanes.await.expect("ended");
    agent.await.expect("ended");

    sqlx::raw_sql(lock).execute(&mut holder).await.expect("a lock");
    let stop = Stop::default();
    let (lanes, agent) = start(&stop);
    let registers = wait_until(Duration::from_secs(10), async || number(&world, is_waiting).await > 0);
    assert!(registers.await, "it does not register");
    stop.stop();
    let ended = wait_until(Duration::from_secs(5), async || lanes.is_finished() && agent.is_finished());
    assert!(ended.await, "a stop waits for the registration");
}
