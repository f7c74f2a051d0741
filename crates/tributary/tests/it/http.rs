//! The HTTP server from outside: answers, refusals, limits, events, and what happens when the database goes away.

use std::time::{Duration, Instant};

use domain::{Scope, Secret};
use rustix::process::Signal;
use serde_json::{Value, json};
use store::queue::Queue;
use testkit::proxy::Proxy;
use testkit::{World, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::app::{App, Folder, client, command, free_port, get};

pub struct Site {
    pub world: World,
    pub app: App,
    pub folder: Folder,
}

impl Site {
    pub async fn new() -> Self {
        let world = World::now().await;
        let url = world.database.url.clone();
        Self::on(world, &url).await
    }

    async fn on(world: World, database_url: &str) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", database_url).env("LOG", "debug");
        let app = App::start(serve, &["serve"], port).await;
        Self { world, app, folder }
    }

    pub async fn key(&self, scopes: &[Scope]) -> Secret {
        self.world.caller(self.world.tenant_id, scopes).await.1
    }

    pub async fn ask(&self, method: &str, path: &str, key: Option<&Secret>) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let mut request = client().request(method, format!("{}{path}", self.app.url));
        if let Some(key) = key {
            request = request.bearer_auth(key.reveal());
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        if status >= 400 {
            let kind = answer.headers()["content-type"].to_str().unwrap_or_default().to_owned();
            assert_eq!(kind, "application/problem+json", "{path}");
        }
        (status, answer.json().await.unwrap_or_default())
    }

    /// A dead letter that a retry would do.
    async fn bury(&self) -> String {
        let mut tx = self.world.env.db.begin().await.expect("a transaction");
        let queue = Queue::new("upkeep").expect("a queue");
        let id = queue.send(&mut tx, self.world.tenant_id, &[json!({ "task": 7 })]).await.expect("sent")[0];
        tx.commit().await.expect("committed");
        self.world.run_upkeep().await;
        format!("m{id}")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_and_nothing_more() {
    let site = Site::new().await;
    let read = site.key(&[Scope::Read]).await;
    let dead = site.bury().await;
    let (missing, wrong) = (
        site.ask("GET", "/api/v1/queues", None).await,
        site.ask("GET", "/api/v1/queues", Some(&Secret::new("trb_x"))).await,
    );
    assert_eq!((missing.0, wrong.0), (401, 401));
    assert_eq!(
        (&missing.1["title"], &wrong.1["title"]),
        (&json!("You are not signed in"), &json!("The key is not accepted"))
    );
    assert_eq!(site.ask("GET", "/api/v1/queues", Some(&read)).await.0, 200);
    assert_eq!(site.ask("POST", &format!("/api/v1/queues/upkeep/items/{dead}/retry"), Some(&read)).await.0, 403);
    assert_eq!(site.ask("GET", "/api/v1/keys", Some(&read)).await.0, 403);
    assert_eq!(site.ask("GET", "/api/v1/nothing", Some(&read)).await.0, 404);
    assert_eq!(site.ask("DELETE", "/api/v1/queues", Some(&read)).await.0, 405);
    assert_eq!(site.ask("GET", "/api/v1/queues/upkeep/items?state=sleeping", Some(&read)).await.0, 400);
    assert_eq!(site.ask("GET", "/api/v1/queues/upkeep/items/m1%27%20or%201=1", Some(&read)).await.0, 404);
    assert_eq!(site.ask("GET", "/api/v1/queues/nowhere/items", Some(&read)).await.0, 404);
}

/// S17.
#[tokio::test(flavor = "multi_thread")]
async fn items_are_retried_once_and_other_tenants_do_not_see_them() {
    let site = Site::new().await;
    let dead = site.bury().await;
    let write = site.key(&[Scope::Read, Scope::Write]).await;
    let other = site.world.other_tenant("somebody else").await;
    let (_, stranger) = site.world.caller(other, &[Scope::Service]).await;
    let path = format!("/api/v1/queues/upkeep/items/{dead}");
    assert_eq!(site.ask("GET", &path, Some(&write)).await.1["state"], "dead");
    assert_eq!(site.ask("GET", &path, Some(&stranger)).await.0, 404, "S17");
    assert_eq!(site.ask("POST", &format!("{path}/retry"), Some(&stranger)).await.0, 404, "S17");
    assert_eq!(site.ask("GET", "/api/v1/workers", Some(&stranger)).await.0, 404, "only an operator sees workers");
    let (_, counts) = site.ask("GET", "/api/v1/queues", Some(&stranger)).await;
    assert!(counts.to_string().contains("\"dead\":0"), "S17: {counts}");
    assert_eq!(site.ask("POST", &format!("{path}/cancel"), Some(&write)).await.0, 409);
    assert_eq!(site.ask("POST", &format!("{path}/retry"), Some(&write)).await.0, 200);
    assert_eq!(
        site.ask("POST", &format!("{path}/retry"), Some(&write)).await.0,
        404,
        "it was sent anew under another id"
    );
}

/// S25.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_within_five_seconds() {
    let site = Site::new().await;
    let (caller, key) = site.world.caller(site.world.tenant_id, &[Scope::Read]).await;
    assert_eq!(site.ask("GET", "/api/v1/queues", Some(&key)).await.0, 200);
    let mut conn = site.world.conn().await;
    assert!(store::keys::revoke(&mut conn, site.world.tenant_id, caller.key_id).await.expect("revoked"));
    let begun = Instant::now();
    assert!(
        wait_until(Duration::from_millis(5_500), async || site.ask("GET", "/api/v1/queues", Some(&key)).await.0 == 401)
            .await,
        "S25"
    );
    println!("refused after {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_over_http_and_shown_once() {
    let site = Site::new().await;
    let service = site.key(&[Scope::Service]).await;
    let body = json!({ "name": "tablet", "scopes": ["read"] });
    let made = client()
        .post(format!("{}/api/v1/keys", site.app.url))
        .bearer_auth(service.reveal())
        .json(&body)
        .send()
        .await
        .expect("an answer");
    assert_eq!(made.status().as_u16(), 201);
    let made: Value = made.json().await.expect("JSON");
    let secret = Secret::new(made["key"].as_str().expect("the key"));
    assert_eq!(site.ask("GET", "/api/v1/queues", Some(&secret)).await.0, 200);
    let (_, listed) = site.ask("GET", "/api/v1/keys", Some(&service)).await;
    assert!(listed.to_string().contains("tablet") && !listed.to_string().contains(secret.reveal()));
    let id = made["id"].as_str().expect("an id");
    assert!(matches!(site.ask("DELETE", &format!("/api/v1/keys/{id}"), Some(&service)).await.0, 200 | 204));
}

/// S13.
#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_and_secrets_stay_out_of_every_output() {
    let site = Site::new().await;
    let service = site.key(&[Scope::Service]).await;
    let canary = "trb_canary-7f3a";
    let url = &site.app.url;
    let large = client()
        .post(format!("{url}/api/v1/keys"))
        .bearer_auth(service.reveal())
        .header("content-type", "application/json");
    let large = large.body(vec![b' '; 2 << 20]).send().await.expect("an answer");
    assert_eq!(large.status().as_u16(), 413);
    for body in ["{", "[]", "{\"name\":7}", "\u{0}", &"[".repeat(100_000)] {
        let broken = client()
            .post(format!("{url}/api/v1/keys"))
            .bearer_auth(service.reveal())
            .header("content-type", "application/json");
        let status = broken.body(body.to_owned()).send().await.expect("an answer").status().as_u16();
        assert!(matches!(status, 400 | 422), "{status} for {:?}", &body[..body.len().min(20)]);
    }
    let nul = json!({ "name": "a\u{0}b", "scopes": ["read"] });
    let nul = client()
        .post(format!("{url}/api/v1/keys"))
        .bearer_auth(service.reveal())
        .json(&nul)
        .send()
        .await
        .expect("an answer");
    assert!(matches!(nul.status().as_u16(), 400 | 422), "a NUL was {}", nul.status());
    let _ = site.ask("GET", &format!("/api/v1/queues?apikey={canary}"), None).await;
    let _ = site.ask("GET", "/api/v1/queues", Some(&Secret::new(canary))).await;
    let signin = client()
        .post(format!("{url}/signin"))
        .header("origin", url)
        .form(&[("key", canary)])
        .send()
        .await
        .expect("an answer");
    assert!(!signin.text().await.unwrap_or_default().contains(canary));
    let traced =
        client().get(format!("{url}/healthz")).header("x-request-id", "abc-1").send().await.expect("an answer");
    assert_eq!(traced.headers()["x-request-id"], "abc-1");
    let traced =
        client().get(format!("{url}/healthz")).header("x-request-id", "a b\"<script>").send().await.expect("an answer");
    assert_ne!(traced.headers()["x-request-id"], "a b\"<script>");
    let (_, metrics) = get(url, "/metrics").await;
    let outputs = [site.app.printed(), metrics].concat();
    assert!(!outputs.contains("canary") && !outputs.contains(service.reveal()), "S13: a key is in an output");
}

/// S16.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_session_changes_nothing_for_another_site() {
    let site = Site::new().await;
    let (key, dead) = (site.key(&[Scope::Service]).await, site.bury().await);
    let url = &site.app.url;
    let form = [("key", key.reveal())];
    let foreign = client()
        .post(format!("{url}/signin"))
        .header("origin", "https://evil.test")
        .form(&form)
        .send()
        .await
        .expect("an answer");
    assert_eq!(foreign.status().as_u16(), 403, "S16: signed in from another site");
    let signed =
        client().post(format!("{url}/signin")).header("origin", url).form(&form).send().await.expect("an answer");
    assert_eq!(signed.status().as_u16(), 303);
    let cookie = signed.headers()["set-cookie"].to_str().expect("a cookie").to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && !cookie.contains(key.reveal()),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().expect("a value").to_owned();
    let page = client()
        .get(format!("{url}/system/queues/upkeep?state=dead"))
        .header("cookie", &cookie)
        .send()
        .await
        .expect("an answer");
    let csp = page.headers()["content-security-policy"].to_str().expect("a policy").to_owned();
    assert!(
        csp.contains("default-src 'none'") && csp.contains("frame-ancestors 'none'") && !csp.contains("unsafe"),
        "{csp}"
    );
    let page = page.text().await.expect("a page");
    let csrf = page
        .split("name=\"csrf\" value=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a token")
        .to_owned();

    let act = format!("{url}/system/queues/upkeep/items/{dead}/skip");
    let post = async |origin: Option<&str>, csrf: Option<&str>| {
        let mut request = client().post(&act).header("cookie", &cookie);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let fields: Vec<(&str, &str)> =
            csrf.map(|csrf| ("csrf", csrf)).into_iter().chain([("back", "/system/queues/upkeep")]).collect();
        request.form(&fields).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(post(Some("https://evil.test"), Some(&csrf)).await, 403, "S16");
    assert_eq!(post(Some(url), None).await, 403, "S16");
    assert_eq!(post(Some(url), Some("wrong")).await, 403, "S16");
    let api =
        client().post(format!("{url}/api/v1/queues/upkeep/items/{dead}/skip")).header("cookie", &cookie).send().await;
    assert_eq!(api.expect("an answer").status().as_u16(), 403, "S16: the API by cookie");
    let get_acts = client().get(&act).header("cookie", &cookie).send().await.expect("an answer");
    assert_eq!(get_acts.status().as_u16(), 405, "no change on GET");
    assert_eq!(post(Some(url), Some(&csrf)).await, 303);
    let out = client()
        .post(format!("{url}/signout"))
        .header("cookie", &cookie)
        .header("origin", url)
        .form(&[("csrf", &csrf)])
        .send()
        .await;
    assert_eq!(out.expect("an answer").status().as_u16(), 303);
    let gone = wait_until(Duration::from_secs(6), async || {
        client()
            .get(format!("{url}/system/queues"))
            .header("cookie", &cookie)
            .header("accept", "text/html")
            .send()
            .await
            .is_ok_and(|answer| answer.status().as_u16() == 303)
    });
    assert!(gone.await, "a session outlived its sign-out");
}

/// F5, I6.
#[tokio::test(flavor = "multi_thread")]
async fn an_unanswering_database_is_told_and_waited_for() {
    let world = World::now().await;
    let port: u16 = world
        .database
        .url
        .rsplit_once(':')
        .and_then(|(_, rest)| rest.split_once('/'))
        .expect("a port")
        .0
        .parse()
        .expect("a number");
    let proxy = Proxy::start(port).await;
    let through = world.database.url_through(proxy.port);
    let site = Site::on(world, &through).await;
    let read = site.key(&[Scope::Read]).await;
    assert_eq!(site.ask("GET", "/api/v1/queues", Some(&read)).await.0, 200);
    proxy.black_hole(true);
    assert_eq!(get(&site.app.url, "/healthz").await.0, 200, "the process lives");
    let is_told = wait_until(Duration::from_secs(5), async || get(&site.app.url, "/readyz").await.0 == 503).await;
    assert!(is_told, "F5: /readyz takes the database for ready");
    let begun = Instant::now();
    let answer = client()
        .get(format!("{}/api/v1/queues", site.app.url))
        .bearer_auth(read.reveal())
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.status().as_u16(), 503);
    assert!(answer.headers().contains_key("retry-after"));
    assert!(begun.elapsed() < Duration::from_secs(15), "F5: it took {:?}", begun.elapsed());
    proxy.black_hole(false);
    proxy.reset_all();
    assert!(
        wait_until(Duration::from_secs(20), async || site.ask("GET", "/api/v1/queues", Some(&read)).await.0 == 200)
            .await,
        "I6"
    );
}

/// An event stream, as raw as it comes.
pub struct Stream(tokio::net::TcpStream, pub String);

impl Stream {
    pub async fn open(app: &App, key: &Secret, last_id: Option<&str>) -> Self {
        Self::of(app, "/api/v1/events", key, last_id).await
    }

    pub async fn of(app: &App, path: &str, key: &Secret, last_id: Option<&str>) -> Self {
        let mut socket =
            tokio::net::TcpStream::connect(app.url.trim_start_matches("http://")).await.expect("a connection");
        let last = last_id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{last}\r\n", key.reveal());
        socket.write_all(request.as_bytes()).await.expect("sent");
        Self(socket, String::new())
    }

    /// Reads until the text is there; false when it does not come.
    pub async fn has(&mut self, text: &str, limit: Duration) -> bool {
        let read = async {
            let mut chunk = [0; 4_096];
            while !self.1.contains(text) {
                match self.0.read(&mut chunk).await {
                    Ok(n @ 1..) => self.1.push_str(&String::from_utf8_lossy(&chunk[..n])),
                    _ => return false,
                }
            }
            true
        };
        tokio::time::timeout(limit, read).await.unwrap_or(false)
    }

    async fn ends_within(&mut self, limit: Duration) -> bool {
        let mut rest = Vec::new();
        tokio::time::timeout(limit, self.0.read_to_end(&mut rest)).await.is_ok()
    }
}

/// S17.
#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_resume_and_stay_within_the_tenant() {
    let site = Site::new().await;
    let (_, key) = site.world.caller(site.world.tenant_id, &[Scope::Read]).await;
    let other = site.world.other_tenant("somebody else").await;
    let (_, stranger) = site.world.caller(other, &[Scope::Read]).await;
    let mut stream = Stream::open(&site.app, &key, None).await;
    let mut foreign = Stream::open(&site.app, &stranger, None).await;
    assert!(stream.has("200 OK", Duration::from_secs(5)).await && foreign.has("200 OK", Duration::from_secs(5)).await);

    // The server hears nothing from before it listens.
    let mut conn = site.world.conn().await;
    let listening =
        "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    let listens = wait_until(Duration::from_secs(10), async || {
        sqlx::query_scalar::<_, i64>(listening).fetch_one(&mut *conn).await.is_ok_and(|n| n > 0)
    });
    assert!(listens.await, "the server does not listen");

    // Another process sends: this one relays by NOTIFY.
    let relay = tokio::spawn(store::notices::relay(site.world.env.db.clone()));
    let send = async || {
        let mut tx = site.world.env.db.begin().await.expect("a transaction");
        Queue::new("upkeep")
            .expect("a queue")
            .send(&mut tx, site.world.tenant_id, &[json!({ "task": "unpark" })])
            .await
            .expect("sent");
        tx.commit().await.expect("committed");
    };
    let begun = Instant::now();
    send().await;
    assert!(stream.has("lane:upkeep", Duration::from_secs(5)).await, "no event came: {}", stream.1);
    println!("from commit to another process's stream: {:?}", begun.elapsed());
    assert!(!foreign.has("lane:upkeep", Duration::from_millis(500)).await, "S17: {}", foreign.1);

    let id = stream.1.lines().rev().find_map(|line| line.strip_prefix("id:")).expect("an id").trim().to_owned();
    send().await;
    let mut resumed = Stream::open(&site.app, &key, Some(&id)).await;
    assert!(resumed.has("lane:upkeep", Duration::from_secs(5)).await, "nothing was replayed: {}", resumed.1);
    assert!(!resumed.1.contains("resync"), "{}", resumed.1);
    let mut lost = Stream::open(&site.app, &key, Some("0190-nowhere-99")).await;
    assert!(lost.has("event: resync", Duration::from_secs(5)).await || lost.1.contains("event:resync"), "{}", lost.1);

    site.app.signal(Signal::TERM);
    assert!(stream.ends_within(Duration::from_secs(5)).await, "a stream outlived the server's stop");
    relay.abort();
}

/// S4, S17.
#[tokio::test(flavor = "multi_thread")]
async fn the_description_matches_the_routes() {
    let site = Site::new().await;
    let (status, text) = get(&site.app.url, "/api/v1/openapi.json").await;
    assert_eq!(status, 200);
    let openapi: Value = serde_json::from_str(&text).expect("JSON");
    let paths = openapi["paths"].as_object().expect("paths");
    // S4, S17: every route, unsigned, is refused unless it says that it is open.
    for (path, methods) in paths {
        for method in methods.as_object().expect("methods").keys() {
            let filled = path
                .replace("{lane}", "upkeep")
                .replace("{action}", "retry")
                .replace("{id}", "m1")
                .replace("{kind}", "dead_letters");
            let (status, _) = site.ask(&method.to_uppercase(), &filled, None).await;
            let expected = match path.as_str() {
                "/healthz" | "/readyz" => 200,
                "/internal/embed" => 404,  // no secret is set
                "/webhooks/{hook}" => 404, // no provider has such a hook
                _ => 401,
            };
            assert_eq!(status, expected, "{method} {path}");
        }
    }
}

/// A route that needs more time than the usual says so on its own line in the router: its slow senders are waited for, others are cut off.
#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_are_waited_for_where_the_route_says_so() {
    let world = World::now().await;
    let (folder, port) = (Folder::new(), free_port());
    let mut serve = command(&folder.0, port);
    serve.env("DATABASE_URL", &world.database.url).env("REQUEST_SECS", "1");
    let app = App::start(serve, &["serve"], port).await;
    let site = Site { world, app, folder };
    let key = site.key(&[Scope::Service]).await;
    let address = site.app.url.strip_prefix("http://").expect("an address").to_owned();
    let mut senders = Vec::new();
    for (path, body, expected) in [
        ("/api/v1/keys", r#"{"name":"slow","scopes":["read"]}"#, "503"),
        ("/api/v1/contacts", r#"{"email":"ann@example.com"}"#, "503"),
        ("/api/v1/documents", r#"{"text":"it arrived late"}"#, "201"),
        ("/api/v1/sources", r#"{"provider":"hubspot"}"#, "409"),
    ] {
        let mut socket = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            key.reveal(),
            body.len()
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        senders.push((path, socket, body, expected));
    }
    // Longer than the usual limit: this is what the test is about.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for (path, mut socket, body, expected) in senders {
        let _ = socket.write_all(body.as_bytes()).await; // one that was cut off is answered already
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{path} is never answered");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with(&format!("HTTP/1.1 {expected}")), "{path}: {text}");
    }
}
