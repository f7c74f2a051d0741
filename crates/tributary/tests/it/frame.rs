//! Our pages in another site's frame, in a real browser: the allowed one is told how to reach us, another cannot show us at all.

use std::time::Duration;

use domain::{Scope, Secret};
use fantoccini::Locator;
use serde_json::{Value, json};
use store::{keys, people};
use testkit::{World, stays_true};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::app::{App, Folder, client, command, free_port};
use crate::browser::Browser;

/// A site of somebody's that frames a page of ours and writes down what that posts to it.
async fn site(listener: TcpListener, framed: String) {
    let page = format!(
        "<!doctype html><title>a CRM</title><iframe src=\"{framed}\"></iframe><p id=told></p><script>\
         addEventListener('message', (told) => {{ document.getElementById('told').textContent = JSON.stringify({{ from: told.origin, data: told.data }}) }});\
         </script>"
    );
    loop {
        let Ok((mut socket, _)) = listener.accept().await else { return };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
            page.len()
        );
        let _ = socket.read(&mut [0; 4_096]).await;
        let _ = socket.write_all(answer.as_bytes()).await;
    }
}

/// S16.
#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_site_is_told_how_to_reach_us_and_another_cannot_show_us() {
    let (world, folder, port) = (World::now().await, Folder::new(), free_port());
    let (allowed, other) = (
        TcpListener::bind("127.0.0.1:0").await.expect("a port"),
        TcpListener::bind("127.0.0.1:0").await.expect("a port"),
    );
    let [allowed_url, other_url] =
        [&allowed, &other].map(|site| format!("http://{}", site.local_addr().expect("an address")));
    let mut serve = command(&folder.0, port);
    serve
        .env("DATABASE_URL", &world.database.url)
        .env("EMBED_ORIGINS", format!("https://crm.example.com,{allowed_url}"));
    let app = App::start(serve, &["serve"], port).await;
    for site_of in [allowed, other] {
        tokio::spawn(site(site_of, format!("{}/clients/people", app.url)));
    }
    let answer = client().get(format!("{}/signin", app.url)).send().await.expect("an answer");
    let policy = answer.headers()["content-security-policy"].to_str().expect("a policy").to_owned();
    assert!(policy.ends_with(&format!("frame-ancestors https://crm.example.com {allowed_url}")), "{policy}");
    assert!(!answer.headers().contains_key("x-frame-options"), "it would forbid what the policy allows");

    let mut conn = world.conn().await;
    let ann = people::ensure(&mut conn, world.tenant_id, "ann@office.test").await.expect("a person");
    let (_, key) = keys::create(&mut conn, world.tenant_id, Some(ann), "laptop", &[Scope::Read, Scope::Agent])
        .await
        .expect("a key");
    let browser = Browser::start().await;
    browser.goto(&format!("{}/signin?next=/clients/people", app.url)).await;
    browser.client.find(Locator::Css("#key")).await.expect("a field").send_keys(key.reveal()).await.expect("typed");
    browser.client.find(Locator::Css("#signin .button")).await.expect("a button").click().await.expect("a click");
    assert!(browser.shows("People", Duration::from_secs(5)).await, "not signed in: {}", browser.text().await);

    let told = async || {
        assert!(browser.shows("SUPABASE_CONFIG", Duration::from_secs(10)).await, "not told: {}", browser.text().await);
        let told = browser.client.find(Locator::Css("#told")).await.expect("a paragraph").text().await.expect("a text");
        let told: Value = serde_json::from_str(&told).expect("JSON");
        assert_eq!(told["from"], app.url);
        let payload = &told["data"]["payload"];
        let wanted = json!({
            "type": "SUPABASE_CONFIG",
            "payload": { "appName": "atomic-crm", "url": app.url, "anonKey": payload["anonKey"], "tables": ["activities"], "filters": { "activities": "processing_status=eq.raw" } },
        });
        assert_eq!(told["data"], wanted);
        Secret::new(payload["anonKey"].as_str().expect("a key"))
    };
    let claims = async |key: &Secret| {
        let claim = client()
            .post(format!("{}/rest/v1/rpc/claim_next_pending_activity", app.url))
            .header("apikey", key.reveal());
        claim.json(&json!({})).send().await.expect("an answer").status().as_u16()
    };
    let mut told_keys = Vec::new();
    for _ in 0..5 {
        browser.goto(&allowed_url).await;
        told_keys.push(told().await);
    }
    let statuses = futures_util::future::join_all(told_keys.iter().map(&claims)).await;
    assert_eq!(statuses, [401, 200, 200, 200, 200], "of one person and site the last four keys are good");
    let listed = keys::list(&mut conn, world.tenant_id).await.expect("keys");
    let framed: Vec<_> = listed.iter().filter(|key| key.name == format!("frame {allowed_url}")).collect();
    assert_eq!(framed.len(), 5);
    assert!(framed.iter().all(|key| key.scopes == ["agent"] && key.person.as_deref() == Some("ann@office.test")));

    let lasting = "select count(*) from tributary.api_keys where name like 'frame %' and expires_at is distinct from created_at + interval '7 days'";
    let lasting: i64 = sqlx::query_scalar(lasting).fetch_one(&mut *conn).await.expect("keys");
    assert_eq!(lasting, 0, "S25: a key made for a frame expires");

    browser.goto(&other_url).await;
    let is_untold = async || {
        browser.client.find(Locator::Css("#told")).await.expect("a paragraph").text().await.expect("a text").is_empty()
    };
    assert!(stays_true(Duration::from_secs(2), is_untold).await, "S16: another site is told a key");
    browser.client.find(Locator::Css("iframe")).await.expect("a frame").enter_frame().await.expect("a frame");
    assert!(!browser.text().await.contains("People"), "S16: another site shows our pages");
    browser.client.enter_parent_frame().await.expect("back");
    assert_eq!(keys::list(&mut conn, world.tenant_id).await.expect("keys").len(), listed.len(), "no key was made");
    browser.close().await;
}
