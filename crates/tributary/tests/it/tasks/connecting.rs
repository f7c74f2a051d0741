//! The first afternoon: signing in, accounts, webhooks.

use std::process::Command;

use serde_json::json;
use testkit::wait_until;

use super::walk::SOON;
use super::{CONNECTING, Day, one};
use crate::app::{client, run};
use crate::browser::Browser;
use crate::source_pages::House;

const ACCOUNT: &str = "HubSpot account 24317905";
const REFUSED: &str = "the bearer key is not this channel's";

/// The answer to a command that is pasted into a terminal.
pub fn pasted(command: &str, key: &str) -> String {
    let (output, said, error) = run(Command::new("sh").args(["-c", command]).env("KEY", key));
    assert!(output.status.success(), "{command}\n{said}{error}");
    said
}

impl Day {
    async fn status_of(&self, account: &str) -> String {
        let sources = self.get("/sources").await;
        one(&sources["sources"], "name", account)["status"].as_str().expect("a status").to_owned()
    }

    async fn becomes(&self, account: &str, status: &str) {
        let is_so = wait_until(SOON, async || self.status_of(account).await == status).await;
        assert!(is_so, "{account} is {}", self.status_of(account).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_afternoon_of_accounts_and_webhooks() {
    let (house, browser) = (House::new().await, Browser::start().await);
    let mut day = Day::with(house, browser, CONNECTING).await;
    let ann = json!({ "email": "ann@office.test", "first_name": "Ann", "last_name": "Lee" });
    let ann = day.ask("POST", "/people", ann).await["id"].clone();

    day.task("Sign in with a link", async |day, walk| {
        walk.sees("Ask an owner for a link").await;
        let (_, link, _) = day.house.tributary(&["signin"]);
        walk.open(link.trim()).await;
        walk.sees("First steps").await;
        day.counts(1, "select count(*) from tributary.sessions where kind = 'session'").await;
    })
    .await;

    day.task("Fill an empty house with sample data", async |day, walk| {
        walk.press("Try it with sample data").await;
        walk.sees("HubSpot sample data").await;
        day.counts(3, "select count(*) from sync_jobs where status = 'completed'").await;
        assert!(day.house.t.count("select count(*) from source_documents").await > 20);
    })
    .await;

    day.task("Connect a HubSpot account", async |day, walk| {
        walk.press("Add").await;
        walk.press("Account").await;
        walk.press("HubSpot").await;
        walk.press("Connect HubSpot").await;
        walk.sees("Newest documents").await;
        day.becomes(ACCOUNT, "active").await;
        day.counts(6, "select count(*) from sync_jobs where status = 'completed'").await;
    })
    .await;

    day.task("Sync an account now", async |day, walk| {
        day.house.t.fakes.hubspot().patch("companies", "54", json!({ "description": "Keeps parks in order." }));
        walk.press(ACCOUNT).await;
        walk.press("Sync now").await;
        day.counts(
            1,
            "select count(*) from source_documents where text like '%Keeps parks in order%' and document_type = 'hubspot.company'",
        )
        .await;
    })
    .await;

    day.task("Pause an account and resume it", async |day, walk| {
        walk.press(ACCOUNT).await;
        walk.press("Pause").await;
        walk.sees("It is paused").await;
        day.becomes(ACCOUNT, "paused").await;
        walk.press("Resume").await;
        walk.sees("It goes on where it stopped").await;
        day.becomes(ACCOUNT, "active").await;
    })
    .await;

    day.house.t.fakes.revoke(fakes::HUBSPOT);
    let sources = day.get("/sources").await;
    let id = one(&sources["sources"], "name", ACCOUNT)["id"].as_str().expect("an id").to_owned();
    day.ask("POST", &format!("/sources/{id}/sync"), json!({})).await;
    day.becomes(ACCOUNT, "token_refresh_failed").await;
    day.task("Reconnect an account that was locked out", async |day, walk| {
        walk.press("Reconnect").await;
        walk.sees("up to date").await;
        day.becomes(ACCOUNT, "active").await;
        day.counts(1, "select count(*) from connected_sources where account = '24317905'").await;
    })
    .await;

    let url = day
        .task("Add a webhook for GitHub", async |day, walk| {
            walk.press("Add").await;
            walk.press("Webhook").await;
            walk.press("GitHub").await;
            walk.fill("Name", "Our code").await;
            walk.press("Add webhook").await;
            walk.sees("The webhook is ready").await;
            let channels = day.get("/channels").await;
            assert_eq!(one(&channels["channels"], "name", "Our code")["is_active"], true);
            walk.value_in("About", "Webhook URL").await
        })
        .await;

    let command = day
        .task("Copy a webhook's test command", async |day, walk| {
            walk.press("Our code").await;
            walk.press("Show the secrets and a test command").await;
            walk.press_in("Test command", "Copy").await;
            let command = walk.copied().await;
            let said = pasted(&command, "");
            assert!(!said.contains("/problems/"), "{command}\n{said}");
            day.counts(1, "select count(*) from activities").await;
            command
        })
        .await;

    day.task("Give a webhook to somebody", async |day, walk| {
        walk.press("Our code").await;
        walk.choose("Owner", "Ann Lee").await;
        walk.press("Save").await;
        walk.sees("belongs to Ann Lee").await;
        let channels = day.get("/channels").await;
        assert_eq!(one(&channels["channels"], "name", "Our code")["person_id"], ann);
    })
    .await;

    day.task("Replace a webhook's secrets", async |day, walk| {
        walk.press("Our code").await;
        walk.press("Replace the secrets").await;
        walk.press("Make new secrets").await;
        walk.sees("The secrets were replaced").await;
        walk.reload().await;
        walk.sees("Secrets from before the last rotation work until").await;
        let said = pasted(&command, "");
        assert!(!said.contains("/problems/"), "the old ones work for a day: {said}");
        day.counts(2, "select count(*) from activities").await;
    })
    .await;

    let knock = async || {
        let sent = client().post(&url).bearer_auth("ak_live_wrong").json(&json!({ "type": "note", "content": "x" }));
        sent.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(knock().await, 401);
    day.counts(1, "select count(*) from tributary.channel_refusals").await;
    day.task("See why a request was refused and disable the webhook", async |day, walk| {
        walk.press("Our code").await;
        walk.sees(REFUSED).await;
        walk.sees("Copy the bearer key from the webhook's page again").await;
        walk.press("Disable").await;
        walk.sees("The webhook refuses all events").await;
        let channels = day.get("/channels").await;
        assert_eq!(one(&channels["channels"], "name", "Our code")["is_active"], false);
        let is_shut = async || pasted(&command, "").contains("/problems/");
        assert!(wait_until(SOON, is_shut).await, "events still come in");
    })
    .await;
    day.end().await;
}
