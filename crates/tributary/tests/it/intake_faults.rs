//! The door under fire: the database away, answers lost, the server killed at every step, a row that cannot be stored. What was answered with
//! success is there, once.

use std::time::{Duration, Instant};

use domain::Clock;
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use store::crash::Point;
use testkit::proxy::Proxy;
use testkit::{Cluster, Ledger, World, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client};
use crate::intake::{Door, add_channel, id_of, serve};

#[tokio::test(flavor = "multi_thread")]
async fn while_postgresql_is_away_events_are_held_then_told_to_wait_and_it_comes_back_by_itself() {
    let cluster = Cluster::private().await;
    let database = cluster.database("away").await;
    let url = database.url.clone();
    let door = Door::on(World::with(database, Clock::System).await, &url).await;
    let send = |n: u32| door.post().header("idempotency-key", format!("e{n}")).json(&json!({ "content": "x" })).send();
    id_of(send(0).await.expect("an answer")).await;

    cluster.kill();
    let (held, _) = tokio::join!(send(1), cluster.restart());
    id_of(held.expect("an answer")).await; // neither lost nor refused: it waited

    cluster.kill();
    let begun = Instant::now();
    let late = send(2).await.expect("an answer");
    let took = begun.elapsed();
    assert_eq!(late.status().as_u16(), 503);
    assert!(late.headers().contains_key("retry-after"));
    assert!((9..12).contains(&took.as_secs()), "held for {took:?}");
    let stranger = door.http.post(format!("{}/ingest/nobody", door.app.url)).body("x").send().await;
    assert_eq!(stranger.expect("an answer").status().as_u16(), 503, "a key that nobody can look up");
    cluster.restart().await;
    let begun = Instant::now();
    let is_back =
        wait_until(Duration::from_secs(10), async || send(2).await.is_ok_and(|answer| answer.status() == 202)).await;
    assert!(is_back, "I6:\n{}", door.app.printed());
    println!("held for {took:?}; accepted again {:?} after the server was back", begun.elapsed());
    let mut conn = door.world.login_conn().await; // the pool's own are of the killed server
    sqlx::raw_sql("set role service_role").execute(&mut conn).await.expect("the service's role");
    let rows: i64 =
        sqlx::query_scalar("select count(*) from public.activities").fetch_one(&mut conn).await.expect("a count");
    assert_eq!(rows, 3, "I2: three events");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_makes_no_second_row() {
    let world = World::now().await;
    let (_, port_and_name) = world.database.url.rsplit_once(':').expect("a port");
    let proxy = Proxy::start(port_and_name.split('/').next().expect("a port").parse().expect("a number")).await;
    let through = world.database.url_through(proxy.port);
    let door = Door::on(world, &through).await;
    let mut ids = Vec::new();
    for (n, key) in [Some("evt-1"), None, Some("evt-2")].into_iter().enumerate() {
        proxy.lose_commit_replies(1);
        let request = key.into_iter().fold(door.post(), |request, key| request.header("webhook-id", key));
        ids.push(id_of(request.json(&json!({ "content": "x" })).send().await.expect("an answer")).await);
        assert_eq!(proxy.commits_lost() as usize, n + 1, "no answer was lost");
    }
    let mut conn = door.world.conn().await;
    let rows: Vec<Uuid> =
        sqlx::query_scalar("select id from public.activities order by id").fetch_all(&mut *conn).await.expect("rows");
    assert_eq!(rows, ids.iter().map(|id| id.0).collect::<Vec<_>>(), "F6, I2");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_crash_point_of_intake_nothing_acknowledged_is_lost_and_nothing_doubled() {
    let cluster = Cluster::private().await;
    let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| point.name().starts_with("intake.")).collect();
    assert_eq!(points.len(), 4);
    let kills = stream::iter(points).map(|point| kill_at(&cluster, point)).buffer_unordered(2).collect::<Vec<usize>>();
    println!("{} kills", kills.await.iter().sum::<usize>());
}

/// A sender that writes down every success, and sends again what got no answer, to a server that dies at `point`.
async fn kill_at(cluster: &Cluster, point: Point) -> usize {
    let name = point.name().replace('.', "_");
    let world = World::with(cluster.database(&name).await, Clock::System).await;
    let (_, secrets) = add_channel(&world, world.tenant_id, None).await;
    let (ledger, folder, http) = (Ledger::new(&name), Folder::new(), client());
    let rounds: usize = if testkit::is_slow() { 10 } else { 3 };
    let mut sent: Vec<Uuid> = Vec::new();
    for round in 1..=rounds {
        let events: Vec<Uuid> = (0..40).map(|_| Uuid::now_v7()).collect();
        let send = async |app: &App, event: Uuid| {
            let request = http.post(format!("{}/ingest/{}", app.url, secrets.ingestion_key.reveal()));
            let request = request.bearer_auth(secrets.bearer.reveal()).header("idempotency-key", event.to_string());
            let Ok(answer) = request.json(&json!({ "content": "x" })).send().await else { return false };
            if answer.status() == 202 {
                ledger.write(event, &id_of(answer).await.to_string());
                return true;
            }
            false
        };
        let mut hurt = serve(&folder, &world.database.url, Some(&format!("{}:abort:{round}", point.name()))).await;
        let answered: Vec<bool> =
            stream::iter(&events).map(|event| send(&hurt, *event)).buffered(8).collect::<Vec<_>>().await;
        let ended = hurt.ended_within(Duration::from_secs(10)).await;
        assert!(ended.is_some(), "{} was never reached: remove it, or reach it", point.name());
        let clean = serve(&folder, &world.database.url, None).await;
        for (event, _) in events.iter().zip(&answered).filter(|(_, is_answered)| !**is_answered) {
            assert!(send(&clean, *event).await, "{event} was refused by a healthy server");
        }
        sent.extend(events);
    }
    let rows: Vec<(String, Uuid)> = sqlx::query_as("select event_key, id from public.activities")
        .fetch_all(&mut *world.conn().await)
        .await
        .expect("rows");
    let promised = ledger.read();
    assert_eq!(promised.len(), sent.len());
    assert_eq!(rows.len(), sent.len(), "I1 I2 after kill -9 at {}: lost or doubled", point.name());
    for (event, id) in rows {
        let told = promised.get(&event.parse().expect("an event")).expect("a row that nobody was promised");
        assert_eq!(*told, id.to_string(), "F27: {event} was promised as another activity");
    }
    println!("{}: {} events, {rounds} kills, 0 lost, 0 doubled", point.name(), sent.len());
    rounds
}

#[tokio::test(flavor = "multi_thread")]
async fn one_senders_impossible_row_does_not_spoil_the_others() {
    let door = Door::new().await;
    let doomed = door.world.other_tenant("leaving").await;
    let (_, theirs) = add_channel(&door.world, doomed, None).await;
    let url = format!("{}/ingest/{}", door.app.url, theirs.ingestion_key.reveal());
    let send_theirs =
        || door.http.post(&url).bearer_auth(theirs.bearer.reveal()).json(&json!({ "content": "x" })).send();
    id_of(send_theirs().await.expect("an answer")).await;
    sqlx::query("delete from public.tenants where id = $1")
        .bind(doomed.0)
        .execute(&mut *door.world.conn().await)
        .await
        .expect("deleted");
    // The server still remembers their channel; the database refuses their rows, and with them the groups they are in.
    let ours = (0..60).map(|_| door.post().json(&json!({ "content": "x" })).send());
    let (ours, theirs) = tokio::join!(
        stream::iter(ours).buffer_unordered(30).collect::<Vec<_>>(),
        stream::iter((0..20).map(|_| send_theirs())).buffer_unordered(10).collect::<Vec<_>>()
    );
    assert!(ours.into_iter().all(|answer| answer.is_ok_and(|answer| answer.status() == 202)));
    assert!(theirs.into_iter().all(|answer| answer.is_ok_and(|answer| answer.status() == 401)));
    assert_eq!(door.rows().await, 60);
}
