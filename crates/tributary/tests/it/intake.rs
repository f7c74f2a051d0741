//! The door for webhooks: what is answered with success is durable, once; what is not wanted leaves nothing behind.

use std::process::Command;
use std::time::Duration;

use domain::{ActivityId, ChannelId, Scope, Secret, TenantId};
use engine::channels::NewChannel;
use futures_util::{StreamExt as _, stream};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Response;
use serde_json::{Value, json};
use sha2::Sha256;
use store::activities::Wanted;
use testkit::{World, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::app::{App, Folder, client, command, free_port, get, run};
use crate::names::open_channel;

/// The world's own master key, so that the server can open what the test sealed.
pub const MASTER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

pub struct Door {
    pub world: World,
    pub app: App,
    pub channel: ChannelId,
    pub secrets: Opens,
    pub folder: Folder,
    pub http: reqwest::Client,
}

impl Door {
    pub async fn new() -> Self {
        let world = World::now().await;
        let url = world.database.url.clone();
        Self::on(world, &url).await
    }

    pub async fn on(world: World, database_url: &str) -> Self {
        let (channel, secrets) = add_channel(&world, world.tenant_id, None).await;
        let folder = Folder::new();
        let app = serve(&folder, database_url, None).await;
        Self { world, app, channel, secrets, folder, http: client() }
    }

    pub fn url(&self) -> String {
        format!("{}/ingest/{}", self.app.url, self.secrets.ingestion_key.reveal())
    }

    /// A request with a bearer key.
    pub fn post(&self) -> reqwest::RequestBuilder {
        self.http.post(self.url()).bearer_auth(self.secrets.bearer.reveal())
    }

    pub async fn rows(&self) -> i64 {
        count(&self.world, "select count(*) from public.activities").await
    }
}

/// The secrets of a generic channel.
pub struct Opens {
    pub ingestion_key: Secret,
    pub webhook_secret: Secret,
    pub bearer: Secret,
}

/// A channel without a limit.
pub fn new_channel(provider: &str) -> NewChannel {
    NewChannel {
        provider: provider.to_owned(),
        name: "shop".to_owned(),
        max_per_minute: Some(None),
        ..NewChannel::default()
    }
}

pub async fn add_channel(world: &World, tenant_id: TenantId, max_per_minute: Option<i32>) -> (ChannelId, Opens) {
    let new = NewChannel { max_per_minute: Some(max_per_minute), ..new_channel("generic") };
    let made = open_channel(world, tenant_id, new).await;
    let proof = |name: &str| made.secrets.proofs.get(name).cloned().expect("a secret");
    let (webhook_secret, bearer) = (proof("webhook_secret"), proof("bearer"));
    (made.id, Opens { ingestion_key: made.secrets.ingestion_key, webhook_secret, bearer })
}

pub async fn serve(folder: &Folder, database_url: &str, crash: Option<&str>) -> App {
    let port = free_port();
    let mut serve = command(&folder.0, port);
    serve.env("DATABASE_URL", database_url).env("LOG", "debug").env("MASTER_KEY", MASTER_KEY);
    if let Some(crash) = crash {
        serve.env("TRIBUTARY_CRASH", crash);
    }
    App::start(serve, &["serve"], port).await
}

async fn count(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect("a count")
}

pub fn sign(secret: &Secret, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()).expect("a key");
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

pub async fn id_of(answer: Response) -> ActivityId {
    assert_eq!(answer.status().as_u16(), 202);
    let body: Value = answer.json().await.expect("JSON");
    assert_eq!(body["success"], true, "{body}");
    body["id"].as_str().expect("an id").parse().expect("a uuid")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_event_is_kept_with_its_original_and_a_redelivery_is_the_same() {
    let door = Door::new().await;
    let body = r#"{"type":"email","content":"Hello é","subject":"Order 7","from":"ann@acme.test","order":12345678901234567890123}"#;
    let signed = |key: Option<(&'static str, &'static str)>| {
        let request = door.http.post(door.url()).header("content-type", "application/json");
        let request = request.header("x-webhook-signature", sign(&door.secrets.webhook_secret, body.as_bytes()));
        key.into_iter().fold(request, |request, (name, value)| request.header(name, value)).body(body)
    };
    let first = signed(Some(("idempotency-key", "evt-1"))).send().await.expect("an answer");
    assert!(!first.headers().contains_key("x-event-key"));
    let id = id_of(first).await;
    assert_eq!(id_of(signed(Some(("idempotency-key", "evt-1"))).send().await.expect("an answer")).await, id);
    let other = signed(Some(("webhook-id", "evt-2"))).send().await.expect("an answer");
    assert_ne!(id_of(other).await, id);
    let keyless = signed(None).send().await.expect("an answer");
    assert_eq!(keyless.headers()["x-event-key"], "none");
    let keyless = id_of(keyless).await;
    assert_ne!(keyless, id);
    let old_address = format!(
        "{}/functions/v1/ingest-activity?provider=twilio&key={}",
        door.app.url,
        door.secrets.ingestion_key.reveal()
    );
    let by_form = door.http.post(old_address).bearer_auth(door.secrets.bearer.reveal());
    id_of(by_form.form(&[("content", "by form"), ("type", "sms")]).send().await.expect("an answer")).await;
    id_of(door.post().header("content-type", "text/plain").body("plain").send().await.expect("an answer")).await;
    assert_eq!(door.rows().await, 5);

    let (tenant_id, mut conn) = (door.world.tenant_id, door.world.conn().await);
    let kept = store::activities::get(&mut conn, tenant_id, id).await.expect("an answer").expect("an activity");
    assert_eq!((kept.r#type.as_str(), kept.direction.as_str()), ("email", "inbound"));
    assert_eq!((kept.processing_status.as_str(), kept.channel_id), ("raw", Some(door.channel.0)));
    let raw = json!({ "source_type": "text", "content": "Hello é", "subject": "Order 7", "sender": "ann@acme.test" });
    assert_eq!(kept.raw_data, raw);
    let exact: String = sqlx::query_scalar("select metadata ->> 'order' from public.activities where id = $1")
        .bind(id.0)
        .fetch_one(&mut *conn)
        .await
        .expect("a number");
    assert_eq!(exact, "12345678901234567890123", "a huge number was rounded");
    let original = store::activities::payload(&mut conn, tenant_id, id).await.expect("an answer").expect("a payload");
    assert_eq!(original.body.as_deref(), Some(body.as_bytes()));
    assert_eq!(original.content_type.as_deref(), Some("application/json"));
    let wanted = Wanted { limit: 2, ..Wanted::default() };
    let newest = store::activities::list(&mut conn, tenant_id, wanted).await.expect("a list");
    assert_eq!(newest.len(), 2);
    assert_eq!(newest[0].raw_data["content"], "plain");
    let minute = Duration::from_secs(60);
    let counted = store::activities::count_per_bucket(&mut conn, None, tenant_id, minute, 60).await.expect("counts");
    let per_minute: Vec<i64> = counted.iter().map(|bucket| bucket.n).collect();
    assert_eq!((per_minute.len(), per_minute.iter().sum::<i64>()), (60, 5));
    assert!(per_minute[59] + per_minute[58] == 5, "{per_minute:?}");
    let stranger = door.world.other_tenant("somebody else").await;
    assert!(store::activities::get(&mut conn, stranger, id).await.expect("an answer").is_none(), "S17");
    assert_eq!(
        count(&door.world, "select count(*) from pgmq.q_remember_activity").await,
        5,
        "one message per activity"
    );
}

/// S5: a request of Stripe's or Slack's that is repeated with other headers is the same event.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_a_signed_body_goes_before_headers_that_nobody_signed() {
    let door = Door::new().await;
    let now = chrono::Utc::now().timestamp();
    let body = r#"{"id":"evt_1","event_id":"Ev1","content":"paid"}"#;
    let hex = |text: String| sign(&door.secrets.webhook_secret, text.as_bytes()).replace("sha256=", "");
    let stripe = ("stripe-signature", format!("t={now},v1={}", hex(format!("{now}.{body}"))));
    let slack = ("x-slack-signature", format!("v0={}", hex(format!("v0:{now}:{body}"))));
    for (name, signature) in [stripe, slack] {
        let send = async |content_type: &str, more: &[(&str, &str)]| {
            let request = door.http.post(door.url()).header("content-type", content_type).header(name, &signature);
            let request = request.header("x-slack-request-timestamp", now.to_string()).body(body);
            let request = more.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            id_of(request.send().await.expect("an answer")).await
        };
        let id = send("application/json", &[]).await;
        for more in [("idempotency-key", "other"), ("webhook-id", "other"), ("x-github-delivery", "other")] {
            for content_type in ["application/json", "text/plain", "application/x-www-form-urlencoded"] {
                let again = send(content_type, &[more, ("webhook-signature", "v1,x")]).await;
                assert_eq!(again, id, "S5: {name} repeated as {content_type} with {more:?}");
            }
        }
    }
    assert_eq!(door.rows().await, 2);
}

/// F25.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_a_thousand_times_at_once_is_one_row() {
    let door = Door::new().await;
    let sends = (0..1_000).map(|n| {
        let request = door.post().header("webhook-id", "the-one").json(&json!({ "content": "again", "n": n }));
        async move { id_of(request.send().await.expect("an answer")).await }
    });
    let ids: Vec<ActivityId> = stream::iter(sends).buffer_unordered(64).collect().await;
    assert_eq!(ids.len(), 1_000, "F25: all 2xx");
    assert!(ids.iter().all(|id| *id == ids[0]), "F25: one id");
    assert_eq!(door.rows().await, 1, "F25: one row");
    assert_eq!(count(&door.world, "select count(*) from tributary.activity_payloads").await, 1);
    assert_eq!(count(&door.world, "select count(*) from pgmq.q_remember_activity").await, 1);
}

/// S1, S8.
#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_as_documented_and_leaves_no_row() {
    let door = Door::new().await;
    let other = door.world.other_tenant("somebody else").await;
    let (_, others) = add_channel(&door.world, other, None).await;
    let (good, url) = (r#"{"content":"x"}"#, door.url());
    let signature = sign(&door.secrets.webhook_secret, good.as_bytes());
    let foreign = sign(&others.webhook_secret, good.as_bytes());
    let bearer = |key: &Secret| format!("Bearer {}", key.reveal());
    let wrong_url = format!("{}/ingest/{}", door.app.url, "A".repeat(43));
    let odd_url = format!("{}/ingest/%ff%00", door.app.url);
    let keyless_url = format!("{}/functions/v1/ingest-activity", door.app.url);
    // S1: every refused sender gets the same answer, whatever was wrong.
    type Header<'a> = Option<(&'a str, String)>;
    let refusals: [(&str, Header, &str); 12] = [
        (&url, None, good),
        (&url, Some(("x-webhook-signature", signature.clone())), r#"{"content":"y"}"#),
        (&url, Some(("x-webhook-signature", signature[..signature.len() - 1].to_owned())), good),
        (&url, Some(("x-webhook-signature", signature[7..].to_owned())), good),
        (&url, Some(("x-webhook-signature", foreign)), good),
        (&url, Some(("authorization", bearer(&others.bearer))), good),
        (&url, Some(("authorization", bearer(&Secret::new("ak_live_")))), good),
        (&url, Some(("authorization", bearer(&door.secrets.ingestion_key))), good),
        (&url, None, "{broken"),
        (&wrong_url, Some(("x-webhook-signature", signature.clone())), good),
        (&odd_url, Some(("x-webhook-signature", signature.clone())), good),
        (&keyless_url, Some(("x-webhook-signature", signature.clone())), good),
    ];
    let mut said = Vec::new();
    for (url, header, body) in refusals {
        let request = door.http.post(url).header("content-type", "application/json").header("accept", "text/html");
        let request = header.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let answer = request.body(body.to_owned()).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 401, "S1: {header:?} {body}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let mut problem: Value = answer.json().await.expect("JSON");
        problem["request_id"] = Value::Null;
        said.push(problem);
    }
    assert!(said.iter().all(|problem| *problem == said[0]), "S1: refusals can be told apart: {said:?}");

    // S8 and the rest of what a verified sender may do wrong.
    let json = "application/json";
    let many_keys = format!("{{{}\"z\":0}}", "\"k\":0,".repeat(150_000));
    let nested = format!("{{\"content\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let malformed: Vec<(&str, Vec<u8>)> = vec![
        (json, b"{".to_vec()),
        (json, b"".to_vec()),
        (json, b"{}".to_vec()),
        (json, b"[1]".to_vec()),
        (json, br#"{"content":"a\u0000b"}"#.to_vec()),
        (json, b"{\"content\":\"a\0b\"}".to_vec()),
        (json, b"{\"content\":\"\xff\xfe\"}".to_vec()),
        (json, br#"{"content":"\ud800"}"#.to_vec()),
        (json, br#"{"content":"x","n":1e999999999}"#.to_vec()),
        (json, nested.into_bytes()),
        (json, many_keys.into_bytes()),
        ("application/x-www-form-urlencoded", b"content=a%00b".to_vec()),
        ("application/x-www-form-urlencoded", b"content=%ff".to_vec()),
        ("text/plain", b"a\0b".to_vec()),
        ("application/octet-stream", b"x".to_vec()),
    ];
    for (kind, body) in malformed {
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let answer = door.post().header("content-type", kind).body(body).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 400, "S8: {kind} {shown}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    }
    let answer = door.post().header("webhook-id", "x".repeat(501)).body(good).send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 400);
    let large = format!("{{\"content\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(door.post().body(large).send().await.expect("an answer").status().as_u16(), 413);
    assert_eq!(chunked(&door, 3 << 20).await, 413, "S6: without a length");
    let million = format!("{{{}\"z\":0}}", "\"\":0,".repeat(1_000_000));
    assert_eq!(door.post().body(million).send().await.expect("an answer").status().as_u16(), 413, "S8: 1e6 keys");
    assert_eq!(get(&door.app.url, "/ingest/x").await.0, 405);
    assert_eq!(door.rows().await, 0, "S1, S8: something was kept");

    let just_fits = format!("{{\"content\":\"{}\"}}", "x".repeat((1 << 20) - 14));
    let large =
        id_of(door.post().header("content-type", json).body(just_fits.clone()).send().await.expect("an answer"));
    let (large, mut conn) = (large.await, door.world.conn().await);
    let original = store::activities::payload(&mut conn, door.world.tenant_id, large).await.expect("an answer");
    let key = original.and_then(|original| original.blob_key).expect("a large original lies in the blob store");
    let blobs = engine::blobs::Blobs::in_folder(&door.folder.0.join("blobs"));
    let kept = blobs.get(door.world.tenant_id, &key.parse().expect("a key")).await.expect("an answer");
    assert_eq!(kept.as_deref(), Some(just_fits.as_bytes()));
    let twice = r#"{"content":"first","content":"second","a":1,"a":2}"#;
    id_of(door.post().header("content-type", json).body(twice).send().await.expect("an answer")).await;
    assert_eq!(door.rows().await, 2);
}

/// Sends a body in chunks, without saying how long it will be; the answer's status.
async fn chunked(door: &Door, bytes: usize) -> u16 {
    let mut socket =
        tokio::net::TcpStream::connect(door.app.url.trim_start_matches("http://")).await.expect("a connection");
    let head = format!(
        "POST /ingest/{} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        door.secrets.ingestion_key.reveal(),
        door.secrets.bearer.reveal()
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
    let (mut reading, mut writing) = socket.split();
    let send = async {
        for _ in 0..bytes >> 16 {
            if writing.write_all(chunk.as_bytes()).await.is_err() {
                break; // refused before the end
            }
        }
        let _ = writing.write_all(b"0\r\n\r\n").await;
    };
    let mut said = [0; 12];
    let (_, read) = tokio::join!(send, reading.read_exact(&mut said));
    read.expect("an answer");
    String::from_utf8_lossy(&said[9..]).parse().expect("a status")
}

/// S3.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_are_told_to_wait_and_nobody_else_is() {
    let door = Door::new().await;
    let (_, limited) = add_channel(&door.world, door.world.tenant_id, Some(3)).await;
    let send = async |key: &str, bearer: &Secret| {
        let url = format!("{}/ingest/{key}", door.app.url);
        let answer = door.http.post(url).bearer_auth(bearer.reveal()).json(&json!({ "content": "x" })).send().await;
        let answer = answer.expect("an answer");
        let wait = answer.headers().get("retry-after").map(|value| value.to_str().expect("text").to_owned());
        (answer.status().as_u16(), wait.and_then(|text| text.parse::<u64>().ok()))
    };
    for _ in 0..3 {
        assert_eq!(send(limited.ingestion_key.reveal(), &limited.bearer).await.0, 202);
    }
    let (status, wait) = send(limited.ingestion_key.reveal(), &limited.bearer).await;
    assert_eq!(status, 429, "a fourth event in a minute");
    assert!(wait.is_some_and(|secs| (1..=61).contains(&secs)), "{wait:?}");

    let wrong = Secret::new("ak_live_wrong");
    let keys = [door.secrets.ingestion_key.reveal(), "nobody"];
    for n in 0..100 {
        assert_eq!(send(keys[n % 2], &wrong).await.0, 401, "refusal {n}");
    }
    for key in keys {
        let (status, wait) = send(key, &wrong).await;
        assert_eq!(status, 429, "S3: after a hundred refusals, whether a channel has the key or not");
        assert!(wait.is_some_and(|secs| (1..=61).contains(&secs)), "{wait:?}");
    }
    let good = send(door.secrets.ingestion_key.reveal(), &door.secrets.bearer).await;
    assert_eq!(good.0, 202, "a good sender paid for a bad one at its address");
}

/// I7, S13.
#[tokio::test(flavor = "multi_thread")]
async fn no_key_secret_or_body_is_in_any_output() {
    let door = Door::new().await;
    let canary = "canary-7f3a-body";
    let wrong = "canary-wrong-key";
    id_of(door.post().json(&json!({ "content": canary })).send().await.expect("an answer")).await;
    let mut answers = String::new();
    for (url, bearer, body) in [
        (door.url(), "ak_live_canary-wrong-bearer", format!("{{\"content\":\"{canary}\"}}")),
        (door.url(), door.secrets.bearer.reveal(), format!("{{{canary}")),
        (format!("{}/ingest/{wrong}", door.app.url), door.secrets.bearer.reveal(), canary.into()),
        (format!("{}/ingest/{wrong}/more", door.app.url), door.secrets.bearer.reveal(), canary.into()),
        (format!("{}/functions/v1/ingest-activity?key={wrong}", door.app.url), "x", canary.into()),
    ] {
        let request = door.http.post(url).bearer_auth(bearer).header("content-type", "application/json");
        answers += &request.body(body).send().await.expect("an answer").text().await.expect("text");
    }
    let page = door.http.get(door.url()).header("accept", "text/html").send().await.expect("an answer");
    answers += &format!("{:?}", page.headers());
    answers += &page.text().await.expect("text");
    let (_, metrics) = get(&door.app.url, "/metrics").await;
    for metric in ["accepted_total{channel=", "refused_total", "group_rows", "wait_seconds"] {
        assert!(metrics.contains(&format!("tributary_intake_{metric}")), "{metric} is missing:\n{metrics}");
    }
    let printed = door.app.printed();
    assert!(printed.contains("/ingest/{key} answered 202"), "nothing was logged:\n{printed}");
    let outputs = [printed, metrics, answers].concat();
    let Opens { ingestion_key, webhook_secret, bearer } = &door.secrets;
    for secret in [ingestion_key.reveal(), webhook_secret.reveal(), bearer.reveal(), "canary"] {
        let at = outputs.find(secret);
        assert!(at.is_none(), "I7, S13: {:?}", at.map(|at| &outputs[at.saturating_sub(200)..at]));
    }
}

/// S24.
#[tokio::test(flavor = "multi_thread")]
async fn channels_are_made_closed_and_deleted_over_http() {
    let door = Door::new().await;
    let (_, service) = door.world.caller(door.world.tenant_id, &[Scope::Service]).await;
    let other = door.world.other_tenant("somebody else").await;
    let (_, stranger) = door.world.caller(other, &[Scope::Service]).await;
    let ask = async |method: &str, path: &str, key: &Secret, body: Option<Value>| {
        let request = door.http.request(method.parse().expect("a method"), format!("{}{path}", door.app.url));
        let request = body.iter().fold(request.bearer_auth(key.reveal()), |request, body| request.json(body));
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    let short = json!({ "name": "x", "webhook_secret": "only-23-characters-long" });
    assert_eq!(ask("POST", "/api/v1/channels", &service, Some(short)).await.0, 400, "S2");
    assert_eq!(
        ask("POST", "/api/v1/channels", &service, Some(json!({ "name": "x", "webhook_secret": "" }))).await.0,
        400
    );
    let own = "a-secret-of-my-own-with-30-char";
    let (status, made) =
        ask("POST", "/api/v1/channels", &service, Some(json!({ "name": "crm", "webhook_secret": own }))).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!((&made["max_per_minute"], &made["webhook_secret"]), (&json!(100), &json!(own)));
    let (url, bearer) = (made["url"].as_str().expect("a url"), made["bearer"].as_str().expect("a key"));
    assert!(bearer.starts_with("ak_live_") && bearer.len() == 8 + 43, "{bearer}");
    let (_, listed) = ask("GET", "/api/v1/channels", &service, None).await;
    let (secret, listed) = (url.rsplit('/').next().expect("a key"), listed.to_string());
    assert!(listed.contains("crm") && ![secret, bearer, own].iter().any(|secret| listed.contains(secret)), "{listed}");

    let send = async || {
        let body = br#"{"content":"x"}"#;
        let request = door.http.post(url).header("x-webhook-signature", sign(&Secret::new(own), body));
        request.body(&body[..]).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(send().await, 202);
    let path = format!("/api/v1/channels/{}", made["id"].as_str().expect("an id"));
    for (method, path) in
        [("POST", format!("{path}/disable")), ("POST", format!("{path}/enable")), ("DELETE", path.clone())]
    {
        assert_eq!(ask(method, &path, &stranger, None).await.0, 404, "S17: {method} {path}");
    }
    assert_eq!(ask("POST", &format!("{path}/disable"), &service, None).await.0, 204);
    assert_eq!(send().await, 401, "an inactive channel");
    assert_eq!(ask("POST", &format!("{path}/enable"), &service, None).await.0, 204);
    assert!(wait_until(Duration::from_secs(2), async || send().await == 202).await);
    assert_eq!(ask("DELETE", &path, &service, None).await.0, 204);
    assert_eq!(send().await, 401, "a deleted channel");
    assert_eq!(door.rows().await, 2, "what a deleted channel brought stays");
    let dump: String =
        sqlx::query_scalar("select coalesce(string_agg(p::text, ' '), '') from public.ingestion_providers p")
            .fetch_one(&mut *door.world.conn().await)
            .await
            .expect("rows");
    assert!(!dump.contains(door.secrets.ingestion_key.reveal()), "S24: a key is in the table");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_added_by_command_and_the_printed_line_sends() {
    let door = Door::new().await;
    let ask = |args: &[&str]| {
        let mut command = command(&door.folder.0, 7171);
        command.env("DATABASE_URL", &door.world.database.url).env("MASTER_KEY", MASTER_KEY);
        run(command.env("LISTEN", door.app.url.trim_start_matches("http://")).args(args))
    };
    let (added, said, error) = ask(&["channel", "add", "shell", "--max-per-minute", "none"]);
    assert!(added.status.success(), "{error}");
    let line = said.lines().find(|line| line.starts_with("body=")).unwrap_or_else(|| panic!("no line to try:\n{said}"));
    let (sent, answer, error) = run(Command::new("sh").args(["-c", line]));
    assert!(sent.status.success() && answer.contains("\"success\":true"), "{line}\n{answer}{error}");
    assert_eq!(door.rows().await, 1);

    let (_, listed, _) = ask(&["channel", "list"]);
    let row = listed.lines().find(|row| row.contains("shell")).expect("a row");
    assert!(row.contains("no limit") && row.contains("active"), "{row}");
    let id = row.split_whitespace().next().expect("an id");
    let (_, shown, _) = ask(&["channel", "show", id, "--json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert!(said.contains(shown["url"].as_str().expect("a url")), "{shown}");
    assert!(!listed.contains(shown["webhook_secret"].as_str().expect("a secret")));
    for (words, done) in [(&["disable"][..], "disabled"), (&["enable"], "enabled"), (&["delete", "--yes"], "deleted")] {
        let (output, said, error) = ask(&[&["channel"][..], words, &[id]].concat());
        assert!(output.status.success() && said.contains(done), "{said}{error}");
    }
    let (gone, _, said) = ask(&["channel", "disable", id]);
    assert!(!gone.status.success() && said.contains("hint:"), "{said}");
    let (wrong, _, said) = ask(&["channel", "add", "x", "--max-per-minute", "0"]);
    assert!(!wrong.status.success() && said.contains("`none`"), "{said}");
}
