//! Channels of every kind over HTTP: official libraries sign, forgers and bombs are turned away, mails bring their files, and senders
//! that behave as Twilio and Postmark do lose nothing while the database restarts.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{ChannelId, Clock, Scope, Secret};
use engine::intake::{sign, sign_standard, sign_twilio};
use futures_util::{StreamExt as _, stream};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use store::channels::{NewChannel, Provider, Secrets, Settings};
use testkit::{Cluster, World, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use uuid::Uuid;

use crate::app::{App, Folder, client, command, free_port, run};
use crate::intake::{MASTER_KEY, new_channel};

const PUBLIC_URL: &str = "https://hear.example.com";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// One of those that Postmark publishes.
const POSTMARK_IP: &str = "50.31.156.6";

/// A server behind a proxy that says who called.
struct House {
    world: World,
    app: App,
    folder: Folder,
    http: reqwest::Client,
}

impl House {
    async fn new() -> Self {
        Self::on(World::now().await).await
    }

    async fn on(world: World) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &world.database.url).env("MASTER_KEY", MASTER_KEY).env("LOG", "debug");
        serve.env("PUBLIC_URL", PUBLIC_URL).env("PHONE_REGION", "US");
        let app = App::start(serve, &["serve"], port).await;
        Self { world, app, folder, http: client() }
    }

    async fn channel(&self, new: NewChannel<'_>) -> (ChannelId, Secrets) {
        let mut conn = self.world.conn().await;
        let made = store::channels::create(&mut conn, &self.world.env.vault, self.world.tenant_id, new).await;
        made.expect("a channel")
    }

    async fn twilio(&self) -> (ChannelId, Secrets) {
        self.channel(NewChannel { secret: Some(Secret::new(TOKEN)), ..new_channel(Provider::Twilio) }).await
    }

    fn post(&self, target: &str) -> reqwest::RequestBuilder {
        self.http.post(format!("{}{target}", self.app.url))
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut *self.world.conn().await).await.expect("a number")
    }
}

fn target(secrets: &Secrets) -> String {
    format!("/ingest/{}", secrets.ingestion_key.reveal())
}

fn form(fields: &[(&str, &str)]) -> String {
    let encoded =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect::<Vec<_>>().join("&")
}

/// What other people's libraries sign: `[["twilio", token, url, {…}], ["standard", secret, id, timestamp, body]]`.
fn signed_by_others(cases: &Value) -> Vec<String> {
    const PROGRAM: &str = "
import datetime, json, sys
from twilio.request_validator import RequestValidator
from standardwebhooks import Webhook
for case in json.load(sys.stdin):
    if case[0] == 'twilio':
        print(RequestValidator(case[1]).compute_signature(case[2], case[3]))
    else:
        at = datetime.datetime.fromtimestamp(case[3], datetime.timezone.utc)
        print(Webhook(case[1]).sign(case[2], at, case[4]))
";
    let packages = std::env::var("TEST_PACKAGES_DIR").expect("TEST_PACKAGES_DIR; ./test sets it");
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    child.stdin.take().expect("stdin").write_all(cases.to_string().as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_official_libraries_sign_is_taken_in() {
    let house = House::new().await;
    let (_, twilio) = house.twilio().await;
    let (_, generic) = house.channel(new_channel(Provider::Generic)).await;
    let url = format!("{PUBLIC_URL}{}", target(&twilio));
    let messages = [
        json!({ "MessageSid": "SM1", "From": "+14158675309", "To": "+15005550001", "Body": "hello", "NumMedia": "0" }),
        json!({ "MessageSid": "SM2", "From": "whatsapp:+5511999990000", "To": "whatsapp:+15005550001", "Body": "Olá + café & = % ☕", "FromZip": "" }),
        json!({ "CallSid": "CA1", "RecordingSid": "RE1", "RecordingUrl": "https://api.example/RE1", "RecordingStatus": "completed", "RecordingDuration": "31" }),
        json!({ "CallSid": "CA1", "CallStatus": "completed", "Direction": "inbound", "From": "+14158675309", "To": "+15005550001", "SequenceNumber": "2" }),
    ];
    let secret = generic.proofs.webhook_secret.as_ref().expect("a secret").reveal();
    let (now, body) = (chrono::Utc::now().timestamp(), r#"{"type":"note","content":"signed by a library"}"#);
    let mut cases: Vec<Value> = messages.iter().map(|fields| json!(["twilio", TOKEN, url, fields])).collect();
    cases.push(json!(["standard", secret, "msg_1", now, body]));
    let signatures = signed_by_others(&Value::Array(cases));
    assert_eq!(signatures.len(), 5);
    for (fields, signature) in messages.iter().zip(&signatures) {
        let fields: Vec<(&str, &str)> = fields
            .as_object()
            .expect("fields")
            .iter()
            .map(|(name, value)| (&**name, value.as_str().expect("text")))
            .collect();
        let send = || {
            let request = house.post(&target(&twilio)).header("x-twilio-signature", signature);
            request.header("content-type", "application/x-www-form-urlencoded").body(form(&fields)).send()
        };
        let answer = send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200, "{fields:?}");
        assert_eq!(answer.headers()["content-type"], "text/xml");
        let id = answer.headers()["x-activity-id"].clone();
        assert_eq!(answer.text().await.expect("TwiML"), "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response/>");
        let again = send().await.expect("an answer");
        assert_eq!(again.headers()["x-activity-id"], id, "a redelivery is the same activity");
    }
    let request =
        house.post(&target(&generic)).header("webhook-id", "msg_1").header("webhook-timestamp", now.to_string());
    let request = request.header("webhook-signature", &signatures[4]).header("content-type", "application/json");
    let answer = request.body(body).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 202);
    let kinds: Vec<String> = sqlx::query_scalar("select type || ' ' || event_key from activities order by event_key")
        .fetch_all(&mut *house.world.conn().await)
        .await
        .expect("rows");
    assert_eq!(
        kinds,
        ["call CA1:completed:2", "call RE1:completed", "sms SM1", "whatsapp SM2", "note msg_1"].map(String::from)
    );
    let key = house.number("select count(*) from activities where metadata ->> 'from_key' = '+14158675309'").await;
    assert_eq!(key, 2);

    // Whoever asks for JSON gets it, also from a Twilio channel.
    let body = form(&[("MessageSid", "SM9"), ("Body", "x")]);
    let request = house
        .post(&target(&twilio))
        .header("x-twilio-signature", sign_twilio(&Secret::new(TOKEN), &url, body.as_bytes()));
    let request =
        request.header("content-type", "application/x-www-form-urlencoded").header("accept", "application/json");
    let answer: Value = request.body(body).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(answer["success"], true);
}

/// S1 over HTTP: 10,000 in `./test --slow`.
#[tokio::test(flavor = "multi_thread")]
async fn mutated_requests_over_http_are_never_accepted() {
    let n = if testkit::is_slow() { 10_000 } else { 1_000 };
    let house = House::new().await;
    let (_, twilio) = house.twilio().await;
    let (_, generic) = house.channel(new_channel(Provider::Generic)).await;
    let (_, postmark) = house.channel(new_channel(Provider::Postmark)).await;
    let secret = generic.proofs.webhook_secret.clone().expect("a secret");
    let json_body = r#"{"content":"forged, perhaps"}"#.to_owned();
    let form_body = form(&[("MessageSid", "SM1"), ("Body", "forged, perhaps"), ("From", "+14158675309")]);
    let url = format!("{PUBLIC_URL}{}", target(&twilio));
    let now = chrono::Utc::now().timestamp();
    let basic = STANDARD.encode(postmark.proofs.basic.as_ref().expect("a password").reveal());
    type Sent = (String, Vec<(&'static str, String)>, String);
    let good: Vec<Sent> = vec![
        (target(&generic), vec![("x-webhook-signature", sign(&secret, json_body.as_bytes()))], json_body.clone()),
        (
            target(&generic),
            vec![
                ("webhook-id", "msg_1".into()),
                ("webhook-timestamp", now.to_string()),
                ("webhook-signature", sign_standard(&secret, "msg_1", now, json_body.as_bytes())),
            ],
            json_body.clone(),
        ),
        (
            target(&generic),
            vec![("authorization", format!("Bearer {}", generic.proofs.bearer.as_ref().expect("a key").reveal()))],
            json_body.clone(),
        ),
        (
            target(&twilio),
            vec![("x-twilio-signature", sign_twilio(&Secret::new(TOKEN), &url, form_body.as_bytes()))],
            form_body,
        ),
        (
            target(&postmark),
            vec![("authorization", format!("Basic {basic}"))],
            r#"{"MessageID":"1","TextBody":"forged"}"#.into(),
        ),
    ];
    let seed = 20_261_115;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut mutated: Vec<(&'static str, Sent, [u8; 4])> = Vec::new();
    while mutated.len() < n {
        let (mut target, mut headers, mut body) = good.choose(&mut rng).expect("a request").clone();
        let last = headers.len() - 1;
        let is_signed = headers[last].0 != "authorization";
        let kind = *["body", "proof", "proof cut", "proof gone", "key", "key of another", "header of another"]
            .choose(&mut rng)
            .expect("a kind");
        let replaced = |text: &str, rng: &mut StdRng| {
            let at = rng.random_range(text.len() / 2..text.len());
            let old = text.as_bytes()[at];
            let new = if old.is_ascii_alphanumeric() { if old == b'Q' { 'g' } else { 'Q' } } else { 'Q' };
            format!("{}{new}{}", &text[..at], &text[at + 1..])
        };
        match kind {
            "body" if is_signed => body = replaced(&body, &mut rng),
            // The last two characters of base64 may hold bits that say nothing.
            "proof" => {
                headers[last].1 = format!(
                    "{}{}",
                    replaced(&headers[last].1[..headers[last].1.len() - 3], &mut rng),
                    &headers[last].1[headers[last].1.len() - 3..]
                )
            }
            "proof cut" => {
                let n = rng.random_range(3..8);
                let end = headers[last].1.len() - n;
                headers[last].1.truncate(end);
            }
            "proof gone" => drop(headers.remove(last)),
            "key" => target = replaced(&target, &mut rng),
            "key of another" => {
                let other = &good.choose(&mut rng).expect("a request").0;
                if *other == target {
                    continue;
                }
                target = other.clone();
            }
            "header of another" => {
                let other = good.choose(&mut rng).expect("a request");
                if other.0 == target {
                    continue;
                }
                headers = other.1.clone();
            }
            _ => continue,
        }
        mutated.push((kind, (target, headers, body), rng.random()));
    }
    let sends = mutated.iter().map(|(kind, (target, headers, body), address)| {
        // Each from elsewhere: nobody is refused for what others did.
        let address = std::net::Ipv4Addr::from(*address).to_string();
        let is_form = body.starts_with("MessageSid");
        let media = if is_form { "application/x-www-form-urlencoded" } else { "application/json" };
        let request = house.post(target).header("x-forwarded-for", address).header("content-type", media);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        async move { (*kind, request.body(body.clone()).send().await.expect("an answer").status().as_u16()) }
    });
    let answers: Vec<(&str, u16)> = stream::iter(sends).buffer_unordered(32).collect().await;
    let mut counts: BTreeMap<(&str, u16), usize> = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer).or_default() += 1;
    }
    println!("{n} mutated requests over HTTP: {counts:?}");
    assert!(counts.keys().all(|(_, status)| *status == 401), "seed {seed}: {counts:?}");
    let kinds: std::collections::BTreeSet<&str> = counts.keys().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds.len(), 7);
    assert_eq!(house.number("select count(*) from activities").await, 0, "S1: a forged request left a row");
    assert!(!house.app.printed().contains("panicked"));
}

/// S4: verification is at the only entry. S17 for channels: another tenant's are not there.
#[tokio::test(flavor = "multi_thread")]
async fn no_other_route_takes_an_event_unsigned() {
    let house = House::new().await;
    let (id, _) = house.channel(new_channel(Provider::Generic)).await;
    let paths: Value = house
        .http
        .get(format!("{}/api/v1/openapi.json", house.app.url))
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    let mut tried = 0;
    for (path, methods) in paths["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let target = path.replace("{id}", &id.to_string()).replace("{key}", "nobody").replace("{lane}", "upkeep");
            let method = method.to_uppercase().parse().expect("a method");
            let request =
                house.http.request(method, format!("{}{target}", house.app.url)).timeout(Duration::from_secs(5));
            let request = request
                .header("content-type", "application/json")
                .body(r#"{"content":"x","name":"x","provider":"generic"}"#);
            let Ok(answer) = request.send().await else { continue };
            let is_open = ["/healthz", "/readyz"].contains(&path.as_str());
            assert!(is_open || answer.status().is_client_error(), "S4: {path} answered {}", answer.status());
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried} routes");
    assert_eq!(house.number("select count(*) from activities").await, 0);
    assert_eq!(house.number("select count(*) from ingestion_providers").await, 1);

    let stranger = house.world.other_tenant("somebody else").await;
    let (_, key) = house.world.caller(stranger, &[Scope::Read, Scope::Write, Scope::Service]).await;
    for (method, path) in [
        ("GET", format!("/api/v1/channels/{id}/refusals")),
        ("POST", format!("/api/v1/channels/{id}/test")),
        ("POST", format!("/api/v1/channels/{id}/enable")),
        ("DELETE", format!("/api/v1/channels/{id}")),
        ("GET", format!("/settings/channels/{id}")),
    ] {
        let request = house.http.request(method.parse().expect("a method"), format!("{}{path}", house.app.url));
        let status = request.bearer_auth(key.reveal()).send().await.expect("an answer").status().as_u16();
        assert_eq!(status, 404, "S17: {method} {path}");
    }
}

fn resident_kb(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("kB")
}

/// S6: what is small on the wire and large inside, and what never ends.
#[tokio::test(flavor = "multi_thread")]
async fn bombs_are_refused_and_cost_little_memory() {
    let house = House::new().await;
    let (_, generic) = house.channel(new_channel(Provider::Generic)).await;
    let (_, postmark) = house.channel(new_channel(Provider::Postmark)).await;
    let bearer = format!("Bearer {}", generic.proofs.bearer.as_ref().expect("a key").reveal());
    let before = resident_kb(house.app.pid(), "VmRSS");
    let zeros = vec![0_u8; 900_000];
    for encoding in ["gzip", "br", "deflate", "zstd", "gzip, gzip"] {
        let request =
            house.post(&target(&generic)).header("authorization", &bearer).header("content-encoding", encoding);
        let status = request
            .header("content-type", "application/json")
            .body(zeros.clone())
            .send()
            .await
            .expect("an answer")
            .status();
        assert_eq!(status.as_u16(), 400, "S6: {encoding}");
    }
    let part = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n";
    let nested = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\n--c--\r\n";
    for body in [part.repeat(15_000), nested.repeat(8_000), "--b\r\n".repeat(200_000), "-".repeat(1_000_000)] {
        let request = house.post(&target(&generic)).header("authorization", &bearer);
        let request = request.header("content-type", "multipart/form-data; boundary=b").body(body);
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 400, "S6: a multipart bomb");
    }
    // Endless, for who is verified, who is not, and who nobody is; also for Postmark, whose limit is higher for who is verified.
    let wrong = "/ingest/nobody".to_owned();
    for (target, headers) in [
        (target(&generic), vec![("authorization", bearer.clone())]),
        (target(&generic), vec![]),
        (wrong.clone(), vec![("x-twilio-signature", "x".into())]),
        (wrong, vec![]),
        (target(&postmark), vec![]),
        (target(&postmark), vec![("x-forwarded-for", POSTMARK_IP.to_owned())]),
    ] {
        let pieces = stream::iter((0..10_000).map(|_| Ok::<_, std::io::Error>(vec![b' '; 16 << 10])));
        let request =
            house.post(&target).header("content-type", "application/json").body(reqwest::Body::wrap_stream(pieces));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        if let Ok(answer) = request.send().await {
            assert_eq!(answer.status().as_u16(), 413, "S6: {headers:?}");
        } // else closed while it was still sending: as good
    }
    let after = resident_kb(house.app.pid(), "VmHWM");
    println!("resident before {} MB, at most {} MB", before / 1024, after / 1024);
    assert!(after.saturating_sub(before) < 64 << 10, "S6: memory rose from {before} to {after} kB");
    assert_eq!(house.number("select count(*) from activities").await, 0);
}

/// S7: sends as it is, and returns the status line's code and whether the connection was closed.
async fn raw(app: &App, request: &[u8]) -> (Option<u16>, bool) {
    let address = app.url.strip_prefix("http://").expect("an address");
    let mut socket = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let _ = socket.write_all(request).await; // it may be answered and closed before all of it is sent
    let mut answer = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut answer)).await.is_ok();
    let text = String::from_utf8_lossy(&answer);
    (text.split_whitespace().nth(1).and_then(|code| code.parse().ok()), closed)
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_shapes_of_requests_are_refused_and_the_connection_closed() {
    let house = House::new().await;
    let (_, generic) = house.channel(new_channel(Provider::Generic)).await;
    let path = target(&generic);
    let bearer = generic.proofs.bearer.as_ref().expect("a key").reveal();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {bearer}\r\nContent-Type: application/json\r\n"
    );
    let body = r#"{"content":"x"}"#;
    let chunked = format!("f\r\n{body}\r\n0\r\n\r\n");
    let many: String = (0..300).map(|n| format!("X-H-{n}: 1\r\n")).collect();
    let shapes: Vec<(&str, String)> = vec![
        ("many headers", format!("{head}{many}Content-Length: 15\r\n\r\n{body}")),
        ("a huge header", format!("{head}X-Large: {}\r\nContent-Length: 15\r\n\r\n{body}", "x".repeat(200_000))),
        ("a long URL", format!("POST {path}?{} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "x".repeat(200_000))),
        ("two lengths", format!("{head}Content-Length: 15\r\nContent-Length: 16\r\n\r\n{body}")),
        ("a list of lengths", format!("{head}Content-Length: 15, 15\r\n\r\n{body}")),
        ("a signed length", format!("{head}Content-Length: +15\r\n\r\n{body}")),
        ("chunked last but one", format!("{head}Transfer-Encoding: chunked, gzip\r\n\r\n{chunked}")),
        ("an odd coding", format!("{head}Transfer-Encoding: xchunked\r\n\r\n{chunked}")),
        ("a bad chunk", format!("{head}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{body}\r\n0\r\n\r\n")),
        ("a space before the colon", format!("{head}Content-Length : 15\r\n\r\n{body}")),
        ("a folded header", format!("{head}X-A: 1\r\n 2\r\nContent-Length: 15\r\n\r\n{body}")),
        ("no HTTP", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n".into()),
    ];
    for (name, shape) in shapes {
        let (status, is_closed) = raw(&house.app, shape.as_bytes()).await;
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "S7: {name} was answered {status:?}");
        assert!(is_closed, "S7: after {name} the connection stays open");
    }
    assert_eq!(house.number("select count(*) from activities").await, 0, "S7: one of them left a row");
    let (status, _) =
        raw(&house.app, format!("{head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}").as_bytes())
            .await;
    assert_eq!(status, Some(202), "chunks alone are fine");
    // A length beside the chunks is dropped before anybody sees it, as RFC 9112 allows; the connection ends, so nothing can hide behind it.
    for lengths in
        ["Transfer-Encoding: chunked\r\nContent-Length: 15", "Content-Length: 15\r\nTransfer-Encoding: chunked"]
    {
        let hidden = format!("{head}{lengths}\r\n\r\n{chunked}{head}Content-Length: 15\r\n\r\n{body}");
        let (status, is_closed) = raw(&house.app, hidden.as_bytes()).await;
        assert_eq!((status, is_closed), (Some(202), true));
    }
    assert_eq!(
        house.number("select count(*) from activities").await,
        3,
        "S7: what hid behind a request was read as one"
    );
}

/// S32: who uploads a byte at a time is cut off, and others are served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_end_and_disturb_nobody() {
    let world = World::now().await;
    let (folder, port) = (Folder::new(), free_port());
    let mut serve = command(&folder.0, port);
    serve
        .env("DATABASE_URL", &world.database.url)
        .env("MASTER_KEY", MASTER_KEY)
        .env("PUBLIC_URL", PUBLIC_URL)
        .env("REQUEST_SECS", "2");
    let app = App::start(serve, &["serve"], port).await;
    let house = House { world, app, folder, http: client() };
    let (_, generic) = house.channel(new_channel(Provider::Generic)).await;
    let bearer = generic.proofs.bearer.as_ref().expect("a key").reveal().to_owned();
    let address = house.app.url.strip_prefix("http://").expect("an address").to_owned();
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut socket = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {bearer}\r\nContent-Length: 100000\r\n\r\n",
            target(&generic)
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        slow.push(socket);
    }
    let begun = Instant::now();
    let served = house.post(&target(&generic)).bearer_auth(&bearer).json(&json!({ "content": "quick" })).send().await;
    assert_eq!(served.expect("an answer").status().as_u16(), 202, "S32: others are served");
    assert!(begun.elapsed() < Duration::from_secs(2));
    // A search made to be costly ends by its deadline, while all that goes on.
    let (_, key) = house.world.caller(house.world.tenant_id, &[Scope::Read]).await;
    let words: Vec<String> = (0..900).map(|n| format!("w{n}")).collect();
    let search = format!("{}/api/v1/search?q={}", house.app.url, words.join("+"));
    let begun = Instant::now();
    let answer = house.http.get(search).bearer_auth(key.reveal()).send().await.expect("an answer");
    assert!([200, 400, 503].contains(&answer.status().as_u16()), "{}", answer.status());
    assert!(begun.elapsed() < Duration::from_secs(4), "S32: a search took {:?}", begun.elapsed());
    for mut socket in slow {
        let _ = socket.write_all(b"x").await;
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "S32: a slow upload is never cut off");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 503"), "{text}");
    }
    assert_eq!(house.number("select count(*) from activities").await, 1);
}

fn mail(id: &str, text: &str, attachments: &[(&str, &str, &[u8])]) -> String {
    let files: Vec<Value> = attachments
        .iter()
        .map(|(name, kind, bytes)| {
            json!({ "Name": name, "ContentType": kind, "Content": STANDARD.encode(bytes), "ContentLength": bytes.len(), "ContentID": "" })
        })
        .collect();
    json!({
        "From": "ana@example.com", "FromName": "Ana", "FromFull": { "Email": "ana@example.com", "Name": "Ana", "MailboxHash": "" },
        "To": "in@mail.example", "Subject": "Papers", "MessageID": id, "TextBody": text, "HtmlBody": "",
        "Headers": [{ "Name": "Message-ID", "Value": "<m1@example.com>" }], "Attachments": files
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_brings_its_files_however_large() {
    let house = House::new().await;
    let (_, postmark) = house.channel(new_channel(Provider::Postmark)).await;
    let large: Vec<u8> = (0..22_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let body = mail(
        "mail-1",
        "see attached",
        &[("../../etc/passwd", "application/pdf", b"%PDF-"), ("large.bin", "application/octet-stream", &large)],
    );
    assert!(body.len() > 29 << 20);
    let send = |body: String, from: &str| {
        house
            .post(&target(&postmark))
            .header("x-forwarded-for", from.to_owned())
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    let answer = send(body.clone(), POSTMARK_IP).await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    let id: Uuid = answer.json::<Value>().await.expect("JSON")["id"].as_str().expect("an id").parse().expect("a uuid");
    let mut conn = house.world.conn().await;
    let files =
        store::activities::attachments(&mut conn, house.world.tenant_id, domain::ActivityId(id)).await.expect("files");
    let named: Vec<(&str, i64)> = files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    assert_eq!(named, [("../../etc/passwd", 5), ("large.bin", 22 << 20)]);
    let payload =
        store::activities::payload(&mut conn, house.world.tenant_id, domain::ActivityId(id)).await.expect("an answer");
    assert!(payload.expect("an original").blob_key.is_some());
    let listed: Value = sqlx::query_scalar("select metadata -> 'attachments' from activities where id = $1")
        .bind(id)
        .fetch_one(&mut *conn)
        .await
        .expect("a row");
    assert_eq!(listed[1]["name"], "large.bin");

    let (_, key) = house.world.caller(house.world.tenant_id, &[Scope::Read]).await;
    let saved = house
        .http
        .get(format!("{}/activities/{id}/attachments/1", house.app.url))
        .bearer_auth(key.reveal())
        .send()
        .await
        .expect("an answer");
    assert_eq!(saved.headers()["content-disposition"], "attachment; filename=\"large.bin\"");
    assert_eq!(saved.headers()["content-type"], "application/octet-stream");
    assert!(saved.bytes().await.expect("bytes") == large, "the file is not what was sent");
    let saved = house
        .http
        .get(format!("{}/activities/{id}/attachments/0", house.app.url))
        .bearer_auth(key.reveal())
        .send()
        .await
        .expect("an answer");
    assert_eq!(saved.headers()["content-disposition"], "attachment; filename=\"_.._etc_passwd\"", "S11");

    // The same mail again is the same; a forger gets no further than a megabyte, and is answered 401, never 403.
    let again: Value = send(body.clone(), POSTMARK_IP).await.expect("an answer").json().await.expect("JSON");
    assert_eq!(again["id"], id.to_string());
    if let Ok(answer) = send(body, "203.0.113.9").await {
        assert_eq!(answer.status().as_u16(), 413);
    }
    let forged = send(mail("mail-2", "forged", &[]), "203.0.113.9").await.expect("an answer");
    assert_eq!(forged.status().as_u16(), 401);
    let basic = postmark.proofs.basic.as_ref().expect("a password").reveal();
    let (user, password) = basic.split_once(':').expect("user and password");
    let request =
        house.post(&target(&postmark)).basic_auth(user, Some(password)).header("content-type", "application/json");
    assert_eq!(
        request.body(mail("mail-3", "by password", &[])).send().await.expect("an answer").status().as_u16(),
        200
    );
    assert_eq!(house.number("select count(*) from activities").await, 2);

    // What was refused is listed with why, never with what was sent.
    let refusals = "select count(*) from tributary.channel_refusals where reason like '%none of Postmark%' and address = '203.0.113.9' and status = 401";
    assert!(wait_until(Duration::from_secs(5), async || house.number(refusals).await == 1).await);
    let canaries =
        "select count(*) from tributary.channel_refusals r where r::text like '%forged%' or r::text like '%mail-2%'";
    assert_eq!(house.number(canaries).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_first_contacts_of_one_address_are_one_contact() {
    let house = House::new().await;
    let new = NewChannel { auto_create_contacts: true, ..new_channel(Provider::Generic) };
    let (_, generic) = house.channel(new).await;
    let (_, deaf) = house.channel(new_channel(Provider::Generic)).await;
    let bearer = |secrets: &Secrets| secrets.proofs.bearer.as_ref().expect("a key").reveal().to_owned();
    let sends = (0..1_000).map(|n| {
        // Half of them write the address in another way; every tenth is somebody else, in shuffled order.
        let from = match n % 10 {
            0 => format!("Person {} <p{}@example.com>", n % 7, n % 7),
            1..5 => "Ann <ANN@Example.com>".to_owned(),
            _ => "ann@example.com".to_owned(),
        };
        let request =
            house.post(&target(&generic)).bearer_auth(bearer(&generic)).json(&json!({ "content": "x", "from": from }));
        async move { request.send().await.expect("an answer").status().as_u16() }
    });
    let answers: Vec<u16> = stream::iter(sends).buffer_unordered(64).collect().await;
    assert!(answers.iter().all(|status| *status == 202));
    assert_eq!(house.number("select count(*) from contacts").await, 8);
    for from in ["no-reply@shop.example", "bounces+17=x@mail.example", "MAILER-DAEMON@mx.example", "anonymous", "12345"]
    {
        let request =
            house.post(&target(&generic)).bearer_auth(bearer(&generic)).json(&json!({ "content": "x", "from": from }));
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 202);
    }
    assert_eq!(house.number("select count(*) from contacts").await, 8, "a program became a contact");
    let anns = "select count(*) from activities a join contacts c on c.tenant_id = a.tenant_id and c.id = a.contact_id where c.email = 'ann@example.com'";
    assert_eq!(house.number(anns).await, 900);
    let made = "select count(*) from contacts where first_name = 'ann' and last_name = '' and tags = '{auto-created,unqualified}'";
    assert_eq!(house.number(made).await, 1);
    let request = house
        .post(&target(&deaf))
        .bearer_auth(bearer(&deaf))
        .json(&json!({ "content": "x", "from": "new@example.com" }));
    assert_eq!(request.send().await.expect("an answer").status().as_u16(), 202);
    assert_eq!(house.number("select count(*) from activities where contact_id is null").await, 6, "Unmatched");
}

/// S2: unset, empty or short secrets.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_without_a_good_secret_is_never_open() {
    let house = House::new().await;
    let (_, key) = house.world.caller(house.world.tenant_id, &[Scope::Read, Scope::Service]).await;
    let add = async |body: Value| {
        let request = house.http.post(format!("{}/api/v1/channels", house.app.url)).bearer_auth(key.reveal());
        request.json(&body).send().await.expect("an answer").status().as_u16()
    };
    for (body, status) in [
        (json!({ "name": "t", "provider": "twilio" }), 400),
        (json!({ "name": "t", "provider": "twilio", "secret": "" }), 400),
        (json!({ "name": "t", "provider": "twilio", "secret": "   " }), 400),
        (json!({ "name": "t", "provider": "twilio", "auth_token": "x".repeat(23) }), 400),
        (json!({ "name": "t", "provider": "twilio", "auth_token": "x".repeat(24) }), 201),
        (json!({ "name": "g", "provider": "generic", "secret": "short" }), 400),
        (json!({ "name": "g", "provider": "generic" }), 201),
        (json!({ "name": "p", "provider": "postmark" }), 201),
        (json!({ "name": "p", "provider": "postmark", "settings": { "ranges": ["not a network"] } }), 400),
        (json!({ "name": "x", "provider": "unheard of" }), 400),
        (json!({ "name": "", "provider": "generic" }), 400),
    ] {
        assert_eq!(add(body.clone()).await, status, "S2: {body}");
    }
    // Whatever happened to its row in the vault, it does not open.
    let (id, secrets) = house.twilio().await;
    let sealed = json!({ "ingestion_key": secrets.ingestion_key.reveal(), "auth_token": "" });
    let mut conn = house.world.conn().await;
    house
        .world
        .env
        .vault
        .put(&mut conn, house.world.tenant_id, id.0, &Secret::new(sealed.to_string()))
        .await
        .expect("sealed");
    let answer = house
        .http
        .post(format!("{}/api/v1/channels/{id}/enable", house.app.url))
        .bearer_auth(key.reveal())
        .send()
        .await;
    assert_eq!(answer.expect("an answer").status().as_u16(), 409, "S2: a channel with an empty secret was enabled");
    let url = format!("{PUBLIC_URL}{}", target(&secrets));
    let body = "MessageSid=SM1&Body=x";
    for token in ["", " "] {
        let request = house
            .post(&target(&secrets))
            .header("x-twilio-signature", sign_twilio(&Secret::new(token), &url, body.as_bytes()));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 401, "S2: an empty secret signs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_managed_from_the_command_line() {
    let house = House::new().await;
    let tributary = |args: &[&str], stdin: &str| {
        let mut command = command(&house.folder.0, free_port());
        command.env("LISTEN", house.app.url.strip_prefix("http://").expect("an address"));
        command
            .env("DATABASE_URL", &house.world.database.url)
            .env("MASTER_KEY", MASTER_KEY)
            .env("PUBLIC_URL", PUBLIC_URL);
        let path = house.folder.0.join("stdin");
        std::fs::create_dir_all(&house.folder.0).expect("a folder");
        std::fs::write(&path, stdin).expect("a file");
        command.stdin(std::fs::File::open(&path).expect("a file"));
        let (output, stdout, stderr) = run(command.args(args));
        (output.status.success(), stdout, stderr)
    };
    let (is_done, stdout, stderr) = tributary(
        &["channel", "add", "line", "--provider", "twilio", "--secret", "-", "--json"],
        &format!("{TOKEN}\n"),
    );
    assert!(is_done, "{stderr}");
    assert!(!stdout.contains(TOKEN) && !stderr.contains(TOKEN), "the token is Twilio's to show");
    let made: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(made["url"].as_str().is_some_and(|url| url.starts_with(PUBLIC_URL) && url.ends_with("#rc=5&rp=all")));
    let id = made["id"].as_str().expect("an id").to_owned();
    let (is_done, stdout, stderr) = tributary(&["channel", "send-test", &id], "");
    assert!(is_done && stdout.contains("200 "), "{stdout}{stderr}");
    let (is_done, _, stderr) = tributary(
        &["channel", "rotate", &id, "--secret", "-", "--keep-hours", "0"],
        "another-token-of-24-characters\n",
    );
    assert!(is_done, "{stderr}");
    let (is_done, stdout, _) = tributary(&["channel", "disable", &id], "");
    assert!(is_done && stdout.contains("within 5 s"));
    let is_told = wait_until(Duration::from_secs(10), async || {
        let is_taken = tributary(&["channel", "send-test", &id], "").0;
        !is_taken && tributary(&["channel", "show", &id], "").1.contains("the channel is disabled")
    });
    assert!(is_told.await, "a disabled channel takes webhooks, or its owner is not told why it does not");
    let (is_done, _, stderr) = tributary(&["channel", "add", "line", "--provider", "twilio"], "");
    assert!(!is_done && stderr.contains("auth token"), "{stderr}");

    let csv = "email,phone,name,tags\nann@example.com,+1 415 867 5309,Ann Smith,vip;press\nbroken,,,\n,,Nobody,\nann@EXAMPLE.com,,,late\n";
    let (is_done, stdout, stderr) = tributary(&["contact", "import", "-"], csv);
    assert!(is_done && stdout.contains("1 new, 1 completed, 0 as they were, 2 left out"), "{stdout}{stderr}");
    assert!(stderr.contains("line 3 was left out") && stderr.contains("line 4"), "{stderr}");
    let (_, stdout, _) = tributary(&["contact", "list", "smith", "--json"], "");
    let listed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(listed[0]["tags"], json!(["vip", "press", "late"]));
    let (_, stdout, _) = tributary(&["activity", "list", "--view", "unmatched", "--json"], "");
    let unmatched: Value = serde_json::from_str(&stdout).expect("JSON");
    let activity = unmatched[0]["id"].as_str().expect("the test message").to_owned();
    let contact = listed[0]["id"].to_string();
    let (is_done, stdout, stderr) = tributary(&["activity", "link", &activity, &contact, "--add-address"], "");
    assert!(is_done && stdout.starts_with("linked"), "{stdout}{stderr}");
    let (_, stdout, _) = tributary(&["contact", "show", &contact], "");
    assert!(stdout.contains("+15005550006"), "{stdout}");
    let (is_done, _, _) = tributary(&["activity", "skip", &activity], "");
    assert!(is_done);
    let (is_done, stdout, _) = tributary(&["activity", "retry", &activity], "");
    assert!(is_done, "{stdout}");
    assert!(!tributary(&["activity", "retry", &activity], "").0, "what has not failed is not retried");
}

/// Senders that try again as Twilio does with the shown URL's rules (five times within 15 s) and as Postmark does (its minutes are our
/// tenths of a second). 10,000 events in `./test --slow`.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_database_under_a_burst_loses_nothing() {
    let n = if testkit::is_slow() { 10_000 } else { 1_500 };
    let cluster = Cluster::private().await;
    let house = House::on(World::with(cluster.database("burst").await, Clock::System).await).await;
    let (_, twilio) = house.twilio().await;
    let (_, postmark) = house
        .channel(NewChannel {
            settings: Settings { require_ip: false, ranges: None },
            ..new_channel(Provider::Postmark)
        })
        .await;
    let url = format!("{PUBLIC_URL}{}", target(&twilio));
    const TOTAL: Duration = Duration::from_secs(15); // Twilio's, all attempts together
    let attempt = async |nth: usize, left: Duration| -> bool {
        let request = if nth.is_multiple_of(2) {
            let sid = format!("SM{nth}");
            let body = form(&[("MessageSid", &sid), ("From", "+14158675309"), ("Body", "in the storm")]);
            let signature = sign_twilio(&Secret::new(TOKEN), &url, body.as_bytes());
            let request = house.post(&target(&twilio)).header("x-twilio-signature", signature).timeout(left);
            request.header("content-type", "application/x-www-form-urlencoded").body(body)
        } else {
            let body = mail(&format!("mail-{nth}"), "in the storm", &[]);
            house.post(&target(&postmark)).header("content-type", "application/json").body(body)
        };
        request.send().await.is_ok_and(|answer| answer.status().as_u16() == 200)
    };
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let deliver = async |nth: usize| -> bool {
        let begun = Instant::now();
        let waits: &[u64] = if nth.is_multiple_of(2) {
            &[0, 0, 0, 0, 0]
        } else {
            &[100, 500, 1_000, 1_000, 1_000, 1_500, 3_000, 6_000, 12_000, 36_000]
        };
        for wait in std::iter::once(&0).chain(waits) {
            tokio::time::sleep(Duration::from_millis(*wait)).await;
            let left = TOTAL.saturating_sub(begun.elapsed());
            if nth.is_multiple_of(2) && left.is_zero() {
                return false;
            }
            tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if attempt(nth, left).await {
                return true;
            }
        }
        false
    };
    let storm = async {
        for nth in 0..3 {
            tokio::time::sleep(Duration::from_millis(700)).await;
            cluster.kill();
            if nth == 0 && testkit::is_slow() {
                tokio::time::sleep(Duration::from_millis(10_300)).await; // longer than anybody is held: they hear 503
            }
            cluster.restart().await;
        }
    };
    let sends = stream::iter(0..n).map(deliver).buffer_unordered(64).collect::<Vec<bool>>();
    let ((), answered) = tokio::join!(storm, sends);
    let lost = answered.iter().filter(|is_taken| !**is_taken).count();
    let mut conn = house.world.login_conn().await;
    sqlx::raw_sql("set role service_role").execute(&mut conn).await.expect("the service's role");
    let rows: i64 = sqlx::query_scalar("select count(*) from activities").fetch_one(&mut conn).await.expect("a count");
    let again = tries.into_inner() - n;
    println!("{n} events, 3 kills, {again} sent again after an error, {lost} lost, {rows} rows");
    assert!(again > 0 || !testkit::is_slow(), "nobody was told to come again: the test shows no redelivery");
    assert_eq!((lost, rows), (0, n as i64), "events were lost or doubled");
}
