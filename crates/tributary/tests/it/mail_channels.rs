//! Letters of a mailbox as events: added, changed, switched off and deleted, by pages, by the API and on the command line. No page shows a URL or
//! a secret, because there is none.

use domain::{Scope, Transport};
use serde_json::{Value, json};
use store::sources::{self, NewSource};
use testkit::World;

use crate::app::{Folder, client, command, free_port, run};
use crate::browser::serve;
use crate::connections::Desk;
use crate::intake::MASTER_KEY;

const NEW: &str = "/connections/webhooks/new/gmail";
const TILE: &str = "Letters of a Gmail mailbox";

async fn mailbox(world: &World, provider: &str, name: &str) -> String {
    let new = NewSource { provider, name, account: name, transport: Transport::Rest, scopes: &[] };
    let id = sources::insert(&mut *world.conn().await, None, world.tenant_id, &new).await.expect("a source");
    id.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_mailbox_are_made_events_on_pages() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let (_, member) = world.caller(world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let desk = Desk::new(&app, &key).await;

    // Without a Gmail mailbox it is not offered, and its page leads to Gmail's.
    mailbox(&world, "outlook", "desk@mill.test").await;
    assert!(!desk.page("/connections").await.1.contains(TILE));
    let (status, page) = desk.page(NEW).await;
    assert!(status == 200 && page.contains("No Gmail mailbox is connected"), "{page}");
    let office = mailbox(&world, "gmail", "office@mill.test").await;
    let (_, gallery) = desk.page("/connections").await;
    assert!(gallery.contains(TILE) && gallery.contains(NEW), "{gallery}");
    let (_, form) = desk.page(NEW).await;
    assert!(form.contains("office@mill.test") && !form.contains("desk@mill.test"), "{form}");

    // What is wrong comes back with what was typed.
    let typed = [("mailbox", office.as_str()), ("name", "Orders <b>"), ("query", "in:")];
    let (status, _, page) = desk.post(NEW, &typed).await;
    assert!(status == 400 && page.contains("nothing follows in:") && page.contains("value=\"in:\""), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    let (status, _, page) = desk.post(NEW, &[("mailbox", ""), ("name", "Orders")]).await;
    assert!(status == 400 && page.contains("choose a mailbox"), "{page}");

    let fields = [("mailbox", office.as_str()), ("name", "Orders"), ("query", "in:inbox subject:order")];
    let (status, to, _) = desk.post(NEW, &fields).await;
    assert_eq!(status, 303);
    let own = to.split('?').next().expect("an address").to_owned();
    let (status, page) = desk.page(&to).await;
    assert_eq!(status, 200);
    for words in ["Orders", "It is ready.", "office@mill.test", "in:inbox subject:order", "Nothing has arrived yet"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    for absent in ["/ingest/", "/reveal", "/rotate", "Test event", "Send test event", "secret"] {
        assert!(!page.contains(absent), "{absent}: {page}");
    }
    assert_eq!(desk.post(NEW, &fields).await.0, 409, "a name is taken once");
    for path in ["/connections", "/connections/webhooks", "/"] {
        let (status, page) = desk.page(path).await;
        assert!(status == 200 && page.contains("Gmail letters"), "{path}: {page}");
    }

    // Others look at it, and change nothing.
    let visitor = Desk::new(&app, &member).await;
    let (status, page) = visitor.page(&own).await;
    assert!(status == 200 && !page.contains("settings-title"), "{page}");
    assert_eq!(visitor.post(&own, &[("name", "Mine"), ("query", "in:inbox")]).await.0, 403);
    assert_eq!(visitor.post(NEW, &fields).await.0, 403);

    let (status, to, _) = desk.post(&own, &[("name", "Big orders"), ("query", "subject:order has:attachment")]).await;
    assert_eq!(status, 303);
    let (_, page) = desk.page(&to).await;
    assert!(page.contains("Big orders") && page.contains("subject:order has:attachment"), "{page}");
    for (act, words) in [("disable", "Letters are no activities until"), ("enable", "are activities again")] {
        let (status, to, _) = desk.post(&format!("{own}/{act}"), &[("here", "1")]).await;
        assert_eq!(status, 303, "{act}");
        assert!(desk.page(&to).await.1.contains(words), "{act}");
    }

    // Let go, its mailbox says so. Deleted, it is gone.
    sqlx::query("update connected_sources set status = 'disconnected' where provider = 'gmail'")
        .execute(&mut *world.conn().await)
        .await
        .expect("let go");
    assert!(desk.page(&own).await.1.contains("The mailbox is disconnected"));
    assert_eq!(desk.post(&format!("{own}/delete"), &[]).await.0, 303);
    assert_eq!(desk.page(&own).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_mailbox_are_made_events_by_commands_and_the_api() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let office = mailbox(&world, "gmail", "office@mill.test").await;
    let tributary = |args: &[&str]| {
        let mut command = command(&folder.0, free_port());
        command.env("DATABASE_URL", &world.database.url).env("MASTER_KEY", MASTER_KEY).args(args);
        let (output, stdout, stderr) = run(&mut command);
        (output.status.success(), stdout, stderr)
    };
    let mail = "office@mill.test";
    let (is_done, stdout, stderr) = tributary(&["channel", "add", "orders", "--mailbox", mail, "--query", "is:unread"]);
    assert!(is_done && stdout.contains(mail) && stdout.contains("is:unread"), "{stdout}{stderr}");
    let (is_done, _, stderr) = tributary(&["channel", "add", "more", "--mailbox", mail, "--query", "in:"]);
    assert!(!is_done && stderr.contains("nothing follows in:"), "{stderr}");
    let (is_done, _, stderr) = tributary(&["channel", "add", "more", "--query", "is:unread"]);
    assert!(!is_done && stderr.contains("--mailbox"), "{stderr}");
    let (is_done, _, stderr) = tributary(&["channel", "set", "orders", "--query", "in:inbox"]);
    assert!(is_done, "{stderr}");
    let (is_done, stdout, stderr) = tributary(&["channel", "show", "orders"]);
    assert!(is_done && stdout.contains("in:inbox") && !stdout.contains("http"), "{stdout}{stderr}");
    let (is_done, stdout, _) = tributary(&["channel", "show", "orders", "--json"]);
    let shown: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(is_done && shown["source_id"] == json!(office) && shown["query"] == json!("in:inbox"), "{shown}");
    let id = shown["id"].as_str().expect("an id").to_owned();
    for args in [&["channel", "rotate", "orders"][..], &["channel", "send-test", "orders"]] {
        let (is_done, _, stderr) = tributary(args);
        assert!(!is_done && stderr.contains("on a mailbox"), "{args:?}: {stderr}");
    }

    let url = format!("{}/api/v1/channels", app.url);
    let listed: Value =
        client().get(&url).bearer_auth(key.reveal()).send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(listed["channels"][0]["source_id"], json!(office), "{listed}");
    for (body, status) in [
        (json!({ "query": "subject:order" }), 204),
        (json!({ "query": "in:" }), 400),
        (json!({ "settings": { "require_ip": false } }), 204),
    ] {
        let change = client().patch(format!("{url}/{id}")).bearer_auth(key.reveal()).json(&body);
        assert_eq!(change.send().await.expect("an answer").status().as_u16(), status, "{body}");
    }
    for act in ["rotate", "test"] {
        let asked = client().post(format!("{url}/{id}/{act}")).bearer_auth(key.reveal()).json(&json!({}));
        assert_eq!(asked.send().await.expect("an answer").status().as_u16(), 409, "{act}");
    }
    let (is_done, stdout, _) = tributary(&["channel", "show", "orders"]);
    assert!(is_done && stdout.contains("subject:order"), "{stdout}");
    for act in [
        &["channel", "disable", "orders"][..],
        &["channel", "enable", "orders"],
        &["channel", "delete", "orders", "--yes"],
    ] {
        let (is_done, _, stderr) = tributary(act);
        assert!(is_done, "{act:?}: {stderr}");
    }
    let (_, stdout, _) = tributary(&["channel", "list"]);
    assert!(!stdout.contains("orders"), "{stdout}");
}
