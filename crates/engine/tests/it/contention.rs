//! Units of work that the server aborts because of others: deadlocks, serialization failures, lock timeouts. The whole unit is done again, and
//! has one effect.

use std::time::Duration;

use chrono::TimeDelta;
use engine::work::{Runtime, Stop};
use sqlx::{AssertSqlSafe, PgConnection};
use testkit::sources::HUBSPOT;
use testkit::{Sources, World, effects, wait_until};
use uuid::Uuid;

/// Makes the first `n` writes of a table fail with this code, from within their transactions. A sequence counts them: it does not roll back.
async fn fail_first_writes(world: &World, table: &str, code: &str, n: i64) {
    let mut admin = store::bench::administrator(&world.database.admin).await.expect("the superuser");
    let sql = format!(
        "drop sequence if exists public.hiccups; create sequence public.hiccups; grant usage on sequence public.hiccups to public;
         create or replace function public.hiccup() returns trigger language plpgsql as $$
         begin if nextval('public.hiccups') <= {n} then raise exception 'told to fail' using errcode = '{code}'; end if; return null; end $$;
         drop trigger if exists hiccup on {table};
         create trigger hiccup after insert on {table} for each statement execute function public.hiccup()"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.expect("a trigger");
}

async fn number(conn: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(conn).await.expect(sql)
}

/// F8: a real deadlock, of which our own unit is the victim.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_loses_a_deadlock_is_done_again_whole() {
    let world = World::now().await;
    let mut other = store::bench::administrator(&world.database.admin).await.expect("the superuser");
    let setup = "create or replace function public.wait_turn() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(7); return null; end $$;
        create trigger wait_turn after insert on public.effects for each row execute function public.wait_turn()";
    sqlx::raw_sql(setup).execute(&mut other).await.expect("a trigger");
    // The other side looks for deadlocks first, and is the one to give way.
    let hold = "set deadlock_timeout = '1min'; begin; select pg_advisory_xact_lock(7)";
    sqlx::raw_sql(hold).execute(&mut other).await.expect("a lock");
    effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
    let stop = Stop::default();
    let running = tokio::spawn(Runtime::new(world.env.clone(), effects::lanes(None), &[]).run("test", stop.clone()));
    let mut conn = world.conn().await;
    let waiting = "select count(*) from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and l.locktype = 'advisory' and not l.granted";
    assert!(wait_until(Duration::from_secs(10), async || number(&mut conn, waiting).await == 1).await, "no unit waits");
    // It has deleted its message and waits for us; now we wait for its message.
    sqlx::raw_sql("select * from pgmq.q_effects for update").execute(&mut other).await.expect("the winner");
    assert_eq!(number(&mut conn, "select count(*) from effects").await, 0, "F8: a part of the unit stayed");
    sqlx::raw_sql("rollback").execute(&mut other).await.expect("over");
    let is_done = wait_until(Duration::from_secs(20), async || {
        number(&mut conn, "select count(*) from pgmq.q_effects").await == 0
    });
    assert!(is_done.await, "F8: it was not done again");
    stop.stop();
    running.await.expect("ended");
    assert_eq!(number(&mut conn, "select count(*) from effects").await, 1, "F8, I2");
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    let was_deadlock = wait_until(Duration::from_secs(5), async || number(&mut conn, deadlocks).await == 1);
    assert!(was_deadlock.await, "there was no deadlock: the test proves nothing");
}

/// F8.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_server_aborts_for_others_sake_is_done_again_and_has_one_effect() {
    let world = World::new().await;
    world.env.clock.advance(TimeDelta::days(3_650)); // past the database's own now
    let mut conn = world.conn().await;
    let codes = ["40P01", "40001", "55P03"];
    for code in codes {
        fail_first_writes(&world, "public.effects", code, 2).await;
        effects::send(&world.env.db, world.tenant_id, Uuid::now_v7(), "ok").await.expect("sent");
        for attempt in 1..=3 {
            assert_eq!(number(&mut conn, "select count(*) from pgmq.q_effects").await, 1, "{code}, attempt {attempt}");
            world.run_lanes(effects::lanes(None)).await;
            world.env.clock.advance(TimeDelta::minutes(11));
        }
        assert_eq!(number(&mut conn, "select count(*) from pgmq.q_effects").await, 0, "F8: {code}");
    }
    assert_eq!(number(&mut conn, "select count(*) from effects").await, codes.len() as i64, "F8, I2");
    assert_eq!(number(&mut conn, "select count(*) from pgmq.a_effects").await, 0, "F8: given up");
}

/// F8, I4: a page of a sync, whose documents, place and message are one unit.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_write_is_aborted_is_written_again_whole() {
    let t = Sources::new().await;
    let source = t.connect(HUBSPOT).await;
    t.run().await;
    let expected = t.documents(source).await;
    assert!(!expected.is_empty());

    for code in ["40P01", "40001"] {
        let again = Sources::new().await;
        let source = again.connect(HUBSPOT).await;
        fail_first_writes(&again.world, "public.source_documents", code, 2).await;
        let is_read = wait_until(Duration::from_secs(60), async || {
            again.run().await;
            again.world.env.clock.advance(TimeDelta::minutes(11));
            again.jobs(source).await.iter().all(|job| job.status.is_over())
        });
        assert!(is_read.await, "F8: {code}: the sync does not end");
        assert_eq!(again.documents(source).await, expected, "F8, I4: {code}");
    }
}
