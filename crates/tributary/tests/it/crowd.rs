//! Many at the door: a caller that takes all that there is for one channel, key or address leaves the others what is theirs.

use std::time::Duration;

use domain::{Scope, Secret};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use testkit::{World, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::app::{App, Folder, client, command, free_port, get};
use crate::channels::House;
use crate::http::Site;
use crate::intake::{Door, MASTER_KEY, Opens, add_channel, sign};
use crate::timing::begin;

const SOON: Duration = Duration::from_secs(20);
const MEGABYTE: usize = 1 << 20;

fn address(app: &App) -> &str {
    app.url.strip_prefix("http://").expect("an address")
}

/// A request that announces a megabyte, without a signature, and sends these bytes of it.
async fn announce(app: &App, to: &Opens, bytes: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(address(app)).await.expect("a connection");
    let target = format!("/ingest/{}", to.ingestion_key.reveal());
    let head = format!("POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {MEGABYTE}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.expect("sent");
    let _ = socket.write_all(bytes).await; // refused while it is sent, perhaps
    socket
}

/// Sends signed events and returns how many were answered with each status.
async fn send_signed(door: &Door, to: &Opens, n: usize) -> Vec<u16> {
    let url = format!("{}/ingest/{}", door.app.url, to.ingestion_key.reveal());
    let body = json!({ "content": "signed" }).to_string();
    let signature = sign(&to.webhook_secret, body.as_bytes());
    let one = |_| {
        let request = door.http.post(&url).header("content-type", "application/json").body(body.clone());
        request.header("x-webhook-signature", &signature).send()
    };
    let answers = stream::iter(0..n).map(one).buffer_unordered(4).collect::<Vec<_>>().await;
    answers.into_iter().map(|answer| answer.expect("an answer").status().as_u16()).collect()
}

/// A counter of the server, by the labels that its line has.
pub async fn counted(app: &App, name: &str, labels: &[&str]) -> u64 {
    let (_, said) = get(&app.url, "/metrics").await;
    let lines = said.lines().filter(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

/// Whether the server has read what was sent to it: nothing is left with the kernel, on either side.
fn has_read_all(app: &App) -> bool {
    let port: u16 = address(app).rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let port = format!(":{port:04X}");
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's sockets");
    sockets.lines().skip(1).all(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_of_server = [1, 2].iter().any(|end| fields[*end].ends_with(&port));
        !is_of_server || fields[4] == "00000000:00000000" // to be sent, and to be read
    })
}

/// S32: one channel's URL, without its secret, closes the door for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_that_never_finish_hold_one_channel_and_nobody_elses() {
    let door = Door::new().await;
    let held_tenant = door.world.other_tenant("held").await;
    let (held_id, held) = add_channel(&door.world, held_tenant, None).await;
    let (_, sibling) = add_channel(&door.world, held_tenant, None).await;
    let mut silent = Vec::new();
    for _ in 0..700 {
        silent.push(announce(&door.app, &held, b"").await);
    }
    let mut slow = Vec::new();
    for _ in 0..300 {
        slow.push(announce(&door.app, &held, b"{").await);
    }
    let trickling = tokio::spawn(async move {
        loop {
            for socket in &mut slow {
                let _ = socket.write_all(b" ").await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    for (whose, opens) in [("another tenant", &door.secrets), ("the same channel", &held)] {
        let statuses = send_signed(&door, opens, 200).await;
        assert!(statuses.iter().all(|status| *status == 202), "S32: {whose}'s signed events: {statuses:?}");
    }

    // All but the last byte: these take what there is for the channel.
    let almost = vec![b' '; MEGABYTE - 1];
    let mut full = Vec::new();
    for _ in 0..100 {
        full.push(announce(&door.app, &held, &almost).await);
    }
    let is_full =
        async || counted(&door.app, "tributary_intake_refused_total", &["\"full\"", &held_id.to_string()]).await;
    assert!(wait_until(SOON, async || is_full().await > 0).await, "the channel's share has no end");
    for (whose, opens) in [("another tenant", &door.secrets), ("the tenant's other channel", &sibling)] {
        let statuses = send_signed(&door, opens, 200).await;
        assert!(statuses.iter().all(|status| *status == 202), "S32: {whose}'s signed events: {statuses:?}");
    }

    // A sender that found no room is told so, although it was still sending: what it sent was read, so its connection is not reset.
    let answers = full.iter_mut().map(|socket| async move {
        let mut head = vec![0; 2_048];
        let read = tokio::time::timeout(Duration::from_secs(5), socket.read(&mut head)).await.ok()?;
        Some(read.map(|n| String::from_utf8_lossy(&head[..n]).into_owned()))
    });
    let answers: Vec<_> = futures_util::future::join_all(answers).await.into_iter().flatten().collect();
    assert!(!answers.is_empty(), "nobody was told");
    for answer in answers {
        let answer = answer.expect("S32: an answer, not a reset");
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: "), "S32: {answer}");
    }

    trickling.abort();
    let _ = trickling.await;
    drop((silent, full));
    let channel = held_id.to_string();
    let unfinished = async || counted(&door.app, "tributary_intake_refused_total", &["\"unfinished\"", &channel]).await;
    let is_counted = wait_until(SOON, async || unfinished().await >= 1_000).await;
    assert!(is_counted, "{} of 1,000 unfinished requests are counted as refused", unfinished().await);
    let told = "select coalesce(sum(n), 0) from tributary.channel_refusals where channel_id = $1 and status = 400 \
                and reason = 'its body did not arrive in full'";
    let is_told = wait_until(SOON, async || {
        let told = sqlx::query_scalar::<_, i64>(told).bind(held_id.0);
        told.fetch_one(&mut *door.world.conn().await).await.expect("a sum") >= 100
    });
    assert!(is_told.await, "its owner is told of the first hundred within a minute");
}

/// S32.
/// A disabled channel refuses, and its requests take no room that others could need.
#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_channel_gets_no_room() {
    let door = Door::new().await;
    let mut conn = door.world.conn().await;
    let is_done = store::channels::set_active(&mut conn, door.world.tenant_id, door.channel, false).await;
    assert!(is_done.expect("an answer"));
    drop(conn);
    let almost = vec![b' '; MEGABYTE - 1];
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(announce(&door.app, &door.secrets, &almost).await);
    }
    assert!(wait_until(SOON, async || has_read_all(&door.app)).await, "their bodies are not read");
    assert_eq!(send_signed(&door, &door.secrets, 3).await, [401; 3]);
    assert_eq!(counted(&door.app, "tributary_intake_refused_total", &["\"full\""]).await, 0, "it was given room");
}

/// S3, S32: a sender with a wrong secret, or with a URL that is nobody's, keeps no other tenant's event out. They may share an address, as
/// the customers of one provider do.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_one_tenant_refuses_nobody_elses_event() {
    let house = House::new().await;
    let world = &house.world;
    let (wrong_tenant, new_tenant) = (world.other_tenant("wrong").await, world.other_tenant("new").await);
    let (_, wrong) = add_channel(world, wrong_tenant, None).await;
    let (new_id, new) = add_channel(world, new_tenant, None).await;
    let send = async |key: &str, bearer: &str| {
        let request = house.post(&format!("/ingest/{key}")).header("x-forwarded-for", "203.0.113.7");
        let answer = request.bearer_auth(bearer).json(&json!({ "content": "x" })).send().await;
        answer.expect("an answer").status().as_u16()
    };
    for key in [wrong.ingestion_key.reveal(), "the-key-of-a-channel-that-was-deleted"] {
        let tries = stream::iter(0..150).map(|_| send(key, "ak_live_stale")).buffer_unordered(50);
        let statuses: Vec<u16> = tries.collect().await;
        assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
        assert!(statuses.contains(&429), "{statuses:?}");
    }
    let (key, bearer) = (new.ingestion_key.reveal(), new.bearer.reveal());
    assert_eq!(send(key, bearer).await, 202, "S32: a channel that this process had not seen");
    // And its owner is told of what is refused, however much is refused for others.
    assert_eq!(send(key, "ak_live_stale").await, 429);
    let told = "select coalesce(sum(n), 0) from tributary.channel_refusals where channel_id = $1 \
                and reason = 'the bearer key is not this channel''s'";
    let is_told = wait_until(SOON, async || {
        let told = sqlx::query_scalar::<_, i64>(told).bind(new_id.0);
        told.fetch_one(&mut *world.conn().await).await.expect("a sum") == 1
    });
    assert!(is_told.await, "its owner is not told why");
}

/// S32: many keys that nobody has, at once, cost as many queries as their address may cause.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_unknown_keys_at_once_are_not_all_looked_up() {
    let door = Door::new().await;
    let lookups = async || counted(&door.app, "tributary_intake_lookups_total", &[]).await;
    assert_eq!(send_signed(&door, &door.secrets, 1).await, [202]);
    let before = lookups().await;
    let heads = stream::iter(0..1_000).map(async |n| {
        let mut socket = TcpStream::connect(address(&door.app)).await.expect("a connection");
        let head = format!("POST /ingest/nobody-{n} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n");
        socket.write_all(head.as_bytes()).await.expect("sent");
        socket
    });
    let mut sockets: Vec<TcpStream> = heads.buffer_unordered(100).collect().await;
    for socket in &mut sockets {
        socket.write_all(b"x").await.expect("sent");
    }
    let mut head = [0; 12];
    for socket in &mut sockets {
        tokio::time::timeout(SOON, socket.read_exact(&mut head)).await.expect("in time").expect("an answer");
        assert!([&b"401"[..], b"429"].contains(&&head[9..]), "{}", String::from_utf8_lossy(&head));
    }
    // Those that have their turn at the same time do not see each other's.
    let n = lookups().await - before;
    assert!((100..=110).contains(&n), "S32: {n} keys were looked up");
    assert_eq!(send_signed(&door, &door.secrets, 3).await, [202; 3], "a channel that was known before");
}

async fn open_stream(app: &App, key: &Secret) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(address(app)).await.expect("a connection");
    let request = format!("GET /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", key.reveal());
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut head = vec![0; 2_048];
    let n = socket.read(&mut head).await.expect("an answer");
    (socket, String::from_utf8_lossy(&head[..n]).into_owned())
}

/// S32: event streams have a cap per key.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_cannot_take_all_connections_with_event_streams() {
    let site = Site::new().await;
    let (key, other) = (site.key(&[Scope::Read]).await, site.key(&[Scope::Read]).await);
    let mut streams = Vec::new();
    for _ in 0..256 {
        let (socket, head) = open_stream(&site.app, &key).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        streams.push(socket);
    }
    let (_, head) = open_stream(&site.app, &key).await;
    assert!(head.starts_with("HTTP/1.1 429") && head.contains("retry-after: "), "{head}");
    assert!(open_stream(&site.app, &other).await.1.starts_with("HTTP/1.1 200"), "another key has its own");
    streams.truncate(200);
    let is_free = wait_until(SOON, async || open_stream(&site.app, &key).await.1.starts_with("HTTP/1.1 200")).await;
    assert!(is_free, "streams that ended are free again");
}

/// S32: wrong keys have a cap per address, and those who were known before are not kept out by it.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_too_many_wrong_keys_is_told_to_wait_and_known_keys_pass() {
    let site = Site::new().await;
    let (known, new) = (site.key(&[Scope::Read]).await, site.key(&[Scope::Read]).await);
    let http = client();
    let ask = |key: String| http.get(format!("{}/api/v1/queues", site.app.url)).bearer_auth(key).send();
    assert_eq!(ask(known.reveal().to_owned()).await.expect("an answer").status().as_u16(), 200);
    let wrong = stream::iter(0..300).map(|n| ask(format!("trb_wrong_{n}"))).buffer_unordered(50);
    let statuses: Vec<u16> = wrong.map(|answer| answer.expect("an answer").status().as_u16()).collect().await;
    let n = |status: u16| statuses.iter().filter(|one| **one == status).count();
    assert!(n(401) >= 200 && n(401) + n(429) == 300, "{} refused, {} told to wait", n(401), n(429));
    assert!(n(401) < 210, "{} keys were looked up", n(401));
    let told = ask(new.reveal().to_owned()).await.expect("an answer");
    assert_eq!((told.status().as_u16(), &told.headers()["retry-after"]), (429, &"60".parse().expect("a header")));
    let agent = http.post(format!("{}/rest/v1/rpc/claim", site.app.url)).bearer_auth("trb_wrong").send().await;
    let agent = agent.expect("an answer");
    assert!(agent.status().as_u16() == 429 && agent.headers().contains_key("retry-after"), "{}", agent.status());
    assert_eq!(ask(known.reveal().to_owned()).await.expect("an answer").status().as_u16(), 200, "it was known before");
}

/// S32: searches have a cap per key.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_has_a_few_searches_under_way_and_no_more() {
    let site = Site::new().await;
    let (key, other) = (site.key(&[Scope::Read]).await, site.key(&[Scope::Read]).await);
    let mut owner = store::bench::administrator(&site.world.database.admin).await.expect("the owner");
    let mut locked = sqlx::Connection::begin(&mut owner).await.expect("a transaction");
    let lock = "lock table memory.tenants, memory.fresh_chunks, public.document_chunks in access exclusive mode";
    sqlx::query(lock).execute(&mut *locked).await.expect("locked");
    let http = client();
    let search = |key: &Secret| {
        http.get(format!("{}/api/v1/search?q=anything&mode=keyword", site.app.url)).bearer_auth(key.reveal()).send()
    };
    let under_way: Vec<_> = (0..4).map(|_| tokio::spawn(search(&key))).collect();
    let waiting = "select count(*) from pg_locks where not granted and locktype = 'relation' \
                   and database = (select oid from pg_database where datname = current_database())";
    let are_waiting = wait_until(SOON, async || {
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut *locked).await.expect("a count") >= 4
    });
    assert!(are_waiting.await, "four searches are under way");
    let told = search(&key).await.expect("an answer");
    assert_eq!((told.status().as_u16(), &told.headers()["retry-after"]), (429, &"1".parse().expect("a header")));
    let told: serde_json::Value = told.json().await.expect("a problem");
    assert_eq!(told["detail"], "this key, or its tenant, has enough searches under way; try again in 1 s");
    let others = tokio::spawn(search(&other));
    let is_waiting = wait_until(SOON, async || {
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut *locked).await.expect("a count") >= 5
    });
    assert!(is_waiting.await, "another key has its own");
    locked.rollback().await.expect("unlocked");
    for answer in under_way.into_iter().chain([others]) {
        assert_eq!(answer.await.expect("a task").expect("an answer").status().as_u16(), 200);
    }
    assert_eq!(search(&key).await.expect("an answer").status().as_u16(), 200, "those that ended are free again");
}

/// S32: connections have a cap per address.
#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_take_all_connections() {
    let site = Site::new().await;
    let mut sockets = Vec::new();
    for _ in 0..2_060 {
        sockets.push(TcpStream::connect(address(&site.app)).await.expect("a connection"));
    }
    let mut answer = Vec::new();
    let last = sockets.last_mut().expect("a socket");
    tokio::time::timeout(SOON, last.read_to_end(&mut answer)).await.expect("in time").expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("Retry-After: "), "{answer}");
    sockets.truncate(100);
    assert!(wait_until(SOON, async || get(&site.app.url, "/healthz").await.0 == 200).await, "it is served again");
}

/// S32: behind a trusted proxy each caller's requests have the cap that connections of an address have.
#[tokio::test(flavor = "multi_thread")]
async fn one_address_behind_a_proxy_cannot_take_all_connections() {
    let house = House::new().await;
    let ask = async |from: &str| {
        let request = house.http.get(format!("{}/healthz", house.app.url)).header("x-forwarded-for", from);
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.headers().contains_key("retry-after"))
    };
    // Some more than the cap, and many at once: those that came first are given up after a while.
    let begun = stream::iter(0..2_200).map(|_| begin(&house, "/ingest/nobody", "203.0.113.5", ""));
    let mut sockets: Vec<TcpStream> = begun.buffer_unordered(64).collect().await;
    let is_told = wait_until(SOON, async || ask("203.0.113.5").await == (429, true)).await;
    assert!(is_told, "S32: one address has more than half of all connections");
    assert_eq!(ask("203.0.113.6").await.0, 200, "another caller behind the same proxy");
    sockets.truncate(100);
    assert!(wait_until(SOON, async || ask("203.0.113.5").await.0 == 200).await, "it is served again");
}

/// F9: a blob store that does not answer takes no session of the pool.
#[tokio::test(flavor = "multi_thread")]
async fn while_more_blobs_hang_than_there_are_sessions_others_are_answered() {
    const HANGING: usize = 8;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let (met, mut meets) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = silent.accept().await {
            let _ = met.send(socket); // kept open, never answered
        }
    });
    let world = World::now().await;
    let (_, opens) = add_channel(&world, world.tenant_id, None).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let (folder, port_of_ours) = (Folder::new(), free_port());
    let mut serve = command(&folder.0, port_of_ours);
    serve
        .env("DATABASE_URL", &world.database.url)
        .env("MASTER_KEY", MASTER_KEY)
        .env("DB_CONNECTIONS", "4")
        .env("BLOB_URL", "s3://bucket/x")
        .env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "who")
        .env("AWS_SECRET_ACCESS_KEY", "secret");
    let app = App::start(serve, &["serve"], port_of_ours).await;
    let http = client();
    let mut hanging = Vec::new();
    for n in 0..HANGING {
        // Larger than what is kept beside its row.
        let event = http.post(format!("{}/ingest/{}", app.url, opens.ingestion_key.reveal()));
        let event = event.bearer_auth(opens.bearer.reveal()).json(&json!({ "content": "x".repeat(100_000), "n": n }));
        let form = format!(
            "--edge\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{n}.txt\"\r\n\r\nfile {n}\r\n--edge--\r\n"
        );
        let file = http.post(format!("{}/api/v1/documents", app.url)).bearer_auth(key.reveal());
        let file = file.header("content-type", "multipart/form-data; boundary=edge").body(form);
        hanging.extend([tokio::spawn(event.send()), tokio::spawn(file.send())]);
    }
    let mut sockets = Vec::new();
    for _ in 0..2 * HANGING {
        sockets.push(tokio::time::timeout(SOON, meets.recv()).await.expect("all of them hang").expect("a connection"));
    }
    let listed = http.get(format!("{}/api/v1/documents", app.url)).bearer_auth(key.reveal()).send().await;
    assert_eq!(listed.expect("an answer").status().as_u16(), 200, "F9: the pool is held by what hangs");
    let small = http.post(format!("{}/ingest/{}", app.url, opens.ingestion_key.reveal()));
    let small = small.bearer_auth(opens.bearer.reveal()).json(&json!({ "content": "small" })).send().await;
    assert_eq!(small.expect("an answer").status().as_u16(), 202);
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}
