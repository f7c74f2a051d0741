//! Worker tracking, as other programs read it.

use std::time::Duration;

use domain::WorkerId;
use store::workers::{self, Beat, Health, LaneBeat};
use testkit::World;

async fn start(world: &World, interval_secs: u64) -> WorkerId {
    let mut conn = world.conn().await;
    workers::start(&mut conn, "1.0", Duration::from_secs(interval_secs), "host", 7, "worker").await.expect("started")
}

async fn beat(world: &World, id: WorkerId, successes: i64, errors: i64, last_error: Option<&str>) {
    let mut conn = world.conn().await;
    let beat = Beat { successes, errors, last_error: last_error.map(Into::into) };
    workers::heartbeat(&mut conn, id, &beat, &[], false).await.expect("heard");
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
