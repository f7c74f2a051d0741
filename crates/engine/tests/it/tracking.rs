//! Worker tracking, as other programs read it.

use std::time::Duration;

use domain::WorkerId;
use store::Db;
use store::workers::{self, Beat, Health, Identity, LaneBeat};
use testkit::{Cluster, World};

async fn start(world: &World, interval_secs: u64) -> WorkerId {
    let mut conn = world.conn().await;
    let identity = Identity { name: "host:7:1", host: "host", pid: 7, role: "worker" };
    workers::start(&mut conn, "1.0", Duration::from_secs(interval_secs), identity).await.expect("started")
}

async fn beat(world: &World, id: WorkerId, successes: i64, errors: i64, last_error: Option<&str>) {
    let mut conn = world.conn().await;
    let beat = Beat { successes, errors, last_error: last_error.map(Into::into) };
    workers::heartbeat(&mut conn, id, &beat, &[], false).await.expect("heard");
}

/// Enforces every rule, and returns how many rows went.
async fn retention(conn: &mut store::Connection) -> u64 {
    let swept = store::retention::enforce(conn, None, &[], |_, _| {}).await;
    assert!(swept.iter().all(|swept| swept.error.is_none()), "{swept:?}");
    swept.iter().map(|swept| swept.gone).sum()
}

#[tokio::test]
async fn heartbeats_add_up_and_keep_the_last_error() {
    let world = World::now().await;
    let id = start(&world, 5).await;
    beat(&world, id, 3, 1, Some("first")).await;
    beat(&world, id, 2, 0, None).await;
    let mut conn = world.conn().await;
    let worker = workers::list(&mut conn, &[]).await.expect("workers").remove(0);
    assert_eq!((worker.success_count, worker.error_count, worker.heartbeat_count), (5, 1, 2));
    assert_eq!(worker.last_error_message.as_deref(), Some("first"));
    let since_error = worker.last_heartbeat - worker.last_error_at.expect("a time");
    assert!(since_error > chrono::TimeDelta::zero(), "a heartbeat without an error moved the error's time");
    beat(&world, id, 0, 1, Some("second")).await;
    let worker = workers::list(&mut conn, &[]).await.expect("workers").remove(0);
    assert_eq!(worker.last_error_message.as_deref(), Some("second"));
}

/// Installs pgai as `pgai install` does: runs its SQL as superuser.
async fn install_pgai(admin: &store::ConnectTo) -> store::Result<()> {
    let path = std::env::var("PGAI_SQL").expect("PGAI_SQL is not set; run the tests by ./test");
    let sql = std::fs::read_to_string(path)
        .expect("pgai's SQL")
        .replace("@extschema:vector@", "public")
        .replace("__version__", "0.12.1");
    let mut tx = Db::lazy(admin, 1, Duration::from_secs(10)).begin().await?;
    sqlx::raw_sql("reset role; create extension if not exists vector").execute(&mut *tx).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut *tx).await?;
    tx.commit().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_pgai_set_up_is_used_as_it_is() {
    let cluster = Cluster::private().await;
    let admin = cluster.running().admin;
    // The roles of our pool exist once any database of the server was migrated.
    cluster.database("before").await;
    store::migrate::create_database(&admin.database("postgres"), "pgai", None).await.expect("a database");
    install_pgai(&admin.database("pgai")).await.expect("pgai's own installation");
    let world = World::with(cluster.database("pgai").await, domain::Clock::System).await;
    let mut conn = world.conn().await;
    let functions: i64 = sqlx::query_scalar(
        "select count(*) from pg_proc where pronamespace = 'ai'::regnamespace and proname like '\\_worker\\_%'",
    )
    .fetch_one(&mut *conn)
    .await
    .expect("a count");
    assert_eq!(functions, 3, "pgai's functions were overloaded");
    let id = start(&world, 5).await;
    beat(&world, id, 3, 1, Some("told to")).await;
    let worker = workers::list(&mut conn, &[]).await.expect("workers").remove(0);
    assert_eq!((worker.success_count, worker.error_count, worker.health()), (3, 1, Health::Alive));
    // Its operators clean up themselves: retention leaves the rows alone.
    sqlx::query("update ai.vectorizer_worker_process set last_heartbeat = now() - interval '30 days'")
        .execute(&mut *conn)
        .await
        .expect("aged");
    retention(&mut conn).await;
    assert_eq!(workers::list(&mut conn, &[]).await.expect("workers").len(), 1);
}

#[tokio::test]
async fn a_silent_worker_is_removed_after_a_week() {
    let world = World::now().await;
    start(&world, 5).await;
    start(&world, 5).await;
    let mut conn = world.conn().await;
    let age = "update ai.vectorizer_worker_process set last_heartbeat = now() - interval '8 days' where id = (select id from ai.vectorizer_worker_process limit 1)";
    sqlx::query(age).execute(&mut *conn).await.expect("aged");
    assert_eq!(retention(&mut conn).await, 1, "our row, and pgai's with it");
    assert_eq!(workers::list(&mut conn, &[]).await.expect("workers").len(), 1);
}

#[tokio::test]
async fn progress_moves_its_own_side_and_leaves_the_other() {
    let world = World::now().await;
    let id = start(&world, 5).await;
    let mut conn = world.conn().await;
    let call = async |conn: &mut store::Connection, n: i64, error: Option<&str>| {
        sqlx::query("select ai._worker_progress($1, 42, $2, $3)")
            .bind(id.0)
            .bind(n)
            .bind(error)
            .execute(&mut **conn)
            .await
            .expect("progress");
    };
    type Row = (i64, i64, bool, bool, Option<String>);
    let row = async |conn: &mut store::Connection| -> Row {
        sqlx::query_as(
            "select success_count, error_count, last_success_process_id is not null, last_error_process_id is not null, last_error_message
             from ai.vectorizer_worker_progress where vectorizer_id = 42",
        )
        .fetch_one(&mut **conn)
        .await
        .expect("a row")
    };
    call(&mut conn, 10, None).await;
    assert_eq!(row(&mut conn).await, (10, 0, true, false, None));
    call(&mut conn, 4, Some("rate limited")).await;
    assert_eq!(row(&mut conn).await, (14, 1, true, true, Some("rate limited".into())));
    call(&mut conn, 1, None).await;
    assert_eq!(row(&mut conn).await, (15, 1, true, true, Some("rate limited".into())));
}

#[tokio::test]
async fn alive_late_dead_stalled_and_stopped_are_told_apart_by_the_database() {
    let world = World::now().await;
    let id = start(&world, 10).await;
    let mut conn = world.conn().await;
    let health = async |conn: &mut store::Connection, due: &[(String, chrono::DateTime<chrono::Utc>)]| {
        workers::list(conn, due).await.expect("workers").remove(0).health()
    };
    let silent = async |conn: &mut store::Connection, secs: f64| {
        let sql =
            "update ai.vectorizer_worker_process set last_heartbeat = clock_timestamp() - make_interval(secs => $1)";
        sqlx::query(sql).bind(secs).execute(&mut **conn).await.expect("moved");
    };
    assert_eq!(health(&mut conn, &[]).await, Health::Alive);
    silent(&mut conn, 21.0).await;
    assert_eq!(health(&mut conn, &[]).await, Health::Late);
    silent(&mut conn, 101.0).await;
    assert_eq!(health(&mut conn, &[]).await, Health::Dead);

    let lane = |holding, progressed_secs_ago, claimed_secs_ago| LaneBeat {
        lane: "effects",
        lease_secs: 30,
        holding,
        progressed_secs_ago,
        claimed_secs_ago,
        done: 0,
        failed: 0,
        waited: 0,
        stale: 0,
    };
    let now = chrono::Utc::now();
    let due = [("effects".to_owned(), now - chrono::TimeDelta::seconds(90))];
    for (beat, due, expected) in [
        (lane(1, 59.0, 0.0), &[][..], Health::Alive),
        (lane(1, 61.0, 0.0), &[][..], Health::Stalled),
        (lane(0, 999.0, 999.0), &[][..], Health::Alive), // idle is not stalled
        (lane(0, 999.0, 999.0), &due[..], Health::Stalled),
        (lane(0, 999.0, 1.0), &due[..], Health::Alive), // it looks; others are quicker
    ] {
        workers::heartbeat(&mut conn, id, &Beat::default(), std::slice::from_ref(&beat), false).await.expect("heard");
        assert_eq!(health(&mut conn, due).await, expected, "{beat:?}");
    }
    workers::heartbeat(&mut conn, id, &Beat::default(), &[], true).await.expect("heard");
    assert_eq!(health(&mut conn, &due).await, Health::Stopped);
}
