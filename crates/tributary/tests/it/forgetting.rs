//! Forgetting as a person meets it: on pages, by the API and on the command line; and workers that die at every step of it.

use std::time::Duration;

use domain::{Scope, TenantId};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use testkit::process::{Start, Worker};
use testkit::{World, wait_until};

use crate::app::{App, BINARY, Folder, client, command, run};
use crate::browser::{Browser, serve};
use crate::channels::House;
use crate::intake::{MASTER_KEY, add_channel};

const SOON: Duration = Duration::from_secs(60);

fn worker(world: &World, crash: Option<&str>) -> Worker {
    Worker::start(&Start { program: BINARY, args: &["worker"], database_url: &world.database.url, crash, env: &[] })
}

async fn did(world: &World, sql: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut *world.conn().await).await.expect(sql);
}

async fn count(world: &World, sql: &str) -> i64 {
    let counted = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned())).fetch_one(&mut *world.conn().await).await;
    counted.expect(sql)
}

/// A contact with this many notes and their documents. Returns its id.
async fn contact_with_notes(world: &World, tenant_id: TenantId, name: &str, n: i64) -> i64 {
    let sql = format!(
        "with new as (insert into contacts (tenant_id, email, first_name) values ('{tenant_id}', '{name}@example.com', '{name}') returning id),
         notes as (insert into activities (tenant_id, contact_id, type, raw_data, metadata)
             select '{tenant_id}', new.id, 'note', '{{\"source_type\": \"text\", \"subject\": \"A note\", \"content\": \"The parcel is late.\"}}', '{{\"from\": \"{name}@example.com\"}}'
             from new, generate_series(1, {n}) returning id)
         select id from new"
    );
    count(world, &sql).await
}

/// A worker is killed at each step of forgetting a contact and a tenant. The next one goes on, and each row is counted once.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_step_of_forgetting_the_rest_is_left_to_the_next_worker() {
    let points = [
        ("forget.before_commit:abort:2", false),
        ("forget.last:abort", false),
        ("forget.objects:abort", true),
        ("forget.objects:abort:3", true), // its own row is gone
        ("forget.before_commit:abort:3", true),
        ("forget.last:abort", true),
    ];
    stream::iter(points)
        .map(|(point, is_tenant)| kill_at(point, is_tenant))
        .buffer_unordered(3)
        .collect::<Vec<()>>()
        .await;
}

async fn kill_at(point: &'static str, is_tenant: bool) {
    let world = World::now().await;
    let tenant_id = world.other_tenant("going").await;
    let contact = contact_with_notes(&world, tenant_id, "ann", 700).await;
    let kept = contact_with_notes(&world, world.tenant_id, "ben", 3).await;
    // What the lane would make of them.
    for sql in [
        "delete from pgmq.q_remember_activity",
        "insert into connected_sources (id, tenant_id, provider, name) select gen_random_uuid(), id, 'manual', 'notes' from tenants",
        "insert into source_documents (id, tenant_id, source_id, external_id, document_type, content_sha256, contact_id)
         select gen_random_uuid(), a.tenant_id, s.id, 'activity:' || a.id, 'note', sha256('x'), a.contact_id
         from activities a join connected_sources s on s.tenant_id = a.tenant_id",
    ] {
        did(&world, sql).await;
    }
    if is_tenant {
        let operator = domain::Caller::local("test", world.tenant_id, true);
        engine::tenants::forget(&world.env, &operator, tenant_id).await.expect("asked");
        did(&world, "update tenants set forgetting_at = now() - interval '1 hour' where forgetting_at is not null")
            .await;
    } else {
        let theirs = domain::Caller::local("test", tenant_id, false);
        engine::contacts::forget(&world.env, &theirs, domain::ContactId(contact)).await.expect("asked");
    }
    let mut hurt = worker(&world, Some(point));
    assert!(wait_until(SOON, async || hurt.has_ended().is_some()).await, "{point} was never reached");
    did(&world, "update pgmq.q_forget_all set vt = now()").await;
    let _clean = worker(&world, None);
    let is_done = async || count(&world, "select count(*) from forgotten where done_at is not null").await == 1;
    assert!(wait_until(SOON, is_done).await, "I5: stuck after a kill at {point}");
    for table in ["activities", "source_documents", "contacts"] {
        let theirs = format!("select count(*) from {table} where tenant_id = '{tenant_id}'");
        assert_eq!(count(&world, &theirs).await, 0, "{table} after {point}");
    }
    for kind in ["activities", "documents"] {
        let removed = format!("select (removed ->> '{kind}')::bigint from forgotten");
        assert_eq!(count(&world, &removed).await, 700, "I2: counted twice, or not at all: {kind} after {point}");
    }
    let left = format!("select count(*) from source_documents where contact_id = {kept}");
    assert_eq!(count(&world, &left).await, 3, "another's documents after {point}");
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_api_and_on_the_command_line_counts_come_first() {
    let House { world, app, folder, .. } = House::new().await;
    let _worker = worker(&world, None);
    let (ann, ben) = (
        contact_with_notes(&world, world.tenant_id, "ann", 2).await,
        contact_with_notes(&world, world.tenant_id, "ben", 3).await,
    );
    let going = world.other_tenant("going").await;
    contact_with_notes(&world, going, "carl", 1).await;
    let (_, opens) = add_channel(&world, going, None).await;
    let (operators, theirs) =
        (world.caller(world.tenant_id, &[Scope::Service]).await.1, world.caller(going, &[Scope::Service]).await.1);
    let readers = world.caller(world.tenant_id, &[Scope::Read]).await.1;
    let ask = async |method: &str, path: &str, key: &domain::Secret| {
        let request = client().request(method.parse().expect("a method"), format!("{}{path}", app.url));
        let answer = request.bearer_auth(key.reveal()).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap_or_default())
    };
    let is_remembered = async || count(&world, "select count(*) from source_documents").await == 6;
    assert!(wait_until(SOON, is_remembered).await, "the notes are not remembered");

    // A contact by the API.
    let (status, counted) = ask("GET", &format!("/api/v1/contacts/{ann}/forget"), &readers).await;
    assert_eq!((status, &counted["activities"], &counted["documents"]), (200, &json!(2), &json!(2)), "{counted}");
    let one = format!("/api/v1/contacts/{ann}");
    assert_eq!(ask("DELETE", &one, &readers).await.0, 403, "a key that reads may not forget");
    assert_eq!(ask("DELETE", &one, &theirs).await.0, 404, "S17");
    assert_eq!(ask("DELETE", &one, &operators).await.0, 202);
    let is_gone = async || ask("GET", &one, &operators).await.0 == 404;
    assert!(wait_until(SOON, is_gone).await, "it is still there");
    let (_, records) = ask("GET", "/api/v1/forgotten", &operators).await;
    let record = &records["forgotten"][0];
    assert_eq!(
        (&record["what"], &record["removed"]["activities"]),
        (&json!(format!("Contact {ann}")), &json!(2)),
        "{records}"
    );
    assert_eq!(ask("GET", "/api/v1/forgotten", &theirs).await.1["forgotten"], json!([]), "S17");

    // Another on the command line.
    let tributary = |args: &[&str]| {
        let mut tributary = command(&folder.0, 1);
        tributary.env("DATABASE_URL", &world.database.url).env("MASTER_KEY", MASTER_KEY).args(args);
        let (output, said, told) = run(&mut tributary);
        (output.status.success(), said, told)
    };
    let (is_well, _, told) = tributary(&["contact", "forget", &ben.to_string()]);
    assert!(!is_well && told.contains("3 activities") && told.contains("--yes"), "{told}");
    let (is_well, said, told) = tributary(&["contact", "forget", &ben.to_string(), "--yes"]);
    assert!(is_well && said.contains("step by step"), "{said}{told}");
    let is_gone = async || count(&world, "select count(*) from contacts").await == 1;
    assert!(wait_until(SOON, is_gone).await, "it is still there");
    let (is_well, said, told) = tributary(&["forgotten"]);
    assert!(is_well && said.contains(&format!("Contact {ben}")) && said.contains("3 activities"), "{said}{told}");
    let (is_well, _, told) = tributary(&["contact", "forget", &ben.to_string(), "--yes"]);
    assert!(!is_well && told.contains("hint"), "{told}");

    // A tenant: the operator's own is refused, and others are not even told of it.
    let (is_well, _, told) = tributary(&["tenant", "forget", "default", "--yes"]);
    assert!(!is_well && told.contains("cannot be forgotten"), "{told}");
    let path = format!("/api/v1/tenants/{going}");
    assert_eq!(ask("DELETE", &format!("/api/v1/tenants/{}", world.tenant_id), &operators).await.0, 409);
    for (method, path) in
        [("DELETE", path.clone()), ("GET", format!("{path}/forget")), ("GET", "/api/v1/tenants".into())]
    {
        assert_eq!(ask(method, &path, &theirs).await.0, 404, "S17: {method} {path}");
    }
    assert_eq!(ask("GET", &format!("{path}/forget"), &operators).await.1["channels"], json!(1));
    let door = format!("{}/ingest/{}", app.url, opens.ingestion_key.reveal());
    let send = async |door: String| {
        let sent =
            client().post(door).bearer_auth(opens.bearer.reveal()).json(&json!({ "type": "note", "content": "late" }));
        sent.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(send(door.clone()).await, 202);
    let unknown = send(format!("{}/ingest/nobodys-key-nobodys-key-nobodys", app.url)).await;
    assert_eq!(ask("DELETE", &path, &operators).await.0, 202);
    let is_closed =
        async || send(door.clone()).await == unknown && ask("GET", "/api/v1/contacts", &theirs).await.0 == 401;
    assert!(wait_until(Duration::from_secs(15), is_closed).await, "it still takes in events, or its key is accepted");
    did(&world, "update tenants set forgetting_at = now() - interval '1 hour' where forgetting_at is not null").await;
    did(&world, "update pgmq.q_forget_all set vt = now()").await;
    let is_gone = async || count(&world, "select count(*) from tenants").await == 1;
    assert!(wait_until(SOON, is_gone).await, "it is still there");
    assert_eq!(send(door.clone()).await, unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_forgets_a_contact_and_a_tenant_on_their_pages() {
    let (world, folder) = (World::now().await, Folder::new());
    let app: App = serve(&world, &folder).await;
    let ann = contact_with_notes(&world, world.tenant_id, "ann", 2).await;
    let going = world.other_tenant("Mill & Co").await;
    contact_with_notes(&world, going, "carl", 1).await;
    let browser = Browser::signed_in(&app, &world).await;
    browser.goto(&format!("{}/clients/people/{ann}", app.url)).await;
    browser.click("#forget summary").await;
    assert!(browser.shows("2 activities", SOON).await, "{}", browser.text().await);
    browser.photograph("contact-forget").await;
    browser.click("form[action$='/forget'] button").await;
    assert!(browser.shows("It is being forgotten", SOON).await, "{}", browser.text().await);
    assert!(browser.shows("0 of 2 activities", SOON).await, "{}", browser.text().await);
    browser.photograph("forgotten-going").await;
    browser.goto(&format!("{}/clients/people/{ann}", app.url)).await;
    assert!(browser.shows("being forgotten", SOON).await, "{}", browser.text().await);
    browser.photograph("contact-going").await;
    // A worker comes, and the page follows by itself.
    browser.goto(&format!("{}/settings/forgotten", app.url)).await;
    let _worker = worker(&world, None);
    assert!(browser.shows("gone", SOON).await, "{}", browser.text().await);
    assert_eq!(count(&world, &format!("select count(*) from contacts where id = {ann}")).await, 0);

    browser.goto(&format!("{}/settings/tenants", app.url)).await;
    browser.photograph("tenants").await;
    browser.goto(&format!("{}/settings/tenants/{}", app.url, world.tenant_id)).await;
    assert!(browser.shows("operates this installation", SOON).await, "{}", browser.text().await);
    assert_eq!(browser.script("return document.querySelectorAll('#forget').length").await, json!(0));
    browser.goto(&format!("{}/settings/tenants/{going}", app.url)).await;
    browser.click("#forget summary").await;
    browser.photograph("tenant-forget").await;
    browser.click("form[action$='/forget'] button").await;
    assert!(browser.shows(&format!("Tenant {going}"), SOON).await, "{}", browser.text().await);
    did(&world, "update tenants set forgetting_at = now() - interval '1 hour' where forgetting_at is not null").await;
    did(&world, "update pgmq.q_forget_all set vt = now()").await;
    let is_gone = async || count(&world, "select count(*) from tenants").await == 1;
    assert!(wait_until(SOON, is_gone).await, "it is still there");
    browser.goto(&format!("{}/settings/forgotten", app.url)).await;
    browser.photograph("forgotten-gone").await;
    browser.close().await;
}
