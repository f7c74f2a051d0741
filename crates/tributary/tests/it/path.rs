//! The whole path under fire: signed events go in, the program and the server die at every step, and every acknowledged event is in
//! memory exactly once. The sender keeps its own ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Clock;
use futures_util::{StreamExt as _, stream};
use rustix::process::Signal;
use serde_json::json;
use store::crash::Point;
use testkit::{Cluster, Ledger, World, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port};
use crate::intake::{MASTER_KEY, Opens, add_channel};

/// One installation with its own database, and the ledger of its sender.
struct Path {
    world: World,
    secrets: Opens,
    ledger: Arc<Ledger>,
    folder: Folder,
    port: u16,
}

impl Path {
    async fn on(cluster: &Cluster, name: &str) -> Self {
        let world = World::with(cluster.database(name).await, Clock::System).await;
        let (_, secrets) = add_channel(&world, world.tenant_id, None).await;
        Self { world, secrets, ledger: Arc::new(Ledger::new(name)), folder: Folder::new(), port: free_port() }
    }

    async fn up(&self, crash: Option<&str>) -> App {
        let mut up = command(&self.folder.0, self.port);
        up.env("DATABASE_URL", self.world.database.admin.uri().reveal()).env("MASTER_KEY", MASTER_KEY);
        if let Some(crash) = crash {
            up.env("TRIBUTARY_CRASH", crash);
        }
        App::start(up, &["up"], self.port).await
    }

    /// Sends events, a few at a time, each until it is acknowledged. Every tenth is too large to lie beside its row.
    fn send(&self, n: usize) -> tokio::task::JoinHandle<()> {
        let url = format!("http://127.0.0.1:{}/ingest/{}", self.port, self.secrets.ingestion_key.reveal());
        let (secret, ledger) = (self.secrets.webhook_secret.clone(), self.ledger.clone());
        tokio::spawn(async move {
            let http = client();
            let send_one = async |nth: usize| {
                let event = Uuid::now_v7();
                let filler = if nth % 10 == 9 { "pad ".repeat(20_000) } else { String::new() };
                let body = json!({ "type": "note", "content": format!("Event {event} came by. {filler}") }).to_string();
                let signature = engine::intake::providers::generic::sign(&secret, body.as_bytes());
                let (begun, mut again) = (Instant::now(), tokio::time::interval(Duration::from_millis(50)));
                loop {
                    let request = http.post(&url).header("x-webhook-signature", &signature);
                    let request =
                        request.header("content-type", "application/json").header("idempotency-key", event.to_string());
                    if let Ok(answer) = request.body(body.clone()).send().await
                        && answer.status().as_u16() == 202
                        && let Ok(said) = answer.json::<serde_json::Value>().await
                    {
                        ledger.write(event, said["id"].as_str().expect("an id"));
                        return;
                    }
                    assert!(begun.elapsed() < Duration::from_secs(180), "event {event} was never acknowledged");
                    again.tick().await;
                }
            };
            stream::iter(0..n).map(send_one).buffer_unordered(6).collect::<Vec<()>>().await;
        })
    }

    async fn run(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&mut *self.world.conn().await).await.expect("done");
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.unwrap_or(-1)
    }

    /// Waits until nothing is on its way, then holds the ledger against what is stored.
    async fn check(&self, after: &str) {
        let on_its_way = "select (select count(*) from pgmq.q_remember_activity) + (select count(*) from activities where processing_status <> 'completed')";
        let settled = wait_until(Duration::from_secs(90), async || self.number(on_its_way).await == 0).await;
        assert!(settled, "I5: {} on their way after {after}", self.number(on_its_way).await);
        let ledger = self.ledger.read();
        let n = ledger.len() as i64;
        let mut conn = self.world.conn().await;
        for (event, answered) in &ledger {
            let answered: Uuid = answered.parse().expect("an id");
            let rows: Vec<(Uuid, i64, i64, i64)> = sqlx::query_as(
                "select a.id, (select count(*) from source_documents d where d.external_id = 'activity:' || a.id and d.text like '%' || $1 || '%'),
                     (select count(*) from document_chunks c join source_documents d on d.id = c.document_id where d.external_id = 'activity:' || a.id and c.text like '%' || $1 || '%'),
                     (select count(*) from tributary.activity_payloads p where p.activity_id = a.id)
                 from activities a where a.event_key = $1",
            )
            .bind(event.to_string())
            .fetch_all(&mut *conn)
            .await
            .expect("rows");
            // Once in the text, once more in the summary that the agent made of it.
            let [(id, documents, chunks, payloads)] = rows[..] else {
                panic!("I2 after {after}: {event} has {} rows", rows.len())
            };
            assert_eq!((id, documents, payloads), (answered, 1, 1), "I1 I2 after {after}: {event}");
            assert!(chunks >= 1, "I1 after {after}: {event} cannot be found");
        }
        assert_eq!(self.number("select count(*) from activities").await, n, "I2 after {after}");
        assert_eq!(self.number("select count(*) from source_documents").await, n, "I2 after {after}");
        let strays = "select count(*) from document_chunks c full join memory.vectors_fast_256 v on v.chunk_id = c.id where v.chunk_id is null or c.id is null";
        assert_eq!(self.number(strays).await, 0, "after {after}");
        println!("{after}: {n} events, 0 lost, 0 doubled");
    }
}

/// F1, I1, I2.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_the_path_every_acknowledged_event_is_in_memory_once() {
    let cluster = Cluster::private().await;
    let is_on_the_path = |point: &Point| {
        ["intake.", "blob.", "remember.", "agent."].iter().any(|begins| point.name().starts_with(begins))
    };
    let points: Vec<Point> = Point::ALL.iter().copied().filter(is_on_the_path).collect();
    assert!(points.len() >= 10, "{points:?}");
    stream::iter(points).map(|point| kill_at(&cluster, point)).buffer_unordered(2).collect::<Vec<()>>().await;
}

async fn kill_at(cluster: &Cluster, point: Point) {
    let path = Path::on(cluster, &format!("path_{}", point.name().replace('.', "_"))).await;
    let mut hurt = path.up(Some(&format!("{}:abort:2", point.name()))).await;
    // One claim may take all 30 at once, and the program dies at the second one: then more events are needed.
    let mut sending = vec![path.send(30)];
    while hurt.ended_within(Duration::from_secs(20)).await.is_none() {
        assert!(sending.len() < 5, "crash point {} was never reached: remove it, or reach it", point.name());
        sending.push(path.send(30));
    }
    // The dead program's leases last for one to five minutes; the test says that they have passed.
    path.run("update pgmq.q_remember_activity set vt = now()").await;
    path.run("update activities set locked_at = now() - interval '6 minutes' where processing_status = 'processing'")
        .await;
    path.run("select unlock_stale_locks()").await;
    let again = path.up(None).await;
    for sender in sending {
        sender.await.expect("the sender");
    }
    path.check(point.name()).await;
    again.signal(Signal::TERM);
}

/// F3, I1, I2.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_killed_under_a_burst_of_events_loses_and_doubles_nothing() {
    let cluster = Cluster::private().await;
    let path = Path::on(&cluster, "path_server").await;
    let _app = path.up(None).await;
    let kills = if testkit::is_slow() { 10 } else { 3 };
    let sending = path.send(100 * kills);
    for _ in 0..kills {
        let (before, ledger) = (path.ledger.read().len(), &path.ledger);
        let is_sending = wait_until(Duration::from_secs(60), async || ledger.read().len() >= before + 20);
        assert!(is_sending.await, "20 more events were not acknowledged within a minute");
        cluster.kill();
        cluster.restart().await;
    }
    sending.await.expect("the sender");
    // A claim whose commit was lost keeps its lock for five minutes. The test says that they have passed for every lock that is
    // older than two seconds, which is long for the built-in agent.
    let old = "update activities set locked_at = now() - interval '6 minutes'
               where processing_status = 'processing' and locked_at < now() - interval '2 seconds'";
    let settled = wait_until(Duration::from_secs(60), async || {
        path.run(old).await;
        path.run("select unlock_stale_locks()").await;
        path.number("select count(*) from activities where processing_status = 'processing'").await == 0
    });
    assert!(settled.await, "I5: the agent's locks do not come back");
    path.check("kills of the server").await;
}
