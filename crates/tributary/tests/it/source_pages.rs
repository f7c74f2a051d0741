//! Sources as a person meets them: connected in a real browser over a provider's own pages, watched, broken, reconnected and let go; and the same
//! by the API and on the command line.

use std::time::Duration;

use domain::{Clock, Scope};
use fakes::Fakes;
use serde_json::{Value, json};
use testkit::process::{Start, Worker};
use testkit::sources::{HUBSPOT, settings};
use testkit::{Sources, cluster, wait_until};

use crate::app::{App, BINARY, Folder, client, command, free_port, run};
use crate::browser::Browser;
use crate::intake::MASTER_KEY;

pub const SOON: Duration = Duration::from_secs(15);

/// A server and a worker that know the fakes.
pub struct House {
    pub t: Sources,
    pub app: App,
    folder: Folder,
    _worker: Worker,
}

impl House {
    pub async fn new() -> Self {
        let t = Sources::with(cluster::cloned(), Clock::System, Fakes::with_fixtures().await, &[]).await;
        let (folder, port) = (Folder::new(), free_port());
        let mut serve = command(&folder.0, port);
        serve.env("DATABASE_URL", &t.world.database.url).env("MASTER_KEY", MASTER_KEY).envs(settings(&t.fakes));
        let app = App::start(serve, &["serve"], port).await;
        let known = settings(&t.fakes);
        let env: Vec<(&str, &str)> = known.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let database_url = &t.world.database.url;
        let worker = Worker::start(&Start { program: BINARY, args: &["worker"], database_url, crash: None, env: &env });
        Self { t, app, folder, _worker: worker }
    }

    pub fn tributary(&self, args: &[&str]) -> (bool, String, String) {
        let mut tributary = command(&self.folder.0, 1);
        tributary.env("DATABASE_URL", &self.t.world.database.url).env("MASTER_KEY", MASTER_KEY);
        // Links that are printed lead to the server.
        tributary.env("LISTEN", self.app.url.strip_prefix("http://").expect("an address"));
        tributary.envs(settings(&self.t.fakes)).args(args);
        let (output, stdout, stderr) = run(&mut tributary);
        (output.status.success(), stdout, stderr)
    }
}

/// HubSpot's records of these names could not be read; the last is the latest.
async fn fail(t: &Sources, names: &[&str]) {
    sqlx::query(
        "insert into sync_failures (tenant_id, source_id, external_id, reason, failed_at)
         select s.tenant_id, s.id, f.name, 'it is not an object', now() + make_interval(secs => f.nth)
         from connected_sources s, unnest($1::text[]) with ordinality f (name, nth) where s.provider = 'hubspot'",
    )
    .bind(names)
    .execute(&mut *t.world.conn().await)
    .await
    .expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_connects_an_account_watches_it_break_and_reconnects_it() {
    let house = House::new().await;
    let (t, app) = (&house.t, &house.app);
    let browser = Browser::signed_in(app, &t.world).await;
    browser.goto(&format!("{}/settings/integrations", app.url)).await;
    assert!(browser.shows("No account is connected yet", SOON).await, "{}", browser.text().await);
    browser.photograph("sources-empty").await;

    // To the provider's page and back.
    browser.goto(&format!("{}/oauth/hubspot/authorize", app.url)).await;
    assert!(browser.shows("up to date", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("HubSpot company", SOON).await, "{}", browser.text().await);
    let page = browser.client.current_url().await.expect("a URL").to_string();
    assert!(page.contains("/connections/accounts/") && !page.contains("code=") && !page.contains("state="), "{page}");
    // What it brought, each with its own page.
    assert!(browser.shows("Newest documents", SOON).await, "{}", browser.text().await);
    let listed = browser.script("return document.querySelectorAll('.newest a[href^=\"/documents/\"]').length").await;
    assert_eq!(listed, 10, "{}", browser.text().await);
    browser.click("form[action$='/every'] option[value='6h']").await;
    browser.click("form[action$='/every'] button").await;
    assert!(browser.shows("It is synced that often from now on", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("Synced every 6h from now on", SOON).await, "{}", browser.text().await);
    browser.photograph("source").await;

    // Its owner takes the permission back while it is synced: the open page says so.
    t.fakes.revoke(fakes::HUBSPOT);
    browser.click("form[action$='/sync'] button").await;
    assert!(browser.shows("Press Reconnect", SOON).await, "{}", browser.text().await);
    browser.photograph("source-reconnect").await;
    browser.goto(&format!("{}/", app.url)).await;
    assert!(browser.shows("refuses our token", SOON).await, "{}", browser.text().await);
    t.fakes.hubspot().patch("companies", "54", json!({ "description": "Keeps parks in Washington County." }));
    browser.goto(&format!("{}/connections/accounts", app.url)).await;
    browser.click("a.button[href*='source=']").await;
    assert!(browser.shows("up to date", SOON).await, "{}", browser.text().await);
    let is_read = async || {
        t.count("select count(*) from source_documents where text like '%Keeps parks in Washington%'").await > 0
    };
    assert!(wait_until(SOON, is_read).await, "what changed meanwhile is missing");
    browser.photograph("sources").await;

    // What is known of a client, with who says so.
    browser.goto(&format!("{}/clients", app.url)).await;
    assert!(browser.shows("Larkfield Landscaping", SOON).await, "{}", browser.text().await);
    let client = browser
        .script("return [...document.querySelectorAll('th a')].find(a => a.textContent.includes('Larkfield')).href")
        .await;
    browser.goto(client.as_str().expect("a link")).await;
    assert!(
        browser.shows("Open deals", SOON).await && browser.shows("Said by", SOON).await,
        "{}",
        browser.text().await
    );
    browser.photograph("client").await;

    // What could not be read: one that can be asked for by its id, and one that has none.
    fail(t, &["contact:51", "contact:?1a2b3c4d"]).await;
    browser.goto(&page).await;
    let buttons = "return [...document.querySelectorAll('td.actions')].map(cell => cell.innerText.trim().split(/\\s+/).join(' '))";
    assert_eq!(browser.script(buttons).await, json!(["Skip", "Retry Skip"]), "{}", browser.text().await);
    browser.click("button[value='skip'][aria-label='Skip contact:?1a2b3c4d']").await;
    assert!(browser.shows("The record is left out", SOON).await, "{}", browser.text().await);
    browser.photograph("source-failures").await;

    // Disconnected, and connected again: the same source.
    browser.click("#let-go summary").await;
    browser.click("form[action$='/disconnect'] button").await;
    assert!(browser.shows("Nothing is read any more", SOON).await, "{}", browser.text().await);
    browser.goto(&format!("{}/connections/accounts", app.url)).await;
    browser.click("a.button[href*='source=']").await;
    assert!(browser.shows("up to date", SOON).await, "{}", browser.text().await);
    assert_eq!(t.count("select count(*) from connected_sources where provider = 'hubspot'").await, 1);

    // Let go for good.
    browser.goto(&page).await;
    browser.click("#let-go summary").await;
    browser.photograph("source-forget").await;
    browser.click("form[action$='/forget'] button").await;
    let is_gone = async || t.count("select count(*) from connected_sources where provider = 'hubspot'").await == 0;
    assert!(wait_until(SOON, is_gone).await, "it is still there");
    assert_eq!(t.count("select count(*) from client_intelligence").await, 0);
    browser.close().await;
}

/// S21.
#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_from_a_provider_is_for_the_session_that_set_out() {
    let house = House::new().await;
    let (t, app) = (&house.t, &house.app);
    let http = client();
    let stranger = http.get(format!("{}/oauth/hubspot/authorize", app.url)).send().await.expect("an answer");
    // First to a page of ours: a form that signs in may not lead on to a provider.
    assert_eq!(stranger.headers()["location"], "/signin?next=/connections/accounts", "{}", stranger.status());
    let browser = Browser::signed_in(app, &t.world).await;
    // Somebody else's state in our address bar connects nothing.
    let (env, tenant) = (&t.world.env, t.world.tenant_id);
    let url = engine::pull::connect::authorize(env, tenant, b"another", HUBSPOT, None, domain::Transport::Rest);
    let returned = t.consent(HUBSPOT, &url.await.expect("a URL")).await;
    let code = returned.code.expect("a code");
    browser.goto(&format!("{}/oauth/hubspot/callback?state={}&code={code}", app.url, returned.state)).await;
    assert!(browser.shows("connect again", SOON).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains(&code), "the code is shown");
    assert_eq!(t.count("select count(*) from connected_sources where provider = 'hubspot'").await, 0);
    assert!(!app.printed().contains(&code), "the code is logged");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_and_jobs_are_managed_by_the_api_and_from_the_command_line() {
    let house = House::new().await;
    let (t, app) = (&house.t, &house.app);
    let (_, key) = t.world.caller(t.world.tenant_id, &[Scope::Write, Scope::Read]).await;
    let (_, read) = t.world.caller(t.world.tenant_id, &[Scope::Read]).await;
    let other = t.world.other_tenant("other").await;
    let (_, foreign) = t.world.caller(other, &[Scope::Service]).await;
    let ask = async |method: &str, path: &str, key: &domain::Secret, body: Value| -> (u16, Value) {
        let request = client().request(method.parse().expect("a method"), format!("{}/api/v1{path}", app.url));
        let answer = request.bearer_auth(key.reveal()).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    };
    let hubspot = json!({ "provider": "hubspot", "key": t.fakes.hubspot_private_app_token() });
    assert_eq!(ask("POST", "/sources", &read, hubspot.clone()).await.0, 403, "a key that may only read");
    let (status, wrong) =
        ask("POST", "/sources", &key, json!({ "provider": "hubspot", "key": "pat-wrong-canary" })).await;
    assert!(status >= 400 && !wrong.to_string().contains("canary"), "{status} {wrong}");
    let (status, made) = ask("POST", "/sources", &key, hubspot).await;
    assert!((200..300).contains(&status), "{status} {made}");
    let id = made["id"].as_str().expect("an id").to_owned();
    let is_done = async || ask("GET", "/jobs?limit=1", &key, Value::Null).await.1["jobs"][0]["status"] == "completed";
    assert!(wait_until(SOON, is_done).await, "{}", ask("GET", "/jobs?limit=1", &key, Value::Null).await.1);
    let (_, source) = ask("GET", &format!("/sources/{id}"), &key, Value::Null).await;
    assert_eq!(source["status"], "active", "{source}");
    assert!(!source.to_string().contains(t.fakes.hubspot_private_app_token()), "the key is shown");

    // Nobody else's business.
    for (method, path) in [
        ("GET", format!("/sources/{id}")),
        ("POST", format!("/sources/{id}/sync")),
        ("POST", format!("/sources/{id}/pause")),
        ("DELETE", format!("/sources/{id}?forget=true")),
        ("GET", format!("/sources/{id}/failures")),
        ("POST", format!("/sources/{id}/failures/retry")),
        ("POST", format!("/sources/{id}/failures/contact:51/skip")),
    ] {
        assert_eq!(ask(method, &path, &foreign, json!({})).await.0, 404, "{method} {path}");
    }
    assert_eq!(ask("GET", "/clients", &foreign, Value::Null).await.1["clients"], json!([]));
    let hourly = json!({ "sync_every_secs": 3_600 });
    assert_eq!(ask("PATCH", &format!("/sources/{id}"), &foreign, hourly.clone()).await.0, 404);
    assert_eq!(ask("PATCH", &format!("/sources/{id}"), &read, hourly.clone()).await.0, 403);
    assert_eq!(ask("PATCH", &format!("/sources/{id}"), &key, json!({ "sync_every_secs": 59 })).await.0, 400);
    let (status, hourly) = ask("PATCH", &format!("/sources/{id}"), &key, hourly).await;
    assert_eq!((status, &hourly["sync_every_secs"]), (200, &json!(3_600.0)), "{hourly}");

    // What could not be read is decided about, one by one or all at once; what has no id is not asked for.
    fail(t, &["contact:51", "contact:?1a2b3c4d"]).await;
    let failures = format!("/sources/{id}/failures");
    let (status, refused) = ask("POST", &format!("{failures}/contact:%3F1a2b3c4d/retry"), &key, Value::Null).await;
    assert!(status == 409 && refused.to_string().contains("full sync"), "{status} {refused}");
    assert_eq!(ask("GET", &failures, &key, Value::Null).await.1["total"], 2);
    let skip = format!("{failures}/contact:%3F1a2b3c4d/skip");
    assert_eq!(ask("POST", &skip, &key, Value::Null).await.0, 204);
    assert_eq!(ask("POST", &skip, &key, Value::Null).await.0, 404, "it is left out already");
    let (is_well, _, told) = house.tributary(&["source", "retry", &id, "contact:?1a2b3c4d"]);
    assert!(!is_well && told.contains("--full"), "{told}");
    fail(t, &["contact:52"]).await;
    assert!(house.tributary(&["source", "skip", &id, "contact:52"]).0);
    let (is_well, asked, told) = house.tributary(&["source", "retry", &id, "--json"]);
    assert!(is_well && asked.contains("\"is_new\": true"), "{asked}{told}");
    let is_read = async || t.count("select count(*) from sync_failures where skipped_at is null").await == 0;
    assert!(wait_until(SOON, is_read).await && wait_until(SOON, is_done).await, "it was not read again");
    // One that was skipped is asked for again by its name.
    let (is_well, said, told) = house.tributary(&["source", "retry", &id, "contact:52"]);
    assert!(is_well, "{said}{told}");
    let is_read = async || t.count("select count(*) from sync_failures where external_id = 'contact:52'").await == 0;
    assert!(wait_until(SOON, is_read).await && wait_until(SOON, is_done).await, "it was not read again");

    let (is_well, listed, told) = house.tributary(&["source", "list"]);
    assert!(is_well && listed.contains("HubSpot"), "{listed}{told}");
    let (is_well, shown, told) = house.tributary(&["source", "show", &id, "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}{told}"));
    assert!(is_well && shown.to_string().contains(&id), "{shown}");
    let (is_well, said, told) = house.tributary(&["source", "sync", &id, "--wait"]);
    assert!(is_well, "{said}{told}");
    let (is_well, jobs, told) = house.tributary(&["job", "list"]);
    assert!(is_well && jobs.contains("completed"), "{jobs}{told}");
    let (is_well, facts, told) = house.tributary(&["client", "show", "Larkfield Landscaping"]);
    assert!(is_well && facts.contains("Open deals"), "{facts}{told}");
    let (is_well, every, told) = house.tributary(&["source", "every", &id, "12h", "--json"]);
    assert!(is_well && every.contains("\"sync_every_secs\": 43200.0"), "{every}{told}");
    let (is_well, paused, told) = house.tributary(&["source", "pause", &id, "--json"]);
    assert!(is_well && paused.contains("\"paused\""), "{paused}{told}");
    let (_, shown, _) = house.tributary(&["source", "show", &id]);
    assert!(!shown.contains("next sync") && shown.contains("12h"), "{shown}");
    let (is_well, _, told) = house.tributary(&["source", "sync", &id]);
    assert!(!is_well && told.contains("paused"), "{told}");
    assert!(house.tributary(&["source", "resume", &id]).0);
    let (is_well, said, told) = house.tributary(&["source", "forget", &id, "--yes"]);
    assert!(is_well, "{said}{told}");
    let is_gone = async || t.count("select count(*) from connected_sources where provider = 'hubspot'").await == 0;
    assert!(wait_until(SOON, is_gone).await, "it is still there");
    let (is_well, _, told) = house.tributary(&["source", "show", &id]);
    assert!(!is_well && told.contains("hint"), "{told}");
}
