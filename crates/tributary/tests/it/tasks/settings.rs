//! People, keys, and finding one's way.

use fantoccini::key::Key;
use serde_json::{Value, json};
use testkit::wait_until;

use super::connecting::pasted;
use super::walk::SOON;
use super::{Day, SETTINGS, one};
use crate::app::client;

impl Day {
    /// The cookie of the browser that opens a link.
    async fn opened(&self, link: &str) -> String {
        let once = link.split_once("#once=").expect("a link").1;
        let request =
            client().post(format!("{}/signin/once", self.house.app.url)).header("origin", &self.house.app.url);
        let answer = request.form(&[("once", once)]).send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 303, "the link does not sign in");
        let cookie = answer.headers()["set-cookie"].to_str().expect("a cookie");
        cookie.split(';').next().expect("a value").to_owned()
    }

    /// The status of a page for the browser that has a cookie.
    async fn page_for(&self, cookie: &str, path: &str) -> u16 {
        let asked = client().get(format!("{}{path}", self.house.app.url)).header("cookie", cookie);
        asked.header("accept", "text/html").send().await.expect("an answer").status().as_u16()
    }

    async fn status_for(&self, key: &str) -> u16 {
        let asked = client().get(format!("{}/api/v1/documents", self.house.app.url)).bearer_auth(key);
        asked.send().await.expect("an answer").status().as_u16()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_and_programs_come_in_and_go() {
    let mut day = Day::new(SETTINGS).await;

    let cookie = day
        .task("Invite somebody", async |day, walk| {
            walk.press("Settings").await;
            walk.fill("E-mail", "ann@office.test").await;
            walk.fill("First name", "Ann").await;
            walk.fill("Last name", "Lee").await;
            walk.press("Add person").await;
            walk.press("Make an invitation link").await;
            let cookie = day.opened(&walk.value("Sign-in link").await).await;
            assert_eq!(day.page_for(&cookie, "/inbox/mine").await, 200, "she has a page of her own");
            assert_eq!(day.page_for(&cookie, "/add/note").await, 200, "she may write");
            cookie
        })
        .await;

    day.task("Change somebody's role", async |day, walk| {
        walk.press("Settings").await;
        walk.press("Ann Lee").await;
        walk.choose("Role", "read-only").await;
        walk.press("Save").await;
        walk.sees("Saved.").await;
        let people = day.get("/people").await;
        assert_eq!(one(&people["people"], "email", "ann@office.test")["role"], "read-only");
        let may_not = async || day.page_for(&cookie, "/add/note").await == 403;
        assert!(wait_until(SOON, may_not).await, "she still writes");
    })
    .await;

    day.task("End somebody's session", async |day, walk| {
        walk.press("Settings").await;
        walk.press("Sessions").await;
        walk.press_in("Ann Lee", "End").await;
        walk.sees("That browser has to sign in again").await;
        let is_out = async || day.page_for(&cookie, "/inbox").await == 303;
        assert!(wait_until(SOON, is_out).await, "she is still signed in");
    })
    .await;

    let key = day
        .task("Make a key for a program", async |day, walk| {
            walk.press("Add").await;
            walk.press("Key").await;
            walk.fill("Name", "front desk").await;
            walk.press("Create key").await;
            walk.sees("front desk is ready").await;
            let key = walk.value("The new key").await;
            assert_eq!(day.status_for(&key).await, 200);
            key
        })
        .await;

    day.task("Copy a command from the API's page", async |day, walk| {
        day.ask("POST", "/documents", json!({ "title": "Lisbon lease", "text": "It ends in June." })).await;
        walk.press("Settings").await;
        walk.press("API and docs").await;
        walk.press_in("The tenant's documents, the newest first", "Copy").await;
        let command = walk.copied().await;
        let answer: Value = serde_json::from_str(&pasted(&command, &key)).expect("JSON");
        assert_eq!(one(&answer["documents"], "title", "Lisbon lease")["document_type"], "note");
    })
    .await;

    day.task("Revoke a key", async |day, walk| {
        walk.press("Settings").await;
        walk.press("Keys").await;
        walk.press_in("front desk", "Revoke").await;
        walk.press("Revoke it").await;
        walk.sees("The key was revoked").await;
        let is_refused = async || day.status_for(&key).await == 401;
        assert!(wait_until(SOON, is_refused).await, "the key is still good");
    })
    .await;

    day.task("Go to a page by keyboard", async |_, walk| {
        walk.keys(&(Key::Control + "k")).await;
        walk.types("retention").await;
        walk.enter().await;
        walk.arrives_at("/settings/retention").await;
        walk.sees("Your data stays until you remove it").await;
    })
    .await;

    let spent = "insert into usage (tenant_id, month, model, calls, documents, texts, tokens, cost_micros)
                 values ($1, date_trunc('month', now()), 'vectors-1', 3, 120, 240, 90000, 1800000)";
    let mut conn = day.house.t.world.conn().await;
    sqlx::query(spent).bind(day.house.t.world.tenant_id.0).execute(&mut *conn).await.expect("a month");
    day.browser.on_a_phone().await;
    day.task("See the cost on a phone", async |day, walk| {
        walk.press("More").await;
        walk.press("Settings").await;
        walk.press("Spend").await;
        walk.sees("vectors-1").await;
        walk.sees("$1.80").await;
        assert_eq!(day.get("/usage").await["months"][0]["cost_micros"], 1_800_000);
        let is_wide = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(day.browser.script(is_wide).await, false, "it is wider than the phone");
    })
    .await;
    day.end().await;
}
