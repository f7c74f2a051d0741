//! The suite that crash tests run: senders with a ledger, a worker that is hurt, a clean worker that drains, and the comparison.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use domain::Clock;
use store::Db;
use testkit::cluster::Database;
use testkit::effects::{self, KINDS};
use testkit::process::Worker;
use testkit::{Ledger, World, wait_until};
use uuid::Uuid;

/// Starts a worker of the tests' lane.
pub fn worker(database_url: &str, crash: Option<&str>, bug: Option<&str>) -> Worker {
    let env: Vec<_> = bug.map(|bug| ("CRASHLING_BUG", bug)).into_iter().collect();
    crate::programs::crashling(database_url, crash, &env)
}

pub struct Suite {
    pub world: World,
    pub ledger: Ledger,
}

/// The result of a run. Lost and doubled must be 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub inputs: usize,
    pub lost: usize,
    pub doubled: usize,
    pub stuck: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} inputs, {} lost, {} doubled, {} stuck", self.inputs, self.lost, self.doubled, self.stuck)
    }
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.inputs > 0 && (self.lost, self.doubled, self.stuck) == (0, 0, 0)
    }
}

impl Suite {
    pub async fn new(database: Database, name: &str) -> Self {
        Self { world: World::with(database, Clock::System).await, ledger: Ledger::new(name) }
    }

    /// Sends items of every kind and writes each into the ledger once it was acknowledged; a send without an answer is repeated.
    pub async fn send(&self, db: &Db, n: usize) {
        self.send_kinds(db, n, KINDS).await;
    }

    pub async fn send_kinds(&self, db: &Db, n: usize, kinds: &[&str]) {
        for nth in 0..n {
            let (item, kind) = (Uuid::now_v7(), kinds[nth % kinds.len()]);
            let (begun, mut again) = (Instant::now(), tokio::time::interval(Duration::from_millis(50)));
            while effects::send(db, self.world.tenant_id, item, kind).await.is_err() {
                assert!(begun.elapsed() < Duration::from_secs(120), "item {item} could not be sent");
                again.tick().await;
            }
            self.ledger.write(item, kind);
        }
    }

    /// Waits until `n` items were acknowledged in all: the sender is under way, and so are the workers.
    pub async fn has_sent(&self, n: usize) {
        let is_sent = wait_until(Duration::from_secs(60), async || self.ledger.read().len() >= n);
        assert!(is_sent.await, "the sender did not come to {n} items within a minute");
    }

    /// Waits until no item is left in the queue. Parked items are called back, because two hours are too long for a test.
    pub async fn drain(&self, limit: Duration) -> bool {
        wait_until(limit, async || self.call_back().await.is_ok_and(|left| left == 0)).await
    }

    async fn call_back(&self) -> store::Result<i64> {
        let mut tx = self.world.env.db.begin().await?;
        sqlx::query("update tributary.parked set until = now() - interval '1 second' where until > now()")
            .execute(&mut *tx)
            .await?;
        let (queued, parked): (i64, i64) =
            sqlx::query_as("select (select count(*) from pgmq.q_effects), (select count(*) from tributary.parked)")
                .fetch_one(&mut *tx)
                .await?;
        let asked: i64 = sqlx::query_scalar("select count(*) from pgmq.q_upkeep where message ->> 'task' = 'unpark'")
            .fetch_one(&mut *tx)
            .await?;
        if parked > 0 && asked == 0 {
            let upkeep = store::queue::Queue::new("upkeep")?;
            upkeep.send(&mut tx, self.world.tenant_id, &[serde_json::json!({ "task": "unpark" })]).await?;
        }
        tx.commit().await?;
        Ok(queued + parked)
    }

    /// Compares the ledger with the effects.
    pub async fn verdict(&self) -> Verdict {
        let mut conn = self.world.conn().await;
        let effects: HashMap<Uuid, i64> = sqlx::query_as("select item, count(*) from effects group by item")
            .fetch_all(&mut *conn)
            .await
            .expect("effects")
            .into_iter()
            .collect();
        let stuck: i64 =
            sqlx::query_scalar("select count(*) from pgmq.q_effects").fetch_one(&mut *conn).await.expect("a count");
        let promised = self.ledger.read();
        let mut verdict =
            Verdict { inputs: promised.len(), stuck: usize::try_from(stuck).unwrap_or(0), ..Verdict::default() };
        for (item, kind) in &promised {
            let wanted = i64::from(kind != "cancel");
            let found = effects.get(item).copied().unwrap_or(0);
            verdict.lost += usize::from(found < wanted);
            verdict.doubled += usize::from(found > wanted);
        }
        verdict
    }

    /// The number of late writes that were refused, as the workers counted them.
    pub async fn stale(&self) -> i64 {
        let mut conn = self.world.conn().await;
        let stale: Option<i64> =
            sqlx::query_scalar("select sum(stale)::bigint from tributary.worker_lanes where lane = 'effects'")
                .fetch_one(&mut *conn)
                .await
                .expect("a sum");
        stale.unwrap_or(0)
    }
}
