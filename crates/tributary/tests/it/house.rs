//! The house of pages: every page of the navigation, old addresses, going anywhere by keyboard, the bar of a phone; and keys, files and documents
//! on their pages.

use std::time::Duration;

use domain::Scope;
use fantoccini::Locator;
use fantoccini::key::Key;
use regex::Regex;
use serde_json::json;
use testkit::{World, wait_until};

use crate::app::{Folder, client};
use crate::browser::{Browser, serve};
use crate::looks::office::Office;

const SOON: Duration = Duration::from_secs(8);
const ROUTER: &str = include_str!("../../../web/src/api/router.rs");
/// Routes that answer with something else than a page, or lead to one.
const NO_PAGES: [&str; 17] = [
    "/documents/{id}/original",
    "/documents/{id}/pages/{number}/picture",
    "/activities/{id}/recording",
    "/activities/{id}/attachments/{nth}",
    "/searches/{id}",
    "/mail/{id}/html", // a frame of the message's page: the tests of mail look at it
    "/mail/{id}/files/{nth}",
    "/oauth/{provider}/authorize",
    "/oauth/{provider}/callback",
    "/signin/once",
    "/static/{hash}/{name}",
    "/inbox/export.csv",
    "/inbox/export.json",
    "/inbox/mine", // for a key that is a person's
    "/settings/people/{id}/link",
    "/assistants/authorize",             // only while OAuth is on: the tests of MCP look at it
    "/connections/webhooks/{id}/reveal", // the page of the channel, with its secrets
];

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_the_router_is_looked_at() {
    let office = Office::new().await;
    let pages = office.pages().await;
    let routes = Regex::new(r#"\.route\("(/[^"]*)", get\(ui::"#).expect("a pattern");
    let parameter = Regex::new(r"\\\{[a-z]+\\\}").expect("a pattern");
    let mut n = 0;
    for route in
        routes.captures_iter(ROUTER).map(|found| found[1].to_owned()).filter(|r| !NO_PAGES.contains(&r.as_str()))
    {
        let pattern = format!("^{}$", parameter.replace_all(&regex::escape(&route), "[^/]+"));
        let pattern = Regex::new(&pattern).expect("a pattern");
        let is_seen = pages.iter().any(|(_, path)| pattern.is_match(path.split('?').next().unwrap_or_default()));
        assert!(is_seen, "{route} is in no test that looks at pages: name it in Office::pages");
        n += 1;
    }
    assert!(n > 30, "{n} routes were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_addresses_lead_to_the_new_ones_and_keep_their_query() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let http = client(); // it follows no redirect
    for (old, new) in [
        ("/sources", "/connections/accounts"),
        ("/sources/7?done=saved", "/connections/accounts/7?done=saved"),
        ("/settings/integrations", "/connections/accounts"),
        ("/settings/channels?add", "/connections/webhooks?add"),
        ("/contacts?q=ann&before=7", "/clients/people?q=ann&before=7"),
        ("/contacts/7", "/clients/people/7"),
        ("/activities?person=7", "/inbox?person=7"),
        ("/unmatched", "/inbox/unrecognised"),
        ("/queues/upkeep/items/m7", "/system/queues/upkeep/items/m7"),
        ("/workers", "/system/workers"),
        ("/nodes", "/system/agents"),
        ("/dead-letters?before=7", "/system/dead-letters?before=7"),
        ("/forgotten", "/settings/forgotten"),
    ] {
        for method in ["GET", "POST"] {
            let asked = http.request(method.parse().expect("a method"), format!("{}{old}", app.url));
            let answer = asked.send().await.expect("an answer");
            assert_eq!(answer.status().as_u16(), 308, "{method} {old}");
            assert_eq!(answer.headers()["location"], new, "{method} {old}");
        }
    }
    for (section, first) in [("/system", "/system/queues"), ("/settings", "/settings/people")] {
        let answer = http.get(format!("{}{section}", app.url)).send().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), &answer.headers()["location"]), (303, &first.parse().expect("a value")));
    }
}

impl Browser {
    async fn press(&self, keys: &str) {
        let focused = self.client.active_element().await.expect("an element");
        focused.send_keys(keys).await.expect("keys");
    }

    async fn is_at(&self, path: &str) -> bool {
        wait_until(SOON, async || self.client.current_url().await.is_ok_and(|url| url.as_str().ends_with(path))).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_goes_anywhere_by_keyboard_and_by_thumb() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    let open = Key::Control + "k";
    browser.press(&open).await;
    browser.press("retention").await;
    browser.photograph("palette").await;
    browser.press(&Key::Enter.to_string()).await;
    assert!(browser.is_at("/settings/retention").await, "{:?}", browser.client.current_url().await);
    // By the word it had before.
    browser.press(&open).await;
    browser.press("channels").await;
    browser.press(&Key::Enter.to_string()).await;
    assert!(browser.is_at("/connections/webhooks").await, "{:?}", browser.client.current_url().await);
    // What is no page is searched for; arrows choose, and a screen reader is told which.
    browser.press(&open).await;
    browser.press("late parcel").await;
    let chosen =
        "return document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText";
    assert_eq!(browser.script(chosen).await, "Search for late parcel");
    browser.press(&Key::Down.to_string()).await;
    assert_eq!(browser.script(chosen).await, "Ask late parcel");
    browser.press(&Key::Up.to_string()).await;
    browser.press(&Key::Enter.to_string()).await;
    assert!(browser.is_at("/search?q=late%20parcel").await, "{:?}", browser.client.current_url().await);
    // Escape closes it and leaves the page as it was.
    browser.press(&open).await;
    browser.press(&Key::Escape.to_string()).await;
    assert_eq!(browser.script("return document.getElementById('palette').open").await, false);
    assert!(browser.is_at("/search?q=late%20parcel").await);

    browser.goto(&format!("{}/system/queues", app.url)).await;
    browser.on_a_phone().await;
    let seen =
        "return [...document.querySelectorAll('.side a')].filter(a => a.checkVisibility()).map(a => a.innerText)";
    assert_eq!(browser.script(seen).await, json!(["Home", "Search", "Inbox", "Mail", "Clients", "More"]));
    let low = "return Math.round(document.querySelector('.side').getBoundingClientRect().bottom) === innerHeight";
    assert_eq!(browser.script(low).await, true, "the bar is at the bottom");
    browser.click(".more").await;
    let all = browser.script(seen).await.to_string();
    assert!(["Documents", "Connections", "System", "Settings", "Close"].iter().all(|link| all.contains(link)), "{all}");
    browser.shot("menu-phone").await;
    browser.client.find(Locator::LinkText("Settings")).await.expect("a link").click().await.expect("a click");
    assert!(browser.shows("People own work", SOON).await, "{}", browser.text().await);
    assert_eq!(browser.script(seen).await.as_array().map(Vec::len), Some(6), "the menu is closed again");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_revoked_on_its_page() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/settings/keys", app.url)).await;
    browser.typed("#name", "front desk").await;
    browser.click("input[name=agent]").await;
    browser.click("form .button").await;
    assert!(browser.shows("an agent's key needs a person", SOON).await, "{}", browser.text().await);
    assert_eq!(browser.script("return document.getElementById('name').value").await, "front desk");
    browser.typed("#person", "ann@office.test").await;
    browser.click("form .button").await;
    assert!(browser.shows("front desk is ready", SOON).await, "{}", browser.text().await);
    let key = browser.script("return document.querySelector('.made input').value").await;
    let key = key.as_str().expect("a key").to_owned();
    browser.photograph("keys").await;
    let ask = async || {
        let asked = client().get(format!("{}/api/v1/documents", app.url)).bearer_auth(&key);
        asked.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(ask().await, 200);
    browser.goto(&format!("{}/settings/keys", app.url)).await;
    assert!(
        browser.shows("ann@office.test", SOON).await && !browser.client.source().await.expect("a page").contains(&key)
    );
    browser.click("summary[aria-label='Revoke front desk']").await;
    browser
        .client
        .find(Locator::Css("tr:has(summary[aria-label='Revoke front desk']) .bad"))
        .await
        .expect("a button")
        .click()
        .await
        .expect("a click");
    assert!(browser.shows("The key was revoked", SOON).await, "{}", browser.text().await);
    assert_eq!(ask().await, 401, "it is refused at once");
    browser.close().await;

    // Others are not shown the page, nor the way to it.
    let (_, reads) = world.caller(world.tenant_id, &[Scope::Read]).await;
    let asked = async |path: &str| {
        let asked =
            client().get(format!("{}{path}", app.url)).bearer_auth(reads.reveal()).header("accept", "text/html");
        let answer = asked.send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a page"))
    };
    assert_eq!(asked("/settings/keys").await.0, 403);
    let (status, page) = asked("/settings/spend").await;
    assert!(status == 200 && !page.contains("/settings/keys"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_added_in_the_browser_and_documents_are_listed_by_source_and_type() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/connections/files", app.url)).await;
    assert!(browser.shows("No file has been added yet", SOON).await, "{}", browser.text().await);
    let files = Folder::new();
    std::fs::create_dir_all(&files.0).expect("a folder");
    for (name, text) in
        [("lease.md", "# Lisbon lease\nIt ends in June."), ("till.txt", "The till opens at nine."), ("blank.txt", " ")]
    {
        std::fs::write(files.0.join(name), text).expect("a file");
    }
    let choose = async |names: &[&str]| {
        let paths: Vec<String> = names.iter().map(|name| files.0.join(name).display().to_string()).collect();
        let field = browser.client.find(Locator::Css("#file")).await.expect("a field");
        field.send_keys(&paths.join("\n")).await.expect("files");
        browser.click(".upload .button").await;
    };
    choose(&["lease.md", "till.txt"]).await;
    assert!(browser.shows("Search finds it now", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("lease.md", SOON).await && browser.shows("till.txt", SOON).await, "{}", browser.text().await);
    browser.photograph("files").await;
    choose(&["blank.txt"]).await;
    assert!(browser.shows("It was not added: there is no text in it", SOON).await, "{}", browser.text().await);

    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let sent = client().post(format!("{}/api/v1/documents", app.url)).bearer_auth(key.reveal());
    let sent = sent.json(&json!({ "title": "A note", "text": "Call Ann about the lease." })).send().await;
    assert_eq!(sent.expect("an answer").status().as_u16(), 201);
    browser.goto(&format!("{}/documents", app.url)).await;
    assert!(
        browser.shows("3 documents", SOON).await && browser.shows("A note", SOON).await,
        "{}",
        browser.text().await
    );
    browser.photograph("documents").await;
    browser
        .client
        .find(Locator::Css("select[name=type]"))
        .await
        .expect("a field")
        .select_by_value("note")
        .await
        .expect("a choice");
    browser.click(".narrow button").await;
    assert!(browser.shows("1 document", SOON).await && browser.is_at("/documents?source=&type=note&status=").await);
    assert!(!browser.text().await.contains("lease.md"), "{}", browser.text().await);
    browser.close().await;

    let listed = async |query: &str| {
        let asked = client().get(format!("{}/api/v1/documents{query}", app.url)).bearer_auth(key.reveal());
        let answer: serde_json::Value = asked.send().await.expect("an answer").json().await.expect("JSON");
        answer["documents"].as_array().expect("documents").len()
    };
    let source = sqlx::query_scalar::<_, uuid::Uuid>("select id from connected_sources where provider = 'manual'");
    let source = source.fetch_one(&mut *world.conn().await).await.expect("a source");
    assert_eq!(listed("?type=file").await, 2);
    assert_eq!(listed(&format!("?source={source}")).await, 3);
    assert_eq!(listed(&format!("?source={}", uuid::Uuid::nil())).await, 0);

    // A form of another site, or without its token, adds nothing.
    let body = "--b\r\ncontent-disposition: form-data; name=\"csrf\"\r\n\r\nx\r\n--b--\r\n";
    let sent = client().post(format!("{}/connections/files", app.url)).bearer_auth(key.reveal());
    let sent = sent.header("content-type", "multipart/form-data; boundary=b").body(body).send().await;
    assert_eq!(sent.expect("an answer").status().as_u16(), 403);
}
