//! Home in a real browser: alerts that act, first steps with sample data, and the chart.

use std::time::Duration;

use domain::Scope;
use serde_json::json;
use testkit::process::{Start, Worker};
use testkit::{World, wait_until};

use crate::app::{BINARY, Folder, client};
use crate::browser::{Browser, serve};

const SOON: Duration = Duration::from_secs(8);

async fn run(world: &World, sql: &'static str) {
    sqlx::raw_sql(sql).execute(&mut *world.conn().await).await.expect(sql);
}

async fn number(world: &World, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&mut *world.conn().await).await.expect(sql)
}

/// Three activities that failed for good.
async fn fail(world: &World) {
    run(
        world,
        "insert into activities (id, tenant_id, type, direction, processing_status, raw_data, metadata)
         select gen_random_uuid(), t.id, 'note', 'inbound', 'failed', '{\"source_type\": \"text\", \"content\": \"x\"}',
             '{\"retry_count\": 3, \"error\": {\"type\": \"LLMError\", \"message\": \"503\"}}'
         from tenants t, generate_series(1, 3) where t.is_operator;
         insert into activity_failures (tenant_id, original_activity_id, failure_reason, raw_data)
         select tenant_id, id, 'LLMError: 503', raw_data from activities where processing_status = 'failed'",
    )
    .await;
}

/// Two dead items in one lane.
pub async fn bury(world: &World) {
    run(
        world,
        "insert into pgmq.a_upkeep (msg_id, read_ct, enqueued_at, vt, message, headers)
         select 1000000 + n, 8, now(), now(), jsonb_build_object('task', 'unpark', 'tenant_id', t.id::text),
             jsonb_build_object('state', 'dead', 'reason', 'gave up', 'error', 'away', 'error_at', now(), 'ended_at', now())
         from tenants t, generate_series(1, 2) n where t.is_operator",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_one_line_each_and_act() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    fail(&world).await;
    bury(&world).await;
    let browser = Browser::signed_in(&app, &world).await;
    assert!(browser.shows("3 activities failed for good", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("2 items were given up in lane upkeep", SOON).await, "{}", browser.text().await);
    browser.photograph("home-alerts").await;
    // What was given up is tried again from here.
    browser.click("button[formaction='/alerts/dead_letters/retry']").await;
    assert!(browser.shows("is being tried again", SOON).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains("failed for good"), "{}", browser.text().await);
    assert_eq!(number(&world, "select count(*) from activities where processing_status = 'raw'").await, 3);
    browser.click("button[formaction='/alerts/dead_items/retry']").await;
    assert!(browser.shows("is being tried again", SOON).await, "{}", browser.text().await);
    assert_eq!(number(&world, "select count(*) from pgmq.q_upkeep where headers ? 'replay_of'").await, 2);
    assert_eq!(number(&world, "select count(*) from pgmq.a_upkeep where headers ->> 'state' = 'dead'").await, 0);

    // Dismissed, it is out of sight and can be brought back.
    assert!(browser.shows("No worker is running", SOON).await, "{}", browser.text().await);
    browser.click("button[formaction='/alerts/no_worker/dismiss']").await;
    assert!(browser.shows("Dismissed for a day", SOON).await && browser.shows("All is well", SOON).await);
    browser.photograph("home-dismissed").await;
    browser.click(".dismissed summary").await;
    browser.click("form[action='/alerts/no_worker/restore'] button").await;
    assert!(browser.shows("It is shown again", SOON).await, "{}", browser.text().await);
    assert!(browser.script("return document.querySelectorAll('.finding.broken').length").await == 1);

    // It comes back by itself after its cause was gone, or after a day.
    browser.click("button[formaction='/alerts/no_worker/dismiss']").await;
    assert!(browser.shows("All is well", SOON).await);
    run(&world, "update tributary.dismissals set until = now()").await;
    browser.goto(&app.url).await;
    assert!(browser.shows("No worker is running", SOON).await, "{}", browser.text().await);
    browser.close().await;

    // Programs do the same; others cannot.
    let (_, write) = world.caller(world.tenant_id, &[Scope::Write]).await;
    let (_, read) = world.caller(world.tenant_id, &[Scope::Read]).await;
    let stranger = world.caller(world.other_tenant("somebody else").await, &[Scope::Service]).await.1;
    let act = async |key: &domain::Secret, action: &str| {
        let asked = client().post(format!("{}/api/v1/alerts/{action}", app.url)).bearer_auth(key.reveal());
        asked.send().await.expect("an answer").status().as_u16()
    };
    fail(&world).await;
    assert_eq!(act(&read, "dead_letters/retry").await, 403);
    assert_eq!(act(&stranger, "dead_letters/dismiss").await, 404, "S17: it is not theirs");
    assert_eq!(act(&stranger, "dead_letters/retry").await, 204);
    assert_eq!(number(&world, "select count(distinct original_activity_id) from activity_failures").await, 3, "S17");
    assert_eq!(act(&write, "dead_letters/dismiss").await, 204);
    assert_eq!(act(&write, "dead_letters/restore").await, 204);
    assert_eq!(act(&write, "dead_letters/restore").await, 404);
    assert_eq!(act(&write, "dead_letters/eat").await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_steps_stay_until_they_are_done_and_sample_data_is_one_button() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let _worker = Worker::start(&Start {
        program: BINARY,
        args: &["worker"],
        database_url: &world.database.url,
        crash: None,
        env: &[],
    });
    let browser = Browser::signed_in(&app, &world).await;
    assert!(
        browser.shows("First steps", SOON).await && browser.shows("1 of 5 done", SOON).await,
        "{}",
        browser.text().await
    );
    browser.photograph("home-first-steps").await;
    browser.click("form[action='/samples'] button").await;
    assert!(browser.shows("Sample data is being read", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("HubSpot sample data", SOON).await, "{}", browser.text().await);
    let unread = "select count(*) from connected_sources where last_successful_sync_at is null";
    let is_read = async || number(&world, unread).await == 0;
    assert!(wait_until(Duration::from_secs(120), is_read).await, "{}", browser.text().await);
    assert_eq!(number(&world, "select count(*) from connected_sources where status = 'active'").await, 5);
    assert!(number(&world, "select count(*) from source_documents").await > 20);
    assert!(browser.shows("3 of 5 done", SOON).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains("Try it with sample data"));
    browser.photograph("home-samples").await;
    // The rest, and then the list is gone.
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let added = client().post(format!("{}/api/v1/channels", app.url)).bearer_auth(key.reveal());
    let added = added.json(&json!({ "name": "shop", "provider": "generic" })).send().await.expect("an answer");
    let channel: serde_json::Value = added.json().await.expect("JSON");
    assert!(browser.shows("4 of 5 done", SOON).await, "{}", browser.text().await);
    let tested = client().post(format!("{}/api/v1/channels/{}/test", app.url, channel["id"].as_str().expect("an id")));
    assert!(tested.bearer_auth(key.reveal()).send().await.expect("an answer").status().is_success());
    let is_gone = async || !browser.text().await.contains("First steps");
    assert!(wait_until(SOON, is_gone).await, "{}", browser.text().await);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chart_has_axes_and_says_what_is_under_the_pointer() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    run(
        &world,
        "insert into activities (id, tenant_id, type, direction, processing_status, raw_data, created_at)
         select gen_random_uuid(), t.id, 'note', 'inbound', 'raw', '{\"source_type\": \"text\", \"content\": \"x\"}', now() - n * interval '3 hours'
         from tenants t, generate_series(0, 40) n where t.is_operator",
    )
    .await;
    let browser = Browser::signed_in(&app, &world).await;
    assert!(browser.shows("1 event in the last hour", SOON).await, "{}", browser.text().await);
    browser.click(".spans a:nth-child(2)").await;
    assert!(browser.shows("events in the last 24 hours", SOON).await, "{}", browser.text().await);
    browser.click(".spans a:nth-child(3)").await;
    assert!(browser.shows("41 events in the last 7 days", SOON).await, "{}", browser.text().await);
    assert_eq!(browser.script("return document.querySelectorAll('.bucket').length").await, 84);
    let axis = browser.script("return document.querySelector('.axis').innerText").await;
    assert!(axis.as_str().is_some_and(|axis| axis.ends_with("now") && axis.contains(char::is_numeric)), "{axis}");
    let hover = "document.querySelector('.bucket:has(rect:not(.hit))').dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
        return document.querySelector('.tip').textContent";
    let told = browser.script(hover).await;
    assert!(told.as_str().is_some_and(|told| told.ends_with("event") || told.ends_with("events")), "{told}");
    browser.click(".chart summary").await;
    assert!(browser.shows("1 event", SOON).await, "{}", browser.text().await);
    browser.photograph("home-week").await;
    browser.close().await;
}
