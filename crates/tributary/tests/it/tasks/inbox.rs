//! The inbox and what needs somebody: senders, exports, failures, alerts.

use std::path::Path;

use serde_json::{Value, json};
use testkit::wait_until;

use super::walk::SOON;
use super::{Day, INBOX, one};
use crate::app::Folder;
use crate::home::bury;
use crate::inbox::put;

/// The text of a file that is being saved, once all of it is there.
async fn saved(folder: &Path, ending: &str) -> String {
    let file = || {
        let entries = std::fs::read_dir(folder).ok()?;
        entries.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.extension().is_some_and(|e| e == ending))
    };
    assert!(wait_until(SOON, async || file().is_some()).await, "no {ending} was saved");
    std::fs::read_to_string(file().expect("a file")).expect("a text")
}

impl Day {
    async fn mail(&self) {
        let world = &self.house.t.world;
        for (from, subject) in
            [("ann@shop.example", "Late parcel"), ("rui@lisbon.example", "The lease"), ("spam@example.com", "Buy now")]
        {
            put(world, json!({ "type": "email", "subject": subject, "metadata": { "from": from } })).await;
        }
        put(world, json!({ "type": "sms", "content": "Are you open?", "metadata": { "from": "+15005550006" } })).await;
    }

    /// Events that failed for good.
    async fn failed(&self) {
        let world = &self.house.t.world;
        for order in ["Order 7", "Order 8", "Order 9"] {
            let error = json!({ "retry_count": 3, "error": { "type": "LLMError", "message": "503" } });
            put(world, json!({ "subject": order, "status": "failed", "metadata": error })).await;
        }
        let given_up = "insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
                        select tenant_id, id, 'LLMError: 503', raw_data from activities where processing_status = 'failed'";
        sqlx::raw_sql(given_up).execute(&mut *world.conn().await).await.expect("dead letters");
    }

    async fn senders(&self) -> Vec<String> {
        let senders = self.get("/senders").await;
        let all = senders["unrecognised"].as_array().into_iter().flatten();
        let mut all: Vec<_> = all.filter_map(|sender| sender["address"].as_str()).map(str::to_owned).collect();
        all.sort();
        all
    }

    async fn alerts(&self) -> String {
        self.get("/alerts").await.to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_in_is_sorted_taken_away_and_mended() {
    let mut day = Day::new(INBOX).await;
    day.mail().await;
    let ann = json!({ "first_name": "Ann", "last_name": "Lark", "email": "ann@home.example" });
    let ann = day.ask("POST", "/contacts", ann).await["id"].clone();

    day.task("Link an unrecognised sender to a person", async |day, walk| {
        walk.press("Inbox").await;
        walk.press("Unrecognised").await;
        walk.fill("Contact for ann@shop.example", "Ann Lark").await;
        walk.press_in("ann@shop.example", "Link").await;
        walk.sees("Linked, with all events").await;
        let contact = day.get(&format!("/contacts/{ann}")).await;
        assert_eq!(contact["addresses"], json!(["ann@home.example", "ann@shop.example"]), "{contact}");
        assert_eq!(day.senders().await, ["+15005550006", "rui@lisbon.example", "spam@example.com"]);
    })
    .await;

    day.task("Make a new contact of a sender", async |day, walk| {
        walk.press("Inbox").await;
        walk.press("Unrecognised").await;
        walk.press_in("rui@lisbon.example", "New contact").await;
        walk.sees("Linked, with all events").await;
        let contacts = day.get("/contacts").await;
        assert!(one(&contacts["contacts"], "email", "rui@lisbon.example")["id"].is_i64());
        assert_eq!(day.senders().await, ["+15005550006", "spam@example.com"]);
    })
    .await;

    day.task("Ignore a sender", async |day, walk| {
        walk.press("Inbox").await;
        walk.press("Unrecognised").await;
        walk.press_in("spam@example.com", "Ignore").await;
        walk.sees("The sender is ignored").await;
        assert_eq!(day.senders().await, ["+15005550006"]);
    })
    .await;

    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let allow = json!({ "behavior": "allow", "downloadPath": folder.0 });
    day.browser.devtools("Browser.setDownloadBehavior", allow).await;
    day.task("Narrow the inbox and export it", async |_, walk| {
        walk.press("Inbox").await;
        walk.choose("Kind", "E-mail").await;
        walk.press("Apply").await;
        walk.sees("Late parcel").await;
        assert!(walk.address().await.contains("type=email"), "{}", walk.address().await);
        walk.press("CSV").await;
        let csv = saved(&folder.0, "csv").await;
        assert!(csv.lines().count() == 4 && csv.contains("Late parcel") && !csv.contains("Are you open"), "{csv}");
        walk.press("JSON").await;
        let json: Value = serde_json::from_str(&saved(&folder.0, "json").await).expect("JSON");
        assert_eq!(json.as_array().map(Vec::len), Some(3));
    })
    .await;

    day.failed().await;
    day.task("See why an event failed and skip it", async |day, walk| {
        walk.press("Dead letters").await;
        walk.sees("LLMError: 503").await;
        walk.press_in("Order 8", "Skip").await;
        walk.sees("It was skipped").await;
        let letters = day.get("/dead-letters").await["dead_letters"].to_string();
        assert!(letters.contains("Order 7") && !letters.contains("Order 8"), "{letters}");
    })
    .await;

    day.task("Retry all that failed", async |day, walk| {
        walk.press("Retry all").await;
        walk.sees("is being tried again").await;
        day.counts(2, "select count(*) from activities where processing_status = 'raw'").await;
        assert!(!day.alerts().await.contains("dead_letters"), "{}", day.alerts().await);
    })
    .await;

    bury(&day.house.t.world).await;
    day.task("Dismiss an alert", async |_, walk| {
        walk.press("Dismiss").await;
        walk.sees("Dismissed for a day").await;
        walk.reload().await;
        walk.sees("All is well").await;
    })
    .await;
    day.end().await;
}
