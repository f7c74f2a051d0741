//! The door under fire: the database away, answers lost, the server killed at every step, a row that cannot be stored. What was answered with
//! success is there, once.

use std::time::{Duration, Instant};

use domain::{Clock, Scope};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use store::crash::Point;
use testkit::proxy::Proxy;
use testkit::{Cluster, Ledger, World, wait_until};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port, get};
use crate::intake::{Door, add_channel, id_of, serve};
use crate::lifecycle::Pooler;

/// I6.
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

/// I6.
#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_to_a_server_that_cannot_write_yet_is_told_as_a_wait_and_then_goes_on() {
    use sqlx::Connection as _;
    let door = Door::new().await;
    let send = |n: u32| door.post().header("idempotency-key", format!("e{n}")).json(&json!({ "content": "x" })).send();
    id_of(send(0).await.expect("an answer")).await;

    let (name, admin_uri) = (&door.world.database.name, door.world.database.admin.uri());
    let mut admin = sqlx::PgConnection::connect(admin_uri.reveal()).await.expect("an administrator's session");
    let mut run = async |sql: String| sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut admin).await.expect("done");
    run(format!("alter database {name} set default_transaction_read_only = on")).await;
    run(format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}' and pid <> pg_backend_pid()"
    ))
    .await;
    let late = send(1).await.expect("an answer");
    assert_eq!(late.status().as_u16(), 503, "{}", door.app.printed());
    assert!(late.headers().contains_key("retry-after"));

    run(format!("alter database {name} reset default_transaction_read_only")).await;
    let is_back =
        wait_until(Duration::from_secs(15), async || send(1).await.is_ok_and(|answer| answer.status() == 202)).await;
    assert!(is_back, "I6:\n{}", door.app.printed());
    assert_eq!(door.rows().await, 2, "I2: two events");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_slow_network_events_are_answered() {
    let world = World::now().await;
    let proxy = Proxy::start(port_of(&world)).await;
    let through = world.database.url_through(proxy.port);
    let door = Door::on(world, &through).await;
    let send = |n: u32| door.post().header("idempotency-key", format!("e{n}")).json(&json!({ "content": "x" })).send();
    // From here on every connection has to be opened anew, and a handshake takes longer than a second.
    proxy.delay(Duration::from_millis(120));
    proxy.reset_all();
    for n in 0..3 {
        let begun = Instant::now();
        id_of(send(n).await.expect("an answer")).await;
        println!("event {n} answered after {:?}", begun.elapsed());
    }
    let is_ready = wait_until(Duration::from_secs(20), async || get(&door.app.url, "/readyz").await.0 == 200).await;
    assert!(is_ready, "{}", door.app.printed());
}

/// A self-signed certificate and its key, readable by the pooler's user.
fn certificate(folder: &Folder) -> (String, String) {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.0.join(name).display().to_string());
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    let made = openssl.args(["-out", &cert, "-keyout", &key]).output().expect("openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, readable).expect("a key that the pooler can read");
    (cert, key)
}

/// With TLS and a password a connection takes seven round trips before its first statement. The pinned PostgreSQL is built without TLS, so
/// pgbouncer in front of it speaks it.
#[tokio::test(flavor = "multi_thread")]
async fn over_a_slow_network_with_tls_events_are_answered() {
    let (world, folder, pooler_port) = (World::now().await, Folder::new(), free_port());
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let (cert, key) = certificate(&folder);
    let uri = reqwest::Url::parse(&world.database.url).expect("a URL");
    let (user, password, name) = (uri.username(), uri.password().expect("a password"), &world.database.name);
    let users = folder.0.join("users.txt");
    std::fs::write(&users, format!("\"{user}\" \"{password}\"\n")).expect("a file");
    let config = folder.0.join("pgbouncer.ini");
    let settings = format!(
        "[databases]\n{name} = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={pooler_port}\n\
         unix_socket_dir=\npool_mode=session\nauth_type=scram-sha-256\nauth_file={}\ndefault_pool_size=100\n\
         ignore_startup_parameters=extra_float_digits\nclient_tls_sslmode=require\nclient_tls_cert_file={cert}\nclient_tls_key_file={key}\n",
        port_of(&world),
        users.display()
    );
    std::fs::write(&config, settings).expect("a file");
    let _pooler = Pooler::start(&config);
    let is_listening = wait_until(Duration::from_secs(10), async || {
        tokio::net::TcpStream::connect(("127.0.0.1", pooler_port)).await.is_ok()
    });
    assert!(is_listening.await, "pgbouncer does not start");
    let proxy = Proxy::start(pooler_port).await;
    let through = format!("{}?sslmode=require", world.database.url_through(proxy.port));
    let door = Door::on(world, &through).await;
    let send = |n: u32| door.post().header("idempotency-key", format!("e{n}")).json(&json!({ "content": "x" })).send();
    proxy.delay(Duration::from_millis(120));
    proxy.reset_all();
    for n in 0..3 {
        let begun = Instant::now();
        id_of(send(n).await.expect("an answer")).await;
        println!("event {n} answered after {:?}", begun.elapsed());
    }
    let is_ready = wait_until(Duration::from_secs(20), async || get(&door.app.url, "/readyz").await.0 == 200).await;
    assert!(is_ready, "{}", door.app.printed());
}

/// F5, I6.
#[tokio::test(flavor = "multi_thread")]
async fn when_all_connections_go_silent_under_load_it_is_ready_again_within_ten_seconds() {
    let world = World::now().await;
    let proxy = Proxy::start(port_of(&world)).await;
    let through = world.database.url_through(proxy.port);
    let (folder, port, http) = (Folder::new(), free_port(), client());
    let mut serve = command(&folder.0, port);
    serve.env("DATABASE_URL", &through).env("DB_CONNECTIONS", "8");
    let app = App::start(serve, &["serve"], port).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Read]).await;
    let ask = || http.get(format!("{}/api/v1/documents", app.url)).bearer_auth(key.reveal()).send();
    assert_eq!(ask().await.expect("an answer").status().as_u16(), 200);

    // Sixteen requests: those that have a connection wait for its answer, the others for a connection.
    let mut lock = world.env.db.begin().await.expect("a transaction");
    sqlx::raw_sql("lock table public.source_documents in access exclusive mode")
        .execute(&mut *lock)
        .await
        .expect("locked");
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let busy = futures_util::future::join_all((0..16).map(|_| ask()));
    let silenced = async {
        let mut conn = world.login_conn().await;
        let is_busy = wait_until(Duration::from_secs(5), async || {
            sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut conn).await.is_ok_and(|n| n >= 7)
        });
        assert!(is_busy.await, "the pool is not busy");
        proxy.forget_all();
        lock.rollback().await.expect("unlocked");
        let begun = Instant::now();
        let is_ready = wait_until(Duration::from_secs(10), async || get(&app.url, "/readyz").await.0 == 200).await;
        assert!(is_ready, "F5, I6:\n{}", app.printed());
        println!("ready again {:?} after the silence began", begun.elapsed());
    };
    let (answers, ()) = tokio::join!(busy, silenced);
    // Those that had a connection are told to come again. One that waited may have got a new connection in time.
    let mut n_refused = 0;
    for answer in answers {
        let answer = answer.expect("an answer");
        n_refused += usize::from(answer.status() == 503);
        assert!(answer.status() == 200 || answer.headers().contains_key("retry-after"), "{answer:?}");
    }
    assert!(n_refused >= 7, "only {n_refused} requests met a silent connection");
    let is_whole = async || futures_util::future::join_all((0..16).map(|_| ask())).await;
    for answer in is_whole().await {
        assert_eq!(answer.expect("an answer").status().as_u16(), 200, "the pool has lost places");
    }
}

fn port_of(world: &World) -> u16 {
    store::ConnectTo::url(&world.database.url).expect("a URL").port()
}

/// F6.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_makes_no_second_row() {
    let world = World::now().await;
    let proxy = Proxy::start(port_of(&world)).await;
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

/// F27.
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

/// F8: the server aborts a group of events for the sake of others, and the group is written again.
#[tokio::test(flavor = "multi_thread")]
async fn events_whose_group_is_aborted_are_written_again_and_answered_once_each() {
    let door = Door::new().await;
    let mut admin = store::bench::administrator(&door.world.database.admin).await.expect("the superuser");
    for (nth, code) in ["40P01", "40001", "55P03"].into_iter().enumerate() {
        // A sequence counts the writes: it does not roll back with them.
        let sql = format!(
            "drop sequence if exists public.hiccups; create sequence public.hiccups; grant usage on sequence public.hiccups to public;
             create or replace function public.hiccup() returns trigger language plpgsql as $$
             begin if nextval('public.hiccups') <= 3 then raise exception 'told to fail' using errcode = '{code}'; end if; return null; end $$;
             drop trigger if exists hiccup on public.activities;
             create trigger hiccup after insert on public.activities for each statement execute function public.hiccup()"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut admin).await.expect("a trigger");
        let events = (0..20).map(|n| {
            door.post().header("idempotency-key", format!("{code}-{n}")).json(&json!({ "content": "x" })).send()
        });
        let answers = stream::iter(events).buffer_unordered(10).collect::<Vec<_>>().await;
        let mut ids = std::collections::HashSet::new();
        for answer in answers {
            ids.insert(id_of(answer.expect("an answer")).await);
        }
        assert_eq!(ids.len(), 20, "F8: {code}");
        assert_eq!(door.rows().await, 20 * (nth as i64 + 1), "F8, I2: {code}");
    }
}

/// Opens sessions until the server has none left for an ordinary role.
async fn take_all_sessions(world: &World) -> Vec<sqlx::PgConnection> {
    use sqlx::Connection as _;
    let mut taken = Vec::new();
    while let Ok(conn) = sqlx::PgConnection::connect(&world.database.url).await {
        taken.push(conn);
    }
    taken
}

/// F9, I6: somebody holds every session that the server has.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_has_no_session_left_senders_are_told_to_wait_and_it_goes_on_by_itself() {
    let cluster = Cluster::private().await;
    let database = cluster.database("taken").await;
    let url = database.url.clone();
    let mut door = Door::on(World::with(database, Clock::System).await, &url).await;
    let send = |n: u32| door.post().header("idempotency-key", format!("e{n}")).json(&json!({ "content": "x" })).send();
    id_of(send(0).await.expect("an answer")).await;
    let mut taken = take_all_sessions(&door.world).await;
    assert!(!taken.is_empty(), "the server had no session from the beginning");
    id_of(send(1).await.expect("an answer")).await; // it has sessions of its own

    // It loses them, and they are taken before it asks for others.
    let mut admin = store::bench::administrator(&cluster.running().admin.database("taken")).await.expect("a superuser");
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = current_database() and application_name like 'tributary%' and pid <> pg_backend_pid()";
    let is_away = wait_until(Duration::from_secs(20), async || {
        let ended: i64 = sqlx::query_scalar(end).fetch_one(&mut admin).await.expect("ended");
        taken.extend(take_all_sessions(&door.world).await);
        ended == 0
    });
    assert!(is_away.await, "it still has sessions");
    let begun = Instant::now();
    let late = send(2).await.expect("an answer");
    assert_eq!(late.status().as_u16(), 503, "F9");
    assert!(late.headers().contains_key("retry-after"), "F9: it does not say when");
    println!("told to wait after {:?} with {} sessions held", begun.elapsed(), taken.len());

    drop(taken);
    let begun = Instant::now();
    let is_back =
        wait_until(Duration::from_secs(15), async || send(2).await.is_ok_and(|answer| answer.status() == 202)).await;
    assert!(is_back, "F9, I6:\n{}", door.app.printed());
    println!("accepted again {:?} after the sessions were free", begun.elapsed());
    assert!(door.app.ended_within(Duration::ZERO).await.is_none(), "I6");
    assert_eq!(door.rows().await, 3, "I2: three events");
}

/// A session of the server, as soon as it accepts any.
async fn recovered(world: &World) -> sqlx::PgConnection {
    use sqlx::Connection as _;
    let mut conn = None;
    let is_back = wait_until(Duration::from_secs(30), async || {
        conn = sqlx::PgConnection::connect(&world.database.url).await.ok();
        conn.is_some()
    });
    assert!(is_back.await, "the server does not recover");
    conn.expect("a session")
}

/// F4, I6: one backend of the server is killed while events arrive.
#[tokio::test(flavor = "multi_thread")]
async fn one_backend_killed_under_a_burst_of_events_loses_and_doubles_nothing() {
    let cluster = Cluster::private().await;
    let database = cluster.database("burst").await;
    let url = database.url.clone();
    let door = Door::on(World::with(database, Clock::System).await, &url).await;
    let (ledger, kills) = (Ledger::new("burst"), if testkit::is_slow() { 10 } else { 3 });
    for _ in 0..kills {
        let events: Vec<Uuid> = (0..60).map(|_| Uuid::now_v7()).collect();
        let send = async |event: Uuid| {
            let request = door.post().header("idempotency-key", event.to_string());
            let is_taken = wait_until(Duration::from_secs(30), async || {
                let sent = request.try_clone().expect("a request").json(&json!({ "content": "x" })).send().await;
                match sent {
                    Ok(answer) if answer.status() == 202 => {
                        ledger.write(event, &id_of(answer).await.to_string());
                        true
                    }
                    Ok(answer) => {
                        assert!(answer.status() == 503 && answer.headers().contains_key("retry-after"), "{answer:?}");
                        false
                    }
                    Err(_) => false,
                }
            });
            assert!(is_taken.await, "{event} was never taken");
        };
        let killed = async {
            let mut conn = recovered(&door.world).await; // from the kill before
            let any = "select pid from pg_stat_activity where datname = current_database() and usename = current_user
                and pid <> pg_backend_pid() order by state <> 'idle' desc, random() limit 1";
            let pid: i32 = sqlx::query_scalar(any).fetch_one(&mut conn).await.expect("a backend");
            testkit::cluster::kill(u32::try_from(pid).expect("a pid"), rustix::process::Signal::KILL);
        };
        let burst = stream::iter(&events).map(|event| send(*event)).buffer_unordered(8).collect::<Vec<()>>();
        tokio::join!(burst, killed);
    }
    let mut conn = recovered(&door.world).await; // the pool's own are of before
    sqlx::raw_sql("set role service_role").execute(&mut conn).await.expect("the service's role");
    let rows: Vec<(String, Uuid)> =
        sqlx::query_as("select event_key, id from public.activities").fetch_all(&mut conn).await.expect("rows");
    let promised = ledger.read();
    assert_eq!(rows.len(), promised.len(), "F4, I1 I2");
    for (event, id) in rows {
        let told = promised.get(&event.parse().expect("an event")).expect("a row that nobody was promised");
        assert_eq!(*told, id.to_string(), "F4: {event} was promised as another activity");
    }
    println!("{kills} backends killed, {} events, 0 lost, 0 doubled", promised.len());
}
