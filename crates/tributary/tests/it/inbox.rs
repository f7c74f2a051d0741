//! The inbox: filters that the address keeps, files of what they show, and senders that nobody knows.

use std::time::Duration;

use domain::{Scope, Secret};
use serde_json::{Value, json};
use testkit::World;
use uuid::Uuid;

use crate::app::{App, Folder, client};
use crate::browser::{Browser, serve};

const SOON: Duration = Duration::from_secs(8);

pub async fn put(world: &World, what: Value) -> Uuid {
    sqlx::query_scalar(
        "insert into activities (tenant_id, type, direction, processing_status, raw_data, processed_data, metadata, sales_id, created_at)
         select $1, coalesce(w ->> 'type', 'note'), 'inbound', coalesce(w ->> 'status', 'completed'),
             jsonb_build_object('source_type', 'text', 'subject', w ->> 'subject', 'content', w ->> 'content'), w -> 'result',
             coalesce(w -> 'metadata', '{}'), (w ->> 'person')::int8, now() - make_interval(days => coalesce((w ->> 'days')::int, 0))
         from (select $2::jsonb as w) given returning id",
    )
    .bind(world.tenant_id.0)
    .bind(what)
    .fetch_one(&mut *world.conn().await)
    .await
    .expect("an activity")
}

async fn get(app: &App, key: &Secret, path: &str) -> (u16, String) {
    let asked = client().get(format!("{}{path}", app.url)).bearer_auth(key.reveal()).header("accept", "text/html");
    let answer = asked.send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("a text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_narrow_the_list_stay_in_the_address_and_are_exported() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let bob =
        store::people::ensure(&mut *world.conn().await, world.tenant_id, "bob@office.test").await.expect("a person");
    put(&world, json!({ "type": "email", "subject": "Late parcel", "content": "It is three days late.", "metadata": { "from": "ann@example.com" } })).await;
    put(&world, json!({ "type": "sms", "content": "=SUM(1) Are you open?", "metadata": { "from": "+15005550006" }, "person": bob.0 })).await;
    put(
        &world,
        json!({ "type": "email", "subject": "Old invoice", "content": "Paid.", "days": 9, "status": "failed" }),
    )
    .await;
    let long = "word ".repeat(200);
    put(&world, json!({ "subject": "A long note", "content": long })).await;
    let today = chrono::Utc::now().date_naive();
    let week = today - chrono::Days::new(7);
    let titles = async |query: &str| -> Vec<&str> {
        let (status, page) = get(&app, &key, &format!("/inbox{query}")).await;
        assert_eq!(status, 200, "{query}: {page}");
        let known = ["Late parcel", "Are you open", "Old invoice", "A long note"];
        known.into_iter().filter(|title| page.contains(title)).collect()
    };
    assert_eq!(titles("").await.len(), 4);
    assert_eq!(titles("?type=email").await, ["Late parcel", "Old invoice"]);
    assert_eq!(titles("?type=email&state=failed").await, ["Old invoice"]);
    assert_eq!(titles("?state=&type=&q=&person=&since=&until=&channel=").await.len(), 4, "blank fields filter nothing");
    assert_eq!(titles(&format!("?person={}", bob.0)).await, ["Are you open"]);
    assert_eq!(titles("?q=THREE+days").await, ["Late parcel"]);
    assert_eq!(titles("?q=ann%40example.com").await, ["Late parcel"], "by its address");
    assert_eq!(titles("?q=%25").await, [] as [&str; 0], "a percent sign is no pattern");
    assert_eq!(titles(&format!("?until={week}")).await, ["Old invoice"]);
    assert_eq!(titles(&format!("?since={today}&until={today}")).await.len(), 3, "both days are included");
    assert_eq!(titles("/failed").await, ["Old invoice"]);
    assert_eq!(titles(&format!("?channel={}", Uuid::nil())).await, [] as [&str; 0]);
    for odd in ["?type=pigeon", "?state=sleeping", "?since=yesterday", "?channel=x"] {
        assert_eq!(get(&app, &key, &format!("/inbox{odd}")).await.0, 400, "{odd}");
    }
    // Whoever is a person has their own page.
    let (_, own) = store::keys::create(&mut *world.conn().await, world.tenant_id, Some(bob), "bob", &[Scope::Read])
        .await
        .expect("a key");
    let (_, mine) = get(&app, &own, "/inbox/mine").await;
    assert!(mine.contains("Are you open") && !mine.contains("Late parcel") && mine.contains("href=\"/inbox/mine\""));

    // The same list as a file: whole texts, and no formula of a sender's.
    let (status, csv) = get(&app, &key, "/inbox/export.csv?type=sms").await;
    assert_eq!((status, csv.lines().count()), (200, 2), "{csv}");
    assert!(
        csv.starts_with("id,received_at,type,")
            && csv.contains("\"'=SUM(1) Are you open?\"")
            && csv.contains("\"'+15005550006\""),
        "{csv}"
    );
    let (_, all) = get(&app, &key, "/inbox/export.json").await;
    let all: Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(all.as_array().map(Vec::len), Some(4));
    assert!(all.as_array().into_iter().flatten().any(|one| one["raw_data"]["content"] == long), "texts are whole");
    assert_eq!(get(&app, &key, "/inbox/export.json?q=nothing-like-it").await.1.trim(), "[\n]");
    let stranger = world.caller(world.other_tenant("somebody else").await, &[Scope::Service]).await.1;
    assert_eq!(get(&app, &stranger, "/inbox/export.csv").await.1.lines().count(), 1, "S17");
    // Programs filter by the same words.
    let (_, listed) = get(&app, &key, "/api/v1/activities?type=email&q=late").await;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["activities"].as_array().map(Vec::len), Some(1), "{listed}");

    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/inbox", app.url)).await;
    browser.typed("form.narrow input[type=search]", "parcel").await;
    browser.click("form.narrow button").await;
    assert!(
        browser.shows("Late parcel", SOON).await && !browser.text().await.contains("Are you open"),
        "{}",
        browser.text().await
    );
    assert!(browser.client.current_url().await.expect("a URL").as_str().contains("q=parcel"));
    browser.photograph("inbox-narrow").await;
    browser.close().await;
}

/// Puts so many activities whose texts are far larger than what a connection holds: an export of them waits for its reader between two pages.
async fn put_large(world: &World, n: i32) -> Vec<Uuid> {
    sqlx::query_scalar(
        "insert into activities (tenant_id, type, direction, processing_status, raw_data, metadata, created_at)
         select $1, 'note', 'inbound', 'completed', jsonb_build_object('source_type', 'text', 'content', repeat('long ', 60000)), '{}',
             now() - make_interval(secs => nth) from generate_series(1, $2) nth order by nth returning id",
    )
    .bind(world.tenant_id.0)
    .bind(n)
    .fetch_all(&mut *world.conn().await)
    .await
    .expect("activities")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_goes_on_where_an_activity_was_deleted_and_breaks_off_where_it_cannot() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    let (_, key) = world.caller(world.tenant_id, &[Scope::Service]).await;
    let newest_first = put_large(&world, 130).await;
    let ask = async |path: &str| {
        let asked = client().get(format!("{}{path}", app.url)).bearer_auth(key.reveal());
        let mut answer = asked.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 200);
        let begun = answer.chunk().await.expect("a piece").expect("a first piece");
        (answer, begun.to_vec())
    };

    // The last activity of the first page is deleted while that page is on its way.
    let (answer, mut whole) = ask("/inbox/export.json").await;
    let gone = sqlx::query("delete from activities where id = $1").bind(newest_first[99]);
    assert_eq!(gone.execute(&mut *world.conn().await).await.expect("deleted").rows_affected(), 1);
    whole.extend(answer.bytes().await.expect("the rest"));
    let whole: Vec<Value> = serde_json::from_slice(&whole).expect("JSON");
    let ids: Vec<Uuid> = whole.iter().map(|one| serde_json::from_value(one["id"].clone()).expect("an id")).collect();
    assert_eq!(ids, newest_first, "what was sent, and everything behind it");

    // The second page cannot be read: the download fails, and is not a shorter file.
    for path in ["/inbox/export.csv", "/inbox/export.json"] {
        let (answer, _) = ask(path).await;
        let mut owner = world.login_conn().await;
        let hide = "set role tributary_owner; alter table public.activities rename to hidden";
        sqlx::raw_sql(hide).execute(&mut owner).await.expect("hidden");
        let rest = answer.bytes().await;
        sqlx::raw_sql("alter table public.hidden rename to activities").execute(&mut owner).await.expect("shown");
        assert!(rest.is_err(), "{path}: a file of {} more bytes looks whole", rest.map_or(0, |rest| rest.len()));
    }
    assert_eq!(get(&app, &key, "/inbox/export.csv?q=%00").await.0, 400, "what is refused is no file");

    // A program that pages by the id of a deleted activity is told so, instead of being shown the end.
    let (status, problem) = get(&app, &key, &format!("/api/v1/activities?before={}", newest_first[99])).await;
    assert_eq!(status, 404, "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_arrivals_wait_until_they_are_asked_for() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    put(&world, json!({ "subject": "The first", "days": 1 })).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/inbox", app.url)).await;
    assert!(browser.shows("The first", SOON).await);
    for n in 1..=3 {
        put(&world, json!({ "subject": format!("Another, number {n}") })).await;
    }
    assert!(browser.shows("3 new", SOON).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains("Another"), "{}", browser.text().await);
    browser.photograph("inbox-new").await;
    browser.click(".arrivals button").await;
    assert!(browser.shows("Another, number 3", SOON).await, "{}", browser.text().await);
    assert!(!browser.text().await.contains("3 new"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unrecognised_senders_are_grouped_linked_made_contacts_and_ignored() {
    let (world, folder) = (World::now().await, Folder::new());
    let app = serve(&world, &folder).await;
    for n in 0..3 {
        put(&world, json!({ "type": "sms", "content": format!("Message {n}"), "metadata": { "from": "+15005550006", "from_key": "+15005550006" } })).await;
    }
    put(&world, json!({ "type": "email", "subject": "Buy now", "metadata": { "from": "spam@example.com" } })).await;
    put(&world, json!({ "type": "email", "subject": "Hello", "metadata": { "from": "ann@example.com" } })).await;
    put(&world, json!({ "content": "It has no address." })).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/inbox/unrecognised", app.url)).await;
    assert!(
        browser.shows("3 senders", SOON).await && browser.shows("3 events, the last", SOON).await,
        "{}",
        browser.text().await
    );
    browser.photograph("senders").await;
    browser.click("button[aria-label='Ignore spam@example.com']").await;
    assert!(
        browser.shows("The sender is ignored", SOON).await && browser.shows("2 senders", SOON).await,
        "{}",
        browser.text().await
    );
    browser.click("details.dismissed summary").await;
    browser.photograph("senders-ignored").await;
    browser.click("form[action$='/restore'] button").await;
    assert!(
        browser.shows("listed again", SOON).await && browser.shows("3 senders", SOON).await,
        "{}",
        browser.text().await
    );
    // A contact is made of the sender, and all its events are the contact's.
    browser.click("button[aria-label='New contact: +15005550006']").await;
    assert!(
        browser.shows("Linked, with all events", SOON).await && browser.shows("2 senders", SOON).await,
        "{}",
        browser.text().await
    );
    let n: i64 = sqlx::query_scalar("select count(*) from activities where contact_id is not null")
        .fetch_one(&mut *world.conn().await)
        .await
        .expect("a count");
    assert_eq!(n, 3);
    browser.close().await;

    let (_, key) = world.caller(world.tenant_id, &[Scope::Read, Scope::Write]).await;
    let (_, reads) = world.caller(world.tenant_id, &[Scope::Read]).await;
    let stranger = world.caller(world.other_tenant("somebody else").await, &[Scope::Service]).await.1;
    let act = async |key: &Secret, action: &str, address: &str| {
        let asked = client().post(format!("{}/api/v1/senders/{action}", app.url)).bearer_auth(key.reveal());
        asked.json(&json!({ "address": address })).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(act(&reads, "ignore", "spam@example.com").await, 403);
    assert_eq!(act(&key, "ignore", "").await, 400);
    assert_eq!(act(&key, "ignore", "spam@example.com").await, 204);
    assert_eq!(act(&key, "ignore", "spam@example.com").await, 204, "again, it stays ignored");
    let senders = async |key: &Secret| -> Value {
        serde_json::from_str(&get(&app, key, "/api/v1/senders").await.1).expect("JSON")
    };
    let listed = senders(&key).await;
    assert_eq!(listed["unrecognised"][0]["address"], "ann@example.com", "{listed}");
    assert_eq!(
        (listed["unrecognised"].as_array().map(Vec::len), &listed["ignored"][0]["address"]),
        (Some(1), &json!("spam@example.com"))
    );
    assert_eq!(
        senders(&stranger).await,
        json!({ "unrecognised": [], "n_unrecognised": 0, "is_at_least": false, "ignored": [] }),
        "S17"
    );
    assert_eq!(act(&stranger, "restore", "spam@example.com").await, 404, "S17");
    assert_eq!(act(&key, "restore", "spam@example.com").await, 204);
    assert_eq!(act(&key, "restore", "spam@example.com").await, 404);
}
