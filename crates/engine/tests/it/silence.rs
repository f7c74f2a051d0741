//! F5: connections that go silent for good while new ones are carried, as after a fail-over, and a server that is far away.

use std::time::{Duration, Instant};

use engine::Env;
use engine::work::{Lane as _, LaneEntry, Runtime, Stop};
use store::queue::Queue;
use store::{ConnectTo, Db, Error, tenants};
use testkit::effects::{self, Effects};
use testkit::proxy::Proxy;
use testkit::{World, wait_until};

use crate::fair::Long;

/// A database, and a pool that reaches it through a proxy.
struct Far {
    world: World,
    proxy: Proxy,
    db: Db,
}

impl Far {
    async fn new(max_connections: u32) -> Self {
        let world = World::now().await;
        let port = ConnectTo::url(&world.database.url).expect("a URL").port();
        let proxy = Proxy::start(port).await;
        let through = ConnectTo::url(&world.database.url_through(proxy.port)).expect("a URL");
        let db = Db::lazy(&through, max_connections, Duration::from_secs(5));
        Self { world, proxy, db }
    }

    /// How many sessions of this database sleep now.
    async fn sleeping(&self) -> i64 {
        let sql = "select count(*) from pg_stat_activity where datname = current_database() and query like 'select pg_sleep%' and state = 'active'";
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a count")
    }

    /// Opens every session that the pool may have, at once.
    async fn fill(&self, n: usize) -> store::Result<()> {
        let mut held = Vec::new();
        for _ in 0..n {
            let mut conn = self.db.acquire().await?;
            tenants::list(&mut conn).await?;
            held.push(conn);
        }
        Ok(())
    }
}

async fn sleep(conn: &mut sqlx::PgConnection, secs: f64) -> store::Result<()> {
    sqlx::query("select pg_sleep($1)").bind(secs).execute(conn).await?;
    Ok(())
}

/// F5.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_go_silent_for_good_cost_no_place_in_the_pool() {
    const PLACES: usize = 4;
    let far = Far::new(4).await;
    let brief = Duration::from_secs(1);
    for round in 1..=3 {
        let busy: Vec<_> = (0..PLACES)
            .map(|nth| {
                let db = far.db.clone();
                tokio::spawn(async move {
                    let brief = db.within(brief);
                    match nth % 2 {
                        0 => brief.session(async |conn| sleep(conn, 3.0).await).await,
                        _ => brief.write(async |tx| sleep(tx, 3.0).await).await,
                    }
                })
            })
            .collect();
        let is_busy = wait_until(Duration::from_secs(5), async || far.sleeping().await == PLACES as i64);
        assert!(is_busy.await, "round {round}: the pool is not busy");
        far.proxy.forget_all();
        let begun = Instant::now();
        for unit in busy {
            let cut: store::Result<()> = unit.await.expect("a task");
            assert!(matches!(cut, Err(Error::TimedOut)), "{cut:?}");
        }
        let is_whole = wait_until(Duration::from_secs(8), async || {
            tokio::time::timeout(Duration::from_secs(4), far.fill(PLACES)).await.is_ok_and(|filled| filled.is_ok())
        });
        assert!(is_whole.await, "F5, round {round}: {PLACES} silent connections cost the pool its places");
        println!("round {round}: {PLACES} places again after {:?}", begun.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_meets_a_silent_idle_connection_and_the_next_meets_none() {
    let far = Far::new(4).await;
    far.fill(4).await.expect("four sessions");
    let is_idle = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'tributary' and state = 'idle'";
    let all_idle = wait_until(Duration::from_secs(5), async || {
        sqlx::query_scalar::<_, i64>(is_idle).fetch_one(&mut far.world.login_conn().await).await.is_ok_and(|n| n >= 4)
    });
    assert!(all_idle.await, "they are not idle");
    far.proxy.forget_all();
    let list = async |limit: u64| {
        far.db.within(Duration::from_secs(limit)).session(async |conn| tenants::list(conn).await).await
    };
    let first = list(2).await;
    assert!(first.is_ok(), "as /readyz asks: {first:?}");
    for nth in 0..4 {
        let next = list(1).await;
        assert!(next.is_ok(), "caller {nth} met a connection of the same silence: {next:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_whose_caller_gave_up_ends_on_the_server() {
    let far = Far::new(2).await;
    let cut = far.db.within(Duration::from_millis(500)).session(async |conn| sleep(conn, 25.0).await).await;
    assert!(matches!(cut, Err(Error::TimedOut)), "{cut:?}");
    assert_eq!(far.sleeping().await, 1);
    assert!(wait_until(Duration::from_secs(10), async || far.sleeping().await == 0).await, "it sleeps on, unheard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_less_time_than_a_handshake_takes_finds_what_an_earlier_one_began() {
    let far = Far::new(2).await;
    far.proxy.delay(Duration::from_millis(120));
    let hurried = far.db.within(Duration::from_secs(1));
    let mut tries = 0;
    let is_answered = wait_until(Duration::from_secs(15), async || {
        tries += 1;
        hurried.session(async |conn| tenants::list(conn).await).await.is_ok()
    });
    assert!(is_answered.await, "{tries} callers gave up and none was answered");
    assert!(tries > 1, "the handshake was quick: the test proves nothing");
}

static LANES: [LaneEntry; 2] = [LaneEntry::of::<Long>(), LaneEntry::of::<Effects>()];

/// F5.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_connections_go_silent_claims_again_soon_and_keeps_its_leases() {
    let far = Far::new(4).await;
    let (world, stop) = (&far.world, Stop::default());
    let mut tx = world.env.db.begin().await.expect("a transaction");
    Queue::new(Long::NAME).expect("a queue").send(&mut tx, world.tenant_id, &[Long {}]).await.expect("sent");
    tx.commit().await.expect("committed");
    let env = Env { db: far.db.clone(), ..world.env.clone() };
    let running = tokio::spawn(Runtime::new(env, &LANES, &[]).run("test", stop.clone()));
    let mut conn = world.conn().await;
    let mut number =
        async |sql: &'static str| sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *conn).await.expect(sql);
    let held = "select count(*) from pgmq.q_reembed where read_ct = 1 and vt > now()";
    let is_held = wait_until(Duration::from_secs(10), async || number(held).await == 1).await;
    assert!(is_held, "the long item was not taken");
    let lease_end = "select extract(epoch from vt)::bigint from pgmq.q_reembed";
    let end_before = number(lease_end).await;

    far.proxy.forget_all();
    let begun = Instant::now();
    effects::send(&world.env.db, world.tenant_id, uuid::Uuid::now_v7(), "ok").await.expect("sent");
    let is_done = wait_until(Duration::from_secs(10), async || number("select count(*) from effects").await == 1).await;
    assert!(is_done, "F5: the lane does not claim");
    println!("claimed and done {:?} after the silence began", begun.elapsed());
    let is_kept = wait_until(Duration::from_secs(60), async || number(lease_end).await > end_before).await;
    assert!(is_kept && number(held).await == 1, "F5: the lease of a live worker was not kept");
    println!("the lease was extended {:?} after the silence began", begun.elapsed());
    running.abort();
}
