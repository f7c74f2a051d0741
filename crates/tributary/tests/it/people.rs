//! People: added, changed and removed by API, command line and page; and the owner of a channel.

use std::time::Duration;

use domain::{Scope, Secret};
use fantoccini::Locator;
use serde_json::{Value, json};
use testkit::World;

use crate::app::{client, command, free_port, run};
use crate::browser::Browser;
use crate::channels::{House, target};
use crate::intake::{MASTER_KEY, new_channel};

const SOON: Duration = Duration::from_secs(8);

/// A server, and a key that manages.
pub struct Firm {
    pub house: House,
    pub key: Secret,
}

impl Firm {
    pub async fn new() -> Self {
        let house = House::on(World::now().await).await;
        let key = house.world.caller(house.world.tenant_id, &[Scope::Service]).await.1;
        Self { house, key }
    }

    pub async fn ask(&self, key: &Secret, method: &str, path: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/v1{path}", self.house.app.url);
        let request = client().request(method.parse().expect("a method"), url).bearer_auth(key.reveal());
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub async fn add(&self, email: &str) -> i64 {
        let (status, made) = self.ask(&self.key, "POST", "/people", json!({ "email": email })).await;
        assert_eq!(status, 201, "{made}");
        made["id"].as_i64().expect("a number")
    }

    /// Whether the command succeeded, and what it printed.
    pub fn tributary(&self, args: &[&str]) -> (bool, String, String) {
        let mut command = command(&self.house.folder.0, free_port());
        command.env("LISTEN", self.house.app.url.strip_prefix("http://").expect("an address"));
        command.env("DATABASE_URL", &self.house.world.database.url).env("MASTER_KEY", MASTER_KEY);
        let (output, stdout, stderr) = run(command.args(args));
        (output.status.success(), stdout, stderr)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_added_changed_and_refused_by_the_same_rules_everywhere() {
    let firm = Firm::new().await;
    let new = json!({ "email": " ann@office.test ", "first_name": "Ann", "stale_threshold_minutes": 0, "allow_remote_processing": false,
        "built_in_agent": true });
    let (status, ann) = firm.ask(&firm.key, "POST", "/people", new).await;
    assert_eq!(
        (status, &ann["email"], &ann["built_in_agent"]),
        (201, &json!("ann@office.test"), &json!(true)),
        "{ann}"
    );
    for (body, expected) in [
        (json!({ "email": "ANN@office.test" }), 409),
        (json!({ "email": "nobody" }), 400),
        (json!({ "email": "built-in-agent@tributary.invalid" }), 400),
        (json!({ "email": "b@x.test", "stale_threshold_minutes": -1 }), 400),
        (json!({ "email": "b@x.test", "stale_threshold_minutes": 43_201 }), 400),
        (json!({ "email": "b@x.test", "first_name": "x".repeat(101) }), 400),
        (json!({ "email": "b@x.test", "first_name": "a\u{0}b" }), 400),
        (json!({ "first_name": "Bob" }), 422),
        (json!({ "email": "b@x.test", "tenant_id": "x" }), 422),
    ] {
        let (status, answer) = firm.ask(&firm.key, "POST", "/people", body.clone()).await;
        assert_eq!(status, expected, "{body}: {answer}");
    }
    let path = format!("/people/{}", ann["id"]);
    let (status, changed) = firm
        .ask(&firm.key, "PATCH", &path, json!({ "last_name": "Lee", "first_name": "", "built_in_agent": false }))
        .await;
    assert_eq!(
        (status, &changed["first_name"], &changed["last_name"]),
        (200, &Value::Null, &json!("Lee")),
        "{changed}"
    );
    assert_eq!(
        json!([changed["built_in_agent"], changed["allow_remote_processing"], changed["stale_threshold_minutes"]]),
        json!([false, false, 0]),
        "what is left out stays"
    );
    assert_eq!(firm.ask(&firm.key, "PATCH", "/people/999999", json!({})).await.0, 404);
    assert_eq!(firm.ask(&firm.key, "DELETE", "/people/999999", Value::Null).await.0, 404);

    // A key that may not manage looks, and no more.
    let (_, writer) = firm.house.world.caller(firm.house.world.tenant_id, &[Scope::Read, Scope::Write]).await;
    assert_eq!(firm.ask(&writer, "GET", "/people", Value::Null).await.1["people"][0]["id"], ann["id"]);
    for (method, path) in [("POST", "/people"), ("PATCH", path.as_str()), ("DELETE", path.as_str())] {
        let (status, answer) = firm.ask(&writer, method, path, json!({ "email": "b@x.test" })).await;
        assert_eq!(status, 403, "{method} {path}: {answer}");
    }

    // The command line: the same rules, the same answers.
    let (is_done, stdout, stderr) =
        firm.tributary(&["person", "add", "bob@office.test", "--first-name", "Bob", "--json"]);
    assert!(is_done, "{stderr}");
    let bob: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((&bob["stale_threshold_minutes"], &bob["allow_remote_processing"]), (&json!(15), &json!(true)));
    let (is_done, _, stderr) = firm.tributary(&["person", "add", "bob@office.test"]);
    assert!(!is_done && stderr.contains("somebody has that e-mail address already"), "{stderr}");
    let (is_done, _, stderr) =
        firm.tributary(&["person", "set", "Bob", "--built-in-agent", "true", "--stale-threshold-minutes", "90"]);
    assert!(is_done, "{stderr}");
    let (_, stdout, _) = firm.tributary(&["person", "list"]);
    assert!(stdout.contains("bob@office.test  member  yes             yes     90 min"), "{stdout}");
    let (is_done, _, stderr) = firm.tributary(&["person", "set", "bobby", "--first-name", "x"]);
    assert!(
        !is_done && stderr.contains("there is no person \"bobby\"") && stderr.contains("did you mean `Bob`?"),
        "{stderr}"
    );
    let (is_done, _, stderr) =
        firm.tributary(&["person", "set", "bob@office.test", "--stale-threshold-minutes", "99999"]);
    assert!(!is_done && stderr.contains("from 0 to 43200"), "{stderr}");
}

/// S25: a removed person's keys are refused at once, and what belonged to them is everyone's.
#[tokio::test(flavor = "multi_thread")]
async fn removing_a_person_tells_first_and_leaves_nothing_behind() {
    let firm = Firm::new().await;
    let ann = firm.add("ann@office.test").await;
    let new = json!({ "name": "laptop", "scopes": ["agent"], "person": "ann@office.test" });
    let (_, key) = firm.ask(&firm.key, "POST", "/keys", new).await;
    let key = Secret::new(key["key"].as_str().expect("a key"));
    let channel = json!({ "name": "line", "provider": "generic", "person_id": ann, "auto_create_contacts": true });
    let (status, channel) = firm.ask(&firm.key, "POST", "/channels", channel).await;
    assert_eq!(status, 201, "{channel}");
    let door = channel["url"].as_str().expect("a URL").replace(crate::channels::PUBLIC_URL, &firm.house.app.url);
    let send = async |from: &str| {
        let request = client().post(&door).bearer_auth(channel["bearer"].as_str().expect("a key"));
        let answer = request.json(&json!({ "type": "note", "content": "x", "from": from })).send().await;
        answer.expect("an answer").status().as_u16()
    };
    assert_eq!(send("new@example.com").await, 202);
    let rest = async |path: &str, body: Option<Value>| {
        let url = format!("{}/rest/v1/{path}", firm.house.app.url);
        let request = if body.is_some() { client().post(url) } else { client().get(url) };
        let request = body.iter().fold(request.header("apikey", key.reveal()), |request, body| request.json(body));
        request.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(rest("crm_processing_nodes", Some(json!({ "device_name": "laptop" }))).await, 201);
    assert_eq!(rest("rpc/claim_next_pending_activity", Some(json!({}))).await, 200);
    assert_eq!(firm.house.number("select count(*) from activities where processing_status = 'processing'").await, 1);

    let path = format!("/people/{ann}");
    let owns = json!({ "channels": 1, "activities": 1, "contacts": 1, "keys": 1, "devices": 1, "sessions": 0 });
    assert_eq!(firm.ask(&firm.key, "GET", &path, Value::Null).await.1["owns"], owns);
    let (is_done, _, stderr) = firm.tributary(&["person", "remove", "ann@office.test"]);
    assert!(!is_done && stderr.contains("1 channel becomes everyone's.") && stderr.contains("--yes"), "{stderr}");
    assert_eq!(firm.ask(&firm.key, "GET", &path, Value::Null).await.0, 200, "nobody agreed");
    let (status, removed) = firm.ask(&firm.key, "DELETE", &path, Value::Null).await;
    assert_eq!((status, &removed["owned"]), (200, &owns), "{removed}");
    assert_eq!(rest("activities?select=id", None).await, 401, "S25: a removed person's key is good");
    assert_eq!(firm.ask(&firm.key, "GET", &path, Value::Null).await.0, 404);
    for (what, sql) in [
        ("a channel", "select count(*) from ingestion_providers where sales_id is null and is_active"),
        ("a contact", "select count(*) from contacts where sales_id is null and email = 'new@example.com'"),
        (
            "an activity",
            "select count(*) from activities where sales_id is null and processing_status = 'raw' and locked_key is null",
        ),
        (
            "a key",
            "select count(*) from tributary.api_keys where name = 'laptop' and revoked_at is not null and sales_id is null",
        ),
    ] {
        assert_eq!(firm.house.number(sql).await, 1, "{what} is not everyone's");
    }
    assert_eq!(firm.house.number("select count(*) from crm_processing_nodes").await, 0);
    // The server still knows the channel as hers: what comes now is everyone's and not lost.
    assert_eq!(send("newer@example.com").await, 202);
    assert_eq!(firm.house.number("select count(*) from activities where sales_id is null").await, 2);
    let (is_done, stdout, stderr) = firm.tributary(&["person", "add", "bob@office.test"]);
    assert!(is_done, "{stdout}{stderr}");
    let (is_done, stdout, stderr) = firm.tributary(&["person", "remove", "bob@office.test", "--yes"]);
    assert!(is_done && stdout.contains("within 5 s"), "{stdout}{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channels_owner_is_chosen_and_changed_by_api_and_command() {
    let firm = Firm::new().await;
    let (ann, bob) = (firm.add("ann@office.test").await, firm.add("bob@office.test").await);
    let (id, secrets) = firm.house.channel(new_channel("generic")).await;
    let path = format!("/channels/{id}");
    let bearer = secrets.proofs.get("bearer").expect("a key").reveal().to_owned();
    let owner = async || {
        let sent =
            firm.house.post(&target(&secrets)).bearer_auth(&bearer).json(&json!({ "content": "x" })).send().await;
        let sent: Value = sent.expect("an answer").json().await.expect("JSON");
        let id: uuid::Uuid = sent["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let sql = "select sales_id from activities where id = $1";
        let owner: Option<i64> =
            sqlx::query_scalar(sql).bind(id).fetch_one(&mut *firm.house.world.conn().await).await.expect("a row");
        owner
    };
    assert_eq!(owner().await, None);
    for (given, expected) in [(json!(ann), Some(ann)), (json!(bob), Some(bob)), (Value::Null, None)] {
        assert_eq!(firm.ask(&firm.key, "PATCH", &path, json!({ "person_id": given })).await.0, 204);
        assert_eq!(owner().await, expected);
    }
    assert_eq!(firm.ask(&firm.key, "PATCH", &path, json!({ "person_id": ann })).await.0, 204);
    assert_eq!(firm.ask(&firm.key, "PATCH", &path, json!({ "name": "door" })).await.0, 204);
    let elsewhere = firm.house.world.other_tenant("elsewhere").await;
    let mut conn = firm.house.world.conn().await;
    let stranger = store::people::ensure(&mut conn, elsewhere, "mallory@elsewhere.test").await.expect("a person");
    for odd in [stranger.0, 999_999] {
        let (status, answer) = firm.ask(&firm.key, "PATCH", &path, json!({ "person_id": odd })).await;
        assert_eq!((status, &answer["detail"]), (400, &json!("there is no such person")), "S17: {odd}");
    }
    assert_eq!(owner().await, Some(ann), "what is left out or refused stays");

    let id = id.to_string();
    let (is_done, _, stderr) =
        firm.tributary(&["channel", "set", &id, "--owner", "bob@office.test", "--name", "front door"]);
    assert!(is_done, "{stderr}");
    let (_, stdout, _) = firm.tributary(&["channel", "list"]);
    assert!(stdout.contains("front door") && stdout.contains("bob@office.test"), "{stdout}");
    let (is_done, _, stderr) = firm.tributary(&["channel", "set", &id, "--owner", "none"]);
    assert!(is_done, "{stderr}");
    let (is_done, _, stderr) = firm.tributary(&["channel", "add", "line", "--owner", "carol@office.test"]);
    assert!(!is_done && stderr.contains("there is no person \"carol@office.test\""), "{stderr}");
    let (is_done, stdout, stderr) = firm.tributary(&["channel", "add", "line", "--owner", "ann@office.test", "--json"]);
    assert!(is_done, "{stderr}");
    let made: Value = serde_json::from_str(&stdout).expect("JSON");
    let listed = firm.ask(&firm.key, "GET", "/channels", Value::Null).await.1;
    let of = |id: &str| {
        let all = listed["channels"].as_array().expect("channels");
        all.iter().find(|channel| channel["id"] == id).expect("a channel")["person_id"].clone()
    };
    assert_eq!((of(made["id"].as_str().expect("an id")), of(&id)), (json!(ann), Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_adds_a_person_gives_them_a_channel_and_removes_them_on_pages() {
    let firm = Firm::new().await;
    let (id, _) = firm.house.channel(new_channel("generic")).await;
    let url = &firm.house.app.url;
    let browser = Browser::signed_in(&firm.house.app, &firm.house.world).await;
    browser.goto(&format!("{url}/settings/people")).await;
    assert!(browser.shows("There is nobody yet", SOON).await, "{}", browser.text().await);
    browser.photograph("people-empty").await;
    browser.typed("input[name=email]", "nobody").await;
    browser.click(".after button").await;
    assert!(browser.shows("a person is named by an e-mail address", SOON).await, "{}", browser.text().await);
    browser.typed("input[name=email]", "ann@office.test").await;
    browser.typed("input[name=first_name]", "Ann").await;
    browser.typed("input[name=last_name]", "Lee").await;
    browser.click(".after button").await;
    assert!(browser.shows("Ann Lee", SOON).await && browser.shows("Added.", SOON).await, "{}", browser.text().await);
    browser.click("input[name=built_in_agent]").await;
    browser.click("input[name=allow_remote_processing]").await;
    browser.typed("#minutes", "90").await;
    browser.click("form.stack button").await;
    assert!(browser.shows("Saved.", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("processed by their agents and the built-in one.", SOON).await, "{}", browser.text().await);
    let own_page = browser.client.current_url().await.expect("a URL").to_string();

    browser.goto(&format!("{url}/connections/webhooks/{id}")).await;
    assert!(browser.shows("belongs to everyone", SOON).await, "{}", browser.text().await);
    let select = browser.client.find(Locator::Css("#owner")).await.expect("a choice");
    select.select_by_label("Ann Lee").await.expect("Ann");
    browser.click("section form.stack button").await;
    assert!(browser.shows("belongs to Ann Lee", SOON).await, "{}", browser.text().await);
    browser.photograph("channel-owned").await;
    browser.goto(&format!("{url}/connections/webhooks")).await;
    assert!(browser.shows("belongs to Ann Lee", SOON).await, "{}", browser.text().await);
    browser.goto(&format!("{url}/settings/people")).await;
    assert!(browser.shows("their agents and the built-in one", SOON).await, "{}", browser.text().await);
    browser.photograph("people").await;

    browser.goto(&own_page).await;
    browser.click("#remove summary").await;
    assert!(browser.shows("1 channel becomes everyone's.", SOON).await, "{}", browser.text().await);
    browser.photograph("person-remove").await;
    browser.click("#remove button").await;
    assert!(browser.shows("Their work is everyone's now", SOON).await, "{}", browser.text().await);
    assert_eq!(firm.house.number("select count(*) from ingestion_providers where sales_id is null").await, 1);
    assert_eq!(firm.house.number("select count(*) from sales").await, 0);
    browser.close().await;
}
