//! The door while the server's disk is full, or fails to sync. What was answered with success is there, once.

use std::time::Duration;

use domain::Clock;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use testkit::disk::{BadDisk, Failure};
use testkit::{Ledger, World, wait_until};
use uuid::Uuid;

use crate::intake::{Door, id_of};

const SOON: Duration = Duration::from_secs(40);

struct House {
    disk: BadDisk,
    door: Door,
    ledger: Ledger,
    rng: std::sync::Mutex<rand::rngs::StdRng>,
}

impl House {
    async fn new(name: &str) -> Self {
        let disk = BadDisk::new().await;
        let database = disk.cluster.database(name).await;
        let url = database.url.clone();
        let door = Door::on(World::with(database, Clock::System).await, &url).await;
        let rng = std::sync::Mutex::new(rand::rngs::StdRng::seed_from_u64(20_261_116));
        Self { disk, door, ledger: Ledger::new(name), rng }
    }

    /// Sends an event that cannot be compressed, so that tables and the log grow. True: it was acknowledged, and is in the ledger. A refusal
    /// says when to come again.
    async fn send(&self, event: Uuid) -> bool {
        let bytes: Vec<u8> = {
            let mut rng = self.rng.lock().expect("random bytes");
            (0..20_000).map(|_| rng.random_range(b'!'..=b'~')).collect()
        };
        let content = String::from_utf8(bytes).expect("plain characters");
        let request = self.door.post().header("idempotency-key", event.to_string());
        let answer = request.json(&json!({ "content": content })).send().await.expect("an answer");
        if answer.status() == 202 {
            self.ledger.write(event, &id_of(answer).await.to_string());
            return true;
        }
        assert_eq!(answer.status().as_u16(), 503, "{}", self.door.app.printed());
        assert!(answer.headers().contains_key("retry-after"), "it does not say when");
        false
    }

    async fn send_until_taken(&self, event: Uuid, why: &str) {
        let is_taken = wait_until(SOON, async || self.send(event).await).await;
        assert!(is_taken, "I6: {why}: nothing is taken any more\n{}", self.door.app.printed());
    }

    /// Sends new events until one is refused, and returns that one.
    async fn send_until_refused(&self, why: &str) -> Uuid {
        for _ in 0..2_000 {
            let event = Uuid::now_v7();
            if !self.send(event).await {
                return event;
            }
        }
        panic!("{why}: the disk is never full");
    }

    /// Holds the rows against the ledger.
    async fn check(&self, code: &str) {
        let mut conn = self.door.world.login_conn().await; // the pool's own may be of a server that crashed
        sqlx::raw_sql("set role service_role").execute(&mut conn).await.expect("the service's role");
        let rows: Vec<(String, Uuid)> =
            sqlx::query_as("select event_key, id from public.activities").fetch_all(&mut conn).await.expect("rows");
        let promised = self.ledger.read();
        assert_eq!(rows.len(), promised.len(), "{code}, I1 I2: rows and successes");
        for (event, id) in rows {
            let told = promised.get(&event.parse().expect("an event")).expect("a row that nobody was promised");
            assert_eq!(*told, id.to_string(), "{code}: {event} was promised as another activity");
        }
        println!("{code}: {} events acknowledged, all of them there, once", promised.len());
    }
}

/// F11, I6.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_as_a_wait_and_costs_nothing_that_was_acknowledged() {
    let house = House::new("full").await;
    for _ in 0..5 {
        assert!(house.send(Uuid::now_v7()).await);
    }
    house.disk.fail(Failure::FullData);
    let late = house.send_until_refused("tables").await;
    house.disk.mend(Failure::FullData);
    house.send_until_taken(late, "there is room for tables again").await;

    // Without room for its log the server gives up, and cannot even be started.
    house.disk.fail(Failure::FullWal);
    let late = house.send_until_refused("the log").await;
    house.disk.mend(Failure::FullWal);
    house.disk.cluster.restart().await;
    house.send_until_taken(late, "there is room for the log again").await;
    house.check("F11").await;
}

/// F12, I6.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_fsync_ends_the_server_and_costs_nothing_that_was_acknowledged() {
    let house = House::new("unsynced").await;
    for failure in [Failure::UnsyncedWal, Failure::UnsyncedData] {
        for _ in 0..5 {
            house.send_until_taken(Uuid::now_v7(), "before").await;
        }
        let mut witness = house.door.world.login_conn().await;
        house.disk.fail(failure);
        let late = Uuid::now_v7();
        let is_late = house.send(late).await;
        // The log is synced with every commit, tables by a checkpoint.
        let mut admin = store::bench::administrator(&house.door.world.database.admin).await.expect("the superuser");
        let _ = sqlx::raw_sql("checkpoint").execute(&mut admin).await; // its session ends with the server
        assert!(wait_until(SOON, async || house.disk.has_failed(failure)).await, "{failure:?}: nothing was synced");
        let has_crashed = wait_until(SOON, async || sqlx::raw_sql("select 1").execute(&mut witness).await.is_err());
        assert!(has_crashed.await, "F12: the server went on after {failure:?}");
        if !is_late {
            house.send_until_taken(late, "it has recovered").await;
        }
        house.send_until_taken(Uuid::now_v7(), "it has recovered").await;
    }
    house.check("F12").await;
}
