//! The realtime socket from outside, frame by frame: who is refused, what is malformed, what is too much, who does not read.

use std::time::{Duration, Instant};

use domain::{Notice, Op, Scope, Secret};
use futures_util::{SinkExt as _, StreamExt as _};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::wait_until;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::Response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use uuid::Uuid;

use crate::agents::Office;
use crate::app::{client, get, resident_kb};

const SOON: Duration = Duration::from_secs(5);

struct Socket(WebSocketStream<TcpStream>);

/// The end of a socket: the code it was closed with, or 0.
#[derive(Debug, PartialEq)]
struct Closed(u16);

impl Socket {
    /// With the query as given; the answer, when it is no socket.
    async fn ask(office: &Office, query: &str, headers: &[(&'static str, String)]) -> Result<Self, (u16, Value)> {
        let address = office.app.url.trim_start_matches("http://").to_owned();
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(16 * 1024).expect("a small buffer"); // so that not reading is felt
        let stream = socket.connect(address.parse().expect("an address")).await.expect("a connection");
        let mut request =
            format!("ws://{address}/realtime/v1/websocket?{query}").into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a value"));
        }
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(answer)) => {
                let (parts, body) = Response::into_parts(*answer);
                Err((parts.status.as_u16(), serde_json::from_slice(&body.unwrap_or_default()).unwrap_or_default()))
            }
            Err(error) => panic!("no answer: {error}"),
        }
    }

    async fn open(office: &Office, key: &Secret) -> Self {
        Self::ask(office, &format!("apikey={}&vsn=2.0.0", key.reveal()), &[]).await.expect("a socket")
    }

    async fn say(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.expect("sent");
    }

    /// The next frame that is not about a system's state.
    async fn hears(&mut self) -> Result<Value, Closed> {
        let next = async {
            loop {
                match self.0.next().await {
                    Some(Ok(Message::Text(text))) => {
                        let frame: Value = serde_json::from_str(&text).expect("JSON");
                        if frame[3] != "system" {
                            return Ok(frame);
                        }
                    }
                    Some(Ok(Message::Close(frame))) => {
                        return Err(Closed(frame.map_or(0, |frame| CloseCode::into(frame.code))));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Err(Closed(0)),
                }
            }
        };
        tokio::time::timeout(SOON, next).await.expect("a frame in time")
    }

    async fn replies(&mut self, frame: Value) -> Value {
        self.say(frame).await;
        let reply = self.hears().await.expect("a reply");
        assert_eq!(reply[3], "phx_reply", "{reply}");
        reply[4].clone()
    }

    async fn joins(&mut self, topic: &str, bindings: Value) -> Value {
        self.replies(json!(["1", "1", topic, "phx_join", { "config": { "postgres_changes": bindings } }])).await
    }
}

fn everything() -> Value {
    json!([{ "event": "*", "schema": "public", "table": "activities" }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_is_opened_for_agents_keys_alone() {
    let office = Office::new().await;
    let (_, key) = office.key(office.world.tenant_id, "ann@office.test").await;
    let (_, reader) = office.world.caller(office.world.tenant_id, &[Scope::Read]).await;
    let good = format!("apikey={}", key.reveal());
    let form = [("key", key.reveal())];
    let signed =
        client().post(format!("{}/signin", office.app.url)).header("origin", &office.app.url).form(&form).send();
    let cookie = signed.await.expect("an answer").headers()["set-cookie"].to_str().expect("a cookie").to_owned();
    let cookie = cookie.split(';').next().expect("a session").to_owned();
    for (query, headers, wanted) in [
        ("vsn=2.0.0", vec![], (401, "PGRST301")),
        ("apikey=trb_canary-7f3a&vsn=2.0.0", vec![], (401, "PGRST301")),
        ("apikey=&vsn=2.0.0", vec![], (401, "PGRST301")),
        ("vsn=2.0.0", vec![("cookie", cookie)], (403, "42501")),
        (&format!("apikey={}", reader.reveal()), vec![], (403, "42501")),
        (&format!("{good}&vsn=9.9.9"), vec![], (400, "PGRST100")),
        (&format!("{good}&vsn=1.0.0&vsn=2.0.0"), vec![], (400, "PGRST100")),
    ] {
        let refused = Socket::ask(&office, query, &headers).await.err().expect("a refusal");
        assert_eq!((refused.0, refused.1["code"].as_str()), (wanted.0, Some(wanted.1)), "{query}: {}", refused.1);
    }
    let plain =
        client().get(format!("{}/realtime/v1/websocket?{good}", office.app.url)).send().await.expect("an answer");
    assert_eq!(plain.status().as_u16(), 426);
    assert!(Socket::ask(&office, "vsn=2.0.0", &[("apikey", key.reveal().to_owned())]).await.is_ok());

    let mut sockets = Vec::new();
    for _ in 0..32 {
        sockets.push(Socket::open(&office, &key).await);
    }
    let one_more = Socket::ask(&office, &good, &[]).await.err().expect("a refusal");
    assert_eq!(one_more.0, 429, "a key has enough sockets: {}", one_more.1);
    sockets.truncate(16);
    assert!(wait_until(SOON, async || Socket::ask(&office, &good, &[]).await.is_ok()).await, "a place is free again");
    let printed = office.app.printed();
    assert!(!printed.contains("canary") && !printed.contains(key.reveal()), "S13: a key is in the log");

    // The server stops: every socket is told so, at once.
    office.app.signal(Signal::TERM);
    let begun = Instant::now();
    for socket in &mut sockets {
        assert_eq!(socket.hears().await, Err(Closed(1001)));
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "stopping took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_or_too_much_is_refused_and_hurts_nobody_else() {
    let office = Office::new().await;
    let (_, key) = office.key(office.world.tenant_id, "ann@office.test").await;
    let elsewhere = office.world.other_tenant("elsewhere").await;
    let (_, foreign) = office.key(elsewhere, "mallory@elsewhere.test").await;
    let mut bystander = Socket::open(&office, &key).await;
    assert_eq!(bystander.joins("realtime:acts", everything()).await["status"], "ok");

    for (frame, code) in [
        (Message::text("no JSON"), 1003),
        (Message::text("[]"), 1003),
        (Message::text("[".repeat(60_000)), 1003),
        (
            Message::text(json!({ "topic": "phoenix", "event": "heartbeat", "payload": {}, "ref": "1" }).to_string()),
            1003,
        ),
        (Message::text("x".repeat(65 * 1024)), 1002),
        (Message::binary(vec![0; 65 * 1024]), 1002),
    ] {
        let mut socket = Socket::open(&office, &key).await;
        let shown = frame.to_string().chars().take(20).collect::<String>();
        socket.0.send(frame).await.expect("sent");
        assert_eq!(socket.hears().await, Err(Closed(code)), "{shown}");
    }

    let mut socket = Socket::open(&office, &key).await;
    socket.0.send(Message::binary(vec![3, 0, 0])).await.expect("a broadcast, which nobody tells here");
    let alive = socket.replies(json!([null, "7", "phoenix", "heartbeat", {}])).await;
    assert_eq!(alive, json!({ "status": "ok", "response": {} }));
    assert_eq!(
        socket.replies(json!(["1", "8", "realtime:acts", "presence", { "type": "presence" }])).await["status"],
        "ok"
    );
    socket.say(json!(["1", null, "realtime:acts", "whatever", null])).await; // nobody waits for an answer
    for (binding, why) in [
        (json!({ "event": "*", "schema": "public", "table": "tenants" }), "public.activities alone"),
        (json!({ "event": "*", "schema": "tributary", "table": "activities" }), "public.activities alone"),
        (json!({ "event": "TRUNCATE", "schema": "public", "table": "activities" }), "none of"),
        (json!({ "event": "*", "schema": "public", "table": "activities", "filter": "tenant_id=eq.x" }), "no column"),
        (json!({ "event": "*", "schema": "public", "table": "activities", "filter": "type=near.x" }), "not a filter"),
        (
            json!({ "event": "*", "schema": "public", "table": "activities", "filter": "lock_epoch=eq.x" }),
            "not of type int4",
        ),
        (json!({ "event": "*", "schema": "public", "table": "activities", "filter": 7 }), "cannot be read"),
        (json!("everything"), "cannot be read"),
    ] {
        let refused = socket.joins("realtime:refused", json!([binding])).await;
        assert_eq!(refused["status"], "error");
        assert!(
            refused["response"]["reason"].as_str().is_some_and(|reason| reason.contains(why)),
            "{binding}: {refused}"
        );
    }
    let one = &everything()[0];
    let too_many = socket.joins("realtime:many", json!(vec![one; 33])).await;
    assert!(too_many["response"]["reason"].as_str().is_some_and(|reason| reason.contains("at most 32")), "{too_many}");
    let with_pattern = json!({ "event": "*", "schema": "public", "filter": "event_key=match.^a" });
    let too_many = socket.joins("realtime:many", json!(vec![with_pattern; 9])).await;
    assert!(too_many["response"]["reason"].as_str().is_some_and(|reason| reason.contains("patterns")), "{too_many}");
    // Echoed as it came, in the same order, each with an id of its own that is not 0.
    let asked = json!([{ "event": "INSERT", "schema": "public", "table": "activities", "filter": "processing_status=eq.raw", "odd": [1] }, one]);
    let reply = socket.joins("realtime:0", asked.clone()).await;
    let mut echoed = reply["response"]["postgres_changes"].clone();
    let ids: Vec<Value> = echoed
        .as_array_mut()
        .expect("bindings")
        .iter_mut()
        .filter_map(|one| one.as_object_mut()?.remove("id"))
        .collect();
    assert_eq!(echoed, asked);
    assert!(ids.len() == 2 && ids[0] != ids[1] && ids.iter().all(|id| id.as_u64().is_some_and(|id| id > 0)), "{ids:?}");
    for n in 1..64 {
        assert_eq!(socket.joins(&format!("realtime:{n}"), json!([])).await["status"], "ok");
    }
    assert_eq!(socket.joins("realtime:64", json!([])).await["status"], "error", "the 65th topic");
    assert_eq!(socket.joins("realtime:63", json!([])).await["status"], "ok", "joining again takes no second place");
    assert_eq!(socket.replies(json!(["1", "9", "realtime:63", "phx_leave", {}])).await["status"], "ok");
    assert_eq!(socket.joins("realtime:64", json!([])).await["status"], "ok");

    // A change is told once a topic, with every subscription that wants it.
    let id = office.send("note", "for everybody").await;
    let told = socket.hears().await.expect("a change");
    assert_eq!((&told[2], &told[3], &told[4]["ids"]), (&json!("realtime:0"), &json!("postgres_changes"), &json!(ids)));
    assert_eq!(told[4]["data"]["record"]["id"], json!(id));
    let told = bystander.hears().await.expect("a change");
    assert_eq!(told[4]["data"]["record"]["id"], json!(id));

    let token = |key: &Secret| json!([null, null, "realtime:0", "access_token", { "access_token": key.reveal() }]);
    socket.say(token(&key)).await;
    assert_eq!(socket.replies(json!([null, "10", "phoenix", "heartbeat", {}])).await["status"], "ok", "still welcome");
    let refused = socket
        .replies(json!(["1", "1", "realtime:1", "phx_join", { "config": {}, "access_token": foreign.reveal() }]))
        .await;
    assert_eq!(refused["status"], "error", "S17");
    socket.say(token(&foreign)).await;
    assert_eq!(socket.hears().await, Err(Closed(1008)), "S17: another tenant's key was taken");
    assert_eq!(bystander.replies(json!([null, "2", "phoenix", "heartbeat", {}])).await["status"], "ok");
}

/// F30.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_pages_and_readers_that_do_not_read_cost_no_memory() {
    const STALLED: usize = 30;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let office = Office::new().await;
    let tenant_id = office.world.tenant_id;
    let (_, key) = office.key(tenant_id, "ann@office.test").await;
    let mut page_keys = Vec::new();
    for _ in 0..4 {
        page_keys.push(office.world.caller(tenant_id, &[Scope::Read]).await.1); // one key may not have a thousand
    }
    let address = office.app.url.trim_start_matches("http://").to_owned();
    let mut pages = Vec::new();
    for nth in 0..1_000 {
        let page_key = &page_keys[nth % page_keys.len()];
        let mut page = TcpStream::connect(&address).await.expect("a connection");
        let request =
            format!("GET /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", page_key.reveal());
        page.write_all(request.as_bytes()).await.expect("sent");
        pages.push(page);
    }
    let mut heads = [0; 64];
    for page in &mut pages {
        assert!(page.read(&mut heads).await.expect("an answer") > 0 && heads.starts_with(b"HTTP/1.1 200"), "F30");
    }
    let mut reader = Socket::open(&office, &key).await;
    assert_eq!(reader.joins("realtime:acts", everything()).await["status"], "ok");
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut socket = Socket::open(&office, &key).await;
        assert_eq!(socket.joins("realtime:acts", everything()).await["status"], "ok");
        stalled.push(socket);
    }
    let before = resident_kb(office.app.pid(), "VmRSS");

    // Another process inserts 16 MB in waves, and tells after each commit. A copy for each that does not read would be 480 MB.
    let relay = tokio::spawn(store::notices::relay(office.world.env.db.clone()));
    let sql = "insert into activities (tenant_id, type, raw_data)
        select $1, 'note', jsonb_build_object('source_type', 'text', 'content', repeat('0123456789abcdef', 512)) from generate_series(1, 500) returning id";
    for wave in 1..=4 {
        let mut tx = office.world.env.db.begin().await.expect("a transaction");
        let ids: Vec<Uuid> = sqlx::query_scalar(sql).bind(tenant_id.0).fetch_all(&mut *tx).await.expect("rows");
        tx.notify_all(Notice::activities(tenant_id, &ids, Op::Insert));
        tx.commit().await.expect("committed");
        for n in 0..ids.len() {
            let heard = reader.hears().await.unwrap_or_else(|closed| panic!("F30: wave {wave}, row {n}: {closed:?}"));
            assert_eq!(heard[4]["data"]["type"], "INSERT");
        }
    }
    let rise = resident_kb(office.app.pid(), "VmRSS").saturating_sub(before);
    println!("with 1,000 pages and 16 MB for {STALLED} that do not read: {} MB more", rise >> 10);
    assert!(rise < 128 << 10, "F30: {rise} kB more");
    let mut told = vec![0; 64 * 1024];
    for page in pages.iter_mut().step_by(100) {
        let n = tokio::time::timeout(SOON, page.read(&mut told)).await.expect("in time").expect("an event");
        assert!(String::from_utf8_lossy(&told[..n]).contains("\"activities\""), "F30: a page was not told");
    }
    // The server waits at most four seconds for a reader. Only the client that reads on is left.
    let open = async || {
        let (_, said) = get(&office.app.url, "/metrics").await;
        said.lines().find_map(|line| line.strip_prefix("tributary_realtime_sockets ")).map(str::to_owned)
    };
    assert!(
        wait_until(3 * SOON, async || open().await.as_deref() == Some("1")).await,
        "F30: open are {:?}",
        open().await
    );
    for mut socket in stalled {
        let rest = tokio::time::timeout(SOON, async { while let Some(Ok(_)) = socket.0.next().await {} });
        assert!(rest.await.is_ok(), "F30: it was not cut off");
    }
    relay.abort();
}
