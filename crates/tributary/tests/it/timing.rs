//! The refusals at the door, from outside: neither their time nor their limit tells whether a channel has a key.

use std::time::{Duration, Instant};

use domain::Secret;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use store::channels::set_active;
use testkit::wait_until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::channels::{House, target};
use crate::crowd::counted;
use crate::intake::{Door, add_channel, new_channel};

const SOON: Duration = Duration::from_secs(20);
/// At least this long, and a multiple of it, whatever is looked up.
const EVERY: Duration = Duration::from_millis(50);
/// A head without its body is answered within this time, if it is answered at all.
const AT_ONCE: Duration = Duration::from_millis(500);

/// S3: the look-up of a key tells nothing, neither by its answer nor by its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_takes_the_same_time_whether_a_channel_has_the_key_or_not() {
    let door = Door::new().await;
    let (disabled, closed) = add_channel(&door.world, door.world.tenant_id, None).await;
    set_active(&mut *door.world.conn().await, door.world.tenant_id, disabled, false).await.expect("disabled");
    let refuse = async |key: &str, encoding: &str| {
        let url = format!("{}/ingest/{key}", door.app.url);
        let request = door.http.post(url).bearer_auth("ak_live_wrong").header("content-encoding", encoding);
        let request = request.json(&json!({ "content": "x" }));
        let begun = Instant::now();
        let answer = request.send().await.expect("an answer");
        let (took, status) = (begun.elapsed(), answer.status().as_u16());
        let mut body: Value = answer.json().await.expect("a problem");
        body["request_id"] = Value::Null;
        (took, status, body)
    };
    // Refused for what it shows, and before that is looked at.
    for (encoding, expected) in [("identity", 401), ("gzip", 400)] {
        let classes = ["an open channel's", "a disabled channel's", "nobody's", "nobody's, asked again"];
        let (mut least, mut answers) = ([Duration::MAX; 4], Vec::new());
        for _ in 0..8 {
            // Cached from the second time on; never seen; cached as nobody's.
            let unknown = Secret::new(Uuid::now_v7().to_string());
            let keys = [&door.secrets.ingestion_key, &closed.ingestion_key, &unknown, &unknown];
            for (class, key) in keys.into_iter().enumerate() {
                let (took, status, body) = refuse(key.reveal(), encoding).await;
                assert!(took >= EVERY, "S3: {}: answered after {took:?}", classes[class]);
                assert_eq!(status, expected);
                least[class] = least[class].min(took);
                answers.push(body);
            }
        }
        assert!(answers.iter().all(|body| *body == answers[0]), "S3: {answers:?}");
        let multiples = least.map(|took| took.as_millis() / EVERY.as_millis());
        assert!(multiples.iter().all(|n| *n == multiples[0]), "S3: {expected} for {classes:?} took {least:?}");
    }
}

/// The head of a request from an address that announces ten bytes, with the bytes that follow it.
pub async fn begin(house: &House, path: &str, address: &str, bytes: &str) -> TcpStream {
    let server = house.app.url.strip_prefix("http://").expect("an address");
    let mut socket = TcpStream::connect(server).await.expect("a connection");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {address}\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(format!("{head}{bytes}").as_bytes()).await.expect("sent");
    socket
}

/// The status of a request that shows no proof.
async fn refuse(house: &House, path: &str, address: &str) -> u16 {
    let request = house.post(path).header("x-forwarded-for", address).body("0123456789");
    request.send().await.expect("an answer").status().as_u16()
}

fn nobodys() -> String {
    format!("/ingest/{}", Uuid::now_v7())
}

/// S3: over the limit too, an answer waits for the body, whether a channel has the key or not.
#[tokio::test(flavor = "multi_thread")]
async fn over_the_limit_no_key_is_answered_before_its_body() {
    let (house, address) = (House::new().await, "203.0.113.3");
    let [seen, unseen] = [house.channel(new_channel("generic")).await.1, house.channel(new_channel("generic")).await.1];
    assert_eq!(refuse(&house, &target(&seen), "198.51.100.1").await, 401);
    let tries = stream::iter(0..150).map(|_| async { refuse(&house, &nobodys(), address).await });
    let statuses: Vec<u16> = tries.buffer_unordered(50).collect().await;
    let n_waiting = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((n_waiting, statuses.len()), (50, 150), "{statuses:?}");

    let paths = [target(&seen), target(&unseen), nobodys()];
    let mut sockets = Vec::new();
    for path in &paths {
        sockets.push(begin(&house, path, address, "").await);
    }
    let mut early = [0; 1];
    for (socket, path) in sockets.iter_mut().zip(&paths) {
        let read = tokio::time::timeout(AT_ONCE, socket.read(&mut early)).await;
        assert!(read.is_err(), "S3: {path} is answered before its body");
    }
    for (socket, path) in sockets.iter_mut().zip(&paths) {
        socket.write_all(b"0123456789").await.expect("sent");
        let mut answer = String::new();
        tokio::time::timeout(SOON, socket.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 429"), "S3: {path}: {answer}");
    }
}

/// S3: a body that does not arrive counts for its address alike, whether a channel has the key or not.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_were_left_unfinished_count_alike_for_every_key() {
    let house = House::new().await;
    let (_, channel) = house.channel(new_channel("generic")).await;
    let unfinished = async || counted(&house.app, "tributary_intake_refused_total", &["\"unfinished\""]).await;
    for (path, address) in [(target(&channel), "203.0.113.1"), (nobodys(), "203.0.113.2")] {
        let before = unfinished().await;
        for _ in 0..100 {
            drop(begin(&house, &path, address, "01234").await);
        }
        assert!(wait_until(SOON, async || unfinished().await == before + 100).await, "they are not counted");
        for other in [nobodys(), target(&channel), path.clone()] {
            assert_eq!(refuse(&house, &other, address).await, 429, "S3: {other} after {path} was left unfinished");
        }
    }
    assert_eq!(refuse(&house, &target(&channel), "203.0.113.9").await, 401, "another address");
}
