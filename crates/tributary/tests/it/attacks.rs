//! The door under attack: forgers, bombs, odd shapes, slow uploads and short secrets are turned away, and others are served meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Scope, Secret};
use engine::intake::providers::generic::{sign, sign_standard};
use engine::intake::providers::twilio::sign as sign_twilio;
use futures_util::{StreamExt as _, stream};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use testkit::World;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::app::{App, Folder, client, command, free_port, resident_kb};
use crate::channels::{House, POSTMARK_IP, PUBLIC_URL, TOKEN, form, target};
use crate::intake::{MASTER_KEY, new_channel};

/// S1.
/// S1 over HTTP: 10,000 in `./test --slow`.
#[tokio::test(flavor = "multi_thread")]
async fn mutated_requests_over_http_are_never_accepted() {
    let n = if testkit::is_slow() { 10_000 } else { 1_000 };
    let house = House::new().await;
    let (_, twilio) = house.twilio().await;
    let (_, generic) = house.channel(new_channel("generic")).await;
    let (_, postmark) = house.channel(new_channel("postmark")).await;
    let secret = generic.proofs.get("webhook_secret").cloned().expect("a secret");
    let json_body = r#"{"content":"forged, perhaps"}"#.to_owned();
    let form_body = form(&[("MessageSid", "SM1"), ("Body", "forged, perhaps"), ("From", "+14158675309")]);
    let url = format!("{PUBLIC_URL}{}", target(&twilio));
    let now = chrono::Utc::now().timestamp();
    let basic = STANDARD.encode(postmark.proofs.get("basic").expect("a password").reveal());
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
            vec![("authorization", format!("Bearer {}", generic.proofs.get("bearer").expect("a key").reveal()))],
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
    let (id, _) = house.channel(new_channel("generic")).await;
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
        ("GET", format!("/connections/webhooks/{id}")),
    ] {
        let request = house.http.request(method.parse().expect("a method"), format!("{}{path}", house.app.url));
        let status = request.bearer_auth(key.reveal()).send().await.expect("an answer").status().as_u16();
        assert_eq!(status, 404, "S17: {method} {path}");
    }
}

/// S6: what is small on the wire and large inside, and what never ends.
#[tokio::test(flavor = "multi_thread")]
async fn bombs_are_refused_and_cost_little_memory() {
    let house = House::new().await;
    let (_, generic) = house.channel(new_channel("generic")).await;
    let (_, postmark) = house.channel(new_channel("postmark")).await;
    let bearer = format!("Bearer {}", generic.proofs.get("bearer").expect("a key").reveal());
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

/// S7.
#[tokio::test(flavor = "multi_thread")]
async fn odd_shapes_of_requests_are_refused_and_the_connection_closed() {
    let house = House::new().await;
    let (_, generic) = house.channel(new_channel("generic")).await;
    let path = target(&generic);
    let bearer = generic.proofs.get("bearer").expect("a key").reveal();
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
        (
            "chunks and a length",
            format!(
                "{head}Transfer-Encoding: chunked\r\nContent-Length: 15\r\n\r\n{chunked}{head}Content-Length: 15\r\n\r\n{body}"
            ),
        ),
        (
            "a length and chunks",
            format!(
                "{head}Content-Length: 15\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}{head}Content-Length: 15\r\n\r\n{body}"
            ),
        ),
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
    assert_eq!(house.number("select count(*) from activities").await, 1);
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
    let (_, generic) = house.channel(new_channel("generic")).await;
    let bearer = generic.proofs.get("bearer").expect("a key").reveal().to_owned();
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
    // It does not open, whatever happened to its row in the vault.
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
