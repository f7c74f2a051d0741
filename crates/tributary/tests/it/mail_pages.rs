//! Pages of mail in a real browser: what a message says is shown, and nothing that it brings along runs, loads or leads anywhere by itself.

use std::time::Duration;

use domain::{DocumentId, Scope};
use fantoccini::Locator;
use serde_json::Value;
use testkit::{Canary, World, cluster};

use crate::app::{App, Folder, client, command, free_port};
use crate::browser::Browser;
use crate::looks::letters::{self, Sent};

const SOON: Duration = Duration::from_secs(8);

async fn serve(world: &World, folder: &Folder) -> App {
    let port = free_port();
    let mut serve = command(&folder.0, port);
    serve.env("DATABASE_URL", &world.database.url).env("BLOB_URL", cluster::blob_url());
    App::start(serve, &["serve"], port).await
}

async fn id_of(world: &World, external_id: &str) -> DocumentId {
    let sql = "select id from source_documents where external_id = $1";
    DocumentId(sqlx::query_scalar(sql).bind(external_id).fetch_one(&mut *world.conn().await).await.expect("a letter"))
}

/// A letter that tries everything: its head, its text, its HTML and the name of its file.
fn hostile(canary: u16) -> String {
    let spy = format!("http://127.0.0.1:{canary}");
    let script = format!("document.title='owned';new Image().src='{spy}/run'");
    format!(
        "From: \"<img src=x onerror={script}>\" <mallory@example.com>\r\nTo: office@mill.test\r\nSubject: <script>{script}</script>\r\n\
         Date: Sat, 14 Nov 2026 09:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=outer\r\n\r\n\
         --outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n\
         --inner\r\nContent-Type: text/plain\r\n\r\nPlain words. ![picture]({spy}/markdown) <script>{script}</script> {spy}/link\r\n\
         --inner\r\nContent-Type: text/html\r\n\r\n\
         <html><head><meta http-equiv=refresh content=\"0;url={spy}/refresh\"><base href=\"{spy}/\"><link rel=stylesheet href=\"{spy}/sheet\">\
         <link rel=preload as=image href=\"{spy}/preload\"><style>@import url({spy}/import); p {{ background: url({spy}/background) }}</style></head>\
         <body onload=\"{script}\" background=\"{spy}/body\"><script>{script}</script><p id=words>Words in colour.</p>\
         <img src=\"{spy}/pixel.gif\" width=1 height=1><img src=x onerror=\"{script}\"><svg onload=\"{script}\"><image href=\"{spy}/svg\"/></svg>\
         <iframe src=\"{spy}/frame\"></iframe><object data=\"{spy}/object\"></object><video autoplay src=\"{spy}/video\"></video>\
         <form action=\"{spy}/form\"><input name=q><button>Send</button></form><a href=\"{spy}/link\">A link</a>\
         <a id=bad href=\"javascript:{script}\">Press me</a></body></html>\r\n\
         --inner--\r\n\
         --outer\r\nContent-Type: text/html; name=\"x.html\"\r\nContent-Disposition: attachment; filename=\"<img src=x onerror=alert(1)>.html\"\r\n\r\n\
         <script>{script}</script>\r\n--outer--\r\n"
    )
}

/// S15, S27.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_message_runs_or_is_fetched_when_it_is_looked_at() {
    let (world, folder, canary) = (World::now().await, Folder::new(), Canary::start().await);
    let source_id = letters::mailbox(&world.env, world.tenant_id).await;
    let sent = Sent { id: "1", thread: "t1", at: "2026-11-14T09:00:00Z", bytes: hostile(canary.port) };
    let second = Sent { id: "2", thread: "t1", at: "2026-11-14T10:00:00Z", bytes: hostile(canary.port) };
    letters::store(&world.env, world.tenant_id, source_id, &[sent, second]).await;
    let app = serve(&world, &folder).await;
    let id = id_of(&world, "message:1").await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Read]).await;

    let html = format!("{}/mail/{id}/html", app.url);
    let answer = client().get(&html).bearer_auth(key.reveal()).send().await.expect("an answer");
    let header =
        |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; img-src data:; style-src 'unsafe-inline';"), "{policy}");
    assert!(policy.contains("sandbox allow-popups allow-popups-to-escape-sandbox;"), "{policy}");
    assert!(!policy.contains("allow-scripts") && !policy.contains("allow-same-origin"), "{policy}");
    assert!(policy.ends_with("frame-ancestors 'self'"), "{policy}");
    assert_eq!((header("x-frame-options"), header("x-content-type-options")), ("SAMEORIGIN".into(), "nosniff".into()));
    let body = answer.text().await.expect("a page");
    assert!(body.contains("Words in colour."), "{body}");
    assert_eq!(
        body.matches(&format!("=\"http://127.0.0.1:{}", canary.port)).count(),
        1,
        "only the link leads there: {body}"
    );
    assert!(!body.contains("url(") && !body.contains("@import") && !body.contains(" src="), "{body}");
    assert!(body.contains("target=\"_blank\" rel=\"noopener noreferrer nofollow\">A link</a>"), "{body}");

    let file = client().get(format!("{}/mail/{id}/files/0", app.url)).bearer_auth(key.reveal()).send().await;
    let file = file.expect("an answer");
    assert_eq!(file.status().as_u16(), 200);
    let header = |name: &str| file.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert!(header("content-disposition").starts_with("attachment; filename=\"_img_src"), "{:?}", file.headers());
    assert_eq!((header("content-type"), header("x-content-type-options")), ("application/octet-stream", "nosniff"));
    assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");

    let browser = Browser::signed_in(&app, &world).await;
    for (name, path) in
        [("mail", "/mail".to_owned()), ("thread", format!("/mail/{id}/thread")), ("message", format!("/mail/{id}"))]
    {
        browser.goto(&format!("{}{path}", app.url)).await;
        assert!(browser.shows("Plain words", SOON).await, "{name}: {}", browser.text().await);
        assert!(browser.text().await.contains("<script>"), "{name}: the subject is shown as it is");
        assert!(browser.is_unowned(Duration::from_millis(300)).await, "S15: {name} ran a script");
        browser.photograph(&format!("{name}-hostile")).await;
    }
    browser
        .script(
            "document.getElementById('as-sent').open = true; document.querySelector('iframe.as-sent').scrollIntoView()",
        )
        .await;
    let frame = browser.client.find(Locator::Css("iframe.as-sent")).await.expect("a frame");
    frame.clone().enter_frame().await.expect("the frame");
    assert!(browser.shows("Words in colour", SOON).await, "S15: the frame shows nothing: {}", browser.text().await);
    assert!(browser.client.find(Locator::Css("form, script, iframe, svg, base, meta[http-equiv]")).await.is_err());
    browser.client.clone().enter_parent_frame().await.expect("the page");
    assert!(browser.is_unowned(Duration::from_millis(800)).await, "S15: the message ran a script");
    browser.photograph("message-as-sent").await;
    // Opened by itself it is as inert.
    browser.goto(&html).await;
    assert!(browser.shows("Words in colour", SOON).await, "{}", browser.text().await);
    assert!(browser.is_unowned(Duration::from_millis(300)).await, "S15: the message ran a script");
    assert_eq!(canary.visits(), 0, "S27: something of the message was fetched");
    browser.close().await;
}

/// Every filter narrows the list, and pages lead on; another tenant sees nothing.
#[tokio::test(flavor = "multi_thread")]
async fn mail_is_listed_filtered_and_read_in_its_conversation() {
    let (world, folder) = (World::now().await, Folder::new());
    letters::fill(&world.env, world.tenant_id).await;
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let stranger = world.caller(world.other_tenant("somebody else").await, &[Scope::Service]).await.1;
    let ask = async |path: &str| {
        let answer =
            client().get(format!("{}{path}", app.url)).bearer_auth(key.reveal()).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    let subjects = |mail: &Value| -> Vec<String> {
        let all = mail["messages"].as_array().expect("messages");
        all.iter().map(|message| message["subject"].as_str().unwrap_or("-").to_owned()).collect()
    };
    for (query, expected) in [
        ("person=ANA", vec!["Re: Delivery on Friday", "Delivery on Friday"]),
        ("person=bob@stone", vec!["-", "Re: Delivery on Friday"]),
        ("q=before+noon", vec!["Re: Delivery on Friday"]),
        ("files=true", vec!["Re: Delivery on Friday"]),
        ("since=2026-11-14&until=2026-11-14&q=monday", vec!["-"]),
        ("until=2026-11-12", vec![]),
        ("place=sent", vec![]),
        ("folder=Inbox&person=stone&limit=1", vec!["-"]),
    ] {
        let (status, mail) = ask(&format!("/api/v1/mail?{query}")).await;
        assert_eq!(
            (status, subjects(&mail)),
            (200, expected.iter().map(|&one| one.to_owned()).collect()),
            "{query}: {mail}"
        );
    }
    let (_, first) = ask("/api/v1/mail?limit=2").await;
    let before = first["next_before"].as_str().expect("there are more");
    let (_, rest) = ask(&format!("/api/v1/mail?limit=200&before={before}")).await;
    assert_eq!(subjects(&rest), ["Re: Delivery on Friday", "Delivery on Friday"]);
    assert_eq!(rest["next_before"], Value::Null);
    for odd in ["place=junk", "folders=x", "before=x", "files=maybe", "q=%00"] {
        assert_eq!(ask(&format!("/api/v1/mail?{odd}")).await.0, 400, "{odd}");
    }

    let id = rest["messages"][0]["id"].as_str().expect("an id");
    let (_, message) = ask(&format!("/api/v1/mail/{id}")).await;
    assert_eq!((&message["n_in_thread"], &message["files"][0]["name"]), (&2.into(), &"plan.csv".into()), "{message}");
    let (_, thread) = ask(&format!("/api/v1/mail/{id}/thread")).await;
    assert_eq!(subjects(&thread), ["Delivery on Friday", "Re: Delivery on Friday"]);
    for path in ["", "/thread"] {
        let answer =
            client().get(format!("{}/api/v1/mail/{id}{path}", app.url)).bearer_auth(stranger.reveal()).send().await;
        assert_eq!(answer.expect("an answer").status().as_u16(), 404, "{path}");
    }
}
